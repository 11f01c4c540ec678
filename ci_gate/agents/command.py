"""The command protocol: one process a trial, JSON in, the last JSON line of its output back."""

from __future__ import annotations

from typing import Any

import msgspec

from ci_gate import codec
from ci_gate.agents.capture import RESULT_BYTES, TAIL_BYTES, Capture
from ci_gate.agents.evidence import Ending, told
from ci_gate.agents.executions import TEMPORARY_FAILURE
from ci_gate.agents.processes import described_exit
from ci_gate.agents.program_agent import Exchange, ProgramAgent
from ci_gate.agents.results import GarbageError, one_line, trajectory_of
from ci_gate.agents.wild_numbers import result_with_wild_numbers
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Status, Step, Trajectory
from ci_gate.prng import format_seed

__all__ = ["PROTOCOL", "CommandAgent", "last_json_line"]

PROTOCOL = "ci-gate/1"


class CommandAgent(ProgramAgent):
    """An agent that is a program in any language."""

    def _exchange(self, trial: PlannedTrial) -> Exchange:
        stdout = Capture(head_bytes=0, tail_bytes=RESULT_BYTES)
        return Exchange(self._spec.command[1:], _order(trial), stdout, stderr=Capture())

    def _read(
        self, exchange: Exchange, status: int, steps: tuple[Step, ...]
    ) -> tuple[Trajectory, Ending | None]:
        trajectory, garbage = _result(exchange.stdout, steps)
        shown = msgspec.structs.replace(trajectory, output_tail=_printed(exchange))
        return shown, _ending(status, trajectory, garbage)


def _order(trial: PlannedTrial) -> bytes:
    order = {
        "protocol": PROTOCOL,
        "task": trial.task.shown(),
        "trial": trial.trial,
        "seed": format_seed(trial.seed),
    }
    return codec.encode(order) + b"\n"


def _result(stdout: Capture, steps: tuple[Step, ...]) -> tuple[Trajectory, str]:
    """Return the result that was printed, and what is wrong with it."""
    try:
        return trajectory_of(last_json_line(stdout), steps), ""
    except GarbageError as error:
        return Trajectory(steps=steps), f"garbage: {one_line(error)}"


def _printed(exchange: Exchange) -> str:
    printed = exchange.stdout.tail()[-TAIL_BYTES:].decode("utf-8", "replace")
    return printed if exchange.stderr is None else printed + exchange.stderr.text()


def last_json_line(stdout: Capture) -> dict[str, Any]:
    """Return the last line of an output that is a JSON object.

    Raises
    ------
    GarbageError
        There is none in what was kept.
    """
    for line in reversed(stdout.tail().splitlines()):
        stripped = line.strip()
        if stripped.startswith(b"{") and stripped.endswith(b"}"):
            found = _object(stripped)
            if found is not None:
                return found
    bounded = f" in the last {RESULT_BYTES} bytes" if stdout.total_bytes > RESULT_BYTES else ""
    raise GarbageError(f"no line of the standard output is a JSON object{bounded}")


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = codec.decode(line)
    except ValueError:
        found = result_with_wild_numbers(line)
    return found if isinstance(found, dict) else None


def _ending(status: int, trajectory: Trajectory, garbage: str) -> Ending | None:
    """Return what went wrong, the most telling first; None where nothing did."""
    if trajectory.status is Status.ERRORED:
        return told(trajectory)
    if status == TEMPORARY_FAILURE:
        return Ending(reason=described_exit(status), claims_environment=True)
    if status != 0:
        return Ending(reason=f"crash: {described_exit(status)}")
    if garbage:
        return Ending(reason=garbage)
    return told(trajectory) if trajectory.status is Status.FAILED else None
