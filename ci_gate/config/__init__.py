"""``ci-gate.toml``: read, checked as a whole, and turned into what the other packages understand.

Everything that can be wrong in a file is said at once. Reading is apart from checking: ``parse`` is
pure, because in CI the file comes out of a commit and not from the disk.
"""

from __future__ import annotations

from ci_gate.config.files import load, parse
from ci_gate.config.json_schema import schema
from ci_gate.config.settings import (
    Config,
    differences,
    faults_digest,
    merge_from_base,
    policy_digest,
    same_agent,
    without_faults,
)
from ci_gate.config.shape import SuiteConfig

__all__ = [
    "Config",
    "SuiteConfig",
    "differences",
    "faults_digest",
    "load",
    "merge_from_base",
    "parse",
    "policy_digest",
    "same_agent",
    "schema",
    "without_faults",
]
