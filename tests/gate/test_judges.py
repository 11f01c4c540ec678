"""Which judges may gate, and what is kept of their keys."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ci_gate.errors import FileFormatError, JudgeError
from ci_gate.gate.bar import Bar
from ci_gate.gate.judge import judge
from ci_gate.gate.judge_rates import refuse_uncalibrated
from ci_gate.gate.judges import calibration_path, find_calibration, uncalibrated
from ci_gate.gate.project import Project, Word, open_project
from ci_gate.gate.recording import redactor_maker
from ci_gate.grading.judge.calibrating import Compared, calibration_of
from ci_gate.grading.judge.question import Question
from ci_gate.model.judges import JudgedTask, JudgeResult
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.store.calibrations import dump_calibration
from tests.notation import side_of

QUESTION = Question(model="judge-1", rubric="polite")
SOUND = [Compared(label=at % 2 == 0, judged=at % 2 == 0, swapped=True) for at in range(20)]
CONFIG = """
[[suite]]
name = "desk"
tasks = ["tasks.toml"]
[agent]
python = "desk:run"
[judge]
base_url = "http://127.0.0.1:1/v1"
model = "judge-1"
api_key_env = "DOOR"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project outside any repository."""
    (tmp_path / "ci-gate.toml").write_text(CONFIG)
    return open_project(
        tmp_path / "ci-gate.toml",
        output=None,
        baseline_ref=None,
        word=Word.OWN,
        environment={},
    )


def keep(project: Project, content: bytes) -> None:
    path = calibration_path(project, QUESTION.digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def graded(outcomes: str, *, digest: str = QUESTION.digest, alone: bool = True) -> Side:
    """Return a side of one task, each of whose trials a judge graded as it ended."""
    side = side_of(f"refund {outcomes}")
    said = JudgedTask(asked=len(outcomes), passed=outcomes.count("+"), alone=alone)
    task = msgspec.structs.replace(side.tasks["refund"], by_judge={digest: said})
    return msgspec.structs.replace(side, tasks={"refund": task})


def test_the_calibration_in_the_working_tree_counts_without_a_base(project: Project) -> None:
    """What lies under the judge's digest is its calibration; without it the judge cannot gate."""
    assert find_calibration(project, QUESTION.digest) is None
    assert "there is no calibration baselines/judges/" in str(
        uncalibrated(project, QUESTION.digest)
    )
    keep(project, dump_calibration(calibration_of(QUESTION, SOUND)))
    assert uncalibrated(project, QUESTION.digest) is None
    keep(project, dump_calibration(calibration_of(QUESTION, SOUND[:4])))
    assert "5 of each are needed" in str(uncalibrated(project, QUESTION.digest))


def test_a_calibration_of_another_judge_is_not_this_ones(project: Project) -> None:
    """A file that was copied to another judge's name is refused."""
    other = msgspec.structs.replace(QUESTION, model="judge-2")
    keep(project, dump_calibration(calibration_of(other, SOUND)))
    with pytest.raises(FileFormatError, match="is the calibration of the judge sha256:"):
        find_calibration(project, QUESTION.digest)


@pytest.mark.parametrize("digest", ["sha256:../../secret", "x\n::error::y", ""])
def test_a_digest_of_a_run_file_is_no_path(project: Project, digest: str) -> None:
    """Whatever a run file calls its judge, no other file is read and no line begun."""
    (project.root / "secret.json").write_text("{}")
    with pytest.raises(JudgeError) as caught:
        refuse_uncalibrated(project, Policy(), graded("++++", digest=digest))
    assert "there is no calibration" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_policy_that_does_not_block_asks_for_no_calibration(project: Project) -> None:
    """Advisory verdicts are reported whoever graded them, blocking ones are not."""
    refuse_uncalibrated(project, Policy(mode="advisory"), graded("++++"))
    refuse_uncalibrated(project, Policy(), side_of("refund ++++"))
    with pytest.raises(JudgeError, match="task 'refund': a judge of this run cannot gate"):
        refuse_uncalibrated(project, Policy(), graded("++++"))


def test_the_judges_key_is_secret_whatever_its_variable_is_called(project: Project) -> None:
    """A key in a variable whose name says nothing is taken out of what is kept all the same."""
    key = "open-sesame-0123456789"
    redactor = redactor_maker(project.config, {"DOOR": key})()
    assert key not in redactor.text(f"the key is {key}")


def results_of(project: Project, baseline: Side | None, candidate: Side) -> tuple[JudgeResult, ...]:
    bar = Bar(side=baseline, status="found" if baseline else "absent", edited=False, origin="x")
    found = judge(project, project.config.suites[0], bar, candidate).judges
    return found if isinstance(found, tuple) else ()


def test_rates_of_both_sides_stand_for_what_people_would_say(project: Project) -> None:
    """A sound judge's rate is corrected hardly at all; without judges nothing is said of them."""
    keep(project, dump_calibration(calibration_of(QUESTION, SOUND)))
    (one,) = results_of(project, side_of("refund ++++++++"), graded("++++++--"))
    assert one.tasks == ("refund",)
    assert one.baseline is not None
    assert (one.baseline.passed, one.baseline.asked, one.baseline.corrected) == (8, 8, 1)
    assert (one.candidate.rate, one.candidate.corrected) == (0.75, 0.75)
    assert one.note is None
    assert results_of(project, None, side_of("refund ++++++++")) == ()


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        (None, graded("++++++--")),
        (side_of("cancel ++++++++"), graded("++++++--")),
        (side_of("refund ++++++++", digests={"refund": "x"}), graded("++++++--")),
        (side_of("refund ++++++++"), graded("++++++--", alone=False)),
        (graded("++++++++", digest="sha256:other"), graded("++++++--")),
        (side_of("refund ++++++++", judge_digest="sha256:other"), graded("++++++--")),
    ],
)
def test_outcomes_that_may_not_be_the_judges_are_no_rate_of_it(
    project: Project, baseline: Side | None, candidate: Side
) -> None:
    """Other tasks, other judges, or other graders beside the judge leave that rate open."""
    keep(project, dump_calibration(calibration_of(QUESTION, SOUND)))
    (one,) = results_of(project, baseline, candidate)
    assert one.baseline is None
