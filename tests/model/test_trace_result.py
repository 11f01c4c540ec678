"""How a trial ended, as its trace holds it, and back."""

from __future__ import annotations

import pytest

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_result import RESULT, result_of, trajectory_of
from ci_gate.model.trial import Status, Step, Trajectory


def _records(result: object, *calls: tuple[str, str]) -> list[TraceRecord]:
    made = [TraceRecord(order=i, kind=k, name=n, input_digest="") for i, (k, n) in enumerate(calls)]
    end = TraceRecord(order=99, kind="state", name=RESULT, input_digest="", output=result)
    return [*made, end]


def test_what_graders_are_told_comes_back():
    """Answer, steps, amounts and how it ended; states and draws are no steps."""
    ended = Trajectory(
        answer="done",
        steps=(Step(kind="tool", name="refund"),),
        turns=2,
        tokens=30,
        cost_usd=0.5,
        measures={"plans": 1.0},
        status=Status.PASSED,
        output_tail="said\n",
    )
    calls = ("state", "before"), ("tool", "refund"), ("rng", "draws")

    kept = _records(result_of(ended, with_printed=True), *calls)

    assert trajectory_of(kept, lambda value: value) == ended
    assert "printed" not in result_of(ended)


@pytest.mark.parametrize("status", [None, *Status])
def test_every_status_comes_back(status):
    """That the graders have the word is another thing than a pass."""
    back = trajectory_of(_records(result_of(Trajectory(status=status))), lambda value: value)

    assert isinstance(back, Trajectory)
    assert back.status is status


@pytest.mark.parametrize("answer", ["x" * (2**20 + 1), "\ud800"])
def test_an_answer_that_cannot_be_kept_is_unknown_and_not_empty(answer):
    """The trace has the rest; nobody judges by an answer that is not there."""
    result = result_of(Trajectory(answer=answer, turns=1))

    assert (result["answer"], result["withheld"], result["turns"]) == (None, ["answer"], 1)
    back = trajectory_of(_records(result), lambda value: value)
    assert back == "its answer was too large to be recorded, or is no text"


@pytest.mark.parametrize("result", [[], {"status": "great"}, {"status": "failed", "turns": "2"}])
def test_a_result_that_is_none_is_unknown(result):
    """A trace may be what anybody wrote."""
    why = trajectory_of(_records(result), lambda value: value)

    assert why == "how it ended was not recorded as it should be"


def test_a_trace_without_a_result_says_nothing_of_the_answer():
    """Those of earlier versions have none."""
    assert trajectory_of(_records(None)[:-1], lambda value: value) == "its answer was not recorded"
