"""What judges said of trials, counted from run lines."""

from __future__ import annotations

from ci_gate.model.judges import JudgedTask
from ci_gate.model.trial import Grade, Status, TrialRecord
from ci_gate.store.judged import judged_by


def line(status: Status, *grades: Grade) -> TrialRecord:
    return TrialRecord(task="refund", trial=0, status=status, grades=grades or None)


def said(passed: bool, judge: str = "sha256:j") -> Grade:
    return Grade(grader="judge", passed=passed, judge=judge)


def test_a_judge_alone_decides_as_it_says() -> None:
    """Errored trials are left out; all others went to the judge and ended as it said."""
    lines = [
        line(Status.PASSED, said(True)),
        line(Status.FAILED, said(False)),
        line(Status.ERRORED),
    ]
    assert judged_by(lines) == {"sha256:j": JudgedTask(asked=2, passed=1)}


def test_a_judge_beside_others_is_not_alone() -> None:
    """A trial that was not put to the judge, or that another grader failed, says so."""
    vetoed = line(Status.FAILED, Grade(grader="rules", passed=False))
    other = line(Status.FAILED, said(True), Grade(grader="state", passed=False))
    for second in (vetoed, other):
        found = judged_by([line(Status.PASSED, said(True)), second])
        assert not found["sha256:j"].alone
    assert judged_by([vetoed]) == {}


def test_several_judges_are_counted_apart() -> None:
    """Each judge has its counts, by its digest."""
    found = judged_by([line(Status.FAILED, said(True), said(False, "sha256:k"))])
    assert found["sha256:j"] == JudgedTask(asked=1, passed=1, alone=False)
    assert found["sha256:k"] == JudgedTask(asked=1, passed=0, alone=True)
