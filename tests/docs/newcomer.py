"""Does what a reader of a page does: writes its files, makes its edits, runs its commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.pages import ROOT, Block, blocks

_CI = ("CI", "GITHUB_", "RUNNER_", "CI_GATE_", "NO_COLOR", "COLUMNS")
_LONGEST_S = 60
_EDIT = re.compile(r"^<!-- edit (\S+): (.+) -> (.+) -->$", re.MULTILINE)


class Step(NamedTuple):
    """A command and the lines that the page shows of its output."""

    command: str
    shown: list[str]


def steps(console: str) -> Iterator[Step]:
    """Yield the commands of a console block."""
    step: Step | None = None
    for line in console.splitlines():
        if line.startswith("$ "):
            if step is not None:
                yield step
            step = Step(line[2:], [])
        else:
            assert step is not None
            step.shown.append(line)
    if step is not None:
        yield step


class Newcomer:
    """Somebody at a shell in a repository of their own.

    Parameters
    ----------
    folder : Path
        An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "repository"
        programs = folder / "programs"
        self._folder.mkdir()
        programs.mkdir()
        gate = programs / "ci-gate"
        gate.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ci_gate "$@"\n')
        gate.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_CI)}
        who = {f"GIT_{role}_NAME": "t" for role in ("AUTHOR", "COMMITTER")}
        mail = {f"GIT_{role}_EMAIL": "t@example.org" for role in ("AUTHOR", "COMMITTER")}
        self._environment = {
            **kept,
            **who,
            **mail,
            "PATH": f"{programs}{os.pathsep}{kept.get('PATH', os.defpath)}",
            "PYTHONPATH": str(ROOT),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "COLUMNS": "160",
        }
        self.run("git init --quiet --initial-branch=main .")
        self.run("git commit --quiet --allow-empty --message start")

    def run(self, command: str) -> str:
        """Run a command line and return what it printed to both streams."""
        with subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                return process.communicate(timeout=_LONGEST_S)[0]
            except subprocess.TimeoutExpired:
                # The shell alone would leave its children behind.
                os.killpg(process.pid, signal.SIGKILL)
                raise

    def write(self, name: str, text: str) -> None:
        """Write a file of the page."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def edit(self, name: str, before: str, after: str) -> None:
        """Make an edit that the page asks for."""
        path = self._folder / name
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")

    def follow(self, text: str) -> list[str]:
        """Do everything on a page in its order; return what was not as shown."""
        complaints: list[str] = []
        # Edits stand between blocks; each part begins with at most one.
        for part in re.split(r"(?=^<!-- edit )", text, flags=re.MULTILINE):
            if edit := _EDIT.match(part):
                self.edit(*edit.groups())
            for block in blocks(part):
                complaints += self._follow(block)
        return complaints

    def _follow(self, block: Block) -> Iterator[str]:
        if block.mark.startswith("file "):
            self.write(block.mark.removeprefix("file "), block.text)
        for step in steps(block.text) if block.language == "console" else ():
            printed = self.run(step.command)
            if not matches(step.shown, printed):
                yield f"$ {step.command}\n{printed}"


def matches(shown: list[str], printed: str) -> bool:
    """Return whether an output is the one shown; ``...`` stands for anything, also for nothing."""
    parts = [".*?" if line == "..." else f"{_line(line)}\n" for line in shown]
    return re.fullmatch("".join(parts), printed, re.DOTALL) is not None


def _line(line: str) -> str:
    return r"[^\n]*".join(re.escape(part) for part in line.split("..."))
