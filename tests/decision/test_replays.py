"""Which trials are named to be repeated, and how."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from ci_gate.decision.replays import MAX_REPLAYS, command_for, replays_of
from ci_gate.model.run import SideTask
from tests.speeds import examples

TEMPLATE = "ci-gate replay {task} --trial {trial}"


def keys(
    *outcomes: str, passed: set[int] | None = None, errors: str = "exclude"
) -> list[tuple[int, int]]:
    """Return (trial, repeat) of each replay."""
    found = replays_of(
        "refund",
        SideTask(outcomes=outcomes),
        errors=errors,  # type: ignore[arg-type]
        passed_before=(passed or set()).__contains__,
        template=TEMPLATE,
    )
    return [(replay.trial, replay.repeat) for replay in found]


def test_seeds_that_passed_in_the_baseline_come_first() -> None:
    """A failure on a seed that used to pass shows the change best."""
    assert keys("-+--", passed={2, 3}) == [(2, 0), (3, 0), (0, 0)]


def test_at_most_eight_are_named_in_the_order_of_trials() -> None:
    """Enough to see a pattern: the first eight, repeats of a trial side by side."""
    assert keys("----------") == [(trial, 0) for trial in range(MAX_REPLAYS)]
    assert keys("-+-", "--+") == [(0, 0), (0, 1), (1, 1), (2, 0)]


def test_errored_trials_fail_only_where_they_count_as_failures() -> None:
    """Under `exclude` an errored trial is not the agent's failure."""
    assert keys("-!.+") == [(0, 0)]
    assert keys("-!.+", errors="fail") == [(0, 0), (1, 0)]


def test_a_replay_says_its_seed_and_reason() -> None:
    """What the file knows of a failing trial stands beside its command."""
    task = SideTask(outcomes=("+-",), seeds=("0x0a", "0x0b"), reasons={(1, 0): "double refund"})

    (found,) = replays_of(
        "refund", task, errors="exclude", passed_before=lambda _: True, template=TEMPLATE
    )

    assert (found.seed, found.reason) == ("0x0b", "double refund")
    assert found.command == "ci-gate replay refund --trial 1"


def test_the_first_replays_have_the_difference() -> None:
    """Of many failing trials a few show what they left, which is enough to see it."""
    details = {(trial, 0): f"+ row {trial}" for trial in (0, 2, 3, 4)}
    task = SideTask(outcomes=("-----",), details=details)

    found = replays_of(
        "refund", task, errors="exclude", passed_before=lambda _: True, template=TEMPLATE
    )

    assert [replay.detail for replay in found] == ["+ row 0", UNSET, "+ row 2", UNSET, UNSET]


@pytest.mark.parametrize(
    ("task", "repeat", "command"),
    [
        ("refund", 0, "ci-gate replay refund --trial 3"),
        ("refund", 2, "ci-gate replay refund --trial 3 --repeat 2"),
        ("a b; rm -rf", 0, "ci-gate replay 'a b; rm -rf' --trial 3"),
        ("it's", 0, "ci-gate replay 'it'\"'\"'s' --trial 3"),
        ("{trial}", 0, "ci-gate replay '{trial}' --trial 3"),
        ("--help", 1, "ci-gate replay --trial 3 --repeat 1 -- --help"),
    ],
)
def test_commands_can_be_pasted(task: str, repeat: int, command: str) -> None:
    """Task ids are hostile: they are quoted, never filled in twice, and never read as options."""
    assert command_for(task, 3, repeat, TEMPLATE) == command


@settings(max_examples=examples(50))
@given(st.text(min_size=1).filter(lambda text: "\x00" not in text))
def test_a_shell_reads_the_task_id_back(task: str) -> None:
    """Whatever the id, a POSIX shell splits the command into exactly these words."""
    words = shlex.split(command_for(task, 3, 0, TEMPLATE))

    assert words.count(task) >= 1
    assert [word for word in words if word not in (task, "--")] == [
        word for word in ("ci-gate", "replay", "--trial", "3") if word != task
    ]
