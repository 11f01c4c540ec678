"""A trial whose tools draw, wait and call each other is played again to the byte."""

from __future__ import annotations

import json
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

CONFIG = """\
[[suite]]
name = "desk"
tasks = ["evals/*.toml"]
seed = 7
trials = 1

[agent]
python = "desk:run"

[gate]
metrics = ["pass^1"]
"""
TASK = """\
[[task]]
id = "dice"
instruction = "Roll."
fixture = "work"

[[task.graders]]
type = "answer"
matches = "rolled"
"""
AGENT = """\
def run(task, env):
    def inner(x):
        env.clock.sleep(5)
        return env.rng.random() + x
    def outer(x):
        env.uuid()
        return env.tools.call("inner", x=x) + env.rng.random()
    env.tools.register(inner, outer)
    env.rng.shuffle(list(range(9)))
    found = env.tools.call("outer", x=1)
    files = env.shell.run("ls; pwd >&2").stdout.split()
    env.kv.set("at", [found, files, env.rng.random(), env.clock.iso(), env.uuid()])
    return "rolled " + str(env.kv.get("at"))
"""


def test_a_replay_follows_draws_and_tools_that_call_tools(place):
    """Generators and clock stand where the tools left them; one draw more is drift, and named."""
    (place.path / "evals" / "work").mkdir(parents=True)
    (place.path / "evals" / "work" / "note.txt").write_text("x")
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "evals" / "dice.toml").write_text(TASK)
    (place.path / "desk.py").write_text(AGENT)
    assert place.gate("run", "--quiet").status == 0

    replayed = place.gate("replay", "dice", "--trial", "0")
    lines = (place.path / ".ci-gate" / "traces" / "dice" / "0.jsonl").read_text().splitlines()
    place.replace("desk.py", "    env.rng.shuffle", "    env.rng.random()\n    env.rng.shuffle")
    drifted = place.gate("replay", "dice", "--trial", "0")

    assert replayed.status == 0, replayed.out + replayed.err
    assert "consistent" in replayed.out
    found = [(r["lane"], r["kind"], r["name"]) for r in map(json.loads, lines[1:-1])]
    assert found[1:-2] == [
        ("main/(outer)", "rng", "uuid"),
        ("main/(outer)/(inner)", "clock", "reads"),
        ("main/(outer)/(inner)", "rng", "draws"),
        ("main/(outer)", "tool", "inner"),
        ("main", "rng", "draws"),
        ("main/(outer)", "rng", "draws"),
        ("main", "tool", "outer"),
        ("main", "shell", "sh"),
        ("main", "rng", "draws"),
        ("main", "clock", "reads"),
        ("main", "rng", "uuid"),
        ("main", "kv", "set"),
        ("main", "kv", "get"),
    ]
    assert drifted.status != 0
    assert "rng draws has another input" in drifted.out + drifted.err
