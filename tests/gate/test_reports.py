"""Stored verdicts are read, or refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_gate.errors import FileFormatError
from ci_gate.gate.reports import load_verdicts


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ("9" * 400, "a whole number in it lies beyond 9007199254740991"),
        ("-" + "9" * 5000, "Integer value out of range"),
        ("[" * 900 + "]" * 900, "nested deeper than 300 levels"),
        ("NaN", "JSON is malformed"),
    ],
    ids=["huge", "huger", "nested", "nan"],
)
def test_a_verdict_that_cannot_be_shown_is_refused(tmp_path: Path, trials: str, words: str) -> None:
    """A number without end would stand whole in every line that counts something."""
    path = tmp_path / "v.json"
    path.write_text(f'{{"schema": "ci-gate/verdict@1", "trials": {{"planned": {trials}}}}}')

    with pytest.raises(FileFormatError, match="is not a verdict") as caught:
        load_verdicts(path)

    assert words in str(caught.value)
    assert len(str(caught.value)) < 500
