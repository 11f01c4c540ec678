"""Folders of killed runs are removed, and those of living ones are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ci_gate.sandbox.scratch import Scratch, sweep

_KILLED = """
import os, signal, sys
from pathlib import Path
from ci_gate.sandbox.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
(scratch.folder / "world").mkdir()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_of_a_killed_run_is_swept(tmp_path: Path):
    """What a kill left behind does not pile up."""
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    assert len(list(tmp_path.iterdir())) == 1

    assert sweep(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_living_run_stays(tmp_path: Path):
    """Two runs at the same time do not remove each other's worlds."""
    scratch = Scratch(tmp_path)

    assert sweep(tmp_path) == 0
    assert scratch.folder.is_dir()
    scratch.close()
    assert list(tmp_path.iterdir()) == []


def test_a_link_with_such_a_name_is_left_alone(tmp_path: Path):
    """Nothing outside is ever removed through a name."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "lock").touch()
    parent = tmp_path / "parent"
    parent.mkdir()
    (parent / "ci-gate-worlds-x").symlink_to(target)

    assert sweep(parent) == 0
    assert (target / "lock").exists()


def test_a_folder_without_a_lock_is_left_alone(tmp_path: Path):
    """Another run may be about to lock it."""
    (tmp_path / "ci-gate-worlds-new").mkdir()

    assert sweep(tmp_path) == 0
