"""What a report says, before it is laid out."""

from __future__ import annotations

import msgspec
import pytest

from ci_gate.model.verdict import (
    Claim,
    Decision,
    ReasonCode,
    SuiteChanges,
    Verdict,
)
from ci_gate.render.document import Fold, Section, SuiteView, Table
from ci_gate.render.layout import Limits
from ci_gate.render.view import ReportOptions, view
from tests.render import samples
from tests.render.samples import metric, task, verdict


def only(made: Verdict, options: ReportOptions | None = None) -> SuiteView:
    """Return the view of a single suite."""
    return view([made], options).suites[0]


def section(made: Verdict, key: str) -> Section:
    """Return a section that must be there."""
    return next(found for found in only(made).sections if found.key == key)


def keys(made: Verdict) -> list[str]:
    """Return the sections in the order they are read."""
    return [found.key for found in only(made).sections]


def table(made: Verdict, key: str) -> Table:
    """Return the table of a section that must have one."""
    found = section(made, key).table
    assert found is not None
    return found


def column(shown: Table, title: str) -> list[str]:
    """Return a column of a table by its title."""
    index = [found.title for found in shown.columns].index(title)
    return [row[index] for row in shown.rows]


def test_report_needs_a_verdict() -> None:
    """A report on nothing is a mistake of the caller."""
    with pytest.raises(ValueError, match="at least one verdict"):
        view([])


def test_worst_suite_comes_first_and_equals_keep_their_order() -> None:
    """Suites are read in the order regressed, inconclusive, passed."""
    made = [samples.green(), samples.inconclusive(), samples.no_baseline(), samples.red_by_task()]
    named = [msgspec.structs.replace(v, suite_name=str(n)) for n, v in enumerate(made)]

    report = view(named)

    assert [suite.name for suite in report.suites] == ["3", "1", "0", "2"]
    assert report.decision is Decision.REGRESSED
    assert report.headline == "Regressed: 1 of 4 suites"


def test_overview_has_a_row_a_suite_with_its_movement() -> None:
    """The overview shows for every suite both sides of each metric, with the trials judged."""
    overview = view(samples.several()).overview

    assert column(overview, "Suite") == ["refund-desk", "lookup", "onboarding"]
    assert column(overview, "pass^1") == ["91.0 % → 84.0 %", "91.0 % → 91.2 %", "– → 87.5 %"]  # noqa: RUF001 - as shown
    assert column(overview, "Regressed tasks") == ["2 of 50", "0 of 50", "0 of 0"]
    assert column(overview, "Trials judged") == ["399 of 400", "400 of 400", "24 of 24"]


def test_pass_says_what_it_could_have_seen() -> None:
    """A pass names the drop of each metric that the run would have seen, with its n."""
    assert section(samples.green(), "summary").lead == (
        (
            "With 80 % power this run would have seen a drop of 5.2 points of pass^1 (50 tasks) "
            "or 14.0 points of pass^8 (50 tasks)."
        ),
    )


def test_pass_without_known_power_claims_none() -> None:
    """Where no detectable drop is known, nothing is said of one."""
    made = verdict(metrics={"pass^1": metric(0.9, 0.9, detectable=None)})

    assert "summary" not in keys(made)


def test_reasons_are_told_in_the_order_of_the_verdict() -> None:
    """Every reason's sentence stands at the top."""
    assert section(samples.flipped(), "summary").lead == tuple(
        reason.text for reason in samples.flipped().reasons
    )


def test_metrics_show_both_sides_interval_p_and_n() -> None:
    """A row of the metrics holds everything the verdict knows of it."""
    shown = table(samples.red_by_task(), "metrics")

    assert shown.rows[0] == (
        *("pass^1", "91.0 %", "84.0 %", "−7.0", "−11.0 to −3.0"),  # noqa: RUF001 - as shown
        *("0.001", "0.002", "5.2", "50"),
    )


def test_metrics_without_a_comparison_leave_out_its_columns() -> None:
    """Columns in which nothing is known are left out."""
    titles = [found.title for found in table(samples.no_baseline(), "metrics").columns]

    assert titles == ["Metric", "Baseline", "Candidate", "Tasks"]


def test_trials_are_accounted_for() -> None:
    """Planned, run, judged and errored trials and the stop are always said."""
    notes = section(samples.red_by_task(), "metrics").notes

    assert notes[0] == "Trials: 400 planned, 400 run, 399 judged, 1 errored (complete)."


def test_baseline_says_where_it_came_from() -> None:
    """The report names the commit that the baseline was read from."""
    notes = section(samples.green(), "metrics").notes

    assert notes[-1].startswith("Baseline: baselines/refund-desk.json of the base commit 3f9c2ab8")


def test_regressed_tasks_are_ordered_worst_first() -> None:
    """The strongest evidence comes first, then the largest drop, then the id."""
    strong = {"p": 1e-4, "adjusted": 0.001}
    red = [
        task("weak", Claim.REGRESSED, p=0.01, adjusted=0.04, contribution=-0.5),
        task("b-same", Claim.REGRESSED, **strong, contribution=-0.1),
        task("a-same", Claim.REGRESSED, **strong, contribution=-0.1),
        task("deeper", Claim.REGRESSED, **strong, contribution=-0.2),
    ]

    shown = table(verdict(Decision.REGRESSED, tasks=red), "regressed")

    assert column(shown, "Task") == ["deeper", "a-same", "b-same", "weak"]


def test_regressed_task_shows_n_rates_errors_and_the_first_reason() -> None:
    """A regressed task's row has both rates with their n, errored trials and why it failed."""
    shown = table(samples.red_by_task(), "regressed")

    assert [found.title for found in shown.columns] == [
        *("Task", "Baseline", "Candidate", "Adjusted p", "First failure shown"),
    ]
    assert shown.rows[0] == (
        *("refund-4812", "31/32 (96.9 %) + 1 errored", "1/8 (12.5 %)", "< 0.001"),
        "expected refunds.amount = 20, found 40",
    )


def test_replays_hold_at_most_eight_seeds_each_with_its_command() -> None:
    """Of a task's failing trials eight are shown, with seed, reason and command."""
    red = task("t", Claim.REGRESSED, "32/32", "0/20", 1e-9, adjusted=1e-6, failing=range(20))

    (replays,) = section(verdict(Decision.REGRESSED, tasks=[red]), "regressed").replays

    assert replays.commands == tuple(f"ci-gate replay t --trial {n}" for n in range(8))
    assert [found.title for found in replays.trials.columns] == ["Trial", "Seed", "Why it failed"]
    assert replays.trials.rows[0][:2] == ("0", "0x00000000be116989")


def test_replays_name_the_repeat_where_there_is_one() -> None:
    """A trial of a later run over the seeds is named with its repeat."""
    red = task("t", Claim.REGRESSED, "32/32", "0/8", failing=[3])
    again = msgspec.structs.replace(
        red, replay=(msgspec.structs.replace(red.replay[0], repeat=2), *red.replay)
    )

    (replays,) = section(verdict(Decision.REGRESSED, tasks=[again]), "regressed").replays

    assert column(replays.trials, "Repeat") == ["2", "–"]  # noqa: RUF001 - as shown


def test_contributors_are_the_five_largest_drops() -> None:
    """Where the suite regressed and no task did, the five largest drops are shown with seeds."""
    found = section(samples.red_by_suite(), "contributors")

    assert found.table is not None
    assert column(found.table, "Task") == [f"refund-{n}" for n in (4812, 4816, 4813, 4817, 4814)]
    assert [replays.task for replays in found.replays] == column(found.table, "Task")
    assert found.lead == ("The suite regressed as a whole; no single task is proven to have.",)


def test_contributors_are_not_shown_beside_a_proven_task() -> None:
    """Where a task is proven to have regressed, it is what is shown."""
    assert "contributors" not in keys(samples.red_by_task())


def test_contributors_are_what_the_verdict_says_they_are() -> None:
    """A task's part is read, not computed again: over paired seeds its rates may say otherwise."""
    made = verdict(
        Decision.REGRESSED,
        {ReasonCode.SUITE_REGRESSED: "fell"},
        [
            task("up", baseline="8/8", candidate="1/8", contribution=0.2),
            task("still", baseline="8/8", candidate="1/8", contribution=0.0),
            task("down", baseline="8/16", candidate="4/8", contribution=-0.01),
            task("deep", baseline="8/16", candidate="4/8", contribution=-0.02),
        ],
    )

    found = section(made, "contributors").table

    assert found is not None
    assert column(found, "Task") == ["deep", "down"]


def test_improvements_are_ordered_by_their_part_of_the_gain() -> None:
    """The task that lifted the suite the most comes first, whatever its p-value."""
    made = verdict(
        tasks=[
            task("small", Claim.IMPROVED, p=0.99, contribution=0.01),
            task("large", Claim.IMPROVED, p=0.9, contribution=0.05),
        ]
    )

    assert column(table(made, "improved"), "Task") == ["large", "small"]


@pytest.mark.parametrize(
    ("claim", "code", "key"),
    [
        (Claim.REMOVED, ReasonCode.TASKS_REMOVED, "removed"),
        (Claim.CHANGED, ReasonCode.TASKS_CHANGED, "changed"),
        (Claim.UNJUDGED, ReasonCode.TASK_UNJUDGED, "unjudged"),
    ],
)
def test_section_stands_open_where_it_is_the_reason(
    claim: Claim, code: ReasonCode, key: str
) -> None:
    """Tasks that were not compared are folded unless they are why the verdict is what it is."""
    tasks = [task("t", claim)]

    assert section(verdict(tasks=tasks), key).fold is Fold.CLOSED
    assert section(verdict(Decision.REGRESSED, {code: "x"}, tasks), key).fold is Fold.OPEN


def test_tasks_that_only_the_account_names_are_listed() -> None:
    """A removed task is listed even where the verdict holds no result of it."""
    made = verdict(suite=SuiteChanges(compared=1, removed=("gone",)))

    assert column(table(made, "removed"), "Task") == ["gone"]


def test_errored_tasks_come_with_the_most_errors_first() -> None:
    """Tasks with errored trials are listed, and open where there were too many."""
    found = section(samples.inconclusive(), "errored")

    assert found.fold is Fold.OPEN
    assert found.table is not None
    assert column(found.table, "Candidate") == ["5/5 (100 %) + 3 errored"]


def test_broken_floor_stands_open_and_looks_broken() -> None:
    """A floor that is broken is not shown as the same figure as the floor."""
    found = section(samples.flipped(), "floors")

    assert found.fold is Fold.OPEN
    assert found.table is not None
    assert found.table.rows == (("pass^1", "90.0 %", "89.99 %", "89.996 %", "broken"),)


def test_guard_changes_have_their_unit() -> None:
    """Relative guards are in per cent; a guard that could not be judged stands open."""
    red = samples.red_by_task()
    unknown = msgspec.structs.replace(red.guards[0], passed=None, change=None, bound=None)

    assert table(red, "guards").rows[0] == (
        *("cost per success (USD)", "0.0021", "0.0024", "+14.3 %", "+9.0 %", "+25.0 %", "kept"),
    )
    open_section = section(msgspec.structs.replace(red, guards=(unknown,)), "guards")
    assert open_section.fold is Fold.OPEN


def test_measures_show_both_sides_and_infinity() -> None:
    """Economics have a row a measure; a cost of no success is infinite."""
    made = verdict(
        economics={
            "baseline": {"trials": 10, "successes": 9, "cost_per_success_usd": 0.0023},
            "candidate": {"successes": 0, "cost_per_success_usd": None},
        },
        metrics={"pass^8": metric(0.6, 0.5, others=(1.0, 0.98))},
    )

    assert table(made, "measures").rows == (
        ("pass@8", "100 %", "98.0 %"),
        ("trials", "10", "–"),  # noqa: RUF001 - as shown
        ("successes", "9", "0"),
        ("cost per success (USD)", "0.0023", "∞"),
    )


def test_provenance_is_flat_and_digests_are_short() -> None:
    """Commits, digests, seed and versions are listed by name."""
    rows = dict(table(samples.green(), "provenance").rows)

    assert rows["joint p"] == "0.410"
    assert rows["baseline commit"] == "3f9c2ab81e44d20c7a0d1b6f5ce2a1907b3d4e5f"
    assert rows["baseline digest"] == "sha256:5f70bf18a086"
    assert rows["baseline age (days)"] == "6"
    assert rows["root seed"] == "0x0000000020261030"
    assert rows["joint distribution"] == "seeded Monte Carlo, 65,536 draws"


@pytest.mark.parametrize(
    ("made", "remark"),
    [
        (verdict(), ""),
        (verdict(partial=True), "a part of the suite only"),
        (samples.no_baseline(), "no baseline yet"),
        (verdict(Decision.REGRESSED, exit_code=0, mode="advisory"), "does not block"),
        (verdict(Decision.PASSED, {ReasonCode.BAR_MOVED: "x"}), "the bar moves"),
    ],
)
def test_remark_qualifies_the_verdict(made: Verdict, remark: str) -> None:
    """What a reader must know of a verdict stands beside it."""
    assert only(made).remark == remark


def test_long_tables_are_limited_by_rows() -> None:
    """Of many tasks the worst are shown and the others counted."""
    options = ReportOptions(limits=Limits(rows=3, replayed_tasks=2))

    suite = only(samples.huge(10), options)

    red = next(found for found in suite.sections if found.key == "regressed")
    assert red.title == "Regressed tasks (10)"
    assert red.table is not None
    assert (len(red.table.rows), red.table.hidden, len(red.replays)) == (3, 7, 2)


def test_predicted_chance_is_shown_where_there_is_one() -> None:
    """After a curtailed stop the chance to be red stands where p-values do not exist."""
    curtailed = msgspec.structs.replace(metric(0.9, 0.8), predictive=0.972)

    shown = table(verdict(metrics={"pass^1": curtailed}), "metrics")

    assert column(shown, "Chance to be red") == ["97.2 %"]
    assert "p" not in [found.title for found in shown.columns]


def test_a_predicted_metric_has_a_cell_of_its_own() -> None:
    """What is foretold never stands where the estimate would."""
    suite = only(samples.curtailed())

    found = next(section for section in suite.sections if section.key == "metrics")
    assert found.table is not None
    assert column(found.table, "Candidate") == ["84.0 %", "–"]  # noqa: RUF001 - the dash for what is absent
    assert column(found.table, "Predicted") == ["–", "44.0 % (31.0 % to 57.0 %)"]  # noqa: RUF001
    assert any("pass^8 (Beta fit, r = 3)" in note and "61.0 %" in note for note in found.notes)
    assert any("There is no p-value" in note for note in found.notes)


def test_a_stopped_run_says_its_chance_and_what_its_plan_could_have_seen() -> None:
    """The chance to be red follows the reasons; power is that of the plan."""
    passed = msgspec.structs.replace(samples.green(), predictive=0.0123, p_value=None)

    suite = only(passed)

    assert suite.remark == "stopped early"
    lead = suite.sections[0].lead
    assert "The whole plan would be red with 1.2 % chance." in lead
    assert any("the whole plan would have seen a drop" in text for text in lead)


def test_of_tasks_that_are_all_but_certain_the_surest_leads() -> None:
    """Chances rank where there are no p-values."""
    red = next(s for s in only(samples.curtailed()).sections if s.key == "regressed")

    assert red.table is not None
    assert column(red.table, "Task") == ["refund-4813", "refund-4812"]
