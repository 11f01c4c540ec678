"""Measures of a task in each repeat: what its trials cost, took, met and did in circles.

This module decides which trials a measure is taken over. It must not know files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from ci_gate.model.run import Measure
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.process.measures import MEASURES

__all__ = [
    "STANDARD",
    "FaultCounts",
    "counted",
    "measured",
    "process_measured",
    "rounded",
    "tool_calls",
]

STANDARD: Final = ("turns", "tokens", "cost_usd", "duration_s")
Repeats = Sequence[Sequence[TrialRecord]]
_Counts = tuple[int | None, ...] | None


class FaultCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of judged trials for each repeat; None where no trial says.

    ``faulted`` met at least one fault, ``recovered`` are those of them that passed and recovered
    from every fault, ``looped`` made a call three times or more.
    """

    faulted: _Counts = None
    recovered: _Counts = None
    looped: _Counts = None


def measured(repeats: Repeats) -> dict[str, tuple[Measure | None, ...]]:
    """Return each measure that any trial knows, one entry a repeat."""
    lines = [line for repeat in repeats for line in repeat]
    found: dict[str, tuple[Measure | None, ...]] = {}
    for name in STANDARD:
        if any(getattr(line, name) is not None for line in lines):
            found[name] = tuple(_measure(repeat, _reader(name)) for repeat in repeats)
    own = {name for line in lines for name in line.measures or ()}
    # An agent names its own measures; it cannot overwrite what the harness measured.
    for name in sorted(own.difference(STANDARD)):
        found[name] = tuple(_measure(repeat, _own_reader(name)) for repeat in repeats)
    return found


def process_measured(repeats: Repeats) -> dict[str, tuple[Measure | None, ...]]:
    """Return each process measure that any trial knows, one entry a repeat, in a fixed order."""
    known = {name for repeat in repeats for line in repeat for name in line.process or ()}
    return {
        name: tuple(_measure(repeat, _process_reader(name)) for repeat in repeats)
        for name in MEASURES
        if name in known
    }


def tool_calls(repeats: Repeats) -> tuple[Measure | None, ...] | None:
    """Return how many tools the trials of each repeat called; None where no trial says."""
    found = tuple(_measure(repeat, _reader("tool_calls")) for repeat in repeats)
    return found if any(found) else None


def _reader(name: str) -> Callable[[TrialRecord], float | None]:
    def value(line: TrialRecord) -> float | None:
        found: float | None = getattr(line, name)
        return found

    return value


def _own_reader(name: str) -> Callable[[TrialRecord], float | None]:
    def value(line: TrialRecord) -> float | None:
        return (line.measures or {}).get(name)

    return value


def _process_reader(name: str) -> Callable[[TrialRecord], float | None]:
    def value(line: TrialRecord) -> float | None:
        return (line.process or {}).get(name)

    return value


def _measure(
    repeat: Sequence[TrialRecord], value: Callable[[TrialRecord], float | None]
) -> Measure | None:
    judged = [(line, value(line)) for line in repeat if line.status is not Status.ERRORED]
    known = [(line, found) for line, found in judged if found is not None]
    if not known:
        return None
    values = [found for _, found in known]
    return Measure(
        mean=_mean(values),
        sd=_deviation(values),
        mean_passed=_mean([found for line, found in known if line.status is Status.PASSED]),
        known=None if len(known) == len(judged) else len(known),
    )


def _mean(values: Sequence[float]) -> float | None:
    return _unless_overflow(lambda: math.fsum(values) / len(values)) if values else None


def _deviation(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation, None for fewer than two values."""
    mean = _mean(values)
    if mean is None or len(values) < 2:
        return None
    return _unless_overflow(
        lambda: math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    )


def _unless_overflow(compute: Callable[[], float]) -> float | None:
    """Return the number; what absurd values of a file drive beyond floats is unknown."""
    try:
        return compute()
    except OverflowError:
        return None


def counted(repeats: Repeats) -> FaultCounts:
    """Return how many judged trials of each repeat met faults, recovered and looped."""
    judged = [[line for line in repeat if line.status is not Status.ERRORED] for repeat in repeats]
    return FaultCounts(
        faulted=_counts(judged, lambda line: None if line.faults is None else line.faults > 0),
        recovered=_counts(judged, _recovered),
        looped=_counts(judged, lambda line: line.looped),
    )


def _recovered(line: TrialRecord) -> bool | None:
    if line.faults is None or line.recovered is None:
        return None
    return line.status is Status.PASSED and 0 < line.faults <= line.recovered


def _counts(repeats: Repeats, says: Callable[[TrialRecord], bool | None]) -> _Counts:
    counts = tuple(_count(map(says, repeat)) for repeat in repeats)
    return counts if any(count is not None for count in counts) else None


def _count(answers: Iterable[bool | None]) -> int | None:
    known = [answer for answer in answers if answer is not None]
    return sum(known) if known else None


def rounded(measure: Measure | None) -> Measure | None:
    """Return the measure to 3 significant digits, as a baseline keeps it."""
    if measure is None:
        return None
    mean, sd, mean_passed = (
        None if value is None else float(f"{value:.3g}") for value in measure[:3]
    )
    return Measure(mean=mean, sd=sd, mean_passed=mean_passed, known=measure.known)
