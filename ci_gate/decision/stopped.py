"""A curtailed run held against its own stop: the decision is taken again from the trials.

A stop is believed where it was decided against this baseline and this policy, and the trials say
the same again. It must not know what a verdict makes of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Final

from ci_gate.decision.accounting import CURTAILED, first_rounds
from ci_gate.decision.curtailment import (
    Foresight,
    RoundDecision,
    decide_round,
    foresee_round,
    reason_of,
    settled_at,
    why_not_curtailed,
)
from ci_gate.decision.lookahead import rounds_done, rounds_planned
from ci_gate.decision.wording import counted
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side, Stop, StopReason

__all__ = ["StoppedRun", "examine_stop"]

# The same trials give the same number; a file of another tool may have written fewer digits.
_SAME_CHANCE: Final = 1e-6
_NAMES: Final = {
    StopReason.CURTAILED_PASS: "passed",
    StopReason.CURTAILED_REGRESSED: "regressed",
}


@dataclass(frozen=True, kw_only=True)
class StoppedRun:
    """A run that its outcomes stopped, and what became of its decision.

    Attributes
    ----------
    stop : Stop
        As the file says.
    rounds : int
        Of the whole plan.
    settled : float
        How small the chance of the other verdict had to be.
    against_these : bool
        Whether the stop was decided against this baseline and this policy.
    refusal : str or None
        Why the stop is not believed although it was; None where it is.
    seen : Foresight or None
        What the trials foretell; None where the stop is not believed.
    late_by : int
        Rounds by which the run went on past the first one at which it was to stop so.
    """

    stop: Stop
    rounds: int
    settled: float
    against_these: bool
    refusal: str | None = None
    seen: Foresight | None = None
    late_by: int = 0

    @property
    def verdict(self) -> str:
        """What it was stopped as."""
        return _NAMES[self.stop.reason]

    @property
    def red(self) -> bool:
        """Whether the stop is believed, and the whole plan is as good as certain to be red."""
        return self.seen is not None and self.stop.reason is StopReason.CURTAILED_REGRESSED


def examine_stop(
    baseline: Side | None, candidate: Side, policy: Policy, *, policy_digest: str | None
) -> StoppedRun | None:
    """Take the decision that stopped a run again.

    Parameters
    ----------
    baseline, candidate : Side
    policy : Policy
    policy_digest : str or None
        Of the policy.

    Returns
    -------
    StoppedRun or None
        None where the run was not stopped by its outcomes.

    Notes
    -----
    A stop is refused where the policy lets no such run be curtailed; where the trials are not those
    of so many whole rounds; where they do not say this stop, or give it another chance; and where
    an earlier round said the opposite one, past which the run went on. Past an earlier round that
    said the same the run only spent more than it had to.
    """
    stop = candidate.stop
    if stop is None or stop.reason not in CURTAILED:
        return None
    unread = StoppedRun(
        stop=stop,
        rounds=rounds_planned(candidate),
        settled=settled_at(policy),
        against_these=_against_these(baseline, candidate, policy_digest),
    )
    if baseline is None or not unread.against_these:
        return unread
    return _Examination(baseline, candidate, policy, stop).result(unread)


def _against_these(baseline: Side | None, candidate: Side, policy_digest: str | None) -> bool:
    """Return whether the decision was made against this baseline and this policy."""
    digests = candidate.baseline_digest, candidate.policy_digest
    these = baseline.digest if baseline else None, policy_digest
    return None not in digests and digests == these


@dataclass(frozen=True)
class _Examination:
    baseline: Side
    candidate: Side
    policy: Policy
    stop: Stop

    def result(self, unread: StoppedRun) -> StoppedRun:
        refusal = self._forbidden() or self._not_whole()
        seen = None if refusal else foresee_round(self.baseline, self.candidate, self.policy)
        refusal = refusal or self._not_repeated(seen)
        earlier = () if refusal else self._earlier()
        refusal = refusal or self._went_on(earlier)
        late_by = sum(decision.reason is self.stop.reason for decision in earlier)
        return replace(unread, refusal=refusal, seen=None if refusal else seen, late_by=late_by)

    def _forbidden(self) -> str | None:
        plan = self.candidate.plan
        if plan is None or not plan.curtail:
            return "its plan lets no run be curtailed"
        why = why_not_curtailed(self.baseline, self.candidate, self.policy)
        return None if why is None else f"it was not to be curtailed ({why.rstrip('.')})"

    def _not_whole(self) -> str | None:
        done = rounds_done(self.candidate)
        if done == self.stop.round:
            return None
        if done is None:
            return f"trials of its {counted(self.stop.round, 'round')} are absent"
        return f"it has the trials of {counted(done, 'round')}"

    def _not_repeated(self, seen: Foresight | None) -> str | None:
        if seen is None:
            return "its errors allow no decision yet"
        again = reason_of(seen, self.candidate, self.policy)
        if again is self.stop.reason:
            return self._other_chance(seen)
        if again is None:
            return "its trials say to go on"
        return f"its trials say {_NAMES[again]}"

    def _other_chance(self, seen: Foresight) -> str | None:
        said, found = self.stop.predictive, seen.prediction.red
        if said is None or isclose(said, found, rel_tol=_SAME_CHANCE, abs_tol=_SAME_CHANCE):
            return None
        return "its trials give another chance to be red than it says"

    def _earlier(self) -> tuple[RoundDecision, ...]:
        return tuple(
            decide_round(self.baseline, first_rounds(self.candidate, rounds), self.policy)
            for rounds in range(1, self.stop.round)
        )

    def _went_on(self, earlier: Sequence[RoundDecision]) -> str | None:
        if self.candidate.retried:
            # What an earlier round knew of them is not in the file.
            return None
        for rounds, decision in enumerate(earlier, start=1):
            if decision.reason not in (None, self.stop.reason):
                return f"it was to stop as {_NAMES[decision.reason]} after round {rounds}"
        return None
