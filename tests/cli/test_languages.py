"""Agents in any language, outside this repository: from ``ci-gate init`` to green and red."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

# Each slips in as many of a hundred trials as SLIP says, decided by the seed that it is given.
NODE = """\
import { createInterface } from "node:readline";

const SLIP = 3n;
for await (const line of createInterface({ input: process.stdin })) {
  const { task, seed } = JSON.parse(line);
  const answers = {
    greeting: () => `Hello ${task.input.customer}!`,
    sum: () => String(task.input.amounts.reduce((sum, amount) => sum + amount, 0)),
    refusal: () => "I cannot help with that.",
  };
  console.error(`thinking about ${task.id}`);
  const answer = BigInt(seed) % 100n < SLIP ? "I am not sure." : answers[task.id]();
  console.log(JSON.stringify({ answer, tokens: 7 }));
}
"""

SHELL = """\
#!/bin/sh
SLIP=3
low=${CI_GATE_SEED#??????????????}
case $CI_GATE_TASK in
  greeting) answer='Hello Ada!' ;;
  sum) answer=42 ;;
  *) answer='I cannot help with that.' ;;
esac
[ $(( 0x$low % 100 )) -ge $SLIP ] || answer='I am not sure.'
echo "thinking about $CI_GATE_TASK" >&2
echo 'a line of text before the result'
echo "{\\"answer\\": \\"$answer\\", \\"tokens\\": 7}"
"""

EXIT_CODE = """\
#!/bin/sh
SLIP=3
DOWN=refusal/2
case $1/$2 in $DOWN) echo 'the test server is down'; exit 75 ;; esac
low=${3#??????????????}
[ $(( 0x$low % 100 )) -ge $SLIP ] || { echo 'I am not sure.'; exit 1; }
"""

UNGRADED = "\n".join(
    f'[[task]]\nid = "{name}"\ninstruction = "Try."\n' for name in ("greeting", "sum", "refusal")
)


def with_agent(place, name: str, text: str, *command: str) -> None:
    """Scaffold a repository, put another agent in the toy's place, and set its bar."""
    place.git("init", "--quiet", "--initial-branch=main")
    assert place.gate("init").status == 0
    (place.path / "evals" / "toy_agent.py").unlink()
    agent = place.path / "evals" / name
    agent.write_text(text)
    agent.chmod(0o755)
    place.replace("ci-gate.toml", 'python = "toy_agent:run"', f"command = {json.dumps(command)}")
    place.replace("ci-gate.toml", "# [baseline]", "[baseline]")
    place.replace("ci-gate.toml", "# repeats = 4", "repeats = 2")
    place.commit("another agent")


def set_bar(place) -> None:
    """Commit a baseline on main and begin a change."""
    updated = place.gate("baseline", "update", "--quiet")
    assert updated.status == 0, updated.err
    place.commit("set the bar")
    place.git("switch", "--quiet", "--create", "change")


def verdict(place) -> dict:
    """Return the verdict that the last check kept."""
    return json.loads((place.path / ".ci-gate" / "example.verdict.json").read_text())


def red_tasks(place) -> list[dict]:
    """Return the tasks of the last verdict that have something to replay."""
    return [task for task in verdict(place)["tasks"] if task["replay"]]


@pytest.mark.parametrize(
    ("name", "text", "program", "edit"),
    [
        pytest.param(
            "agent.mjs",
            NODE,
            ["node", "agent.mjs"],
            ("SLIP = 3n", "SLIP = 70n"),
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(not shutil.which("node"), reason="node is not installed"),
            ],
            id="node",
        ),
        pytest.param("agent.sh", SHELL, ["./agent.sh"], ("SLIP=3", "SLIP=70"), id="shell"),
    ],
)
def test_a_command_agent_goes_from_init_to_green_and_red(place, name, text, program, edit):
    """In any language: unchanged is green, broken is red, and what the report prints replays."""
    with_agent(place, name, text, *program)
    set_bar(place)

    green = place.gate("check")
    place.replace(f"evals/{name}", *edit)
    red = place.gate("check")

    assert green.status == 0, green.err
    assert red.status == 1, red.err
    assert verdict(place)["trials"]["errored"] == 0
    command = shlex.split(red_tasks(place)[0]["replay"][0]["command"])
    replayed = place.gate(*command[1:])
    assert replayed.status == 1
    assert "I am not sure." in replayed.out


@pytest.fixture
def tested(place):
    """Return a repository whose agent is judged by the exit status of a script."""
    arguments = ["./try.sh", "{task}", "{trial}", "{seed}"]
    with_agent(place, "try.sh", EXIT_CODE, *arguments)
    for path in Path(place.path / "evals").glob("*.toml"):
        path.write_text(UNGRADED)
    place.replace("ci-gate.toml", "[agent]\n", '[agent]\nprotocol = "exit-code"\n')
    place.replace("ci-gate.toml", "# [run]", "[run]")
    place.replace("ci-gate.toml", "# retries = 3", "retries = 0")
    place.replace("ci-gate.toml", "# [gate]", "[gate]\ncurtail = false")
    place.commit("judge by exit status")
    set_bar(place)
    return place


def test_an_exit_code_agent_is_green_with_an_errored_trial_and_red_when_it_fails(tested):
    """0 is a pass, 75 is neither pass nor failure, anything else a failure."""
    green = tested.gate("check")
    errored = verdict(tested)["trials"]["errored"]
    tested.replace("evals/try.sh", "SLIP=3", "SLIP=70")
    red = tested.gate("check")

    assert green.status == 0, green.err
    assert errored == 1
    assert red.status == 1, red.err
    assert red_tasks(tested)


@pytest.mark.slow
def test_an_exit_code_agent_that_mostly_errors_is_inconclusive(tested):
    """Exit 75 on a whole task is trouble of the environment: neither green nor red."""
    tested.replace("evals/try.sh", "DOWN=refusal/2", "DOWN='refusal/*'")

    ended = tested.gate("check")

    assert ended.status == 3, ended.err
    assert "too-many-errors" in {reason["code"] for reason in verdict(tested)["reasons"]}
    assert "exit status 75" in (tested.path / ".ci-gate" / "example.run.jsonl").read_text()
