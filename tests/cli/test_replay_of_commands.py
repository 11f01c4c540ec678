"""A command makes its calls by itself: nothing that runs it says that it was played."""

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

CONFIG = """
[[suite]]
name = "desk"
tasks = ["task.toml"]
trials = 8

[agent]
command = ["./agent.sh"]
"""
TASK = """
id = "greet"
instruction = "Say hello"

[[graders]]
type = "answer"
contains = "hello"
"""
AGENT = """#!/bin/sh
echo '{"answer": "hello", "steps": [{"name": "look", "input": {"a": 1}, "output": "x"}]}'
"""


@pytest.fixture
def recorded(place):
    """A suite of a command, and the folder of its recording."""
    for name, text in (("ci-gate.toml", CONFIG), ("task.toml", TASK), ("agent.sh", AGENT)):
        (place.path / name).write_text(text)
    (place.path / "agent.sh").chmod(0o755)
    ended = place.gate("run", "--quiet", "--trials", "8")
    assert ended.status == 0, ended.err
    return place


def test_with_an_artifact_it_is_run_live_and_that_is_said(recorded):
    """It would else look as if nothing had been called."""
    ended = recorded.gate("replay", "greet", "--artifact", ".ci-gate")

    assert ended.status == 0, ended.err
    assert "run live: no recording was used" in ended.out
    assert "played" not in ended.out


def test_its_trace_is_not_played(recorded):
    """That would run a program with whatever credentials are there."""
    ended = recorded.gate("replay", "--trace", ".ci-gate/traces/greet/0.jsonl")

    assert ended.status == 2
    assert "is of a command, which makes its calls by itself, and cannot be played" in ended.err
    assert "ci-gate trace show" in ended.err
