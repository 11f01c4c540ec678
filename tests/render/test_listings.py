"""Baselines on a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ci_gate.model.verdict import Counts
from ci_gate.render.listings import (
    BaselineLine,
    DiffLine,
    HistoryLine,
    render_baseline,
    render_diff,
    render_history,
    sparkline,
)
from ci_gate.render.screen import console_for


def lines_of(show: Callable[[Console], None]) -> list[str]:
    """Return the lines that are printed in a log."""
    stream = io.StringIO()
    show(console_for(stream, {"CI": "1"}))
    return stream.getvalue().splitlines()


def test_baseline_has_its_metrics_and_a_row_a_task() -> None:
    """A baseline is shown with its suite metrics, and each task with its outcome strings."""
    line = BaselineLine(
        task="refund-4812",
        outcomes=("+++++++-", "++++++!+"),
        counts=Counts(trials=15, passed=14, errored=1),
    )

    shown = lines_of(
        lambda console: render_baseline([line], {"pass^1": 0.9333}, console, title="refund-desk")
    )

    assert shown == [
        "refund-desk",
        "  pass^1  93.3 %  (1 task)",
        "    Task                             Passed  Outcomes",
        "  - refund-4812  14/15 (93.3 %) + 1 errored  +++++++- ++++++!+",
    ]


def test_baseline_is_warned_of_above_its_tasks() -> None:
    """What is odd about a baseline stands below its metrics."""
    shown = lines_of(
        lambda console: render_baseline(
            [], {"pass^1": 0.5}, console, title="desk", warnings=["it was lucky"]
        )
    )

    assert shown[:3] == ["desk", "  pass^1  50.0 %  (0 tasks)", "  it was lucky"]


def test_diff_shows_both_sides_of_each_task() -> None:
    """Two baselines are shown task by task, with what is new or gone."""
    eight = Counts(trials=8, passed=7, errored=0)
    diff = [
        DiffLine(task="a", baseline=eight, candidate=Counts(trials=8, passed=8, errored=0)),
        DiffLine(task="b", baseline=None, candidate=eight, remark="new"),
    ]

    shown = lines_of(
        lambda console: render_diff(diff, {"pass^1": (0.875, 0.9375)}, console, title="a to b")
    )

    assert shown == [
        "a to b",
        "  pass^1  87.5 % → 93.8 %",
        "    Task      Baseline     Candidate  Remark",
        "  - a     7/8 (87.5 %)   8/8 (100 %)",
        "  - b                –  7/8 (87.5 %)  new",  # noqa: RUF001 - as shown
    ]


def test_diff_of_equal_baselines_says_so() -> None:
    """Where nothing differs, that is what is said."""
    shown = lines_of(lambda console: render_diff([], {}, console, title="a to a"))

    assert shown == ["a to a", "  no task differs"]


def test_history_is_a_plot_and_a_table() -> None:
    """Each metric is a small plot over the commits, the oldest first, above the table."""
    history = [
        HistoryLine(
            commit=f"{n}f9c2ab81e44",
            date=f"2026-11-0{n}",
            subject=f"baseline {n}",
            metrics={"pass^1": share, "pass^8": None},
            tasks=20,
        )
        for n, share in [(1, 0.5), (2, 0.75), (3, 1.0)]
    ]

    shown = lines_of(lambda console: render_history(history, console, title="refund-desk"))

    assert shown[:3] == [
        "refund-desk",
        "  pass^1  ▁▅█  50.0 % to 100 %",
        "    Commit        Date        pass^1  pass^8  Tasks  Subject",
    ]
    assert shown[3].split() == [
        *("-", "1f9c2ab81e44", "2026-11-01", "50.0", "%", "–", "20", "baseline", "1"),  # noqa: RUF001 - as shown
    ]


def test_history_without_commits_says_so() -> None:
    """A baseline that was never committed has no history."""
    shown = lines_of(lambda console: render_history([], console, title="refund-desk"))

    assert shown == ["refund-desk", "  no commit has touched it yet"]


def test_sparkline_of_a_constant_is_flat() -> None:
    """Where nothing moved, the line is level; what is unknown is a gap."""
    assert sparkline([0.5, None, 0.5]) == "▄ ▄"
    assert sparkline([]) == ""


def test_sparkline_has_a_plain_form() -> None:
    """A console without block characters gets a plot of plain ones."""
    assert sparkline([0.0, 0.5, 1.0], ascii_only=True) == "_=#"


@given(st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), max_size=40))
def test_sparkline_has_a_character_a_value(shares: list[float | None]) -> None:
    """A plot is as long as what it shows, and its highest bar is at the highest value."""
    line = sparkline(shares)

    assert len(line) == len(shares)
    known = [(share, char) for share, char in zip(shares, line, strict=True) if share is not None]
    assert [char for _, char in sorted(known)] == sorted(char for _, char in known)


def test_hostile_subject_is_inert() -> None:
    """A commit's subject cannot move the cursor or start a line."""
    line = HistoryLine(commit="c", date="d", subject="\x1b[31m\n::error::x", metrics={}, tasks=1)

    shown = lines_of(lambda console: render_history([line], console, title="\x1b[2J::x"))

    assert all(text.isprintable() and not text.lstrip().startswith("::") for text in shown)
