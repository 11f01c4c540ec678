"""``schema``: the JSON Schema of each file format."""

from __future__ import annotations

from typing import Any

from ci_gate import config
from ci_gate.store import schemas

__all__ = ["schema"]


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of ``config``, ``run``, ``baseline`` or ``verdict``."""
    return config.schema() if name == "config" else schemas.schema(name)
