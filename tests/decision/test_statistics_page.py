"""The page that explains the numbers says what the code does."""

from __future__ import annotations

import doctest
from pathlib import Path

from ci_gate.decision.decide import RULES, Tier

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def test_the_examples_of_the_page_are_true() -> None:
    """Every example gives exactly what is printed below it."""
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")

    assert result.failed == 0
    assert result.attempted >= 8


def test_the_table_of_reasons_is_the_table_of_rules() -> None:
    """Each reason stands in the row of its tier, and no row has another."""
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    verdicts = [row for row in rows if row.split("|")[2].strip() in {"0", "1", "3"}]

    assert len(verdicts) == len(Tier)
    for tier, row in zip(Tier, verdicts, strict=True):
        listed = row.split("|")[3].partition(":")[0]
        found = set(listed.split("`")[1::2])
        assert found == {str(rule.code) for rule in RULES if rule.tier is tier}
