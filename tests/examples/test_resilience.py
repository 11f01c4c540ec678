"""The example under faults and in calm, as a user runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Place

PROJECT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_figures_of_the_example(tmp_path: Path) -> None:
    """Its faults cost 7 of 192 trials; of 100 that met one, 57 healed."""
    place = Place(tmp_path)
    shutil.copytree(PROJECT / "examples", tmp_path / "examples")
    shutil.copytree(PROJECT / "baselines", tmp_path / "baselines")
    shutil.copy(PROJECT / "ci-gate.toml", tmp_path)

    ended = place.gate("check", "--calm-and-chaos", "--quiet")

    assert ended.status == 0, ended.err
    found = json.loads((tmp_path / ".ci-gate/refund-desk.verdict.json").read_text())["resilience"]
    calm, faulted = found["calm"], found["candidate"]
    assert (calm["trials"], calm["passed"], calm["faulted"]) == (192, 176, 0)
    assert (faulted["trials"], faulted["passed"]) == (192, 169)
    assert (faulted["faulted"], faulted["recovered"], faulted["looped"]) == (100, 57, 15)
    assert found["between"]["difference"] == pytest.approx(-7 / 192, abs=1e-6)
    # The baseline has the same agent, and the same counts.
    alike = ("trials", "passed", "faulted", "recovered", "looped")
    assert [found["baseline"][key] for key in alike] == [faulted[key] for key in alike]
