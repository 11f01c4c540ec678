"""JUnit XML says what the verdict says."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given, settings
from junitparser import JUnitXml

from ci_gate.model.verdict import Claim, Decision, ReasonCode, SuiteChanges, Verdict
from ci_gate.render.junit import junit
from tests.render import samples
from tests.render.nasty import NASTY
from tests.render.samples import task, verdict
from tests.speeds import examples


def results(*made: Verdict) -> dict[str, str]:
    """Return what became of each test case: passed, failure, error or skipped."""
    root = ET.fromstring(junit(made))
    return {case.get("name", ""): _result(case) for case in root.iter("testcase")}


def _result(case: ET.Element) -> str:
    found = [child.tag for child in case if child.tag in {"failure", "error", "skipped"}]
    return found[0] if found else "passed"


def test_regressed_verdict_has_failures_for_what_regressed() -> None:
    """The verdict, the metrics and the tasks that regressed are failures, nothing else is."""
    assert results(samples.red_by_task()) == {
        "suite verdict": "failure",
        "suite pass^1": "failure",
        "suite pass^8": "failure",
        "floor pass^1": "passed",
        "guard cost_per_success_usd": "passed",
        "refund-4812": "failure",
        "refund-4817": "failure",
        "lookup-0007": "passed",
        "cancel-0031": "passed",
        "refund-5001": "passed",
        "flaky-1": "skipped",
        "lookup-0011": "passed",
    }


@pytest.mark.parametrize(
    ("regressed", "adjusted", "result"), [(True, 0.0500001, "failure"), (False, 0.05, "passed")]
)
def test_a_metric_fails_by_the_verdicts_word(
    *, regressed: bool, adjusted: float, result: str
) -> None:
    """A p-value that was rounded to the level decides nothing a second time."""
    shown = samples.metric(0.9, 0.8, (-0.2, -0.1), 0.05, adjusted=adjusted, regressed=regressed)
    made = verdict(
        Decision.REGRESSED, {ReasonCode.SUITE_REGRESSED: "fell"}, metrics={"pass^1": shown}
    )

    assert results(made)["suite pass^1"] == result


def test_flip_removed_task_and_floor_are_failures() -> None:
    """What turns a verdict red outside the test is a failure of its own."""
    assert results(samples.flipped()) == {
        "suite verdict": "failure",
        "suite pass^1": "passed",
        "suite pass^8": "passed",
        "floor pass^1": "failure",
        "refund-4812": "failure",
        "cancel-0031": "failure",
    }


def test_inconclusive_verdict_has_errors_for_what_could_not_be_judged() -> None:
    """An inconclusive verdict is an error, and so are the tasks that are its reason."""
    found = results(samples.inconclusive())

    assert found["suite verdict"] == "error"
    assert found["cancel-0031"] == "error"
    assert found["refund-4813"] == "skipped"
    assert "failure" not in found.values()


@pytest.mark.parametrize("made", [samples.red_by_task(), samples.flipped(), samples.inconclusive()])
def test_verdict_that_does_not_block_has_neither_failures_nor_errors(made: Verdict) -> None:
    """In advisory mode a reader of the file does not block either, and still sees the message."""
    advisory = msgspec.structs.replace(made, exit_code=0, mode="advisory")

    assert set(results(advisory).values()) <= {"passed", "skipped"}
    assert b"does not block: " in junit([advisory])


@pytest.mark.parametrize("made", [samples.green(), samples.no_baseline()])
def test_passed_verdict_has_neither_failures_nor_errors(made: Verdict) -> None:
    """A pass is a pass for every reader."""
    assert set(results(made).values()) <= {"passed", "skipped"}


def test_removed_task_that_may_vanish_is_skipped() -> None:
    """A task whose removal the policy allows is no failure."""
    made = verdict(tasks=[task("gone", Claim.REMOVED, "32/32", None)])

    assert results(made)["gone"] == "skipped"


def test_task_that_only_the_account_names_is_a_case() -> None:
    """A removed task is a failure even where the verdict holds no result of it."""
    made = verdict(
        Decision.REGRESSED,
        {ReasonCode.TASKS_REMOVED: "1 task vanished"},
        suite=SuiteChanges(removed=("gone",)),
    )

    assert results(made)["gone"] == "failure"


def test_failure_holds_rates_seeds_and_commands() -> None:
    """A failure's message has both rates, its text the failing trials with their commands."""
    root = ET.fromstring(junit([samples.red_by_task()]))

    failure = root.find(".//testcase[@name='refund-4817']/failure")
    assert failure is not None
    assert failure.get("message") == (
        "regressed: baseline 32/32 (100 %), candidate 4/8 (50.0 %), adjusted p 0.031"
    )
    assert (failure.text or "").splitlines()[:2] == [
        (
            "trial 1 (seed 0x000000011c48e342): the customer asked for store credit in turn 2; "
            "refunded to the card"
        ),
        "ci-gate replay refund-4817 --trial 1",
    ]


def test_what_was_expected_and_is_there_stands_with_its_seed() -> None:
    """Line by line, between the trial and its command; a log obeys none of them."""
    made = samples.red_by_task()
    replays = (samples.replay("t", 1, "two refunds", "+ refunds[2]\n::error::boom"),)
    tasks = (msgspec.structs.replace(made.tasks[0], task="t", replay=replays), *made.tasks[1:])

    root = ET.fromstring(junit([msgspec.structs.replace(made, tasks=tasks)]))

    failure = root.find(".//testcase[@name='t']/*")
    assert failure is not None
    assert (failure.text or "").splitlines() == [
        "trial 1 (seed 0x000000011c48e342): two refunds",
        "+ refunds[2]",
        ": :error::boom",
        "ci-gate replay t --trial 1",
    ]


def test_counts_agree_with_the_cases() -> None:
    """The totals of the file are those of its cases, a test suite each."""
    parsed = JUnitXml.fromstring(junit([samples.red_by_task(), samples.inconclusive()]))

    assert (parsed.tests, parsed.failures, parsed.errors, parsed.skipped) == (18, 5, 2, 2)
    assert [suite.name for suite in parsed] == ["refund-desk", "refund-desk"]


@settings(max_examples=examples(60))
@given(NASTY)
def test_any_text_makes_well_formed_xml(text: str) -> None:
    """Characters that XML does not have, and markup, become text."""
    content = junit([samples.hostile([text])])

    root = ET.fromstring(content)
    assert {element.tag for element in root.iter()} <= {
        *("testsuites", "testsuite", "properties", "property", "testcase"),
        *("failure", "error", "skipped", "system-out"),
    }
    assert len(list(root.iter("testcase"))) == 5
    assert not any(line.lstrip().startswith("::") for line in content.decode().splitlines())
