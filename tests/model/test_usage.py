"""Tokens as providers report them."""

import pytest

from ci_gate.model.usage import Usage, usage_of


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 10, "output_tokens": 2}, Usage(10, 2, 12)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, Usage(10, 2, 12)),
        ({"total_tokens": 12}, Usage(None, None, 12)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
            Usage(10, 2, 12, cache_read=4),
        ),
        (
            {
                "input_tokens": 10,
                "output_tokens": 2,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 30,
            },
            Usage(140, 2, 142, cache_read=100, cache_write=30),
        ),
    ],
    ids=["anthropic", "openai", "total", "cached within", "cached beside"],
)
def test_usage_is_understood(usage, expected):
    """The cached tokens are part of the input, whoever counts them where."""
    assert usage_of({"usage": usage}) == expected


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        {},
        {"usage": None},
        {"usage": {"input_tokens": 10}},
        {"usage": {"input_tokens": -1, "output_tokens": 2}},
        {"usage": {"total_tokens": True}},
        {"usage": {"input_tokens": 10, "output_tokens": 2.5}},
        {"usage": {"total_tokens": 2**60}},
    ],
)
def test_what_is_no_usage_is_unknown(answer):
    """Never 0."""
    assert usage_of(answer) is None
