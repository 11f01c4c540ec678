"""What a worker sends is bounded by the memory it would take, not by its length."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from ci_gate.agents.wire import Incoming, weight_of
from tests.speeds import slow

COUNT = 5_000


@pytest.mark.parametrize(
    "item",
    [
        "1",
        "1000",
        "1.5",
        "[]",
        "[1]",
        "{}",
        '{"":1}',
        '{"a":[]}',
        '"ab"',
        '"中"',
        r'"\\"',
        r'"\n"',
        '[{"a":[{}]}]',
        *slow("[" * 20 + "]" * 20),
    ],
)
def test_values_never_take_more_than_their_weight(item: str) -> None:
    """Whatever a line repeats to unfold in memory, its weight is at least what is held."""
    line = ('{"op":"call","arguments":[' + ",".join([item] * COUNT) + "]}").encode()
    assert held_by(line) <= weight_of(line)


def test_a_wide_text_does_not_take_more_than_its_weight() -> None:
    """One wide character makes every other of its text as wide."""
    line = '{{"op":"call","arguments":"{}"}}'.format("😀" + "a" * 100_000).encode()
    assert held_by(line) <= weight_of(line)


def held_by(line: bytes) -> int:
    """Return how many bytes the values of a line take."""
    decoder = msgspec.json.Decoder(Incoming)
    tracemalloc.start()
    try:
        message = decoder.decode(line)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message.op == "call"
    return held
