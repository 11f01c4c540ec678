"""The calls that pass a world: recorded, and with the faults of the trial's seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci_gate.model.agent import FaultPolicy
from ci_gate.ports import Observation
from ci_gate.sandbox.chaos import ChaosInjector
from ci_gate.sandbox.world import World
from ci_gate.sandbox.world_factory import WorldFactory
from tests.trials import trial_of

SEED = 0x20261030


def observed(world: World, output: Any, *, kind: str = "tool", name: str = "t") -> Observation:
    return world.observe(kind, name, {"x": 1}, output, is_error=False, turn=2)


def chaotic(scratch: Path, **policy: Any) -> WorldFactory:
    return WorldFactory(scratch, FaultPolicy(**policy))


def test_without_faults_calls_pass_and_are_recorded(tmp_path: Path) -> None:
    """The agent sees the tool's own value, and the step has what was asked and answered."""
    world = WorldFactory(tmp_path, None).open(trial_of())
    seen = observed(world, {"rows": [1]}, name="query")
    assert (seen.output, seen.is_error, seen.fault, seen.delay_s) == ({"rows": [1]}, False, None, 0)
    (step,) = world.steps
    assert (step.kind, step.name, step.input, step.output) == (
        "tool",
        "query",
        {"x": 1},
        {"rows": [1]},
    )
    assert (step.is_error, step.fault, step.turn) == (False, None, 2)


def test_faults_are_those_of_the_trials_seed(tmp_path: Path) -> None:
    """The faults of a trial are the published schedule of its own seed."""
    policy = FaultPolicy(rate_permille=500)
    world = WorldFactory(tmp_path, policy).open(trial_of(seed=SEED))
    injector = ChaosInjector(SEED, 500)
    expected = [injector.intercept("t", "ok").fault for _ in range(40)]
    assert [observed(world, "ok").fault for _ in range(40)] == expected
    assert [step.fault for step in world.steps] == expected


@pytest.mark.parametrize(
    ("kind", "is_error", "delay_s"),
    [
        ("timeout", True, 15.0),
        ("rate_limit", True, 0.0),
        ("posix", True, 0.0),
        ("truncated", False, 0.0),
        ("latency", False, 5.0),
        ("http_500", True, 0.0),
        ("empty", False, 0.0),
    ],
)
def test_a_fault_replaces_what_the_agent_sees(
    tmp_path: Path, kind: str, is_error: bool, delay_s: float
) -> None:
    """Errors are seen as errors, silent faults as answers, and a delay is said, not waited for."""
    world = chaotic(tmp_path, rate_permille=1000, kinds=(kind,)).open(trial_of())
    seen = observed(world, "0123456789")
    assert (seen.fault, seen.is_error, seen.delay_s) == (kind, is_error, delay_s)
    assert world.steps[0].output == seen.output
    assert world.steps[0].fault == kind


def test_tables_are_cut_as_compact_json(tmp_path: Path) -> None:
    """A value that is no text is rendered as compact JSON before a fault is applied to it."""
    world = chaotic(tmp_path, rate_permille=1000, kinds=("truncated",)).open(trial_of())
    seen = observed(world, {"rows": [1, 2, 3], "ok": True})
    assert seen.output == '{"rows":[1{"__chaos_truncated'


def test_text_that_utf8_does_not_have_meets_faults_too(tmp_path: Path) -> None:
    """A lone surrogate inside a value breaks nothing."""
    world = chaotic(tmp_path, rate_permille=1000, kinds=("truncated",)).open(trial_of())
    assert observed(world, ["\ud800"]).output == '["\\u{"__chaos_truncated'


def test_a_tools_own_error_stays_an_error(tmp_path: Path) -> None:
    """A silent fault over a failed call does not make it look like a success."""
    world = chaotic(tmp_path, rate_permille=1000, kinds=("truncated",)).open(trial_of())
    seen = world.observe("tool", "t", {}, "KeyError: x", is_error=True, turn=None)
    assert seen.is_error


@pytest.mark.parametrize("kind", ["kv", "file", "llm", "own"])
def test_only_tools_meet_faults(tmp_path: Path, kind: str) -> None:
    """Calls of other kinds pass, are recorded, and take no draw from the schedule."""
    worlds = chaotic(tmp_path, rate_permille=1000)
    world, fresh = worlds.open(trial_of()), worlds.open(trial_of())
    assert observed(world, "value", kind=kind).fault is None
    assert world.steps[0].kind == kind
    assert observed(world, "value") == observed(fresh, "value")
