"""How the faults of one trial reach its agent: in the place of an answer, or along with it.

What the agent's code gets has the type that it would have had, unless the fault is that it has not.
Which calls meet faults is decided in ``chaos``, what a fault says in ``faults``; whether a call is
made a second time is left to who makes it.
"""

from __future__ import annotations

import json
from typing import Any, Final

from ci_gate import codec
from ci_gate.model.calls import MODEL_CALL, TOOL_CALL
from ci_gate.ports import Observation
from ci_gate.sandbox.chaos import ChaosInjector
from ci_gate.sandbox.faults import DUPLICATE, ERROR_KINDS, MODEL_KINDS, STALE, UNCHANGED_KINDS
from ci_gate.sandbox.values import plain_of

__all__ = ["MODEL_STREAM", "Delivery", "model_injector"]

MODEL_STREAM: Final = 0x6D6F64656C
"""Exclusive-or of a trial's seed gives the seed of the faults of its models."""

_UNRECORDABLE: Final = '"$ci-gate":["unrecordable"'
_MOST_REMEMBERED: Final = 10_000


def model_injector(rate_permille: int, seed: int) -> ChaosInjector | None:
    """Return what decides which calls to models meet faults in a trial; None where none do."""
    if not rate_permille:
        return None
    return ChaosInjector(seed ^ MODEL_STREAM, rate_permille, kinds=MODEL_KINDS, keep_audit=False)


class Delivery:
    """The faults of one trial.

    Parameters
    ----------
    tools, models : ChaosInjector or None
        None: these calls meet none.
    """

    def __init__(self, tools: ChaosInjector | None, models: ChaosInjector | None = None) -> None:
        self._injectors = {TOOL_CALL: tools, MODEL_CALL: models}
        self._remembers = tools is not None and tools.needs_earlier
        self._earlier: dict[tuple[str, str], Any] = {}

    def seen(
        self, kind: str, name: str, arguments: Any, output: Any, *, is_error: bool
    ) -> Observation | None:
        """Return what the agent gets of a call that meets a fault; None where it meets none.

        Parameters
        ----------
        kind, name : str
        arguments, output : Any
            JSON, in which other values are tagged (``values``).
        is_error : bool
            The call failed by itself.
        """
        injector = self._injectors.get(kind)
        if injector is None:
            return None
        earlier = self._earlier_of(name, arguments, output) if self._remembers else None
        result = injector.intercept(
            name, _text_of(output), earlier=None if earlier is None else _text_of(earlier)
        )
        if result.fault is None:
            return None
        return Observation(
            output=_delivered(result.fault, result.observation, output, earlier),
            is_error=is_error or result.fault in ERROR_KINDS,
            fault=result.fault,
            delay_s=result.delay_s,
            is_whole=result.fault in UNCHANGED_KINDS,
            again=result.fault == DUPLICATE,
        )

    def _earlier_of(self, name: str, arguments: Any, output: Any) -> Any:
        """Return the first answer to the same call; None where this is the first."""
        key = name, _text_of(arguments)
        if key not in self._earlier and len(self._earlier) < _MOST_REMEMBERED:
            is_lasting = _UNRECORDABLE not in json.dumps(output, separators=(",", ":"))
            self._earlier[key] = output if is_lasting else None
            return None
        return self._earlier.get(key)


def _delivered(fault: str, text: str, output: Any, earlier: Any) -> Any:
    if fault in UNCHANGED_KINDS:
        return output
    if fault == STALE:
        return earlier
    # A table with values of other types is a table all the same.
    return codec.decode(text) if fault == "malformed" and not isinstance(output, str) else text


def _text_of(output: Any) -> str:
    plain = plain_of(output)
    if isinstance(plain, str):
        return plain
    try:
        return codec.encode(plain).decode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 does not have
        return json.dumps(plain, separators=(",", ":"))
