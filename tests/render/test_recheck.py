"""What a report says of a recheck."""

from __future__ import annotations

import msgspec
import pytest

from ci_gate.model.verdict import (
    Attribution,
    Counts,
    Recheck,
    RecheckTask,
    RecheckTest,
    Verdict,
)
from ci_gate.render.document import Fold, Section
from ci_gate.render.markdown import markdown
from ci_gate.render.view import view
from tests.render import samples
from tests.render.regenerate import printed

CLEAR = RecheckTest(regressed=True, p_value=1e-6, level=0.05, strata="task", exact=True, draws=0)
CALM = msgspec.structs.replace(CLEAR, regressed=False, p_value=0.4)
FOUND = Recheck(
    attribution=Attribution.CHANGE,
    commit="deadbeef" * 5,
    whole_suite=False,
    trials=16,
    tasks=(
        RecheckTask(
            task="calm",
            baseline=Counts(trials=8, passed=8, errored=0),
            base=Counts(trials=16, passed=16, errored=0),
            candidate=Counts(trials=16, passed=16, errored=0),
        ),
        RecheckTask(
            task="refund",
            baseline=Counts(trials=8, passed=8, errored=0),
            base=Counts(trials=16, passed=15, errored=0),
            candidate=Counts(trials=16, passed=2, errored=0),
        ),
    ),
    rates={"baseline": 1.0, "base": 0.96875, "candidate": 0.5625},
    change=CLEAR,
    environment=CALM,
)


def rechecked(**fields: object) -> Verdict:
    """Return a red verdict with a recheck."""
    recheck = msgspec.structs.replace(FOUND, **fields)
    return msgspec.structs.replace(samples.red_by_task(), recheck=recheck)


def section(verdict: Verdict) -> Section:
    """Return the section on the recheck."""
    [suite] = view([verdict]).suites
    return next(found for found in suite.sections if found.key == "recheck")


def test_it_stands_open_behind_the_metrics() -> None:
    """It says what the red is worth, so nobody has to unfold it."""
    [suite] = view([rechecked()]).suites

    keys = [found.key for found in suite.sections]
    assert keys.index("recheck") == keys.index("metrics") + 1
    assert section(rechecked()).fold is Fold.NEVER


def test_without_one_there_is_no_section() -> None:
    """Most checks have none."""
    [suite] = view([samples.red_by_task()]).suites

    assert "recheck" not in [found.key for found in suite.sections]


def test_the_rates_of_all_three_the_worst_task_first() -> None:
    """The stored baseline, the base of today and the candidate, with their n."""
    found = section(rechecked())

    assert found.title == "Recheck: change"
    assert found.table is not None
    assert found.table.rows == (
        ("refund", "8/8 (100 %)", "15/16 (93.8 %)", "2/16 (12.5 %)"),
        ("calm", "8/8 (100 %)", "16/16 (100 %)", "16/16 (100 %)"),
    )
    made, tested = found.notes
    assert made == (
        "16 fresh trials a task and side, of the tasks with the smallest p, in turns; base is "
        "commit deadbeefdead."
    )
    assert tested == (
        "pass^1 over these tasks: baseline 100 %, base 96.9 %, candidate 56.2 %. One-sided at "
        "level 0.05: candidate below base p < 0.001, base below baseline p 0.400."
    )


@pytest.mark.parametrize("attribution", list(Attribution))
def test_each_attribution_has_its_sentence(attribution: Attribution) -> None:
    """The word stands in the title and in the sentence."""
    found = section(rechecked(attribution=attribution))

    assert found.title == f"Recheck: {attribution}"
    assert f"It was {'' if attribution == 'noise' else 'the '}{attribution}" in found.lead[0]


def test_without_an_answer_the_reason_is_said() -> None:
    """And that the verdict stays what it was."""
    verdict = rechecked(
        attribution=None, problem="setup failed", tasks=(), rates={}, change=None, environment=None
    )

    found = section(verdict)

    assert found.title == "Recheck: without a result"
    assert found.lead == ("The verdict stays as it was: setup failed",)
    assert found.table is None
    assert "The verdict stays as it was: setup failed" in printed([verdict])


@pytest.mark.parametrize("text", samples.HOSTILE_TEXTS)
def test_what_a_setup_printed_is_text(text: str) -> None:
    """No markup, no mention, no workflow command, no escape of a terminal comes through."""
    verdict = rechecked(attribution=None, problem=text, remarks=(text,), commit=text)

    report, shown = markdown(view([verdict])), printed([verdict])

    for written in (report, shown):
        assert "\x1b" not in written
        assert not any(line.startswith(("::", "##[")) for line in written.splitlines())
    for mark in ("<script", "@octocat ", "](https://evil", "\u202e"):
        assert mark not in report
