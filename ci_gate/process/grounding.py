"""Which values in arguments have a source: a message, an observation or the fixture.

A value without one is taken for made up. That is a matter of texts and numbers, not of meaning, so
it errs in both ways, the same way on both sides of a comparison; docs/process.md says how.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ci_gate.model.calls import MODEL_CALL, TOOL_CALL
from ci_gate.model.trial import Step
from ci_gate.process.values import is_number

__all__ = ["FixtureText", "argument_hallucination"]

_SHORTEST: Final = 3
_MOST_WORDS: Final = 4
_MOST_VALUES: Final = 1_000
_MOST_CHARACTERS: Final = 500_000
_NUMBER: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_LONGEST_NUMBER: Final = 300
_EDGES: Final = ".,;:!?()[]{}<>\"'`*#"
_LARGEST: Final = 1e300
_MINOR_UNITS: Final = 100
# Whose words in a request to a model are the model's own earlier ones.
_OWN_ROLES: Final = ("assistant", "model")
_OWN_TYPES: Final = ("function_call", "tool_use", "reasoning")

FixtureText = Callable[[], str]


class _Sources:
    """What the agent can have a value from, so far."""

    def __init__(self) -> None:
        self._seen: set[str | float] = set()
        self._texts: list[str] = []
        self._numbers: set[float] = set()
        self._found: set[str | float] = set()
        self.characters = 0

    def add(self, value: Any, *, own: bool = True) -> None:
        """Take in every text and number of a value, keys of tables included, each once.

        A conversation that is sent to a model again and again is read once.
        """
        for leaf in _leaves(value, own=own):
            if leaf in self._seen:
                continue
            self._seen.add(leaf)
            if isinstance(leaf, str):
                self.add_text(leaf)
            else:
                self._numbers.add(float(leaf))
                self._texts.append(f"{leaf}")

    def add_text(self, text: str) -> None:
        """Take in a text and the numbers in it."""
        self.characters += len(text)
        if self.characters > _MOST_CHARACTERS:
            return
        normal = _normal(text)
        self._texts.append(normal)
        self._numbers.update(_numbers_in(normal))

    def have(self, value: str | float) -> bool:
        """Return whether a value is among them; what is once found stays."""
        if value not in self._found and self._has(value):
            self._found.add(value)
        return value in self._found

    def _has(self, value: str | float) -> bool:
        if not isinstance(value, str):
            return self._has_number(float(value))
        if _is_word_of(value, self._whole()):
            return True
        numbers = _numbers_in(value) if _NUMBER.fullmatch(value) else ()
        return any(map(self._has_number, numbers))

    def _whole(self) -> str:
        # One long text is searched much faster than many short ones; no value has a line break.
        self._texts = ["\n".join(self._texts)]
        return self._texts[0]

    def _has_number(self, value: float) -> bool:
        known = self._numbers
        return value in known or value * _MINOR_UNITS in known or value / _MINOR_UNITS in known


def argument_hallucination(
    steps: Sequence[Step], asked: Any, fixture_text: FixtureText
) -> float | None:
    """Return the share of the values in arguments of tools that have no earlier source.

    Parameters
    ----------
    steps : sequence of Step
    asked : Any
        What the task tells the agent.
    fixture_text : callable
        Everything in the fixture as one text; asked for where a value has no other source.

    Returns
    -------
    float or None
        None where no argument has a value that is looked at, or there is too much to look at.

    Notes
    -----
    Looked at are numbers and texts of at least three characters: texts of up to four words as a
    whole, of longer ones the words that have a digit. Compared are texts in Unicode's form NFKC
    without case and doubled spaces, as whole words within a source; numbers by value, and by the
    hundredth and hundredfold of it, as 45.00 is 4500 cents. Sources are what the task tells, what
    tools gave back before, what was said to a model by anybody but itself, and the fixture.
    """
    sources, lacking, looked_at = _Sources(), list[str | float](), 0
    sources.add(asked)
    for step in steps:
        if step.kind == TOOL_CALL:
            values = list(_values(step.input))
            looked_at += len(values)
            if looked_at > _MOST_VALUES or sources.characters > _MOST_CHARACTERS:
                return None
            lacking += [value for value in values if not sources.have(value)]
        if step.kind == MODEL_CALL:
            sources.add(step.input, own=False)
        else:
            sources.add(step.output)
    if not looked_at:
        return None
    return len(_without_source(lacking, fixture_text)) / looked_at


def _without_source(values: list[str | float], fixture_text: FixtureText) -> list[str | float]:
    if not values:
        return values
    fixture = _Sources()
    fixture.add_text(fixture_text()[:_MOST_CHARACTERS])
    return [value for value in values if not fixture.have(value)]


def _values(arguments: Any) -> Iterator[str | float]:
    for leaf in _leaves(arguments, keys=False):
        if not isinstance(leaf, str):
            if len(f"{leaf}".lstrip("-")) >= _SHORTEST:
                yield leaf
            continue
        text = _normal(leaf)
        words = text.split(" ")
        if len(words) <= _MOST_WORDS:
            words = [text.strip(_EDGES)]
        else:
            words = [word.strip(_EDGES) for word in words if any(map(str.isdigit, word))]
        yield from (word for word in words if len(word) >= _SHORTEST)


def _leaves(value: Any, *, keys: bool = True, own: bool = True) -> Iterator[str | float]:
    """Yield the texts and numbers of a value, without calling itself.

    ``keys`` of tables are texts as well; without ``own``, a request to a model is read without the
    tables that hold what the model had said itself.
    """
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) or (is_number(one) and abs(one) < _LARGEST):
            yield one
        elif isinstance(one, Mapping):
            if own or not _is_of_the_model(one):
                waiting += [*one.values(), *(one if keys else ())]
        elif isinstance(one, list | tuple):
            waiting += one


def _is_of_the_model(table: Mapping[str, Any]) -> bool:
    return table.get("role") in _OWN_ROLES or table.get("type") in _OWN_TYPES


def _normal(text: str) -> str:
    form = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(form.casefold().split())


def _numbers_in(text: str) -> Iterable[float]:
    """Return the numbers of a text; a comma may be one of thousands or of decimals."""
    for found in _NUMBER.findall(text):
        for form in {found.replace(",", ""), found.replace(",", ".")}:
            if form.count(".") <= 1 and len(form) < _LONGEST_NUMBER:
                yield float(form)


def _is_word_of(value: str, text: str) -> bool:
    """Return whether a text has the value and no letter or digit next to it."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        before, after = text[at - 1 : at], text[end : end + 1]
        if not (before.isalnum() and value[0].isalnum()) and not (
            after.isalnum() and value[-1].isalnum()
        ):
            return True
        at = text.find(value, at + 1)
    return False
