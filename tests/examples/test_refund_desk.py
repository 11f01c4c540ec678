"""The example: its rules, its ways to fail, and how far its two variants are apart."""

from __future__ import annotations

import asyncio
import datetime
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from refund_desk import agent
from refund_desk.dialogue import Attention, Wishes, wishes_of
from refund_desk.policy import Decision, Payment, decide
from refund_desk.tools import Desk

from ci_gate import config
from ci_gate.agents import worker
from ci_gate.agents.python_agent import PythonAgent
from ci_gate.gate.suites import configured_suite
from ci_gate.grading.state.grader import InitialStates
from ci_gate.model.agent import FaultPolicy
from ci_gate.model.suite import PlannedTrial, Suite
from ci_gate.model.trial import Grade, Trajectory
from ci_gate.plugins import GraderPorts, graders_of
from ci_gate.ports import GradersByTask, TrialSandbox
from ci_gate.prng import derive_seed
from ci_gate.sandbox.world_factory import WorldFactory

ROOT = Path(__file__).parents[2]
CONFIG = config.load(ROOT / "ci-gate.toml")
TODAY = datetime.date(2026, 1, 1)
Serve = Callable[[Any, Any], Mapping[str, Any]]


class Line:
    """Stands for the worker's line to the gate: every call passes the trial's sandbox at once."""

    real_delays = False
    limits = ()

    def __init__(self, sandbox: TrialSandbox) -> None:
        self._sandbox = sandbox

    def ask(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the agent sees of a call."""
        seen = self._sandbox.observe(
            call["kind"],
            call["name"],
            call["arguments"],
            call["output"],
            is_error=call["is_error"],
            turn=call["turn"],
        )
        return {
            "output": seen.output,
            "is_error": seen.is_error,
            "fault": seen.fault,
            "delay_s": seen.delay_s,
        }


async def no_worker(function: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    raise AssertionError(f"the example has no grader {function}")


@cache
def suite() -> Suite:
    return configured_suite(CONFIG, CONFIG.suites[0], trials=None, task_filter=None)


@cache
def graders(factory: WorldFactory) -> GradersByTask:
    states = InitialStates(factory.initial)
    ports = GraderPorts(call=no_worker, initial=factory.initial, states=states)
    return graders_of(suite().tasks, ports)


def trial_of(task_id: str, trial: int = 0) -> PlannedTrial:
    task = next(task for task in suite().tasks if task.id == task_id)
    seed = derive_seed(task.base_seed, trial)
    return PlannedTrial(task=task, trial=trial, repeat=0, attempt=1, seed=seed)


@contextmanager
def worlds(scratch: Path, faults: FaultPolicy | None) -> Iterator[WorldFactory]:
    with WorldFactory(scratch, faults) as factory:
        yield factory


def served(serve: Serve, trial: PlannedTrial, sandbox: TrialSandbox) -> Trajectory:
    order = {
        "id": 1,
        "task": {"id": trial.task.id},
        "seed": trial.seed,
        "trial": trial.trial,
        "now": sandbox.now,
        "database": str(sandbox.database),
        "workdir": None,
    }
    env = worker.Env(order, Line(sandbox))  # type: ignore[arg-type]
    shown = {"input": trial.task.input, "metadata": trial.task.metadata}
    result = serve(worker.Record(shown), env)
    return Trajectory(
        answer=result["answer"],
        steps=tuple(sandbox.steps),
        turns=result["turns"],
        tokens=result["tokens"],
    )


def grades_of(
    trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox, factory: WorldFactory
) -> dict[str, Grade]:
    asked = graders(factory)[trial.task.id]
    found = [one.grader.grade(trial, trajectory, sandbox) for one in asked]
    return {grade.grader: grade for grade in found if isinstance(grade, Grade)}


def graded(serve: Serve, trial: PlannedTrial, factory: WorldFactory) -> dict[str, Grade]:
    sandbox = factory.open(trial)
    try:
        return grades_of(trial, served(serve, trial, sandbox), sandbox, factory)
    finally:
        sandbox.close()


def passes(grades: Mapping[str, Grade]) -> bool:
    return all(grade.passed for grade in grades.values())


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[bool]]]:
    """Eight trials of every task for both variants, with the configured faults."""
    with worlds(tmp_path_factory.mktemp("scratch"), CONFIG.faults) as factory:
        return {
            variant: {
                task.id: [
                    passes(graded(getattr(agent, variant), trial_of(task.id, trial), factory))
                    for trial in range(8)
                ]
                for task in suite().tasks
            }
            for variant in ("good", "regressed")
        }


def rate(results: Mapping[str, list[bool]]) -> float:
    return sum(sum(passed) / len(passed) for passed in results.values()) / len(results)


def order_of(**fields: Any) -> dict[str, Any]:
    items = [{"line": 1, "cents": 5000}, {"line": 2, "cents": 999}]
    return {"status": "delivered", "delivered_on": "2025-12-20", "items": items} | fields


def decided(order: dict[str, Any], *refunded: int, **wishes: Any) -> Decision:
    attentive = Attention(random.Random(0), 0.0)
    refunds = [{"line": line} for line in refunded]
    return decide(order, refunds, Wishes(**wishes), TODAY, attentive)


def test_the_suite_is_what_the_repository_gates() -> None:
    """The repository's own configuration finds the 24 conversations, each with its graders."""
    assert len(suite().tasks) == 24
    assert all(len(task.graders) >= 5 for task in suite().tasks)


@pytest.mark.slow
def test_the_variants_are_as_far_apart_as_the_gate_needs(
    outcomes: dict[str, dict[str, list[bool]]],
) -> None:
    """``good`` passes most and not all trials, ``regressed`` clearly fewer."""
    assert 0.78 < rate(outcomes["good"]) < 0.92
    assert 0.50 < rate(outcomes["regressed"]) < 0.65


@pytest.mark.slow
def test_the_regression_breaks_early_constraints(
    outcomes: dict[str, dict[str, list[bool]]],
) -> None:
    """Exactly the conversations that state a condition early never pass any more."""
    early = {task.id for task in suite().tasks if "early-constraint" in task.tags}
    broken = {task for task, passed in outcomes["regressed"].items() if not any(passed)}
    assert broken == early
    assert len(early) == 5
    assert all(sum(outcomes["good"][task]) >= 6 for task in early)


@pytest.mark.slow
def test_tasks_differ_in_difficulty(outcomes: dict[str, dict[str, list[bool]]]) -> None:
    """Some conversations always succeed and some only now and then, as with real agents."""
    counts = [sum(passed) for passed in outcomes["good"].values()]
    assert counts.count(8) >= 5
    assert sum(count < 7 for count in counts) >= 4


@pytest.mark.slow
def test_a_trial_is_a_function_of_its_seed(
    tmp_path: Path, outcomes: dict[str, dict[str, list[bool]]]
) -> None:
    """The same seed gives the same answer, steps and outcome again."""
    with worlds(tmp_path, CONFIG.faults) as factory:
        for task_id in ("refund-changed-mind-two-items", "policy-needs-approval"):
            trial = trial_of(task_id, 3)
            first, second = factory.open(trial), factory.open(trial)
            assert served(agent.good, trial, first) == served(agent.good, trial, second)
            assert first.steps == second.steps
            repeated = passes(graded(agent.good, trial, factory))
            assert repeated == outcomes["good"][task_id][3]


def test_attentive_agents_pass_everything_in_calm(tmp_path: Path) -> None:
    """Without faults and without slips every conversation can be passed: no grader is wrong."""
    with worlds(tmp_path, None) as factory:
        for task in suite().tasks:
            easy = replace(task, metadata={"strain": 0.0})
            trial = replace(trial_of(task.id), task=easy)
            failed = [g for g in graded(agent.good, trial, factory).values() if not g.passed]
            assert failed == [], task.id


@pytest.mark.parametrize("kind", ["timeout", "truncated"])
def test_a_timed_out_refund_is_paid_twice_by_the_regression_alone(
    tmp_path: Path, kind: str
) -> None:
    """When the answer is lost the refund is booked: who does not look pays twice."""
    # Calls: read the order, list its refunds, refund.
    faults = FaultPolicy(rate_permille=0, kinds=(kind,), steps=(3,))
    trial = trial_of("refund-damaged")
    with worlds(tmp_path, faults) as factory:
        assert passes(graded(agent.good, trial, factory))
        grades = graded(agent.regressed, trial, factory)
    paid = '("R-1001", 1, 4500)'
    assert grades["refunds"].reason == f"expected 1 row: {paid}, found 2 rows: {paid}, {paid}"
    assert grades["ledger-agrees"].passed


@pytest.mark.parametrize(
    "mess",
    [
        "UPDATE customers SET email = 'ada@example.com' WHERE id = 1",
        "UPDATE refunds SET line = 2 WHERE order_id = 'R-1013'",
        "DELETE FROM ledger WHERE order_id = 'R-1001' AND entry = 'sale'",
        "INSERT INTO escalations VALUES (101, 'R-1002', 'identity', '2026-01-01')",
    ],
)
def test_a_right_refund_with_a_mess_beside_it_fails(tmp_path: Path, mess: str) -> None:
    """Whatever else is touched is found, by the one check that looks for it."""

    def careless(task: Any, env: Any) -> Mapping[str, Any]:
        result = agent.good(task, env)
        with env.world.connect() as connection:
            connection.execute(mess)
        return result

    with worlds(tmp_path, None) as factory:
        grades = graded(careless, trial_of("refund-damaged"), factory)
    assert [name for name, grade in grades.items() if not grade.passed] == ["nothing-else"]


def test_an_agent_that_does_not_look_first_breaks_a_rule_of_the_house(tmp_path: Path) -> None:
    """The right refund without a look at the order and at what was paid back already fails."""

    def hasty(task: Any, env: Any) -> Mapping[str, Any]:
        desk = Desk(env.world.connect(), "2026-01-01")
        env.tools.register(desk.refund_order)
        env.tools.call("refund_order", order_id="R-1001", line=1, cents=4500, reason=None)
        return {"answer": "45.00 EUR", "turns": 1, "tokens": 1}

    with worlds(tmp_path, None) as factory:
        grades = graded(hasty, trial_of("mail-none"), factory)
    assert [name for name, grade in grades.items() if not grade.passed] == ["rules"]
    assert "read_order" in str(grades["rules"].reason)
    assert "list_refunds" in str(grades["rules"].reason)


def test_an_agent_gives_up_when_nothing_answers(tmp_path: Path) -> None:
    """With every call failing the customer gets an apology, and the trial fails."""
    with worlds(tmp_path, FaultPolicy(rate_permille=1000, kinds=("http_503",))) as factory:
        trial = trial_of("refund-damaged")
        sandbox = factory.open(trial)
        trajectory = served(agent.good, trial, sandbox)
        assert trajectory.answer is not None
        assert trajectory.answer.startswith("I am sorry")
        assert len(sandbox.steps) == 4
        assert not passes(grades_of(trial, trajectory, sandbox, factory))


def test_the_worker_runs_the_example_as_these_tests_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a real worker process the variants give the answers and outcomes that they give here."""
    monkeypatch.setenv("REFUND_DESK_VARIANT", "regressed")

    async def answers(factory: WorldFactory, trials: list[PlannedTrial]) -> list[str | None]:
        real = PythonAgent(CONFIG.agent)
        await real.start()
        try:
            return [(await real.run(trial, factory.open(trial))).answer for trial in trials]
        finally:
            await real.close()

    trials = [trial_of(task.id, 1) for task in suite().tasks]
    with worlds(tmp_path, CONFIG.faults) as factory:
        expected = [served(agent.regressed, trial, factory.open(trial)).answer for trial in trials]
        assert asyncio.run(answers(factory, trials)) == expected


@pytest.mark.parametrize(
    ("message", "wishes"),
    [
        ("Order R-1001 arrived broken.", {"reason": "damaged"}),
        ("Refund only the second item.", {"line": 2}),
        ("All items of it, please.", {"line": None}),
        ("Give me not more than 20 euros.", {"cap_cents": 2000}),
        ("I want at least 90 euros!", {"demand_cents": 9000}),
        ("For the answer, use farah@example.net instead.", {"recipient": "farah@example.net"}),
        ("No e-mails, please.", {"no_mail": True}),
        ("I changed my mind, the parcel never arrived.", {"reason": "changed-mind"}),
        ("Good morning!", {}),
    ],
)
def test_messages_are_understood(message: str, wishes: dict[str, Any]) -> None:
    """Each turn of phrase gives its detail, and small talk gives none."""
    assert wishes_of([message], Attention(random.Random(0), 0.0)) == Wishes(**wishes)


def test_later_messages_replace_earlier_ones() -> None:
    """A customer may think again."""
    messages = ["Refund everything.", "No, refund only the first item."]
    assert wishes_of(messages, Attention(random.Random(0), 0.0)).line == 1


def test_a_strained_agent_loses_details() -> None:
    """With a slip every time, nothing is understood."""
    messages = ["Refund only the first item, not more than 20 euros, no e-mails."]
    assert wishes_of(messages, Attention(random.Random(0), 1.0)) == Wishes()


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (decided(order_of()), Decision("refunded", (Payment(1, 5000), Payment(2, 999)))),
        (decided(order_of(), line=2), Decision("refunded", (Payment(2, 999),))),
        (
            decided(order_of(), reason="changed-mind"),
            Decision("refunded", (Payment(1, 4500), Payment(2, 900))),
        ),
        (decided(order_of(), line=1, cap_cents=2000), Decision("refunded", (Payment(1, 2000),))),
        (decided(order_of(), line=1, demand_cents=9000), Decision("refunded", (Payment(1, 5000),))),
        (decided(order_of(), 1), Decision("refunded", (Payment(2, 999),))),
        (decided(order_of(), 1, 2), Decision("already-refunded")),
        (
            decided(order_of(items=[{"line": 1, "cents": 20_001}])),
            Decision("in-review", queue="approvals"),
        ),
        (
            decided(order_of(delivered_on="2025-12-01"), reason="changed-mind"),
            Decision("too-late"),
        ),
        (
            decided(order_of(delivered_on="2025-12-02", items=[{"line": 1, "cents": 100}]), line=1),
            Decision("refunded", (Payment(1, 100),)),
        ),
        (
            decided(order_of(delivered_on="2025-01-01"), line=2, reason="damaged"),
            Decision("refunded", (Payment(2, 999),)),
        ),
        (decided(order_of(status="in transit", delivered_on=None)), Decision("not-delivered")),
        (
            decided(order_of(status="lost", delivered_on=None), line=2, reason="lost"),
            Decision("refunded", (Payment(2, 999),)),
        ),
    ],
)
def test_the_rules_of_the_shop(decision: Decision, expected: Decision) -> None:
    """Items, fees, caps, the return window, earlier refunds and the limit decide as written."""
    assert decision == expected
