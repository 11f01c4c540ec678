from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ci_gate.errors import BaselineError
from ci_gate.model.run import AgentRef, Measure, Plan, StopReason
from ci_gate.model.trial import Status
from ci_gate.store.baselines import dump_baseline, parse_baseline, to_side
from ci_gate.store.pooling import admit, from_run, moves_bar, pool
from ci_gate.store.runs import load_run
from ci_gate.store.runs import to_side as side_of_run


def test_a_run_becomes_a_row_a_repeat(desk) -> None:
    """Each repeat of a run file is one run of the baseline, with its own digest."""
    run = desk.run("refund ++-+/+++! cancel ----/-+--", trials=4, model="m")

    baseline = from_run(run)

    assert baseline.tasks["refund"].outcomes == ("++-+", "+++!")
    assert baseline.tasks["cancel"].outcomes == ("----", "-+--")
    assert [one.run_digest for one in baseline.runs] == list(run.repeat_digests.values())
    assert baseline.runs[0].agent == AgentRef(name="good", digest="sha256:good")
    assert baseline.runs[0].model == "m"
    assert baseline.trials == 4
    assert baseline.root_seed == "0x0000000020261030"


def test_run_and_baseline_are_the_same_side(desk) -> None:
    """Outcomes, digests and counts of a run survive in the baseline that is made of it."""
    records = desk.records(
        "refund ++-+/+++! cancel --", turns=5, faults=1, recovered=1, looped=False
    )
    run = desk.run(
        records, plan=Plan(trials=4, task_trials={"cancel": 2}, repeats=2, max_repeats=2)
    )

    written = parse_baseline(dump_baseline(from_run(run)), name="x")

    expected, found = side_of_run(run).tasks, to_side(written).tasks
    assert {task: one.outcomes for task, one in found.items()} == {
        task: one.outcomes for task, one in expected.items()
    }
    assert found["refund"].digest == expected["refund"].digest
    assert found["refund"].faulted == expected["refund"].faulted == (4, 3)
    assert found["refund"].measures["turns"] == expected["refund"].measures["turns"]
    assert written.tasks["cancel"].trials == 2
    assert written.tasks["cancel"].outcomes == ("--", "")


def test_process_measures_survive_with_the_trials_that_know_them(desk) -> None:
    """Beside the agent's own of the same name, in two runs that are pooled, byte for byte."""
    values = iter([{"consistency": 2 / 3}, None, {"consistency": 0.5}, {}] * 2)
    records = [
        msgspec.structs.replace(one, process=next(values), measures={"consistency": 7.0})
        for one in desk.records("refund ++-+/++-+")
    ]
    run = desk.run(records, plan=Plan(trials=4, repeats=2, max_repeats=2))

    written = dump_baseline(from_run(run))
    kept = to_side(parse_baseline(written, name="x")).tasks["refund"]

    expected = Measure(0.583, 0.118, 0.667, 2)
    assert kept.process == {"consistency": (expected, expected)}
    assert kept.measures["consistency"] == (Measure(7.0, 0.0, 7.0),) * 2
    assert dump_baseline(parse_baseline(written, name="x")) == written
    assert side_of_run(run).tasks["refund"].process["consistency"][0].known == 2


def test_measures_have_three_digits(desk) -> None:
    """A baseline keeps its measures to 3 significant digits."""
    records = [
        msgspec.structs.replace(one, cost_usd=0.0012345 * (1 + one.trial))
        for one in desk.records("refund +-")
    ]

    assert from_run(desk.run(records)).tasks["refund"].cost_usd == (
        Measure(0.00185, 0.000873, 0.00123),
    )


def test_without_a_plan_the_longest_task_gives_the_number(desk) -> None:
    """A foreign run's trials are its longest task's; shorter ones keep their own number."""
    path = desk.lines(desk.minimal, desk.trial(1), desk.trial(0, task="short"))

    baseline = from_run(load_run(path))

    assert baseline.trials == 2
    assert baseline.tasks["short"].trials == 1
    assert baseline.tasks["refund"].outcomes == (".+",)


def test_runs_of_one_agent_are_pooled_as_repeats(desk) -> None:
    """A further run of the same suite, seeds and agent deepens the baseline."""
    first = from_run(desk.run("refund ++-+ cancel ----", "one"))

    pooled = pool(first, [desk.run("refund +++! cancel -+--", "two")])

    assert pooled.tasks["refund"].outcomes == ("++-+....", "+++!....")
    assert len(pooled.runs) == 2
    assert parse_baseline(dump_baseline(pooled), name="x") == pooled


def test_rows_of_unknowns_keep_their_place(desk) -> None:
    """Where only one of the pooled runs knows a measure, the other's entry is null."""
    plain = desk.run("refund ++", "one")
    known = desk.run(
        desk.records("refund +-", turns=3, faults=1, recovered=1, measures={"plan": 1.0}), "two"
    )

    task = pool(from_run(plain), [known]).tasks["refund"]

    assert task.turns == (None, Measure(3.0, 0.0, 3.0))
    assert task.faulted == (None, 2)
    assert task.measures == {"plan": (None, Measure(1.0, 0.0, 1.0))}
    assert task.tokens is None


def test_a_task_that_a_run_lacks_has_an_empty_row(desk) -> None:
    """A task that was in one of the runs alone is pooled with an empty row."""
    pooled = pool(None, [desk.run("refund ++", "one"), desk.run("refund +- cancel --", "two")])

    assert pooled.tasks["cancel"].outcomes == ("", "--......")
    assert pooled.tasks["refund"].outcomes == ("++......", "+-......")


def test_a_run_that_is_there_adds_nothing(desk) -> None:
    """Updating twice with one run gives the very same baseline."""
    run = desk.run("refund ++-+")
    baseline = from_run(run)

    assert pool(baseline, [run]) is baseline
    assert pool(None, [run, run]) == baseline
    assert not moves_bar(baseline, pool(baseline, [run]))


def test_only_the_new_runs_are_added(desk) -> None:
    """Of runs that are partly known, the unknown ones are added."""
    known, other = desk.run("refund ++-+", "one"), desk.run("refund +++!", "two")

    pooled = pool(from_run(known), [known, other])

    assert pooled.tasks["refund"].outcomes == ("++-+....", "+++!....")


@pytest.mark.parametrize(
    "change",
    [
        {"agent": AgentRef(digest="sha256:better")},
        {"agent": None},
        {"suite_digest": "sha256:other"},
        {"root_seed": "0x1"},
        {"errors": "fail"},
        {"faults_digest": "sha256:f"},
        {"judge_digest": "sha256:j"},
        {"plan": Plan(trials=16)},
    ],
)
def test_another_agent_starts_anew(desk, change: dict[str, Any]) -> None:
    """A run of another agent, suite, plan or conditions replaces the baseline."""
    existing = from_run(desk.run("refund ++-+", "one"))

    updated = pool(existing, [desk.run("refund +++!", "two", **change)])

    assert len(updated.runs) == 1
    assert updated.tasks["refund"].outcomes[0].startswith("+++!")
    assert moves_bar(existing, updated)


def test_unidentified_agents_are_not_the_same(desk) -> None:
    """Two runs whose agents have no digest are never pooled over time."""
    existing = from_run(desk.run("refund ++", "one", agent=None))

    assert len(pool(existing, [desk.run("refund +-", "two", agent=None)]).runs) == 1


def test_runs_given_together_must_belong_together(desk) -> None:
    """Runs of two agents in one update are refused, the difference named."""
    good = desk.run("refund ++", "one")
    other = desk.run("refund +-", "two", agent=AgentRef(digest="sha256:x"))

    with pytest.raises(BaselineError, match="agent digest sha256:good, now sha256:x"):
        pool(None, [good, other])


def test_a_changed_task_is_no_further_repeat(desk) -> None:
    """Where suites have no digest, a task with another digest keeps runs apart."""
    records = desk.records("refund ++")
    changed = [msgspec.structs.replace(one, task_digest="sha256:new") for one in records]
    first = desk.run(records, "one", suite_digest=None)
    second = desk.run(changed, "two", suite_digest=None)

    assert len(pool(from_run(first), [second]).runs) == 1
    with pytest.raises(BaselineError, match="task refund has another digest"):
        pool(None, [first, second])


def test_nothing_makes_no_baseline(desk) -> None:
    """No run, or a run without trials, is refused."""
    with pytest.raises(BaselineError, match="no run was given"):
        pool(None, [])
    with pytest.raises(BaselineError, match="has no trials"):
        pool(None, [desk.run("")])


def test_force_is_recorded_with_the_runs_it_let_in(desk) -> None:
    """Runs that are admitted by force say so, earlier ones stay as they were."""
    existing = from_run(desk.run("refund ++", "one"))

    pooled = pool(existing, [desk.run("refund +-", "two")], forced=True)

    assert [run.forced for run in pooled.runs] == [False, True]


def test_unknown_fields_survive_pooling(desk) -> None:
    """Facts of a newer writer stay when an older one adds a run."""
    first = from_run(desk.run("refund ++", "one"))
    tasks = {"refund": msgspec.structs.replace(first.tasks["refund"], extra={"mood": 1})}
    existing = msgspec.structs.replace(first, extra={"weather": "sun"}, tasks=tasks)

    pooled = pool(existing, [desk.run("refund +-", "two")])

    assert pooled.extra == {"weather": "sun"}
    assert pooled.tasks["refund"].extra == {"mood": 1}


def test_a_dirty_work_tree_is_remembered(desk) -> None:
    """A baseline says that its agent had uncommitted changes, and nothing of a clean one."""
    dirty = from_run(desk.run("refund +", "one", agent=AgentRef(digest="d", dirty=True)))
    clean = from_run(desk.run("refund +", "two", agent=AgentRef(digest="d", dirty=False)))

    assert b'"dirty":true' in dump_baseline(dirty)
    assert b"dirty" not in dump_baseline(clean)


def test_slower_is_not_lower(desk) -> None:
    """Measures alone move no bar; an outcome or a digest does."""
    fast = from_run(desk.run(desk.records("refund +", duration_s=1.0), "one"))
    slow = from_run(desk.run(desk.records("refund +", duration_s=9.0), "two"))
    other = from_run(desk.run("refund -", "three"))

    assert fast != slow
    assert not moves_bar(fast, slow)
    assert moves_bar(fast, other)
    assert moves_bar(None, fast)


def reasons(run: Any, ks: tuple[int, ...] = (1, 4), limit: float = 0.05) -> list[str]:
    problems = admit(from_run(run), ks=ks, max_errored_rate=limit, runs=[run])
    return [problem.what for problem in problems]


def test_a_sound_baseline_is_admitted(desk) -> None:
    """Enough trials, few errors, a pass and a whole run are all that is asked."""
    assert reasons(desk.run("refund ++-+ cancel ----", trials=4)) == []


@pytest.mark.parametrize(
    ("notation", "fields", "ks", "reason"),
    [
        ("refund ++-+", {}, (1, 8), "pass^8 needs 8 judged trials of each task: refund has 4"),
        ("refund +++! b ++++", {"limit": 1.0}, (4,), "4 judged trials of each task: refund has 3"),
        ("refund +++! b !!!!", {"limit": 1.0}, (), "1 judged trial of each task: b has 0"),
        ("refund ----", {}, (1,), "not a single trial passed"),
        ("refund ++!!", {}, (1,), "2 of 4 trials errored, at most 5.0% may"),
        ("refund ++-.", {}, (1,), "1 of 4 trials were not run"),
        ("refund ++-+", {"reason": StopReason.BUDGET}, (1,), "the run was cut short"),
        ("refund ++-+", {"reason": StopReason.INTERRUPTED}, (1,), "the run was cut short"),
        ("refund ++-+", {"reason": StopReason.CURTAILED_PASS}, (1,), "is no fair sample"),
        ("refund ++-+", {"reason": StopReason.CURTAILED_REGRESSED}, (1,), "is no fair sample"),
        ("refund ++-+", {"task_filter": "ref*"}, (1,), "a part of the suite (--task ref*)"),
        ("refund ++-+", {"shard": "1/2"}, (1,), "a part of the suite (--shard 1/2)"),
    ],
)
def test_what_cannot_serve_is_refused(
    desk, notation: str, fields: dict[str, Any], ks: tuple[int, ...], reason: str
) -> None:
    """Each way in which a baseline cannot serve is refused with its reason."""
    limit = fields.pop("limit", 0.05)
    found = reasons(desk.run(notation, **{"trials": 4, **fields}), ks, limit)

    assert len(found) == 1
    assert found[0].endswith(reason)


def test_a_torn_run_is_refused(desk) -> None:
    """A journal that never ended cannot become a baseline."""
    run = load_run(desk.lines(desk.header(trials=1), *desk.records("refund +")))

    assert reasons(run, (1,)) == ["the run was cut short"]


def test_repeats_count_as_trials(desk) -> None:
    """Two runs over four seeds give a task eight trials."""
    assert reasons(desk.run("refund ++-+/+++-", trials=4), (8,)) == []


def test_a_task_with_its_own_small_number_is_refused_by_name(desk) -> None:
    """A task that no plan of the gate could judge is not let in behind the others."""
    plan = Plan(trials=4, task_trials={"slow": 1, "odd": 3})
    run = desk.run("slow + refund ++-+ odd ++-", plan=plan)

    assert reasons(run) == ["pass^4 needs 4 judged trials of each task: odd has 3, slow has 1"]
    assert reasons(run, (1,)) == []


def test_only_the_first_tasks_that_are_short_are_named(desk) -> None:
    """A refusal stays a line, however many tasks are short."""
    run = desk.run(" ".join(f"t{i} +" for i in range(8)), trials=1)

    assert reasons(run, (2,))[0].endswith("t4 has 1 and 3 more")


@pytest.mark.parametrize(("errored", "refused"), [(29, False), (30, True)])
def test_the_share_of_errors_is_exact(desk, errored: int, *, refused: bool) -> None:
    """29 of 100 are 0.29, which the nearest binary number just misses."""
    run = desk.run(f"refund {'+' * (100 - errored)}{'!' * errored}", trials=100)

    assert bool(reasons(run, (1,), 0.29)) is refused


def test_errors_that_count_as_failures_are_no_reason(desk) -> None:
    """Under errors = fail errored trials are judged, so their share is no obstacle."""
    assert reasons(desk.run("refund ++!!", trials=4, errors="fail"), (4,)) == []


def test_statuses_are_the_three(desk) -> None:
    """Outcome characters and statuses correspond one to one."""
    side = side_of_run(desk.run("refund +-!", trials=3))

    assert side.tasks["refund"].outcomes == ("+-!",)
    assert [one.value for one in Status] == ["passed", "failed", "errored"]
