"""What a new agent may have done to a suite: the prior that a check is foreseen by.

A change is drawn for the whole suite: none, a shift of all logits, an erosion of good tasks and the
like; in each of them any single task may besides have become another one.
The shapes and weights are stated here and nowhere else. It knows no counts and no test.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GOOD = 0.9
"""Tasks above it are what an erosion of the good ones takes from."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that may have happened.

    Attributes
    ----------
    weight
        Its chance before any trial, relative to the others.
    sceptical
        The same where a stop has to be beyond doubt: less trust in "nothing happened", more in
        what is hardest to see.
    after
        From chances to pass before to those after, for any array of them.
    redrawn
        How many tasks of the suite became other ones on average, whatever else happened.
    """

    weight: float
    sceptical: float
    after: Callable[[Floats], Floats]
    redrawn: float = 1.25


def of_other_tasks(suite: Floats, chances: Floats) -> Floats:
    """Chances of a task that became another one: anything at all.

    Parameters
    ----------
    suite
        Share of the suite's tasks at each chance.
    chances
        The chances, rising in even steps of the logit, and 0 and 1 at the ends.

    Returns
    -------
    ndarray
        In part one of the suite's tasks, in part flat in the logit, which finds tasks that broke,
        in part flat in the chance, which finds those that were halved.
    """
    flat_in_logit, flat = np.ones(len(chances)), chances * (1 - chances)
    flat_in_logit[[0, -1]] = 0
    parts = zip((0.3, 0.3, 0.4), (suite, flat_in_logit, flat), strict=True)
    return np.asarray(sum(share * part / part.sum() for share, part in parts))


def unchanged(chances: Floats) -> Floats:
    """Leave every chance as it is."""
    return chances


def shifted(logits: float, chances: Floats) -> Floats:
    """Move the logit of every chance; 0 and 1 stay where they are."""
    odds = chances * np.exp(logits)
    return np.asarray(odds / (1 - chances + odds))


def eroded(loss: float, chances: Floats) -> Floats:
    """Let good tasks fail more often by a factor."""
    return np.where(chances > GOOD, chances * (1 - loss), chances)


def scaled(factor: float, chances: Floats) -> Floats:
    """Let every task pass less often by a factor."""
    return np.asarray(chances * factor)


def _shift(logits: float, weight: float) -> Change:
    return Change(weight=weight, sceptical=0.8 * weight, after=partial(shifted, logits))


def _erosion(loss: float) -> Change:
    return Change(weight=0.03, sceptical=3 * 0.03, after=partial(eroded, loss))


PRIOR: tuple[Change, ...] = (
    Change(weight=0.50, sceptical=0.6 * 0.50, after=unchanged),
    *(_shift(logits, 0.06) for logits in (-0.25, -0.5, -1.0, -1.5, -2.5)),
    _shift(0.5, 0.05),
    *(_erosion(loss) for loss in (0.05, 0.1, 0.2, 0.4)),
    Change(weight=0.03, sceptical=0.8 * 0.03, after=partial(scaled, 0.9)),
)
"""The first is "nothing happened"."""
