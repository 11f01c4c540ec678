from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_gate import codec
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.store.canonical import JoinedDigest, forms_of

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 1e-5, 1e-6, 9.9e-6, 1e15, 1e16, 1e21, 2.0**53, 5e-324])
    | st.sampled_from([2**53 - 1, 2**53, -(2**53), 2**63, 2**64, 10**30])
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
COUNTS = st.none() | st.integers(0, 2**53 - 1)
AMOUNTS = st.none() | st.floats(0, 1e300) | st.integers(0, 10**6)
LINES = st.fixed_dictionaries(
    {"task": TEXT, "trial": st.integers(0, 9), "status": st.just("passed")},
    optional={
        "repeat": st.integers(0, 3),
        "attempt": st.integers(1, 3),
        "reason": st.none() | TEXT,
        "tokens": COUNTS,
        "cost_usd": AMOUNTS,
        "duration_s": AMOUNTS,
        "measures": st.none() | st.dictionaries(TEXT, AMOUNTS, max_size=3),
        "grades": st.none()
        | st.lists(
            st.fixed_dictionaries(
                {"grader": TEXT, "passed": st.booleans()},
                optional={"score": AMOUNTS, "reason": TEXT, "unknown": VALUES},
            ),
            max_size=2,
        ),
        "trace": st.none() | TEXT | st.just("traces/refund/3.1.jsonl"),
        "unknown": VALUES,
        "\U0001f600": VALUES,
        "\ufffd": VALUES,
    },
)


def slow_form(fields: dict[str, Any]) -> bytes:
    return codec.canonical(
        {key: value for key, value in fields.items() if key not in ("attempt", "duration_s")}
    )


@given(LINES)
@example({"task": "a", "trial": 0, "status": "passed", "repeat": 0, "cost_usd": 1e-6})
@example({"task": "a", "trial": 0, "status": "passed", "repeat": 0, "cost_usd": -0.0})
@example({"task": "a", "trial": 0, "status": "passed", "grades": [{"grader": "g", "score": 0.0}]})
@example({"task": "a", "trial": 0, "status": "passed", "measures": {"m": 2**60, "n": 1e-6}})
@example({"task": "a", "trial": 0, "status": "passed", "cost_usd": 2**60})
@example({"task": "a", "trial": 0, "status": "failed", "reason": '\x7f\x1f\u2028"\\/\b'})
def test_the_fast_form_is_the_canonical_form(fields: dict[str, Any]) -> None:
    """However a line is read, its form is byte for byte that of RFC 8785, timing left out."""
    line = json.dumps(fields, ensure_ascii=False).encode()

    own = forms_of(line).own

    assert own == slow_form(json.loads(line))


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_any_object_has_its_canonical_form(fields: dict[str, Any]) -> None:
    """A line of fields that nobody knows is written as RFC 8785 asks, too."""
    assert forms_of(json.dumps(fields).encode()).own == slow_form(fields)


@given(LINES)
def test_the_form_of_a_repeat_is_that_of_repeat_0(fields: dict[str, Any]) -> None:
    """A repeat's form is that of the same line with repeat 0 and repeat 0's trace name."""
    moved = {**fields, "repeat": 0}
    ending = f"/{fields['trial']}.{fields.get('repeat', 0)}.jsonl"
    if fields.get("repeat") and (fields.get("trace") or "").endswith(ending):
        moved["trace"] = fields["trace"].removesuffix(ending) + f"/{fields['trial']}.jsonl"

    assert forms_of(json.dumps(fields).encode()).first_repeat == slow_form(moved)


def test_trace_names_of_repeats_do_not_count() -> None:
    """The trace of repeat 2 is named as the trace of repeat 0 in the repeat's form."""
    line = b'{"task":"a","trial":3,"repeat":2,"status":"passed","trace":"t/a/3.2.jsonl"}'

    form = msgspec.json.decode(forms_of(line).first_repeat)

    assert form["trace"] == "t/a/3.jsonl"


def test_absent_and_null_differ() -> None:
    """A field that is null is a fact of the line, one that is absent is not."""
    with_null = b'{"task":"a","trial":0,"status":"passed","reason":null}'
    without = b'{"task":"a","trial":0,"status":"passed"}'

    assert forms_of(with_null).own != forms_of(without).own


@pytest.mark.parametrize("line", [b"[1]", b"{", b'{"a":' + b"[" * 100_000, b'{"a":1e999}'])
def test_no_object_no_form(line: bytes) -> None:
    """What is no JSON object, or nested without end, is refused as a value error."""
    with pytest.raises(ValueError, match=r"\w"):
        forms_of(line)


def test_every_known_field_takes_the_fast_way() -> None:
    """A record as the journal writes it has the canonical form; a new field must keep that so."""
    record = TrialRecord(task="a", trial=0, status=Status.PASSED, cost_usd=0.5)
    line = codec.encode(record)

    assert forms_of(line).own == slow_form(json.loads(line))


@given(st.lists(st.binary(max_size=5), max_size=5), st.integers(0, 600))
def test_the_digest_is_that_of_the_joined_lines(lines: list[bytes], more: int) -> None:
    """Lines in any number hash as if they were joined by newlines first."""
    digest, every = JoinedDigest(), lines * (1 + more // 5)

    for line in every:
        digest.add(line)

    assert digest.text() == "sha256:" + hashlib.sha256(b"\n".join(every)).hexdigest()
