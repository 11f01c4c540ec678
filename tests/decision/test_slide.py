"""The anchor: small steps that each pass, and their sum."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.model.verdict import Decision, Verdict
from ci_gate.render.document import Fold
from ci_gate.render.markdown import markdown
from ci_gate.render.view import view
from tests.notation import side_of


def desk(outcomes: str, *, digest: str, tasks: int = 10, **fields: Any) -> Side:
    """Return a side of tasks that are all alike."""
    return side_of(" ".join(f"t{i} {outcomes}" for i in range(tasks)), digest=digest, **fields)


ANCHOR = desk("++++++++", digest="sha256:anchor")
BASELINE = desk("++++++--", digest="sha256:baseline")
CANDIDATE = side_of(
    " ".join(f"t{i} {'+++++---' if i < 2 else '++++++--'}" for i in range(10)),
    digest="sha256:candidate",
)


def verdict_of(
    anchor: Side | None, candidate: Side = CANDIDATE, *, labelled: bool = False, **policy: Any
) -> Verdict:
    """Judge a candidate beside an anchor."""
    chosen, known = Policy(**policy), Circumstances(labelled=labelled)
    return decide(compare(BASELINE, candidate, chosen, known, anchor=anchor), chosen, known)


def codes(verdict: Verdict) -> list[str]:
    """Return the reasons' codes in order."""
    return [str(reason.code) for reason in verdict.reasons]


def test_a_slide_is_red_although_the_last_step_is_not() -> None:
    """Against the baseline it is chance, against the anchor it is not."""
    alone, beside = verdict_of(None), verdict_of(ANCHOR)

    assert (alone.decision, alone.slide) == (Decision.PASSED, None)
    assert (beside.decision, codes(beside)) == (Decision.REGRESSED, ["slide"])
    assert beside.slide is not None
    assert beside.slide.regressed
    assert beside.slide.metrics["pass^1"].baseline == 1.0
    assert "pass^1" in beside.reasons[0].text
    assert "--anchor" in beside.reasons[0].text


def test_the_anchor_changes_nothing_in_the_test_against_the_baseline() -> None:
    """It is tested beside, at an alpha of its own, which the bound counts."""
    alone, beside = verdict_of(None), verdict_of(ANCHOR)

    assert (alone.p_value, alone.metrics, alone.tasks) == (
        beside.p_value,
        beside.metrics,
        beside.tasks,
    )
    assert (alone.method.false_alarm_bound, beside.method.false_alarm_bound) == (0.05, 0.1)
    assert beside.slide is not None
    assert beside.slide.level == 0.05


def test_the_slide_is_what_a_comparison_with_the_anchor_alone_finds() -> None:
    """The same joint test, the same figures."""
    direct = decide(compare(ANCHOR, CANDIDATE, Policy()), Policy())

    slide = verdict_of(ANCHOR).slide

    assert slide is not None
    assert (slide.p_value, slide.metrics) == (direct.p_value, direct.metrics)


def test_a_task_that_dropped_is_named() -> None:
    """One broken task among sound ones."""
    calm = " ".join(f"t{i} ++++++--" for i in range(9))
    anchor = side_of(f"{calm} t9 ++++++++", digest="sha256:anchor")
    candidate = side_of(f"{calm} t9 --------", digest="sha256:candidate")
    baseline = side_of(f"{calm} t9 --------", digest="sha256:baseline")

    verdict = decide(compare(baseline, candidate, Policy(), anchor=anchor), Policy())

    assert verdict.slide is not None
    assert verdict.slide.tasks == ("t9",)
    assert "t9" in verdict.reasons[0].text


def test_only_tasks_with_the_anchors_content_are_tested() -> None:
    """An edited task is another task; the report counts how many are left."""
    edited = {f"t{i}": "sha256:edited" for i in range(9)}
    anchor = desk("++++++++", digest="sha256:anchor", digests=edited)

    verdict = verdict_of(anchor)

    assert verdict.slide is not None
    assert (verdict.slide.compared, verdict.slide.changed) == (1, 9)
    assert verdict.slide.regressed is False
    assert "(9 edited since)" in markdown(view([verdict]))


def test_an_anchor_that_is_the_baseline_is_not_tested_twice() -> None:
    """Before anything moved there is nothing that could have slid, and no alpha is spent."""
    verdict = verdict_of(BASELINE)

    assert verdict.slide is None
    assert verdict.method.false_alarm_bound == 0.05


@pytest.mark.parametrize(
    ("anchor", "why"),
    [
        (desk("++++++++", digest="x", faults_digest="sha256:f"), "other injected faults"),
        (desk("++++++++", digest="x", errors="fail"), "another error policy"),
        (desk("++++++++", digest="x", judge_digest="sha256:j"), "another judge"),
        (side_of("gone ++++++++", digest="x"), "no task that is as it was"),
    ],
)
def test_an_anchor_that_cannot_be_compared_is_said(anchor: Side, why: str) -> None:
    """It ages without making the gate inconclusive, and never silently."""
    verdict = verdict_of(anchor)

    assert (verdict.decision, verdict.slide) == (Decision.PASSED, None)
    (warning,) = [text for text in verdict.warnings if "anchor" in text]
    assert why in warning


def test_the_label_accepts_a_slide_and_says_it() -> None:
    """Moving the bar is allowed; that it is lower than it once was stays visible."""
    verdict = verdict_of(ANCHOR, labelled=True)

    assert (verdict.decision, codes(verdict)) == (Decision.PASSED, ["bar-moved"])
    assert any("Worse than the anchor" in text for text in verdict.warnings)


def test_quarantined_tasks_and_copies_stay_out() -> None:
    """The anchor is tested under the same policy: first runs alone where a run is a copy."""
    anchor = desk("++++++++/++++++++/++++++++", digest="x", tasks=1)
    candidate = desk("+++++---", digest="y", tasks=1)
    policy = Policy(deterministic=True)

    facts = compare(desk("+++++---", digest="z", tasks=1), candidate, policy, anchor=anchor)

    assert facts.slide is not None
    # 8/8 against 5/8, not 24/24 against it.
    assert facts.slide.metrics["pass^1"].p_value == pytest.approx(0.1, abs=0.03)


def test_the_report_has_a_section_with_both_sides() -> None:
    """Open where the candidate slid, with what it is an alpha of."""
    (suite,) = view([verdict_of(ANCHOR)]).suites

    (section,) = [section for section in suite.sections if section.key == "slide"]
    assert section.fold is Fold.OPEN
    assert "an alpha of its own" in section.notes[0]
    assert section.table is not None
    assert section.table.rows[0][:3] == ("pass^1", "100 %", "72.5 %")
