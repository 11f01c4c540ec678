"""One trial on the screen."""

from __future__ import annotations

import io
import re

from hypothesis import given, settings

from ci_gate.model.trial import Grade, Status, Step, Trajectory, TrialRecord
from ci_gate.render.screen import console_for
from ci_gate.render.trial import render_trial
from tests.render.nasty import NASTY
from tests.speeds import examples


def printed(text: str = "refund-4812") -> list[str]:
    """Return the lines of a failed trial in which every text from outside is the one given."""
    grade = Grade(grader=text, passed=False, reason=text, detail=f"+ {text}\n{text}")
    record = TrialRecord(
        task=text, trial=3, seed="0x3", status=Status.FAILED, reason=text, grades=(grade,)
    )
    steps = [
        Step(kind="tool", name=text, input={text: text}, output=text),
        Step(kind="llm", name=text, output={text: [text]}, is_error=True, fault=text),
    ]
    stream = io.StringIO()
    console = console_for(stream, {"CI": "true"})
    render_trial(record, Trajectory(answer=text, output_tail=text), steps, console)
    return stream.getvalue().splitlines()


def test_trial_shows_steps_faults_grades_and_result() -> None:
    """A trial is shown in the order in which it happened, with its result at the end."""
    assert printed() == [
        "refund-4812  trial 3  seed 0x3",
        "    1  refund-4812(refund-4812=refund-4812)",
        "       -> refund-4812",
        "    2  llm refund-4812()",
        '       -> [fault refund-4812] {"refund-4812":["refund-4812"]}',
        "  answer: refund-4812",
        "  printed:",
        "    | refund-4812",
        "  NO  refund-4812: refund-4812",
        "      + refund-4812",
        "      refund-4812",
        "failed: refund-4812",
    ]


@settings(max_examples=examples(60))
@given(NASTY)
def test_trial_of_a_hostile_agent_is_inert(text: str) -> None:
    """Nothing an agent says or is called moves the cursor or is a command to a log."""
    for line in printed(text):
        assert line.isprintable()
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##\w*\[", line)
