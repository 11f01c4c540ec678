"""The interactive examples of the pages give what they show."""

import doctest

import pytest

from tests.docs.pages import ROOT


# One of the first page's examples simulates the checks to come.
@pytest.mark.parametrize(
    "name", [pytest.param("python-api.md", marks=pytest.mark.slow), "tasks.md"]
)
def test_examples_give_what_they_show(name: str):
    """Every line after >>> is run, and its output is the one on the page."""
    result = doctest.testfile(str(ROOT / "docs" / name), module_relative=False)

    assert (result.failed, result.attempted > 0) == (0, True)
