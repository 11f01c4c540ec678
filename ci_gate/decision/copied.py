"""Copies among the trials of both sides, and what they take from a verdict.

Which trials are copies is decided by ``ci_gate.model.copies``, on what the agent under test says of
its own answers. So what it says never turns a red verdict green: where the test would be red if its
copies counted, or where most of what was run is no measurement, nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ci_gate.decision.evidence import Evidence, weigh
from ci_gate.decision.pairing import PairedTask
from ci_gate.decision.wording import counted, named
from ci_gate.model.copies import Copies, copies_by_task
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side

__all__ = ["Copied", "copied_between", "hold_against_copies", "on_copies", "why_nothing_follows"]

_FEWEST_EQUAL: Final = 4


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """The copies of a comparison.

    Attributes
    ----------
    baseline, candidate : mapping of str to Copies
        The tasks with any, in sorted order.
    judged : int
        Judged trials of the candidate, copies among them, in the tasks that decide something.
    replayed : int
        Those of them that were not measured anew.
    red_with : bool
        The test is not red, and would be if the candidate's copies counted.
    """

    baseline: Mapping[str, Copies] = msgspec.field(default_factory=dict)
    candidate: Mapping[str, Copies] = msgspec.field(default_factory=dict)
    judged: int = 0
    replayed: int = 0
    red_with: bool = False

    @property
    def no_measurement(self) -> bool:
        """More than half of what the candidate ran was not measured anew."""
        return 2 * self.replayed > self.judged

    @property
    def decide_nothing(self) -> bool:
        """Whether no verdict can rest on this run."""
        return self.no_measurement or self.red_with

    @property
    def apart(self) -> int:
        """Trials of the candidate that are set aside."""
        return _apart(self.candidate)


def _apart(tasks: Mapping[str, Copies]) -> int:
    return sum(len(found.apart) for found in tasks.values())


def copied_between(
    baseline: Side | None, candidate: Side, *, quarantined: Collection[str] = ()
) -> Copied:
    """Return the copies among the trials of both sides.

    Parameters
    ----------
    baseline, candidate : Side or None, Side
        With every trial.
    quarantined : collection of str
        Tasks that decide nothing.
    """
    after = copies_by_task(candidate, baseline)
    gated = {name: task for name, task in candidate.tasks.items() if name not in quarantined}
    return Copied(
        baseline={} if baseline is None else copies_by_task(baseline),
        candidate=after,
        judged=sum(task.judged for task in gated.values()),
        replayed=sum(len(found.replayed) for name, found in after.items() if name in gated),
    )


def hold_against_copies(
    found: Copied, evidence: Evidence, with_copies: Sequence[PairedTask], policy: Policy
) -> Copied:
    """Return the copies with whether the test hangs on setting the candidate's aside.

    Parameters
    ----------
    found : Copied
    evidence : Evidence
        Without copies.
    with_copies : sequence of PairedTask
        The same tasks, every trial of the candidate among them.
    policy : Policy
    """
    level = evidence.joint.level
    if not found.apart or evidence.joint.p_value <= level:
        return found
    red = weigh(with_copies, policy, level=level).joint.p_value <= level
    return msgspec.structs.replace(found, red_with=red)


def why_nothing_follows(found: Copied) -> Iterator[str]:
    """Yield why no verdict can rest on a run with so many copies."""
    mend = "Turn off the cache of answers, and run again."
    if found.no_measurement:
        yield (
            f"{found.replayed} of {counted(found.judged, 'judged trial')} are copies of earlier "
            f"answers: a replay is no measurement. {mend}"
        )
    elif found.red_with:
        yield (
            "The verdict would be red if the trials that the agent calls copies "
            f"({_in_tasks(found.candidate)}) counted, and what it says of itself cannot mend that. "
            f"{mend}"
        )


def on_copies(found: Copied, candidate: Side) -> Iterator[str]:
    """Yield which trials are no trials, or might be none.

    Parameters
    ----------
    found : Copied
    candidate : Side
        With every trial.
    """
    for side, tasks in (("baseline", found.baseline), ("candidate", found.candidate)):
        apart = {name: copies for name, copies in tasks.items() if copies.apart}
        if apart:
            yield (
                f"Copies are no trials: {counted(_apart(apart), 'trial')} of the {side} "
                f"({_in_tasks(apart)}) came from a cache or have the models' answers of another "
                "trial. One stands for all that are the same."
            )
        disputed = [name for name, copies in tasks.items() if copies.disputed]
        if disputed:
            yield (
                f"Trials of the {side} in {counted(len(disputed), 'task')} ({named(disputed)}) are "
                "said to be copies and did not end as their originals: something else varied, so "
                "they count as trials."
            )
    yield from _on_equal_bytes(candidate)


def _in_tasks(tasks: Mapping[str, Copies]) -> str:
    apart = [name for name, copies in tasks.items() if copies.apart]
    return f"in {counted(len(apart), 'task')}: {named(apart)}"


def _on_equal_bytes(candidate: Side) -> Iterator[str]:
    """Warn where most of the suite says the same again and again, and nothing says why."""
    # Two or three trials that pass alike are what a good agent's look like.
    repeated = [name for name, task in candidate.tasks.items() if task.judged >= _FEWEST_EQUAL]
    equal = [
        name
        for name in sorted(repeated)
        if candidate.tasks[name].identical and not candidate.tasks[name].answers
    ]
    if equal and 2 * len(equal) > len(repeated):
        yield (
            f"All trials are the same bytes in {len(equal)} of {counted(len(repeated), 'task')} "
            f"({named(equal)}): answer, steps and tokens. They count; but if a cache answered, "
            "each task is one trial, and if the agent is a function of its seed, "
            "deterministic = true says so."
        )
