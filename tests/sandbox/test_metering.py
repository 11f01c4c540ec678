"""Tokens and money of the calls of one trial."""

import pytest

from ci_gate.model.trial import Step
from ci_gate.model.usage import Spent
from ci_gate.sandbox.metering import Meter


def _answer(tokens, **fields):
    return {"usage": {"input_tokens": tokens, "output_tokens": 0}, **fields}


def _per_token(models, usage):
    return usage.input / 1000 if "model-1" in models else None


def test_calls_to_models_are_added_up():
    """Each call's cost is returned as well; other calls cost nothing that is known."""
    meter = Meter(_per_token)

    assert meter.measure("llm", "model-1", _answer(10)) == Spent(10, 0.01)
    assert meter.measure("llm", "alias", _answer(5, model="model-1")) == Spent(5, 0.005)
    assert meter.measure("tool", "t", _answer(7)) == Spent(None, None)
    assert meter.spent == (15, pytest.approx(0.015))


def test_an_unknown_cost_makes_the_sum_unknown():
    """A part of a bill is no bill; the tokens are known all the same."""
    meter = Meter(_per_token)
    meter.measure("llm", "model-1", _answer(10))
    meter.measure("llm", "other", _answer(5))

    assert meter.spent == (15, None)


def test_a_call_without_usage_makes_both_unknown():
    """So does no call at all."""
    assert Meter(_per_token).spent == (None, None)
    meter = Meter(_per_token)
    meter.measure("llm", "model-1", "text")

    assert meter.spent == (None, None)


def test_reported_steps_are_measured_apart():
    """Of an agent that makes its calls by itself."""
    meter = Meter(_per_token)

    assert meter.measured([Step(kind="llm", name="model-1", output=_answer(3))]) == (3, 0.003)
    assert meter.spent == (None, None)


def test_what_is_no_amount_is_unknown():
    """Neither a price beyond every bill nor more tokens than anybody believes is added up."""
    meter = Meter(lambda models, usage: 1.7e308)

    assert meter.measure("llm", "model-1", _answer(10)) == Spent(10, None)
    assert meter.measure("llm", "model-1", _answer(10**300)) == Spent(None, None)


def test_a_sum_that_is_no_amount_is_unknown():
    """Calls that may each be true can together be more than a trial may say."""
    meter = Meter(lambda models, usage: 6e8)
    for _ in range(2):
        meter.measure("llm", "model-1", _answer(6 * 10**11))

    assert meter.spent == (None, None)
