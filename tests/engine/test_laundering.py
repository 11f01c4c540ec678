"""Errors that came as answers are found; answers that speak of errors are left alone."""

from __future__ import annotations

import pytest

from ci_gate import patterns
from ci_gate.engine.laundering import compiled, laundered_by, suspicions
from ci_gate.errors import ConfigError
from ci_gate.model.trial import Status, Step, Trajectory

STEP = Step(kind="tool", name="t")


@pytest.mark.parametrize(
    "answer",
    [
        "Error code: 429 - {'error': {'message': 'Rate limit reached', 'type': 'requests'}}",
        '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}',
        "openai.RateLimitError: you exceeded your current quota (insufficient_quota)",
        "litellm.InternalServerError: AnthropicException",
        "502 Bad Gateway",
        "HTTP 503",
        "API Error: Connection error.",
        "Request failed with status code 529",
        "anthropic.APIConnectionError: Connection error.",
    ],
)
def test_a_providers_error_as_the_answer_is_suspicious(answer: str) -> None:
    """What providers and their clients say in trouble is recognised."""
    assert suspicions(Trajectory(answer=answer, tokens=5)) == ("provider-error",)


@pytest.mark.parametrize(
    "answer",
    [
        "The refund of order 4290 was made.",
        "Your order number is 503-12, it ships on Monday.",
        "I could not reach the shop, please try again later.",
        "There was an error in your invoice, it is corrected now.",
        "The API returns JSON; errors are listed in the manual.",
        "HTTP 429 means that there were too many requests. " + "This is a long essay. " * 200,
    ],
)
def test_ordinary_answers_are_not(answer: str) -> None:
    """Numbers, apologies and essays about errors are answers."""
    assert suspicions(Trajectory(answer=answer, tokens=5)) == ()


@pytest.mark.parametrize(
    ("trajectory", "expected"),
    [
        (Trajectory(answer="x", tokens=0), ("zero-tokens",)),
        (Trajectory(answer="x"), ()),
        (Trajectory(tokens=0, steps=(STEP,)), ()),
        (Trajectory(), ("empty",)),
        (Trajectory(answer=""), ("empty",)),
        (Trajectory(steps=(STEP,)), ()),
        (Trajectory(answer="HTTP 500", tokens=0), ("zero-tokens", "provider-error")),
        (Trajectory(status=Status.PASSED), ()),
        (Trajectory(status=Status.FAILED, answer="HTTP 500"), ()),
    ],
)
def test_zero_tokens_and_empty_trajectories(
    trajectory: Trajectory, expected: tuple[str, ...]
) -> None:
    """Tokens must be known to be zero, nothing at all is empty, a given status is neither."""
    assert suspicions(trajectory) == expected


def test_a_pattern_decides_unless_a_fault_was_injected() -> None:
    """The configured pattern excuses an answer, never in a trial that met an injected fault."""
    patterns = compiled([r"quota \w+", "down"])
    assert laundered_by(Trajectory(answer="we are down"), patterns) == "down"
    assert laundered_by(Trajectory(answer="all fine"), patterns) is None
    faulted = Step(kind="tool", name="t", fault="rate_limit", is_error=True)
    assert laundered_by(Trajectory(answer="we are down", steps=(faulted,)), patterns) is None


def test_a_broken_pattern_is_refused_by_name() -> None:
    """A regular expression that is none is an error of the configuration."""
    with pytest.raises(ConfigError, match=r"'\[' is not a regular expression"):
        compiled(["["])


def test_an_answer_that_no_pattern_gets_through_is_not_excused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search without end is given up, and the answer is judged as any other."""
    monkeypatch.setattr(patterns, "LONGEST_S", 0.2)
    answer = Trajectory(answer="a" * 40 + "!")
    assert laundered_by(answer, compiled([r"^(\w+\s?)*$", "!"])) == "!"
    assert laundered_by(answer, compiled([r"^(\w+\s?)*$"])) is None
