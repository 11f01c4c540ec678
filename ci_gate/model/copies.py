"""Which trials are copies of others: the evidence, and what is set aside on it.

A copy is an answer that was given before and served again, so that it says nothing new of the
agent. That takes evidence: the same answers of the models by the names that their providers give
them, or a cache of answers that says so. Equal bytes are none: eight identical crashes are eight
failures. It knows one task at a time and draws no conclusion for a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby

import msgspec

from ci_gate.model.run import FAILED, NOT_RUN, PASSED, Side, SideTask
from ci_gate.model.trial import Answers

__all__ = ["Copies", "copies_by_task", "copies_of", "without_copies"]

Key = tuple[int, int]
"""A trial of a task: seed index and repeat."""
_NOTHING = Answers()


class Copies(msgspec.Struct, frozen=True, kw_only=True):
    """What the evidence says of a task's judged trials.

    Parameters
    ----------
    apart : frozenset of (trial, repeat)
        Copies of another trial of the task, or of one of the other side: they are no trials.
    disputed : frozenset of (trial, repeat)
        The evidence calls them copies, and they did not end as their originals did. Then something
        else than the answers differed, and they count.
    cached : frozenset of (trial, repeat)
        Answered by a cache alone, whether they are set aside or not.
    """

    apart: frozenset[Key] = frozenset()
    disputed: frozenset[Key] = frozenset()
    cached: frozenset[Key] = frozenset()

    @property
    def replayed(self) -> frozenset[Key]:
        """Trials that were not measured anew."""
        return self.apart | self.cached

    def __bool__(self) -> bool:
        return bool(self.apart or self.disputed or self.cached)


def copies_of(task: SideTask, before: SideTask | None = None) -> Copies:
    """Return which judged trials of a task are copies.

    Parameters
    ----------
    task : SideTask
    before : SideTask or None
        The same task of the side that was measured earlier: a trial with the answers of one of its
        trials is a copy of that.

    Notes
    -----
    Trials are taken by repeat and seed index, and the first of a group with the same answers
    stands for it. A trial that a cache answered copies a trial which is not known: where the task
    has a fresh one that ended so, all such trials are set aside, and all but the first elsewhere.
    """
    if not task.answers:
        return Copies()
    return _Sorting(task).sorted(_endings(before) if before is not None else {})


def copies_by_task(side: Side, before: Side | None = None) -> dict[str, Copies]:
    """Return the tasks of which the evidence calls any trial a copy, rightly or not.

    Parameters
    ----------
    side : Side
    before : Side or None
        The side that was measured earlier.

    Returns
    -------
    dict of str to Copies
        In the order of the ids.
    """
    known = sorted(name for name, task in side.tasks.items() if task.answers)
    found = {name: copies_of(side.tasks[name], _same_task(before, side, name)) for name in known}
    return {name: copies for name, copies in found.items() if copies}


def without_copies(side: Side, before: Side | None = None) -> Side:
    """Return a side on which copies were never run.

    Parameters
    ----------
    side : Side
    before : Side or None
        The side that was measured earlier.
    """
    fresh = {
        name: _without(side.tasks[name], copies.apart)
        for name, copies in copies_by_task(side, before).items()
    }
    return msgspec.structs.replace(side, tasks={**side.tasks, **fresh}) if fresh else side


def _same_task(before: Side | None, side: Side, name: str) -> SideTask | None:
    """Return the task of the earlier side, unless it was edited since."""
    found = before.tasks.get(name) if before is not None else None
    digests = {found.digest, side.tasks[name].digest} - {None} if found else set()
    return found if len(digests) < 2 else None


def _without(task: SideTask, apart: frozenset[Key]) -> SideTask:
    outcomes = tuple(
        "".join(NOT_RUN if (trial, at) in apart else char for trial, char in enumerate(row))
        for at, row in enumerate(task.outcomes)
    )
    return msgspec.structs.replace(task, outcomes=outcomes)


def _judged(task: SideTask) -> dict[Key, str]:
    """Return how each judged trial ended, by repeat and seed index."""
    return {
        (trial, at): char
        for at, row in enumerate(task.outcomes)
        for trial, char in enumerate(row)
        if char in (PASSED, FAILED)
    }


def _endings(task: SideTask) -> Mapping[str, set[str]]:
    """Return how the trials with the same answers ended."""
    found: dict[str, set[str]] = {}
    for key, ending in _judged(task).items():
        responses = task.answers.get(key, _NOTHING).responses
        if responses is not None:
            found.setdefault(responses, set()).add(ending)
    return found


class _Sorting:
    """The trials of one task, sorted one kind of evidence after the other."""

    def __init__(self, task: SideTask) -> None:
        self._endings = _judged(task)
        self._answers = {key: task.answers.get(key, _NOTHING) for key in self._endings}
        self._cached = frozenset(key for key, known in self._answers.items() if known.cached)
        self._apart: set[Key] = set()
        self._disputed: set[Key] = set()

    def sorted(self, elsewhere: Mapping[str, set[str]]) -> Copies:
        self._sort_by_other_side(elsewhere)
        for group in _groups(self._open(), self._responses):
            if len(group) > 1:
                self._settle(group, group[1:])
        self._sort_by_cache()
        return Copies(
            apart=frozenset(self._apart), disputed=frozenset(self._disputed), cached=self._cached
        )

    def _sort_by_other_side(self, elsewhere: Mapping[str, set[str]]) -> None:
        for key in self._open():
            endings = elsewhere.get(self._responses(key) or "")
            if endings:
                copied = endings == {self._endings[key]}
                (self._apart if copied else self._disputed).add(key)

    def _sort_by_cache(self) -> None:
        pool = [key for key in self._open() if key in self._cached]
        if not pool:
            return
        fresh = {self._endings[key] for key in self._open() if key not in self._cached}
        self._settle(pool, pool if self._endings[pool[0]] in fresh else pool[1:])

    def _settle(self, group: list[Key], copies: list[Key]) -> None:
        """Set copies aside, unless trials of their group ended differently."""
        if len({self._endings[key] for key in group}) == 1:
            self._apart.update(copies)
        else:
            self._disputed.update(group)

    def _open(self) -> list[Key]:
        return [key for key in self._endings if key not in self._apart | self._disputed]

    def _responses(self, key: Key) -> str | None:
        return self._answers[key].responses


def _groups(keys: Iterable[Key], name: Callable[[Key], str | None]) -> list[list[Key]]:
    """Return the keys that have a name, by it, each group in the order of the keys."""
    named = sorted((key for key in keys if name(key)), key=lambda key: name(key) or "")
    return [list(group) for _, group in groupby(named, key=name)]
