"""Schemas that rule graders name by a file: read, found missing, and part of the digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_gate.plugins import grader_problems
from tests.store.test_suites import Project

INLINE = """
[[graders]]
type = "rules"
arguments = { refund_order = { type = "object" } }
answer_schema = { type = "array" }
"""
NAMED = """
[[graders]]
type = "rules"
arguments = { refund_order = "schemas/refund.json" }
answer_schema = "schemas/answer.json"
"""
HEAD = 'id = "refund"\ninstruction = "Refund it."\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.write("evals/schemas/refund.json", '{"type": "object"}')
    project.write("evals/schemas/answer.json", '{"type": "array"}')
    return project


def suite_digest(project: Project, text: str) -> str:
    project.write("evals/refund.toml", HEAD + text)
    return project.load(known_graders=["rules"], mistakes_of=grader_problems).digest


def test_a_schema_in_a_file_is_the_same_as_in_the_task(project: Project) -> None:
    """Moving it changes no digest, and editing it does."""
    inline, named = suite_digest(project, INLINE), suite_digest(project, NAMED)
    project.write("evals/schemas/answer.json", '{"type": "object"}')
    assert inline == named != suite_digest(project, NAMED)


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("../../x.json", "names '../../x.json', which leaves the project"),
        ("x.json", "names 'x.json', which is no file; it is relative to its task file"),
        ("x.toml", "is 'x.toml': a JSON Schema is a table, or the name of a .json file"),
        ("bad.json", "names 'bad.json', which is not JSON: "),
        ("wrong.json", "is no JSON Schema: at type: "),
    ],
)
def test_a_file_that_is_no_schema_is_a_mistake(project: Project, name: str, mistake: str) -> None:
    """It is said at load, with the task, the grader and the option."""
    project.write("evals/bad.json", "{")
    project.write("evals/wrong.json", '{"type": "strin"}')
    text = f'[[graders]]\ntype = "rules"\narguments = {{ refund_order = "{name}" }}\n'
    project.write("evals/refund.toml", HEAD + text)
    (found,) = project.mistakes(
        "evals/*.toml", known_graders=["rules"], mistakes_of=grader_problems
    )
    assert found.startswith("evals/refund.toml:1: task 'refund': grader 'rules': option 'arguments")
    assert mistake in found


def test_the_short_form_of_an_own_grader_is_the_long_one(project: Project) -> None:
    """``grader`` beside ``graders`` is one more own grader, with the same digest."""
    long = '[[graders]]\ntype = "python"\nfunction = "desk:polite"\n'
    answer = '[[graders]]\ntype = "answer"\nequals = "ok"\n'
    project.write("evals/refund.toml", HEAD + answer + long)
    (written_out,) = project.load().tasks
    project.write("evals/refund.toml", 'grader = "desk:polite"\n' + HEAD + answer)
    (short,) = project.load().tasks
    assert short == written_out
    assert [one.options for one in short.graders][-1] == {"function": "desk:polite"}
    project.write("evals/refund.toml", HEAD + 'grader = "desk:polite"')
    assert [one.name for one in project.load().tasks[0].graders] == ["python"]
