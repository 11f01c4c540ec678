"""Load a configured suite from the working tree, as this run is to measure it."""

from __future__ import annotations

from pathlib import Path

from ci_gate.config import Config, SuiteConfig
from ci_gate.gate.planning import restrict, with_trials
from ci_gate.model.suite import Suite
from ci_gate.plugins import GRADERS, grader_problems
from ci_gate.prng import parse_seed
from ci_gate.store.suites import load_suite

__all__ = ["configured_suite"]


def configured_suite(
    config: Config, suite: SuiteConfig, *, trials: int | None, task_filter: str | None
) -> Suite:
    """Return the suite with its tasks.

    Parameters
    ----------
    config : Config
    suite : SuiteConfig
        One of the configuration's.
    trials : int or None
        Instead of the suite's own number.
    task_filter : str or None
        Glob over task ids.

    Raises
    ------
    UsageError
        The task files have mistakes, or nothing matches.
    """
    loaded = load_suite(
        suite.name,
        suite.tasks,
        root=Path(config.root),
        root_seed=parse_seed(suite.seed),
        trials=suite.trials,
        known_graders=frozenset(GRADERS),
        require_graders=config.agent.protocol != "exit-code",
        agent_root=Path(config.agent.root),
        mistakes_of=grader_problems,
    )
    return restrict(with_trials(loaded, trials), task_filter)
