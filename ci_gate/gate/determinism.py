"""Hold a suite to its word that its agent is a pure function of the seed.

A deterministic suite is judged by single flips, which would be noise if the word were false; so
every trial is run twice, and the two must say the same in everything but time.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ci_gate.errors import Problem, SuiteError, printable
from ci_gate.model.policy import Policy
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.store.runs import RunFile

__all__ = ["RUNS_OF_PROOF", "repeats_needed", "require_determinism"]

RUNS_OF_PROOF: Final = 2
"""Runs over the same seeds that a deterministic suite needs."""

_MOST_SHOWN: Final = 5
_FREE: Final = frozenset({"repeat", "attempt", "duration_s", "answers", "trace", "trace_digest"})


def repeats_needed(policy: Policy, wanted: int) -> int:
    """Return how many runs over the seeds are made: two at least where that is the proof."""
    return max(wanted, RUNS_OF_PROOF) if policy.deterministic else wanted


def require_determinism(run: RunFile, policy: Policy) -> None:
    """Refuse the outcomes of a suite whose repeats differ although it calls itself deterministic.

    Errored trials say nothing of the agent and are left out.

    Raises
    ------
    SuiteError
        Trials differ between two runs over the same seeds; the first ones are named.
    """
    if not policy.deterministic:
        return
    first = {(r.task, r.trial): r for r in run.records if r.repeat == 0}
    different = [
        problem
        for record in run.records
        if record.repeat and (one := first.get((record.task, record.trial))) is not None
        for problem in _difference(one, record)
    ]
    if different:
        raise SuiteError.of(different[:_MOST_SHOWN])


def _difference(one: TrialRecord, other: TrialRecord) -> list[Problem]:
    if Status.ERRORED in (one.status, other.status):
        return []
    facts, others = _facts(one), _facts(other)
    names = [name for name in facts if facts[name] != others[name]]
    if not names:
        return []
    shown = f"{names[0]} is {printable(facts[names[0]])}, then {printable(others[names[0]])}"
    return [
        Problem(
            what=f"the suite says deterministic = true, but two runs of one seed differ: {shown}",
            where=f"task {printable(one.task)}, trial {one.trial}",
            hint="Draw from env.rng and env.clock alone, or take the key out.",
        )
    ]


def _facts(record: TrialRecord) -> dict[str, Any]:
    fields = msgspec.to_builtins(record)
    return {name: value for name, value in fields.items() if name not in _FREE}
