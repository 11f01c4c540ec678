"""What the rest of a plan may bring: the predictive distribution, listed and drawn."""

from __future__ import annotations

import numpy as np
import pytest

from ci_gate.stats.chances import GRID
from ci_gate.stats.changes import PRIOR, eroded, of_other_tasks, shifted
from ci_gate.stats.futures import Dealer, listed
from ci_gate.stats.predictive import Cells, Predictive

ONE_ROW = np.array([[[32, 32, 4, 4, 2]], [[32, 20, 4, 1, 2]], [[32, 20, 4, 1, 2]]])
SEEDS = np.array([[[4, 4, 1, 1, 0], [4, 0, 0, 0, 1], [4, 4, 0, 0, 1]]] * 3)


def known(cells: np.ndarray, *, by_seed: bool = False, sceptical: bool = False) -> Predictive:
    """The predictive distribution under the prior that is used."""
    return Predictive.of(Cells.of(cells), PRIOR, by_seed=by_seed, sceptical=sceptical)


@pytest.mark.parametrize(("cells", "by_seed"), [(ONE_ROW, False), (SEEDS, True)])
def test_draws_come_as_often_as_listed(cells: np.ndarray, by_seed: bool) -> None:
    """Every task's passes to come have the mean that the list of all futures gives them."""
    predictive = known(cells, by_seed=by_seed)
    futures = listed(predictive, 5000)
    assert futures is not None
    ways, chances = futures

    drawn = Dealer.of(predictive).draw(0, 20_000, 3)

    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert drawn.shape == (20_000, *ways.shape[1:])
    means = (ways * chances[:, None, None]).sum(axis=0)
    assert np.abs(drawn.mean(axis=0) - means).max() < 0.03


def test_too_many_futures_are_not_listed() -> None:
    """Twenty-seven futures are listed where 27 may be, and not where 26 may."""
    predictive = known(ONE_ROW)

    assert listed(predictive, 27) is not None
    assert listed(predictive, 26) is None


def test_draws_can_be_continued() -> None:
    """The futures from 100 on are the same, whether drawn with the first hundred or after them."""
    dealer = Dealer.of(known(SEEDS, by_seed=True))

    assert (dealer.draw(0, 200, 1)[100:] == dealer.draw(100, 100, 1)).all()


def test_trials_tell_what_changed() -> None:
    """Runs as before make "nothing changed" likelier than it was; failing refutes it."""
    before = np.array([[[32, 28, 0, 0, 8]]] * 20)
    as_before = np.array([[[32, 28, 4, 4, 4]], [[32, 28, 4, 3, 4]]] * 10)
    bad = np.array([[[32, 28, 4, 1, 4]]] * 20)

    total = sum(change.weight for change in PRIOR)
    assert known(before).changes[0] == pytest.approx(PRIOR[0].weight / total)
    assert known(as_before).changes[0] > PRIOR[0].weight / total
    assert known(bad).changes[0] < 1e-6


def test_a_sceptic_trusts_less() -> None:
    """After the same good trials a sceptic gives "nothing changed" less, but by weights alone."""
    plain, sceptical = (known(ONE_ROW, sceptical=s).changes for s in (False, True))

    ratio = sceptical / plain
    given = np.array([change.sceptical / change.weight for change in PRIOR])
    assert np.allclose(ratio / ratio[0], given / given[0])
    assert sceptical[0] < plain[0]


def test_a_task_that_fails_where_it_never_did_has_become_another() -> None:
    """32 of 32, then 0 of 4: the trials to come are expected to fail, the other tasks' are not."""
    cells = np.array([[[32, 32, 4, 4, 4]]] * 20 + [[[32, 32, 4, 0, 4]]])

    drawn = Dealer.of(known(cells)).draw(0, 500, 1).mean(axis=(0, 2))

    # Tasks come out sorted by their counts: the one that fails is the first.
    assert drawn[0] < 0.6
    assert drawn[1:].min() > 3.8


def test_changes_of_chances() -> None:
    """A logit of -log 3 turns 3/4 into 1/2; erosion takes from tasks above .9 alone."""
    chances = np.array([0.0, 0.75, 1.0])

    assert shifted(-np.log(3), chances) == pytest.approx([0, 0.5, 1])
    assert eroded(0.1, np.array([0.9, 0.95])) == pytest.approx([0.9, 0.855])


def test_another_task_may_be_anything() -> None:
    """Its chances are a distribution with room at every height, and lean to the suite's."""
    suite = np.zeros(len(GRID))
    suite[-1] = 1.0

    anew = of_other_tasks(suite, GRID)

    assert anew.sum() == pytest.approx(1)
    assert anew[-1] == pytest.approx(0.3)
    assert anew[(GRID > 0) & (GRID < 0.1)].sum() > 0.1
    assert anew[(GRID > 0.3) & (GRID < 0.7)].sum() > 0.15
