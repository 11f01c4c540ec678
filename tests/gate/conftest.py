"""Real git repositories for the tests of the gate."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


class GitFolder:
    """A working tree that tests build commit by commit."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *arguments: str, date: int = 1_700_000_000) -> str:
        """Return the output of a git command, independent of the settings of who runs the test."""
        who = {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (
                ("NAME", "t"),
                ("EMAIL", "t@example.org"),
                ("DATE", f"{date} +0000"),
            )
        }
        plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=self.path,
            env={**os.environ, **plain, **who},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, name: str, content: str) -> Path:
        """Write a file of the working tree."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def commit(self, files: dict[str, str] | None = None, *, date: int = 1_700_000_000) -> str:
        """Write files, commit everything and return the commit's id."""
        for name, content in (files or {}).items():
            self.write(name, content)
        self.git("add", "--all")
        self.git("commit", "--allow-empty", "-m", "change", date=date)
        return self.git("rev-parse", "HEAD")

    def clone(self, path: Path, *options: str) -> GitFolder:
        """Return a clone by URL, so that ``--depth`` is honoured."""
        self.git("clone", "--quiet", *options, f"file://{self.path}", str(path))
        return GitFolder(path)


@pytest.fixture(scope="session")
def git_folder() -> type[GitFolder]:
    """Return the class itself, for fixtures that last longer than a test."""
    return GitFolder


@pytest.fixture
def new_repository(tmp_path: Path) -> Callable[..., GitFolder]:
    """Return a maker of empty repositories on branch main, below the test's folder."""

    def make(name: str = "repository", *, branch: str = "main") -> GitFolder:
        folder = GitFolder(tmp_path / name)
        folder.path.mkdir(parents=True)
        folder.git("init", "--quiet", f"--initial-branch={branch}")
        return folder

    return make
