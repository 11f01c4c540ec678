"""The JSON Schema by which editors complete and check ``ci-gate.toml``.

It is derived from ``shape``. What a schema cannot say (rules over several keys) stays with
``rules``; what a schema accepts may therefore still be refused.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ci_gate.config.rules import NOT_YET
from ci_gate.config.shape import ConfigFile

__all__ = ["DIALECT", "schema"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """Return the schema, draft 2020-12, with a description and default for each key."""
    (root,), tables = msgspec.json.schema_components([ConfigFile], ref_template="#/$defs/{name}")
    tables["AgentTable"]["oneOf"] = [{"required": ["python"]}, {"required": ["command"]}]
    for row in NOT_YET:
        _mark(tables, row.path, row.refused)
    return {"$schema": DIALECT, "title": "ci-gate.toml", **root, "$defs": tables}


def _mark(tables: dict[str, Any], path: tuple[str, ...], refused: tuple[Any, ...]) -> None:
    """Say in a key's description what this version refuses."""
    table = tables["ConfigFile"]
    for name in path[:-1]:
        table = tables[_reference(table["properties"][name])]
    values = ", ".join(msgspec.json.encode(value).decode() for value in refused)
    note = f"Not in this version: {values}." if values else "Not in this version."
    key = table["properties"][path[-1]]
    key["description"] = f"{key['description']} {note}"


def _reference(key: dict[str, Any]) -> str:
    """Return the table that a key refers to, also where the key may be absent."""
    options = [key, *key.get("anyOf", ())]
    target = next(option["$ref"] for option in options if "$ref" in option)
    return str(target).rsplit("/", 1)[1]
