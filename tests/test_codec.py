"""Digests are taken over RFC 8785 and reading is strict."""

import pytest

from ci_gate.codec import canonical, decode, digest_bytes, digest_of, encode


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
