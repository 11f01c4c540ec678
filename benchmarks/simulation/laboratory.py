"""Repeats of designs under several rules, shared out to processes; the same counts on any number.

Knows designs and rules only as things that draw and judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from benchmarks.simulation.figures import Rate
from benchmarks.simulation.populations import Design
from benchmarks.simulation.rules import Rule

PART = 150
"""Repeats that are judged together; the quick verdict is quicker for many."""

_Job = TypeVar("_Job")
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Laboratory:
    """Processes to work in, and how many repeats each cell gets."""

    pool: ProcessPoolExecutor
    repeats: int

    def each(
        self, work: Callable[[_Job], _Found], jobs: Iterable[_Job], *, chunk: int = 1
    ) -> list[_Found]:
        """Do the work for every job, in order."""
        return list(self.pool.map(work, jobs, chunksize=chunk))

    def parts(self, repeats: int | None = None, part: int = PART) -> list[range]:
        """Share the repeats out."""
        total = self.repeats if repeats is None else repeats
        return [range(first, min(first + part, total)) for first in range(0, total, part)]

    def blocked(
        self,
        designs: Mapping[str, Design],
        rules: Mapping[str, Rule],
        repeats: int | None = None,
    ) -> dict[tuple[str, str], Rate]:
        """How often each rule blocks each design; all rules judge the same pairs."""
        parts = self.parts(repeats)
        jobs = [
            (design, tuple(rules.values()), part) for design in designs.values() for part in parts
        ]
        hits = np.array(self.each(_hits, jobs)).reshape(len(designs), len(parts), len(rules))
        total = sum(map(len, parts))
        return {
            (design, rule): Rate(int(hits[i, :, j].sum()), total)
            for i, design in enumerate(designs)
            for j, rule in enumerate(rules)
        }


def _hits(job: tuple[Design, Sequence[Rule], range]) -> list[int]:
    design, rules, repeats = job
    pairs = [design.draw(repeat) for repeat in repeats]
    return [int(rule.blocks(pairs).sum()) for rule in rules]
