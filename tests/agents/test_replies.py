"""What a worker makes of an answer that a replay gives it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ci_gate.model.breaches import is_breach
from ci_gate.model.trial import Status
from ci_gate.ports import Observation
from tests.agents.desks import Desk, ScriptedWorld, run_one

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")


class OpaqueWorld(ScriptedWorld):
    """Answers every call with what was no plain value when it was recorded."""

    answers = True

    def answer(self, *_: Any, **__: Any) -> Observation:
        """Return the record of an object of the agent's own."""
        content = {"type": "desk.Order", "text": "<Order>"}
        return Observation(output={"$ci-gate": ["unrecordable", content]})


@pytest.mark.parametrize("caught", ["ValueError", "BaseException"])
def test_an_answer_that_cannot_be_made_again_fails_the_trial(tmp_path: Path, caught: str) -> None:
    """Also where the agent swallows it, and not by the calls that are lost after it."""
    agent = f"""
def run(task, env):
    try:
        env.call("own", "load", dict)
    except {caught}:
        pass
    return "ok"
"""
    ended = run_one(Desk(tmp_path, agent).python(), OpaqueWorld())

    assert ended.status is Status.FAILED
    assert ended.reason == (
        "replay: load cannot be replayed: its recording holds desk.Order, which no replay can make "
        "again"
    )
    assert is_breach(ended.reason)
