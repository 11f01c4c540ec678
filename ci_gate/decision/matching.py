"""Which tasks can be compared: by id and content, and what is said of those that cannot.

Knows tasks, their digests and the policy's exceptions; no statistics and no verdict.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fnmatch import fnmatchcase

import msgspec

from ci_gate.decision.accounting import counts_of, stopped_early
from ci_gate.model.policy import Policy, Quarantine
from ci_gate.model.run import ErrorPolicy, Side, SideTask
from ci_gate.model.verdict import Claim

__all__ = ["Matching", "match_tasks", "restrict", "run_day"]

_AND = " && "
_GROUPS = (
    "compared",
    "new",
    "removed",
    "allowed",
    "changed",
    "unjudged",
    "quarantined",
    "unserved",
)


class Matching(msgspec.Struct, frozen=True, kw_only=True):
    """Every task of either side in one place; ids in sorted order.

    Attributes
    ----------
    compared
        On both sides with the same content and at least one judged trial on each.
    new, removed, changed, unjudged, quarantined
        As in the verdict. ``removed`` leaves out ``allowed``, which the policy lets vanish, and
        ``unjudged`` has no judged trial on the candidate's side.
    unserved
        Of ``new``: the baseline has the task, and not one judged trial of it.
    by_id
        Of ``compared``: a side holds no digest, so that the content is taken on trust.
    lapsed, unknown
        Quarantines that ended before the day of the run, and that name no task of either side.
    """

    compared: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    by_id: tuple[str, ...] = ()
    lapsed: tuple[Quarantine, ...] = ()
    unknown: tuple[Quarantine, ...] = ()

    @property
    def claims(self) -> Mapping[str, Claim]:
        """The claim on each task that was not compared."""
        groups = {
            Claim.NEW: self.new,
            Claim.REMOVED: self.removed + self.allowed,
            Claim.CHANGED: self.changed,
            Claim.UNJUDGED: self.unjudged,
            Claim.QUARANTINED: self.quarantined,
        }
        return {task_id: claim for claim, ids in groups.items() for task_id in ids}


def run_day(side: Side) -> datetime.date | None:
    """Return the day on which a run was made, None where its file does not say."""
    try:
        return datetime.date.fromisoformat((side.created or "")[:10])
    except ValueError:
        return None


def restrict(side: Side, *, to: Side) -> Mapping[str, SideTask]:
    """Return the tasks of a side that the filters of both, and the other's shard, let it have."""
    patterns = (*_patterns(side), *_patterns(to))
    return {
        task_id: side.tasks[task_id]
        for task_id in sorted(side.tasks)
        if all(fnmatchcase(task_id, pattern) for pattern in patterns)
        and (to.shard is None or task_id in to.tasks)
    }


def _patterns(side: Side) -> list[str]:
    return side.task_filter.split(_AND) if side.task_filter else []


def match_tasks(
    baseline: Side | None,
    candidate: Side,
    policy: Policy,
    *,
    errors: ErrorPolicy,
    today: datetime.date | None,
) -> Matching:
    """Put every task of both sides in its place.

    Parameters
    ----------
    baseline, candidate : Side
        Without a baseline every task is new.
    policy : Policy
        For its quarantine and ``allow_removed``.
    errors : {"exclude", "fail"}
        What an errored trial counts as.
    today : datetime.date or None
        None: quarantines hold.
    """
    before = restrict(baseline, to=candidate) if baseline else {}
    after = restrict(candidate, to=baseline) if baseline else dict(sorted(candidate.tasks.items()))
    lapsed = tuple(q for q in policy.quarantine if today is not None and today > q.until)
    held = {q.task for q in policy.quarantine if q not in lapsed}
    places = _Places(before, after, held, policy.allow_removed, errors, stopped_early(candidate))
    groups = places.groups()
    return Matching(
        **(groups | {"new": tuple(sorted(groups["new"] + groups["unserved"]))}),
        by_id=tuple(t for t in groups["compared"] if None in (before[t].digest, after[t].digest)),
        lapsed=tuple(q for q in lapsed if q.task in before or q.task in after),
        unknown=tuple(q for q in policy.quarantine if not _has(q.task, baseline, candidate)),
    )


def _has(task_id: str, *sides: Side | None) -> bool:
    return any(side is not None and task_id in side.tasks for side in sides)


class _Places(msgspec.Struct, frozen=True):
    """The order of the questions matters: a vanished task is one even when it was in quarantine."""

    before: Mapping[str, SideTask]
    after: Mapping[str, SideTask]
    held: set[str]
    allow_removed: tuple[str, ...]
    errors: ErrorPolicy
    cut_short: bool

    def groups(self) -> dict[str, tuple[str, ...]]:
        ids = {task_id: self._place(task_id) for task_id in sorted({**self.before, **self.after})}
        return {
            group: tuple(task_id for task_id, place in ids.items() if place == group)
            for group in _GROUPS
        }

    def _place(self, task_id: str) -> str:
        if task_id not in self.after:
            return self._absent(task_id)
        if task_id in self.held:
            return "quarantined"
        if task_id not in self.before:
            return "new"
        return self._on_both_sides(self.before[task_id], self.after[task_id])

    def _absent(self, task_id: str) -> str:
        if self.cut_short:
            return "quarantined" if task_id in self.held else "unjudged"
        allowed = any(fnmatchcase(task_id, pattern) for pattern in self.allow_removed)
        return "allowed" if allowed else "removed"

    def _on_both_sides(self, before: SideTask, after: SideTask) -> str:
        if None not in (before.digest, after.digest) and before.digest != after.digest:
            return "changed"
        if counts_of(after, self.errors).trials == 0:
            return "unjudged"
        return "compared" if counts_of(before, self.errors).trials else "unserved"
