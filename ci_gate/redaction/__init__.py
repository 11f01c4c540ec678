"""Secrets taken out of what is about to be written: traces, reports, logs."""

from ci_gate.redaction.forms import SHORTEST_SECRET, secrets_of_environment
from ci_gate.redaction.redactor import Redactor

__all__ = ["SHORTEST_SECRET", "Redactor", "secrets_of_environment"]
