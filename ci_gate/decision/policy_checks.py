"""Which policies can be judged at all; the others are refused by name, never bent.

A policy from ``ci-gate.toml`` has been checked with its file and line before; one made in Python
has not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf
from typing import Final

import msgspec

from ci_gate.errors import Problem, UsageError, printable
from ci_gate.model.policy import Policy

__all__ = ["require_judgeable"]

_METRIC: Final = re.compile(r"pass\^[1-9][0-9]{0,5}", re.ASCII)


def require_judgeable(policy: Policy) -> None:
    """Refuse a policy that is impossible.

    Raises
    ------
    UsageError
        With every problem that was found.
    """
    problems = [*_type_problems(policy)] or [
        *_range_problems(policy),
        *_metric_problems(policy),
        *_guard_problems(policy),
    ]
    if problems:
        raise UsageError.of(problems)


def _type_problems(policy: Policy) -> Iterator[Problem]:
    try:
        msgspec.convert(msgspec.to_builtins(policy), Policy)
    except (msgspec.ValidationError, TypeError) as error:
        yield Problem(what=f"this is not a policy: {printable(error)}", where="policy")


def _range_problems(policy: Policy) -> Iterator[Problem]:
    if not 0 < policy.alpha < 1:
        yield _problem("alpha", f"alpha lies between 0 and 1, found {policy.alpha}")
    if not 0 <= policy.margin < 1:
        yield _problem("margin", f"margin is at least 0 and below 1, found {policy.margin}")
    if not 0 <= policy.max_errored_rate <= 1:
        found = policy.max_errored_rate
        yield _problem("max_errored_rate", f"a rate lies between 0 and 1, found {found}")
    if policy.require == "non-inferiority" and policy.margin == 0:
        yield _problem(
            "require",
            "non-inferiority needs a margin above 0",
            "Set margin to the drop that you accept.",
        )


def _metric_problems(policy: Policy) -> Iterator[Problem]:
    if not policy.metrics:
        yield _problem("metrics", "at least one suite metric is needed", "For example pass^1.")
    if len(set(policy.metrics)) < len(policy.metrics):
        yield _problem("metrics", "a metric is listed twice")
    for metric in (*policy.metrics, *policy.floors):
        if not _METRIC.fullmatch(metric):
            yield _problem("metrics", f"{printable(metric)!r} is not a metric such as pass^8")
    for metric, floor in policy.floors.items():
        if not 0 <= floor <= 1:
            where = f"floors.{printable(metric)}"
            yield _problem(where, f"a floor lies between 0 and 1, found {floor}")


def _guard_problems(policy: Policy) -> Iterator[Problem]:
    for guard in policy.guards:
        where = f"guards.{printable(guard.metric, limit=60)}"
        limits = [x for x in (guard.max_increase, guard.max_decrease) if x is not None]
        if not limits:
            yield _problem(where, "has no limit", "Set max_increase or max_decrease.")
        if any(not 0 <= limit < inf for limit in limits):
            yield _problem(where, "a limit is a finite number, at least 0")
    metrics = [guard.metric for guard in policy.guards]
    if len(set(metrics)) < len(metrics):
        yield _problem("guards", "a metric has two guards", "Give both limits in one.")


def _problem(key: str, what: str, hint: str = "") -> Problem:
    return Problem(what=what, where=f"policy.{key}", hint=hint)
