"""What grading again found, as a person and a program read it."""

from __future__ import annotations

import io
import json

from ci_gate.model.regrading import Flip, Left, Regraded
from ci_gate.model.trial import Status
from ci_gate.render.regrade import regraded_json, render_regraded
from ci_gate.render.screen import console_for


def _found(flips: int) -> Regraded:
    flip = Flip(
        task="pay\x1b[2J",
        trial=1,
        repeat=2,
        seed=None,
        before=Status.PASSED,
        after=Status.FAILED,
        grader="sum",
        reason="::error::12\u202e",
    )
    left = Left(task="pay", trial=2, repeat=0, why="it has no trace")
    return Regraded(
        suite="desk",
        run="a",
        output="b",
        graded=flips,
        errored=1,
        others=0,
        flips=(flip,) * flips,
        left=(left, left),
    )


def _text(found: Regraded) -> str:
    stream = io.StringIO()
    render_regraded(found, console_for(stream, {}))
    return stream.getvalue()


def test_each_flip_has_trial_grader_and_reason_and_each_reason_its_number():
    """What comes from outside is inert."""
    text = _text(_found(1))

    assert "1.2  passed -> failed  sum: " in text
    assert "desk: 1 trial graded again; 1 outcome flipped" in text
    assert "0 from failed to passed, 1 from passed to failed; 2 left as they were" in text
    assert "  2 trials not graded again: it has no trace" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not any(line.startswith("::") for line in text.splitlines())


def test_a_screen_has_the_first_flips_and_the_json_all():
    """Ten thousand lines are no report."""
    found = _found(60)

    assert _text(found).count("passed -> failed") == 50
    assert "and 10 more; --json has all" in _text(found)
    assert len(json.loads(regraded_json(found))["flips"]) == 60
