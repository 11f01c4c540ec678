"""``ci-gate power`` as a user types it."""

from __future__ import annotations

import json

import pytest

from tests.places import Place

ARGUMENTS = ("power", "--drop", "0.3", "--trials", "8")


def test_power_says_what_a_check_would_see(gated: Place) -> None:
    """Figures for a person on standard output; nothing is run and nothing written."""
    before = sorted(gated.path.rglob("*"))

    ended = gated.gate(*ARGUMENTS)

    assert ended.status == 0
    assert ended.err == ""
    assert ended.out.startswith("example: ")
    assert "nothing (false alarm)" in ended.out
    assert sorted(gated.path.rglob("*")) == before


@pytest.mark.slow
def test_power_prints_the_same_json_again(gated: Place) -> None:
    """The same baseline gives the same bytes, with every figure's error and repeats."""
    first, again = gated.gate(*ARGUMENTS, "--json", "-"), gated.gate(*ARGUMENTS, "--json", "-")

    assert first.out == again.out
    found = json.loads(first.out)
    assert found["schema"] == "ci-gate/power@1"
    assert found["check"]["cost_usd"] is None
    assert {plan["trials"] for plan in found["plans"]} == {8}
    assert all(sight["error"] > 0 and sight["repeats"] for sight in found["sights"])


@pytest.mark.slow
def test_power_writes_a_file_and_still_shows(gated: Place) -> None:
    """``--json FILE`` is written beside what is shown."""
    ended = gated.gate(*ARGUMENTS, "--json", "out/power.json")

    assert "is seen with" in ended.out
    assert json.loads((gated.path / "out" / "power.json").read_text())["suite"] == "example"


def test_without_a_baseline_power_says_how_to_make_one(repository: Place) -> None:
    """There is nothing to foresee from: exit 2 with the command that helps."""
    ended = repository.gate("power")

    assert ended.status == 2
    assert ended.out == ""
    assert "no baseline" in ended.err
    assert "ci-gate baseline update" in ended.err


@pytest.mark.slow
def test_a_baseline_file_is_enough(gated: Place, place: Place) -> None:
    """A named file needs no configuration."""
    source = gated.path / "baselines" / "example.json"
    elsewhere = Place(place.path.parent)
    (elsewhere.path / "bar.json").write_bytes(source.read_bytes())

    ended = elsewhere.gate(*ARGUMENTS, "--baseline", "bar.json", "--json", "-")

    assert json.loads(ended.out)["jobs"] == 1


def test_an_impossible_question_names_all_that_is_wrong(gated: Place) -> None:
    """Every mistake is told at once."""
    ended = gated.gate("power", "--drop", "5", "--power", "2", "--trials", "3")

    assert ended.status == 2
    for told in ("a drop lies between 0 and 1", "power lies between", "pass^8 needs"):
        assert told in ended.err


def test_a_deterministic_suite_is_told_that_chance_has_no_part(gated: Place) -> None:
    """Its flips are seen for certain."""
    gated.replace("ci-gate.toml", 'name = "example"', 'name = "example"\ndeterministic = true')

    ended = gated.gate("power", "--baseline", "baselines/example.json")

    assert ended.status == 2
    assert "deterministic" in ended.err
