"""The table of graders: known types are checked and built, others are named with the nearest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ci_gate.grading.answer import AnswerGrader
from ci_gate.grading.file import FileGrader
from ci_gate.grading.judge.grader import JudgeGrader
from ci_gate.grading.own import OwnGrader
from ci_gate.grading.rules import RulesGrader
from ci_gate.grading.sql import SqlGrader
from ci_gate.grading.state.grader import StateGrader
from ci_gate.plugins import GRADERS, GraderPorts, grader_problems, graders_of
from tests.trials import spec_of, task_of

OPTIONS: Mapping[str, dict[str, Any]] = {
    "answer": {"contains": "x"},
    "sql": {"query": "SELECT 1", "equals": 1},
    "file": {"path": "a.txt", "exists": True},
    "state": {"checks": [{"unchanged": True}]},
    "python": {"function": "desk:grade"},
    "rules": {"forbidden": ["delete_*"]},
    "judge": {"rubric": "It is polite."},
}


async def no_worker(function: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    raise AssertionError(f"{function} was called with {payload}")


def test_every_type_is_checked_and_built() -> None:
    """Each grader of this version is in the table, by the name that task files use."""
    specs = tuple(spec_of(name, **options) for name, options in OPTIONS.items())
    assert [problem for spec in specs for problem in grader_problems(spec)] == []
    ports = GraderPorts(call=no_worker, initial=lambda trial: {})
    built = graders_of([task_of("one", graders=specs), task_of("two")], ports)
    kinds = [RulesGrader, AnswerGrader, SqlGrader, FileGrader, StateGrader, OwnGrader, JudgeGrader]
    assert [type(one.grader) for one in built["one"]] == kinds
    assert built["two"] == ()
    assert set(OPTIONS) == set(GRADERS)


def test_unknown_types_are_named_with_the_nearest() -> None:
    """A type that there is not is refused with what it may have been meant to be."""
    assert grader_problems(spec_of("answers")) == [
        "unknown type of grader 'answers'; did you mean 'answer'?"
    ]
    assert grader_problems(spec_of("zzz")) == [
        "unknown type of grader 'zzz'; types are answer, sql, file, state, python, rules, judge"
    ]


def test_problems_of_options_come_from_the_grader() -> None:
    """What a known grader says of its options is passed on."""
    assert grader_problems(spec_of("file", path=str(Path("/etc/passwd")), exists=True)) == [
        "option 'path' must stay inside the working directory, found '/etc/passwd'"
    ]


def test_graders_are_asked_in_the_order_of_their_cost() -> None:
    """Rules first, own functions last, whatever the order in the file; equals keep it."""
    kinds = ("python", "sql", "rules", "answer")
    specs = tuple(spec_of(kind, **OPTIONS[kind]) for kind in kinds)
    ports = GraderPorts(call=no_worker, initial=lambda trial: {})
    ranked = graders_of([task_of("one", graders=specs)], ports)["one"]
    assert [type(one.grader) for one in ranked] == [
        RulesGrader, SqlGrader, AnswerGrader, OwnGrader,
    ]  # fmt: skip
    assert [one.cost for one in ranked] == sorted(one.cost for one in ranked)
