"""Random draws that are the same on every machine and with every version of every library.

SplitMix64 by counter: word ``i`` of a stream is a function of the stream and ``i`` alone, so draws
can be continued, and their order never matters. Outcomes come from integer alias tables, so that no
floating point enters a draw. Knows nothing of tasks or tests.

References
----------
Steele, Lea and Flood (2014), Fast splittable pseudorandom number generators. Vose (1991), A linear
algorithm for generating random numbers with a given distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST_FACTOR = 0xBF58476D1CE4E5B9
_SECOND_FACTOR = 0x94D049BB133111EB


def mix(word: int) -> int:
    """Scramble 64 bits by SplitMix64's output function.

    Parameters
    ----------
    word
        Any integer; taken modulo 2^64.

    Returns
    -------
    int
        In ``[0, 2^64)``; a bijection on 64 bits.
    """
    word &= _MASK
    word = ((word ^ (word >> 30)) * _FIRST_FACTOR) & _MASK
    word = ((word ^ (word >> 27)) * _SECOND_FACTOR) & _MASK
    return word ^ (word >> 31)


def stream_of(seed: int, index: int) -> int:
    """Start of the ``index``-th independent stream of a seed.

    Parameters
    ----------
    seed
        Any integer; taken modulo 2^64.
    index
        Number of the stream, 0 or more.

    Returns
    -------
    int
        A 64-bit state for :class:`Counter`.
    """
    return mix(mix(seed) + (index + 1) * _GOLDEN)


class Counter(msgspec.Struct, frozen=True):
    """Positions ``first`` to ``first + count`` of every stream.

    Attributes
    ----------
    steps
        Position times the generator's increment, modulo 2^64; shared by all streams.
    """

    steps: Words

    @classmethod
    def at(cls, first: int, count: int) -> Counter:
        """Take ``count`` positions from ``first`` on.

        Parameters
        ----------
        first, count
            0 or more.

        Returns
        -------
        Counter
        """
        positions = np.arange(first + 1, first + count + 1, dtype=np.uint64)
        return cls(positions * np.uint64(_GOLDEN))

    def words(self, stream: int) -> Words:
        """Uniform 64-bit words of one stream.

        Parameters
        ----------
        stream
            From :func:`stream_of`.

        Returns
        -------
        ndarray of uint64, shape (count,)
        """
        return mixed(self.steps + np.uint64(stream))


def mixed(word: Words) -> Words:
    """Scramble many words as :func:`mix` does one.

    Parameters
    ----------
    word
        Any shape; overwritten.

    Returns
    -------
    ndarray of uint64
        The same array.
    """
    shifted = word >> np.uint64(30)
    word ^= shifted
    word *= np.uint64(_FIRST_FACTOR)
    np.right_shift(word, np.uint64(27), out=shifted)
    word ^= shifted
    word *= np.uint64(_SECOND_FACTOR)
    np.right_shift(word, np.uint64(31), out=shifted)
    word ^= shifted
    return word


class AliasTable(msgspec.Struct, frozen=True):
    """A distribution over outcomes ``0 .. n - 1`` in columns of equal height.

    A word's high bits choose a column, the low bits one of the two outcomes that share it.

    Attributes
    ----------
    bits
        Log2 of the number of columns.
    thresholds
        Height of the first outcome in each column, in units of 2^-64.
    outcomes
        Shape (2 x columns,): first and second outcome of column ``j`` at ``2 j`` and ``2 j + 1``.
    """

    bits: int
    thresholds: Words
    outcomes: NDArray[np.intp]

    @classmethod
    def of_weights(cls, weights: Sequence[int]) -> AliasTable:
        """Build the table from non-negative integer weights with a positive sum.

        Parameters
        ----------
        weights
            Relative chances; each is kept to 2^-64.

        Returns
        -------
        AliasTable
        """
        bits = max(1, (len(weights) - 1).bit_length())
        columns = 1 << bits
        height = 1 << (64 - bits)
        heights = [*_quantised(weights), *([0] * (columns - len(weights)))]
        alias = _share_columns(heights, height)
        outcomes = np.empty(2 * columns, dtype=np.intp)
        outcomes[0::2] = np.minimum(np.arange(columns), len(weights) - 1)
        outcomes[1::2] = alias
        return cls(bits, np.array(heights, dtype=np.uint64), outcomes)

    def cells(self, words: Words) -> NDArray[np.intp]:
        """Choose a cell for each word.

        Parameters
        ----------
        words
            Uniform 64-bit words.

        Returns
        -------
        ndarray of intp
            Indices into ``outcomes``, or into any table that was expanded through it.
        """
        shift = np.uint64(64 - self.bits)
        columns = (words >> shift).view(np.int64)
        low = words & np.uint64((1 << (64 - self.bits)) - 1)
        second = low >= self.thresholds.take(columns)
        columns <<= 1
        columns += second
        return columns


def _quantised(weights: Sequence[int]) -> list[int]:
    """Scale weights to a sum of exactly 2^64; the heaviest takes what rounding left."""
    total = sum(weights)
    scaled = [(weight << 64) // total for weight in weights]
    scaled[scaled.index(max(scaled))] += (1 << 64) - sum(scaled)
    return scaled


def _share_columns(heights: list[int], height: int) -> list[int]:
    """Fill every column to ``height`` from the taller ones, in place; return who filled it."""
    alias = list(range(len(heights)))
    short = [j for j, h in enumerate(heights) if h < height]
    tall = [j for j, h in enumerate(heights) if h > height]
    while short:
        filled, donor = short.pop(), tall[-1]
        alias[filled] = donor
        heights[donor] -= height - heights[filled]
        if heights[donor] <= height:
            tall.pop()
        if heights[donor] < height:
            short.append(donor)
    return alias
