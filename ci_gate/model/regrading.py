"""What grading a run again found: which outcomes flipped, and which trials nobody could grade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from ci_gate.model.trial import Grade, Status, TrialRecord

__all__ = ["Flip", "Left", "Regraded", "flip_of"]


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """A trial whose outcome is another.

    Parameters
    ----------
    task : str
    trial, repeat : int
    seed : str or None
    before, after : Status
    grader : str or None
        Whose word made it fail, now or before; None where no grader was asked.
    reason : str or None
        What it said.
    """

    task: str
    trial: int
    repeat: int
    seed: str | None
    before: Status
    after: Status
    grader: str | None
    reason: str | None


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that keeps the outcome it had, because it could not be graded again."""

    task: str
    trial: int
    repeat: int
    why: str


class Regraded(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found.

    Parameters
    ----------
    suite : str
    run, output : str
        Paths of the run file that was read and of the one that was written.
    graded : int
        Trials that were graded again.
    errored : int
        Trials that had errored and stay so.
    others : int
        Trials of tasks that were not asked for.
    flips : tuple of Flip
    left : tuple of Left
        Both sorted by task, trial and repeat.
    """

    suite: str
    run: str
    output: str
    graded: int
    errored: int
    others: int
    flips: tuple[Flip, ...]
    left: tuple[Left, ...]

    def count(self, before: Status, after: Status) -> int:
        """Return how many outcomes flipped that way."""
        return sum((one.before, one.after) == (before, after) for one in self.flips)

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why trials were left, and how many for each reason, the most frequent first."""
        return dict(Counter(one.why for one in self.left).most_common())


def flip_of(before: TrialRecord, after: TrialRecord) -> Flip | None:
    """Return how the outcome of a trial flipped, None where it is the same."""
    if before.status is after.status:
        return None
    failing = after if after.status is not Status.PASSED else before
    worst = _worst(failing.grades or ())
    return Flip(
        task=after.task,
        trial=after.trial,
        repeat=after.repeat,
        seed=after.seed,
        before=before.status,
        after=after.status,
        grader=None if worst is None else worst.grader,
        reason=failing.reason if worst is None else worst.reason,
    )


def _worst(grades: tuple[Grade, ...]) -> Grade | None:
    """Return the grade that a reason is taken from: a sound grader's word before a broken one's."""
    bad = [grade for grade in grades if not grade.passed]
    return min(bad, key=lambda grade: grade.cause is not None) if bad else None
