"""The example's judged suite, against a judge on loopback that always says the same of a letter."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples import tone
from tests.judges import serving
from tests.places import Ended, Place

EXAMPLE = Path(__file__).parents[2] / "examples" / "refund_desk"
REGRESSED = {"REFUND_DESK_VARIANT": "regressed"}


class Tone:
    """The judged suite in a folder of its own."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def gate(self, *arguments: str, **variables: str) -> Ended:
        """Run ci-gate with the example's second configuration."""
        return self.place.gate(*arguments, "--config", "judged.toml", "--quiet", **variables)

    def calibrate(self) -> dict[str, Any]:
        """Hold the judge against the example's labels and return the calibration."""
        ended = self.gate("judge", "calibrate", "judged/labels.jsonl", "--json", "found.json")
        assert ended.status == 0, ended.err
        found: dict[str, Any] = json.loads((self.place.path / "found.json").read_text())
        return found

    def verdict(self) -> dict[str, Any]:
        """Return what the last check found."""
        path = self.place.path / ".ci-gate/refund-desk-tone.verdict.json"
        found: dict[str, Any] = json.loads(path.read_text())
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Tone]:
    """Return the example with the address of a judge that is running."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    place = Place(tmp_path)
    with serving(tone.judged) as server:
        place.replace("judged.toml", "http://127.0.0.1:11434/v1", server.url)
        yield Tone(place)


def test_without_a_calibration_the_suite_is_refused(desk: Tone) -> None:
    """Nothing runs, and what to do is said."""
    refused = desk.gate("check")
    assert refused.status == 2
    assert "the judge 'tone' cannot gate: there is no calibration" in refused.err
    assert "ci-gate judge calibrate LABELS" in refused.err
    assert not (desk.place.path / ".ci-gate").exists()


@pytest.mark.slow
def test_the_labels_of_the_example_say_how_far_the_judge_is_right(desk: Tone) -> None:
    """Of 32 letters it misses one apology in other words and lets one polite insult pass."""
    found = desk.calibrate()
    assert found["counts"] == {
        "both_pass": 14, "missed": 1, "leaked": 1, "both_fail": 16, "unsound": 0,
    }  # fmt: skip
    assert found["kappa"]["value"] == pytest.approx((30 / 32 - 514 / 1024) / (1 - 514 / 1024))


@pytest.mark.slow
def test_a_curt_desk_is_red_once_the_judge_is_calibrated(desk: Tone) -> None:
    """The deployed tone passes its own bar; the one that saved its politeness does not."""
    desk.calibrate()
    assert desk.gate("baseline", "update").status == 0
    assert desk.gate("check").status == 0
    assert desk.gate("check", **REGRESSED).status == 1
    found = desk.verdict()
    (judge,) = found["judges"]
    assert judge["baseline"]["passed"] >= 28
    assert (judge["candidate"]["passed"], judge["candidate"]["asked"]) == (0, 32)
