"""Writes the reports that ``test_golden.py`` compares with, and no other file.

``python -m tests.render.regenerate`` after a wanted change; read the difference before it is
committed.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from ci_gate.model.verdict import Verdict
from ci_gate.render.junit import junit
from ci_gate.render.markdown import markdown
from ci_gate.render.screen import console_for
from ci_gate.render.terminal import render_verdict
from ci_gate.render.view import ReportOptions, view
from tests.render import samples

GOLDEN = Path(__file__).parent.parent / "golden"
SAMPLES: Mapping[str, list[Verdict]] = {
    "green": [samples.green()],
    "red-by-task": [samples.red_by_task()],
    "red-by-suite": [samples.red_by_suite()],
    "flipped": [samples.flipped()],
    "curtailed": [samples.curtailed()],
    "inconclusive": [samples.inconclusive()],
    "no-baseline": [samples.no_baseline()],
    "several": samples.several(),
    "hostile": [samples.hostile()],
}


def written(verdicts: list[Verdict]) -> dict[str, str]:
    """Return a report in each format, by the ending of its file."""
    return {
        "md": markdown(view(verdicts)),
        "txt": printed(verdicts),
        "xml": junit(verdicts).decode(),
    }


def printed(verdicts: list[Verdict]) -> str:
    """Return what a log shows."""
    stream = io.StringIO()
    options = ReportOptions(reports=(("Markdown", ".ci-gate/refund-desk.report.md"),))
    render_verdict(verdicts, console_for(stream, {"CI": "true"}), options)
    return stream.getvalue()


if __name__ == "__main__":
    for name, verdicts in SAMPLES.items():
        for ending, text in written(verdicts).items():
            path = GOLDEN / f"report-{name}.{ending}"
            path.write_text(text, encoding="utf-8", newline="\n")
