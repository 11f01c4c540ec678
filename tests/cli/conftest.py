"""Run the command line as a user does, in a git repository made for the test."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from ci_gate.cli import _status

_CI = ("CI", "GITHUB_", "RUNNER_", "CI_GATE_", "NO_COLOR", "REFUND_DESK")


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    status: int
    out: str
    err: str


class Place:
    """A working tree in which commands are run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def gate(self, *arguments: str, **variables: str) -> Ended:
        """Run ci-gate as ``main`` does, in this process: no start of an interpreter each time."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with (
            contextlib.chdir(self.path),
            mock.patch.dict(os.environ, _environment(variables), clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            status = _status(list(arguments))
        return Ended(status, _text(out), _text(err))

    def process(self, *arguments: str, timeout: float = 60, **variables: str) -> Ended:
        """Run ci-gate in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "ci_gate", *arguments],
            cwd=self.path,
            env=_environment(variables),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def git(self, *arguments: str) -> str:
        """Run git and return what it printed."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=_environment({}),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, message: str = "change") -> str:
        """Commit everything and return the commit's id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def replace(self, name: str, before: str, after: str) -> None:
        """Edit a file in which the text before must stand."""
        text = (self.path / name).read_text()
        assert before in text
        (self.path / name).write_text(text.replace(before, after))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def _environment(variables: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_CI)}
    who = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (("NAME", "t"), ("EMAIL", "t@example.org"))
    }
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "COLUMNS": "160"}
    source = str(Path(__file__).resolve().parents[2])
    return {**kept, **who, **plain, "PYTHONPATH": source, **variables}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return an empty folder outside any repository."""
    path = tmp_path / "place"
    path.mkdir()
    return Place(path)


@pytest.fixture(scope="session")
def _set_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Place(tmp_path_factory.mktemp("set-up"))
    place.git("init", "--quiet", "--initial-branch=main")
    assert place.gate("init").status == 0
    # As in any repository with Python in it: what an agent's start compiles is nobody's change.
    (place.path / ".gitignore").write_text("__pycache__/\n")
    place.commit("set up")
    return place.path


@pytest.fixture(scope="session")
def _with_bar(_set_up: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Place(tmp_path_factory.mktemp("bar") / "place")
    shutil.copytree(_set_up, place.path)
    place.replace("ci-gate.toml", "# [baseline]", "[baseline]")
    place.replace("ci-gate.toml", "# repeats = 4", "repeats = 1")
    assert place.gate("baseline", "update", "--quiet").status == 0
    shutil.rmtree(place.path / ".ci-gate")
    place.commit("set the bar")
    place.git("switch", "--quiet", "--create", "change")
    return place.path


@pytest.fixture
def repository(place: Place, _set_up: Path) -> Place:
    """Return a repository set up by ``ci-gate init``, committed on branch main."""
    shutil.copytree(_set_up, place.path, dirs_exist_ok=True)
    return place


@pytest.fixture
def gated(place: Place, _with_bar: Path) -> Place:
    """Return such a repository with a committed baseline of one run, on a branch of its own."""
    shutil.copytree(_with_bar, place.path, dirs_exist_ok=True)
    return place
