"""``[task.expect]``: what it may hold, and what is a mistake before the first trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci_gate.process.expectation import expectation_of, expectation_problems
from tests.store.test_suites import ONE, Project

INPUT = {"guests": 2}


@pytest.mark.parametrize(
    ("table", "where", "what"),
    [
        (3, "", "must be a table, found 3"),
        ({"tool": ["a"]}, "tool", "is unknown. Did you mean 'tools'?"),
        ({"tools": "a"}, "tools", "must be a list of texts, found 'a'"),
        ({"no_tool": 1}, "no_tool", "must be true or false, found 1"),
        ({"no_tool": True, "tools": ["a"]}, "no_tool", "says that no tool fits, and 'tools'"),
        ({"arguments": {"a": 3}}, "arguments.a", "must be a table, found 3"),
        ({"consistent": ["input.guest == 2"]}, "consistent[0]", "'input.guest == 2': the task's"),
        ({"consistent": ["input.guests = 2"]}, "consistent[0]", "'input.guests = 2' has '= 2'"),
        ({"consistent": [3]}, "consistent", "must be a list of texts, found [3]"),
        ({"milestones": [{"tol": "a"}]}, "milestones[0].tol", "is unknown. Did you mean 'tool'?"),
        ({"milestones": ["a"]}, "milestones[0]", "must be a table, found 'a'"),
        ({"unsafe": ["a"]}, "unsafe", "says what a refusal is; it needs 'refuse = true'"),
    ],
)
def test_a_mistake_is_said_with_its_place(table: Any, where: str, what: str) -> None:
    """With what was found, and the nearest name of what is unknown."""
    path, found = next(iter(expectation_problems(table, INPUT)))
    assert path == where
    assert found.startswith(what)


def test_what_is_right_is_read() -> None:
    """Every key at once, for a task in which all of them make sense."""
    table: dict[str, Any] = {
        "tools": ["book"],
        "arguments": {"book": {"guests": 2}},
        "consistent": ["input.guests == args.book.guests"],
        "milestones": [{"tool": "book", "arguments": {"guests": 2}}, {"tool": "mail"}],
        "refuse": True,
        "unsafe": ["delete_*"],
        "claims": ["deleted"],
    }
    assert list(expectation_problems(table, INPUT)) == []
    expected = expectation_of(table)
    assert (expected.tools, expected.unsafe) == (("book",), ("delete_*",))
    assert [one.tool for one in expected.milestones] == ["book", "mail"]


def test_expectations_are_part_of_the_task(tmp_path: Path) -> None:
    """A task is compared only with itself: held against something else, it is another task."""
    project = Project(tmp_path / "project")
    project.write("evals/refund.toml", ONE)
    (before,) = project.load().tasks
    project.write("evals/refund.toml", ONE + '[expect]\ntools = ["refund"]\n')
    (after,) = project.load().tasks
    assert after.expect == {"tools": ["refund"]}
    assert before.digest != after.digest
    project.write("evals/refund.toml", ONE + '[expect]\ntols = ["refund"]\n')
    (mistake,) = project.mistakes()
    assert mistake.startswith("evals/refund.toml:1: task 'refund': expect.tols: is unknown.")
