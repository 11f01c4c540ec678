"""A baseline that owes something to luck says so wherever it is looked at."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow
BASELINE = "baselines/example.json"


def with_outcomes(place, outcomes: list[str]) -> None:
    """Give the baseline one task for each outcome string, run once."""
    path = place.path / BASELINE
    content = json.loads(path.read_text())
    first = next(iter(content["tasks"].values()))
    content["tasks"] = {
        f"task-{i}": first | {"outcomes": [outcome]} for i, outcome in enumerate(outcomes)
    }
    path.write_text(json.dumps(content))


def test_show_warns_of_luck(gated) -> None:
    """The rate and the runs that mend it are named."""
    with_outcomes(gated, ["++++++++"] * 2 + ["++++----"] * 8)

    shown = gated.gate("baseline", "show")

    assert shown.status == 0, shown.err
    said = " ".join(shown.out.split())
    assert "of the checks of an unchanged agent would be red" in said
    assert "With 1 more run over its seeds (2 in all)" in said


def test_show_says_nothing_of_a_normal_baseline(gated) -> None:
    """Nothing is warned of where there is nothing."""
    with_outcomes(gated, ["+" * (8 - i) + "-" * i for i in range(5)])

    shown = gated.gate("baseline", "show")

    assert shown.status == 0, shown.err
    assert "unchanged agent" not in shown.out
