"""One run outside any suite is recorded, and played again from its file."""

from __future__ import annotations

import json
import sys

import pytest

from ci_gate.store.traces import read_trace
from tests.cli.conftest import Place

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

SECRET = "zebra-4711-secret"
AGENT = """\
import os
from pathlib import Path


def run(task, env):
    Path(os.environ["CALLS"]).open("a").write("x")

    @env.tools.add
    def look_up(order):
        return {"order": order, "cents": env.rng.randint(1, 10**9)}

    found = env.tools.call("look_up", order=task["input"]["order"])
    env.files.write("note.txt", task["instruction"])
    return {"answer": f"{found}"}


def broken(task, env):
    raise ValueError("no such order")
"""
COMMAND = """\
import json, os, sys
order = json.load(sys.stdin)
open(os.path.join(os.environ["CI_GATE_WORKDIR"], "x.txt"), "w").write(order["seed"])
print("hello", file=sys.stderr)
steps = [{"kind": "tool", "name": "look_up", "input": order["task"]["input"], "output": "found"}]
print(json.dumps({"answer": order["task"]["instruction"], "steps": steps}))
"""
TOLD = ("--input", '{"order": 5}', "--instruction", "Refund it.", "--seed", "0x2a")


@pytest.fixture
def desk(place):
    """An agent, and no configuration."""
    return _set_up(place)


def _set_up(place):
    (place.path / "desk.py").write_text(AGENT)
    (place.path / "desk_command.py").write_text(COMMAND)
    return place


def gate(desk, *arguments):
    """Run ci-gate with the agent's variables."""
    return desk.gate(
        *arguments, CALLS=str(desk.path.parent / "calls"), DESK_API_KEY=SECRET, PYTHONPATH=""
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("lone") / "place")
    place.path.mkdir()
    ended = gate(_set_up(place), "trace", "record", "--python", "desk:run", *TOLD)
    assert ended.status == 0, ended.err
    return place, ended


def test_a_python_agent_is_recorded_without_a_configuration(recorded):
    """Header, world, calls and how it ended are in the trace, whose place is all of the output."""
    place, ended = recorded

    trace = read_trace(place.path / ended.out.strip())
    header = json.loads((place.path / ended.out.strip()).read_text().splitlines()[0])

    assert ended.out == ".ci-gate/traces/adhoc/run-1.jsonl\n"
    assert header["origin"] == {
        "python": "desk:run",
        "command": [],
        "instruction": "Refund it.",
        "input": {"order": 5},
    }
    assert (header["seed"], header["task"]) == ("0x000000000000002a", None)
    kinds = [f"{record.kind} {record.name}" for record in trace.records if record.kind != "rng"]
    assert kinds == [
        *("state before", "tool look_up", "file write"),
        *("state after", "state result"),
    ]
    assert trace.records[-1].output["answer"].startswith("{'order': 5, 'cents': ")
    assert "tool look_up: 1 call" in ended.err
    assert "ci-gate replay --trace .ci-gate/traces/adhoc/run-1.jsonl --python desk:run" in ended.err


def test_it_is_played_again_with_the_same_answer(recorded):
    """Chance and calls are those of the recording, and no verdict is made of it."""
    place, made = recorded
    path = made.out.strip()

    ended = gate(place, "replay", "--trace", path, "--python", "desk:run")

    answer = read_trace(place.path / path).records[-1].output["answer"]
    assert ended.status == 0
    assert "3 of 3 recorded calls, consistent" in ended.out  # one of them a draw
    assert f"answer: {answer}\n" in ended.out
    assert "recorded answer is another" not in ended.out


def test_it_is_shown_with_what_the_agent_was_told(recorded):
    """There is no task in which a reader could look."""
    place, made = recorded

    ended = place.gate("trace", "show", made.out.strip())

    assert ended.out.startswith(
        "a trace outside any suite  desk:run  seed 0x000000000000002a\n"
        '       instruction: Refund it.\n       input: {"order":5}\n'
    )


def test_an_agent_that_cannot_be_started_leaves_no_trace(desk):
    """Not even the name that was held for it, which another run may then have."""
    (desk.path / "kept").mkdir()
    ended = gate(desk, "trace", "record", "--python", "gone:run", "--output", "kept/x.jsonl")

    assert ended.status == 2
    assert "'gone:run' cannot be loaded" in ended.err
    assert list((desk.path / "kept").iterdir()) == []


def test_a_function_that_only_the_trace_names_is_not_run(recorded):
    """A trace may be what anybody sent."""
    place, made = recorded
    before = (place.path.parent / "calls").read_text()

    ended = gate(place, "replay", "--trace", made.out.strip())

    assert ended.status == 2
    assert "If you trust it: --python desk:run" in ended.err
    assert (place.path.parent / "calls").read_text() == before


def test_an_agent_that_drifts_is_named_with_the_call(recorded, place):
    """Status 1: it does not do what was recorded."""
    recorded_at, made = recorded
    _set_up(place).replace("desk.py", '"note.txt"', '"other.txt"')
    path = str(recorded_at.path / made.out.strip())

    ended = gate(place, "replay", "--trace", path, "--python", "desk:run")

    assert ended.status == 1
    assert "file write has another input" in ended.out


def test_a_command_is_recorded_with_the_steps_it_reports(desk):
    """And with what it printed and left in its folder."""
    ended = gate(
        desk, "trace", "record", *TOLD, "--output", "kept/c.jsonl", "--", sys.executable,
        str(desk.path / "desk_command.py"),
    )  # fmt: skip

    records = {f"{r.kind} {r.name}": r for r in read_trace(desk.path / "kept/c.jsonl").records}
    assert (ended.status, ended.out) == (0, "kept/c.jsonl\n")
    assert records["tool look_up"].input == {"order": 5}
    assert "work/x.txt" in records["state after"].output["files"]
    assert records["state result"].output["answer"] == "Refund it."
    assert records["state result"].output["printed"].endswith("hello\n")


def test_a_failure_is_recorded_and_no_file_replaced(desk):
    """Status 1 with its reason; a second trace of the name is refused before anything runs."""
    options = ("trace", "record", "--python", "desk:broken", "--output", "x.jsonl")
    ended = gate(desk, *options)
    content = (desk.path / "x.jsonl").read_bytes()
    again = gate(desk, *options)

    assert ended.status == 1
    assert "the agent failed: ValueError: no such order" in ended.err
    assert read_trace(desk.path / "x.jsonl").records[-1].output["status"] == "failed"
    assert again.status == 2
    assert "is there already, and a trace replaces nothing" in again.err
    assert (desk.path / "x.jsonl").read_bytes() == content


def test_nothing_secret_that_the_agent_is_told_is_written(desk):
    """Not even what the user typed."""
    told = json.dumps({"order": 5, "api_key": SECRET, "text": f"use {SECRET}"})
    ended = gate(desk, "trace", "record", "--python", "desk:run", "--input", told)

    written = [path.read_bytes() for path in desk.path.rglob(".ci-gate/**/*") if path.is_file()]
    assert ended.status == 0
    assert written
    assert not any(SECRET.encode() in content for content in written)


@pytest.mark.slow
def test_the_settings_of_a_configuration_hold(desk):
    """Capabilities among them, and its own function may be replayed without being named."""
    (desk.path / "ci-gate.toml").write_text(
        '[[suite]]\nname = "desk"\ntasks = ["evals/*.toml"]\n'
        '[agent]\npython = "desk:run"\nallow = ["file"]\n'
    )
    ended = gate(desk, "trace", "record", "--python", "desk:run", *TOLD)
    again = gate(desk, "replay", "--trace", ended.out.strip())

    assert ended.status == 1
    assert "capability" in ended.err
    assert again.status == 1
    assert "capability" in again.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "Name either a Python agent by --python, or a COMMAND after --."),
        (("--python", "desk:run", "--", "true"), "Name either a Python agent"),
        (("--python", "desk"), "'desk' names no function. Write it as module:function"),
        (("--python", "desk:run", "--input", "{"), "--input {: is not JSON"),
        (("--python", "desk:run", "--input", "@gone.json"), "gone.json: there is no such file"),
        (("--python", "desk:run", "--seed", "xyz"), "--seed: a seed is hexadecimal"),
        (("--python", "desk:run", "--fixture", "gone"), "--fixture gone: there is no such file"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(desk, options, said):
    """With its place; the status is 2."""
    ended = gate(desk, "trace", "record", *options)

    assert ended.status == 2
    assert said in ended.err
    assert not (desk.path / ".ci-gate").exists()
