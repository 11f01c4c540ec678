"""What a team says does not count leaves no mark in the digest of an input."""

import re

import pytest

from ci_gate.codec import digest_of
from ci_gate.sandbox.ignoring import Ignored, PathError

_INPUT = {
    "request_id": "a1",
    "items": [{"id": 1, "at": "2026-01-01"}, {"id": 2, "at": "2026-01-02"}],
    "meta": {"request_id": "b2", "x.y": 3},
}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("$.request_id", {**_INPUT, "request_id": "[IGNORED]"}),
        (
            "$..request_id",
            {
                **_INPUT,
                "request_id": "[IGNORED]",
                "meta": {"request_id": "[IGNORED]", "x.y": 3},
            },
        ),
        (
            "$.items[*].at",
            {**_INPUT, "items": [{"id": 1, "at": "[IGNORED]"}, {"id": 2, "at": "[IGNORED]"}]},
        ),
        ("$.items[1]", {**_INPUT, "items": [_INPUT["items"][0], "[IGNORED]"]}),
        ("$['meta']['x.y']", {**_INPUT, "meta": {"request_id": "b2", "x.y": "[IGNORED]"}}),
        ("$.meta.*", {**_INPUT, "meta": {"request_id": "[IGNORED]", "x.y": "[IGNORED]"}}),
        ("$.nothing.here", _INPUT),
        (
            r"\d{4}-\d\d-\d\d",
            {**_INPUT, "items": [{"id": 1, "at": "[IGNORED]"}, {"id": 2, "at": "[IGNORED]"}]},
        ),
    ],
)
def test_paths_and_patterns_leave_out_what_they_lead_to(entry, expected):
    """Names, indexes, wildcards, descendants, and expressions in texts."""
    assert Ignored([entry]).without(_INPUT) == expected


def test_two_inputs_that_differ_only_there_have_one_digest():
    """That is what it is for."""
    ignored = Ignored(["$.at"])

    assert digest_of(ignored.without({"at": 1, "id": 7})) == digest_of(
        ignored.without({"at": "later", "id": 7})
    )


def test_a_field_that_is_absent_is_not_the_same_as_one_that_is_ignored():
    """Something stood there, and that still counts."""
    ignored = Ignored(["$.at"])

    assert ignored.without({"at": 1}) != ignored.without({})


@pytest.mark.parametrize("entry", ["$", "$.", "$.a[", "$.a b", "$[x]", "$.a..", "$['a"])
def test_a_path_that_cannot_be_read_is_refused(entry):
    """Silently ignoring nothing would let every replay drift."""
    with pytest.raises(PathError, match=re.escape(repr(entry))):
        Ignored([entry])


def test_an_expression_that_cannot_be_read_is_refused():
    """The caller names the entry."""
    with pytest.raises(re.error):
        Ignored(["("])


def test_deep_values_do_not_exhaust_the_stack():
    """A hostile input is left as it is below some depth."""
    value = {"a": 1}
    for _ in range(5000):
        value = [value]

    assert Ignored(["$..a", "x"]).without(value) is not None
