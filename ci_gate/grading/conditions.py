"""What a text must be, contain or match, whether it is an answer or the content of a file.

A pattern is tried on texts up to a bound and for a bounded time, because what is matched comes from
the code under test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ci_gate.errors import printable
from ci_gate.grading.options import count_problems, type_problems
from ci_gate.patterns import PatternError, search

__all__ = ["LONGEST_MATCHED", "TextConditions", "condition_problems"]

LONGEST_MATCHED: Final = 1_000_000
"""Characters of a text that a pattern is tried on."""

_SHOWN: Final = 120


class TextConditions(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that must all hold; None and empty ones ask nothing.

    Parameters
    ----------
    equals : str or None
    contains, not_contains : tuple of str
    matches : re.Pattern or None
        Found anywhere in the text.
    ignore_case : bool
        For the first three; the pattern was compiled with it.
    """

    equals: str | None = None
    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    matches: re.Pattern[str] | None = None
    ignore_case: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> TextConditions:
        """Return the conditions of options that have no ``condition_problems``."""
        ignore_case = options.get("ignore_case", False)
        pattern = options.get("matches")
        flags = re.IGNORECASE if ignore_case else re.NOFLAG
        return cls(
            equals=options.get("equals"),
            contains=_texts(options.get("contains", ())),
            not_contains=_texts(options.get("not_contains", ())),
            matches=None if pattern is None else re.compile(pattern, flags),
            ignore_case=ignore_case,
        )

    def complaint(self, text: str) -> str | None:
        """Return the first condition that does not hold with what was found, or None."""
        return next(self._complaints(text), None)

    def _complaints(self, text: str) -> Iterator[str]:
        found = f"found {_shown(text)}"
        compared = self._folded(text)
        if self.equals is not None and compared != self._folded(self.equals):
            yield f"expected {_shown(self.equals)}, {found}"
        for part in self.contains:
            if self._folded(part) not in compared:
                yield f"expected a text with {_shown(part)}, {found}"
        for part in self.not_contains:
            if self._folded(part) in compared:
                yield f"expected a text without {_shown(part)}, {found}"
        if self.matches is not None:
            yield from self._mismatch(self.matches, text)

    def _folded(self, text: str) -> str:
        return text.casefold() if self.ignore_case else text

    @staticmethod
    def _mismatch(pattern: re.Pattern[str], text: str) -> Iterator[str]:
        if len(text) > LONGEST_MATCHED:
            yield f"{len(text)} characters; a pattern is tried on {LONGEST_MATCHED} at most"
            return
        try:
            found = search(pattern, text)
        except PatternError as error:
            yield f"{error}: {_shown(pattern.pattern)} on {len(text)} characters"
            return
        if found is None:
            yield f"expected a match of {_shown(pattern.pattern)}, found {_shown(text)}"


def _texts(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _shown(text: str) -> str:
    return f'"{printable(text, limit=_SHOWN)}"'


def condition_problems(options: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with the conditions among a grader's options.

    Parameters
    ----------
    options : mapping
    names : tuple of str
        The conditions that the grader has; at least one must be given.
    """
    yield from count_problems(options, names)
    yield from type_problems(options, ("equals", "matches"), str)
    yield from type_problems(options, ("ignore_case",), bool)
    for name in ("contains", "not_contains"):
        if name in options and not _is_text_or_texts(options[name]):
            yield f"option {name!r} must be a text or a list of texts that are not empty"
    if isinstance(options.get("matches"), str):
        yield from _pattern_problems(options["matches"])


def _is_text_or_texts(value: Any) -> bool:
    texts = [value] if isinstance(value, str) else value
    return (
        isinstance(texts, list | tuple)
        and len(texts) > 0
        and all(isinstance(text, str) and text for text in texts)
    )


def _pattern_problems(pattern: str) -> Iterator[str]:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        yield f"option 'matches' is no regular expression: {printable(error)}"
