"""In what two sides were made differently, so that their outcomes cannot be compared.

Facts of the two files; what they mean for a verdict is the business of the rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from ci_gate.model.run import Side

__all__ = ["Differences"]


@dataclass(frozen=True, kw_only=True)
class Differences:
    """What differs: the error policy, the injected faults, the judge."""

    errors: bool = False
    faults: bool = False
    judge: bool = False

    def __bool__(self) -> bool:
        return self.errors or self.faults or self.judge

    @classmethod
    def between(cls, baseline: Side, candidate: Side) -> Differences:
        """Return in what two sides were made differently."""
        return cls(
            errors=baseline.errors != candidate.errors,
            faults=baseline.faults_digest != candidate.faults_digest,
            judge=baseline.judge_digest != candidate.judge_digest,
        )
