"""Paths into documents, by the examples of RFC 9535."""

from __future__ import annotations

from typing import Any

import pytest

from ci_gate.grading.state.json_path import MOST_FOUND, PathMistake, found_by, parse_path

# RFC 9535, tables 5 to 8.
NAMES: Any = {"o": {"j j": {"k.k": 3}}, "'": {"@": 2}}
WILD: Any = {"o": {"j": 1, "k": 2}, "a": [5, 3]}


@pytest.mark.parametrize(
    ("path", "document", "found"),
    [
        ("$", {"k": "v"}, [{"k": "v"}]),
        ("$.o['j j']", NAMES, [{"k.k": 3}]),
        ("$.o['j j']['k.k']", NAMES, [3]),
        ('$.o["j j"]["k.k"]', NAMES, [3]),
        ("""$["'"]["@"]""", NAMES, [2]),
        (r"$['\'']['@']", NAMES, [2]),
        ("$.*", WILD, [{"j": 1, "k": 2}, [5, 3]]),
        ("$.o[*]", WILD, [1, 2]),
        ("$.a.*", WILD, [5, 3]),
        ("$[1]", ["a", "b"], ["b"]),
        ("$[-2]", ["a", "b"], ["a"]),
        ("$[2]", ["a", "b"], []),
        ("$[-3]", ["a", "b"], []),
        ("$[0]", {"0": "a"}, []),
        ("$.a", ["a"], []),
        ("$['\"']", {'"': 1}, [1]),
        ("$.größe", {"größe": 1}, [1]),
    ],
)
def test_a_path_finds_what_the_standard_says(path: str, document: Any, found: list[Any]) -> None:
    """Names, indices from either end and wildcards; what leads nowhere finds nothing."""
    assert found_by(parse_path(path), document) == found


@pytest.mark.parametrize(
    "path", ["", "a", "$a", "$.", "$..a", "$[", "$[a]", "$[0:2]", "$[?@.a]", "$['a\\q']", "$.a "]
)
def test_what_is_no_path_is_refused(path: str) -> None:
    """Filters, slices and descent are not read as something else."""
    with pytest.raises(PathMistake):
        parse_path(path)


def test_the_values_found_are_bounded() -> None:
    """A document of the agent's cannot multiply without end."""
    wide = [list(range(1000))] * 1000
    assert len(found_by(parse_path("$[*][*]"), wide)) == MOST_FOUND
