"""A recorded incident becomes a task, whatever its trace says."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import tomli

from ci_gate.codec import digest_of
from ci_gate.model.trace import Origin, TraceHeader, TraceRecord
from ci_gate.model.trace_chain import sealed
from ci_gate.store.contents import Contents
from ci_gate.store.traces import TraceWriter, read_trace
from tests.cli.conftest import Place

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

CONFIG = """\
[[suite]]
name = "desk"
tasks = ["evals/*.toml"]
trials = 2

[agent]
python = "desk:run"

[faults]
rate_permille = 700

[gate]
metrics = ["pass^1"]
"""
TASK = """\
id = "refund/1"
instruction = "Refund it."
input = { order = 7, note = "a\\nb" }
tags = ["vip"]
fixture = "world"
limits = { tool_calls = 40 }

[[graders]]
type = "sql"
query = "SELECT cents FROM refund"
equals = [[1200]]
"""
WORLD = "CREATE TABLE refund (id INTEGER PRIMARY KEY, cents INTEGER);\n"
AGENT = """\
def run(task, env):
    @env.tools.add
    def look_up(order):
        return {"order": order, "cents": 1100}

    for _ in range(6):
        try:
            env.tools.call("look_up", order=7)
        except Exception:
            pass
    with env.world.connect() as connection:
        connection.execute("INSERT INTO refund (cents) VALUES (1100)")
    env.files.write("log.txt", "refunded")
    return {"answer": "done"}
"""


def _set_up(place):
    (place.path / "evals" / "world").mkdir(parents=True)
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "evals" / "refund.toml").write_text(TASK)
    (place.path / "evals" / "world" / "world.sql").write_text(WORLD)
    (place.path / "evals" / "world" / "order.txt").write_text("7")
    (place.path / "desk.py").write_text(AGENT)
    return place


@pytest.fixture(scope="module")
def _ran(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("incident") / "place")
    place.path.mkdir()
    ended = _set_up(place).gate("run", "--quiet")
    assert ended.status == 0, ended.err
    return place.path


@pytest.fixture
def desk(place, _ran):
    """A project whose only task failed, with its traces."""
    shutil.copytree(_ran, place.path, dirs_exist_ok=True)
    return place


def _incident(desk, trial=1):
    [path] = desk.path.glob(f".ci-gate/traces/refund-1-*/{trial}.jsonl")
    return path


def _calls(path):
    return [
        (record.name, record.input, record.output, record.fault)
        for record in read_trace(path).records
        if record.kind == "tool"
    ]


def test_the_first_trial_of_the_new_task_is_the_incident_again(desk):
    """Same seed, same faults, same world; and the task loads and runs as it was written."""
    incident = desk.path / ".ci-gate" / "incident.jsonl"  # which no later run takes away
    shutil.copy(_incident(desk), incident)

    made = desk.gate("task", "from-trace", str(_incident(desk)), "--id", "twice")
    task = desk.path / "evals/twice.toml"
    unmarked = re.sub(r"(?m)^# (?=\[\[graders|\w+ = )", "", task.read_text())
    task.write_text(unmarked)  # all of them hold of what happened
    ran = desk.gate("run", "--quiet", "--fresh", "--task", "twice")

    assert (made.status, made.out) == (0, "evals/twice.toml\n")
    assert ran.status == 0, ran.err
    types = [one["type"] for one in tomli.loads(unmarked)["graders"]]
    assert types == ["sql", "file", "state", "answer"]
    again = read_trace(desk.path / ".ci-gate/traces/twice/0.jsonl")
    assert again.header.seed == read_trace(incident).header.seed
    assert any(fault for *_, fault in _calls(incident))
    assert _calls(desk.path / ".ci-gate/traces/twice/0.jsonl") == _calls(incident)
    lines = (desk.path / ".ci-gate/desk.run.jsonl").read_text().splitlines()
    assert [json.loads(line)["status"] for line in lines[1:3]] == ["passed", "passed"]


def test_it_says_what_was_asked_and_what_happened(desk):
    """From the project, the run file and the trace; one grader is in effect."""
    desk.gate("task", "from-trace", str(_incident(desk)))

    text = (
        (desk.path / "evals/refund-1-trial-1-1ed5ac0b30.toml").read_text()
        if False
        else (next(desk.path.glob("evals/*trial*.toml")).read_text())
    )
    task = tomli.loads(text)
    assert (task["id"], task["instruction"]) == ("refund/1-trial-1", "Refund it.")
    assert task["input"] == {"order": 7, "note": "a\nb"}
    assert (task["tags"], task["limits"]) == (["vip", "incident"], {"tool_calls": 40})
    [grader] = task["graders"]
    assert grader["equals"] == [[1, 1100]]
    assert '# type = "file"\n# path = "log.txt"\n# equals = "refunded"\n' in text
    assert "# It ended so: failed: sql: expected 1200, found 1100\n" in text
    assert "#   tool look_up: 6\n" in text
    fixture = desk.path / "evals" / task["fixture"]
    assert {path.name for path in fixture.iterdir()} == {"world.sql", "order.txt"}


def test_the_trace_of_a_trial_is_replayed_from_wherever_it_lies(desk, tmp_path):
    """Task, trial and seed are those that it says; only its world has to come along."""
    shutil.move(desk.path / ".ci-gate", tmp_path / "sent")
    [trace] = tmp_path.glob("sent/traces/refund-1-*/1.jsonl")

    ended = desk.gate("replay", "--trace", str(trace))

    assert ended.status == 1
    assert "refund/1  trial 1  seed" in ended.out
    assert "consistent" in ended.out
    assert "failed: sql: expected 1200, found 1100" in ended.out


@pytest.mark.slow
def test_a_run_outside_any_suite_becomes_a_task_with_its_answer(desk):
    """What it was told is in its trace, and its project need not know it."""
    recorded = desk.gate(
        "trace", "record", "--python", "desk:run", "--instruction", "Do it.", "--input", "[1]",
        "--seed", "0x2a", "--faults", "--fixture", "evals/world",
    )  # fmt: skip
    made = desk.gate("task", "from-trace", recorded.out.strip())

    task = tomli.loads((desk.path / made.out.strip()).read_text())
    assert made.out == "evals/run-1.toml\n"
    assert (task["instruction"], task["input"]) == ("Do it.", [1])
    assert int(task["seed"], 16) ^ 0x9E3779B9 == 0x2A
    assert '# equals = "done"\n' in (desk.path / made.out.strip()).read_text()
    ran = desk.gate("run", "--quiet", "--fresh", "--task", "run-1", "--trials", "1")
    assert ran.status == 0, ran.err
    assert _calls(desk.path / ".ci-gate/traces/run-1/0.jsonl") == _calls(
        desk.path / recorded.out.strip()
    )


def test_an_artifact_is_enough_without_a_project(desk, tmp_path):
    """What cannot be known is left to fill in, and said."""
    shutil.copytree(desk.path / ".ci-gate", tmp_path / "artifact")
    [trace] = tmp_path.glob("artifact/traces/refund-1-*/1.jsonl")
    elsewhere = Place(tmp_path / "elsewhere")
    elsewhere.path.mkdir()

    made = elsewhere.gate("task", "from-trace", str(trace), "--id", "x")

    task = tomli.loads((elsewhere.path / "evals/x.toml").read_text())
    assert made.status == 0
    assert "There is no task 'refund/1' here" in made.err
    assert task["instruction"].startswith("TODO")
    assert (elsewhere.path / "evals/x.fixture/world.sql").read_text() == WORLD


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--id", "refund/1"), "there is a task 'refund/1' already. --id gives it another name."),
        (("--id", "a\nb"), "contains a control, newline"),
        (("--id", "x", "--output", "evals/refund.toml"), "evals/refund.toml: is there already."),
        (("--id", "x", "--output", "x.txt"), "must end in .toml"),
        (("--id", "x", "--output", "../x.toml"), "lies outside of the project"),
    ],
)
def test_a_name_that_is_taken_or_refused_changes_nothing(desk, options, said):
    """Status 2, and every file is as it was."""
    before = sorted(desk.path.rglob("*"))
    content = (desk.path / "evals" / "refund.toml").read_text()

    ended = desk.gate("task", "from-trace", str(_incident(desk)), *options)

    assert ended.status == 2
    assert said in ended.err
    assert sorted(desk.path.rglob("*")) == before
    assert (desk.path / "evals" / "refund.toml").read_text() == content


def test_a_fixture_that_the_suite_would_read_as_tasks_is_refused(desk):
    """It would break the suite."""
    desk.replace("ci-gate.toml", "evals/*.toml", "evals/**/*.toml")
    trace = _written(desk.path / "t.jsonl", files={"work/a.toml": b"x"})

    ended = desk.gate("task", "from-trace", str(trace), "--id", "x")

    assert ended.status == 2
    assert "the suite would read 'evals/x.fixture/a.toml', a file of the fixture" in ended.err
    assert not list(desk.path.glob("evals/x*"))


def test_a_world_that_is_not_whole_falls_back_on_the_task_of_the_trace(desk):
    """Which is said, because it may have been edited since."""
    trace = _written(
        desk.path / "t.jsonl",
        state={"files": {}, "folders": [], "withheld": "holds a secret"},
        task="refund/1",
        suite="desk",
    )
    (desk.path / "more").mkdir()

    ended = desk.gate("task", "from-trace", str(trace), "--output", "more/x.toml")

    assert ended.status == 0
    assert "No fixture could be made: the recorded state is not whole: holds a secret" in ended.err
    assert "starts in the fixture of the recorded task" in ended.err
    assert "add 'more/x.toml'" in ended.err
    assert tomli.loads((desk.path / "more/x.toml").read_text())["fixture"] == "../evals/world"


def test_nothing_is_written_through_a_link(desk, tmp_path):
    """A change could have brought it along."""
    (desk.path / "out").symlink_to(tmp_path)

    ended = desk.gate("task", "from-trace", str(_incident(desk)), "--output", "out/x.toml")

    assert ended.status == 2
    assert "is a link" in ended.err
    assert not (tmp_path / "x.toml").exists()


def _written(path, *, files=None, state=None, **header):
    """Write a trace of somebody who means no good, with a chain that is whole."""
    contents = Contents(path.parent)
    listed = {
        name: {"digest": contents.put(content), "bytes": len(content)}
        for name, content in (files or {}).items()
    }
    before = state or {"files": listed, "folders": []}
    writer = TraceWriter(path.parent, path, TraceHeader(seed="0x2a", **header))
    for order, (kind, name, output) in enumerate(
        [
            ("state", "before", before),
            ("tool", "a\n[[graders]]\x1b[31m", "x"),
            ("state", "after", before),
        ]
    ):
        record = TraceRecord(
            order=order, kind=kind, name=name, input_digest=digest_of(None), output=output
        )
        writer.append(sealed(record, writer.head))
    writer.finish()
    return path


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/evil", "a\\b", "work/../../evil", "a\0b", "."]
)
def test_a_recorded_world_cannot_leave_its_fixture(desk, name):
    """The task is made without it, and that is said."""
    trace = _written(desk.path / "t.jsonl", files={name: b"x"})

    ended = desk.gate("task", "from-trace", str(trace), "--id", "x")

    assert ended.status == 0
    assert "No fixture could be made" in ended.err
    assert sorted(path.name for path in desk.path.glob("evals/x*")) == ["x.toml"]
    assert not list(desk.path.parent.rglob("evil"))


@pytest.mark.parametrize(
    "state",
    [{"files": [], "folders": 3}, {"withheld": "holds a secret"}, {"files": {"work": {}}}, {}],
)
def test_a_state_that_is_none_makes_no_fixture(desk, state):
    """Whatever it is instead."""
    trace = _written(desk.path / "t.jsonl", state=state or {"a": 1})

    ended = desk.gate("task", "from-trace", str(trace), "--id", "x")

    assert ended.status == 0
    assert "No fixture could be made" in ended.err


def test_a_database_that_is_none_is_no_reason_to_break(desk):
    """Its bytes become the fixture; what changed in it nobody can say."""
    trace = _written(desk.path / "t.jsonl", files={"world.db": b"no database" * 100})

    ended = desk.gate("task", "from-trace", str(trace), "--id", "x")

    assert ended.status == 0
    assert "Its end cannot be compared: the database cannot be read" in ended.err
    assert (desk.path / "evals/x.db").is_file()


def test_hostile_names_and_texts_are_data(desk):
    """In the header and in calls; nothing of them is obeyed on a terminal or in the file."""
    evil = 'x"\n[[graders]]\n::error::\x1b[31m\u202e'
    origin = Origin(python="a:b", instruction=evil, input={evil: evil})
    trace = _written(desk.path / "t.jsonl", files={"work/a": b"x"}, origin=origin)

    ended = desk.gate("task", "from-trace", str(trace), "--id", "x")

    text = (desk.path / "evals/x.toml").read_text()
    task = tomli.loads(text)
    assert ended.status == 0
    assert (task["instruction"], task["input"]) == (evil, {evil: evil})
    assert len(task["graders"]) == 1
    assert not any(char in text + ended.err for char in "\x1b\u202e")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"task": "a\nb", "trial": 1}, "the id 'a\\nb-trial-1' contains a control"),
        ({"task": "../../x", "suite": "../../../etc/passwd"}, None),
        ({"task": "x" * 5000, "trial": 0}, None),
    ],
)
def test_hostile_headers_name_no_place(desk, header, said):
    """A task is a folder of a safe name, or refused."""
    trace = _written(desk.path / "t.jsonl", files={"work/a": b"x"}, **header)

    ended = desk.gate("task", "from-trace", str(trace))

    assert ended.status == (0 if said is None else 2)
    assert (said or "") in ended.err
    made = {path.parent for path in desk.path.parent.rglob("*trial-*.toml")}
    assert made <= {desk.path / "evals"}


def test_a_changed_trace_is_refused(desk):
    """Before anything is made of it."""
    trace = _written(desk.path / "t.jsonl", files={"work/a": b"x"})
    trace.write_text(trace.read_text().replace('"before"', '"befone"'))

    ended = desk.gate("task", "from-trace", str(trace), "--id", "x")

    assert ended.status == 2
    assert "was changed" in ended.err
    assert not list(desk.path.glob("evals/x*"))


@pytest.mark.slow
def test_an_incident_of_the_example_meets_its_faults_again(place):
    """The regressed desk's failing trial under a fault, as a task of the same suite."""
    source = Path(__file__).resolve().parents[2]
    shutil.copytree(source / "examples", place.path / "examples")
    shutil.copy(source / "ci-gate.toml", place.path)
    variant = {"REFUND_DESK_VARIANT": "regressed"}
    assert place.gate("run", "--quiet", "--task", "mail-new-address", **variant).status == 0
    lines = (place.path / ".ci-gate/refund-desk.run.jsonl").read_text().splitlines()[1:-1]
    trials = [json.loads(line) for line in lines]
    trial = next(one for one in trials if one["status"] == "failed" and one["faults"])
    incident = _calls(place.path / ".ci-gate" / trial["trace"])

    made = place.gate("task", "from-trace", f".ci-gate/{trial['trace']}", "--id", "again")
    ran = place.gate("run", "--quiet", "--fresh", "--task", "again", **variant)

    assert (made.status, ran.status) == (0, 0), made.err + ran.err
    assert _calls(place.path / ".ci-gate/traces/again/0.jsonl") == incident
    assert any(fault for *_, fault in incident)
