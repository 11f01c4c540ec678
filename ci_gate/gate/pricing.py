"""What calls to models cost: the configuration's prices, then published ones, else unknown."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Protocol

from ci_gate.config.shape import Price
from ci_gate.model.usage import Usage

__all__ = ["Pricing"]

_MILLION: Final = 1e6
_MOST_KNOWN: Final = 10_000


class _Published(Protocol):
    def __call__(self, model: str, usage: Usage) -> float | None: ...


class Pricing:
    """Prices of models.

    Parameters
    ----------
    prices : mapping of str to Price
        Of the configuration, by model.

    Notes
    -----
    Published prices are those of the package ``genai-prices`` where it is installed; nothing is
    fetched. A model that nobody knows has an unknown cost and never none.
    """

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._known: dict[tuple[str, Usage], float | None] = {}

    def __call__(self, models: tuple[str, ...], usage: Usage) -> float | None:
        """Return the cost of a call in US dollars, None where it is unknown.

        Parameters
        ----------
        models : tuple of str
            What the model is called by who asked and by who answered.
        usage : Usage
        """
        if usage.input is None or usage.output is None:
            return None
        for model in models:
            price = self._prices.get(model)
            if price is not None:
                return (usage.input * price.input + usage.output * price.output) / _MILLION
        costs = (self._published(model, usage) for model in reversed(models))
        return next((cost for cost in costs if cost is not None), None)

    def _published(self, model: str, usage: Usage) -> float | None:
        key = model, usage
        if key not in self._known:
            if len(self._known) == _MOST_KNOWN:
                self._known.clear()
            self._known[key] = _published_prices()(model, usage)
        return self._known[key]


@cache
def _published_prices() -> _Published:
    """Load the published prices when the first call needs one: that takes a third of a second."""
    try:
        published: Any = importlib.import_module("genai_prices")
    except ImportError:
        return lambda model, usage: None

    def cost(model: str, usage: Usage) -> float | None:
        used = published.Usage(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read or None,
            cache_write_tokens=usage.cache_write or None,
        )
        try:
            return float(published.calc_price(used, model_ref=model).total_price)
        except (LookupError, ValueError):  # an unknown model, or one with another kind of price
            return None

    return cost
