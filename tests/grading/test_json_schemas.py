"""JSON Schemas of task files: what is refused, and what a complaint says."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from ci_gate.grading.json_schemas import DEEPEST, LONGEST, JsonSchema, schema_problems

DIALECT = "https://json-schema.org/draft/2020-12/schema"

REFUND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "integer"},
        "cents": {"type": "integer", "minimum": 1},
        "items": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "reason": {"pattern": "^[a-z ]+$"},
    },
    "required": ["order_id", "cents"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"order_id": 4812, "cents": 4500}, None),
        ({"order_id": 4812, "cents": 4500.0}, None),
        (
            {"order_id": "4812", "cents": 4500},
            'at order_id: expected type "integer", found "4812"',
        ),
        ({"order_id": 4812, "cents": 0}, "at cents: expected minimum 1, found 0"),
        ({"order_id": 4812}, 'expected "cents", found only "order_id"'),
        ({}, 'expected "order_id", "cents", found only none'),
        (
            {"order_id": 1, "cents": 1, "to": "eve"},
            (
                'expected no other keys than "order_id", "cents", "items", "reason", '
                'found "order_id", "cents", "to"'
            ),
        ),
        (
            {"order_id": 1, "cents": 1, "items": ["a", 2]},
            'at items[1]: expected type "string", found 2',
        ),
        (
            {"order_id": 1, "cents": 1, "items": ["a", "a"]},
            'at items: expected uniqueItems true, found ["a","a"]',
        ),
        (
            {"order_id": 1, "cents": 1, "reason": "IT BROKE"},
            'at reason: expected pattern "^[a-z ]+$", found "IT BROKE"',
        ),
        ([], 'expected type "object", found []'),
    ],
)
def test_a_complaint_says_where_what_was_expected_and_found(
    value: Any, complaint: str | None
) -> None:
    """The words are the project's own: the same with every release of the library."""
    assert schema_problems(REFUND) == []
    assert JsonSchema(REFUND).complaint(value) == complaint


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (["x"], 'must be a JSON Schema (a table), found ["x"]'),
        ({"type": "strin"}, "is no JSON Schema: at type: expected anyOf"),
        ({"minimum": "1"}, 'is no JSON Schema: at minimum: expected type "number", found "1"'),
        (
            {"$schema": "https://example.org/x"},
            "has an unknown '$schema' \"https://example.org/x\"",
        ),
        (
            {"$ref": "https://example.org/x"},
            'refers to "https://example.org/x": nothing is fetched',
        ),
        ({"$ref": "file:///etc/passwd"}, 'refers to "file:///etc/passwd": nothing is fetched'),
        ({"properties": {"a": {"$ref": "other.json"}}}, 'refers to "other.json": nothing is'),
        ({"$ref": "#/$defs/x"}, 'refers to "#/$defs/x", which it does not have'),
        ({"$defs": {"x": {"$id": "y"}}}, "has an '$id' below its top"),
        ({"$defs": {"x": {"$schema": DIALECT}}}, "has a '$schema' below its top"),
        ({"pattern": "("}, 'is no JSON Schema: at pattern: expected format "regex", found "("'),
        ({"patternProperties": {"^(a+)+$": True}}, 'has a pattern of keys "^(a+)+$" that can take'),
    ],
)
def test_an_unsound_schema_is_a_mistake(schema: Any, problem: str) -> None:
    """Not a schema, one that leads elsewhere, or one whose checking need not end."""
    (found,) = schema_problems(schema)
    assert found.startswith(problem)


def test_a_schema_may_refer_to_its_own_parts() -> None:
    """By pointer and by anchor, in any draft; and data that looks like a reference is data."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://example.org/order",
        "properties": {"id": {"$ref": "#/definitions/a~1b"}},
        "definitions": {"a/b": {"type": "integer"}},
        "enum": [{"$ref": "x"}, {"id": 1}, {"id": "1"}],
    }
    anchored = {"$defs": {"x": {"$anchor": "id", "type": "integer"}}, "items": {"$ref": "#id"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert schema_problems(schema) == schema_problems(anchored) == []
        assert JsonSchema(schema).complaint({"id": 1}) is None
        complaint = JsonSchema(schema).complaint({"id": "1"})
        assert complaint == 'at id: expected type "integer", found "1"'
        assert JsonSchema(anchored).complaint(["1"]) is not None


def test_what_is_too_large_or_too_deep_is_not_as_asked() -> None:
    """The agent decides how much it sends; it is said, and never a pass."""
    deep: Any = 1
    for _ in range(DEEPEST + 1):
        deep = [deep]
    schema = JsonSchema(True)
    assert schema.complaint(deep) == f"nested deeper than {DEEPEST} levels"
    assert schema.complaint("x" * LONGEST) == "longer than 1,000,000 bytes of JSON"
    assert str(schema.complaint("\ud800")).startswith("not checked, as no JSON holds it")
    keys = JsonSchema({"patternProperties": {"^x": True}})
    assert str(keys.complaint({"y" * 201: 1})).startswith("has a key longer than 200 characters")


def test_a_schema_that_goes_in_circles_ends() -> None:
    """A reference to itself at the same place is said and is no pass."""
    schema = {"$ref": "#"}
    assert schema_problems(schema) == []
    complaint = JsonSchema(schema).complaint(1)
    assert complaint == "not checked: the schema refers to itself without end"


def test_hostile_values_stay_on_one_line() -> None:
    """What the agent wrote cannot begin a line or a command of a log."""
    complaint = JsonSchema({"type": "integer"}).complaint("\n::error::x\u202e")
    assert complaint is not None
    assert complaint.isprintable()


def _node(kind: str) -> dict[str, Any]:
    return {"properties": {"child": {"$ref": "#"}, "kind": {"const": kind}}}


def test_a_deep_value_of_a_recursive_schema_is_not_checked_without_end() -> None:
    """Each level of the value doubles the work, so it is given up, and is no match."""
    value: Any = 1
    for _ in range(40):
        value = {"kind": "other", "child": value}

    complaint = JsonSchema({"anyOf": [_node("list"), _node("item")]}).complaint(value)

    assert complaint == "not checked: too many references of the schema would have to be followed"


@pytest.mark.parametrize("size", [0, 1, 6_000])
def test_a_long_list_of_what_is_referred_to_is_checked_whole(size: int) -> None:
    """How many references are followed grows with the value."""
    schema = {"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}

    assert JsonSchema(schema).complaint([1] * size) is None
    assert JsonSchema(schema).complaint([1] * size + ["x"]) is not None


@pytest.mark.slow
def test_a_pattern_is_bounded_where_a_reference_leads_to_the_dialect() -> None:
    """A `$schema` does not bring back the library's own search, which need not end."""
    schema = {"$schema": DIALECT, "items": {"$ref": "#"}, "pattern": "^(a+)+$"}

    complaint = JsonSchema(schema).complaint(["a" * 40 + "!"])

    assert "took longer than" in str(complaint)
