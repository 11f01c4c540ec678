"""Values cross from the worker into a trace and back as they were, or are named."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from datetime import date, datetime, timedelta, timezone, tzinfo
from datetime import time as time_of_day
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.agents.worker import (
    Conduct,
    Draws,
    Lanes,
    Room,
    done,
    plain,
    result_of,
    tagged,
    untagged,
)
from ci_gate.codec import canonical_of_json, decode, encode
from ci_gate.sandbox.values import plain_of, unrecordable_in

_ZONES = st.one_of(
    st.none(),
    st.just(ZoneInfo("Europe/Berlin")),
    st.integers(-86399, 86399).map(lambda s: timezone(timedelta(seconds=s))),
)
_HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.characters(categories=["Cs"]),
    st.binary(max_size=9),
    st.dates(),
    st.datetimes(timezones=_ZONES, allow_imaginary=True),
    st.times(),
    st.uuids(),
    st.decimals(allow_nan=False),
)
_VALUES = st.recursive(
    st.one_of(_HASHABLE, st.binary(max_size=5).map(bytearray)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.frozensets(_HASHABLE, max_size=4),
        st.sets(_HASHABLE, max_size=4),
        st.dictionaries(st.one_of(_HASHABLE, st.just("$ci-gate")), inner, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=4),
    ),
    max_leaves=20,
)


def _crossed(value):
    """Return a value after its whole way: the worker's line, the trace's line, the answer's."""
    return untagged(json.loads(encode(decode(json.dumps(tagged(value))))))


@given(_VALUES)
def test_a_value_comes_back_as_it_was(value):
    """Whatever is made of what Python calls its own; a set has no order."""
    assert _shown(_crossed(value)) == _shown(value)


def _shown(value):
    """Return a text by which two values are told apart, sets in any order."""
    if isinstance(value, dict):
        parts = [f"{_shown(k)}:{_shown(v)}" for k, v in value.items()]
        return "{" + ",".join(parts) + "}"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}({sorted(map(_shown, value))})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({[_shown(item) for item in value]})"
    return repr(value)


@given(_VALUES)
def test_every_value_has_a_canonical_form_and_a_plain_one(value):
    """Digests are taken of the tagged value, graders read the plain one; neither ever raises."""
    carried = decode(json.dumps(tagged(value)))

    assert canonical_of_json(carried)
    assert json.dumps(plain_of(carried), allow_nan=False)
    json.dumps(plain(value), allow_nan=False)


@given(
    st.recursive(
        st.one_of(st.none(), st.text(max_size=4), st.integers(), st.floats()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["$ci-gate", "a"]), inner, max_size=2),
            st.tuples(
                st.sampled_from(["int", "bytes", "text", "object", "datetime", "unrecordable"]),
                inner,
            ).map(lambda pair: {"$ci-gate": list(pair)}),
        ),
        max_leaves=10,
    )
)
def test_nothing_that_stands_in_a_trace_breaks_who_reads_it(value):
    """A trace may have been written by somebody else."""
    json.dumps(plain_of(value))
    unrecordable_in(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 2**63, -(2**200), 5e-324])
def test_numbers_that_json_loses_come_back(value):
    """NaN, infinities, negative zero, huge integers."""
    assert repr(_crossed([value])) == repr([value])


def test_both_hours_of_a_clock_that_was_put_back_are_told_apart():
    """The ISO text is the same for both but for the offset, which a named zone does not keep."""
    zone = ZoneInfo("Europe/Berlin")
    for fold in (0, 1):
        hour = datetime(2026, 10, 25, 2, 30, tzinfo=zone, fold=fold)
        back = _crossed(hour)
        assert (back.utcoffset(), back.tzinfo, back.fold) == (hour.utcoffset(), zone, fold)


class _Own:
    def __str__(self):
        return "an own object"


class _Mute:
    def __str__(self):
        raise RuntimeError("no text")


class _Zone(tzinfo):
    def utcoffset(self, moment):
        return timedelta(hours=1)

    def dst(self, moment):
        return timedelta(0)

    def tzname(self, moment):
        return "own"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (_Own(), "_Own"),
        (_Mute(), "_Mute"),
        (OrderedDict(a=1), "collections.OrderedDict"),
        (range(3), "builtins.range"),
        (3 + 4j, "builtins.complex"),
        (datetime(2026, 1, 1, tzinfo=_Zone()), "datetime.datetime"),
        (memoryview(b"x"), "builtins.memoryview"),
    ],
)
def test_what_cannot_be_made_again_is_named(value, name):
    """With its type, and its text for people; a replay refuses it by that name."""
    carried = decode(json.dumps(tagged({"rows": [value]})))

    assert unrecordable_in(carried).endswith(name)
    assert isinstance(plain_of(carried)["rows"][0], str)
    with pytest.raises(ValueError, match="which no replay can make again"):
        untagged(carried)


def test_what_holds_itself_ends():
    """Once or many times over: neither the stack nor the time is exhausted."""
    once, often, shared = [], [], []
    once.append(once)
    often += [often] * 3
    for _ in range(70):
        shared = [shared, shared]

    for value in (once, often, shared):
        assert unrecordable_in(tagged(value, 0, Room(1000))) == "a value nested too deep"
        plain(value, 0, Room(1000))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\xff", {"base64": "/w=="}),
        ((1, 2), [1, 2]),
        ({1: "a"}, {"1": "a"}),
        (math.nan, None),
        (2**60, 2**60),
        ("\ud800", "?"),
        (date(2026, 1, 2), "2026-01-02"),
        (
            datetime(2026, 1, 2, 3, tzinfo=ZoneInfo("Europe/Berlin")),
            "2026-01-02T03:00:00 Europe/Berlin",
        ),
        (time_of_day(3, 4), "03:04:00"),
        (Decimal("1.50"), "1.50"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_who_reads_a_trace_sees_plain_json(value, expected):
    """Graders and people."""
    assert plain_of(tagged(value)) == expected


@pytest.mark.parametrize("digits", [4299, 5000, 100_000])
def test_an_integer_of_any_length_comes_back(digits):
    """Hexadecimal has no bound of digits; readers of plain JSON are given text beyond theirs."""
    value = -(10**digits - 1)

    assert _crossed([value]) == [value]
    assert _crossed({value: value}) == {value: value}
    shown = plain_of(decode(json.dumps(tagged(value))))
    assert shown == (value if digits < 4299 else hex(value))
    assert plain(value) == shown
    assert encode(plain_of(decode(json.dumps(tagged({value: value})))))


def test_an_integer_beyond_the_bound_is_named():
    """It is in the trace by its name, and a replay that needs it says so."""
    named = "an integer of more than 4194304 bits"
    found = tagged(1 << 2**22)

    assert unrecordable_in(found) == named
    assert tagged((1 << 2**22) - 1)["$ci-gate"][0] == "int"
    with pytest.raises(ValueError, match=named):
        untagged(found)


def test_a_result_with_numbers_beyond_json_is_sent():
    """Amounts are tagged for the reader to drop; a long integer elsewhere is text."""
    result = result_of({"answer": 10**5000, "cost_usd": math.inf, "tokens": 10**5000, "turns": 2})

    sent = json.loads(done(7, result, None, Conduct(Draws(Lanes()))))["result"]

    assert sent["answer"] == hex(10**5000)
    assert sent["cost_usd"] == {"$ci-gate": ["float", "inf"]}
    assert (sent["tokens"], sent["turns"]) == ({"$ci-gate": ["int", "beyond"]}, 2)
