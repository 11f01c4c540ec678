"""``grade`` on the runs of small suites: what was done is judged again, and nothing is run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ci_gate.store.runs import load_run
from tests.places import Place

_CONFIG = """
[[suite]]
name = "desk"
tasks = ["evals/*.toml"]
trials = 2

[agent]
python = "desk:run"

[gate]
metrics = ["pass^1"]
"""
_AGENT = """
from pathlib import Path

def run(task, env):
    Path("ran").write_text("x")
    if task["id"] == "broken":
        raise RuntimeError("the agent's own")
    env.files.write("note.txt", "refunded")
    env.kv.set("order", "4812")
    return "Refunded."
"""
_GRADER = """
from pathlib import Path

def note(task, trajectory, before, after):
    text = Path(after["workdir"], "note.txt").read_text()
    return text == "refunded" and trajectory["answer"] == "Refunded."
"""
_TASKS = """
[[task]]
id = "refund"
instruction = "Refund order 4812."
fixture = "start"

[[task.graders]]
type = "answer"
equals = "refunded."

[[task.graders]]
type = "python"
function = "checks:note"

[[task]]
id = "broken"
instruction = "Raise."

[[task.graders]]
type = "answer"
matches = ".*"
"""


@pytest.fixture(scope="module")
def _ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Place(tmp_path_factory.mktemp("desk"))
    for name, text in {
        "ci-gate.toml": _CONFIG,
        "desk.py": _AGENT,
        "checks.py": _GRADER,
        "evals/tasks.toml": _TASKS,
        "evals/start/order.txt": "4812\n",
    }.items():
        (place.path / name).parent.mkdir(parents=True, exist_ok=True)
        (place.path / name).write_text(text)
    assert place.gate("run", "--quiet", "--jobs", "1").status == 0
    return place.path


@pytest.fixture
def desk(_ran: Path, place: Place) -> Place:
    """Return a suite that was run, whose agent would say so if it ran again."""
    import shutil

    shutil.copytree(_ran, place.path, dirs_exist_ok=True)
    place.replace("desk.py", "def run", 'raise SystemError("it ran")\n\ndef run')
    return place


def _lines(desk: Place, name: str) -> Mapping[tuple[str, int], Mapping[str, Any]]:
    text = (desk.path / ".ci-gate" / name).read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    return {(one["task"], one["trial"]): one for one in lines if "task" in one}


def _grade(desk: Place, *options: str) -> Any:
    return desk.gate("grade", ".ci-gate/desk.run.jsonl", "--jobs", "1", *options)


def test_outcomes_flip_by_a_grader_that_was_fixed(desk):
    """The agent is not run, what it did is as recorded, and the run itself stays."""
    old = (desk.path / ".ci-gate/desk.run.jsonl").read_bytes()
    desk.replace("evals/tasks.toml", '"refunded."', '"Refunded."')

    ended = _grade(desk, "--json", "-", "--quiet")

    assert (ended.status, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert (found["graded"], found["left"]) == (4, [])
    assert [(one["task"], one["before"], one["after"]) for one in found["flips"]] == [
        ("refund", "failed", "passed"),
        ("refund", "failed", "passed"),
    ]
    assert found["flips"][0]["grader"] == "answer"
    assert (desk.path / ".ci-gate/desk.run.jsonl").read_bytes() == old
    before, after = _lines(desk, "desk.run.jsonl"), _lines(desk, "desk.regraded.run.jsonl")
    for key, line in after.items():
        same = {"seed", "attempt", "trace", "trace_digest", "duration_s", "tool_calls", "answers"}
        assert {name: line[name] for name in same} == {name: before[key][name] for name in same}
    assert after["refund", 0]["task_digest"] != before["refund", 0]["task_digest"]
    assert (after["broken", 0]["status"], after["broken", 0]["cause"]) == ("failed", "agent")
    assert "the agent's own" in after["broken", 0]["reason"]
    run = load_run(desk.path / ".ci-gate/desk.regraded.run.jsonl")
    assert run.header.regraded == load_run(desk.path / ".ci-gate/desk.run.jsonl").digest
    assert run.complete


def test_a_grader_that_raises_now_is_the_grader_s_fault(desk):
    """With its trace in the new run file; the person sees task, trial, grader and reason."""
    desk.replace("evals/tasks.toml", '"refunded."', '"Refunded."')
    assert _grade(desk, "--output", "good.run.jsonl").status == 0
    desk.replace("checks.py", "return text", "raise KeyError('no such text')\n    return text")

    (desk.path / ".ci-gate/desk.run.jsonl").write_bytes((desk.path / "good.run.jsonl").read_bytes())
    ended = _grade(desk)

    assert ended.status == 0
    assert "refund 0  passed -> failed  python: grader-error: KeyError" in ended.err
    grade = _lines(desk, "desk.regraded.run.jsonl")["refund", 0]["grades"][-1]
    assert (grade["cause"], "checks.py" in grade["detail"]) == ("grader-error", True)


def test_trials_of_which_not_all_is_known_keep_their_outcome(desk):
    """No trace, another start, a task that is gone: each is counted with its reason; status 3."""
    (desk.path / "evals/start/order.txt").write_text("4813\n")
    (desk.path / ".ci-gate/traces/broken/1.jsonl").unlink()

    ended = _grade(desk)

    assert ended.status == 3
    assert "1 trial graded again" in ended.err
    assert "2 trials not graded again: its fixture was changed since it ran" in ended.err
    assert "1 trial not graded again: its trace is not beside the run file" in ended.err
    before, after = _lines(desk, "desk.run.jsonl"), _lines(desk, "desk.regraded.run.jsonl")
    assert after["refund", 0] == before["refund", 0]
    assert after["broken", 1] == before["broken", 1]


@pytest.mark.slow
def test_a_trace_of_an_earlier_version_is_left(desk):
    """It says nothing of the answer, and to judge none would be to invent it."""
    from ci_gate.model.trace import TraceRecord
    from ci_gate.model.trace_chain import sealed
    from ci_gate.store.traces import TraceWriter, read_trace

    path = desk.path / ".ci-gate/traces/refund/0.jsonl"
    trace = read_trace(path)
    path.unlink()
    writer = TraceWriter(desk.path / ".ci-gate", path, trace.header)
    for record in trace.records[:-1]:
        assert isinstance(record, TraceRecord)
        writer.append(sealed(record, writer.head))
    head = writer.finish()
    run = desk.path / ".ci-gate/desk.run.jsonl"
    lines = [json.loads(line) for line in run.read_text().splitlines()[:-1]]
    lines[0]["plan"] = None
    for line in lines[1:]:
        if (line["task"], line["trial"]) == ("refund", 0):
            line["trace_digest"] = head
    run.write_text("".join(json.dumps(line) + "\n" for line in lines))

    ended = _grade(desk)

    assert ended.status == 3, ended.err
    assert "1 trial not graded again: its answer was not recorded" in ended.err


@pytest.mark.parametrize("what", ["trace", "content", "run"])
def test_what_was_changed_is_refused_and_nothing_is_written(desk, what):
    """A hostile file decides nothing: status 2."""
    results = desk.path / ".ci-gate"
    if what == "trace":
        path = results / "traces/refund/0.jsonl"
        path.write_text(path.read_text().replace("Refunded.", "refunded."))
    elif what == "content":
        for path in (results / "traces/.contents").rglob("*"):
            if path.is_file():
                path.write_bytes(b"x")
    else:
        path = results / "desk.run.jsonl"
        path.write_text(path.read_text().replace('"status":"failed"', '"status":"passed"'))

    ended = _grade(desk)

    assert ended.status == 2, ended.err
    assert sorted(one.name for one in results.iterdir() if "regraded" in one.name) == []


@pytest.mark.slow
def test_one_task_is_graded_again_and_the_others_stay(desk):
    """The suite's digest is not claimed for a run of two sets of graders."""
    ended = _grade(desk, "--task", "ref*", "--json", "-")

    found = json.loads(ended.out)
    assert (ended.status, found["graded"], found["others"]) == (0, 2, 2)
    before, after = _lines(desk, "desk.run.jsonl"), _lines(desk, "desk.regraded.run.jsonl")
    assert after["broken", 0] == before["broken", 0]
    assert load_run(desk.path / ".ci-gate/desk.regraded.run.jsonl").header.suite_digest is None


@pytest.mark.slow
def test_it_replaces_nothing_but_what_it_wrote(desk):
    """Neither the run that is read nor any other file."""
    assert _grade(desk, "--output", ".ci-gate/desk.run.jsonl").status == 2
    ended = _grade(desk, "--output", "desk.py")

    assert ended.status == 2
    assert "is there already, and is no run that was graded again" in ended.err
    assert [_grade(desk, "--quiet").status for _ in range(2)] == [0, 0]


@pytest.mark.slow
def test_which_trial_is_graded_first_is_not_seen(desk):
    """The new file has the order of the run, however many are graded at a time."""
    slow_first = _GRADER.replace(
        "    text = ",
        "    import time\n    first = Path('first')\n    if not first.exists():\n"
        "        first.touch()\n        time.sleep(0.5)\n    text = ",
    )
    (desk.path / "checks.py").write_text(slow_first)
    results = desk.path / ".ci-gate"

    assert _grade(desk, "--jobs", "1", "--output", str(results / "one.run.jsonl")).status == 0
    (desk.path / "first").unlink()
    assert _grade(desk, "--jobs", "4", "--output", str(results / "four.run.jsonl")).status == 0

    one, four = ((results / f"{name}.run.jsonl").read_bytes() for name in ("one", "four"))
    assert one == four
    keys = [(line["task"], line["trial"]) for line in map(json.loads, one.splitlines()[1:-1])]
    run = (results / "desk.run.jsonl").read_text().splitlines()[1:-1]
    assert sorted(keys) == sorted((line["task"], line["trial"]) for line in map(json.loads, run))
