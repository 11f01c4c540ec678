"""Judges end to end: none gates before people were asked, and what it says is corrected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.judges import JudgeServer, Request, Said, obedient, serving
from tests.places import Ended, Place

KEY = "sk-judge-0123456789abcdef"
CONFIG = """
[[suite]]
name = "desk"
tasks = ["tasks.toml"]
trials = 8

[agent]
python = "desk:run"
isolation = "inline"

[run]
retries = 0

[gate]
curtail = false

[baseline]
repeats = 1

[judge]
base_url = "{url}"
model = "judge-1"
api_key_env = "JUDGE_KEY"
timeout_s = 5
"""
RUBRIC = """
- It names the amount "45.00".
- It says "refunded".
"""
TASKS = "".join(
    f"""
[[task]]
id = "{name}"
instruction = "Refund the teapot."
graders = [{{ type = "judge", rubric_file = "rubric.md" }}]
"""
    for name in ("lamp", "teapot")
)
AGENT = """
def run(task, env):
    return "refunded 45.00" if env.trial != 3 or task["id"] == "lamp" else "Done."
"""


class Desk(NamedTuple):
    """A suite graded by the judge of a running server."""

    place: Place
    server: JudgeServer

    def gate(self, *arguments: str, **variables: str) -> Ended:
        """Run ci-gate with the judge's key."""
        return self.place.gate(*arguments, **({"JUDGE_KEY": KEY} | variables))

    def calibrate(self, *arguments: str) -> dict[str, Any]:
        """Calibrate the judge with labels that people gave and return the calibration."""
        ended = self.gate("judge", "calibrate", "labels.jsonl", "--json", "-", *arguments)
        assert ended.status in (0, 3), ended.err
        found: dict[str, Any] = json.loads(ended.out)
        return found

    def verdict(self) -> dict[str, Any]:
        """Return the verdict that the last check kept."""
        path = self.place.path / ".ci-gate/desk.verdict.json"
        kept: dict[str, Any] = json.loads(path.read_text())
        return kept

    def written(self) -> str:
        """Return the text of every file of the place."""
        files = (path for path in self.place.path.rglob("*") if path.is_file())
        return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def label(answer: str, said: str, **more: str) -> str:
    return json.dumps({"answer": answer, "label": said, **more}) + "\n"


GOOD, BAD = "Dear Ada, we refunded 45.00.", "We are sorry."
# People pass one answer that the judge fails, and fail two that it passes.
LABELS = (
    label(GOOD, "pass", task="lamp", model="judge") * 9
    + label("The money is back.", "pass", model="other-7b")
    + label(BAD, "fail", model="other-7b") * 8
    + label("refunded 45.00, you fool" + "!" * 40, "fail", model="acme/judge-9") * 2
)


@pytest.fixture(scope="module")
def server() -> Iterator[JudgeServer]:
    """Serve the easily led judge."""
    with serving(obedient) as running:
        yield running


@pytest.fixture
def desk(place: Place, server: JudgeServer) -> Desk:
    """Return the suite in a repository, not yet calibrated."""
    return _made(place, server)


def _made(place: Place, server: JudgeServer) -> Desk:
    files = {
        "ci-gate.toml": CONFIG.replace("{url}", server.url),
        "tasks.toml": TASKS,
        "rubric.md": RUBRIC,
        "desk.py": AGENT,
        "labels.jsonl": LABELS,
        ".gitignore": "__pycache__/\n",
    }
    for name, content in files.items():
        (place.path / name).write_text(content)
    place.git("init", "--quiet", "--initial-branch=main")
    place.commit()
    return Desk(place, server)


def test_a_judge_gates_once_it_is_calibrated(desk: Desk) -> None:
    """Refused without a calibration; with one it gates, and its pass rate is corrected."""
    refused = desk.gate("check")
    assert refused.status == 2
    assert "the judge 'judge' cannot gate: there is no calibration baselines/judges/" in refused.err
    assert "ci-gate judge calibrate LABELS --judge 'lamp'" in refused.err
    assert not (desk.place.path / ".ci-gate").exists()

    found = desk.calibrate()
    assert found["counts"] == {
        "both_pass": 9, "missed": 1, "leaked": 2, "both_fail": 8, "unsound": 0,
    }  # fmt: skip
    assert found["kappa"]["value"] == pytest.approx(0.7)
    assert (found["sensitivity"]["value"], found["specificity"]["value"]) == (0.9, 0.8)
    assert (found["position"]["changed"], found["position"]["total"]) == (0, 20)
    # Of the two longest both leak; of the other 18 one is missed.
    assert found["length"]["difference"]["value"] == pytest.approx(2 / 2 - -1 / 18)
    assert (found["self_preference"]["own"], found["self_preference"]["others"]) == (11, 9)

    assert desk.gate("baseline", "update").status == 0
    checked = desk.gate("check")
    assert checked.status == 0, checked.err
    (judge,) = desk.verdict()["judges"]
    assert judge["digest"] == found["digest"]
    assert judge["tasks"] == ["lamp", "teapot"]
    for side in ("baseline", "candidate"):
        assert (judge[side]["passed"], judge[side]["asked"]) == (15, 16)
        assert judge[side]["corrected"] == pytest.approx(min(1, (15 / 16 - 0.2) / 0.7))
    report = (desk.place.path / ".ci-gate/desk.report.md").read_text()
    assert "Candidate,\xa0corrected" in report
    assert KEY not in desk.written()
    count = len(desk.server.requests)
    for task, trial, status in (("teapot", "3", 1), ("lamp", "3", 0)):
        replayed = desk.place.gate("replay", task, "--trial", trial)
        assert replayed.status == status, replayed.out + replayed.err
    assert len(desk.server.requests) == count
    assert desk.server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert "C1 is not met" in (desk.place.path / ".ci-gate/desk.run.jsonl").read_text()


@pytest.mark.slow
def test_a_judge_that_people_do_not_agree_with_cannot_gate(desk: Desk) -> None:
    """Below min_kappa, or with too few labels of a kind, the status is 3 and check refuses."""
    shown = desk.gate("judge", "calibrate", "labels.jsonl")
    assert shown.status == 0
    assert "judge-1: may gate" in shown.out
    assert "Cohen's kappa" in shown.out

    labels = desk.place.path / "labels.jsonl"
    labels.write_text(label(GOOD, "pass") * 10 + label(GOOD, "fail") * 6 + label(BAD, "fail") * 4)
    weak = desk.gate("judge", "calibrate", "labels.jsonl")
    assert weak.status == 3
    assert "its kappa is 0.400, and min_kappa is 0.6" in weak.out
    assert "its kappa is 0.400" in desk.gate("check").err

    labels.write_text(label(GOOD, "pass") * 10 + label(BAD, "fail") * 4)
    assert (
        "10 labels that pass and 4 that fail; 5 of each"
        in desk.gate("judge", "calibrate", "labels.jsonl").out
    )


def test_a_change_cannot_bring_its_own_calibration(desk: Desk) -> None:
    """In a pull request calibrations are the base's; the label lets the change's count."""
    desk.place.git("branch", "base")
    desk.calibrate()
    desk.place.commit("calibrate")
    variables = {"CI_GATE_BASE_REF": "refs/heads/base"}
    refused = desk.gate("check", **variables)
    assert refused.status == 2, refused.err
    assert "there is no calibration" in refused.err
    assert "it counts once it is on the base branch" in refused.err
    assert desk.gate("check", CI_GATE_LABELLED="1", **variables).status == 0


def test_a_pull_request_without_the_key_is_not_run(desk: Desk) -> None:
    """A fork has no secrets: nothing is asked and nothing run, and somebody else can run it."""
    desk.calibrate()
    desk.place.commit("calibrate")
    desk.place.git("branch", "base")
    count = len(desk.server.requests)
    ended = desk.gate("check", JUDGE_KEY="", CI_GATE_BASE_REF="refs/heads/base")
    assert ended.status == 3, ended.err
    assert desk.verdict()["reasons"][0]["code"] == "no-credentials"
    assert len(desk.server.requests) == count
    assert not (desk.place.path / ".ci-gate/desk.run.jsonl").exists()


@pytest.mark.slow
def test_another_model_is_another_judge(desk: Desk) -> None:
    """A model that was not calibrated cannot gate; one that was changes what is compared."""
    desk.calibrate()
    assert desk.gate("baseline", "update").status == 0
    desk.place.replace("ci-gate.toml", "judge-1", "judge-2")
    assert "there is no calibration" in desk.gate("check").err
    desk.calibrate()
    assert desk.gate("check").status == 3
    assert "judge-changed" in {reason["code"] for reason in desk.verdict()["reasons"]}


@pytest.mark.slow
def test_what_does_not_block_needs_no_calibration(desk: Desk) -> None:
    """Advisory runs report what a judge says before people were asked, and blocking ones do not."""
    desk.place.replace("ci-gate.toml", "[gate]", '[gate]\nmode = "advisory"')
    assert desk.gate("check").status == 0
    (judge,) = desk.verdict()["judges"]
    assert judge["candidate"]["corrected"] is None
    assert "there is no calibration" in judge["note"]
    desk.place.replace("ci-gate.toml", 'mode = "advisory"', "")
    run = ".ci-gate/desk.run.jsonl"
    assert "a judge of this run cannot gate" in desk.gate("compare", run).err
    (desk.place.path / "ci-gate.toml").unlink()
    alone = desk.gate("compare", run, run)
    assert alone.status == 2
    assert "no configuration here" in alone.err


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('api_key_env = "JUDGE_KEY"', 'api_key_env = "NO_KEY"', "NO_KEY, which holds the judge"),
        ('model = "judge-1"\n', "", "base_url and model belong together"),
        ('"rubric.md"', '"none.md"', "names no file"),
        ('"rubric.md"', '"../rubric.md"', "must not leave the project"),
        ('rubric_file = "rubric.md"', 'rubric = " "', "option 'rubric' must be a text"),
    ],
)
def test_what_keeps_a_judge_from_being_asked_is_found_before_the_first_trial(
    desk: Desk, before: str, after: str, told: str
) -> None:
    """A missing key, model or rubric ends in words and nothing else."""
    name = "tasks.toml" if "rubric" in before else "ci-gate.toml"
    path = desk.place.path / name
    path.write_text(path.read_text().replace(before, after))
    ended = desk.gate("check")
    assert ended.status == 2
    assert told in ended.err
    assert "Traceback" not in ended.err
    assert desk.gate("judge", "calibrate", "labels.jsonl").status == 2


def test_a_suite_without_a_model_says_what_to_set(desk: Desk) -> None:
    """A judge in a task needs [judge] in the configuration."""
    path = desk.place.path / "ci-gate.toml"
    path.write_text(path.read_text().partition("[judge]")[0])
    ended = desk.gate("check")
    assert ended.status == 2
    assert "[judge] names no model" in ended.err


@pytest.mark.slow
def test_a_judge_that_is_down_makes_trials_errored(place: Place) -> None:
    """Whatever the agent did, a judge out of reach says nothing of it."""
    is_down: list[bool] = []

    def moody(request: Request) -> Said:
        return Said(401, b"who are you?") if is_down else obedient(request)

    with serving(moody) as server:
        desk = _made(place, server)
        desk.calibrate()
        is_down.append(True)
        assert desk.gate("check").status == 3
        refused = desk.gate("judge", "calibrate", "labels.jsonl")
    assert {reason["code"] for reason in desk.verdict()["reasons"]} >= {"too-many-errors"}
    lines = (desk.place.path / ".ci-gate/desk.run.jsonl").read_text().splitlines()[1:-1]
    trials = [json.loads(line) for line in lines]
    assert {trial["status"] for trial in trials} == {"errored"}
    assert {trial["cause"] for trial in trials} == {"environment"}
    assert "HTTP 401 who are you?" in trials[0]["reason"]
    assert refused.status == 2
    assert "HTTP 401 who are you?" in refused.err


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ("", "has no labels"),
        ('{"answer": "x", "label": "good"}\n', "labels.jsonl:1"),
        ('{"answer": "x", "label": "pass"}\n\n{"answer": 1}\n', "labels.jsonl:3"),
        ('{"answer": "x", "label": "pass", "task": "sofa"}\n', "no label is of a task"),
        (label("x" * 60_001, "pass"), "more than 60000 characters"),
    ],
)
def test_labels_that_are_none_are_named_by_their_line(desk: Desk, labels: str, told: str) -> None:
    """Whoever wrote the labels learns which line to mend."""
    (desk.place.path / "labels.jsonl").write_text(labels)
    ended = desk.gate("judge", "calibrate", "labels.jsonl")
    assert ended.status == 2
    assert told in ended.err


@pytest.mark.slow
def test_one_of_several_judges_is_named(desk: Desk) -> None:
    """Where tasks have different rubrics, --judge says which is meant."""
    path = desk.place.path / "tasks.toml"
    path.write_text(path.read_text().replace('rubric_file = "rubric.md"', 'rubric = "Polite."', 1))
    several = desk.gate("judge", "calibrate", "labels.jsonl")
    assert several.status == 2
    assert "several judges are meant. Name one of: lamp/judge, teapot/judge" in several.err
    assert (
        "no judge is called 'sofa'"
        in desk.gate("judge", "calibrate", "labels.jsonl", "--judge", "sofa").err
    )
    assert desk.calibrate("--judge", "teapot/judge")["rubric"] == RUBRIC
    assert desk.calibrate("--judge", "lamp")["rubric"] == "Polite."
