"""The schedule of faults: published vectors, and what the additions promise."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.errors import UsageError
from ci_gate.model.agent import FaultPolicy
from ci_gate.sandbox.chaos import ChaosInjector, policy_problems
from ci_gate.sandbox.faults import FAULT_KINDS

TOOLS = ("mcp__db__query", "search_flights", "mcp__postgres__query")
OBSERVATION = '{"rows":[1,2,3],"ok":true}'


def faults_of(injector: ChaosInjector, tools: Iterable[str]) -> list[str | None]:
    return [injector.intercept(tool, OBSERVATION).fault for tool in tools]


def in_turn(count: int, tools: Sequence[str] = TOOLS) -> list[str]:
    return [tools[index % len(tools)] for index in range(count)]


def test_published_vector_of_twelve_steps() -> None:
    """Seed 0x20261030 at rate 500 gives the published rolls, kinds and texts."""
    injector = ChaosInjector(0x20261030, 500)
    results = [injector.intercept(tool, OBSERVATION) for tool in in_turn(12)]
    kinds = ["rate_limit"] * 3 + ["posix"] * 2 + [None, "rate_limit", "posix", "timeout", "posix"]
    rolls = [413, 186, 492, 452, 142, 609, 157, 481, 422, 17, 516, 409]
    assert [result.roll for result in results] == rolls
    assert [result.fault for result in results] == [*kinds, None, "timeout"]
    assert [result.step for result in results] == list(range(1, 13))
    assert results[8].observation == (
        "[CHAOS_FAULT_INJECTED seed=0x20261030 step=9]:"
        " TOOL_TIMEOUT after 15000ms on `mcp__postgres__query`"
    )
    assert results[8].delay_s == 15.0
    assert results[5].observation == OBSERVATION


def test_published_vector_with_an_override() -> None:
    """Seed 88481024 at rate 150 with one tool at 900 gives the published faults."""
    injector = ChaosInjector(88481024, 150, {"mcp__postgres__query": 900})
    results = [injector.intercept(tool, OBSERVATION) for tool in in_turn(6)]
    assert [result.roll for result in results] == [525, 180, 45, 681, 635, 510]
    assert [result.fault for result in results] == [
        None,
        None,
        "rate_limit",
        None,
        None,
        "truncated",
    ]
    assert results[5].observation == '{"rows":[1{"__chaos_truncated'


def test_seed_zero_becomes_the_golden_ratio() -> None:
    """The seed in use is shown, so 0 appears as what the generator starts with."""
    injector = ChaosInjector(0, 1000, kinds=["timeout"])
    text = injector.intercept("tool", "").observation
    assert injector.seed == 0x9E3779B97F4A7C15
    assert text.startswith("[CHAOS_FAULT_INJECTED seed=0x9E3779B97F4A7C15 step=1]: TOOL_TIMEOUT")


def test_a_seed_may_be_hexadecimal_text() -> None:
    """A seed copied from a file works as it is."""
    numbers, texts = ChaosInjector(0x20261030, 500), ChaosInjector("0x0000000020261030", 500)
    assert faults_of(numbers, in_turn(50)) == faults_of(texts, in_turn(50))


@given(
    st.integers(0, 2**64 - 1),
    st.sampled_from(["sequential", "keyed"]),
    st.lists(st.sampled_from(TOOLS), max_size=40),
)
def test_reset_repeats_everything(seed: int, schedule: str, tools: list[str]) -> None:
    """After a reset the same observations meet the same faults and leave the same trail."""
    injector = ChaosInjector(seed, 400, schedule=schedule, budget=5)  # type: ignore[arg-type]
    first = faults_of(injector, tools), injector.audit
    injector.reset()
    assert (faults_of(injector, tools), injector.audit) == first


@given(st.integers(0, 2**64 - 1), st.lists(st.sampled_from(TOOLS), max_size=60))
def test_keyed_faults_depend_on_the_tool_alone(seed: int, tools: list[str]) -> None:
    """In the keyed schedule, calls of other tools shift no fault of a tool."""
    together = ChaosInjector(seed, 300, schedule="keyed")
    alone = ChaosInjector(seed, 300, schedule="keyed")
    seen = [
        fault
        for tool, fault in zip(tools, faults_of(together, tools), strict=True)
        if tool == TOOLS[0]
    ]
    assert seen == faults_of(alone, [TOOLS[0]] * len(seen))


def test_keyed_faults_differ_between_tools_and_seeds() -> None:
    """Tools and seeds do not share a schedule."""
    schedules = {
        tuple(faults_of(ChaosInjector(seed, 300, schedule="keyed"), [tool] * 40))
        for seed in (1, 2)
        for tool in TOOLS
    }
    assert len(schedules) == 6


@pytest.mark.parametrize("schedule", ["sequential", "keyed"])
def test_the_rate_is_met(schedule: str) -> None:
    """Of 20,000 observations at rate 150, 15 % are faults, and each kind has its quarter."""
    injector = ChaosInjector(7, 150, schedule=schedule)  # type: ignore[arg-type]
    faults = [fault for fault in faults_of(injector, in_turn(20_000)) if fault]
    assert len(faults) == pytest.approx(3000, abs=4 * (20_000 * 0.15 * 0.85) ** 0.5)
    for kind in ("timeout", "rate_limit", "truncated", "posix"):
        assert faults.count(kind) == pytest.approx(len(faults) / 4, abs=100)


def test_a_subset_of_kinds_is_chosen_modulo_its_size() -> None:
    """With two kinds every fault is one of them, at the steps of the same draws."""
    kinds = set(faults_of(ChaosInjector(3, 1000, kinds=["posix", "latency"]), in_turn(50)))
    assert kinds == {"posix", "latency"}


def test_weights_shift_the_choice_and_not_the_steps() -> None:
    """Weights 10, 8 and 7 give these shares, and a weight of 0 never."""
    kinds = ["rate_limit", "timeout", "truncated", "empty"]
    injector = ChaosInjector(11, 1000, kinds=kinds, weights=[10, 8, 7, 0])
    faults = faults_of(injector, in_turn(5000))
    shares = [faults.count(kind) / 5000 for kind in kinds]
    assert shares == pytest.approx([0.40, 0.32, 0.28, 0.0], abs=0.025)


def test_equal_weights_are_the_published_choice() -> None:
    """One weight a kind of 1 draws what no weights draw."""
    plain, weighted = ChaosInjector(5, 500), ChaosInjector(5, 500, weights=[1, 1, 1, 1])
    assert faults_of(plain, in_turn(200)) == faults_of(weighted, in_turn(200))


def test_chosen_steps_are_faults_whatever_the_rate() -> None:
    """With rate 0, faults are at the chosen steps and at no others."""
    injector = ChaosInjector(1, 0, steps=[2, 5])
    hit = [index for index, fault in enumerate(faults_of(injector, in_turn(8)), 1) if fault]
    assert hit == [2, 5]


def test_a_budget_removes_later_faults_and_shifts_nothing() -> None:
    """A budget leaves the first faults and every roll as they are without it."""
    free, bounded = ChaosInjector(9, 400), ChaosInjector(9, 400, budget=3)
    unbounded_faults, bounded_faults = (faults_of(each, in_turn(60)) for each in (free, bounded))
    assert [entry.roll for entry in free.audit] == [entry.roll for entry in bounded.audit]
    allowed = [index for index, fault in enumerate(unbounded_faults) if fault][:3]
    assert [index for index, fault in enumerate(bounded_faults) if fault] == allowed


def test_the_audit_has_every_step() -> None:
    """The trail names step, tool, roll, threshold and fault of faults and passes alike."""
    injector = ChaosInjector(88481024, 150, {"mcp__postgres__query": 900})
    faults_of(injector, in_turn(3))
    shown = [(e.step, e.tool, e.roll, e.threshold, e.fault) for e in injector.audit]
    assert shown == [
        (1, "mcp__db__query", 525, 150, None),
        (2, "search_flights", 180, 150, None),
        (3, "mcp__postgres__query", 45, 900, "rate_limit"),
    ]


@pytest.mark.slow
def test_without_an_audit_memory_does_not_grow() -> None:
    """No trail is kept on request, and no object stays behind a step."""
    injector = ChaosInjector(1, 150, keep_audit=False)
    faults_of(injector, in_turn(100))
    gc.collect()
    before = len(gc.get_objects())
    faults_of(injector, in_turn(2000))
    gc.collect()
    assert len(gc.get_objects()) - before < 50
    assert injector.audit == ()


def test_hostile_tool_names_do_no_harm() -> None:
    """A tool name is only looked up and shown, whatever is in it."""
    for name in ("", "`rm -rf`\n", "\ud800", "x" * 100_000):
        injector = ChaosInjector(1, 1000, kinds=["timeout"], schedule="keyed")
        assert name in injector.intercept(name, "").observation


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_every_kind_can_be_asked_for(kind: str) -> None:
    """Each kind alone is what every fault is."""
    result = ChaosInjector(1, 1000, kinds=[kind]).intercept("tool", "{}", earlier="[]")
    assert result.fault == kind


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rate_permille": 1001}, "a rate is a whole number from 0 to 1000, found 1001"),
        ({"rate_permille": True}, "found True"),
        ({"rate_permille": 0.15}, "found 0.15"),
        ({"tools": {"query": -1}}, "tools.query: a rate is a whole number"),
        ({"kinds": []}, "no kind of fault is named"),
        ({"kinds": ["timeout", "timeout"]}, "named twice"),
        ({"kinds": ["time_out"]}, "Did you mean 'timeout'?"),
        ({"kinds": ["stable"]}, "Did you mean 'stale'?"),
        ({"weights": [1, 2]}, "2 weights for 4 kinds"),
        ({"weights": [0, 0, 0, 0]}, "one above 0"),
        ({"weights": [1, 1, 1, -1]}, "weights are whole numbers"),
        ({"schedule": "random"}, "a schedule is 'sequential' or 'keyed'"),
        ({"steps": [0]}, "steps are whole numbers from 1"),
        ({"budget": -1}, "a budget is a whole number from 0"),
        ({"seed": -1}, "seed: a seed is"),
        ({"seed": "xyz"}, "seed: a seed is hexadecimal"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(arguments: dict[str, object], said: str) -> None:
    """A parameter out of its range is refused when the injector is made, by name."""
    with pytest.raises(UsageError) as caught:
        ChaosInjector(**({"seed": 1} | arguments))  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_all_mistakes_are_said_at_once() -> None:
    """One error carries every problem of the policy."""
    policy = FaultPolicy(rate_permille=-1, kinds=("stable",), budget=-2)
    problems = policy_problems(policy)
    assert [problem.where for problem in problems] == ["rate_permille", "kinds", "budget"]
    with pytest.raises(UsageError) as caught:
        ChaosInjector(-1, rate_permille=-1, kinds=["stable"], budget=-2)
    assert len(caught.value.problems) == 4


def test_a_policy_makes_the_same_injector_as_its_arguments() -> None:
    """The injector of a trial follows every key of the configuration."""
    policy = FaultPolicy(
        rate_permille=300,
        tools={TOOLS[0]: 700},
        kinds=("empty", "timeout"),
        weights=(3, 1),
        schedule="keyed",
        steps=(4,),
        budget=9,
    )
    direct = ChaosInjector(5, 300, {TOOLS[0]: 700}, ["empty", "timeout"], [3, 1], "keyed", [4], 9)
    assert faults_of(ChaosInjector.of(policy, 5), in_turn(80)) == faults_of(direct, in_turn(80))
