"""Whole runs of an unchanged agent, held against each other."""

from __future__ import annotations

import datetime
import random

import msgspec
import pytest

from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.decision.selfcheck import WholeRun, _pooled, self_check, whole_runs
from ci_gate.errors import UsageError
from ci_gate.model.policy import Guard, Policy, Quarantine
from ci_gate.model.run import AgentRef, BaselineRun, Measure, Side, Stop, StopReason
from ci_gate.model.selfcheck import SelfCheck
from ci_gate.model.verdict import Decision
from ci_gate.stats.run_effect import run_effect
from tests.notation import side_of

STEADY = "++++++++"
DEAD = "--------"


def runs_of(notation: str, **fields) -> list[WholeRun]:
    """Return the runs of one source, all different."""
    return runs_in(side_of(notation, **fields))


def runs_in(side: Side, source: str = "deep") -> list[WholeRun]:
    """Return the runs of a side, all different."""
    rows = len(next(iter(side.tasks.values())).outcomes)
    return list(whole_runs(side, source, [f"sha256:{source}{row}" for row in range(rows)]))


def checked(runs: list[WholeRun], **policy) -> SelfCheck:
    """Check runs against each other."""
    return self_check(runs, Policy(**policy), suite="desk", policy_origin="the defaults")


def noisy(runs: int, tasks: int = 12) -> str:
    """Return a suite of tasks that pass three trials of four, in another way in each run."""
    chance = random.Random(20261030)
    words = []
    for task in range(tasks):
        rows = ["".join(chance.choice("+++-") for _ in range(8)) for _ in range(runs)]
        words += [f"t{task:02}", "/".join(rows)]
    return " ".join(words)


def test_each_run_is_held_against_all_others() -> None:
    """A comparison is what the gate says of the run against a baseline of the other runs."""
    rows = ("+++-++++", "++-+++-+", "-+++++--")
    found = checked(runs_of(f"a {'/'.join(rows)}"))

    for at, comparison in enumerate(found.comparisons):
        others = "/".join(row for i, row in enumerate(rows) if i != at)
        baseline = side_of(f"a {others}", kind="baseline")
        verdict = decide(compare(baseline, side_of(f"a {rows[at]}"), Policy()), Policy())
        assert comparison.p_value == verdict.p_value
        assert comparison.decision == verdict.decision
        assert comparison.metrics["pass^1"] == verdict.metrics["pass^1"].candidate


def test_a_bad_run_is_a_false_alarm() -> None:
    """A run that fell by far on its own is blocked, with its tasks, and counts."""
    found = checked(
        runs_of(f"a {STEADY}/{STEADY}/+-------/{STEADY} b +++-++++/{STEADY}/{STEADY}/{STEADY}")
    )

    assert found.measurable
    assert found.false_alarms is not None
    assert (found.false_alarms.blocked, found.false_alarms.comparisons) == (1, 4)
    assert found.false_alarms.rate == 0.25
    assert found.false_alarms.interval == pytest.approx((0.0063095, 0.805880), abs=1e-5)
    assert [c.decision for c in found.comparisons].index(Decision.REGRESSED) == 2
    assert found.comparisons[2].run == "deep #3"
    assert found.comparisons[2].tasks == ("a",)


def test_that_runs_share_their_comparisons_is_said() -> None:
    """The rate comes with the sentence that its tries are not independent."""
    found = checked(runs_of(noisy(4)))

    assert any("4 runs give 4 comparisons that share their runs" in r for r in found.remarks)
    assert any("takes 72 independent ones" in remark for remark in found.remarks)


def test_a_floor_that_the_agent_never_reaches_is_a_false_alarm() -> None:
    """The whole decision counts, not its test alone; the reasons say what it was."""
    found = checked(runs_of(noisy(3)), floors={"pass^1": 0.99})

    assert found.false_alarms is not None
    assert found.false_alarms.blocked == 3
    assert {reason for c in found.comparisons for reason in c.reasons} == {"floor"}


def test_a_guard_that_a_run_exceeds_is_a_false_alarm() -> None:
    """Measures are those of the run on one side, and of the others on the other."""
    turns = tuple(Measure(mean, 0.1, mean) for mean in (5.0, 5.1, 9.0))

    found = checked(
        runs_of(f"a +++-++++/++++-+++/{STEADY}", a={"measures": {"turns": turns}}),
        guards=(Guard(metric="turns", max_increase=0.2),),
    )

    assert [comparison.reasons for comparison in found.comparisons] == [(), (), ("guard",)]


def test_one_run_is_not_measurable() -> None:
    """There is nothing to hold a single run against."""
    found = checked(runs_of(noisy(1)))

    assert not found.measurable
    assert "one run" in found.because
    assert found.false_alarms is None


def test_a_run_that_is_given_twice_counts_once() -> None:
    """Equal lines from two sources are one run, and that is said."""
    run = runs_of(noisy(1))[0]
    again = WholeRun(source="copy", number=None, digest=run.digest, side=run.side)

    found = checked([run, again])

    assert found.runs == ("deep",)
    assert not found.measurable
    assert "copies of one" in found.because
    assert found.remarks == ("copy is equal to deep in every line and counts once.",)


def test_a_file_that_is_given_twice_counts_once() -> None:
    """Neither its runs nor their names come twice."""
    runs = runs_of(noisy(3))

    assert checked([*runs, *runs]).runs == ("deep #1", "deep #2", "deep #3")


def test_an_agent_that_is_a_function_of_its_seed_measures_nothing() -> None:
    """Runs that are equal trial by trial are copies, and no rate is given."""
    found = checked(runs_of(f"a ++-+++-+/++-+++-+/++-+++-+ b {STEADY}/{STEADY}/{STEADY}"))

    assert not found.measurable
    assert "All 3 runs are equal, trial by trial" in found.because
    assert "deterministic = true" in found.because
    assert (found.false_alarms, found.comparisons) == (None, ())
    assert {task.task: task.kind for task in found.tasks} == {"a": "fixed", "b": "passes"}


def test_a_suite_that_calls_itself_deterministic_measures_nothing() -> None:
    """Its equal runs are copies even where every trial passes."""
    found = checked(runs_of(f"a {STEADY}/{STEADY}"), deterministic=True)

    assert not found.measurable


def test_a_suite_that_always_passes_is_measured_and_said_to_be_silent() -> None:
    """Constant outcomes are no proof of copies; that they say nothing is a remark."""
    found = checked(runs_of(f"a {STEADY}/{STEADY}/{STEADY}"))

    assert found.measurable
    assert found.false_alarms is not None
    assert found.false_alarms.rate == 0
    assert any("No outcome ever moved" in remark for remark in found.remarks)
    assert (found.run_effect, found.tasks[0].noise_share) == (None, 0)


def test_where_every_comparison_is_inconclusive_there_is_no_rate() -> None:
    """Runs in which nothing passes measure nothing, and the reason is named."""
    found = checked(runs_of(f"a {DEAD}/{DEAD}/{DEAD}"))

    assert not found.measurable
    assert "baseline-dead" in found.because
    assert len(found.comparisons) == 3


def test_inconclusive_comparisons_are_no_tries() -> None:
    """A run with too many errors is counted apart from those that were decided."""
    found = checked(runs_of(f"a {STEADY}/!!!!!+++/{STEADY} b +-++++++/{STEADY}/++++++-+"))

    assert found.false_alarms is not None
    assert (found.false_alarms.comparisons, found.false_alarms.inconclusive) == (2, 1)


def test_tasks_say_what_information_they_carry() -> None:
    """Each task moves, is fixed by its seed, passes, fails or was never judged; shares add up."""
    found = checked(
        runs_of(
            f"moves +-++++++/++++-+++ few {STEADY}/+++++++- fixed +-++++++/+-++++++ "
            f"passes {STEADY}/{STEADY} fails {DEAD}/{DEAD} lost !!!!!!!!/!!!!!!!!"
        ),
        max_errored_rate=1.0,
    )

    kinds = {task.task: task.kind for task in found.tasks}
    assert kinds == {
        "moves": "moves",
        "few": "moves",
        "fixed": "fixed",
        "passes": "passes",
        "fails": "fails",
        "lost": "unjudged",
    }
    assert sum(task.noise_share for task in found.tasks) == pytest.approx(1, abs=1e-5)
    assert found.tasks[0].task == "moves"
    lost = next(task for task in found.tasks if task.task == "lost")
    assert (lost.trials, lost.errored) == (0, 16)


def test_without_shared_seeds_nothing_is_fixed_by_one() -> None:
    """Runs whose seeds have nothing to do with each other show no seed effect."""
    found = checked(runs_of("a +-++++++/+-++++++ b +++++++-/++++++++", root_seed=None))

    assert found.seed_effect is None
    assert {task.kind for task in found.tasks} == {"moves"}


def test_seeds_that_matter_are_seen() -> None:
    """Where repeats of a seed agree, z says so and outcomes are exchanged within seeds."""
    rows = " ".join(f"t{i} +-+-+-+-/+-+-+-+-/+-+-+-++" for i in range(4))

    found = checked(runs_of(rows))

    assert found.seed_effect is not None
    assert found.seed_effect.matters
    assert found.seed_effect.strata == "task,seed"
    assert checked(runs_of(rows), pairing="none").seed_effect.strata == "task"  # type: ignore[union-attr]


def test_a_bad_day_is_a_run_effect() -> None:
    """The phi and p shown are those of the runs, and a run that fell everywhere raises them."""
    rows = " ".join(f"t{i:02} ++++-+++/++++++++/-+-+-++-/+++-++++" for i in range(6))

    effect = checked(runs_of(rows), pairing="none").run_effect

    scores = [[[int(x == "+") for x in row] for row in rows.split()[1].split("/")]] * 6
    expected = run_effect(scores, strata="task")
    assert effect is not None
    assert effect.phi == pytest.approx(expected.phi, rel=1e-5)
    assert effect.p_value == pytest.approx(expected.p_value, rel=1e-5)
    assert effect.matters
    assert effect.implied_alpha > 0.05


def test_the_drop_is_one_that_every_comparison_sees() -> None:
    """The detectable drop of a metric is the largest over the comparisons."""
    runs = runs_of(noisy(4))
    found = checked(runs)
    sides = [run.side for run in runs]
    drops = [
        compare(_pooled(sides[:at] + sides[at + 1 :]), side, Policy()).metrics["pass^1"]
        for at, side in enumerate(sides)
    ]

    largest = max(drop.detectable_drop or 9 for drop in drops)
    assert found.metrics["pass^1"].detectable_drop == pytest.approx(largest, rel=1e-5)


def test_tasks_that_differ_between_runs_are_left_out_by_name() -> None:
    """A task that is absent, edited, of other length or other seeds in a run is not compared."""
    first = side_of(
        f"same {STEADY} gone {STEADY} edited {STEADY} long {STEADY} reseeded {STEADY}",
        reseeded={"seeds": ("0x01",) * 8},
    )
    second = side_of(
        f"same +++++++- edited {STEADY} long {STEADY}++ reseeded {STEADY}",
        digests={"edited": "sha256:other"},
        reseeded={"seeds": ("0x02",) * 8},
    )

    found = checked(runs_in(first, "one") + runs_in(second, "two"))

    assert {one.task: one.why for one in found.left_out} == {
        "gone": "in 1 of 2 runs",
        "edited": "its content differs between runs",
        "long": "its number of trials differs between runs",
        "reseeded": "its seeds differ between runs",
    }
    assert [task.task for task in found.tasks] == ["same"]
    assert {c.decision for c in found.comparisons} == {Decision.PASSED}


def test_quarantined_tasks_are_left_out() -> None:
    """What the gate does not judge adds neither noise nor information."""
    policy = Quarantine(task="b", owner="me", until=datetime.date(2030, 1, 1))

    found = checked(runs_of(f"a +-++++++/{STEADY} b {DEAD}/{STEADY}"), quarantine=(policy,))

    assert [(one.task, one.why) for one in found.left_out] == [("b", "in quarantine")]
    assert [task.task for task in found.tasks] == ["a"]


def test_runs_without_a_common_task_are_refused() -> None:
    """Nothing can be compared."""
    runs = runs_in(side_of(f"a {STEADY}"), "one") + runs_in(side_of(f"b {STEADY}"), "two")

    with pytest.raises(UsageError, match="no task in common"):
        checked(runs)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("suite", "other", "suite"),
        ("root_seed", "0x01", "root seed"),
        ("errors", "fail", "errors"),
        ("faults_digest", "sha256:f", "faults digest"),
        ("judge_digest", "sha256:j", "judge digest"),
    ],
)
def test_runs_under_other_conditions_are_refused(field: str, value: str, named: str) -> None:
    """What differs by more than chance would be counted as noise."""
    runs = runs_in(side_of(f"a {STEADY}"), "one")
    runs += runs_in(side_of("a +++++++-", **{field: value}), "two")

    with pytest.raises(UsageError, match=f"two: the {named} is .*as in one"):
        checked(runs)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"complete": False}, "cut short"),
        ({"stop": Stop(round=2, reason=StopReason.BUDGET)}, "cut short"),
        ({"stop": Stop(round=4, reason=StopReason.CURTAILED_PASS)}, "its own outcomes"),
        ({"task_filter": "a*"}, "a part of the suite"),
        ({"shard": "1/2"}, "a part of the suite"),
    ],
)
def test_what_is_no_whole_run_is_refused(fields: dict, said: str) -> None:
    """A run that ended early or left tasks out is none of those that a check makes."""
    with pytest.raises(UsageError, match=said):
        runs_of(f"a {STEADY}", **fields)


def test_runs_of_several_agents_are_measured_with_a_remark() -> None:
    """A digest may change with a file that does nothing; that it did is said."""
    runs = [
        *runs_in(side_of("a +-++++++", runs=(_by("sha256:x"),)), "one"),
        *runs_in(side_of("a +++-++++", runs=(_by("sha256:y"),)), "two"),
    ]

    found = checked(runs)

    assert found.measurable
    assert any("of 2 agents" in remark for remark in found.remarks)


def _by(digest: str) -> BaselineRun:
    return BaselineRun(agent=AgentRef(digest=digest), run_digest="")


def test_a_run_without_trials_is_none() -> None:
    """A row of trials that were not run is no run, and a task that is absent from one is absent."""
    side = side_of(f"a +-++++++/......../{STEADY} b {STEADY}/......../........")

    runs = whole_runs(side, "deep", ["sha256:0", "sha256:2"])

    assert [run.name for run in runs] == ["deep #1", "deep #2"]
    assert list(runs[1].side.tasks) == ["a"]


def test_splitting_and_pooling_loses_nothing() -> None:
    """All runs together again have the outcomes, measures and reasons of the whole."""
    measure = Measure(5.0, 1.0, 5.0)
    side = side_of(
        "a +-!+/++++",
        reasons={"a": {(1, 0): "slip", (2, 0): "lost"}},
        a={"measures": {"turns": (measure, None)}, "faulted": (1, 2), "looped": (0, None)},
    )

    pooled = _pooled([run.side for run in runs_in(side)])

    assert pooled.tasks == side.tasks
    assert pooled.planned == side.planned


def test_the_same_runs_give_the_same_bytes() -> None:
    """Nothing hangs on the order of the tasks, and no figure has more than 6 digits."""
    runs = runs_of(noisy(3))
    turned = [
        WholeRun(
            source=run.source,
            number=run.number,
            digest=run.digest,
            side=msgspec.structs.replace(
                run.side, tasks=dict(reversed(list(run.side.tasks.items())))
            ),
        )
        for run in runs
    ]

    one, other = (msgspec.json.encode(checked(each)) for each in (runs, turned))

    assert one == other
