"""What the calls to models of one trial take: tokens and money, each call's and all together.

An unknown amount stays unknown and makes the sum unknown: a part of a bill is no bill. So does a
number that is no amount. Where prices
come from is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum
from typing import Any

from ci_gate.model.amounts import amount_within, count_within
from ci_gate.model.calls import MODEL_CALL
from ci_gate.model.trial import Step
from ci_gate.model.usage import Spent, Usage, usage_of

__all__ = ["Meter", "PriceOf"]

PriceOf = Callable[[tuple[str, ...], Usage], float | None]
"""Returns the cost in US dollars of a call to a model by any of its names, None if unknown."""


class Meter:
    """Adds up what the calls of one trial take.

    Parameters
    ----------
    price_of : callable or None
        None: no cost is known.
    """

    def __init__(self, price_of: PriceOf | None = None) -> None:
        self._price_of = price_of
        self._taken: list[Spent] = []

    def measure(self, kind: str, name: str, output: Any) -> Spent:
        """Return what a call took that gave this output, and add it up."""
        if kind != MODEL_CALL:
            return Spent(None, None)
        usage = usage_of(output)
        tokens = None if usage is None else usage.total
        return self.take(kind, Spent(tokens, self._cost(name, output, usage)))

    def _cost(self, name: str, output: Any, usage: Usage | None) -> float | None:
        if usage is None or self._price_of is None:
            return None
        answered = output.get("model")
        names = (name, answered) if isinstance(answered, str) and answered != name else (name,)
        return amount_within(self._price_of(names, usage))

    def take(self, kind: str, spent: Spent) -> Spent:
        """Add up what a call took according to its recording."""
        if kind == MODEL_CALL:
            self._taken.append(spent)
        return spent

    def measured(self, steps: Sequence[Step]) -> Spent:
        """Return what steps took together that were not added up here."""
        meter = Meter(self._price_of)
        for step in steps:
            meter.measure(step.kind, step.name, step.output)
        return meter.spent

    @property
    def spent(self) -> Spent:
        """Return what all calls took together."""
        tokens = [one.tokens for one in self._taken if one.tokens is not None]
        costs = [one.cost_usd for one in self._taken if one.cost_usd is not None]
        calls = len(self._taken)
        return Spent(
            tokens=count_within(sum(tokens)) if calls and len(tokens) == calls else None,
            cost_usd=amount_within(fsum(costs)) if calls and len(costs) == calls else None,
        )
