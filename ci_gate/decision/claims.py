"""What is said of each task, with the trials to repeat.

Puts the test's answers, the flips of a deterministic agent and the tasks that were not compared
into one list by id. It draws no conclusion for the suite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ci_gate.decision.accounting import counts_of, error_reasons
from ci_gate.decision.evidence import Evidence, TaskEvidence
from ci_gate.decision.flips import Flips
from ci_gate.decision.foretold import ForetoldTask
from ci_gate.decision.matching import Matching
from ci_gate.decision.pairing import seeds_shared
from ci_gate.decision.replays import passed_at, replays_of
from ci_gate.model.run import ErrorPolicy, Side
from ci_gate.model.verdict import Claim, Counts, Replay, TaskResult

__all__ = ["Claims"]

_MAX_ERRORS = 3
_CALM = (Claim.UNCHANGED, Claim.IMPROVED)


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that claims are made of.

    Attributes
    ----------
    baseline, candidate : Side or None, Side
        With every run, for the trials to repeat.
    counted : tuple of (Side or None, Side)
        Baseline and candidate with the runs that count.
    matching : Matching
    evidence : Evidence or None
        None where nothing was tested.
    foretold : mapping of str to ForetoldTask
        In its place, of a curtailed run.
    flips : Flips
    alpha : float
        Of a suspicion: a raw p-value at most this.
    errors : {"exclude", "fail"}
    replay_command : str
        With ``{task}`` and ``{trial}``.
    """

    baseline: Side | None
    candidate: Side
    counted: tuple[Side | None, Side]
    matching: Matching
    evidence: Evidence | None
    foretold: Mapping[str, ForetoldTask]
    flips: Flips
    alpha: float
    errors: ErrorPolicy
    replay_command: str

    def results(self) -> tuple[TaskResult, ...]:
        """Return what is said of every task of either side, by id."""
        apart = self.matching.claims
        tested = self.evidence.by_task if self.evidence else {}
        return tuple(
            self._result(task_id, tested.get(task_id), apart.get(task_id))
            for task_id in sorted((*apart, *self.matching.compared))
        )

    def _result(
        self, task_id: str, evidence: TaskEvidence | None, apart: Claim | None
    ) -> TaskResult:
        claim = apart or self._claim(task_id, evidence)
        baseline, candidate = self.counted
        foretold = self.foretold.get(task_id)
        found = evidence or foretold
        worse = claim not in _CALM or (found is not None and found.contribution < 0)
        return TaskResult(
            task=task_id,
            claim=claim,
            predictive=foretold.predictive if foretold else None,
            baseline=self._counts(baseline, task_id),
            candidate=self._counts(candidate, task_id),
            p_value=evidence.p_value if evidence else None,
            p_adjusted=evidence.p_adjusted if evidence else None,
            replay=self._replays(task_id) if worse else (),
            contribution=found.contribution if found else None,
            errors=self._errors(task_id),
        )

    def _claim(self, task_id: str, evidence: TaskEvidence | None) -> Claim:
        if task_id in self.flips.tasks:
            return Claim.FLIP
        if task_id in self.foretold:
            return Claim.REGRESSED if self.foretold[task_id].regressed else Claim.UNCHANGED
        if evidence is None:
            return Claim.UNCHANGED
        if evidence.regressed:
            return Claim.REGRESSED
        if evidence.p_value <= self.alpha:
            return Claim.SUSPECT
        return Claim.IMPROVED if evidence.improved else Claim.UNCHANGED

    def _counts(self, side: Side | None, task_id: str) -> Counts | None:
        if side is None or task_id not in side.tasks:
            return None
        return counts_of(side.tasks[task_id], self.errors)

    def _errors(self, task_id: str) -> tuple[str, ...]:
        task = self.candidate.tasks.get(task_id)
        return () if task is None else error_reasons(task)[:_MAX_ERRORS]

    def _replays(self, task_id: str) -> tuple[Replay, ...]:
        if task_id not in self.candidate.tasks:
            return ()
        return replays_of(
            task_id,
            self.candidate.tasks[task_id],
            errors=self.errors,
            passed_before=self._passed_before(task_id),
            template=self.replay_command,
        )

    def _passed_before(self, task_id: str) -> Callable[[int], bool]:
        if self.baseline is None or task_id not in self.baseline.tasks:
            return lambda _: False
        before = self.baseline.tasks[task_id]
        shared = seeds_shared(self.baseline, self.candidate, task_id)
        return lambda trial: shared(trial) and passed_at(before, trial)
