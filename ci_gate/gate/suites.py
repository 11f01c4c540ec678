"""A configured suite: its tasks from the working tree, and the policy that is in effect for it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ci_gate.config import Config, SuiteConfig
from ci_gate.gate.planning import restrict, with_trials
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.model.suite import Suite
from ci_gate.plugins import GRADERS, grader_problems
from ci_gate.prng import parse_seed
from ci_gate.store.suites import load_suite

__all__ = ["configured_suite", "policy_in_effect"]


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


def policy_in_effect(
    config: Config, policy: Policy, baseline: Side | None, candidate: Side
) -> Policy:
    """Leave out quarantines of other suites' tasks, which would look like mistakes here."""
    if len(config.suites) == 1:
        return policy
    known = {*candidate.tasks, *(baseline.tasks if baseline else ())}
    here = tuple(entry for entry in policy.quarantine if entry.task in known)
    return msgspec.structs.replace(policy, quarantine=here)
