"""docs/messages.md has an entry for everything that a user can meet, and for nothing else."""

import re

import pytest

from ci_gate import errors
from ci_gate.decision.decide import RULES
from ci_gate.model.verdict import ReasonCode
from tests.docs.pages import headings, page

MESSAGES = page("messages.md")
ERRORS, REASONS = MESSAGES.split("\n## Reasons\n")
NOT_GIVEN = "*Not given by this version.*"


def _slugs() -> set[str]:
    found = (getattr(errors, name) for name in errors.__all__)
    return {kind.slug for kind in found if isinstance(kind, type) and hasattr(kind, "slug")}


def _entry(code: str) -> str:
    pattern = rf"^### {re.escape(code)}\n\n(.+?)(?=^###|\Z)"
    match = re.search(pattern, REASONS, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


def test_every_error_has_an_entry():
    """The slugs of all errors are the headings under Errors."""
    assert set(headings(ERRORS, "###")) == _slugs()


def test_every_reason_has_an_entry():
    """The reason codes are the headings under Reasons."""
    assert set(headings(REASONS, "###")) == {code.value for code in ReasonCode}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_an_entry_says_the_verdict_of_its_rule(rule):
    """An entry has a paragraph that begins with the verdict its reason leads to."""
    verdict = ("Inconclusive", "Regressed", "Inconclusive", "Passed")[rule.tier]

    entry = _entry(rule.code.value)

    paragraphs = entry.split("\n\n")
    assert any(text.startswith((f"{verdict}.", NOT_GIVEN)) for text in paragraphs)


def test_a_code_without_a_rule_is_not_given():
    """A code that no rule gives is marked so."""
    without = {code.value for code in ReasonCode} - {rule.code.value for rule in RULES}

    assert [code for code in sorted(without) if not _entry(code).startswith(NOT_GIVEN)] == []


def test_the_exit_status_of_an_error_is_stated():
    """An entry begins with the exit status of its error."""
    kinds = {
        kind.slug: kind.exit_code
        for kind in (getattr(errors, name) for name in errors.__all__)
        if isinstance(kind, type) and hasattr(kind, "slug")
    }

    stated = dict(re.findall(r"^### (\S+)\n\nExit (\d)\.", ERRORS, re.MULTILINE))

    assert stated == {slug: str(status) for slug, status in kinds.items()}
