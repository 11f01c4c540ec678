"""What this program calls itself in the files it writes."""

from __future__ import annotations

__all__ = ["tool_name"]


def tool_name() -> str:
    """Return ``ci-gate`` and the version."""
    from ci_gate import __version__

    return f"ci-gate {__version__}"
