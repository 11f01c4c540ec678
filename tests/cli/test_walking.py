"""A replay that stops at a call, and one that asks before each."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys

import pytest

from tests.places import Place, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

CONFIG = """\
[[suite]]
name = "desk"
tasks = ["evals.toml"]
trials = 1

[agent]
python = "desk:run"

[gate]
metrics = ["pass^1"]
"""
TASK = """\
[[task]]
id = "refund"
instruction = "Refund it."

[[task.graders]]
type = "answer"
equals = "three"
"""
AGENT = """\
def run(task, env):
    for number in ("one", "two", "three"):
        answer = env.call("tool", "count", lambda to: to, to=number)
    return answer
"""


@pytest.fixture(scope="session")
def recorded_once(tmp_path_factory) -> Place:
    place = Place(tmp_path_factory.mktemp("walked") / "place")
    place.path.mkdir()
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "evals.toml").write_text(TASK)
    (place.path / "desk.py").write_text(AGENT)
    assert place.gate("run", "--quiet").status == 0
    return place


@pytest.fixture
def recorded(place, recorded_once):
    """A project with the recording of one trial of three calls, 0 to 2."""
    shutil.copytree(recorded_once.path, place.path, dirs_exist_ok=True)
    return place


def test_a_replay_stops_after_a_call(recorded):
    """What was so far is shown, and nothing is judged."""
    ended = recorded.gate("replay", "refund", "--until", "1")

    assert ended.status == 0, ended.err
    assert ended.out.splitlines()[-5:] == [
        *("    0  count(to=one)", "       -> one", "    1  count(to=two)", "       -> two"),
        "stopped after call 1: the trial is not judged",
    ]
    assert "2 of 3 recorded calls, consistent" in ended.out


def test_until_the_last_call_is_no_judgement_either(recorded):
    """Whoever asks for a stop gets one."""
    ended = recorded.gate("replay", "refund", "--until", "2")

    assert ended.status == 0
    assert ended.out.endswith("stopped after call 2: the trial is not judged\n")


@pytest.mark.parametrize(
    ("after", "until", "drift"),
    [
        ('("one", "2", "three")', "1", "drift at call 1: tool count has another input"),
        ('("one",)', "1", "drift at call 1: tool count was recorded and is not made now"),
    ],
)
def test_a_drift_before_the_stop_is_one(recorded, after, until, drift):
    """Another call, or one that is lost."""
    recorded.replace("desk.py", '("one", "two", "three")', after)

    ended = recorded.gate("replay", "refund", "--until", until)

    assert ended.status == 1
    assert drift in ended.out


def test_a_drift_behind_the_stop_is_not_met(recorded):
    """Nobody went there."""
    recorded.replace("desk.py", '"three")', '"four")')

    assert recorded.gate("replay", "refund", "--until", "1").status == 0


def test_an_agent_that_swallows_the_stop_makes_no_further_call(recorded):
    """It is told so at each."""
    recorded.replace("desk.py", "answer = env.call(", "answer = quiet(env)(")
    with (recorded.path / "desk.py").open("a") as file:
        file.write(
            "\n\ndef quiet(env):\n    def call(*a, **k):\n        try:\n"
            "            return env.call(*a, **k)\n        except BaseException:\n"
            "            return None\n    return call\n"
        )

    ended = recorded.gate("replay", "refund", "--until", "0")

    assert ended.status == 0
    assert "stopped after call 0" in ended.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "3"], "0.jsonl: there is no call 3. Its last is 2"),
        (["--until", "1", "--live"], "--live: what is run live has no recording to walk through"),
        (["--until", "1", "--trial", "5"], "there is no recording of task 'refund', trial 5"),
        (["--step"], "--step: asks before each call, and this is no terminal"),
    ],
)
def test_a_walk_that_cannot_be_is_refused(recorded, options, message):
    """No such call, no recording, nobody to ask."""
    ended = recorded.gate("replay", "refund", *options)

    assert ended.status == 2
    assert message in ended.err


def on_terminal(place, keys, *arguments):
    """Run ci-gate on a terminal of its own where keys were typed ahead; status and text."""
    ours, theirs = pty.openpty()
    os.write(ours, keys)
    process = subprocess.Popen(
        [sys.executable, "-m", "ci_gate", *arguments],
        cwd=place.path,
        env=environment({}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = bytearray()
    while True:
        try:
            some = os.read(ours, 4096)
        except OSError:  # Linux says so when the last writer is gone
            break
        if not some:
            break
        shown += some
    os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())
    return process.wait(timeout=60), plain.replace("\r\n", "\n")


def test_each_call_waits_for_enter_and_the_end_is_judged(recorded):
    """Whoever walks to the end sees the trial as any replay shows it."""
    recorded.replace("ci-gate.toml", "[agent]", "[agent]\ntimeout_s = 0.5")

    status, shown = on_terminal(recorded, b"\n\n\n", "replay", "refund", "--step")

    assert status == 0
    assert shown.count("Enter: the next call, q: stop") == 3
    assert "ok  answer" in shown
    assert shown.endswith("passed\n")


@pytest.mark.slow
@pytest.mark.parametrize("keys", [b"\nq\n", b"\n\x04"], ids=["q", "end of input"])
def test_a_walk_ends_where_somebody_stops(recorded, keys):
    """And the trial is not judged."""
    status, shown = on_terminal(recorded, keys, "replay", "refund", "--step")

    assert status == 0
    assert shown.count("count(to=two)") == 1
    assert shown.endswith("stopped after call 1: the trial is not judged\n")
