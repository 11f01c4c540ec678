"""What the trials of an agent are held to beside its calls, and what was noticed of them.

How a worker holds them to it is in ``worker_guard``; what a breach means for a trial is decided by
who runs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from ci_gate.errors import AgentSetupError, printable
from ci_gate.model.agent import AgentSpec

__all__ = ["Determinism", "Network", "Noted", "Strictness", "require_python"]

Determinism = Literal["off", "raise", "warn"]
Network = Literal["inherit", "none", "replay"]

_MOST_PLACES: Final = 1000
_MOST_LINES: Final = 20


class Noted:
    """What was seen in trials that it failed none of, counted."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._trials: Counter[str] = Counter()

    def add(self, calls: Mapping[str, int]) -> None:
        """Count what was seen in one trial.

        Parameters
        ----------
        calls : mapping of str to int
            From a worker: any text, any number.
        """
        for what, times in calls.items():
            if what in self._calls or len(self._calls) < _MOST_PLACES:
                self._calls[what] += max(0, times)
                self._trials[what] += 1

    def lines(self) -> tuple[str, ...]:
        """Return a sentence for each place, the most frequent first."""
        ordered = sorted(self._calls.items(), key=lambda item: (-item[1], item[0]))
        lines = [
            f"Not decided by the seed: {printable(what)}, {_counted(times, 'time')} in "
            f"{_counted(self._trials[what], 'trial')}."
            for what, times in ordered[:_MOST_LINES]
        ]
        hidden = len(ordered) - _MOST_LINES
        return (
            (*lines, f"Not decided by the seed: {hidden} more places.") if hidden > 0 else (*lines,)
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Strictness(msgspec.Struct, frozen=True, kw_only=True):
    """What the trials of a run are held to.

    Parameters
    ----------
    determinism : {"off", "raise", "warn"}
        Whether chance and time that no seed decides fail a trial or are noted.
    is_replay : bool
        No trial may reach anybody over the network.
    noted : Noted
        Takes what ``warn`` sees.
    """

    determinism: Determinism = "off"
    is_replay: bool = False
    noted: Noted = msgspec.field(default_factory=Noted)

    def network(self, spec: AgentSpec) -> Network:
        """Return what an agent's sockets may reach."""
        return "replay" if self.is_replay else spec.network


def require_python(spec: AgentSpec, strictness: Strictness) -> None:
    """Refuse what only the worker of a Python agent can hold a trial to.

    Raises
    ------
    AgentSetupError
        The agent is a command, and something is asked that would be ignored.
    """
    if spec.protocol == "python":
        return
    asked = {
        "agent.allow": bool(spec.allow),
        "--strict-determinism": strictness.determinism != "off",
    }
    for key, is_asked in asked.items():
        if is_asked:
            raise AgentSetupError(
                "needs a Python agent: what a command does is not seen",
                where=key,
                hint="Leave it out, or set [agent] python.",
            )
