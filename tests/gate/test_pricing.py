"""What calls to models cost."""

import pytest

from ci_gate.config.shape import Price
from ci_gate.gate.pricing import Pricing
from ci_gate.model.usage import Usage

OWN = {"model-1": Price(input=2.0, output=10.0)}
USAGE = Usage(1000, 100, 1100)


@pytest.mark.parametrize("models", [("model-1",), ("alias", "model-1"), ("model-1", "other")])
def test_the_configuration_has_the_first_word(models):
    """Under the name by which the model was asked, or by which it answered."""
    assert Pricing(OWN)(models, USAGE) == pytest.approx(0.003)


def test_an_unknown_model_has_an_unknown_cost():
    """Never 0."""
    assert Pricing(OWN)(("no-such-model-4812",), USAGE) is None


def test_a_total_alone_has_no_price():
    """Input and output cost differently."""
    assert Pricing(OWN)(("model-1",), Usage(None, None, 1100)) is None


def test_published_prices_come_second():
    """Where the package that has them is installed: 2.50 and 10 USD per million for gpt-4o."""
    pytest.importorskip("genai_prices")

    assert Pricing({})(("gpt-4o",), USAGE) == pytest.approx(0.0035)
    assert Pricing({"gpt-4o": Price(input=0, output=0)})(("gpt-4o",), USAGE) == 0.0
