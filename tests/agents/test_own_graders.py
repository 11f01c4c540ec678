"""Graders of the team's own run in workers, and their mistakes come back as text."""

from __future__ import annotations

import asyncio
import json
import os
import py_compile
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ci_gate.agents.own_graders import OwnGraderWorkers
from ci_gate.errors import AgentSetupError
from ci_gate.grading.own import OwnGrader
from ci_gate.model.agent import AgentSpec
from ci_gate.model.trial import Step, Trajectory
from tests.trials import BareWorld, trial_of

GRADERS = """
import os, time
class Grade:
    passed = True
    reason = None
    score = 0.5
def says(task, trajectory, before, after):
    steps = [step.name for step in trajectory.steps]
    return trajectory.answer == "yes" and steps == ["look"] and before["database"] is None
def score(*_): return 0.25
def table(*_): return {"passed": False, "reason": "no"}
def grade(*_): return Grade()
async def later(*_): return True
def words(*_): return "fine"
def raises(*_): raise ValueError("broken")
def exits(*_): os._exit(2)
def hangs(*_): time.sleep(60)
"""


def call(root: Path, *functions: str, timeout_s: float = 20.0) -> list[Mapping[str, Any]]:
    (root / "judges.py").write_text(GRADERS)
    workers = OwnGraderWorkers(spec(root), timeout_s=timeout_s)
    payload = {
        "task": {"id": "t"},
        "trajectory": {"answer": "yes", "steps": [{"name": "look"}]},
        "before": {"database": None},
        "after": {"database": None},
    }

    async def run() -> list[Mapping[str, Any]]:
        try:
            return [await workers.call(function, payload) for function in functions]
        finally:
            await workers.close()

    return asyncio.run(run())


def spec(root: Path) -> AgentSpec:
    return AgentSpec(protocol="command", root=str(root), interpreter=sys.executable)


def test_grades_of_every_form_come_back(tmp_path: Path) -> None:
    """Truth values, scores, tables, objects and asynchronous graders give a result."""
    functions = ("says", "score", "table", "grade", "later", "words", "raises")
    *found, raised = call(tmp_path, *(f"judges:{name}" for name in functions))
    assert [reply["result"] for reply in found] == [
        True,
        0.25,
        {"passed": False, "reason": "no"},
        {"passed": True, "score": 0.5, "reason": None},
        True,
        "str fine",
    ]
    assert raised["error"].startswith("ValueError: broken (judges.py:")
    assert '  File "judges.py", line ' in raised["trace"]
    assert str(tmp_path) not in raised["trace"]
    assert raised["trace"].rstrip().endswith("ValueError: broken")


@pytest.mark.slow
def test_a_grader_that_fails_is_an_error_and_the_next_is_fine(tmp_path: Path) -> None:
    """Exceptions, exits, time-outs and missing functions are told, and do not spread."""
    names = ("raises", "exits", "hangs", "missing", "score")
    found = call(tmp_path, *(f"judges:{name}" for name in names), timeout_s=0.5)
    assert [reply.get("error", "")[:30] for reply in found] == [
        "ValueError: broken (judges.py:",
        "crash: exit status 2",
        "timeout after 0.5 s",
        "AttributeError: module 'judges",
        "",
    ]


@pytest.mark.slow
def test_the_grader_of_the_gate_works_with_these_workers(tmp_path: Path) -> None:
    """Both sides of the port agree on what is sent and what comes back."""
    (tmp_path / "judges.py").write_text(GRADERS)
    workers = OwnGraderWorkers(spec(tmp_path))
    trajectory = Trajectory(answer="yes", steps=(Step(kind="tool", name="look"),))

    async def run() -> list[bool]:
        try:
            graders = [
                OwnGrader(
                    name,
                    f"judges:{name}",
                    call=workers.call,
                    initial=lambda _: {"database": None, "workdir": None},
                )
                for name in ("says", "table", "raises", "words")
            ]
            grades = [await g.grade(trial_of(), trajectory, BareWorld()) for g in graders]
            return [grade.passed for grade in grades]
        finally:
            await workers.close()

    assert asyncio.run(run()) == [True, False, False, False]


def test_an_interpreter_that_is_missing_is_an_error_of_the_set_up(tmp_path: Path) -> None:
    """Without a Python for the graders nothing can be judged, and that is said."""
    broken = AgentSpec(protocol="command", root=str(tmp_path), interpreter="./missing")
    with pytest.raises(AgentSetupError, match="there is no file"):
        asyncio.run(OwnGraderWorkers(broken).call("judges:says", {}))


LENIENT = "def judge(*_): return True\n"
STRICT = "def judge(*_): return False\n"


def judged_after(root: Path, change: Callable[[], object], *functions: str) -> list[Any]:
    """Start the graders, change their files as an agent could, and ask each once."""
    workers = OwnGraderWorkers(spec(root))
    payload: dict[str, Any] = {"task": {}, "trajectory": {}, "before": None, "after": None}

    async def run() -> list[Any]:
        try:
            await workers.start(functions)
            change()
            replies = [await workers.call(function, payload) for function in functions]
            return [reply.get("result", reply.get("error")) for reply in replies]
        finally:
            await workers.close()

    return asyncio.run(run())


def test_what_was_imported_before_the_agent_is_what_judges(tmp_path: Path) -> None:
    """A grader that is rewritten after the start, or only then written, changes nothing."""
    strict, late = tmp_path / "strict.py", tmp_path / "late.py"
    strict.write_text(STRICT)

    def change() -> None:
        strict.write_text(LENIENT)
        late.write_text(LENIENT)

    found = judged_after(tmp_path, change, "strict:judge", "late:judge")
    assert found[0] is False
    assert str(found[1]).startswith("ModuleNotFoundError: No module named 'late'")


@pytest.mark.slow
def test_a_committed_cache_is_not_taken_for_the_source(tmp_path: Path) -> None:
    """Graders are compiled from what a reviewer reads, whatever stands in ``__pycache__``."""
    source = tmp_path / "strict.py"
    source.write_text(LENIENT)
    cache = py_compile.compile(
        str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    source.write_text(STRICT)
    assert Path(str(cache)).parent.parent == tmp_path
    assert judged_after(tmp_path, lambda: None, "strict:judge") == [False]


def test_without_graders_of_the_teams_own_no_worker_is_started(tmp_path: Path) -> None:
    """A suite that needs no such grader needs no Python for them either."""
    broken = AgentSpec(protocol="command", root=str(tmp_path), interpreter="./missing")
    asyncio.run(OwnGraderWorkers(broken).start([]))
    with pytest.raises(AgentSetupError):
        asyncio.run(OwnGraderWorkers(broken).start(["judges:says"]))


@pytest.mark.slow
def test_a_grader_that_ends_the_process_while_imported_is_an_error_of_the_set_up(
    tmp_path: Path,
) -> None:
    """Nothing could be judged, which is said before the agent has started."""
    (tmp_path / "ends.py").write_text("import os; os._exit(7)")
    with pytest.raises(AgentSetupError, match=r"ended while loading \(crash: exit status 7\)"):
        judged_after(tmp_path, lambda: None, "ends:judge")


@pytest.mark.slow
def test_an_agent_that_rewrites_its_grader_while_it_loads_gains_nothing(tmp_path: Path) -> None:
    """In a whole run the graders are imported before the first line of the agent's runs."""
    files = {
        "ci-gate.toml": '[[suite]]\nname = "s"\ntasks = ["tasks.toml"]\ntrials = 8\n'
        f'[agent]\npython = "desk:run"\ninterpreter = "{sys.executable}"\n',
        "tasks.toml": '[[task]]\nid = "t"\ninstruction = "i"\n'
        'graders = [{ type = "python", function = "strict:judge" }]\n',
        "strict.py": STRICT,
        "desk.py": "import pathlib\n"
        f"pathlib.Path('strict.py').write_text({LENIENT!r})\n"
        "def run(task, env):\n    return 'x'\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    subprocess.run(
        [sys.executable, "-m", "ci_gate", "run"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        check=False,
    )
    lines = (tmp_path / ".ci-gate" / "s.run.jsonl").read_text().splitlines()[1:-1]
    assert [json.loads(line)["status"] for line in lines] == ["failed"] * 8
    assert (tmp_path / "strict.py").read_text() == LENIENT
