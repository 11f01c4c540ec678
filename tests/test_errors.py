"""Messages say what, where and what to do, and text from outside cannot act in them."""

import pytest

from ci_gate.errors import GateError, Problem, UsageError, printable, unlike_command


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢", "plain ü 漢"),
        ("a\n::error::x", "a\\n::error::x"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\u202eb", "a\\u202eb"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\x00", "\\x00"),
    ],
)
def test_control_and_bidirectional_characters_become_escapes(text, shown):
    """Nothing that moves the cursor, ends a line or reorders text is printed raw."""
    assert printable(text) == shown


def test_long_text_is_cut_and_its_length_named():
    """A message stays readable whatever it quotes."""
    assert printable("x" * 500, limit=10) == "xxxxxxxxxx... (500 characters)"


def test_problem_names_place_fault_and_remedy():
    """The three parts stand in this order."""
    problem = Problem(
        what="unknown key 'trails'", where="ci-gate.toml:3", hint="Did you mean trials?"
    )

    assert str(problem) == "ci-gate.toml:3: unknown key 'trails'. Did you mean trials?"


def test_one_error_carries_all_problems():
    """Several mistakes are one error with the status of its class."""
    error = UsageError.of([Problem(what="one"), Problem(what="two", where="f")])

    assert (str(error), error.exit_code, len(error.problems)) == ("one\nf: two", 2, 2)


def test_an_error_without_a_class_of_its_own_is_internal():
    """Only what is known to be the user's mistake exits 2."""
    assert GateError("x").exit_code == 4


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::error::x", ": :error::x"),
        ("  ::add-mask::x", "  : :add-mask::x"),
        ("a ##[error]b ##vso[task]c", "a # #[error]b # #vso[task]c"),
        ("a::b ## c", "a::b ## c"),
    ],
)
def test_no_line_is_a_workflow_command(line: str, shown: str) -> None:
    """The runner reads ``::`` at a line's start and ``##[`` anywhere in it."""
    assert unlike_command(line) == shown
