"""Any value in any field of any file ends in words of bounded length, or is fine; never in a crash.

One in so many puts hostile values somewhere into every kind of file; a few of them in each field
of each are slow tests as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.places import Place

VALUES = {
    "4,200 digits": "9" * 4200,
    "5,000 digits": "9" * 5000,
    "400 digits": "-" + "9" * 400,
    "beyond counts": str(2**53),
    "huge": "1.7e308",
    "negative": "-1",
    "half": "0.5",
    "zero": "0",
    "long": json.dumps("x" * 5000),
    "nasty": json.dumps("::error::\u202e\n##[error]x\x1b"),
    "surrogate": '"\\ud800"',
    "nested": "[" * 200 + "]" * 200,
    "deep": "[" * 900 + "]" * 900,
    "null": "null",
    "list": "[]",
    "object": "{}",
    "true": "true",
}
BAR = "baselines/example.json"
# File, its line, and the commands that read it in the place of FILE.
FILES = {
    "verdict": (".ci-gate/example.verdict.json", None, [["report", "FILE"]]),
    "baseline": (BAR, None, [["compare", "FILE", "RUN"], ["baseline", "show", "FILE"]]),
    "header": ("RUN", 0, [["compare", BAR, "FILE"]]),
    "trial": ("RUN", 1, [["compare", BAR, "FILE"], ["trace", "verify", "--run", "FILE"]]),
    "footer": ("RUN", -1, [["compare", BAR, "FILE"]]),
    "call": (
        "TRACE",
        1,
        [
            ["trace", "show", "FILE"],
            ["trace", "verify", "FILE"],
            ["trace", "diff", "FILE", "TRACE", "--json"],
            ["trace", "impact", "FILE", "--call", "0"],
        ],
    ),
    "end": ("TRACE", -1, [["trace", "verify", "FILE"]]),
}
RUN, TRACE, MARK = ".ci-gate/example.run.jsonl", ".ci-gate/traces/sum/0.jsonl", "@@HOSTILE@@"
AGENT = """

def told(task, env):
    steps = [{"name": "look", "input": {"a": 1}, "output": {"b": [1]}, "turn": 1}]
    known = {"turns": 3, "tokens": 9, "cost_usd": 0.25, "measures": {"own": 2.5}}
    return {"answer": run(task, env), "steps": steps, **known}
"""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every field; of a list, of its first item."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def with_value(value: Any, path: tuple[Any, ...], raw: str) -> str:
    """Return the JSON of a value in which a field is this text."""
    if not path:
        return raw
    whole = json.loads(json.dumps(value))
    item = whole
    for key in path[:-1]:
        item = item[key]
    item[path[-1]] = MARK
    return json.dumps(whole).replace(json.dumps(MARK), raw)


@pytest.fixture
def bench(gated: Place) -> Place:
    """Return a place with one file of each kind."""
    agent = gated.path / "evals/toy_agent.py"
    agent.write_text(agent.read_text() + AGENT)
    gated.replace("ci-gate.toml", "toy_agent:run", "toy_agent:told")
    assert gated.gate("check", "--quiet", CI_GATE_BASE_REF="refs/heads/main").status in (0, 3)
    return gated


def outcome(bench: Place, arguments: list[str]) -> str | None:
    """Return what is wrong with the end of a command, None where nothing is."""
    real = {"FILE": "hostile.json", "RUN": RUN, "TRACE": TRACE}
    ended = bench.gate(*(real.get(one, one) for one in arguments))
    lines = (ended.out + ended.err).splitlines()
    if ended.status not in (0, 1, 2, 3):
        return f"status {ended.status}: {ended.err[:300]}"
    if any("##[" in line or line.lstrip().startswith("::") for line in lines):
        return "a workflow command"
    if any(char in ended.out + ended.err for char in "\u202e\x1b"):
        return "a control character"
    # A report of a refused field would be an accident: words alone are short.
    return None if ended.status != 2 or len(ended.err) < 2200 else f"{len(ended.err)} characters"


def wrong_ends(bench: Place, kind: str, every: int) -> list[str]:
    """Return every wrong end of putting each value into each field, or into one in so many."""
    name, number, commands = FILES[kind]
    text = (bench.path / {"RUN": RUN, "TRACE": TRACE}.get(name, name)).read_text()
    lines = [text] if number is None else text.splitlines()
    at = number or 0
    value = json.loads(lines[at])
    found, count = [], 0
    for path in places(value):
        for called, raw in VALUES.items():
            count += 1
            if count % every:
                continue
            rest = [*lines]
            rest[at] = with_value(value, path, raw)
            # An altered trial does not have the digest of the footer, so that goes.
            kept = rest[:-1] if name == "RUN" and number != -1 else rest
            (bench.path / "hostile.json").write_text("\n".join(kept) + "\n")
            for command in commands:
                what = outcome(bench, command)
                found += [] if what is None else [f"{kind} {path} {called}: {what}"]
    return found


@pytest.mark.slow
def test_a_hostile_value_ends_in_words(bench: Place) -> None:
    """Some values in some fields of every kind of file."""
    found = [wrong for kind in FILES for wrong in wrong_ends(bench, kind, every=61)]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_hostile_values_in_every_field_end_in_words(bench: Place, kind: str) -> None:
    """Each field has three of the values or more, and each value stands in many fields."""
    assert len(VALUES) >= 15
    assert wrong_ends(bench, kind, every=5) == []
