"""A small writer of SVG charts: lines, dots with error bars, bars. Equal figures, equal bytes.

Legible on light and dark pages (the colours follow the reader's scheme) and without colour (marks
and dashes differ). Knows nothing of what it draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH = 800
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 240, 58, 52

_LIGHT = ("#0060a8", "#c44e00", "#007a5a", "#9b3d86", "#8a6d00", "#5a5f66")
_DARK = ("#6cb8f0", "#ff9a4d", "#3fcf9f", "#e79bd4", "#e6c84a", "#b3b9c1")
_DASHES = ("", "7 4", "2 3", "10 3 2 3", "5 2", "1 4")


def _style() -> str:
    light = "".join(f".c{i}{{--c:{colour}}}" for i, colour in enumerate(_LIGHT))
    dark = "".join(f".c{i}{{--c:{colour}}}" for i, colour in enumerate(_DARK))
    return (
        "svg{--page:#ffffff;--ink:#1f2328;--faint:#d5dae0}"
        f"{light}"
        "@media (prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e6edf3;--faint:#373e47}"
        f"{dark}}}"
        "text{font:13px system-ui,sans-serif;fill:var(--ink)}.title{font-size:15px;font-weight:600}"
        ".small{font-size:12px}.page{fill:var(--page)}.grid{stroke:var(--faint)}"
        ".axis{stroke:var(--ink)}.mark{fill:var(--c);stroke:var(--c)}"
        ".hollow{fill:var(--page);stroke:var(--c);stroke-width:1.6}"
        ".line{fill:none;stroke:var(--c);stroke-width:2.2}"
        ".level{stroke:var(--ink);stroke-dasharray:4 4}"
    )


@dataclass(frozen=True, kw_only=True)
class Series:
    """One rule: values in the order of the places, with their standard errors; None is left out."""

    name: str
    values: Sequence[float | None]
    errors: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What all charts have.

    Attributes
    ----------
    level
        A line to hold the values against.
    """

    title: str
    places: Sequence[str]
    series: Sequence[Series]
    value_name: str
    place_name: str = ""
    most: float = 1.0
    ticks: Sequence[float] = (0, 0.2, 0.4, 0.6, 0.8, 1)
    level: float | None = None
    level_name: str = ""
    notes: Sequence[str] = field(default=())


def lines(chart: Chart, height: int = 400) -> str:
    """Draw values over ordered places, a line a series."""
    bottom = height - _BOTTOM - 16 * len(chart.notes)
    right = WIDTH - _RIGHT
    step = (right - _LEFT) / (len(chart.places) - 1)

    def y(value: float) -> float:
        return bottom - (bottom - _TOP) * value / chart.most

    parts = [_grid_line(_LEFT, y(tick), right, y(tick)) for tick in chart.ticks]
    parts += [_text(_LEFT - 8, y(tick) + 4, f"{tick:.0%}", anchor="end") for tick in chart.ticks]
    for at, place in enumerate(chart.places):
        parts.append(_text(_LEFT + at * step, bottom + 20, place, anchor="middle"))
    parts.append(_text((_LEFT + right) / 2, bottom + 40, chart.place_name, anchor="middle"))
    parts.append(_text(_LEFT - 48, _TOP - 14, chart.value_name, kind="small"))
    if chart.level is not None:
        parts.append(_level(_LEFT, y(chart.level), right, y(chart.level)))
        parts.append(_text(right + 12, y(chart.level) + 4, chart.level_name, kind="small"))
    for index, one in enumerate(chart.series):
        points = [
            (_LEFT + at * step, y(value))
            for at, value in enumerate(one.values)
            if value is not None
        ]
        path = " ".join(f"{x:.1f},{height:.1f}" for x, height in points)
        parts.append(f'<polyline class="line c{index}"{_dash(index)} points="{path}"/>')
        parts += [_mark(index, *point) for point in points]
    parts += _legend(chart, right)
    return _page(chart, parts, height)


def dots(chart: Chart) -> str:
    """Draw a row for each series in each place, dots with two standard errors."""
    row, gap = 15, 14
    band = row * len(chart.series) + gap
    bottom = _TOP + band * len(chart.places)
    left, right = _LEFT + 40, WIDTH - _RIGHT - 10

    def x(value: float) -> float:
        return left + (right - left) * min(value, chart.most) / chart.most

    parts = [_grid_line(x(tick), _TOP, x(tick), bottom) for tick in chart.ticks]
    parts += [_text(x(t), bottom + 18, f"{t:.0%}", anchor="middle") for t in chart.ticks]
    parts.append(_text((left + right) / 2, bottom + 38, chart.value_name, anchor="middle"))
    if chart.level is not None:
        parts.append(_level(x(chart.level), _TOP - 6, x(chart.level), bottom))
        parts.append(_text(x(chart.level), _TOP - 10, chart.level_name, "middle", "small"))
    for at, place in enumerate(chart.places):
        top = _TOP + at * band
        parts.append(_text(left - 10, top + band / 2, place, anchor="end"))
        parts.append(_grid_line(_LEFT - 60, top, right, top))
        for index, one in enumerate(chart.series):
            value = one.values[at]
            if value is None:
                continue
            y = top + gap / 2 + row * (index + 0.5)
            reach = 2 * one.errors[at] if one.errors else 0.0
            ends = x(max(0.0, value - reach)), x(value + reach)
            parts.append(
                f'<line class="line c{index}" x1="{ends[0]:.1f}" y1="{y:.1f}" '
                f'x2="{ends[1]:.1f}" y2="{y:.1f}"/>'
            )
            parts.append(_mark(index, x(value), y))
    parts += _legend(chart, right)
    return _page(chart, parts, bottom + 58 + 16 * len(chart.notes))


def bars(chart: Chart) -> str:
    """Draw a bar for each series in each place, with its value behind it."""
    row, gap = 18, 14
    band = row * len(chart.series) + gap
    bottom = _TOP + band * len(chart.places)
    left, right = _LEFT + 130, WIDTH - _RIGHT - 10

    def x(value: float) -> float:
        return left + (right - left) * min(value, chart.most) / chart.most

    parts = [_grid_line(x(tick), _TOP, x(tick), bottom) for tick in chart.ticks]
    parts += [_text(x(t), bottom + 18, f"{t:.0%}", anchor="middle") for t in chart.ticks]
    parts.append(_text((left + right) / 2, bottom + 38, chart.value_name, anchor="middle"))
    for at, place in enumerate(chart.places):
        top = _TOP + at * band
        parts.append(_text(left - 10, top + band / 2 + 4, place, anchor="end"))
        for index, one in enumerate(chart.series):
            value = one.values[at]
            if value is None:
                continue
            y, end = top + gap / 2 + row * index, x(value)
            parts.append(
                f'<rect class="{"mark" if index % 2 == 0 else "hollow"} c{index}" x="{left}" '
                f'y="{y:.1f}" width="{end - left:.1f}" height="{row - 4}"/>'
            )
            parts.append(_text(end + 5, y + row - 7, f"{value:.0%}", kind="small"))
    parts += _legend(chart, right + 36, boxes=True)
    return _page(chart, parts, bottom + 58 + 16 * len(chart.notes))


def _legend(chart: Chart, right: float, *, boxes: bool = False) -> list[str]:
    parts = []
    for index, one in enumerate(chart.series):
        y = _TOP + 8 + 20 * index
        if boxes:
            kind = "mark" if index % 2 == 0 else "hollow"
            parts.append(
                f'<rect class="{kind} c{index}" x="{right + 18:.1f}" y="{y - 6}" '
                'width="18" height="11"/>'
            )
        else:
            parts.append(
                f'<line class="line c{index}"{_dash(index)} x1="{right + 14:.1f}" y1="{y}" '
                f'x2="{right + 40:.1f}" y2="{y}"/>'
            )
            parts.append(_mark(index, right + 27, y))
        parts.append(_text(right + 46, y + 4, one.name, kind="small"))
    return parts


def _page(chart: Chart, parts: Sequence[str], height: float) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img">'
        f"<title>{escape(chart.title)}</title><style>{_style()}</style>"
        f'<rect class="page" width="{WIDTH}" height="{height:.0f}"/>'
    )
    title = _text(20, 24, chart.title, kind="title")
    first = height - 16 * len(chart.notes)
    notes = [_text(20, first + 16 * i, note, kind="small") for i, note in enumerate(chart.notes)]
    return "\n".join([head, title, *parts, *notes, "</svg>"]) + "\n"


def _dash(index: int) -> str:
    return f' stroke-dasharray="{_DASHES[index]}"' if _DASHES[index] else ""


def _mark(index: int, x: float, y: float) -> str:
    """A shape of its own for each series, every second one hollow."""
    kind = "mark" if index % 2 == 0 else "hollow"
    if index < 2:
        return f'<circle class="{kind} c{index}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    corners = [(-4, -4), (4, -4), (4, 4), (-4, 4)] if index < 4 else [(0, -5), (5, 4), (-5, 4)]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon class="{kind} c{index}" points="{points}"/>'


def _grid_line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _level(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="level" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
