"""The command that prints the calibration tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Starts processes that import numpy and scipy: seconds.
pytestmark = pytest.mark.slow


def printed(*arguments: str, module: bool = False) -> str:
    """What the command prints for a few repeats of the smallest tables."""
    start = ["-m", "benchmarks.calibration"] if module else ["benchmarks/calibration.py"]
    command = [sys.executable, *start, "--repeats", "6", "--only", "small", *arguments]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode in {0, 1}, found.stderr
    return found.stdout


def test_the_figures_do_not_depend_on_how_it_is_started(tmp_path: Path) -> None:
    """One process or two, as a file or a module: the same bytes, with N and errors."""
    first = printed("--jobs", "1", "--json", str(tmp_path / "figures.json"))

    assert printed("--jobs", "2", module=True) == first
    assert "N = 6 a cell (standard error)" in first
    figures = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    assert figures["small"]["rows"]["gate"]["unchanged"]["n"] == 6


def test_plots_are_written_where_asked(tmp_path: Path) -> None:
    """Only those whose tables were made; of the small suite there is none."""
    printed("--plots", str(tmp_path / "plots"))

    assert (tmp_path / "plots").is_dir()
    assert not list((tmp_path / "plots").iterdir())
