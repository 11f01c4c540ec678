"""Run two agents side by side in time, so that a bad hour hits both.

Decides in which order their trials are run: round by round, each side's turn first in every other
round, never both at once, because one machine or one port may be all there is. It must not know
what the two are compared for.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import msgspec

from ci_gate.engine.executors import run_locally
from ci_gate.errors import AgentSetupError
from ci_gate.gate.execution import Execution, Runner, Work, started
from ci_gate.model.run import StopReason
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import TrialRecord
from ci_gate.ports import OutcomeSink, ProgressSink

__all__ = ["Party", "run_side_by_side"]


@dataclass(frozen=True, kw_only=True)
class Party:
    """One of the two sides.

    Attributes
    ----------
    name : str
        What messages call it.
    execution : Execution
        Its budget counts what both have spent.
    trials : sequence of PlannedTrial
        Those that are missing.
    sink : OutcomeSink
    """

    name: str
    execution: Execution
    trials: Sequence[PlannedTrial]
    sink: OutcomeSink


class _Named:
    """Progress of one party, so that the same trial of both counts twice."""

    def __init__(self, progress: ProgressSink, name: str) -> None:
        self._progress = progress
        self._name = name

    def planned(self, total: int, done: int) -> None:
        """Say nothing: a round is not the whole."""

    def finished(self, record: TrialRecord) -> None:
        """Take note of a finished trial."""
        named = msgspec.structs.replace(record, task=f"{self._name}: {record.task}")
        self._progress.finished(named)


def run_side_by_side(
    parties: Sequence[Party], progress: ProgressSink, *, spent_usd: float
) -> StopReason:
    """Run the trials of every party.

    Parameters
    ----------
    parties : sequence of Party
    progress : ProgressSink
        Has been told what is planned.
    spent_usd : float
        What was spent before, in US dollars.

    Returns
    -------
    StopReason
        ``COMPLETE``, ``BUDGET`` or ``INTERRUPTED``; every finished trial is in its sink.

    Raises
    ------
    AgentSetupError
        An agent cannot be started; the message names the party.
    KeyboardInterrupt
        The user stopped it between two trials.
    """
    if not any(party.trials for party in parties):
        return StopReason.COMPLETE
    return run_locally(lambda: _run(parties, progress, spent_usd))


async def _run(parties: Sequence[Party], progress: ProgressSink, spent_usd: float) -> StopReason:
    async with AsyncExitStack() as stack:
        runners = {party.name: await _started(party, stack) for party in parties}
        for party, trials in _turns(parties):
            work = Work(
                trials=trials,
                sink=party.sink,
                progress=_Named(progress, party.name),
                spent_usd=spent_usd,
            )
            result = await runners[party.name](work)
            spent_usd = result.spent_usd
            if result.reason is not StopReason.COMPLETE:
                return result.reason
    return StopReason.COMPLETE


async def _started(party: Party, stack: AsyncExitStack) -> Runner:
    try:
        return await stack.enter_async_context(started(party.execution))
    except AgentSetupError as error:
        raise AgentSetupError(f"the agent of the {party.name} cannot run: {error}") from error


def _turns(parties: Sequence[Party]) -> list[tuple[Party, list[PlannedTrial]]]:
    """Return who runs what, in order; who was first in a round is last in the next."""
    places = sorted({_place(trial) for party in parties for trial in party.trials})
    turns = [
        (party, [trial for trial in party.trials if _place(trial) == place])
        for number, place in enumerate(places)
        for party in (parties if number % 2 == 0 else reversed(parties))
    ]
    return [(party, trials) for party, trials in turns if trials]


def _place(trial: PlannedTrial) -> tuple[int, int]:
    return trial.repeat, trial.trial
