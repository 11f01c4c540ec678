"""Traces on the screen: their calls, where two of them part, what a call could have touched.

Every text in a trace is what an agent, a model or a tool wrote, and is made inert. What to show is
decided by the caller; nothing is computed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ci_gate.model.calls import MODEL_CALL, TOOL_CALL
from ci_gate.model.trace import Origin, TraceHeader, TraceRecord
from ci_gate.model.trace_findings import (
    Difference,
    Divergence,
    Ledger,
    LedgerEntry,
    Parting,
    TraceDiff,
)
from ci_gate.model.trace_meta import is_draw
from ci_gate.render import figures
from ci_gate.render.escape import inert
from ci_gate.render.screen import print_line
from ci_gate.render.trace_records import shown_input, shown_state, state_of

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "PARTED",
    "print_call",
    "render_call",
    "render_calls",
    "render_impact",
    "render_totals",
    "render_trace_diff",
]

_VALUE_CHARS = 110
_PAYLOAD_CHARS = 4000
_PAYLOAD_LINES = 200
_MOST_DIFFERENCES = 12

PARTED: Final = {
    Parting.MODEL_ANSWERED: "the model answered differently",
    Parting.ARGUMENTS: "the same call has other arguments",
    Parting.TOOL_ANSWERED: "the tool answered differently",
    Parting.FILE_CONTENT: "the file has other content",
    Parting.ORDER: "the same calls are made in another order",
    Parting.FAULT: "another fault was injected",
    Parting.OTHER_CALL: "another call is made",
    Parting.DRAWS: "other numbers were drawn, or the clock was read otherwise",
    Parting.STOPPED: "one of the two makes no more calls",
}


def render_calls(header: TraceHeader, records: Sequence[TraceRecord], console: Console) -> None:
    """Print a trace: which trial it is, and a call and its answer on two lines each.

    Parameters
    ----------
    header : TraceHeader
    records : sequence of TraceRecord
        Those to show; their order need not be without gaps.
    console : rich.console.Console
    """
    print_line(console, _title(header), style="bold")
    for told in _told(header.origin):
        print_line(console, told)
    has_lanes = any(record.lane != "main" for record in records)
    before = None
    for record in records:
        print_call(record, console, has_lanes=has_lanes, before=before)
        before = state_of(record) if before is None else before


def _title(header: TraceHeader) -> str:
    if header.task is None:
        words = ["a trace outside any suite", *_agent_of(header.origin)]
    else:
        words = [inert(header.task), f"trial {header.trial}"]
    words += [f"repeat {header.repeat}"] if header.repeat else []
    words += [f"seed {inert(header.seed)}"] if header.seed else []
    return "  ".join(words)


def _agent_of(origin: Origin | msgspec.UnsetType) -> list[str]:
    if isinstance(origin, msgspec.UnsetType):
        return []
    return [inert(origin.python or " ".join(origin.command))]


def _told(origin: Origin | msgspec.UnsetType) -> Iterator[str]:
    """Yield what the agent of a run outside any suite was told."""
    if isinstance(origin, msgspec.UnsetType):
        return
    for name, value in (("instruction", origin.instruction or None), ("input", origin.input)):
        if value is not None:
            yield f"       {name}: {_value(value)}"


def print_call(
    record: TraceRecord,
    console: Console,
    *,
    has_lanes: bool = False,
    before: Mapping[str, Any] | None = None,
) -> None:
    """Print a call and its answer on two lines; of a state, what has changed since one before."""
    lane = f"[{inert(record.lane, limit=30)}] " if has_lanes else ""
    kind = "" if record.kind == TOOL_CALL else f"{inert(record.kind)} "
    call = f"{lane}{kind}{inert(record.name)}({_arguments(shown_input(record))})"
    print_line(console, f"{record.order:>5}  {call}")
    style = "yellow" if record.fault else "red" if record.is_error else "dim"
    fault = f"[fault {inert(record.fault)}] " if record.fault else ""
    answer = shown_state(record, before) or _value(record.output)
    print_line(console, f"       -> {fault}{answer}{_cost(record)}", style=style)


def _cost(record: TraceRecord) -> str:
    parts = []
    if record.tokens:
        parts.append(f"{record.tokens:,} tokens")
    if record.cost_usd is not None:
        parts.append(f"{record.cost_usd:.4g} USD")
    return f"  ({', '.join(parts)})" if parts else ""


def _arguments(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{inert(name)}={_value(item)}" for name, item in value.items())
    return "" if value is None else _value(value)


def _value(value: Any) -> str:
    return inert(value if isinstance(value, str) else _as_json(value), limit=_VALUE_CHARS)


def _as_json(value: Any, *, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else None
    return json.dumps(value, ensure_ascii=False, separators=separators, indent=indent, default=str)


def render_call(record: TraceRecord, console: Console) -> None:
    """Print everything that a trace says of one call."""
    facts = [f"call {record.order}", f"lane {inert(record.lane)}", record.determinism.value]
    facts += [f"turn {record.turn}"] if record.turn is not None else []
    facts += [f"fault {inert(record.fault)}"] if record.fault else []
    facts += ["error"] if record.is_error else []
    facts += [f"{record.duration_ms:.1f} ms"] if record.duration_ms is not None else []
    print_line(console, f"{inert(record.kind)} {inert(record.name)}", style="bold")
    print_line(console, "  " + "  ".join(facts) + _cost(record))
    payloads = [("input", record.input), ("output", record.output)]
    payloads += [("without the fault", record.unfaulted)] if record.fault else []
    for title, value in payloads:
        _print_payload(title, value, console)
    for title, digest in (("input", record.input_digest), ("this call", record.digest)):
        print_line(console, f"  digest of {title}: {inert(digest)}", style="dim")


def _print_payload(title: str, value: Any, console: Console) -> None:
    text = value if isinstance(value, str) else _as_json(value, indent=2)
    lines = text.splitlines() or [""]
    print_line(console, f"  {title}:")
    for line in lines[:_PAYLOAD_LINES]:
        # What an indent says is lost with it.
        indent = " " * (len(line) - len(line.lstrip(" ")))
        print_line(console, f"    | {indent}{inert(line, limit=_PAYLOAD_CHARS)}")
    if len(lines) > _PAYLOAD_LINES:
        print_line(console, f"    | ... {len(lines) - _PAYLOAD_LINES:,} more lines", style="dim")


def render_totals(ledger: Ledger, console: Console) -> None:
    """Print what the calls of a trace cost together, and each kind and name of them."""
    draws = sum(entry.calls for kind, name, entry in ledger.by_name if is_draw(kind, name))
    counted = figures.counted(ledger.total.calls, "call")
    counted += f" ({figures.counted(draws, 'draw')} among them)" if draws else ""
    print_line(console, f"{counted}, {', '.join(_amounts(ledger.total))}")
    for kind, name, entry in ledger.by_name:
        counted = figures.counted(entry.calls, "call")
        amounts = _amounts(entry, is_model=kind == MODEL_CALL)
        print_line(console, f"  {inert(kind)} {inert(name)}: {', '.join([counted, *amounts])}")


def _amounts(entry: LedgerEntry, *, is_model: bool = True) -> Iterator[str]:
    if entry.errors:
        yield figures.counted(entry.errors, "error")
    if entry.tokens is not None:
        yield f"{entry.tokens:,} tokens"
    elif is_model:  # nobody expects any of another call
        yield "tokens unknown"
    if entry.cost_usd is not None:
        calls = figures.counted(entry.unpriced, "call")
        unpriced = f" and {calls} of unknown price" if entry.unpriced else ""
        yield f"{entry.cost_usd:.4g} USD{unpriced}"
    elif is_model:
        yield "cost unknown"
    if entry.duration_ms is not None:
        yield f"{entry.duration_ms:,.1f} ms"


def render_trace_diff(diff: TraceDiff, console: Console) -> None:
    """Print where two traces part, and what differs there."""
    both = f"{diff.baseline_calls} and {diff.candidate_calls} calls"
    if diff.first is None:
        print_line(console, f"The traces agree in every call and answer ({both}).", style="green")
        return
    print_line(
        console,
        f"{both}; {diff.agreed} agree before they part, {diff.common} are made by both.",
    )
    for divergence in diff.lanes:
        _print_divergence(divergence, console)


def _print_divergence(divergence: Divergence, console: Console) -> None:
    lane = "" if divergence.lane == "main" else f"lane {inert(divergence.lane)}, "
    where = f"{lane}after {figures.counted(divergence.place, 'call')}"
    print_line(console, f"They part {where}: {PARTED[divergence.kind]}.", style="bold yellow")
    for side, record in (("baseline ", divergence.baseline), ("candidate", divergence.candidate)):
        print_line(console, f"  {side}  {_shown_call(record)}")
    for difference in divergence.differences[:_MOST_DIFFERENCES]:
        _print_difference(difference, console)
    hidden = len(divergence.differences) - _MOST_DIFFERENCES
    if hidden > 0:
        print_line(console, f"    and {hidden} more differences", style="dim")


def _shown_call(record: TraceRecord | None) -> str:
    if record is None:
        return "(no more calls)"
    call = f"{inert(record.kind)} {inert(record.name)}({_arguments(shown_input(record))})"
    fault = f" [fault {inert(record.fault)}]" if record.fault else ""
    return f"call {record.order}: {call} -> {_value(record.output)}{fault}"


def _print_difference(difference: Difference, console: Console) -> None:
    print_line(console, f"    {inert(difference.path)}")
    if difference.kind != "added":
        print_line(console, f"      - {_value(difference.baseline)}", style="red")
    if difference.kind != "removed":
        print_line(console, f"      + {_value(difference.candidate)}", style="green")


def render_impact(records: Sequence[TraceRecord], touched: Sequence[int], console: Console) -> None:
    """Print the calls that one call could have touched, itself first.

    Parameters
    ----------
    records : sequence of TraceRecord
        The whole trace.
    touched : sequence of int
        Orders, rising.
    console : rich.console.Console
    """
    later = len(records) - touched[0] - 1
    print_line(
        console,
        f"Call {touched[0]} could have touched {len(touched) - 1} of the "
        f"{figures.counted(later, 'call')} after it; no other call can have been reached.",
        style="bold",
    )
    has_lanes = any(record.lane != "main" for record in records)
    for order in touched:
        print_call(records[order], console, has_lanes=has_lanes)
