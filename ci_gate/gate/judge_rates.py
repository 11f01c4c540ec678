"""What judges said of a run, with what it stands for; and that none of them gates uncalibrated.

The run file says which judge gave each grade, so that a file that is compared later, or elsewhere,
is held to the same calibrations as one that is measured here.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ci_gate.errors import JudgeError, Problem, printable
from ci_gate.gate.judges import find_calibration, uncalibrated
from ci_gate.gate.project import Project
from ci_gate.grading.judge.calibrating import judged_rate
from ci_gate.model.judges import Calibration, JudgedRate, JudgedTask, JudgeResult
from ci_gate.model.policy import Policy
from ci_gate.model.run import PASSED, Side
from ci_gate.model.verdict import Verdict

__all__ = ["refuse_uncalibrated", "refuse_unknown_judges", "with_judges"]

_HINT = "`ci-gate judge calibrate LABELS` makes one; see docs/judge.md."


def refuse_uncalibrated(project: Project, policy: Policy, candidate: Side) -> None:
    """Refuse to let a judge decide that may not.

    Parameters
    ----------
    project : Project
    policy : Policy
        One that does not block asks for nothing.
    candidate : Side

    Raises
    ------
    JudgeError
        A judge of the run has no calibration, or too weak a one.
    """
    if policy.mode == "advisory":
        return
    found = [(digest, uncalibrated(project, digest)) for digest in _digests(candidate)]
    problems = [
        Problem(what=f"a judge of this run cannot gate: {why}", where=_task(candidate, digest))
        for digest, why in found
        if why is not None
    ]
    if problems:
        problems[-1] = Problem(what=problems[-1].what, where=problems[-1].where, hint=_HINT)
        raise JudgeError.of(problems)


def refuse_unknown_judges(candidate: Side) -> None:
    """Refuse a run of judges where there is no configuration that could hold their calibrations.

    Raises
    ------
    JudgeError
        Judges graded the run.
    """
    for digest in _digests(candidate):
        raise JudgeError(
            "a judge graded this run, and there is no configuration here whose baselines hold its"
            " calibration",
            where=_task(candidate, digest),
            hint="Compare it where its ci-gate.toml is.",
        )


def _digests(side: Side) -> list[str]:
    return sorted({digest for task in side.tasks.values() for digest in task.by_judge})


def _task(side: Side, digest: str) -> str:
    name = next(name for name, task in side.tasks.items() if digest in task.by_judge)
    return f"task {printable(name)!r}"


def with_judges(
    verdict: Verdict, project: Project, baseline: Side | None, candidate: Side
) -> Verdict:
    """Return the verdict with the rates of the run's judges, as it is where it has none.

    Parameters
    ----------
    verdict : Verdict
    project : Project
    baseline : Side or None
    candidate : Side
    """
    digests = _digests(candidate)
    if not digests:
        return verdict
    results = tuple(_result(project, digest, baseline, candidate) for digest in digests)
    return msgspec.structs.replace(verdict, judges=results)


def _result(project: Project, digest: str, baseline: Side | None, candidate: Side) -> JudgeResult:
    calibration = find_calibration(project, digest)
    said = {
        name: task.by_judge[digest]
        for name, task in candidate.tasks.items()
        if digest in task.by_judge
    }
    why = uncalibrated(project, digest)
    return JudgeResult(
        digest=digest,
        model=None if calibration is None else calibration.model,
        tasks=tuple(said),
        kappa=None if calibration is None else calibration.kappa,
        sensitivity=None if calibration is None else calibration.sensitivity,
        specificity=None if calibration is None else calibration.specificity,
        baseline=_rate(_of_baseline(digest, said, baseline, candidate), calibration),
        candidate=_candidate_rate(list(said.values()), calibration),
        note=None if why is None else f"It could not gate: {why}.",
    )


def _candidate_rate(said: Sequence[JudgedTask], calibration: Calibration | None) -> JudgedRate:
    rate = _rate(said, calibration)
    assert rate is not None
    return rate


def _rate(said: Sequence[JudgedTask] | None, calibration: Calibration | None) -> JudgedRate | None:
    asked = sum(task.asked for task in said or ())
    if not asked:
        return None
    return judged_rate(asked, sum(task.passed for task in said or ()), calibration)


def _of_baseline(
    digest: str, said: dict[str, JudgedTask], baseline: Side | None, candidate: Side
) -> list[JudgedTask] | None:
    """Return what the judge said of the baseline's trials, None where that is not known.

    A baseline keeps outcomes and no grades: they are the judge's word where it decides its tasks
    alone, and they are of the same tasks and the same judge.
    """
    if baseline is None or baseline.judge_digest != candidate.judge_digest:
        return None
    found = []
    for name, task in said.items():
        before, after = baseline.tasks.get(name), candidate.tasks[name]
        if before is None or before.digest != after.digest:
            return None
        if digest in before.by_judge:
            found.append(before.by_judge[digest])
        elif task.alone and not before.by_judge:
            found.append(JudgedTask(asked=before.judged, passed=before.count(PASSED)))
        else:
            return None
    return found
