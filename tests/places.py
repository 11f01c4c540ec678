"""A working tree in which the command line is run as a user runs it."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

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
            mock.patch.dict(os.environ, environment(variables), clear=True),
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
            env=environment(variables),
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
            env=environment({}),
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
        path = self.path / name
        text, made_s = path.read_text(), path.stat().st_mtime
        assert before in text
        path.write_text(text.replace(before, after))
        # Python takes a module of the same size and second for the one that it compiled before.
        os.utime(path, (made_s + 2, made_s + 2))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def environment(variables: dict[str, str]) -> dict[str, str]:
    """Return an environment without CI, in which git is nobody's in particular."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_CI)}
    who = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (("NAME", "t"), ("EMAIL", "t@example.org"))
    }
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "COLUMNS": "160"}
    source = str(Path(__file__).resolve().parents[1])
    return {**kept, **who, **plain, "PYTHONPATH": source, **variables}
