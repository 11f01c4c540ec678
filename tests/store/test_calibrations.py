"""Files of calibrations and of labels."""

from __future__ import annotations

import json

import jsonschema
import pytest

from ci_gate.errors import FileFormatError
from ci_gate.grading.judge.calibrating import Compared, calibration_of
from ci_gate.grading.judge.question import Question
from ci_gate.store.calibrations import (
    calibration_name,
    dump_calibration,
    parse_calibration,
    parse_labels,
)
from ci_gate.store.schemas import schema

QUESTION = Question(model="judge-1", rubric="polite")
ITEMS = [
    Compared(label=at % 2 == 0, judged=at % 3 == 0, swapped=True, length=at) for at in range(9)
]
CALIBRATION = calibration_of(QUESTION, ITEMS)


def test_a_calibration_is_read_as_it_was_written() -> None:
    """The file is named by the judge's digest, holds all of it, and fits its schema."""
    content = dump_calibration(CALIBRATION)
    assert parse_calibration(content, digest=QUESTION.digest, name="x") == CALIBRATION
    assert str(calibration_name("sha256:ab")) == "judges/ab.json"
    jsonschema.validate(json.loads(content), schema("judge"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schema": "ci-gate/judge@2"}, "another version"),
        ({"digest": "sha256:other"}, "is the calibration of the judge sha256:other"),
        ({"counts": {"both_pass": -1}}, "x: "),
        ({"counts": {"both_pass": 10**30, "missed": 0, "leaked": 0, "both_fail": 0}}, "x: "),
    ],
)
def test_a_file_that_is_no_calibration_of_the_judge_is_refused(
    change: dict[str, object], told: str
) -> None:
    """Another version, another judge and impossible counts end in words."""
    fields = json.loads(dump_calibration(CALIBRATION)) | change
    with pytest.raises(FileFormatError, match=told):
        parse_calibration(json.dumps(fields).encode(), digest=QUESTION.digest, name="x")


def test_labels_are_lines_of_an_answer_and_a_mark() -> None:
    """Everything but answer and label may be left out, and empty lines are no labels."""
    first, second = parse_labels(
        b'{"answer": "a", "label": "pass"}\n\n'
        b'{"answer": "b", "label": "fail", "task": "t", "input": {"n": 1}, "model": "gpt-4o"}\n',
        name="labels.jsonl",
    )
    assert (first.answer, first.label, first.task) == ("a", "pass", None)
    assert (second.input, second.model) == ({"n": 1}, "gpt-4o")
