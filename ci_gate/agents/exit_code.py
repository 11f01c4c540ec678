"""The exit-code protocol: any test command; 0 is a pass, 75 errored, the rest a failure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ci_gate.agents.capture import Capture
from ci_gate.agents.evidence import Ending
from ci_gate.agents.executions import TEMPORARY_FAILURE
from ci_gate.agents.processes import described_exit
from ci_gate.agents.program_agent import Exchange, ProgramAgent
from ci_gate.model.suite import PlannedTrial
from ci_gate.model.trial import Status, Step, Trajectory
from ci_gate.prng import format_seed

__all__ = ["ExitCodeAgent", "filled"]

_PLACE = re.compile(r"\{(task|trial|seed)\}")


def filled(arguments: Sequence[str], trial: PlannedTrial) -> list[str]:
    """Return the arguments with ``{task}``, ``{trial}`` and ``{seed}`` filled in.

    Each argument stays one argument whatever the task is called, and what was filled in is not
    looked at again.
    """
    values = {
        "task": trial.task.id,
        "trial": str(trial.trial),
        "seed": format_seed(trial.seed),
    }
    return [_PLACE.sub(lambda place: values[place[1]], argument) for argument in arguments]


class ExitCodeAgent(ProgramAgent):
    """An agent that is judged by the exit status of a command."""

    def _exchange(self, trial: PlannedTrial) -> Exchange:
        return Exchange(filled(self._spec.command[1:], trial), None, Capture())

    def _read(
        self, exchange: Exchange, status: int, steps: tuple[Step, ...]
    ) -> tuple[Trajectory, Ending | None]:
        printed = exchange.stdout.text()
        trajectory = Trajectory(steps=steps, status=Status.PASSED, output_tail=printed)
        if status == 0:
            return trajectory, None
        is_claim = status == TEMPORARY_FAILURE
        return trajectory, Ending(reason=described_exit(status), claims_environment=is_claim)
