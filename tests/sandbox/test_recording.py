"""What of a call is written into its trial's trace."""

from typing import Any, get_type_hints

import pytest

from ci_gate.codec import digest_of
from ci_gate.errors import InternalError
from ci_gate.model.trace import Determinism
from ci_gate.model.trace_chain import digest_of_line
from ci_gate.redaction import Redactor
from ci_gate.sandbox.ignoring import Ignored
from ci_gate.sandbox.recording import Call, Recorder

_RECORDED = {"arguments": "input"}


class _Kept:
    """A trace in memory that can run out of room."""

    place = "traces/t/0.jsonl"

    def __init__(self, room=100):
        self.records = []
        self.room = room
        self.is_discarded = False

    @property
    def head(self):
        return self.records[-1].digest if self.records else "header"

    @property
    def calls(self):
        return len(self.records)

    def append(self, record):
        if len(self.records) == self.room:
            raise InternalError("cannot be written: No space left on device")
        self.records.append(record)

    def finish(self):
        return self.head

    def discard(self):
        self.is_discarded = True


def _recorder(kept, ignored=(), secrets=(), **more):
    return Recorder(lambda: kept, redactor=Redactor(secrets), ignored=Ignored(ignored), **more)


def test_calls_are_numbered_and_chained():
    """Each to the one before, the first to the header."""
    kept = _Kept()
    recorder = _recorder(kept)
    for name in "abc":
        recorder.record(Call(kind="tool", name=name, arguments={}, output=None))

    ref = recorder.finish()

    assert [(r.order, r.name) for r in kept.records] == [(0, "a"), (1, "b"), (2, "c")]
    assert [r.prev for r in kept.records] == ["header", *(r.digest for r in kept.records[:-1])]
    assert ref == ("traces/t/0.jsonl", kept.records[-1].digest)


def test_a_trial_without_calls_has_no_trace():
    """No file is made for it."""
    begun = []
    recorder = Recorder(lambda: begun.append(1), redactor=Redactor(), ignored=Ignored())

    assert recorder.finish() is None
    recorder.discard()
    assert begun == []


def test_secrets_are_taken_out_before_anything_is_digested():
    """A replay with other credentials has the same digests."""
    digests = []
    for secret in ("first-secret-1", "other-secret-2"):
        kept = _Kept()
        recorder = _recorder(kept, secrets=[secret])
        given = {"q": f"use {secret}", "api_key": secret}
        recorder.record(Call(kind="tool", name="t", arguments=given, output=secret))
        assert secret not in repr(kept.records)
        digests.append((kept.records[0].input_digest, kept.records[0].digest))

    assert digests[0] == digests[1]


def test_no_text_of_a_call_keeps_a_secret():
    """Whatever field it has: an agent chooses lane, kind and name as well."""
    texts = [name for name, kind in get_type_hints(Call).items() if kind in (str, Any)]
    for field in texts:
        kept = _Kept()
        given = {"kind": "tool", "name": "t", "arguments": None, "output": None, "fault": "x"}
        said = {**given, field: "at planted-secret-1 now"}
        _recorder(kept, secrets=["planted-secret-1"]).record(Call(**said))
        assert getattr(kept.records[0], _RECORDED.get(field, field)) == "at [REDACTED:secret] now"
    assert {"kind", "name", "lane", "arguments", "output", "unfaulted"} == set(texts)


def test_why_a_trial_has_no_trace_is_said_without_secrets():
    """The words come from the call that could not be recorded."""
    troubles = []
    recorder = _recorder(_Kept(), secrets=["planted-secret-1"], complain=troubles.append)
    recorder._give_up("a value of type planted-secret-1")

    assert troubles == ["a value of type [REDACTED:secret]"]


def test_what_does_not_count_is_left_out_of_the_digest_but_shown():
    """Dates and request ids."""
    kept = _Kept()
    recorder = _recorder(kept, ignored=["$.at"])
    for at in (1, 2):
        recorder.record(Call(kind="tool", name="t", arguments={"at": at, "id": 7}, output=None))

    assert kept.records[0].input_digest == kept.records[1].input_digest
    assert [r.input["at"] for r in kept.records] == [1, 2]


def test_what_a_fault_hid_is_kept_beside_it():
    """For a replay that injects faults of its own."""
    kept = _Kept()
    _recorder(kept).record(
        Call(
            kind="tool",
            name="t",
            arguments={},
            output="TIMEOUT",
            fault="timeout",
            is_error=True,
            unfaulted={"rows": 1},
        )
    )

    assert (kept.records[0].output, kept.records[0].unfaulted) == ("TIMEOUT", {"rows": 1})


@pytest.mark.parametrize(
    ("kind", "determinism"),
    [
        ("tool", Determinism.IO_BOUND),
        ("llm", Determinism.IO_BOUND),
        ("kv", Determinism.DETERMINISTIC),
        ("rng", Determinism.STOCHASTIC),
        ("own", Determinism.IO_BOUND),
    ],
)
def test_the_class_of_a_call_follows_from_its_kind(kind, determinism):
    """What nobody knows comes from outside."""
    kept = _Kept()
    _recorder(kept).record(Call(kind=kind, name="x", arguments=None, output=None))

    assert kept.records[0].determinism is determinism


def test_a_full_disk_disturbs_neither_agent_nor_judgement():
    """The trial has no trace, nothing is left of it, and it is said once why."""
    kept, complaints = _Kept(room=1), []
    recorder = _recorder(kept, complain=complaints.append)
    for _ in range(3):
        recorder.record(Call(kind="tool", name="t", arguments={}, output=None))

    assert recorder.finish() is None
    assert kept.is_discarded
    assert complaints == ["cannot be written: No space left on device"]


def test_what_cannot_be_recorded_costs_the_trace_and_not_the_trial():
    """An agent that could break its trial's record would turn its failures into errors."""
    kept, complaints = _Kept(), []
    recorder = _recorder(kept, complain=complaints.append)
    recorder.record(Call(kind="tool", name="t", arguments={"\ud800": 1}, output=None))
    recorder.record(Call(kind="tool", name="t", arguments={}, output=None))

    assert recorder.finish() is None
    assert len(complaints) == 1


def test_known_digest_of_a_record():
    """Over all fields but digest and duration."""
    kept = _Kept()
    _recorder(kept).record(
        Call(kind="tool", name="t", arguments={"a": 1}, output=2, duration_ms=3.0)
    )

    expected = {
        "order": 0,
        "lane": "main",
        "kind": "tool",
        "name": "t",
        "input_digest": digest_of({"a": 1}),
        "input": {"a": 1},
        "output": 2,
        "is_error": False,
        "fault": None,
        "unfaulted": None,
        "unfaulted_is_error": False,
        "determinism": "io-bound",
        "turn": None,
        "tokens": None,
        "cost_usd": None,
        "prev": "header",
    }
    assert kept.records[0].digest == digest_of_line(expected)
