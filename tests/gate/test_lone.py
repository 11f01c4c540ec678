"""With which settings an agent runs outside any suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_gate.config import Config, faults_digest, parse
from ci_gate.gate.lone import with_faults

_CONFIG = b"""
[[suite]]
name = "s"
tasks = ["t.toml"]
[agent]
python = "a:b"
[faults]
rate_permille = 100
[faults.model]
rate_permille = 500
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Of a project in which tools and models meet faults."""
    return parse(_CONFIG, name="c", root=tmp_path)


def test_without_faults_models_meet_none_either(config: Config) -> None:
    """What was not asked for is not injected, and nothing is said of it."""
    calm = with_faults(config, has_faults=False)

    assert calm.model_faults.rate_permille == 0
    assert faults_digest(calm) is None


def test_with_faults_they_are_those_of_the_project(config: Config) -> None:
    """Models' among them: another rate is another digest."""
    faulty = with_faults(config, has_faults=True)
    tools_only = parse(_CONFIG.replace(b"500", b"0"), name="c", root=Path("/"))

    assert (faulty.faults, faulty.model_faults) == (config.faults, config.model_faults)
    assert faults_digest(faulty) != faults_digest(tools_only) is not None
