"""The JSON Schema of the configuration, and the page that explains every key."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import tomli

from ci_gate import config
from ci_gate.config.rules import NOT_YET

FULL = Path(__file__).with_name("full.toml")
PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


schema = functools.cache(config.schema)


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def document(text: str) -> Any:
    """Return TOML as an editor's schema validator sees it: dates are strings."""
    return msgspec.to_builtins(tomli.loads(text), builtin_types=(datetime.time,))


def keys_of(table: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (key path, schema) of each key, tables after their own row."""
    tables = schema()["$defs"]
    for name, key in table["properties"].items():
        yield path + name, key
        nested = (key.get("items", {}), key.get("additionalProperties", {}))
        for option in (key, *nested, *key.get("anyOf", ())):
            if "$ref" in option:
                yield from keys_of(tables[option["$ref"].rsplit("/", 1)[1]], f"{path}{name}.")


@functools.cache
def all_keys() -> dict[str, dict[str, Any]]:
    return dict(keys_of(schema()["$defs"]["ConfigFile"]))


def row_of(path: str, key: dict[str, Any]) -> str:
    """Return a key's row of the page's tables."""
    default = "" if key.get("default") is None else f"`{shown(key['default'])}`"
    name = path.rsplit(".", 1)[-1]
    return f"| `{name}` | {type_of(key)} | {default} | {key['description']} |"


def shown(value: Any) -> str:
    return "{}" if value == {} else msgspec.json.encode(value).decode().replace(",", ", ")


def type_of(key: dict[str, Any]) -> str:
    """Return the words for a key's type."""
    if "anyOf" in key:
        return " or ".join(type_of(each) for each in key["anyOf"] if each != {"type": "null"})
    if "enum" in key:
        return ", ".join(f'`"{value}"`' for value in key["enum"])
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    words |= {"object": "table", "number": "number"}
    if key.get("format") == "date":
        return "date"
    if key.get("type") == "array":
        return f"list of {type_of(key['items'])}"
    return words[key["type"]]


def test_the_reference_example_is_valid() -> None:
    """What the documentation shows as complete completes in an editor without a complaint."""
    assert list(validator().iter_errors(document(FULL.read_text()))) == []


def test_the_reference_example_is_accepted() -> None:
    """Every key of the reference is known, typed and acted on."""
    loaded = config.load(FULL)

    assert [guard.metric for guard in loaded.gate.guards] == ["cost_per_success_usd"]


def test_the_reference_example_shows_the_defaults() -> None:
    """Where the reference says that it shows a default, it does."""
    text = FULL.read_text().replace("[[gate.guards]]", "[[gate.unused]]")
    shown_tables = tomli.loads(text)
    examples = {"python", "tools", "unused", "quarantine", "name", "tasks"}
    plain = config.parse(
        b'[[suite]]\nname="a"\ntasks=["a"]\n[agent]\npython="a:b"\n[faults]\n',
        name="plain",
        root=Path("/repo"),
    )

    found = {
        "suite": plain.suites[0],
        **{table: getattr(plain, table) for table in ("run", "faults", "gate", "baseline")},
        **{table: getattr(plain, table) for table in ("gateway", "judge", "trace", "report")},
    }
    for table, value in found.items():
        keys = shown_tables[table][0] if table == "suite" else shown_tables[table]
        for key in keys.keys() - examples - {"seed", "model"}:
            assert as_toml(getattr(value, key)) == keys[key], f"{table}.{key}"


def as_toml(value: Any) -> Any:
    """Return a value of the configuration as a TOML document holds it."""
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(
    "mistake",
    [
        ('name = "refund-desk"', 'name = "Refund Desk"'),
        ("trials = 8", 'trials = "8"'),
        ("trials = 8", "trails = 8"),
        ("alpha = 0.05", "alpha = 1"),
        ('mode = "blocking"', 'mode = "blokcing"'),
        ('["pass^1", "pass^8"]', '["pass@1"]'),
        ("jobs = 0", "jobs = -1"),
        ('python = "refund_desk.agent:run"', 'python = "a:b"\ncommand = ["x"]'),
        ('python = "refund_desk.agent:run"', ""),
        ('owner = "payments"', ""),
        ("rate_permille = 150", "rate_permille = 1500"),
        ('"mcp__postgres__query" = 300', '"mcp__postgres__query" = 3000'),
        ("[trace]", "[traec]"),
    ],
)
def test_mistakes_are_seen_by_an_editor(mistake: tuple[str, str]) -> None:
    """Types, bounds, names and choices are in the schema, not only in the reader."""
    before, after = mistake
    text = FULL.read_text()
    assert before in text

    assert list(validator().iter_errors(document(text.replace(before, after, 1))))


def test_each_key_is_described() -> None:
    """Completion without an explanation sends people to the source."""
    assert [path for path, key in all_keys().items() if not key.get("description")] == []


def test_what_is_refused_says_so_in_the_schema() -> None:
    """An editor shows what this version does not support before it is tried."""
    keys = all_keys()

    for row in NOT_YET:
        assert "Not in this version" in keys[".".join(row.path)]["description"]


@pytest.mark.parametrize("path", sorted(all_keys()))
def test_each_key_is_in_the_page_as_it_is(path: str) -> None:
    """Name, type, default and meaning in docs/configuration.md are those of the program."""
    key = all_keys()[path]
    if "properties" in key or path in _TABLES:
        assert f"`[{path}]`" in PAGE.read_text() or f"`[[{path}]]`" in PAGE.read_text()
    else:
        assert row_of(path, key) in section_of(path)


_TABLES = {
    *("suite", "agent", "run", "faults", "faults.model", "gate", "gate.guards", "gate.quarantine"),
    *("baseline", "gateway", "prices", "judge", "trace", "report"),
}


def section_of(path: str) -> str:
    """Return the part of the page under the heading of a key's table."""
    table = path.rsplit(".", 1)[0]
    for part in PAGE.read_text().split("\n## ")[1:]:
        heading = part.split("\n", 1)[0]
        if heading.strip("`[]") == table:
            return part
    raise AssertionError(f"no section for {table}")
