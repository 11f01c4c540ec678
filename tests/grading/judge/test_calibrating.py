"""From labels and votes to a calibration, and what it allows."""

from __future__ import annotations

import pytest

from ci_gate.grading.judge.calibrating import (
    Compared,
    calibration_of,
    family_of,
    judged_rate,
    weakness,
)
from ci_gate.grading.judge.question import Question
from ci_gate.model.judges import Calibration, LabelCounts

QUESTION = Question(model="acme/judge-9b", rubric="polite")


def items(notation: str, **fields: object) -> list[Compared]:
    """Return a label and the judge's word a pair: ``+-`` is passed by people alone."""
    return [
        Compared(label=pair[0] == "+", judged=pair[1] == "+", swapped=pair[1] == "+", **fields)  # type: ignore[arg-type] - lengths and families of a test
        for pair in notation.split()
    ]


def calibrated(notation: str) -> Calibration:
    return calibration_of(QUESTION, items(notation))


def test_counts_are_of_people_against_the_judge() -> None:
    """Agreement, kappa, sensitivity and specificity come from the four counts."""
    found = calibrated("++ ++ ++ +- -+ -- -- -- -- --")
    assert found.counts == LabelCounts(both_pass=3, missed=1, leaked=1, both_fail=5)
    assert found.agreement.value == 0.8
    # pe = (4*4 + 6*6) / 100
    assert found.kappa.value == pytest.approx((0.8 - 0.52) / 0.48)
    assert (found.sensitivity.value, found.specificity.value) == (0.75, 5 / 6)
    assert found.digest == QUESTION.digest


def test_a_grade_that_the_order_changes_is_position_bias() -> None:
    """The share of other grades in reverse order, and by how much they pass more."""
    moved = [Compared(label=True, judged=False, swapped=True)] * 2
    found = calibration_of(QUESTION, [*moved, *items("++ ++ -- -- -- --")]).position
    assert found is not None
    assert (found.changed, found.total, found.rate.value) == (2, 8, 0.25)
    assert found.difference.value == 0.25


def test_leniency_to_long_answers_is_length_bias() -> None:
    """Answers beyond the median length that the judge alone passes make it lenient to length."""
    found = calibration_of(QUESTION, [*items("++ --", length=5), *items("-+ ++", length=50)]).length
    assert found is not None
    assert (found.median, found.difference.value) == (5, 0.5)


def test_leniency_to_its_own_family_is_self_preference() -> None:
    """Known only where labels name models of the judge's family and of others."""
    own, others = items("-+ ++", family="judge"), items("-- ++", family="gpt")
    found = calibration_of(QUESTION, [*own, *others]).self_preference
    assert found is not None
    assert (found.family, found.own, found.others, found.difference.value) == ("judge", 2, 2, 0.5)
    assert calibrated("++ --").self_preference is None
    alone = calibration_of(QUESTION, own).self_preference
    assert alone is not None
    assert alone.difference.value is None


@pytest.mark.parametrize(
    ("model", "family"),
    [("gpt-4o-mini", "gpt"), ("meta/Llama-3-8B", "llama"), ("claude-x", "claude"), ("42", "42")],
)
def test_a_family_is_the_first_word_of_a_models_name(model: str, family: str) -> None:
    """Owner, size and version do not matter."""
    assert family_of(model) == family


@pytest.mark.parametrize(
    ("notation", "min_kappa", "why"),
    [
        ("++ " * 5 + "-- " * 5, 1.0, None),
        ("++ " * 5 + "-- " * 4, 0.0, "4 that fail; 5 of each"),
        ("++ " * 5 + "-+ " * 5, 0.1, "its kappa is 0.000, and min_kappa is 0.1"),
        ("++ " * 8 + "+- " * 2 + "-+ " * 2 + "-- " * 8, 0.6, None),
        ("++ " * 8 + "+- " * 2 + "-+ " * 2 + "-- " * 8, 0.61, "its kappa is 0.600"),
    ],
)
def test_a_weak_judge_is_weak_for_a_reason(
    notation: str, min_kappa: float, why: str | None
) -> None:
    """Too few labels of a kind, or a kappa below the limit; one that equals it is enough."""
    found = weakness(calibrated(notation), min_kappa)
    assert (found is None) if why is None else (why in str(found))


def test_only_the_counts_of_a_file_are_believed() -> None:
    """A kappa that somebody wrote into the file changes nothing."""
    found = calibrated("++ " * 5 + "-+ " * 5)
    forged = Calibration(
        **{name: getattr(found, name) for name in found.__struct_fields__}
        | {"kappa": calibrated("++ ++ -- --").kappa}
    )
    assert weakness(forged, 0.6) == weakness(found, 0.6)


def test_a_rate_is_given_with_what_it_stands_for() -> None:
    """Without a calibration, or with one that says nothing, only the rate is known."""
    found = judged_rate(10, 5, calibrated("++ " * 9 + "+- " + "-+ " + "-- " * 9))
    assert found.corrected == pytest.approx(0.5)
    assert judged_rate(10, 5, None).corrected is None
    assert judged_rate(10, 5, calibrated("+- -+ " * 5)).corrected is None
