"""Whole verdicts on runs that were curtailed or extended, compared with files that were read."""

from __future__ import annotations

import pytest

from tests.decision.stops import GOLDEN, VERDICTS, written


@pytest.mark.parametrize("name", VERDICTS)
def test_verdict_and_report_are_those_that_were_reviewed(name: str) -> None:
    """They change only with their golden files (python -m tests.decision.stops)."""
    for ending, text in written(VERDICTS[name]()).items():
        expected = (GOLDEN / f"verdict-{name}.{ending}").read_text(encoding="utf-8")
        assert text == expected
