"""The section on faults: one line for the suite, one for the baseline, the worst tasks."""

from __future__ import annotations

import msgspec
import pytest

from ci_gate.model.resilience import Resilience, TaskResilience
from ci_gate.render.document import Fold, Section
from ci_gate.render.layout import Limits
from ci_gate.render.resilience import MOST_TASKS, resilience
from tests.render import samples
from tests.render.samples import condition, verdict


def section(found: Resilience, limits: Limits | None = None) -> Section | None:
    """Return the section on these findings."""
    return resilience(verdict(resilience=found), limits or Limits())


def task(name: str, recovered: int = 1, looped: int = 0) -> TaskResilience:
    """Return a task that met faults in three trials."""
    made = condition("4/8", faulted=3, recovered=recovered, looped=looped, steps=3.0)
    return TaskResilience(task=name, candidate=made)


def test_a_calm_run_stands_beside_the_faulted_one() -> None:
    """The suite first, then its baseline, then the tasks that lose most."""
    found = section(samples.green().resilience)

    assert found is not None
    assert found.table is not None
    assert found.fold is Fold.OPEN
    assert [column.title for column in found.table.columns] == [
        *("Task", "In calm", "Under faults", "Difference", "95 % interval", "Healed"),
        *("Blind retries", "Turns in calm", "Turns under faults", "Ratio"),
    ]
    assert found.table.rows[0] == (
        *("all tasks", "99.0 %", "91.2 %", "−7.8", "−9.8 to −5.7"),  # noqa: RUF001 - as shown
        *("95/103 (92.2 %)", "1 (0.2 %)", "4.51", "4.97", "1.1"),
    )
    assert [row[0] for row in found.table.rows[1:]] == [
        *("all tasks, baseline", "lookup-0007", "refund-4812"),
    ]


def test_without_a_calm_run_its_columns_are_left_out() -> None:
    """What one run can say is said, folded, the tasks that heal least first."""
    made = condition("12/16", faulted=6, recovered=2, looped=1, steps=3.0)
    tasks = (task("fine", recovered=3), task("loops", looped=1), task("worse", recovered=0))

    found = section(Resilience(under_faults=True, candidate=made, steps_in="turns", tasks=tasks))

    assert found is not None
    assert found.table is not None
    assert found.fold is Fold.CLOSED
    assert [column.title for column in found.table.columns] == [
        *("Task", "Under faults", "Healed", "Blind retries", "Turns under faults"),
    ]
    assert found.table.rows[1][:3] == ("worse", "50.0 %", "0/3 (0 %)")
    assert [row[0] for row in found.table.rows[2:]] == ["loops", "fine"]


def test_only_the_worst_tasks_are_shown_and_the_others_counted() -> None:
    """A hundred tasks do not push the rest out of a comment."""
    made = condition("12/16", faulted=6, recovered=2, looped=1, steps=3.0)
    tasks = tuple(task(f"t{n:03}") for n in range(100))

    found = section(Resilience(under_faults=True, candidate=made, tasks=tasks))

    assert found is not None
    assert found.table is not None
    assert (len(found.table.rows), found.table.hidden) == (1 + MOST_TASKS, 100 - MOST_TASKS)


@pytest.mark.parametrize("looped", [0, 1])
def test_a_suite_without_faults_has_no_section_unless_it_repeats_itself(looped: int) -> None:
    """Nothing met and nothing repeated is nothing to say."""
    made = condition("12/16", faulted=0, recovered=0, looped=looped, steps=3.0)

    found = section(Resilience(candidate=made, steps_in="turns"))

    assert (found is not None) == bool(looped)
    if found is not None and found.table is not None:
        titles = [column.title for column in found.table.columns]
        assert titles == ["Task", "Passed", "Blind retries", "Turns"]


def test_faults_that_reached_nothing_are_named() -> None:
    """A rate of 0 would look like an answer."""
    made = condition("12/16", faulted=0, recovered=0, looped=0, steps=3.0)

    found = section(Resilience(under_faults=True, candidate=made))

    assert found is not None
    assert found.notes[0].startswith("No trial met a fault")


def test_a_verdict_of_an_earlier_version_still_reads() -> None:
    """Its measures of both sides are the same fields."""
    text = '{"baseline": {"trials": 8, "faulted": 2}, "candidate": {"trials": 8, "faulted": 3}}'

    found = msgspec.json.decode(text, type=Resilience)

    assert found.candidate is not None
    assert found.candidate.faulted == 3
    assert section(found) is not None
