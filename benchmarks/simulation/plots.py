"""The plots of docs/statistics.md, made of the tables.

Decides what is drawn from which table; a plot whose table was not made is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.simulation.drawing import Chart, Series, bars, dots, lines
from benchmarks.simulation.figures import Cell, Rate, Table
from benchmarks.simulation.headline import DROPS
from benchmarks.simulation.populations import SEED_EFFECTS


def write_plots(tables: Mapping[str, Table], place: Path) -> list[Path]:
    """Write every plot whose table is there; return the files."""
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for needed, (file, draw) in PLOTS.items():
        if needed in tables:
            path = place / file
            path.write_text(draw(tables[needed]), encoding="utf-8")
            written.append(path)
    return written


def _series(table: Table, row: str, name: str | None = None) -> Series:
    rates = [cell for cell in table.rows[row] if isinstance(cell, Rate)]
    return _of(name or row, rates)


def _column(table: Table, column: str, rows: Sequence[str], name: str) -> Series:
    return _of(name, [rate for row in rows if isinstance(rate := table.cell(row, column), Rate)])


def _of(name: str, rates: Sequence[Rate]) -> Series:
    return Series(
        name=name, values=[rate.value for rate in rates], errors=[rate.error for rate in rates]
    )


def blocked_by_drop(table: Table) -> str:
    """Chance to be blocked against the drop of every task."""
    names = {
        "gate, 8 against 8 x 4": "agent-gate, 8 v 8 x 4",
        "gate, 8 against 8": "agent-gate, 8 v 8",
        "pass^1 lower": "block if pass^1 is lower",
        "paired t-test": "paired t-test over tasks",
        "Wilson apart": "Wilson intervals apart",
        "fixed .60 / .25": "fixed: ^1 < .60 or ^8 < .25",
    }
    return lines(
        Chart(
            title="Chance that a change is blocked, by how much every task drops",
            places=[f"{100 * drop:.0f}" for drop in DROPS],
            place_name="drop of every task, points",
            value_name="blocked",
            series=[_series(table, row, name) for row, name in names.items()],
            level=0.05,
            level_name="5 %",
        )
    )


def false_alarms_by_seed_effect(table: Table) -> str:
    """False alarms under seed effects, by rule."""
    columns = {
        "8x4: gate": "agent-gate, 8 seeds x 4",
        "32 seeds: unpaired": "same test, 32 seeds, unpaired",
        "8x4: unpaired": "same test, 8 x 4, unpaired",
        "32 seeds: t-test": "paired t-test, 32 seeds",
        "32 seeds: Fisher": "pooled Fisher, 32 seeds",
    }
    return dots(
        Chart(
            title="Unchanged agents that are blocked, by how much seeds matter",
            places=SEED_EFFECTS,
            value_name="blocked though unchanged (bars: two standard errors)",
            series=[_column(table, c, SEED_EFFECTS, name) for c, name in columns.items()],
            most=0.25,
            ticks=(0, 0.05, 0.1, 0.15, 0.2, 0.25),
            level=0.05,
            level_name="alpha",
        )
    )


def trials_used(table: Table) -> str:
    """Trials of the plan that are run, by change."""
    columns = {"trials used": "agent-gate", "certain only": "when certain", "Wald": "Wald's bound"}
    return bars(
        Chart(
            title="Trials of the plan that are run, where it may stop early",
            places=list(table.rows),
            value_name="trials used (100 % is the full plan)",
            series=[
                Series(name=name, values=[_value(table.cell(row, column)) for row in table.rows])
                for column, name in columns.items()
            ],
        )
    )


def _value(cell: Cell) -> float | None:
    if isinstance(cell, str):
        return None if cell == "-" else float(cell)
    return cell.value


PLOTS = {
    "drop": ("blocked-by-drop.svg", blocked_by_drop),
    "seeds, false alarms": ("false-alarms-by-seed-effect.svg", false_alarms_by_seed_effect),
    "trials": ("trials-used.svg", trials_used),
}
