"""Which cases and how many examples the fast suite looks at; ``.ci/run`` looks at all of them."""

from __future__ import annotations

import os
from typing import Any

import pytest

PROFILES = {"fast": 15, "full": 100, "thorough": 1000}
"""Examples of a property that names no number, by what HYPOTHESIS_PROFILE says."""

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")


def slow(*cases: Any) -> list[Any]:
    """Return cases of ``parametrize`` that the fast suite leaves out, a tuple for several names."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in cases
    ]


def examples(full: int) -> int:
    """Return how many examples a property is tried with that needs another number than most."""
    return max(3, full * PROFILES[PROFILE] // PROFILES["full"])
