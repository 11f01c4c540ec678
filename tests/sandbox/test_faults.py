"""The texts of faults, to the byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.sandbox.faults import DELAY_S, ERROR_KINDS, FAULT_KINDS, Place, rendered

MARK = '{"__chaos_truncated'


def place_of(observation: str, *, step: int = 1, tool: str = "query") -> Place:
    return Place(0x20261030, step, tool, observation)


@pytest.mark.parametrize(
    ("kind", "step", "expected"),
    [
        (
            "rate_limit",
            1,
            (
                "[CHAOS_FAULT_INJECTED seed=0x20261030 step=1]:"
                " HTTP 429 Too Many Requests (Retry-After: 3s)"
            ),
        ),
        (
            "timeout",
            9,
            (
                "[CHAOS_FAULT_INJECTED seed=0x20261030 step=9]:"
                " TOOL_TIMEOUT after 15000ms on `mcp__postgres__query`"
            ),
        ),
        (
            "posix",
            4,
            (
                "[CHAOS_FAULT_INJECTED seed=0x20261030 step=4 errno=ENOSPC]:"
                " No space left on device (os error 28) while writing staging buffer"
            ),
        ),
    ],
)
def test_published_texts_are_kept_to_the_byte(kind: str, step: int, expected: str) -> None:
    """The texts of the published kinds are what other programs write."""
    place = place_of("anything", step=step, tool="mcp__postgres__query")
    assert rendered(kind, place) == expected


def test_the_seed_is_upper_case_without_padding() -> None:
    """The label shows the seed in hexadecimal, capitals after 0x and no leading zeros."""
    assert Place(0xABC, 2, "t", "").label() == "[CHAOS_FAULT_INJECTED seed=0xABC step=2]: "


@pytest.mark.parametrize(
    ("observation", "kept"),
    [
        ('{"rows":[1,2,3],"ok":true}', '{"rows":[1'),
        ("", ""),
        ("a", "a"),
        ("abcde", "ab"),
        ("é", ""),
        ("aéb", "a"),
        ("日本語", "日"),
        ("日本", ""),
        ("\ud800abcd", ""),
    ],
)
def test_truncation_keeps_two_fifths_of_the_bytes(observation: str, kept: str) -> None:
    """Two fifths of the bytes stay, at least one, then back to a character boundary."""
    assert rendered("truncated", place_of(observation)) == kept + MARK


@given(st.text(max_size=60))
def test_truncation_never_splits_a_character(observation: str) -> None:
    """What stays is a prefix of the observation of at most max(1, two fifths) of its bytes."""
    kept = rendered("truncated", place_of(observation)).removesuffix(MARK)
    size = len(observation.encode())
    assert observation.startswith(kept)
    assert len(kept.encode()) <= max(size * 2 // 5, 1)


def test_malformed_answers_keep_their_shape_and_lose_their_types() -> None:
    """Numbers and truth values become texts, texts become null, tables and lists stay."""
    observation = '{"total":12.5,"paid":true,"name":"Ada","lines":[1,null]}'
    assert json.loads(rendered("malformed", place_of(observation))) == {
        "total": "12.5",
        "paid": "true",
        "name": None,
        "lines": ["1", "null"],
    }


@pytest.mark.parametrize("observation", ["plain text", "", "[" * 100_000, "[" * 900 + "]" * 900])
def test_malformed_text_that_is_not_json_becomes_null(observation: str) -> None:
    """An observation that is no JSON, or nested beyond reason, becomes JSON or null."""
    assert isinstance(json.loads(rendered("malformed", place_of(observation))), list | None)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("latency", "rows"),
        ("empty", ""),
        ("duplicate", "rows"),
        ("stale", "rows"),
        (
            "http_500",
            "[CHAOS_FAULT_INJECTED seed=0x20261030 step=1]: HTTP 500 Internal Server Error",
        ),
        ("http_503", "[CHAOS_FAULT_INJECTED seed=0x20261030 step=1]: HTTP 503 Service Unavailable"),
        ("http_403", "[CHAOS_FAULT_INJECTED seed=0x20261030 step=1]: HTTP 403 Forbidden"),
        (
            "eacces",
            (
                "[CHAOS_FAULT_INJECTED seed=0x20261030 step=1 errno=EACCES]:"
                " Permission denied (os error 13) while writing staging buffer"
            ),
        ),
    ],
)
def test_further_kinds(kind: str, expected: str) -> None:
    """The kinds beyond the published ones have fixed texts too."""
    assert rendered(kind, place_of("rows")) == expected


def test_error_kinds_carry_the_mark_and_the_others_look_like_answers() -> None:
    """Evidence of an injected error is in its text; a silent fault is not announced."""
    marked = {
        kind
        for kind in FAULT_KINDS
        if "CHAOS_FAULT_INJECTED" in rendered(kind, place_of('{"rows":[1,2,3]}'))
    }
    assert marked == ERROR_KINDS
    assert DELAY_S.keys() <= set(FAULT_KINDS)
