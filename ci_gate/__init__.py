"""A CI gate with a baseline store for LLM agents.

The names below are the public interface; everything else is private and may change. Importing this
package loads nothing but itself: each name is fetched when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ci_gate.api import Run, compare, load, power
    from ci_gate.errors import GateError
    from ci_gate.model.policy import Guard, Policy, Quarantine
    from ci_gate.model.run import Baseline
    from ci_gate.model.verdict import Verdict
    from ci_gate.prng import derive_seed
    from ci_gate.sandbox.chaos import ChaosInjector
    from ci_gate.stats.passk import pass_at_k, pass_hat_k

__all__ = [
    "Baseline",
    "ChaosInjector",
    "GateError",
    "Guard",
    "Policy",
    "Quarantine",
    "Run",
    "Verdict",
    "__version__",
    "compare",
    "derive_seed",
    "load",
    "pass_at_k",
    "pass_hat_k",
    "power",
]

__version__ = "0.1.0"

_HOMES = {
    "Baseline": "ci_gate.model.run",
    "ChaosInjector": "ci_gate.sandbox.chaos",
    "GateError": "ci_gate.errors",
    "Guard": "ci_gate.model.policy",
    "Policy": "ci_gate.model.policy",
    "Quarantine": "ci_gate.model.policy",
    "Run": "ci_gate.api",
    "Verdict": "ci_gate.model.verdict",
    "compare": "ci_gate.api",
    "derive_seed": "ci_gate.prng",
    "load": "ci_gate.api",
    "pass_at_k": "ci_gate.stats.passk",
    "pass_hat_k": "ci_gate.stats.passk",
    "power": "ci_gate.api",
}


if not TYPE_CHECKING:  # A type checker that saw this would take every misspelling for a name.

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
