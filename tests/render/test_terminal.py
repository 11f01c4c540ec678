"""The verdict on a terminal and in a log."""

from __future__ import annotations

import io
import re

import msgspec
import pytest
from hypothesis import given, settings
from rich.console import Console

from ci_gate.model.verdict import Decision, Verdict
from ci_gate.render.screen import console_for, in_encoding
from ci_gate.render.terminal import render_verdict
from ci_gate.render.view import ReportOptions
from tests.render import samples
from tests.render.nasty import NASTY
from tests.render.regenerate import printed
from tests.render.samples import metric, verdict
from tests.speeds import examples


class _Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def on_terminal(*made: Verdict, environ: dict[str, str]) -> str:
    """Return what a terminal shows, control sequences included."""
    stream = _Terminal()
    render_verdict(made, console_for(stream, {"TERM": "xterm-256color", **environ}))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (samples.green(), "Passed: refund-desk"),
        (samples.red_by_task(), "Regressed: refund-desk"),
        (samples.no_baseline(), "Passed: refund-desk (no baseline yet)"),
    ],
)
def test_verdict_is_in_the_first_line(made: Verdict, line: str) -> None:
    """The first line says the verdict and the suite."""
    assert printed([made]).splitlines()[0] == line


def test_regressed_tasks_come_with_their_first_commands() -> None:
    """Three commands of each regressed task are there to paste, and the others are counted."""
    lines = [line.strip() for line in printed([samples.red_by_task()]).splitlines()]

    at = lines.index("ci-gate replay refund-4812 --trial 0")
    assert lines[at : at + 5] == [
        "ci-gate replay refund-4812 --trial 0",
        "ci-gate replay refund-4812 --trial 2",
        "ci-gate replay refund-4812 --trial 3",
        "... and 4 more",
        "ci-gate replay refund-4817 --trial 1",
    ]


def test_end_says_where_the_reports_are() -> None:
    """The last lines name what is folded in the report, and its place."""
    assert printed([samples.red_by_task()]).splitlines()[-1] == (
        "  Markdown: .ci-gate/refund-desk.report.md"
    )


def test_log_has_no_control_sequences() -> None:
    """In CI nothing but text is printed, even where the stream says it is a terminal."""
    shown = on_terminal(samples.red_by_task(), environ={"CI": "true"})

    assert "\x1b" not in shown


def test_terminal_has_colours_unless_they_are_not_wanted() -> None:
    """A terminal shows the verdict in its colour, and NO_COLOR takes the colour away."""
    red = "\x1b[1;31mRegressed"

    assert red in on_terminal(samples.red_by_task(), environ={})
    assert "[1;31m" not in on_terminal(samples.red_by_task(), environ={"NO_COLOR": "1"})


def test_narrow_terminal_leaves_out_what_matters_least() -> None:
    """Where a table is too wide for a terminal, whole columns go, and no line is wrapped."""
    shown = on_terminal(samples.red_by_task(), environ={"COLUMNS": "80", "NO_COLOR": "1"})

    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    head = next(line for line in plain.splitlines() if line.strip().startswith("Metric"))
    assert head.split() == [
        *("Metric", "Baseline", "Candidate", "Difference", "95", "%"),
        *("interval", "Adjusted", "p", "Tasks"),
    ]


@settings(max_examples=examples(60))
@given(NASTY)
def test_hostile_text_is_inert(text: str) -> None:
    """No text moves the cursor, starts a line, is a log command or markup."""
    shown = printed([samples.hostile([text])])

    for line in shown.splitlines():
        assert line == "" or line.isprintable()
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##\w*\[", line)
    # A command that cannot be shown exactly is left out.
    tame = len(printed([samples.hostile(["tame"])]).splitlines())
    assert len(shown.splitlines()) in {tame, tame - 1}


def test_markup_of_the_library_is_text() -> None:
    """Square brackets and colons mean nothing to the terminal library."""
    name = "[bold red]x[/] :smile: [link=https://evil.example]y[/link]"
    made = msgspec.structs.replace(verdict(Decision.PASSED), suite_name=name)

    assert printed([made]).splitlines()[0] == f"Passed: {name}"


def test_console_without_unicode_gets_plain_characters() -> None:
    """On a console of another encoding our own signs are spelt out and others escaped."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    made = msgspec.structs.replace(samples.red_by_task(), suite_name="caf\u00e9")

    render_verdict([made], Console(file=stream, highlight=False))

    stream.flush()
    shown = stream.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert shown.startswith("Regressed: caf\\xe9\n")
    assert "-11.0 to -3.0" in shown


def test_signs_are_spelt_out_only_where_they_must() -> None:
    """A console that has the characters gets them."""
    assert in_encoding("a → b", "utf-8") == "a → b"
    assert in_encoding("a → b", "latin-1") == "a -> b"


def test_several_suites_begin_with_an_overview() -> None:
    """Several suites have a headline of the worst and a line each."""
    lines = printed(samples.several()).splitlines()

    assert lines[0] == "Regressed: 1 of 3 suites"
    assert [line.split()[1] for line in lines[2:5]] == ["refund-desk", "lookup", "onboarding"]


def test_many_rows_are_counted_not_shown() -> None:
    """A terminal shows ten rows of a table and says how many follow."""
    shown = printed([samples.huge(300)])

    assert "    and 290 more" in shown.splitlines()
    assert len(shown.splitlines()) < 60


def test_metrics_without_a_test_are_shown_without_its_columns() -> None:
    """Nothing is printed for what does not exist."""
    made = verdict(metrics={"pass^1": metric(None, 0.875, detectable=None)})

    assert "Adjusted p" not in printed([made])


def test_reports_are_named_only_where_there_are_some() -> None:
    """Without other reports nothing is said of them."""
    stream = io.StringIO()

    render_verdict([samples.green()], console_for(stream, {}), ReportOptions())

    assert "Markdown" not in stream.getvalue()
