"""Whole reports, compared with files that were read by a person."""

from __future__ import annotations

import pytest

from tests.render.regenerate import GOLDEN, SAMPLES, written


@pytest.mark.parametrize("name", SAMPLES)
def test_report_is_the_one_that_was_reviewed(name: str) -> None:
    """A report changes only with its golden file (python -m tests.render.regenerate)."""
    reports = written(SAMPLES[name])

    for ending, text in reports.items():
        expected = (GOLDEN / f"report-{name}.{ending}").read_text(encoding="utf-8")
        assert text == expected


@pytest.mark.parametrize("name", SAMPLES)
def test_report_is_the_same_bytes_again(name: str) -> None:
    """The same verdict gives the same bytes however often it is rendered."""
    assert written(SAMPLES[name]) == written(SAMPLES[name])
