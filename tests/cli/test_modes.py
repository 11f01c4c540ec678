"""Whole suites are answered from their recordings, strictly or by what is asked, and say so."""

from __future__ import annotations

import json
import shlex
import shutil
import sys

import pytest

from tests.cli.conftest import Place
from tests.speeds import slow

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

CONFIG = """\
[[suite]]
name = "till"
tasks = ["till.toml"]
seed = 7
trials = 2

[agent]
python = "till:run"

[gate]
metrics = ["pass^1"]
"""
TASKS = """\
[[task]]
id = "pay"
instruction = "Pay 30."
fixture = "world.sql"
graders = [{type = "sql", query = "SELECT sum(cents) FROM paid", equals = [[30]]}]

[[task]]
id = "greet"
instruction = "Say hello."
graders = [{type = "answer", equals = "hello"}]
"""
AGENT = """\
import os

EXTRA = False
AGAIN = False


def run(task, env):
    if task.id == "greet":
        return {"answer": "hello", "turns": 1}

    @env.tools.add
    def balance():
        _called()
        with env.world.connect() as world:
            return 100 - (world.execute("SELECT sum(cents) FROM paid").fetchone()[0] or 0)

    @env.tools.add
    def pay(cents):
        _called()
        with env.world.connect() as world:
            world.execute("INSERT INTO paid VALUES (?)", (cents,))
        return "paid"

    env.turn()
    before = env.tools.call("balance")
    thought = env.call("llm", "model-1", _think, prompt=f"have {before}")
    cents = thought["cents"] + (EXTRA and env.trial == 1)
    env.tools.observe("pay", cents=cents)
    if AGAIN:
        env.tools.observe("pay", cents=cents)
    return {"answer": str(env.tools.call("balance"))}


def _called():
    with open(os.environ["CALLS"], "a") as log:
        log.write("called\\n")


def _think(prompt):
    _called()
    return {"cents": 30, "model": "model-1", "usage": {"input_tokens": 10, "output_tokens": 2}}
"""


def _gate(place, *arguments):
    return place.gate(*arguments, CALLS=str(place.path.parent / "calls"))


def _calls(place):
    return len((place.path.parent / "calls").read_text().splitlines())


def _lines(place, *folder):
    path = place.path.joinpath(".ci-gate", *folder, "till.run.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def _key(line):
    return line["task"], line["trial"]


def _outcomes(place, *folder):
    return {
        (line["task"], line["trial"]): (line["status"], line["reason"])
        for line in _lines(place, *folder)[1:-1]
    }


@pytest.fixture(scope="module")
def _recorded_once(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("modes") / "place")
    place.path.mkdir()
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "till.toml").write_text(TASKS)
    (place.path / "world.sql").write_text("CREATE TABLE paid (cents INTEGER);\n")
    (place.path / "till.py").write_text(AGENT)
    ended = _gate(place, "run", "--quiet")
    assert (ended.status, ended.err) == (0, "")
    return place


@pytest.fixture
def till(place, _recorded_once):
    """Return a project whose suite was recorded, and in which no call was made since."""
    shutil.copytree(_recorded_once.path, place.path, dirs_exist_ok=True)
    (place.path.parent / "calls").write_text("")
    return place


def test_a_replay_of_unchanged_code_is_the_recorded_run_again(till):
    """Outcomes, measures, traces and times, with nothing called and nothing replaced."""
    before = (till.path / ".ci-gate" / "till.run.jsonl").read_bytes()

    ended = _gate(till, "run", "--mode", "replay", "--quiet")

    assert (ended.status, ended.err, _calls(till)) == (0, "", 0)
    (header, *trials, footer) = _lines(till, "replay")
    (_, *recorded, end) = _lines(till)
    assert sorted(trials, key=_key) == sorted(recorded, key=_key)
    assert footer == end
    assert header["mode"] == "replay"
    assert {line["tokens"] for line in trials if line["task"] == "pay"} == {12}
    assert (till.path / ".ci-gate" / "till.run.jsonl").read_bytes() == before


def test_a_trial_that_calls_otherwise_fails_with_the_call_that_differs(till):
    """The others pass as they did."""
    till.replace("till.py", "EXTRA = False", "EXTRA = True")

    ended = _gate(till, "check", "--mode", "replay", "--jobs", "2")

    assert (ended.status, _calls(till)) == (0, 0)
    assert "Passed: till (answers were recorded: replay, no baseline yet)" in ended.err
    assert _outcomes(till, "replay") == {
        ("greet", 0): ("passed", None),
        ("greet", 1): ("passed", None),
        ("pay", 0): ("passed", None),
        ("pay", 1): ("failed", "drift at call 3: tool pay has another input"),
    }
    verdict = json.loads((till.path / ".ci-gate/replay/till.verdict.json").read_text())
    assert verdict["provenance"]["candidate"]["mode"] == "replay"
    assert any("(mode replay)" in warning for warning in verdict["warnings"])


@pytest.mark.slow
def test_the_command_for_a_failing_trial_names_what_it_was_played_from(till):
    """Played alone from the same folder it fails with the same words."""
    (till.path / ".ci-gate").rename(till.path / "kept")
    till.replace("till.py", "EXTRA = False", "EXTRA = True")
    till.replace("ci-gate.toml", "[gate]", '[gate]\nfloors = { "pass^1" = 0.9 }')
    _gate(till, "check", "--mode", "replay", "--traces", "kept/traces", "--quiet")

    verdict = json.loads((till.path / ".ci-gate/replay/till.verdict.json").read_text())
    (shown,) = (one for task in verdict["tasks"] for one in task["replay"])
    command = shlex.split(shown["command"])
    alone = _gate(till, *command[1:])

    assert command[:4] == ["ci-gate", "replay", "--artifact", str(till.path / "kept")]
    assert "drift at call 3: tool pay has another input" in alone.out + alone.err


@pytest.mark.slow
def test_a_sandboxed_failure_is_replayed_from_its_own_trace(till):
    """With the faults that it met there, which were not recorded before."""
    sandboxed = '[run]\nmode = "sandboxed"\n\n[faults]\nrate_permille = 0\n'
    faults = sandboxed + 'tools = { balance = 1000 }\nkinds = ["posix"]\n\n[gate]'
    till.replace("ci-gate.toml", "[gate]", faults + '\nfloors = { "pass^1" = 0.9 }')
    _gate(till, "check", "--quiet")

    verdict = json.loads((till.path / ".ci-gate/sandboxed/till.verdict.json").read_text())
    shown = next(one for task in verdict["tasks"] for one in task["replay"])
    command = shlex.split(shown["command"])
    alone = _gate(till, *command[1:])

    assert command[:4] == ["ci-gate", "replay", "--artifact", str(till.path / ".ci-gate/sandboxed")]
    assert "ENOSPC" in shown["reason"]
    assert alone.status == 1
    assert "ENOSPC" in alone.out + alone.err
    assert "drift" not in alone.out + alone.err


def test_a_sandboxed_run_answers_what_is_asked_with_faults_on_top(till):
    """A tool fails that was recorded without a fault; the end of other calls is unknown."""
    (till.path / "ci-gate.toml").write_text(
        CONFIG.replace(
            "[gate]",
            '[run]\nmode = "sandboxed"\n\n[faults]\nrate_permille = 0\n'
            'tools = { pay = 1000 }\nkinds = ["posix"]\n\n[gate]',
        )
    )
    ended = _gate(till, "run", "--quiet")

    assert (ended.status, ended.err, _calls(till)) == (0, "", 0)
    assert {one for one, _ in _outcomes(till, "sandboxed").values()} == {"passed"}
    trials = _lines(till, "sandboxed")[1:-1]
    assert {line["faults"] for line in trials if line["task"] == "pay"} == {1}
    assert {line["duration_s"] for line in trials} == {None}


def test_the_end_of_calls_that_nobody_recorded_is_unknown(till):
    """Such a trial errors; one that asks for what was not recorded reads that."""
    till.replace("till.py", "AGAIN = False", "AGAIN = True")

    ended = _gate(till, "run", "--mode", "sandboxed", "--quiet")

    assert (ended.status, _calls(till)) == (3, 0)
    unknown = "sandboxed: no recording has just these calls, so how they leave the world is unknown"
    assert _outcomes(till, "sandboxed")["pay", 0] == ("errored", unknown)
    assert _outcomes(till, "sandboxed")["greet", 1] == ("passed", None)


def test_a_trial_without_a_recording_is_refused_before_the_first(till):
    """With how many there are, the first, and what to do."""
    next(till.path.glob(".ci-gate/traces/pay/1.jsonl")).unlink()

    ended = _gate(till, "run", "--mode", "replay")

    assert ended.status == 2
    assert "1 of 4 trials have no recording; the first is trial 1 of task 'pay'" in ended.err
    assert "ci-gate run --mode record" in ended.err
    assert not (till.path / ".ci-gate" / "replay").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--mode", "replay", "--trials", "3"), "2 of 6 trials have no recording"),
        (("run", "--mode", "replay", "--traces", "nowhere"), "nowhere: has no recordings"),
        (("run", "--traces", ".ci-gate"), "--traces: names recordings"),
        (("check", "--mode", "replay", "--recheck"), "--recheck: makes further runs"),
        (("run", "--mode", "replay", "--calm-and-chaos"), "--calm-and-chaos: makes further runs"),
    ],
)
def test_what_cannot_be_answered_is_refused(till, arguments, words):
    """By name, with exit 2, before anything ran."""
    ended = _gate(till, *arguments)

    assert (ended.status, _calls(till)) == (2, 0)
    assert words in ended.err


def test_a_changed_trace_is_refused(till):
    """It is found before the first trial, with its line."""
    path = till.path / ".ci-gate/traces/pay/0.jsonl"
    path.write_text(path.read_text().replace('"output":100', '"output":900'))

    for mode in ("replay", "sandboxed"):
        ended = _gate(till, "run", "--mode", mode)
        assert ended.status == 2
        assert "0.jsonl:3: call 1" in ended.err


def test_a_task_that_was_never_recorded_is_refused_in_a_sandbox(till):
    """Each of them, for no run file says which made no call."""
    shutil.rmtree(till.path / ".ci-gate/traces")
    (till.path / ".ci-gate/traces").mkdir()
    (till.path / ".ci-gate/till.run.jsonl").unlink()

    ended = _gate(till, "run", "--mode", "sandboxed", "--traces", ".ci-gate")

    assert ended.status == 2
    assert "2 of 2 tasks have no recording; the first is 'greet'" in ended.err


def test_no_run_is_answered_from_what_it_writes(till):
    """It would read what it has just replaced."""
    shutil.copytree(till.path / ".ci-gate/traces", till.path / ".ci-gate/replay/traces")

    ended = _gate(till, "run", "--mode", "replay", "--traces", ".ci-gate/replay/traces")

    assert ended.status == 2
    assert "holds what this run itself will write" in ended.err


def test_an_answered_run_sets_no_bar(till):
    """Neither as a file, by force or not, nor as the way in which a deep run is made."""
    assert _gate(till, "run", "--mode", "replay", "--quiet").status == 0
    path = ".ci-gate/replay/till.run.jsonl"

    given = _gate(till, "baseline", "update", path, "--force")
    till.replace("ci-gate.toml", "[gate]", '[run]\nmode = "replay"\n\n[gate]')
    deep = _gate(till, "baseline", "update")

    assert given.status == deep.status == 2
    assert "was answered from recordings (mode replay)" in given.err
    assert "all answers are recorded ones" in deep.err
    assert not (till.path / "baselines").exists()


def test_a_command_cannot_be_answered(till):
    """It makes its calls by itself, which is said before anything runs."""
    till.replace("ci-gate.toml", 'python = "till:run"', 'command = ["true"]')

    for mode in ("replay", "sandboxed"):
        ended = _gate(till, "run", "--mode", mode)
        assert ended.status == 2
        assert f"{mode} answers the calls of a Python agent" in ended.err


@pytest.mark.parametrize("mode", ["replay", *slow("sandboxed")])
def test_nothing_leaves_the_worker(till, mode):
    """A socket is refused and said, whatever the agent makes of the refusal."""
    reach = 'import socket\n    socket.create_connection(("127.0.0.1", 9))\n    env.turn()'
    till.replace("till.py", "env.turn()", reach)

    _gate(till, "run", "--mode", mode, "--quiet")

    status, reason = _outcomes(till, mode)["pay", 0]
    assert status == "failed"
    assert "network" in reason


@pytest.mark.slow
def test_steps_that_an_agent_reports_itself_are_held_to_the_recording(till):
    """They are recorded as calls, and one that differs is drift as well."""
    steps = 'return {"answer": "hello", "steps": [{"kind": "tool", "name": "wave", "input": 1}]}'
    till.replace("till.py", 'return {"answer": "hello", "turns": 1}', steps)
    _gate(till, "run", "--quiet", "--task", "greet")
    same = _gate(till, "run", "--mode", "replay", "--quiet", "--task", "greet")
    first = _outcomes(till, "replay")
    till.replace("till.py", '"input": 1', '"input": 2')

    other = _gate(till, "run", "--mode", "replay", "--quiet", "--task", "greet")

    assert (same.status, other.status) == (0, 0)
    assert set(first.values()) == {("passed", None)}
    drift = "drift at call 0: tool wave has another input"
    assert set(_outcomes(till, "replay").values()) == {("failed", drift)}
