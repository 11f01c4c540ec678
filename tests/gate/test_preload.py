"""What is loaded while the agent starts, and what is not loaded before."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading

from ci_gate.gate.preload import LATER, preload_judging


def test_judging_is_not_loaded_before_the_agent_starts() -> None:
    """Nothing that `check` imports at its start brings the test or numpy along."""
    script = (
        "import sys, ci_gate.cli.check, ci_gate.gate.check, ci_gate.gate.reports\n"
        "late = [name for name in sys.modules if name.startswith(('numpy', 'ci_gate.stats'))]\n"
        "sys.exit(f'loaded too early: {late}' if late else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == ""


def test_every_module_that_is_loaded_ahead_exists() -> None:
    """A module that was renamed would be loaded late, and nobody would notice."""
    for name in LATER:
        importlib.import_module(name)


def test_preloading_ends_with_everything_loaded() -> None:
    """What the thread was to import is there when it has ended."""
    preload_judging()
    for thread in threading.enumerate():
        if thread.name == "preload":
            thread.join()
    assert set(LATER) <= set(sys.modules)
