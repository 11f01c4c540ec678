"""A bad day of the baseline: printed, corrected for, and said."""

from __future__ import annotations

import html

import pytest

from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.decision.evidence import weigh
from ci_gate.decision.pairing import PairedTask
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.model.verdict import Verdict
from ci_gate.render.markdown import markdown
from ci_gate.render.view import view
from ci_gate.stats.permutation import joint_test
from ci_gate.stats.run_effect import run_effect
from tests.notation import side_of

GOOD, BAD, WORSE = "+++++++-", "++++----", "+++++---"


def suite(*runs: str, tasks: int = 12) -> Side:
    """Return a side of tasks that are all alike, a string a run."""
    return side_of(" ".join(f"t{i:02} {'/'.join(runs)}" for i in range(tasks)))


def verdict_of(baseline: Side, candidate: Side, **policy: object) -> Verdict:
    """Judge two sides without pairing by seed."""
    chosen = Policy(pairing="none", **policy)  # type: ignore[arg-type]
    return decide(compare(baseline, candidate, chosen), chosen)


def paired(*runs: str, candidate: str) -> list[PairedTask]:
    """Return the same tasks as the test takes them."""
    scores = [tuple(int(char == "+") for char in run) for run in (*runs, candidate)]
    return [
        PairedTask(
            task=f"t{i:02}", baseline=tuple(scores[:-1]), candidate=(scores[-1],), shared=True
        )
        for i in range(12)
    ]


def test_four_runs_with_a_bad_day_are_corrected_for() -> None:
    """What is within the scatter of whole days is no regression, and the report says why."""
    steady = verdict_of(suite(GOOD, GOOD, GOOD, GOOD), suite(WORSE))
    shaky = verdict_of(suite(GOOD, GOOD, GOOD, BAD), suite(WORSE))

    assert steady.metrics["pass^1"].regressed
    assert not steady.method.phi_corrected
    assert not shaky.metrics["pass^1"].regressed
    assert shaky.method.phi_corrected
    (warning,) = [text for text in shaky.warnings if "scatter" in text]
    assert "shrunk" in warning


def test_the_correction_is_that_of_the_joint_test() -> None:
    """The gate's p-value is the one of `joint_test` at the phi of the baseline's runs."""
    tasks = paired(GOOD, GOOD, GOOD, BAD, candidate=WORSE)
    phi = run_effect([task.baseline for task in tasks], strata="task").phi

    found = weigh(tasks, Policy(pairing="none"))

    expected = joint_test(
        [task.by_seed for task in tasks], strata="task", level=0.05, seed=0x20261030, phi=phi
    )
    assert found.joint == expected
    assert expected.p_value > 0.05


def test_the_interval_is_widened_by_the_same_factor() -> None:
    """Interval and test agree, so that non-inferiority is not shown by ignoring bad days."""
    verdict = verdict_of(suite(GOOD, GOOD, GOOD, BAD), suite(WORSE))
    phi = verdict.method.phi
    assert phi is not None
    plain = weigh(paired(GOOD, GOOD, GOOD, BAD, candidate=WORSE), Policy(pairing="none"))

    metric = verdict.metrics["pass^1"]
    assert metric.interval is not None
    width = metric.interval[1] - metric.interval[0]
    assert plain.effect.correction == pytest.approx(phi, rel=1e-5)
    # 1.96 standard deviations of 12 binomials and a pseudo-task, twice.
    n_b, n_c, p_b, p_c = 32, 8, 25 / 32, 5 / 8
    variance = 12 * (p_b * (1 - p_b) / (n_b - 1) + p_c * (1 - p_c) / (n_c - 1))
    variance += (0.25 / (n_b - 1) + 0.25 / (n_c - 1)) / 2
    assert width == pytest.approx(2 * 1.959964 * (variance * phi) ** 0.5 / 12, rel=1e-4)


def test_single_tasks_are_tested_as_ever() -> None:
    """A task that broke is named, whatever days the baseline had."""
    baseline = " ".join(f"t{i:02} {'/'.join((GOOD, GOOD, GOOD, BAD))}" for i in range(12))
    candidate = " ".join(f"t{i:02} {GOOD}" for i in range(12))
    whole = "++++++++/" * 3 + "++++++++"

    verdict = verdict_of(
        side_of(f"{baseline} broken {whole}"), side_of(f"{candidate} broken --------")
    )

    assert verdict.method.phi_corrected
    assert [str(reason.code) for reason in verdict.reasons] == ["task-regressed"]


def test_three_runs_are_not_corrected_and_the_reader_is_told_what_alpha_is() -> None:
    """No correction by so few runs holds its level; saying nothing would not either."""
    verdict = verdict_of(suite(GOOD, GOOD, BAD), suite(GOOD))

    assert not verdict.method.phi_corrected
    assert verdict.method.phi_alpha is not None
    assert verdict.method.phi_alpha > 0.1
    (warning,) = [text for text in verdict.warnings if "scatter" in text]
    assert "From 4 runs on" in warning


@pytest.mark.parametrize(
    ("runs", "row"),
    [
        ((GOOD,), None),
        ((GOOD, GOOD), "0 (p 1), not corrected: alpha of a suite metric as if 0.05"),
        (("++++++++", "++++++++"), "not measurable: nothing varies in the baseline"),
        ((GOOD, GOOD, GOOD, BAD), ", corrected for"),
        ((GOOD, GOOD, BAD), ", not corrected: alpha of a suite metric as if 0."),
    ],
)
def test_phi_is_printed_where_the_baseline_has_two_runs(
    runs: tuple[str, ...], row: str | None
) -> None:
    """With its chi-squared p and what it does to alpha, whether or not it is acted on."""
    text = markdown(view([verdict_of(suite(*runs), suite(GOOD))]))

    shown = [
        line for line in html.unescape(text).splitlines() if line.startswith("| run effect phi")
    ]
    assert len(shown) == (row is not None)
    assert all(row is not None and row in line for line in shown)


def test_missing_power_is_told_with_the_correction() -> None:
    """A plan that sees a total failure only by ignoring the baseline's days sees none."""
    runs = ("+++++-", "++++++", "+-+---", "------")
    baseline = side_of(" ".join(f"t{i} {'/'.join(r[i] for r in runs)}" for i in range(6)))
    candidate = side_of(" ".join(f"t{i} -" for i in range(6)))
    settings = {"metrics": ("pass^1",), "alpha": 0.15}

    corrected = compare(baseline, candidate, Policy(pairing="none", **settings))  # type: ignore[arg-type]

    assert corrected.method.phi_corrected
    assert corrected.evidence is not None
    assert corrected.powerless == (corrected.evidence.joint.p_value > 0.15)
    plain = joint_test(corrected.evidence.counts, strata="task", ks=(1,), level=0.15, seed=1)
    assert plain.p_value <= 0.15 < corrected.evidence.joint.p_value
