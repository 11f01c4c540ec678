"""The command protocol with real processes: what goes in, what comes back, how it ends."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from ci_gate.agents.capture import RESULT_BYTES, Capture
from ci_gate.agents.command import last_json_line
from ci_gate.agents.results import GarbageError, trajectory_of
from ci_gate.errors import AgentSetupError
from ci_gate.model.suite import Limits
from ci_gate.model.trial import Status
from tests.agents.desks import Desk, ScriptedWorld, run_all, run_one
from tests.agents.test_failures import gone
from tests.trials import task_of, trial_of


def test_an_order_goes_in_and_the_last_json_line_comes_back(tmp_path: Path) -> None:
    """The program reads its task on standard input; what it prints besides does not count."""
    Desk(tmp_path).program(
        "agent.py",
        f"""#!{sys.executable}
import json, os, sys
order = json.load(sys.stdin)
print("thinking")
print('{{"answer": "not yet"}}')
print(json.dumps({{"answer": order["task"]["input"]["q"] + order["seed"] + order["protocol"],
                  "tokens": order["trial"], "steps": [{{"name": "look"}}]}}))
print("done, {{bye}}")
""",
    )
    trial = trial_of(task_of(input={"q": "?"}), trial=4, seed=0x1F)
    trajectory = run_one(Desk(tmp_path).command("./agent.py"), trial=trial)
    assert trajectory.status is None
    assert trajectory.answer == "?0x000000000000001fci-gate/1"
    assert trajectory.tokens == 4
    assert [step.name for step in trajectory.steps] == ["look"]


def test_the_trial_is_in_the_environment(tmp_path: Path) -> None:
    """Seed, task, trial, time and the places of the world reach programs of any language."""
    Desk(tmp_path).program(
        "agent.sh",
        """#!/bin/sh
printf '{"answer":"%s %s %s %s %s %s %s"}' "$CI_GATE_SEED" "$CI_GATE_TASK" "$CI_GATE_TRIAL" \\
  "$CI_GATE_NOW" "$CI_GATE_WORKDIR" "$CI_GATE_DB" "$PWD"
""",
    )
    world = ScriptedWorld(workdir=Path("/w"), database=Path("/d"))
    trajectory = run_one(Desk(tmp_path).command("./agent.sh"), world, trial_of(seed=1, trial=2))
    assert trajectory.answer == (
        f"0x0000000000000001 refund 2 2026-01-01T09:00:00Z /w /d {os.path.realpath(tmp_path)}"
    )


def test_the_runners_credentials_stay_with_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens and command files of the workflow are not inherited, the agent's own keys are."""
    hidden = ("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "GITHUB_ENV", "GITHUB_OUTPUT")
    for name in (*hidden, "ACTIONS_ID_TOKEN_REQUEST_URL", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "planted")
    Desk(tmp_path).program(
        "agent.py",
        f"#!{sys.executable}\nimport os\n"
        "print(sorted(k for k in os.environ if os.environ[k] == 'planted'))\nraise SystemExit(1)",
    )
    tail = run_one(Desk(tmp_path).command("./agent.py")).output_tail
    assert tail == "['OPENAI_API_KEY']\n"


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        ("exit 3", Status.FAILED, "crash: exit status 3"),
        ("echo '{\"answer\":1}'; exit 3", Status.FAILED, "crash: exit status 3"),
        ("kill -SEGV $$", Status.FAILED, "crash: signal SIGSEGV"),
        ("exit 75", Status.ERRORED, "exit status 75"),
        ("echo nothing", Status.FAILED, "garbage: no line of the standard output is a JSON"),
        ("echo '[1]'", Status.FAILED, "garbage: no line of the standard output is a JSON"),
        ("echo '{\"answer\": NaN}'", Status.FAILED, "garbage: no line of the standard output"),
        ('echo \'{"tokens": "x"}\'', Status.FAILED, "garbage: tokens is a whole number"),
        ('echo \'{"status":"failed","reason":"tired"}\'', Status.FAILED, "tired"),
        ('echo \'{"status":"errored","reason":"down"}\'', Status.ERRORED, "down"),
        ('echo \'{"status":"errored"}\'; exit 1', Status.ERRORED, "the agent says that it met"),
        ("echo 'upstream is down' >&2; exit 1", Status.ERRORED, "crash: exit status 1"),
    ],
)
def test_ends_of_a_command(tmp_path: Path, script: str, status: Status, reason: str) -> None:
    """Status, signals, garbage and claims are told apart, each with its reason."""
    Desk(tmp_path).program("agent", f"#!/bin/sh\n{script}\n")
    agent = Desk(tmp_path).command("./agent", environment_errors=("upstream is down",))
    trajectory = run_one(agent)
    assert trajectory.status is status
    assert (trajectory.reason or "").startswith(reason)


def test_a_task_larger_than_a_pipe_arrives_whole_and_may_be_ignored(tmp_path: Path) -> None:
    """Ten megabytes on standard input are fed as they are read; a program need not read them."""
    desk = Desk(tmp_path)
    desk.program(
        "reads.py",
        f"#!{sys.executable}\nimport json, sys\n"
        "print(json.dumps({'answer': str(len(json.load(sys.stdin)['task']['input']))}))",
    )
    desk.program("ignores.sh", '#!/bin/sh\necho \'{"answer":"ok"}\'\n')
    trial = trial_of(task_of(input="x" * 10_000_000))
    assert run_one(desk.command("./reads.py"), trial=trial).answer == "10000000"
    assert run_one(desk.command("./ignores.sh"), trial=trial).answer == "ok"


@pytest.mark.slow
def test_a_flood_is_drained_and_only_the_last_mebibyte_searched(tmp_path: Path) -> None:
    """200 MB cost neither memory nor much time, and a result before them is out of reach."""
    desk = Desk(tmp_path)
    flood = "head -c 200000000 /dev/zero; echo"
    desk.program("before.sh", f'#!/bin/sh\necho \'{{"answer":"lost"}}\'\n{flood}\n')
    desk.program("after.sh", f'#!/bin/sh\n{flood}\necho \'{{"answer":"found"}}\'\n')
    before = run_one(desk.command("./before.sh", timeout_s=60.0))
    assert before.reason == (
        f"garbage: no line of the standard output is a JSON object in the last {RESULT_BYTES} bytes"
    )
    assert len(before.output_tail) < 50_000
    assert run_one(desk.command("./after.sh", timeout_s=60.0)).answer == "found"


def test_a_time_out_kills_the_tree_and_a_normal_end_leaves_nothing(tmp_path: Path) -> None:
    """Descendants die with the trial, whether it ran out of time or ended by itself."""
    desk = Desk(tmp_path)
    desk.program(
        "agent.sh",
        """#!/bin/sh
sleep 300 & echo $! >> "$CI_GATE_TASK"
setsid sh -c 'echo $$ >> "$CI_GATE_TASK"; sleep 300' &
sleep 0.2
[ "$CI_GATE_TRIAL" = 0 ] && sleep 300
echo '{"answer":"ok"}'
""",
    )
    pids = tmp_path / "pids"
    task = task_of(str(pids), limits=Limits(timeout_s=0.6))
    trials = [(trial_of(task, trial=number), ScriptedWorld()) for number in (0, 1)]
    late, fine = run_all(desk.command("./agent.sh"), trials)
    assert (late.status, late.reason) == (Status.FAILED, "timeout after 0.6 s")
    assert fine.answer == "ok"
    found = [int(pid) for pid in pids.read_text().split()]
    assert len(found) == 4
    assert [pid for pid in found if not gone(pid)] == []


def test_a_background_process_that_holds_the_output_does_not_hold_the_trial(
    tmp_path: Path,
) -> None:
    """The trial ends with its process, not with the last holder of its output."""
    desk = Desk(tmp_path)
    desk.program("agent.sh", '#!/bin/sh\nsetsid sleep 300 &\necho \'{"answer":"ok"}\'\n')
    start_s = time.monotonic()
    assert run_one(desk.command("./agent.sh")).answer == "ok"
    assert time.monotonic() - start_s < 10


def open_descriptors() -> int:
    gc.collect()  # what earlier tests left open is closed now, not while this one counts
    return len(list(Path("/dev/fd").iterdir()))


def ended_children() -> int:
    """Wait for the children that have ended, and return how many there were."""
    count = 0
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            count += 1
    return count


def test_no_process_and_no_descriptor_is_left(tmp_path: Path) -> None:
    """After many trials there are as many descriptors as before, and no zombies."""
    desk = Desk(tmp_path)
    desk.program("agent.sh", '#!/bin/sh\n(sleep 0.01 &)\necho \'{"answer":"ok"}\'\n')
    agent = desk.command("./agent.sh")
    run_one(agent)
    before = open_descriptors()
    ended_children()  # those of other tests
    run_all(desk.command("./agent.sh"), [(trial_of(), ScriptedWorld()) for _ in range(20)])
    assert open_descriptors() == before
    assert ended_children() == 0


def test_a_memory_limit_holds_for_commands(tmp_path: Path) -> None:
    """A program that asks for more than ``memory_mb`` does not get it."""
    desk = Desk(tmp_path)
    desk.program("agent.py", f"#!{sys.executable}\nbytearray(500 * 2**20)\nprint('{{}}')\n")
    trajectory = run_one(desk.command("./agent.py", memory_mb=200))
    assert trajectory.reason == "crash: exit status 1"
    assert "MemoryError" in trajectory.output_tail


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./missing", "there is no file"),
        ("./plain.txt", "is not executable"),
        ("no-such-program-anywhere", "there is no program 'no-such-program-anywhere'"),
    ],
)
def test_a_program_that_cannot_be_used_is_said_before_any_trial(
    tmp_path: Path, name: str, message: str
) -> None:
    """Missing and not executable programs are errors of the set-up, by name."""
    (tmp_path / "plain.txt").write_text("text")
    with pytest.raises(AgentSetupError, match=message) as caught:
        run_one(Desk(tmp_path).command(name))
    assert caught.value.exit_code == 2
    assert caught.value.problems[0].where == "agent.command"


def test_a_script_without_a_first_line_is_an_error_of_the_set_up(tmp_path: Path) -> None:
    """What the system refuses to execute ends the run instead of failing every trial."""
    Desk(tmp_path).program("agent", "\x01\x02 no program\n")
    with pytest.raises(AgentSetupError, match="cannot be executed"):
        run_one(Desk(tmp_path).command("./agent"))


def test_a_program_on_the_search_path_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bare name is looked up on PATH, and in the root before it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(Desk(tmp_path).program("tool", "#!/bin/sh\necho '{}'\n"), folder / "other")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    assert run_one(Desk(tmp_path).command("other")).status is None
    assert run_one(Desk(tmp_path).command("tool")).status is None


def test_the_last_object_wins_among_hostile_lines() -> None:
    """Broken, nested and non-object lines are passed over, whatever they look like."""
    stdout = Capture(head_bytes=0, tail_bytes=RESULT_BYTES)
    deep = b'{"a":' * 2000 + b"1" + b"}" * 2000
    lines = (b'{"answer":"right"}\r', deep, b"{broken}", b'"text"', b"{", b"\xff{}", b"")
    stdout.add(b"\n".join(lines))
    assert last_json_line(stdout) == {"answer": "right"}


def test_no_object_is_garbage() -> None:
    """Without a JSON object there is no result."""
    with pytest.raises(GarbageError, match="no line"):
        last_json_line(Capture())


def test_results_are_plain_json_text(tmp_path: Path) -> None:
    """A result in several lines is not a result: the last line alone counts."""
    Desk(tmp_path).program(
        "agent.py", f"#!{sys.executable}\nprint({json.dumps('{')}, '}}', sep='\\n')"
    )
    assert (run_one(Desk(tmp_path).command("./agent.py")).reason or "").startswith("garbage")


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 5000, "1.7e308", "-1"]
)
def test_a_wild_amount_of_a_command_is_unknown(number: str) -> None:
    """Python's ``json.dumps`` prints some of them unasked; they cost the trial nothing."""
    stdout = Capture(head_bytes=0, tail_bytes=RESULT_BYTES)
    stdout.add(f'{{"answer": "42", "cost_usd": {number}, "tokens": 5}}\n'.encode())

    found = trajectory_of(last_json_line(stdout))

    assert (found.answer, found.cost_usd, found.tokens) == ("42", None, 5)
    assert found.beyond == ("cost_usd",)


@pytest.mark.parametrize(
    "line", ['{"answer": NaN}', '{"answer": "\\ud800", "tokens": NaN}', "{NaN}"]
)
def test_a_wild_number_elsewhere_is_no_json(line: str) -> None:
    """Only amounts may be numbers that JSON does not have; all else stays strict."""
    stdout = Capture(head_bytes=0, tail_bytes=RESULT_BYTES)
    stdout.add(line.encode())
    with pytest.raises(GarbageError, match="no line of the standard output"):
        last_json_line(stdout)
