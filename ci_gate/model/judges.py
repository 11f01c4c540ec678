"""How far a judge agrees with people (``ci-gate/judge@1``), and what its pass rates stand for."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

__all__ = [
    "Calibration",
    "Figure",
    "JudgeResult",
    "JudgedRate",
    "JudgedTask",
    "LabelCounts",
    "LengthBias",
    "PositionBias",
    "SelfPreference",
]

_Count = Annotated[int, Meta(ge=0, le=10**9)]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate with its interval of 95 %; null where the labels do not say."""

    value: float | None
    interval: tuple[float, float] | None = None


class LabelCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The judge against the labels.

    ``both_pass`` were passed by people and judge, ``missed`` by people alone, ``leaked`` by the
    judge alone, ``both_fail`` by neither. ``unsound`` of these got no grade that could be read,
    which is none that passes.
    """

    both_pass: _Count
    missed: _Count
    leaked: _Count
    both_fail: _Count
    unsound: _Count = 0


class PositionBias(msgspec.Struct, frozen=True, kw_only=True):
    """What showing the parts in reverse order changes.

    ``changed`` of ``total`` grades are others; ``difference`` is the pass rate in reverse order
    minus that in order.
    """

    changed: _Count
    total: _Count
    rate: Figure
    difference: Figure


class LengthBias(msgspec.Struct, frozen=True, kw_only=True):
    """Whether long answers are judged more leniently than people judge them.

    Leniency is the judge's pass rate minus that of the labels; ``difference`` is that of the
    answers longer than the median minus that of the others.
    """

    median: int
    difference: Figure


class SelfPreference(msgspec.Struct, frozen=True, kw_only=True):
    """Whether answers of the judge's own family of models are judged more leniently than others.

    ``difference`` is the leniency on the ``own`` answers minus that on the ``others``; null where
    there are none of a kind.
    """

    family: str
    own: _Count
    others: _Count
    difference: Figure


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A judge held against people's labels: ``digest`` is that of the judge, in all that makes it.

    The gate reckons with ``counts`` alone; the other figures are for people.
    """

    schema: str = "ci-gate/judge@1"
    digest: str
    model: str
    prompt: int
    votes: int
    rubric: str
    choices: tuple[str, ...]
    passing: tuple[str, ...]
    shown: tuple[str, ...]
    labels_digest: str | None = None
    counts: LabelCounts
    agreement: Figure
    kappa: Figure
    sensitivity: Figure
    specificity: Figure
    position: PositionBias | None = None
    length: LengthBias | None = None
    self_preference: SelfPreference | None = None


class JudgedTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge said of the trials of a task: ``alone`` where nothing else decided any."""

    asked: int
    passed: int
    alone: bool = True


class JudgedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's pass rate, and the rate it stands for given the errors the judge is known to make.

    ``corrected`` and its 95 % ``interval`` are null where the calibration tells nothing.
    """

    asked: int
    passed: int
    rate: float
    corrected: float | None = None
    interval: tuple[float, float] | None = None


class JudgeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One judge of a run: its calibration, and its rates on both sides.

    ``baseline`` is null where the baseline's outcomes are not the judge's word alone. Without
    ``kappa`` the judge is not calibrated, and ``note`` says what follows.
    """

    digest: str
    model: str | None = None
    tasks: tuple[str, ...]
    kappa: Figure | None = None
    sensitivity: Figure | None = None
    specificity: Figure | None = None
    baseline: JudgedRate | None = None
    candidate: JudgedRate
    note: str | None = None
