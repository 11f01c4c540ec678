"""Tools that are declared deterministic are held to it."""

from ci_gate.codec import digest_of
from ci_gate.model.trace import Determinism, TraceRecord
from ci_gate.model.trace_findings import Unsteady
from ci_gate.tracing.steadiness import Steadiness


def _record(name, given, output, determinism=Determinism.DETERMINISTIC, kind="tool", **fields):
    return TraceRecord(
        order=0,
        lane="main",
        kind=kind,
        name=name,
        input=given,
        input_digest=digest_of(given),
        output=output,
        determinism=determinism,
        **fields,
    )


def _unsteady(*records):
    steadiness = Steadiness()
    for record in records:
        steadiness.take(record)
    return steadiness.unsteady


def test_several_answers_to_one_input_are_told():
    """Once for each input; a failure is an answer too."""
    assert _unsteady(
        _record("add", {"a": 1}, 2),
        _record("add", {"a": 1}, 3),
        _record("add", {"a": 1}, 4),
        _record("add", {"a": 2}, 3),
        _record("add", {"a": 2}, 3, is_error=True),
        _record("sub", {"a": 2}, 3),
    ) == (Unsteady(tool="add", inputs=2),)


def test_others_may_answer_as_they_like():
    """What reads the world, a store that was written, and what an injected fault said."""
    assert not _unsteady(
        _record("look", {}, 1, Determinism.IO_BOUND),
        _record("look", {}, 2, Determinism.IO_BOUND),
        _record("get", {}, 1, kind="kv"),
        _record("get", {}, 2, kind="kv"),
        _record("add", {}, 1),
        _record("add", {}, "HTTP 429", fault="rate_limit", is_error=True, unfaulted=1),
    )
