"""The exit-code protocol: any test command, its status the outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_gate.agents.exit_code import filled
from ci_gate.model.suite import Limits
from ci_gate.model.trial import Status
from tests.agents.desks import Desk, run_one
from tests.trials import task_of, trial_of


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        ("exit 0", Status.PASSED, None),
        ("exit 1", Status.FAILED, "exit status 1"),
        ("exit 75", Status.ERRORED, "exit status 75"),
        ("kill -TERM $$", Status.FAILED, "signal SIGTERM"),
        ("echo 'network unreachable'; exit 1", Status.ERRORED, "exit status 1"),
    ],
)
def test_the_status_is_the_outcome(
    tmp_path: Path, script: str, status: Status, reason: str | None
) -> None:
    """0 passes, 75 is errored, a configured pattern too, and anything else fails."""
    Desk(tmp_path).program("check", f"#!/bin/sh\n{script}\n")
    agent = Desk(tmp_path).exit_code("./check", environment_errors=("network unreachable",))
    trajectory = run_one(agent)
    assert (trajectory.status, trajectory.reason) == (status, reason)


def test_places_are_filled_in_without_a_shell(tmp_path: Path) -> None:
    """Hostile task ids stay one argument and are neither expanded nor executed."""
    Desk(tmp_path).program("check", '#!/bin/sh\nprintf "%s\\n" "$#" "$@"\nexit 1\n')
    hostile = "a b; touch owned $(touch owned) {seed} `touch owned`"
    agent = Desk(tmp_path).exit_code("./check", "--id={task}", "{trial}/{seed}", "{other}")
    tail = run_one(agent, trial=trial_of(task_of(hostile), trial=3, seed=16)).output_tail
    assert tail == f"3\n--id={hostile}\n3/0x0000000000000010\n{{other}}\n"
    assert not (tmp_path / "owned").exists()


def test_filling_in_keeps_what_is_no_place() -> None:
    """Braces of other kinds, as in JSON arguments, stay as they are."""
    assert filled(["{}", '{"a": 1}', "{task}{task}"], trial_of(task_of("t"))) == [
        "{}",
        '{"a": 1}',
        "tt",
    ]


def test_a_time_out_fails(tmp_path: Path) -> None:
    """A command beyond its time is killed and failed, with what it had printed."""
    Desk(tmp_path).program("check", "#!/bin/sh\necho started\nsleep 300\n")
    trial = trial_of(task_of(limits=Limits(timeout_s=0.2)))
    trajectory = run_one(Desk(tmp_path).exit_code("./check"), trial=trial)
    assert (trajectory.status, trajectory.reason) == (Status.FAILED, "timeout after 0.2 s")
    assert trajectory.output_tail == "started\n"
