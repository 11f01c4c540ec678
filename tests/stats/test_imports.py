"""What importing the statistics costs: a light command pays for no numpy, no gate for scipy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.speeds import slow


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("ci_gate.stats.passk", "numpy"),
        ("ci_gate.stats.power_bound", "scipy"),
        *slow(("ci_gate.stats.permutation", "scipy"), ("ci_gate.stats.seed_effect", "scipy")),
    ],
)
def test_import_leaves_out(module: str, absent: str) -> None:
    """Importing the module in a fresh interpreter does not import the heavy one."""
    script = f"import sys, {module}; sys.exit({absent!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
