"""Where keys stand in a TOML text."""

from __future__ import annotations

import tomli
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.config.lines import lines_of_keys, nearest_line

TEXT = '''# a comment
title = "x"

[[suite]]
name = "first"   # [gate]
tasks = [
  "a",
  # ]
  "b",
]
[[suite]]
note = """
[agent]
python = "no"
"""
name = "second"
[suite.limits]
turns = 3
[gate.floors]
"pass^1" = 0.5
[x]
y.z = { a = 1, b = [1, 2] }
'''


def test_each_key_stands_where_its_statement_begins() -> None:
    """Strings and arrays over several lines, comments and tables of arrays do not mislead."""
    place = lines_of_keys(TEXT)

    assert {path: place[path] for path in place if len(path) < 4} == {
        ("title",): 2,
        ("suite",): 4,
        ("suite", 0): 4,
        ("suite", 0, "name"): 5,
        ("suite", 0, "tasks"): 6,
        ("suite", 1): 11,
        ("suite", 1, "note"): 12,
        ("suite", 1, "name"): 16,
        ("suite", 1, "limits"): 17,
        ("gate", "floors"): 19,
        ("gate", "floors", "pass^1"): 20,
        ("x",): 21,
        ("x", "y"): 22,
        ("x", "y", "z"): 22,
    }
    assert place["suite", 1, "limits", "turns"] == 18
    assert place["x", "y", "z", "b", 1] == 22


def test_windows_line_ends_do_not_shift_lines() -> None:
    """A file with CRLF has the same lines as one with LF."""
    assert lines_of_keys(TEXT.replace("\n", "\r\n")) == lines_of_keys(TEXT)


def test_nearest_line_is_that_of_the_closest_table() -> None:
    """A key that is missing is looked for in its table; where there is none, no line is made up."""
    place = lines_of_keys(TEXT)

    assert nearest_line(place, ("suite", 1, "seed")) == 11
    assert nearest_line(place, ("agent", "python")) is None


def test_no_line_is_given_after_a_statement_that_is_too_long_to_cut() -> None:
    """What cannot be placed with certainty is left out."""
    text = "a = 1\nb = [\n" + "1,\n" * 500 + "]\nc = 1\n"

    assert lines_of_keys(text) == {("a",): 1}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", '"x"', "[1,\n2]", '"""\n[t]\nq = 1"""', "{ i = 1 }", "true"]),
            st.sampled_from(["", "\n", "# note\n", "   \n"]),
        ),
        max_size=8,
    )
)
def test_every_key_is_found_on_the_line_that_names_it(entries: list[tuple[str, str]]) -> None:
    """Whatever stands between statements, the line given is the one that begins with the key."""
    text = "".join(f"{gap}k{index} = {value}\n" for index, (value, gap) in enumerate(entries))
    place = lines_of_keys(text)

    lines = text.split("\n")
    for key in tomli.loads(text):
        assert lines[place[(key,)] - 1].startswith(f"{key} =")
