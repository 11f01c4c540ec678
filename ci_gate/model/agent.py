"""How the agent under test is started and held, and which faults its tools meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

__all__ = ["AgentSpec", "FaultPolicy"]


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """``[agent]`` of the configuration with its paths made absolute.

    Parameters
    ----------
    python : str or None
        ``module:function``; exclusive with ``command``.
    command : tuple of str
        Program and arguments.
    protocol : {"python", "command", "exit-code"}
    interpreter : str
        Path of the agent's Python, or ``auto``.
    root : str
        Absolute folder in which the agent runs.
    files : tuple of str
        Globs, relative to ``root``, whose content is the agent's digest.
    timeout_s : float
    memory_mb : int
        0: no limit.
    isolation : {"process", "inline"}
    network : {"inherit", "none"}
    environment_errors : tuple of str
        Exception class names or regular expressions over output that mean: not the agent's fault.
    laundered_errors : tuple of str
        Regular expressions over the answer that mean: a provider's error passed off as an answer.
    allow : tuple of str
        Capabilities; empty: all.
    setup : tuple of str
        Command that prepares a fresh work tree.
    base_url_env : tuple of str
        Variables that may hold the base URL of the model's API.
    send_seed : bool
        Whether requests to it get the trial's seed.
    """

    python: str | None = None
    command: tuple[str, ...] = ()
    protocol: Literal["python", "command", "exit-code"]
    interpreter: str = "auto"
    root: str
    files: tuple[str, ...] = ()
    timeout_s: float = 120.0
    memory_mb: int = 0
    isolation: Literal["process", "inline"] = "process"
    network: Literal["inherit", "none"] = "inherit"
    environment_errors: tuple[str, ...] = ()
    laundered_errors: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    base_url_env: tuple[str, ...] = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
    send_seed: bool = False


class FaultPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """``[faults]``: which faults the tools meet. Rates are per thousand calls."""

    rate_permille: int = 150
    tools: Mapping[str, int] = msgspec.field(default_factory=dict)
    kinds: tuple[str, ...] = ("timeout", "rate_limit", "truncated", "posix")
    weights: tuple[int, ...] = ()
    schedule: Literal["sequential", "keyed"] = "sequential"
    steps: tuple[int, ...] = ()
    budget: int = 0
    real_delays: bool = False
