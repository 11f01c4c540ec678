"""Real time behind ``ports.Clock``."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

__all__ = ["RealClock"]


class RealClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start."""
        return time.monotonic()

    def utc(self) -> str:
        """Return the time as ISO 8601 with seconds and ``Z``."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
