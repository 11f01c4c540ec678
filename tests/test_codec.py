"""Digests are taken over RFC 8785 and reading is strict."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_gate.codec import (
    canonical,
    canonical_of_json,
    decode,
    digest_bytes,
    digest_of,
    encode,
    for_log,
)

_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


def test_canonical_form_sorts_keys_and_writes_numbers_as_rfc_8785():
    """The order in which keys were written and the spelling of a number leave no mark."""
    assert (
        canonical({"b": 1.0, "a": [1e21, 0.002, "é"]}) == '{"a":[1e+21,0.002,"é"],"b":1}'.encode()
    )


def test_integers_that_json_numbers_lose_become_tagged_text():
    """2**53 and 2**53 + 1 keep different digests."""
    assert canonical([2**53 - 1, 2**53, 2**53 + 1]) == (
        b'[9007199254740991,"int:9007199254740992","int:9007199254740993"]'
    )


def test_tagging_reaches_into_nested_values():
    """A large integer is tagged wherever it stands."""
    assert canonical({"a": [{"b": (-(2**60),)}]}) == b'{"a":[{"b":["int:-1152921504606846976"]}]}'


def test_booleans_stay_booleans():
    """True is not the integer 1."""
    assert canonical([True, False, None]) == b"[true,false,null]"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {1, 2}, b"x"])
def test_what_json_does_not_have_is_refused(value):
    """A digest is never taken over something that could not be written."""
    with pytest.raises(ValueError, match="not a JSON value"):
        canonical(value)


def test_digest_is_prefixed_sha256():
    """Known SHA-256 of the two bytes of an empty object."""
    expected = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

    assert digest_of({}) == digest_bytes(b"{}") == expected


@given(_JSON)
@example({"\x7f": '\b\t\n\f\r\x1f"\\/', "a.5": "1.5e300"})
@example([1e21, 1e-7, -0.0, 5e-324, 1.0, 10.5, 2**53 - 1, 2**53, -(2**53)])
@example({"\ue000": 1, "\U00010000": 2})
@example({"é": "naïve", "z": "\uffff", "\U0001f600": "\U0001f600"})
@example([0.1, 19.99, 1e-6, 1.5e-6, 1e-5, 1e16, 123456789012345.6, 1e20, 0.30000000000000004])
@example({"a": -0.0, "b": [2.0, -2.5, 1e22]})
@example(1.0)
def test_the_short_way_to_the_canonical_form_leads_to_the_same_bytes(value):
    """Whatever JSON holds: odd keys, odd numbers and escapes take the long way."""
    assert canonical_of_json(value) == canonical(value)


@pytest.mark.parametrize("value", ["\ud800", {"a": "\udfff"}])
def test_the_short_way_refuses_what_the_long_one_refuses(value):
    """A lone surrogate has no UTF-8 form."""
    with pytest.raises(ValueError, match="not a JSON value"):
        canonical_of_json(value)


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b"[1,]", b'"\xff"', b"{} x"])
def test_reading_is_strict(text):
    """NaN, invalid UTF-8, torn and trailing text are errors."""
    with pytest.raises(ValueError, match=r".+"):
        decode(text)


def test_deep_nesting_is_an_error_not_a_crash():
    """A hostile file cannot exhaust the stack."""
    with pytest.raises(ValueError, match=r".+"):
        decode(b"[" * 100_000)


def test_not_a_number_is_written_as_null():
    """Files hold null for NaN and infinities."""
    assert encode([float("nan"), float("inf"), 1.5]) == b"[null,null,1.5]"


def test_nesting_is_bounded_and_brackets_in_texts_do_not_count() -> None:
    """What walks through a value calls itself at every level."""
    assert decode("[" * 300 + "]" * 300)
    assert decode('["' + "[{" * 1000 + '"]') == ["[{" * 1000]
    assert len(decode("[" + ",".join(["[]"] * 5000) + "]")) == 5000
    with pytest.raises(ValueError, match="nested deeper than 300 levels"):
        decode("[" * 301 + "]" * 301)


def test_json_for_a_log_says_the_same_in_ascii() -> None:
    """Nothing in it reorders a line, controls a terminal or is read as a workflow command."""
    value = {"\u202e": "a\u202eb \U0001f600 \x7f\x1b ##[error]x ##vso[task] # ## é\n::error::"}

    shown = for_log(encode(value))

    assert decode(shown) == value
    assert shown.isascii()
    assert not any(mark in shown for mark in (b"##[", b"##vso", b"\x7f", b"\x1b", b"\n"))
    assert b"\\u202e" in shown
