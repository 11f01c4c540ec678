"""From two sides to a verdict, with everything that is known around them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from ci_gate.config import SuiteConfig, policy_digest
from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.decision.summary import suite_metrics
from ci_gate.gate.bar import Anchor, Bar
from ci_gate.gate.differences import task_differences
from ci_gate.gate.judge_rates import refuse_uncalibrated, refuse_unknown_judges, with_judges
from ci_gate.gate.project import Project
from ci_gate.gate.replay_command import replay_command
from ci_gate.gate.suites import policy_in_effect
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.model.verdict import Recheck, Verdict

__all__ = ["judge", "judge_without_project"]

_MOST_MOVED = 20


def judge(
    project: Project,
    suite: SuiteConfig,
    bar: Bar,
    candidate: Side,
    *,
    unchanged_agent: bool = False,
    no_credentials: bool = False,
    warnings: Sequence[str] = (),
    recheck: Recheck | None = None,
    calm: Side | None = None,
) -> Verdict:
    """Return the verdict on a candidate of a project's suite.

    Parameters
    ----------
    project : Project
    suite : SuiteConfig
    bar : Bar
        What it is held against.
    candidate : Side
    unchanged_agent : bool
        The candidate was not run because nothing changed.
    no_credentials : bool
        It was not run because a key is missing.
    warnings : sequence of str
        What was noticed while it was made.
    recheck : Recheck or None
        What base and candidate did when they were run again.
    calm : Side or None
        The candidate without faults.
    """
    policy = project.config.policy_of(suite)
    pull_request = project.judges_a_pull_request
    circumstances = Circumstances(
        baseline_status=bar.status if pull_request or bar.status == "absent" else "found",
        baseline_edited=(bar.edited or bar.anchor_edited) and pull_request,
        labelled=project.labelled,
        unchanged_agent=unchanged_agent,
        no_credentials=no_credentials,
        policy_digest=policy_digest(policy),
        provenance=_provenance(project, bar, candidate),
        replay_command=replay_command(project, suite),
        warnings=(*warnings, *_remarks(project, bar, candidate, policy)),
        recheck=recheck,
        calm=calm,
    )
    own = policy_in_effect(project.config, policy, bar.side, candidate)
    anchor = bar.anchor.side if bar.anchor else None
    refuse_uncalibrated(project, own, candidate)
    facts = compare(bar.side, candidate, own, circumstances, anchor=anchor)
    return with_judges(decide(facts, own, circumstances), project, bar.side, candidate)


def judge_without_project(
    baseline: Side | None,
    candidate: Side,
    policy: Policy,
    *,
    origin: str,
    calm: Side | None = None,
) -> Verdict:
    """Return the verdict on two files where there is no configuration."""
    refuse_unknown_judges(candidate)
    circumstances = Circumstances(
        baseline_status="absent" if baseline is None else "found",
        policy_digest=policy_digest(policy),
        provenance={"baseline": {"origin": origin}, "policy": "defaults"},
        calm=calm,
    )
    return decide(compare(baseline, candidate, policy, circumstances), policy, circumstances)


def _provenance(project: Project, bar: Bar, candidate: Side) -> Mapping[str, Any]:
    baseline: dict[str, Any] = {"origin": bar.origin}
    age = _age_days(bar, candidate)
    if bar.changed_at is not None:
        baseline["changed_at"] = bar.changed_at
    if age is not None:
        baseline["age_days"] = age
    facts = {"baseline": baseline, "policy": f"{project.path.name} of {project.policy_origin}"}
    return facts if bar.anchor is None else {**facts, "anchor": _anchor_facts(bar.anchor)}


def _anchor_facts(anchor: Anchor) -> Mapping[str, Any]:
    latest = anchor.side.runs[-1]
    facts = {"origin": anchor.origin, "agent_digest": latest.agent.digest, "model": latest.model}
    return {name: value for name, value in facts.items() if value is not None}


def _remarks(project: Project, bar: Bar, candidate: Side, policy: Policy) -> list[str]:
    remarks = [f"{edit} ({_effect_of_edits(project)})" for edit in project.edits]
    remarks += _movement(bar, policy)
    if project.is_behind:
        remarks.append(
            f"This branch does not have {project.base.explanation}: tasks and bar may have moved "
            "there, so bring it up to date before anything else."
        )
    if candidate.runs and candidate.runs[-1].agent.dirty:
        remarks.append("The agent has uncommitted changes: its digest may not tell them apart.")
    age = _age_days(bar, candidate)
    limit = project.config.baseline.max_age_days
    if age is not None and age > limit:
        remarks.append(
            f"The baseline is {age} days old (limit {limit}); `ci-gate baseline update` renews it."
        )
    if bar.edited and not project.judges_a_pull_request:
        remarks.append(
            f"The working tree has another baseline than {bar.origin}; it counts once it is there."
        )
    return remarks


def _movement(bar: Bar, policy: Policy) -> list[str]:
    """Say how the bar moves, task by task, where the label lets it."""
    if bar.side is None or bar.proposed is None:
        return []
    before = suite_metrics(bar.side, policy.ks)
    lines = [
        f"The bar moves: {metric} from {_percent(before[metric])} to {_percent(share)}."
        for metric, share in suite_metrics(bar.proposed, policy.ks).items()
    ]
    moved = task_differences(bar.side, bar.proposed)
    lines += [f"The bar moves: {one.describe()}." for one in moved[:_MOST_MOVED]]
    hidden = len(moved) - _MOST_MOVED
    return [*lines, f"The bar moves for {hidden} more tasks."] if hidden > 0 else lines


def _percent(share: float | None) -> str:
    return "nothing" if share is None else f"{share:.1%}".replace("%", " %")


def _effect_of_edits(project: Project) -> str:
    if project.labelled:
        return "edited here, in effect by the label"
    if project.policy_origin != project.base.explanation:
        return "edited here, in effect: there is no baseline yet"
    return "edited here, not in effect"


def _age_days(bar: Bar, candidate: Side) -> int | None:
    if bar.changed_at is None or candidate.created is None:
        return None
    try:
        made = datetime.datetime.fromisoformat(candidate.created)
        changed = datetime.datetime.fromisoformat(bar.changed_at)
        return max(0, (made - changed).days)
    except (ValueError, TypeError):
        # A foreign run file may say anything; without a date there is no age.
        return None
