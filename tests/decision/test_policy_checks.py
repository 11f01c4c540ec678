"""Which policies are refused, and that nothing is ignored in silence."""

from __future__ import annotations

import pytest

from ci_gate.decision.policy_checks import require_judgeable
from ci_gate.errors import UsageError
from ci_gate.model.policy import Guard, Policy


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"alpha": 0.0}, "policy.alpha"),
        ({"alpha": 1.0}, "policy.alpha"),
        ({"alpha": float("nan")}, "policy.alpha"),
        ({"margin": -0.1}, "policy.margin"),
        ({"margin": 1.0}, "policy.margin"),
        ({"max_errored_rate": 1.5}, "policy.max_errored_rate"),
        ({"require": "non-inferiority"}, "policy.require"),
        ({"metrics": ()}, "policy.metrics"),
        ({"metrics": ("pass^1", "pass^1")}, "listed twice"),
        ({"metrics": ("pass^0",)}, "'pass^0'"),
        ({"metrics": ("accuracy",)}, "'accuracy'"),
        ({"floors": {"pass@1": 0.5}}, "'pass@1'"),
        ({"floors": {"pass^1": 1.5}}, "policy.floors.pass^1"),
        ({"pairing": "seeds"}, "not a policy"),
        ({"alpha": "0.05"}, "not a policy"),
        ({"guards": (Guard(metric="turns"),)}, "policy.guards.turns: has no limit"),
        ({"guards": (Guard(metric="turns", max_increase=-0.1),)}, "policy.guards.turns"),
        ({"guards": (Guard(metric="turns", max_decrease=float("inf")),)}, "policy.guards.turns"),
        ({"guards": (Guard(metric="turns", max_increase=0.1),) * 2}, "has two guards"),
    ],
)
def test_an_impossible_policy_is_refused_by_name(settings: dict[str, object], names: str) -> None:
    """A policy made in Python is checked as one from a file is."""
    with pytest.raises(UsageError) as caught:
        require_judgeable(Policy(**settings))  # type: ignore[arg-type]

    assert names in str(caught.value)


def test_every_problem_is_reported_at_once() -> None:
    """Nobody has to run three times to see three mistakes."""
    with pytest.raises(UsageError) as caught:
        require_judgeable(Policy(alpha=2.0, margin=-1.0, metrics=("x",)))

    assert len(caught.value.problems) == 3


def test_the_default_policy_is_judgeable() -> None:
    """The defaults are a policy."""
    require_judgeable(Policy())
