"""Run the command line as a user does, in a git repository made for the test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.places import Place


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
