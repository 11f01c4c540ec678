"""What a customer asks for, read from the messages one by one.

This stands in for a language model, so that the example needs neither network nor money. Like a
model it loses a detail now and then: how often depends on how hard the conversation is, and when
depends on the seed of the trial.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_ORDINALS = {"first": 1, "second": 2, "third": 3}


class Rule(NamedTuple):
    """A turn of phrase and the detail that it gives."""

    detail: str
    phrase: re.Pattern[str]
    value: Callable[[re.Match[str]], Any]


def _rule(detail: str, phrase: str, value: Callable[[re.Match[str]], Any]) -> Rule:
    return Rule(detail, re.compile(phrase, re.IGNORECASE), value)


RULES = (
    _rule("order", r"\b(R-\d{4})\b", lambda found: found[1].upper()),
    _rule("line", r"\bonly the (first|second|third) item\b", lambda found: _ORDINALS[found[1]]),
    _rule("line", r"\b(?:everything|all items|the whole order)\b", lambda found: None),
    _rule("cap_cents", r"\bnot more than (\d+) euros\b", lambda found: int(found[1]) * 100),
    _rule("demand_cents", r"\bat least (\d+) euros\b", lambda found: int(found[1]) * 100),
    _rule("recipient", r"\buse ([\w.+-]+@[\w.-]+\w) instead\b", lambda found: found[1]),
    _rule("no_mail", r"\bno e-mails?\b", lambda found: True),
    _rule("reason", r"\b(?:broken|cracked|torn|damaged)\b", lambda found: "damaged"),
    _rule("reason", r"\bwrong (?:size|colour|item)\b", lambda found: "wrong-item"),
    _rule("reason", r"\bnever arrived\b", lambda found: "lost"),
    _rule("reason", r"\bchanged my mind\b", lambda found: "changed-mind"),
)


class Detail(NamedTuple):
    """One thing that a message says."""

    name: str
    value: Any


class Wishes(NamedTuple):
    """What the customer wants, as far as it was understood.

    Parameters
    ----------
    line : int or None
        The only item to pay back; None means all.
    cap_cents, demand_cents : int or None
        At most, and what the customer insists on.
    recipient : str or None
        Address to use in place of the one on file.
    no_mail : bool
    reason : str or None
    """

    line: int | None = None
    cap_cents: int | None = None
    demand_cents: int | None = None
    recipient: str | None = None
    no_mail: bool = False
    reason: str | None = None


class Attention:
    """The stand-in's weakness: it slips with a chance that the task sets.

    Parameters
    ----------
    rng : random.Random
    strain : float
        Chance of a slip, from 0 to 1.
    """

    def __init__(self, rng: random.Random, strain: float) -> None:
        self._rng = rng
        self._strain = strain

    def slips(self) -> bool:
        """Say whether this one goes wrong."""
        return self._rng.random() < self._strain


def details_of(message: str) -> Iterator[Detail]:
    """Yield the details of a message in the order of the rules."""
    for rule in RULES:
        found = rule.phrase.search(message)
        if found:
            yield Detail(rule.detail, rule.value(found))


def wishes_of(messages: list[str], attention: Attention) -> Wishes:
    """Return what the messages ask for; what is said later replaces what was said before."""
    understood: dict[str, Any] = {}
    for message in messages:
        for detail in details_of(message):
            if detail.name != "order" and not attention.slips():
                understood[detail.name] = detail.value
    return Wishes(**understood)
