"""A search ends in time whatever it is given, and finds what Python finds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate import patterns
from ci_gate.patterns import PatternError, is_quick, search
from tests.speeds import examples, slow

NESTED = re.compile(r"^(\w+\s?)*$")
ENDLESS = "a" * 40 + "!"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "LONGEST_S", 0.2)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^(\w+\s?)*$", ENDLESS),
        *slow((r"^(a|a)*$", ENDLESS)),
        *slow(("a?" * 40 + "a" * 40 + "b", "a" * 60)),
        (r"total.*: 5", "total" * 200_000),
        (r"(?=(a+)+!!)b|(a+)+$", ENDLESS),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_a_search_without_end_is_given_up(pattern: str, text: str) -> None:
    """Whatever makes the matcher run for ever, the caller waits no longer than the limit."""
    started_s = time.monotonic()
    with pytest.raises(PatternError, match=r"pattern took longer than 0\.2 s"):
        search(re.compile(pattern), text)
    assert time.monotonic() - started_s < 5


_ATOMS = st.sampled_from(["a", "b", ".", r"\w", r"\s", "[ab]", "^", "$", r"\b", "é", r"\ud800"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map("(%s|%s)".__mod__),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?", "*+"])).map(
            "(?:%s)%s".__mod__
        ),
        inner.map("(?=%s)".__mod__),
        inner.map("(?>%s)".__mod__),
    ),
    max_leaves=6,
)


@given(
    pattern=_PATTERNS,
    text=st.text("ab é\n\ud800", max_size=12),
    flag=st.sampled_from([0, re.IGNORECASE]),
)
@settings(max_examples=examples(200))
def test_a_search_finds_what_python_finds(pattern: str, text: str, flag: int) -> None:
    """Where a pattern is tried, here or in another process, shows in no result."""
    expression = re.compile(pattern, flag)
    found = expression.search(text)
    assert search(expression, text) == (found and found.span())


@pytest.mark.parametrize(
    ("pattern", "length", "quick"),
    [
        ("refunded", 100_000, True),
        (r"\d{4}-\d{2}-\d{2}", 1000, True),
        (r"rate.?limit|(?i:quota)", 20_000, True),
        (r"\d+ EUR", 100, True),
        (r"\d+ EUR", 10_000, False),
        (r"(\d+)+", 10, False),
        (r"(ab|b)*", 10, False),
        (r"(a)?(?(1)b|c)", 10, False),
    ],
)
def test_only_a_bounded_search_is_made_here(pattern: str, length: int, quick: bool) -> None:
    """Everyday patterns need no process; repeated choices and long texts do."""
    assert is_quick(re.compile(pattern), "x" * length) is quick


def test_a_killed_process_is_replaced_and_reused() -> None:
    """The death of the process between two searches changes no result; else it is used again."""
    assert search(NESTED, "good") == (0, 4)
    first = patterns._idle[-1]
    assert search(NESTED, "good") == (0, 4)
    assert patterns._idle[-1] is first
    os.kill(first._popen.pid, signal.SIGKILL)
    assert search(NESTED, "good") == (0, 4)
    assert patterns._idle[-1] is not first


def test_nothing_is_left_of_a_program_that_was_killed_while_it_searched() -> None:
    """The process ends itself when its time is up, whoever still waits for it."""
    code = (
        "import re; from ci_gate import patterns; patterns.LONGEST_S = 0.5;"
        "patterns.search(re.compile('(ab|b)*'), 'a');"
        "print(patterns._idle[-1]._popen.pid, flush=True);"
        f"patterns.search(re.compile({NESTED.pattern!r}), {ENDLESS!r})"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as gate:
        assert gate.stdout is not None
        pid = int(gate.stdout.readline())
        time.sleep(0.1)
        gate.kill()
    deadline_s = time.monotonic() + 10
    while _runs(pid):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    """Return whether a process runs; one whose status nobody takes has ended."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return shown.stdout.strip() != b"" and not shown.stdout.startswith(b"Z")
