"""How a trial ended, as the last record of its trace holds it, and the trajectory it gives back.

With the calls before it this is all that graders are told of what the agent did. It is in the chain
of digests like every record. Who writes it and who judges by it is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any, Final

import msgspec

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_meta import STATE, is_draw
from ci_gate.model.trial import Status, Step, Trajectory

__all__ = ["RESULT", "result_of", "trajectory_of"]

RESULT: Final = "result"
"""Name of the state that says how a trial ended."""

_MOST_CHARS: Final = 2**20
_MOST_REASON: Final = 4096
_SAID: Final = {
    None: "finished",
    Status.PASSED: "passed",
    Status.FAILED: "failed",
    Status.ERRORED: "errored",
}
_MEANT: Final = {text: status for status, text in _SAID.items()}


def result_of(trajectory: Trajectory, *, with_printed: bool = False) -> dict[str, Any]:
    """Return what is kept of how a trial ended.

    Parameters
    ----------
    trajectory : Trajectory
    with_printed : bool
        Whether what the agent printed is kept as well. It has folders of one machine and moments
        of one run in it, so that equal trials would not have equal traces.

    Returns
    -------
    dict
        JSON: ``status`` (``finished`` where the graders have the word, ``passed``, ``failed``,
        ``errored``), ``reason``, ``answer``, ``turns``, ``tokens``, ``cost_usd``, ``measures``,
        ``printed`` where it is asked for; with ``withheld``, the names of what is not kept, absent
        where all is.

    Notes
    -----
    An answer of more than a million characters, or one that no JSON can hold, is not kept: it
    would cost the trial the rest of its trace. Real time is not in it, so that equal trials have
    equal traces.
    """
    given = {
        "reason": trajectory.reason and trajectory.reason[:_MOST_REASON],
        "answer": trajectory.answer,
    }
    if with_printed:
        given["printed"] = trajectory.output_tail
    texts = {name: _kept(text) for name, text in given.items()}
    withheld = [name for name, text in given.items() if text is not None and texts[name] is None]
    result: dict[str, Any] = {
        "status": _SAID[trajectory.status],
        **texts,
        "turns": trajectory.turns,
        "tokens": trajectory.tokens,
        "cost_usd": trajectory.cost_usd,
        "measures": {name: x for name, x in trajectory.measures.items() if isfinite(x)},
    }
    return {**result, "withheld": withheld} if withheld else result


def _kept(text: str | None) -> str | None:
    if text is None or len(text) > _MOST_CHARS:
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    """A result as it must be; a trace may be what anybody wrote."""

    status: str
    reason: str | None = None
    answer: str | None = None
    turns: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    measures: dict[str, float] = msgspec.field(default_factory=dict)
    printed: str | None = None
    withheld: tuple[str, ...] = ()


def trajectory_of(records: Iterable[TraceRecord], plain: Callable[[Any], Any]) -> Trajectory | str:
    """Return what an agent did by the records of its trace, or why that is not known.

    Parameters
    ----------
    records : iterable of TraceRecord
        In order.
    plain : callable
        Gives a recorded value as the steps of a trial show it.

    Notes
    -----
    Steps are as they were recorded: without secrets, and without what is not recorded of a step
    (``cached``, ``response_id``).
    """
    found: Any = None
    steps: list[Step] = []
    for record in records:
        if (record.kind, record.name) == (STATE, RESULT):
            found = record.output
        elif record.kind != STATE and not is_draw(record.kind, record.name):
            steps.append(_step_of(record, plain))
    if found is None:
        return "its answer was not recorded"
    try:
        result = msgspec.convert(found, _Result)
        return _trajectory(result, steps)
    except (msgspec.ValidationError, KeyError):
        return "how it ended was not recorded as it should be"


def _trajectory(result: _Result, steps: Iterable[Step]) -> Trajectory | str:
    if "answer" in result.withheld:
        return "its answer was too large to be recorded, or is no text"
    return Trajectory(
        answer=result.answer,
        steps=tuple(steps),
        turns=result.turns,
        tokens=result.tokens,
        cost_usd=result.cost_usd,
        measures=result.measures,
        status=_MEANT[result.status],
        reason=result.reason,
        output_tail=result.printed or "",
    )


def _step_of(record: TraceRecord, plain: Callable[[Any], Any]) -> Step:
    return Step(
        kind=record.kind,
        name=record.name,
        input=plain(record.input),
        output=plain(record.output),
        is_error=record.is_error,
        fault=record.fault,
        turn=record.turn,
        lane=record.lane,
    )
