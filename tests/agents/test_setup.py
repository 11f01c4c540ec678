"""An agent that cannot be started at all is said before any trial, in words to act on."""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from ci_gate.agents.interpreters import BOOT, behind_script, find_interpreter
from ci_gate.agents.processes import require_memory_limit, require_posix
from ci_gate.agents.python_agent import PythonAgent
from ci_gate.errors import AgentSetupError, PlatformError
from ci_gate.model.agent import AgentSpec
from tests.agents.desks import Desk, ScriptedWorld, run_all, run_one
from tests.trials import task_of, trial_of

WORKER = Path(__file__).parents[2] / "ci_gate" / "agents" / "worker.py"


@pytest.mark.parametrize(
    ("source", "function", "message"),
    [
        ("", "run", "module 'desk' has no function 'run'"),
        ("def runn(task, env): pass", "run", "did you mean 'runn'"),
        ("run = 5", "run", "desk:run is not a function but int"),
        ("import nothing_of_that_name", "run", "No module named 'nothing_of_that_name'"),
        ("def run(:", "run", "SyntaxError"),
        ("raise SystemExit(5)", "run", r"sys\.exit\(5\)"),
        ("import os; os._exit(6)", "run", r"ended while loading \(crash: exit status 6\)"),
        ("print('why'); raise OSError('no')", "run", r"OSError: no \(desk.py:1 in <module>\)"),
    ],
)
def test_an_agent_that_does_not_load_is_refused(
    tmp_path: Path, source: str, function: str, message: str
) -> None:
    """The message holds the agent's own error, the function and the folder; the status is 2."""
    with pytest.raises(AgentSetupError, match=message) as caught:
        run_one(Desk(tmp_path, source).python(function))
    assert caught.value.exit_code == 2
    problem = caught.value.problems[0]
    assert problem.where == "agent.python"
    assert str(tmp_path) in problem.hint


@pytest.mark.parametrize("reference", ["nowhere:run", "desk:nothing", "desk.deeper:run"])
def test_a_wrong_name_is_said_without_a_trace(tmp_path: Path, reference: str) -> None:
    """Where no line of the agent's was run there is no trace to read."""
    Desk(tmp_path, "def run(task, env): pass\n")
    spec = AgentSpec(
        python=reference, protocol="python", root=str(tmp_path), interpreter=sys.executable
    )
    with pytest.raises(AgentSetupError, match=reference) as caught:
        run_one(PythonAgent(spec))
    assert "Traceback" not in str(caught.value)


def test_the_output_of_a_failed_load_is_shown(tmp_path: Path) -> None:
    """What the agent printed and its trace are in the message, as safe lines."""
    source = "print('api key missing\\x1b[2J', flush=True)\nraise RuntimeError('no key')\n"
    with pytest.raises(AgentSetupError) as caught:
        run_one(Desk(tmp_path, source).python())
    text = str(caught.value)
    assert "\n    api key missing\\x1b[2J" in text
    assert "line 2, in <module>" in text


def test_a_load_without_an_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading has a time limit as well."""
    monkeypatch.setattr("ci_gate.agents.launching._LOAD_S", 0.3)
    desk = Desk(tmp_path, "import time\ntime.sleep(100)\n")
    with pytest.raises(AgentSetupError, match=r"did not load within 0\.3 s"):
        run_one(desk.python(timeout_s=0.1))


def test_python_before_the_oldest_is_refused_by_its_version(tmp_path: Path) -> None:
    """An interpreter that is too old says which it is, and what to set."""
    Desk(tmp_path).program(
        "old-python",
        f"""#!{sys.executable}
import sys
program = "import sys; sys.version_info = (2, 7, 18, 'final', 0); sys.argv[:1] = ['-c']\\n"
sys.argv = sys.argv[2:]
exec(compile(program + sys.argv[0], "boot", "exec"))
""",
    )
    agent = Desk(tmp_path, "def run(task, env): pass").python(interpreter="./old-python")
    with pytest.raises(AgentSetupError, match=r"is Python 2\.7\.18, and a worker needs 3\.8"):
        run_one(agent)


@pytest.mark.parametrize("name", ["./missing", "no-such-python"])
def test_a_missing_interpreter_is_named(tmp_path: Path, name: str) -> None:
    """A configured interpreter that is not there is an error of its own key."""
    with pytest.raises(AgentSetupError, match=r"agent\.interpreter: there is no"):
        run_one(Desk(tmp_path).python(interpreter=name))


def test_auto_prefers_python_then_python3_then_this_one(tmp_path: Path) -> None:
    """``auto`` is the search path's python, else python3, else what runs ci-gate."""
    assert find_interpreter("auto", root="/", path=str(tmp_path)) == sys.executable
    for name in ("python3", "python"):
        Desk(tmp_path).program(name, "#!/bin/sh\n")
        found = find_interpreter("auto", root="/", path=str(tmp_path))
        assert found == str(tmp_path / name)


def test_a_program_that_is_no_python_is_refused(tmp_path: Path) -> None:
    """An interpreter that ends without a word is shown with its status and output."""
    Desk(tmp_path).program("python", "#!/bin/sh\necho 'not me'; exit 7\n")
    agent = Desk(tmp_path, "").python(interpreter="./python")
    with pytest.raises(AgentSetupError, match=r"crash: exit status 7[\s\S]*not me"):
        run_one(agent)


def test_the_root_comes_first_and_modules_of_the_package_do_not_shadow(tmp_path: Path) -> None:
    """The agent imports from its root, and names of ci-gate's own files are free for it."""
    (tmp_path / "capture.py").write_text("name = 'mine'\n")
    desk = Desk(
        tmp_path,
        """
import sys, capture
def run(task, env):
    return f"{capture.name} {sys.path[0]} {'ci_gate' in sys.modules} {sys.argv[1:]}"
""",
    )
    assert run_one(desk.python()).answer == f"mine {tmp_path.resolve()} False []"


def test_a_module_in_a_package_below_the_root_is_found(tmp_path: Path) -> None:
    """``package.module:object.function`` names a function anywhere below the root."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "agent.py").write_text(
        "class Bot:\n    @staticmethod\n    def run(task, env):\n        return 'shop'\n"
    )
    (tmp_path / "desk.py").write_text("")
    spec = AgentSpec(
        python="shop.agent:Bot.run",
        protocol="python",
        root=str(tmp_path),
        interpreter=sys.executable,
    )
    assert run_one(PythonAgent(spec)).answer == "shop"


def test_every_worker_is_ready_before_the_first_trial(tmp_path: Path) -> None:
    """``start`` loads as many workers as there are jobs, so that no trial pays for it."""
    desk = Desk(
        tmp_path,
        """
import os
def run(task, env):
    return str(os.getpid())
""",
    )
    agent = desk.python(jobs=3)

    async def run() -> list[str | None]:
        try:
            await agent.start()
            runs = (agent.run(trial_of(), ScriptedWorld()) for _ in range(3))
            return [found.answer for found in await asyncio.gather(*runs)]
        finally:
            await agent.close()

    assert len(set(asyncio.run(run()))) == 3


def test_windows_and_memory_limits_elsewhere_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs POSIX or Linux says so instead of doing something else."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(PlatformError, match="running an agent needs POSIX processes"):
        require_posix("running an agent")
    with pytest.raises(PlatformError, match="memory_mb needs Linux"):
        require_memory_limit(1)
    require_memory_limit(0)


def test_the_worker_imports_the_standard_library_alone() -> None:
    """The file that is handed to the agent's interpreter stands alone."""
    tree = ast.parse(WORKER.read_text())
    modules = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert modules - {"__future__"} <= sys.stdlib_module_names


def test_a_worker_is_compiled_once_and_names_no_place(tmp_path: Path) -> None:
    """The second start reads what the first one compiled; messages show no path of this machine."""
    worker = tmp_path / "worker.py"
    lines = "import sys", "def name(): return sys._getframe().f_code.co_filename", "print(name())"
    worker.write_text("\n".join(lines))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    starts = [
        subprocess.run(
            [sys.executable, "-v", "-c", BOOT, str(worker)],
            env=kept,
            capture_output=True,
            text=True,
        )
        for _ in range(2)
    ]
    assert [start.stdout for start in starts] == ["<ci-gate worker>\n"] * 2
    assert [f"matches {worker}" in start.stderr for start in starts] == [False, True]


@pytest.fixture(params=range(8, 15))
def interpreter(request: pytest.FixtureRequest) -> str:
    """Return another Python of this machine, if it works."""
    program = shutil.which(f"python3.{request.param}")
    if not program or subprocess.run([program, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"there is no Python 3.{request.param}")
    return program


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_the_worker_runs_under_other_pythons(
    tmp_path: Path, interpreter: str, isolation: str
) -> None:
    """Synchronous, asynchronous and failing agents work under every Python that is here."""
    desk = Desk(
        tmp_path,
        """
import sys
async def later(n): return n + 1
async def run(task, env):
    env.tools.register(later)
    if task.id == "bad":
        raise ValueError("bad")
    n = await env.tools.acall("later", n=1)
    return f"{n} {env.uuid()} {env.clock.iso()} {sys.version_info[1]}"
""",
    )
    agent = desk.python(interpreter=interpreter, isolation=isolation)
    trials = [(trial_of(task_of(name)), ScriptedWorld()) for name in ("good", "bad")]
    good, bad = run_all(agent, trials)
    assert (good.answer or "").startswith("2 ")
    assert "2026-01-01T09:00:00Z" in (good.answer or "")
    assert (bad.reason or "").startswith("ValueError: bad (desk.py:")


@pytest.mark.slow
def test_an_agent_runs_in_an_environment_without_our_dependencies(tmp_path: Path) -> None:
    """In a bare virtual environment there is nothing of ci-gate, and the worker works."""
    venv.create(tmp_path / ".venv", with_pip=False)
    desk = Desk(
        tmp_path,
        """
import importlib.util, sys
def run(task, env):
    found = [n for n in ("msgspec", "ci_gate", "click") if importlib.util.find_spec(n)]
    return f"{found} {sys.prefix}"
""",
    )
    agent = desk.python(interpreter=".venv/bin/python")
    assert run_one(agent).answer == f"[] {tmp_path / '.venv'}"


def test_a_shim_is_asked_once_which_python_it_starts(tmp_path: Path) -> None:
    """With ``auto`` the workers run under the Python behind a script, not through the script."""
    count = tmp_path / "count"
    shim = tmp_path / "python"
    shim.write_text(f'#!/bin/sh\necho x >> "{count}"\nexec "{sys.executable}" "$@"\n')
    shim.chmod(0o755)
    desk = Desk(tmp_path, "import sys\ndef run(task, env):\n    return sys.executable\n")
    spec = AgentSpec(python="desk:run", protocol="python", root=str(desk.root), timeout_s=20.0)
    agent = PythonAgent(spec, jobs=3, environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert run_one(agent).answer == sys.executable
    assert count.read_text() == "x\n"


def test_a_script_that_does_not_say_what_it_starts_is_used_as_it_is(tmp_path: Path) -> None:
    """A wrapper that fails, or names nothing that can be executed, is left to the worker."""
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexit 1\n")
    silent.chmod(0o755)
    talking = tmp_path / "python3"
    talking.write_text("#!/bin/sh\necho /nowhere/python\n")
    talking.chmod(0o755)
    for script in (silent, talking):
        assert behind_script(str(script), str(tmp_path), {}) == str(script)
