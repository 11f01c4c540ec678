"""Text from outside does nothing, and reads as it was."""

from __future__ import annotations

import html
import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.render.escape import code_html, code_span, fence, inert, inert_command, prose, sentence
from tests.render.github_like import rendered
from tests.render.nasty import NASTY, outside_code, tags, text_of


@given(NASTY)
def test_inert_text_is_one_printable_line(text: str) -> None:
    """No control character, line break or log command is left."""
    shown = inert(text)

    assert shown == "" or shown.isprintable()
    assert not re.search(r"##\w*\[", shown)
    assert len(shown) < 1600


def test_inert_text_of_ten_megabytes_is_cut_with_its_length() -> None:
    """A very long text costs no more than what is kept of it, and its length is said."""
    shown = inert("x" * 10_000_000, limit=20)

    assert shown == "x" * 20 + "... (10000000 characters)"


@given(NASTY)
def test_prose_is_only_text(text: str) -> None:
    """Prose becomes one paragraph in which nothing but the text itself is found."""
    shown = inert(text)

    page = rendered(f"{prose(shown)}\n")

    assert tags(page) <= {"p", "span"}
    assert text_of(page).replace("\u2060", "").strip() == " ".join(shown.split(" ")).strip()


@given(NASTY)
def test_prose_calls_nobody(text: str) -> None:
    """No mention, reference or link is left for the filters that walk over the text."""
    page = rendered(f"reason: {prose(inert(text))}\n")

    assert not re.search(r"@\w|#\d|(?i:\bgh-\d)|://|(?i:www\.)", outside_code(page))


@given(NASTY)
def test_code_is_the_text_itself(text: str) -> None:
    """An identifier in code is copied from a comment exactly as it is, in tables too."""
    shown = inert(text)

    page = rendered(f"| a | b |\n| --- | --- |\n| {code_span(shown)} | {code_html(shown)} |\n")

    assert tags(page) <= {"table", "thead", "tbody", "tr", "th", "td", "code", "span"}
    assert re.sub(r"\s+", " ", text_of(page)) == re.sub(r"\s+", " ", f" a b {shown} {shown} ")


@given(NASTY)
def test_sentence_turns_backticks_into_code_and_nothing_else(text: str) -> None:
    """A sentence holds text and code, whatever stands between its backticks."""
    page = rendered(f"- {sentence(inert(text))}\n")

    assert tags(page) <= {"ul", "li", "code", "span"}


def test_sentence_shows_a_command_as_code() -> None:
    """A command between backticks in a message is set as code."""
    assert sentence("run `ci-gate check`.") == "run `ci-gate check`."


def test_plain_identifiers_stay_readable_in_the_source() -> None:
    """An ordinary id is an ordinary code span, so that the source of a comment can be read."""
    assert code_span("refund-4812") == "`refund-4812`"
    assert code_span("tests/test_a.py::test_b[x]") == "`tests/test_a.py::test_b[x]`"


@given(st.lists(NASTY, min_size=1, max_size=5))
def test_fence_holds_every_line(texts: list[str]) -> None:
    """No run of backticks inside ends a block of code."""
    lines = [inert(text) or "-" for text in texts]

    page = rendered(f"{fence(lines)}\n")

    assert tags(page) == {"pre", "code"}
    assert text_of(page).rstrip("\n") == "\n".join(lines)


@pytest.mark.parametrize("line", ["```", "`````", "``` x ````"])
def test_fence_is_longer_than_what_it_holds(line: str) -> None:
    """A line of backticks alone does not end the block either."""
    page = rendered(f"{fence([line, 'after'])}\n")

    assert text_of(page).rstrip("\n") == f"{line}\nafter"


@given(NASTY)
def test_command_means_what_it_meant(text: str) -> None:
    """A command that is shown is the same to a shell, and is no command to a log."""
    command = f"ci-gate replay {shlex.quote(text)} --trial 3"

    shown = inert_command(command)

    if shown is not None:
        assert shlex.split(shown) == shlex.split(command)
        assert not re.search(r"##\w*\[", shown)
        assert html.unescape(rendered(f"{fence([shown])}\n")).count(shown) == 1


@pytest.mark.parametrize("command", ["ci-gate replay 'a\nb'", "x" * 5000, "::error::x", "a\x1b[0m"])
def test_command_that_cannot_be_shown_exactly_is_not_shown(command: str) -> None:
    """Rather no command than another one."""
    assert inert_command(command) is None
