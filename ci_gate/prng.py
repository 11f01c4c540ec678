"""Seeds and the one generator behind every seeded choice; integers only, the same everywhere.

``derive_seed`` and ``Xorshift64Star`` are published algorithms that other programs repeat bit by
bit, so nothing here may change. It knows no tasks, no faults and no clock.
"""

from __future__ import annotations

import hashlib

__all__ = ["MASK64", "Xorshift64Star", "derive_seed", "format_seed", "parse_seed", "task_seed"]

MASK64 = 0xFFFFFFFFFFFFFFFF
_GOLDEN_64 = 0x9E3779B97F4A7C15
_GOLDEN_32 = 0x9E3779B9
_STAR = 0x2545F4914F6CDD1D


def derive_seed(base: int, trial: int) -> int:
    """Return the seed of a trial: ``base ^ ((trial + 1) * 0x9E3779B9)`` on 64 bits.

    Parameters
    ----------
    base : int
        The task's base seed, 0 <= base < 2**64.
    trial : int
        Seed index, 0 for the first.

    Raises
    ------
    ValueError
        A negative trial.
    """
    if trial < 0:
        raise ValueError(f"trial must be 0 or more, found {trial}")
    return (base ^ ((trial + 1) * _GOLDEN_32)) & MASK64


def task_seed(root_seed: int, task_id: str) -> int:
    """Return the base seed of a task that sets none of its own.

    The first 8 bytes, big-endian, of SHA-256 over the suite's seed (8 bytes, big-endian) followed
    by the task id in UTF-8: tasks do not share fault schedules, and an id fixes its seed.
    """
    message = (root_seed & MASK64).to_bytes(8, "big") + task_id.encode("utf-8")
    return int.from_bytes(hashlib.sha256(message).digest()[:8], "big")


def parse_seed(text: str | int) -> int:
    """Return a seed from a hexadecimal string (``0x`` optional) or an integer.

    Raises
    ------
    ValueError
        Not hexadecimal, negative, or beyond 64 bits.
    """
    value = text if isinstance(text, int) else _from_hexadecimal(text)
    if isinstance(text, bool) or not 0 <= value <= MASK64:
        raise ValueError("a seed is a whole number from 0 to 0xFFFFFFFFFFFFFFFF")
    return value


def _from_hexadecimal(text: str) -> int:
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    if not digits or not all(char in "0123456789abcdefABCDEF" for char in digits):
        raise ValueError(f"a seed is hexadecimal such as 0x20261030, found {text!r}")
    return int(digits, 16)


def format_seed(seed: int) -> str:
    """Return the seed as files hold it: ``0x`` and 16 hexadecimal digits."""
    return f"0x{seed & MASK64:016x}"


class Xorshift64Star:
    """The xorshift64* generator.

    Parameters
    ----------
    seed : int
        Start state on 64 bits; 0, which the generator cannot leave, becomes 0x9E3779B97F4A7C15.

    References
    ----------
    Vigna, S. (2016). An experimental exploration of Marsaglia's xorshift generators, scrambled.
    ACM Transactions on Mathematical Software 42(4).
    """

    __slots__ = ("_state", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = (seed & MASK64) or _GOLDEN_64
        self._state = self.seed

    def next(self) -> int:
        """Return the next output, 0 <= x < 2**64."""
        state = self._state
        state ^= state >> 12
        state = (state ^ (state << 25)) & MASK64
        state ^= state >> 27
        self._state = state
        return (state * _STAR) & MASK64

    def below(self, bound: int) -> int:
        """Return the next output modulo ``bound``, as the published choice does."""
        return self.next() % bound
