"""Draws: published words, independence of position, exact tables."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.stats.draws import AliasTable, Counter, mix, stream_of


def test_words_are_splitmix64() -> None:
    """A stream that starts at 1234567 gives the published outputs of SplitMix64 for that seed.

    Vector: Rosetta Code, "Pseudo-random numbers/Splitmix64".
    """
    words = Counter.at(0, 5).words(1234567)
    assert words.tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@given(st.integers(0, 2**64 - 1), st.integers(0, 1000), st.integers(1, 50))
def test_words_depend_on_their_position_alone(stream: int, first: int, count: int) -> None:
    """Continuing a stream gives what drawing it at once gives."""
    together = Counter.at(0, first + count).words(stream)
    assert np.array_equal(together[first:], Counter.at(first, count).words(stream))


@given(st.integers(0, 2**64 - 1))
def test_scalar_and_array_mix_agree(word: int) -> None:
    """The scalar function is the first word of the stream one increment before."""
    stream = (word - 0x9E3779B97F4A7C15) % 2**64
    assert Counter.at(0, 1).words(stream).tolist() == [mix(word)]


def test_streams_differ() -> None:
    """Streams of one seed, and equal streams of two seeds, start apart."""
    starts = {stream_of(seed, index) for seed in range(20) for index in range(200)}
    assert len(starts) == 20 * 200


@given(st.lists(st.integers(0, 10**30), min_size=1, max_size=40).filter(any))
def test_alias_table_keeps_the_weights(weights: list[int]) -> None:
    """A table sends to each outcome its weight's share of all words, but for rounding."""
    table = AliasTable.of_weights(weights)
    height = 1 << (64 - table.bits)
    shares = [0] * len(weights)
    for column, threshold in enumerate(table.thresholds.tolist()):
        shares[table.outcomes[2 * column]] += threshold
        shares[table.outcomes[2 * column + 1]] += height - threshold
    assert sum(shares) == 1 << 64
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - Fraction(weight << 64, sum(weights))) <= len(weights)


def test_cells_follow_the_table() -> None:
    """High bits choose the column, low bits the outcome: checked word by word."""
    table = AliasTable.of_weights([1, 5, 2])
    words = Counter.at(0, 2000).words(3)
    outcomes = table.outcomes.take(table.cells(words))
    height = 1 << (64 - table.bits)
    for word, outcome in zip(words.tolist(), outcomes.tolist(), strict=True):
        column, low = divmod(word, height)
        second = low >= int(table.thresholds[column])
        assert outcome == table.outcomes[2 * column + second]
    assert np.bincount(outcomes) / 2000 == pytest.approx([1 / 8, 5 / 8, 2 / 8], abs=0.04)
