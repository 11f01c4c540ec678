"""Where the two sides come from, as their files say; shown, never judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci_gate.model.run import AgentRef, Side

__all__ = ["provenance_of"]


def provenance_of(
    baseline: Side | None, candidate: Side, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the facts of each side's file with what the caller knows besides.

    What the caller says of ``baseline`` or ``candidate`` joins the facts of the file.
    """
    facts: dict[str, Any] = {"candidate": _facts(candidate)}
    if baseline is not None:
        facts["baseline"] = _facts(baseline)
    for name, value in known.items():
        joins = isinstance(value, Mapping) and isinstance(facts.get(name), dict)
        facts[name] = {**facts[name], **value} if joins else value
    return {name: facts[name] for name in sorted(facts)}


def _facts(side: Side) -> dict[str, Any]:
    agent = side.runs[-1].agent if side.runs else AgentRef()
    facts = {
        "agent": agent.name,
        "agent_digest": agent.digest,
        "dirty": agent.dirty,
        "model": side.runs[-1].model if side.runs else None,
        "runs": len(side.runs) or None,
        "commit": side.commit,
        "created": side.created,
        "digest": side.digest,
        "suite_digest": side.suite_digest,
        "root_seed": side.root_seed,
        "faults_digest": side.faults_digest,
        "judge_digest": side.judge_digest,
        "mode": side.mode,
        "tool": side.tool,
    }
    return {name: value for name, value in facts.items() if value is not None}
