"""Where two JSON values differ, path by path. Knows values alone."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Final

from ci_gate.model.trace_findings import ABSENT, Difference

__all__ = ["differences_of"]

_MOST_ALIGNED: Final = 400
_MAX_DEPTH: Final = 100


def differences_of(baseline: Any, candidate: Any, *, limit: int = 50) -> list[Difference]:
    """Return the first places where the values differ, in the order of the baseline.

    Parameters
    ----------
    baseline, candidate : Any
        JSON.
    limit : int
        How many are returned at most.

    Notes
    -----
    Items of lists are aligned by their longest common runs, so that one item put in does not make
    all later ones differ; lists of more than 400 items are compared by place.
    """
    return list(islice(_differences(baseline, candidate, "$", 0), limit))


def _differences(before: Any, after: Any, path: str, depth: int) -> Iterator[Difference]:
    if _same(before, after):
        return
    if depth < _MAX_DEPTH and isinstance(before, dict) and isinstance(after, dict):
        yield from _in_objects(before, after, path, depth)
    elif depth < _MAX_DEPTH and isinstance(before, list) and isinstance(after, list):
        yield from _in_lists(before, after, path, depth)
    else:
        yield Difference(path=path, baseline=before, candidate=after, kind="changed")


def _same(before: Any, after: Any) -> bool:
    """Return whether two values are the same JSON: true is not 1."""
    try:
        return bool(before == after) and isinstance(before, bool) == isinstance(after, bool)
    except RecursionError:
        return False


def _in_objects(
    before: dict[str, Any], after: dict[str, Any], path: str, depth: int
) -> Iterator[Difference]:
    for key, value in before.items():
        place = f"{path}{_named(key)}"
        if key in after:
            yield from _differences(value, after[key], place, depth + 1)
        else:
            yield Difference(path=place, baseline=value, candidate=ABSENT, kind="removed")
    for key in after:
        if key not in before:
            place = f"{path}{_named(key)}"
            yield Difference(path=place, baseline=ABSENT, candidate=after[key], kind="added")


def _named(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{key!r}]"


def _in_lists(before: list[Any], after: list[Any], path: str, depth: int) -> Iterator[Difference]:
    for tag, start, end, other_start, other_end in _runs(before, after):
        if tag == "equal":
            continue
        shared = min(end - start, other_end - other_start)
        for step in range(shared):
            place = f"{path}[{start + step}]"
            yield from _differences(
                before[start + step], after[other_start + step], place, depth + 1
            )
        for index in range(start + shared, end):
            yield Difference(
                path=f"{path}[{index}]", baseline=before[index], candidate=ABSENT, kind="removed"
            )
        for index in range(other_start + shared, other_end):
            yield Difference(
                path=f"{path}[{index}]", baseline=ABSENT, candidate=after[index], kind="added"
            )


def _runs(before: list[Any], after: list[Any]) -> list[tuple[str, int, int, int, int]]:
    if max(len(before), len(after)) > _MOST_ALIGNED:
        return [("replace", 0, len(before), 0, len(after))]
    # repr: a hashable stand-in that tells true from 1, of values that came from JSON.
    matcher = SequenceMatcher(None, [*map(repr, before)], [*map(repr, after)], autojunk=False)
    return list(matcher.get_opcodes())
