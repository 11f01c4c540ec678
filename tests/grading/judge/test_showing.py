"""What a judge sees of a trial."""

from __future__ import annotations

from ci_gate.grading.judge.showing import parts_of_trial
from ci_gate.model.trial import Step, Trajectory
from tests.trials import task_of


def test_parts_are_made_of_what_is_asked_for() -> None:
    """Instruction, input, answer, steps and changes become texts; an absent input is no part."""
    task = task_of(instruction="Refund it.", input={"order": 4812, "b": "ä"})
    steps = (
        Step(kind="tool", name="refund", input={"n": 1}, output="ok"),
        Step(kind="tool", name="mail", input=None, output="x" * 5000, is_error=True),
    )
    trajectory = Trajectory(answer="Done.", steps=steps)
    names = ("instruction", "input", "answer", "steps", "state")
    parts = parts_of_trial(task, trajectory, names, state=lambda: "+ refunds: 1")
    assert list(parts) == list(names)
    assert parts["input"] == '{"b": "ä", "order": 4812}'
    first, second = parts["steps"].splitlines()
    assert first == '1. tool refund({"n": 1}) -> ok'
    assert second.startswith("2. tool mail(null) -> error xxx")
    assert second.endswith("[cut]")
    assert parts["state"] == "+ refunds: 1"
    assert list(parts_of_trial(task_of(), trajectory, names[:3], state=str)) == [
        "instruction",
        "answer",
    ]


def test_steps_are_bounded() -> None:
    """Beyond 500 steps their number is said."""
    steps = (Step(kind="tool", name="look"),) * 501
    text = parts_of_trial(task_of(), Trajectory(steps=steps), ("steps",), state=str)["steps"]
    assert text.splitlines()[-1] == "[1 more steps left out]"
    assert parts_of_trial(task_of(), Trajectory(), ("steps",), state=str) == {"steps": "no step"}
