"""``check --recheck``: a red test is asked again, and put down to change, environment or noise."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ci_gate.store.runs import load_run
from tests.places import Ended, Place, environment

CONFIG = """
[[suite]]
name = "desk"
tasks = ["evals/*.toml"]
trials = 8

[agent]
python = "desk:run"
root = "agent"
isolation = "inline"
timeout_s = 20

[run]
jobs = 2

[gate]
curtail = false

[baseline]
repeats = 1
"""
TASK = """
[[task]]
id = "{name}"
instruction = "Say yes."
"""
GRADERS = 'graders = [{ type = "answer", equals = "yes" }]'
# What lies in the folder MOOD is the environment: the same for base and candidate.
AGENT = """
import os, time

BROKEN = ()

def run(task, env):
    mood = os.environ.get("MOOD", "/nowhere")
    if os.path.exists(mood + "/bad-" + task.id):
        return "no"
    if os.path.exists(mood + "/slow"):
        time.sleep(0.05)
    if os.path.exists(mood + "/luck"):
        luck = os.open(mood + "/luck", os.O_WRONLY | os.O_APPEND)
        os.write(luck, b".")
        unlucky = os.lseek(luck, 0, os.SEEK_CUR) <= 24
        os.close(luck)
        if unlucky:
            return "no"
    return "no" if task.id in BROKEN else "yes"
"""
TASKS = ("cancel", "lookup", "refund")


class Desk:
    """A repository with a committed bar, on a branch with a change."""

    def __init__(self, place: Place, tmp_path: Path, folder: str = ".") -> None:
        self.place = Place(place.path / folder)
        self.mood = tmp_path / "mood"
        self.temporary = tmp_path / "temporary"
        self.variables = {"MOOD": str(self.mood), "TMPDIR": str(self.temporary)}

    def set_up(
        self, config: str = CONFIG, *, ignored: str = ".ci-gate", graders: str = GRADERS
    ) -> None:
        """Commit suite, agent and bar on main, and go to a branch."""
        for made in (self.mood, self.temporary, *(self.place.path / n for n in ("evals", "agent"))):
            made.mkdir(parents=True, exist_ok=True)
        self.place.git("init", "--quiet", "--initial-branch=main")
        (self.place.path / ".gitignore").write_text(ignored)
        (self.place.path / "ci-gate.toml").write_text(config)
        (self.place.path / "agent/desk.py").write_text(AGENT)
        for name in TASKS:
            (self.place.path / f"evals/{name}.toml").write_text(TASK.format(name=name) + graders)
        self.place.commit("set up")
        assert self.gate("baseline", "update", "--quiet").status == 0
        self.place.commit("set the bar")
        self.place.git("switch", "--quiet", "--create", "change")

    def gate(self, *arguments: str, **variables: str) -> Ended:
        """Run ci-gate in the environment of the desk."""
        with mock.patch.object(tempfile, "tempdir", str(self.temporary)):
            return self.place.gate(*arguments, **self.variables, **variables)

    def recheck(self, *arguments: str, **variables: str) -> Ended:
        """Check with a recheck."""
        return self.gate("check", "--recheck", *arguments, **variables)

    def breaks(self, *tasks: str) -> None:
        """Change the agent so that it fails these tasks."""
        self.place.replace("agent/desk.py", "BROKEN = ()", f"BROKEN = {tasks!r}")

    @property
    def verdict(self) -> dict[str, Any]:
        """Return the verdict that the last check kept."""
        kept = json.loads((self.place.path / ".ci-gate/desk.verdict.json").read_text())
        assert isinstance(kept, dict)
        return kept

    @property
    def codes(self) -> list[str]:
        """Return the reasons of the last check."""
        return [reason["code"] for reason in self.verdict["reasons"]]

    def run_of(self, side: str) -> Path:
        """Return the run file of a fresh side."""
        return self.place.path / f".ci-gate/desk.recheck-{side}.run.jsonl"

    def leaves_nothing(self) -> bool:
        """Return whether no work tree is left, neither on the disk nor on git's list."""
        listed = self.place.git("worktree", "list").splitlines()
        return len(listed) == 1 and not list(self.temporary.iterdir())


@pytest.fixture
def desk(place: Place, tmp_path: Path) -> Desk:
    """Return a desk with a bar of one run."""
    made = Desk(place, tmp_path)
    made.set_up()
    return made


def test_a_bad_change_is_the_change(desk: Desk) -> None:
    """The candidate fails beside a base that passes: red, and said to be the change."""
    desk.breaks("refund")

    ended = desk.recheck()

    assert ended.status == 1, ended.err
    recheck = desk.verdict["recheck"]
    assert recheck["attribution"] == "change"
    assert recheck["commit"] == desk.place.git("rev-parse", "main")
    rates = recheck["rates"]
    assert (rates["baseline"], rates["base"], rates["candidate"]) == (1.0, 1.0, 0.666667)
    refund = {task["task"]: task for task in recheck["tasks"]}["refund"]
    assert refund["base"] == {"trials": 16, "passed": 16, "errored": 0}
    assert refund["candidate"] == {"trials": 16, "passed": 0, "errored": 0}
    assert "change" in ended.err
    assert desk.leaves_nothing()


@pytest.mark.slow
def test_fresh_runs_are_kept_with_what_made_them(desk: Desk) -> None:
    """Two run files: the base's agent and commit beside the candidate's, the same seeds."""
    desk.breaks("refund")
    desk.place.commit()

    desk.recheck()

    base, candidate = load_run(desk.run_of("base")), load_run(desk.run_of("candidate"))
    assert base.header.commit == desk.place.git("rev-parse", "main")
    assert candidate.header.commit == desk.place.git("rev-parse", "HEAD")
    assert base.header.agent != candidate.header.agent
    bar = json.loads((desk.place.path / "baselines/desk.json").read_text())
    assert base.header.agent is not None
    assert base.header.agent.digest == bar["runs"][0]["agent"]["digest"]
    seeds = [
        {(r.task, r.trial, r.repeat): r.seed for r in run.records} for run in (base, candidate)
    ]
    assert seeds[0] == seeds[1]
    assert len(seeds[0]) == 3 * 16


@pytest.mark.slow
def test_the_sides_take_turns(desk: Desk) -> None:
    """What the environment does to one side in an hour it does to the other."""
    desk.breaks("refund")
    (desk.mood / "luck").write_text("." * 24)
    desk.place.replace(
        "agent/desk.py", 'os.write(luck, b".")', 'os.write(luck, b"c"); BROKEN = ("refund",)'
    )

    desk.recheck()

    trials = (desk.mood / "luck").read_text()[24 + 24 :]
    assert len(trials) == 2 * 3 * 16
    rounds = [set(trials[at : at + 3]) for at in range(0, len(trials), 3)]
    assert rounds[:4] == [{"."}, {"c"}, {"c"}, {"."}]


@pytest.mark.slow
def test_a_worse_environment_is_not_the_change(desk: Desk) -> None:
    """The base fails as well by now: inconclusive, and no task is claimed any more."""
    for name in TASKS:
        (desk.mood / f"bad-{name}").touch()

    ended = desk.recheck("--junit", "junit.xml")

    assert ended.status == 3, ended.err
    assert desk.codes == ["recheck-environment"]
    assert desk.verdict["recheck"]["attribution"] == "environment"
    assert {task["claim"] for task in desk.verdict["tasks"]} == {"suspect"}
    assert "<failure" not in (desk.place.path / "junit.xml").read_text()


@pytest.mark.slow
def test_a_bad_change_in_a_worse_environment_is_the_change(desk: Desk) -> None:
    """What the candidate loses beside the base of today is its own."""
    desk.breaks("refund")
    (desk.mood / "bad-cancel").touch()

    ended = desk.recheck()

    assert ended.status == 1, ended.err
    recheck = desk.verdict["recheck"]
    assert recheck["attribution"] == "change"
    assert recheck["environment"]["regressed"]
    assert any("made anew" in remark for remark in recheck["remarks"])


@pytest.mark.slow
def test_an_unlucky_run_is_noise(desk: Desk) -> None:
    """Neither side is worse when asked again: inconclusive, never green."""
    (desk.mood / "luck").touch()

    ended = desk.recheck()

    assert ended.status == 3, ended.err
    assert desk.codes == ["recheck-noise"]
    assert desk.verdict["recheck"]["attribution"] == "noise"


@pytest.mark.slow
def test_a_check_that_was_stopped_early_is_asked_again(place: Place, tmp_path: Path) -> None:
    """A run that ended after few rounds claims by chances, and those are asked about as well."""
    desk = Desk(place, tmp_path)
    desk.set_up(CONFIG.replace("curtail = false", "curtail = true"))
    desk.breaks("refund")

    ended = desk.recheck()

    assert ended.status == 1, ended.err
    assert desk.verdict["trials"]["stop"] == "curtailed-regressed"
    assert desk.verdict["recheck"]["attribution"] == "change"


@pytest.mark.slow
def test_a_budget_holds_for_both_together(place: Place, tmp_path: Path) -> None:
    """What the recheck costs is added to the check; beyond the budget there is no answer."""
    desk = Desk(place, tmp_path)
    desk.set_up(CONFIG.replace("trials = 8", "trials = 8\nbudget_usd = 30.0"))
    spends = 'return {"answer": "no" if task.id in BROKEN else "yes", "cost_usd": 1.0}'
    desk.place.replace("agent/desk.py", 'return "no" if task.id in BROKEN else "yes"', spends)
    desk.breaks("refund")

    ended = desk.recheck()

    assert ended.status == 1, ended.err
    assert desk.verdict["recheck"]["attribution"] is None
    assert "budget" in desk.verdict["recheck"]["problem"]
    records = load_run(desk.run_of("candidate")).records
    assert 6 <= sum(record.cost_usd or 0 for record in records) <= 8


@pytest.mark.slow
def test_another_red_rule_stays_red(desk: Desk) -> None:
    """A recheck answers for the test alone: a removed task is a fact."""
    (desk.mood / "luck").touch()
    (desk.place.path / "evals/lookup.toml").unlink()

    ended = desk.recheck()

    assert ended.status == 1, ended.err
    assert desk.codes == ["tasks-removed", "recheck-noise"]


@pytest.mark.slow
def test_a_green_check_runs_nothing_again(desk: Desk) -> None:
    """Where the test is not red there is nothing to ask."""
    ended = desk.recheck()

    assert ended.status == 0, ended.err
    assert desk.verdict["recheck"] is None
    assert not desk.run_of("base").exists()


@pytest.mark.slow
def test_setup_makes_the_base_ready(place: Place, tmp_path: Path) -> None:
    """What git does not hold the base's setup makes, in the base's own folder."""
    desk = Desk(place, tmp_path)
    setup = ["sh", "-c", "echo 'ANSWER = \"yes\"' > made.py; echo $PWD >> $MOOD/setup"]
    config = CONFIG.replace('root = "agent"', f'root = "agent"\nsetup = {json.dumps(setup)}')
    (place.path / "agent").mkdir()
    (place.path / "agent/made.py").write_text('ANSWER = "yes"')
    desk.set_up(config, ignored=".ci-gate\nmade.py\n")
    desk.place.git("switch", "--quiet", "main")
    desk.place.replace("agent/desk.py", "import os, time", "import os, time, made")
    desk.place.replace("agent/desk.py", 'else "yes"', "else made.ANSWER")
    desk.place.commit("uses what is made")
    desk.place.git("switch", "--quiet", "--force-create", "change")
    desk.breaks("refund")

    ended = desk.recheck()

    assert ended.status == 1, ended.err
    assert desk.verdict["recheck"]["attribution"] == "change"
    [ran] = (desk.mood / "setup").read_text().splitlines()
    assert ran.startswith(str(desk.temporary))
    assert desk.leaves_nothing()


@pytest.mark.slow
def test_a_setup_that_fails_leaves_the_verdict_as_it_was(place: Place, tmp_path: Path) -> None:
    """Without an attribution red stays red, and the report has the end of what setup printed."""
    desk = Desk(place, tmp_path)
    setup = '["sh", "-c", "echo no such package; exit 7"]'
    desk.set_up(CONFIG.replace('root = "agent"', f'root = "agent"\nsetup = {setup}'))
    desk.breaks("refund")
    # The change's own setup is not the base's.
    desk.place.replace("ci-gate.toml", "exit 7", "exit 0")

    ended = desk.recheck()

    assert ended.status == 1, ended.err
    recheck = desk.verdict["recheck"]
    assert recheck["attribution"] is None
    assert "exit status 7" in recheck["problem"]
    assert "no such package" in recheck["problem"]
    assert "no such package" in ended.err
    assert desk.codes[0] == "task-regressed"
    assert desk.leaves_nothing()


@pytest.mark.slow
def test_no_program_of_the_repository_runs_at_the_checkout(desk: Desk) -> None:
    """A hook and a filter that would run at every checkout do not."""
    mark = desk.mood / "ran"
    hook = desk.place.path / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    (desk.place.path / ".git/info").mkdir(exist_ok=True)
    (desk.place.path / ".git/info/attributes").write_text("* filter=evil.one\n")
    desk.place.git("config", "filter.evil.one.smudge", f"touch {mark}; cat")
    desk.place.git("config", "core.fsmonitor", f"touch {mark}; false")
    desk.breaks("refund")
    mark.unlink(missing_ok=True)

    ended = desk.recheck()

    assert desk.verdict["recheck"]["attribution"] == "change", ended.err
    assert not mark.exists()


@pytest.mark.slow
def test_a_project_in_a_subfolder_of_a_shallow_clone(place: Place, tmp_path: Path) -> None:
    """The work tree has the project where the repository has it, and needs no history."""
    (place.path / "services/a").mkdir(parents=True)
    first = Desk(place, tmp_path, "services/a")
    first.set_up()
    whole = Place(place.path)
    # The project's own repository becomes a folder of the one above.
    subprocess.run(["rm", "-rf", str(first.place.path / ".git")], check=True)
    whole.git("init", "--quiet", "--initial-branch=main")
    whole.commit("a monorepo")
    clone = tmp_path / "clone"
    whole.git("clone", "--quiet", "--depth=1", f"file://{place.path}", str(clone))
    desk = Desk(Place(clone), tmp_path, "services/a")
    desk.place.git("switch", "--quiet", "--create", "change")
    desk.breaks("refund")
    desk.place.commit()

    ended = desk.recheck(CI_GATE_BASE_REF="main")

    assert ended.status == 1, ended.err
    assert desk.verdict["recheck"]["attribution"] == "change"
    assert desk.leaves_nothing()


@pytest.mark.slow
def test_an_interrupted_recheck_leaves_no_work_tree_and_is_continued(desk: Desk) -> None:
    """^C in the middle: finished trials are kept and not run again with ``--resume``."""
    desk.breaks("refund")
    (desk.mood / "slow").touch()
    running = subprocess.Popen(
        [sys.executable, "-m", "ci_gate", "check", "--recheck", "--jobs", "1"],
        cwd=desk.place.path,
        env=environment(desk.variables),
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while _lines(desk.run_of("candidate")) < 8 and time.monotonic() < deadline:
        time.sleep(0.02)

    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)

    assert running.returncode == 130, said
    assert desk.leaves_nothing()
    kept = desk.run_of("base").read_bytes()
    assert 8 < kept.count(b"\n") < 49
    refused = desk.recheck()
    assert refused.status == 2
    assert "unfinished" in refused.err
    ended = desk.recheck("--resume")
    assert ended.status == 1, ended.err
    assert desk.verdict["recheck"]["attribution"] == "change"
    assert desk.run_of("base").read_bytes().startswith(kept)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
def test_what_a_killed_recheck_left_the_next_one_removes(desk: Desk) -> None:
    """SIGKILL leaves a work tree, on the disk and on git's list, until the next recheck."""
    setup = desk.place.path / "ci-gate.toml"
    desk.place.git("switch", "--quiet", "main")
    setup.write_text(setup.read_text().replace("[run]", 'setup = ["sleep", "300"]\n\n[run]'))
    desk.place.commit("a long setup")
    desk.place.git("switch", "--quiet", "--force-create", "change")
    desk.breaks("refund")
    running = subprocess.Popen(
        [sys.executable, "-m", "ci_gate", "check", "--recheck"],
        cwd=desk.place.path,
        env=environment(desk.variables),
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not list(desk.temporary.glob("*/ci-gate-recheck/agent/desk.py")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait(timeout=60)
    assert not desk.leaves_nothing()
    setup.write_text(setup.read_text().replace('"sleep", "300"', '"true"'))
    desk.place.git("switch", "--quiet", "main", "--merge")
    desk.place.git("checkout", "--quiet", "HEAD", "--", "agent/desk.py")
    desk.place.commit("a short setup")
    desk.place.git("switch", "--quiet", "--force-create", "change")
    desk.breaks("refund")

    ended = desk.recheck("--fresh")

    assert ended.status == 1, ended.err
    assert desk.leaves_nothing()


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_a_baseline_that_no_commit_holds_cannot_be_rechecked(desk: Desk, *, named: bool) -> None:
    """Refused before the first trial: a file, or a working tree, is not an agent to run again."""
    bar = desk.place.path / "baselines/desk.json"
    options = ["--baseline", str(bar)] if named else []
    if not named:
        desk.place.git("switch", "--quiet", "main")
        desk.place.git("rm", "--quiet", "--cached", "-r", "baselines")
        desk.place.git("commit", "--quiet", "-m", "no bar")

    ended = desk.recheck(*options)

    assert ended.status == 2
    assert "--recheck" in ended.err
    assert not (desk.place.path / ".ci-gate/desk.run.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("[run]", 'interpreter = ".venv/bin/python"\n[run]', "setup"),
        ('root = "agent"', 'root = "../elsewhere"', "outside the repository"),
    ],
)
def test_an_agent_that_no_checkout_holds_is_refused(
    desk: Desk, before: str, after: str, said: str
) -> None:
    """An untracked virtual environment, a folder elsewhere: said before the first trial."""
    desk.place.git("switch", "--quiet", "main")
    desk.place.replace("ci-gate.toml", before, after)
    desk.place.commit("an agent elsewhere")
    desk.place.git("switch", "--quiet", "--force-create", "change")

    ended = desk.recheck()

    assert ended.status == 2
    assert said in ended.err
    assert not (desk.place.path / ".ci-gate/desk.run.jsonl").exists()


@pytest.mark.slow
def test_a_program_behind_a_tracked_link_is_an_agent(place: Place, tmp_path: Path) -> None:
    """A command may be a link of the repository's own; the base has it as well."""
    desk = Desk(place, tmp_path)
    (place.path / "agent").mkdir()
    (place.path / "agent/real.sh").write_text("#!/bin/sh\nexit 0\n")
    (place.path / "agent/real.sh").chmod(0o755)
    (place.path / "agent/try").symlink_to("real.sh")
    spoken = 'command = ["./try"]\nprotocol = "exit-code"'
    config = CONFIG.replace('python = "desk:run"', spoken).replace('isolation = "inline"\n', "")
    desk.set_up(config, graders="")
    (place.path / "agent/real.sh").write_text('#!/bin/sh\n[ "$CI_GATE_TASK" != refund ]\n')

    ended = desk.recheck()

    assert ended.status == 1, ended.err
    assert desk.verdict["recheck"]["attribution"] == "change"


@pytest.mark.slow
def test_without_a_baseline_there_is_nothing_to_refuse(repository: Place) -> None:
    """A workflow that always says ``--recheck`` passes before the first baseline."""
    ended = repository.gate("check", "--recheck")

    assert ended.status == 0, ended.err
