"""Reading traces from a shell: shown, verified, compared, and nothing in them is obeyed."""

import json
from pathlib import Path

import pytest

from ci_gate.codec import digest_of
from ci_gate.model.trace import TraceHeader, TraceRecord
from ci_gate.model.trace_chain import sealed
from ci_gate.store.traces import open_trace


def _trace(folder, amount=12, name="refund", said="refund it"):
    writer = open_trace(folder, TraceHeader(task="refund-4812", trial=3, repeat=0, seed="0x2a"))
    calls = [
        ("tool", "look_up", {"id": 1}, {"total": 12}),
        ("llm", "model-1", {"messages": ["hi"]}, said),
        ("tool", name, {"id": 1, "amount": amount}, "done"),
    ]
    for order, (kind, called, given, output) in enumerate(calls):
        record = TraceRecord(
            order=order,
            kind=kind,
            name=called,
            input=given,
            input_digest=digest_of(given),
            output=output,
            tokens=120 if kind == "llm" else None,
        )
        writer.append(sealed(record, writer.head))
    writer.finish()
    return str(writer.path)


def test_a_trace_is_shown_call_by_call_with_what_it_cost(place):
    """An unknown price is said, never 0."""
    ended = place.gate("trace", "show", _trace(place.path))

    assert ended.status == 0
    assert "refund-4812  trial 3  seed 0x2a" in ended.out
    assert "    2  refund(id=1, amount=12)\n       -> done" in ended.out
    assert "3 calls, 120 tokens, cost unknown" in ended.out
    assert "llm model-1: 1 call, 120 tokens, cost unknown\n" in ended.out
    assert "tool refund: 1 call\n" in ended.out


def test_one_call_is_shown_with_its_whole_payload(place):
    """And its digests, to find it elsewhere."""
    ended = place.gate("trace", "show", _trace(place.path), "--call", "2")

    assert '    |   "amount": 12' in ended.out
    assert f"digest of input: {digest_of({'id': 1, 'amount': 12})}" in ended.out


@pytest.mark.parametrize(
    ("options", "orders"),
    [(["--kind", "tool"], [0, 2]), (["--name", "look_up"], [0]), (["--faults"], [])],
)
def test_calls_are_chosen_and_printed_as_json(place, options, orders):
    """A line a call."""
    ended = place.gate("trace", "show", _trace(place.path), "--json", *options)

    assert [json.loads(line)["order"] for line in ended.out.splitlines()] == orders


def test_nothing_that_a_trace_says_is_obeyed(place):
    """No workflow command, no control character, no new line."""
    said = "::error::x\n::set-output name=a::b\x1b[31m\u202e"
    ended = place.gate("trace", "show", _trace(place.path, said=said, name="::warning::y"))

    assert not any(line.lstrip().startswith("::") for line in ended.out.splitlines())
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out


@pytest.mark.parametrize("verb", ["show", "diff", "impact"])
def test_json_of_a_trace_is_safe_in_a_log(place, verb):
    """In ASCII, and with nothing that a runner obeys, and yet the same text."""
    said = "##[error]x\u202ey"
    path = _trace(place.path / "a", said=said, name=said)
    other = _trace(place.path / "b", said="other", name=said)
    rest = {"show": [], "diff": [other], "impact": ["--call", "0"]}[verb]

    ended = place.gate("trace", verb, path, *rest, "--json")

    assert ended.status in (0, 1), ended.err
    assert ended.out.isascii()
    assert "##[" not in ended.out
    lines = [json.loads(line) for line in ended.out.splitlines()]
    is_in_it = said in json.dumps(lines, ensure_ascii=False)
    assert is_in_it == (verb != "impact")  # which speaks in numbers


def test_whole_traces_are_verified(place):
    """With the digest that a run file has of them."""
    path = _trace(place.path)

    ended = place.gate("trace", "verify", path)

    assert ended.status == 0
    assert ended.out.startswith(f"{path}: 3 calls, sha256:")


def test_a_changed_byte_is_located(place):
    """File, line and call; nothing of what comes after it is believed."""
    path = place.path / "refund-4812" / "3.jsonl"
    _trace(place.path)
    path.write_text(path.read_text().replace("refund it", "refund 1t"))

    ended = place.gate("trace", "verify", str(path))

    assert ended.status == 2
    assert f"{path}:3: call 1 was changed" in ended.err


def test_two_traces_are_compared_to_the_call_where_they_part(place):
    """With the place in the payload."""
    before = _trace(place.path / "before")
    after = _trace(place.path / "after", amount=120)

    ended = place.gate("trace", "diff", before, after)

    assert ended.status == 1
    assert "They part after 2 calls: the same call has other arguments." in ended.out
    assert "    $.amount\n      - 12\n      + 120" in ended.out


def test_traces_that_agree_end_with_status_0(place):
    """So that a script can ask."""
    path = _trace(place.path)

    ended = place.gate("trace", "diff", path, path, "--json")

    assert ended.status == 0
    assert json.loads(ended.out)["first"] is None


def test_what_a_call_could_have_touched_is_listed(place):
    """Everything after it in its lane."""
    path = _trace(place.path)

    assert "Call 1 could have touched 1 of the 1 call after it" in (
        place.gate("trace", "impact", path, "--call", "1").out
    )
    ended = place.gate("trace", "impact", path, "--call", "0", "--json")
    assert json.loads(ended.out) == {"call": 0, "touched": [1, 2]}


@pytest.mark.parametrize("verb", [["show"], ["impact"]])
def test_a_call_that_is_not_there_is_refused(place, verb):
    """With those that are."""
    ended = place.gate("trace", *verb, _trace(place.path), "--call", "3")

    assert ended.status == 2
    assert "there is no call 3. It has calls 0 to 2." in ended.err


def test_a_file_that_is_no_trace_is_refused(place):
    """By its schema."""
    path = place.path / "x.jsonl"
    path.write_text('{"schema":"ci-gate/run@1","suite":"x"}\n')

    ended = place.gate("trace", "show", str(path))

    assert ended.status == 2
    assert "Expected ci-gate/trace@1" in ended.err


def _doubled(lines):
    lines.insert(2, lines[2])


def _swapped(lines):
    lines[2], lines[3] = lines[3], lines[2]


def _edited(lines):
    lines[2] = lines[2].replace("refund it", "refund 1t")


def _newer(lines):
    lines[0] = lines[0].replace("trace@1", "trace@2")


def _other(lines):
    lines[0] = lines[0].replace("ci-gate/trace@1", "ci-gate/run@1")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: lines.pop(), "the trace has no footer: it ends too early"),
        (lambda lines: lines.clear(), "the file is empty"),
        (lambda lines: lines.__setitem__(4, lines[4][:20]), ":5: is not JSON"),
        (lambda lines: lines.__setitem__(2, "\n"), ":3: is not JSON"),
        (lambda lines: lines.__setitem__(2, "[]\n"), ":3: is not a JSON object"),
        (lambda lines: lines.pop(2), ":3: call 1 says order 2 at place 1"),
        (_doubled, ":4: call 2 says order 1 at place 2"),
        (_swapped, ":3: call 1 says order 2 at place 1"),
        (_edited, ":3: call 1 was changed: its content does not have its digest"),
        (_newer, ":1: ci-gate/trace@2 is another version than the one this version reads"),
        (_other, ":1: has the schema ci-gate/run@1. Expected ci-gate/trace@1"),
        (lambda lines: lines.pop(0), ":1: has no `schema`"),
    ],
    ids=[
        *("truncated", "empty", "torn", "blank", "no object", "removed", "doubled", "swapped"),
        *("edited", "newer", "other format", "no header"),
    ],
)
@pytest.mark.parametrize("verb", ["verify", "show"])
def test_a_damaged_trace_is_refused_with_its_line(place, verb, damage, message):
    """Whatever was done to it, by whichever command it is read; only ``show`` takes an open end."""
    path = _trace(place.path)
    lines = Path(path).read_text().splitlines(keepends=True)
    damage(lines)
    Path(path).write_text("".join(lines))

    ended = place.gate("trace", verb, path)

    if verb == "show" and "footer" in message:
        assert ended.status == 0
    else:
        assert ended.status == 2
        assert message in ended.err
        assert "Traceback" not in ended.err


@pytest.mark.parametrize("verb", [["show"], ["verify"], ["diff"], ["impact", "--call", "0"]])
def test_a_trace_that_is_not_there_is_named(place, verb):
    """Also a folder or a special file in its place."""
    for name in ("none.jsonl", "/dev/null"):
        paths = [name, name] if verb == ["diff"] else [name]
        ended = place.gate("trace", *verb, *paths)
        assert ended.status == 2
        assert name in ended.err
