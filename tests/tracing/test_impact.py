"""What a call could have touched is named; everything else is provably untouched."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.model.trace import TraceRecord
from ci_gate.tracing.impact import access_of, impact_of
from tests.speeds import examples


def _calls(*calls):
    """Records of (lane, kind, name, input)."""
    return [
        TraceRecord(order=order, lane=lane, kind=kind, name=name, input_digest="", input=given)
        for order, (lane, kind, name, given) in enumerate(calls)
    ]


def _set(lane, key):
    return (lane, "kv", "set", {"key": key})


def _get(lane, key):
    return (lane, "kv", "get", {"key": key})


def _model(lane):
    return (lane, "llm", "model", {})


def test_all_later_calls_of_the_lane_are_touched():
    """The agent saw the answer; earlier calls were made before it."""
    records = _calls(_model("a"), _model("a"), _model("a"))

    assert impact_of(records, 1) == (1, 2)


def test_a_lane_beside_it_is_untouched_until_it_reads_what_was_written():
    """A write of another key does not reach it."""
    records = _calls(
        _set("a", "x"), _model("b"), _get("b", "y"), _get("b", "x"), _model("b"), _model("c")
    )

    assert impact_of(records, 0) == (0, 3, 4)


def test_what_was_read_before_the_write_is_untouched():
    """A call can only touch later ones."""
    records = _calls(_get("b", "x"), _set("a", "x"), _model("b"))

    assert impact_of(records, 1) == (1,)


def test_a_tool_may_read_and_write_the_whole_world():
    """Nothing says what it does; models have no access to it."""
    tool = ("b", "tool", "pay", {})
    records = _calls(("a", "tool", "refund", {}), _model("b"), tool, _model("b"))

    assert impact_of(records, 0) == (0, 2, 3)


def test_listing_keys_reads_all_of_them():
    """Whatever key was written."""
    records = _calls(_set("a", "x"), ("b", "kv", "keys", {}))

    assert impact_of(records, 0) == (0, 1)


def test_a_lane_that_was_begun_before_is_untouched_by_the_one_that_began_it():
    """One that begins afterwards is not."""
    records = _calls(_model("a/one"), _model("a"), _model("a/one"), _model("a/two"))

    assert impact_of(records, 1) == (1, 3)


def test_a_joined_lane_touches_what_follows_the_join():
    """Not what its parent did before."""
    records = _calls(
        _model("a/b"), _model("a"), ("a", "join", "a/b", None), _model("a"), _model("c")
    )

    assert impact_of(records, 0) == (0, 2, 3)


def test_a_lane_that_nobody_joins_may_touch_its_parent_at_any_moment():
    """They share the agent's memory."""
    records = _calls(_model("a/b"), _model("a"), _model("c"))

    assert impact_of(records, 0) == (0, 1)


def test_what_came_back_from_one_round_of_lanes_reaches_the_next():
    """The lane that began both may have made no call between them, or none at all."""
    records = _calls(
        _model("a/1"), _model("a/2"), _model("a/3"), _model("a/3/x"), _model("b/1"), _model("a")
    )

    assert impact_of(records, 1) == (1, 2, 3, 5)


def test_a_lane_two_below_reaches_the_one_above():
    """By way of one that makes no call of its own."""
    assert impact_of(_calls(_model("a"), _model("a/b/c"), _model("a")), 1) == (1, 2)
    assert impact_of(_calls(_model("a"), _model("a/b/c"), _model("a")), 0) == (0, 1, 2)


def test_what_a_tool_does_itself_is_begun_by_each_of_its_calls():
    """Its lane is there since the first; the arguments of the second know more."""
    within = _model("a/(t)")
    records = _calls(within, _model("a"), _model("a"), within, _model("a/(t)/1"))

    assert impact_of(records, 1) == (1, 2, 3, 4)


@pytest.mark.parametrize("order", [-1, 2])
def test_a_call_that_is_not_there_is_refused(order):
    """With the number of calls."""
    with pytest.raises(IndexError, match="the trace has 2"):
        impact_of(_calls(_model("a"), _model("a")), order)


_LANES = ["a", "a/b", "a/b/c", "a/d", "e", "a/(t)", "a/(t)/f"]
_CALL = st.one_of(
    st.tuples(st.sampled_from(_LANES), st.just("llm"), st.just("m"), st.just({})),
    st.tuples(
        st.sampled_from(_LANES),
        st.just("kv"),
        st.sampled_from(["get", "set", "keys"]),
        st.sampled_from([{"key": "x"}, {"key": "xy"}, {}]),
    ),
    st.tuples(
        st.sampled_from(_LANES),
        st.just("file"),
        st.sampled_from(["read", "write"]),
        st.just({"path": "p"}),
    ),
    st.tuples(st.sampled_from(_LANES), st.just("tool"), st.just("t"), st.just({})),
    st.tuples(st.sampled_from(_LANES), st.just("join"), st.sampled_from(_LANES), st.just(None)),
)


@given(st.lists(_CALL, min_size=1, max_size=14), st.data())
@settings(max_examples=examples(200))
def test_it_is_what_brute_force_reachability_finds(calls, data):
    """Every edge is drawn one by one, and the closure taken over all of them."""
    records = _calls(*calls)
    start = data.draw(st.integers(0, len(records) - 1))

    assert impact_of(records, start) == _reachable(records, start)


def _reachable(records, start):
    reached = {start}
    changed = True
    while changed:
        more = {
            late.order
            for early in records
            if early.order in reached
            for late in records
            if late.order > early.order and _edge(records, early, late)
        }
        changed = not more <= reached
        reached |= more
    return tuple(sorted(reached))


def _prefixes(lane):
    """The lane and all above it, longest first."""
    parts = lane.split("/")
    return ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _edge(records, early, late):
    """Whether one call alone could have touched another."""
    first_of_lane = not any(r.lane == late.lane for r in records[: late.order])
    joined = {r.name for r in records if r.kind == "join"}
    above = _prefixes(early.lane)
    readers = {one for n, one in enumerate(above) if joined.isdisjoint(above[:n])}
    beginners = set(_prefixes(late.lane)[1:])
    silent = {one for one in beginners if not any(r.lane == one for r in records)}
    is_within = "/(" in late.lane
    nearest = "" if is_within else max(beginners - silent, key=len, default="")
    written = access_of(early).writes
    return (
        late.lane in readers
        or (
            (first_of_lane or is_within)
            and any(len(one) >= len(nearest) for one in readers & beginners)
        )
        or (late.kind == "join" and late.name in readers)
        or any(_touches(w, r) for w in written for r in access_of(late).reads)
    )


def _touches(one, other):
    if one == other:
        return True
    wild = [x for x in (one, other) if x.endswith("*")]
    return any(y.startswith(x[:-1]) for x in wild for y in (one, other)) and all(
        y.startswith(min(wild, key=len)[:-1]) for y in (one, other)
    )
