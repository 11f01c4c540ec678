"""What trials are held to, from the shell: chance, time, sockets, calls; and the same twice."""

from __future__ import annotations

import sys

import pytest

from tests.speeds import slow

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

CONFIG = """\
[[suite]]
name = "desk"
tasks = ["tasks.toml"]
seed = 7
trials = 1

[agent]
python = "desk:run"

[gate]
metrics = ["pass^1"]
"""
TASKS = """\
[[task]]
id = "refund/1"
instruction = "Refund it."

[[task.graders]]
type = "answer"
contains = "done"
"""
AGENT = """\
import random, socket, time

def run(task, env):
    env.tools.register(refund)
    thought = env.call("llm", "model-1", think, prompt="refund?")
    env.tools.call("refund", cents=env.rng.randint(1, 9))
    env.kv.set("thought", thought)
    return "done"


def think(prompt):
    return prompt


def refund(cents):
    return cents
"""


@pytest.fixture
def desk(place):
    """A project whose agent asks a model, calls a tool and keeps something."""
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "tasks.toml").write_text(TASKS)
    (place.path / "desk.py").write_text(AGENT)
    return place


def poison(desk, line):
    """Let the agent do something first; it is line 4 of its file."""
    desk.replace("desk.py", "def run(task, env):\n", f"def run(task, env):\n    {line}\n")


def test_a_strict_run_fails_trials_that_no_seed_decides(desk):
    """With the place; without the option nobody minds."""
    poison(desk, "time.time()")

    assert desk.gate("run", "--quiet").status == 0
    assert '"status":"passed"' in run_file(desk)
    assert desk.gate("run", "--quiet", "--strict-determinism").status == 0
    assert '"status":"failed","reason":"nondeterminism: time.time() at desk.py:4"' in run_file(desk)


def run_file(desk):
    """Return the text of the run file."""
    return (desk.path / ".ci-gate" / "desk.run.jsonl").read_text()


@pytest.mark.parametrize("verb", [*slow(["run"], ["replay", "refund/1", "--live"]), ["check"]])
def test_a_warning_is_in_what_the_command_says(desk, verb):
    """With how often it was seen."""
    poison(desk, "random.random(), random.random()")

    ended = desk.gate(*verb, "--strict-determinism=warn")

    assert ended.status == 0, ended.err
    said = " ".join((ended.out + ended.err).split())
    assert "Not decided by the seed: random.random() at desk.py:4, 2 times in 1 trial." in said


def test_a_strict_replay_finds_what_a_recording_hides(desk):
    """The recorded answers are the same; the agent is not."""
    poison(desk, "time.monotonic()")
    assert desk.gate("run", "--quiet").status == 0
    assert desk.gate("replay", "refund/1").status == 0

    ended = desk.gate("replay", "refund/1", "--strict-determinism")

    assert ended.status == 1
    assert "nondeterminism: time.monotonic() at desk.py:4" in ended.out


@pytest.mark.parametrize("verb", [["run"], ["check"], ["replay", "refund/1"]])
def test_a_command_cannot_be_held_to_it(desk, verb):
    """Said before anything runs, rather than seen in nothing."""
    desk.replace("ci-gate.toml", 'python = "desk:run"', 'command = ["true"]')

    ended = desk.gate(*verb, "--strict-determinism")

    assert ended.status == 2
    assert "--strict-determinism: needs a Python agent" in ended.err


def test_a_command_is_not_told_to_be_held(desk):
    """By a key that would be ignored."""
    desk.replace("ci-gate.toml", 'python = "desk:run"', 'command = ["true"]\nallow = ["llm"]')

    ended = desk.gate("run")

    assert ended.status == 2
    assert "agent.allow: needs a Python agent" in ended.err


@pytest.mark.parametrize("entry", ["", ":x", "tool:", " tool", "tool:a "])
def test_what_is_no_capability_is_refused_with_its_line(desk, entry):
    """Rather than refuse every call."""
    desk.replace("ci-gate.toml", "[gate]", f'allow = ["{entry}"]\n\n[gate]')

    ended = desk.gate("run")

    assert ended.status == 2
    assert "agent.allow" in ended.err


@pytest.mark.slow
def test_a_socket_in_a_replay_is_refused_and_named(desk):
    """Not as the calls that are no longer made because of it."""
    assert desk.gate("run", "--quiet").status == 0
    poison(desk, 'socket.create_connection(("192.0.2.7", 443), 1)')

    ended = desk.gate("replay", "refund/1")

    assert ended.status == 1
    assert "network: connect to 192.0.2.7:443 in a replay" in ended.out


@pytest.mark.slow
def test_a_capability_is_refused_in_a_replay_as_live(desk):
    """For the same reason."""
    desk.replace("ci-gate.toml", "[gate]", 'allow = ["llm", "kv"]\n\n[gate]')
    assert desk.gate("run", "--quiet").status == 0
    reason = "capability: tool refund is called where only llm, kv may be used"
    assert f'"reason":"{reason}"' in run_file(desk)

    ended = desk.gate("replay", "refund/1")

    assert ended.status == 1
    assert "2 of 2 recorded calls, consistent" in ended.out
    assert reason in ended.out


@pytest.mark.slow
def test_the_same_trial_twice_has_the_same_chain(desk):
    """Though the model answers differently each time it is asked."""
    desk.replace("desk.py", "return prompt", "return prompt, time.time_ns()")

    ended = desk.gate("trace", "verify", "--twice", "refund/1")

    assert ended.status == 0, ended.out + ended.err
    assert "The same twice: 4 calls, 1 model answer held still, sha256:" in ended.out
    assert not (desk.path / ".ci-gate" / "traces").exists()


@pytest.mark.parametrize(
    ("before", "after", "order", "said"),
    [
        ("return cents", "return random.random()", 2, "the tool answered differently"),
        *slow(
            ('prompt="refund?"', "prompt=time.time_ns()", 0, "the same call has other arguments"),
            ("env.rng.randint(1, 9)", "random.random()", 1, "the same call has other arguments"),
        ),
        ('env.kv.set("thought", thought)', "env.kv.set(str(time.time_ns()), 1)", 3, "$.key"),
    ],
    ids=["tool", "model", "arguments", "store"],
)
def test_the_first_call_that_differs_is_named(desk, before, after, order, said):
    """And what differs there."""
    desk.replace("desk.py", before, after)

    ended = desk.gate("trace", "verify", "--twice", "refund/1", "--trial", "3")

    assert ended.status == 1, ended.out + ended.err
    assert "refund/1  trial 3  run twice" in ended.out
    assert f"The first call that differs is call {order}." in ended.out
    assert said in ended.out


@pytest.mark.slow
def test_an_answer_that_differs_is_found_without_any_call(desk):
    """No call shows it."""
    (desk.path / "desk.py").write_text(
        "import time\ndef run(task, env):\n    return f'done {time.time_ns()}'\n"
    )

    ended = desk.gate("trace", "verify", "--twice", "refund/1")

    assert ended.status == 1
    assert "The calls are the same; the result is not." in ended.out


@pytest.mark.slow
def test_lanes_that_alternate_otherwise_are_another_chain(desk):
    """Each makes the same calls; nothing but the scheduler decides which comes first."""
    flag = desk.path.parent / "flag"
    (desk.path / "desk.py").write_text(
        f"import pathlib\nflag = pathlib.Path({str(flag)!r})\n"
        "def run(task, env):\n"
        "    lanes = ['a', 'b'] if flag.exists() else ['b', 'a']\n"
        "    flag.touch()\n"
        "    for lane in lanes:\n"
        "        with env.lane(lane):\n            env.kv.set(lane, 1)\n"
        "    return 'done'\n"
    )

    ended = desk.gate("trace", "verify", "--twice", "refund/1")

    assert ended.status == 1
    assert "The first call that differs is call 0." in ended.out
    assert "how the lanes alternate differs" in ended.out


def test_a_command_is_not_run_twice(desk):
    """Its models cannot be held still, so that nothing would be proven, whatever comes of it."""
    desk.replace("ci-gate.toml", 'python = "desk:run"', 'command = ["true"]')

    ended = desk.gate("trace", "verify", "--twice", "refund/1")

    assert ended.status == 2
    assert "[agent]: protocol command makes its calls by itself: its models cannot be" in ended.err


@pytest.mark.slow
def test_an_errored_trial_verifies_nothing(desk):
    """Its environment was at fault."""
    poison(desk, "return {'status': 'errored', 'reason': 'the shop is closed'}")

    ended = desk.gate("trace", "verify", "--twice", "refund/1")

    assert ended.status == 3
    assert "first: errored: the shop is closed" in ended.out


@pytest.mark.parametrize(
    "arguments", [[], ["--trial", "1"], ["a.jsonl", "--twice", "x"], ["a.jsonl", "--trial", "1"]]
)
def test_verify_takes_traces_or_a_task(desk, arguments):
    """And says which."""
    ended = desk.gate("trace", "verify", *arguments)

    assert ended.status == 2


def test_twice_needs_a_task_that_there_is(desk):
    """With the nearest name."""
    ended = desk.gate("trace", "verify", "--twice", "refund/2")

    assert ended.status == 2
    assert "Did you mean 'refund/1'?" in ended.err
