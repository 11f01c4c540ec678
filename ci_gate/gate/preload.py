"""Load what a run needs only at its end while its agent starts.

Decides which modules those are; nothing depends on it but time. They take longer to import than all
trials of a small suite, and while the agent's process starts this one only waits.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from typing import Final

__all__ = ["LATER", "preload_judging"]

LATER: Final = (
    "rich.console",
    "ci_gate.render.progress",
    "ci_gate.gate.judge",
    "ci_gate.render.markdown",
    "ci_gate.render.terminal",
)
"""Modules that a run needs once its agent has started, most of them after its last trial."""


def preload_judging() -> None:
    """Begin to load, in a thread, what judges a run and reports on it.

    Called when the bars are in memory: no module of the change may stand in the way of one here.
    What cannot be loaded is met again, with its error, by whoever needs it.
    """
    threading.Thread(target=_load_all, name="preload").start()


def _load_all() -> None:
    with contextlib.suppress(Exception):
        for name in LATER:
            importlib.import_module(name)
        from ci_gate.render.markdown import prepare

        prepare()
