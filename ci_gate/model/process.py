"""What a verdict says of the way trials went: nothing in it decides. Data alone."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["ProcessResult", "ProcessSide"]

_Interval = tuple[float, float]


class ProcessSide(msgspec.Struct, frozen=True, kw_only=True):
    """A process measure of one side.

    Parameters
    ----------
    mean : float
        Over the trials that know the measure; of the baseline, for the candidate's mix of tasks.
    interval : (float, float) or None
        Its 95 % interval given these tasks; None where no task has a second trial.
    tasks, trials : int
        That know it.
    """

    mean: float
    interval: _Interval | None
    tasks: int
    trials: int


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """A process measure on both sides.

    Parameters
    ----------
    measure : str
        Its name in files and guards.
    better : {"more", "less"}
    unit : {"share", "count"}
    baseline, candidate : ProcessSide or None
        None where no trial knows it. Of the same tasks where both are there.
    difference : float or None
        Candidate less baseline, with its 95 % ``interval``.
    """

    measure: str
    better: Literal["more", "less"]
    unit: Literal["share", "count"]
    baseline: ProcessSide | None
    candidate: ProcessSide | None
    difference: float | None = None
    interval: _Interval | None = None
