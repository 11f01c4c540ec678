"""Run files beside that of a check: when they are continued, and what of them is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ci_gate.errors import FileFormatError, JournalError
from ci_gate.gate.planning import plan_of
from ci_gate.gate.side_journals import SideJournal, refuse_unfinished
from ci_gate.model.run import AgentRef, RunHeader, StopReason
from ci_gate.model.suite import PlannedTrial, Suite, Task
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.prng import format_seed
from ci_gate.store.runs import load_run

BEGUN, EARLIER, LATER = (f"2026-11-30T{hour}:00:00Z" for hour in ("12", "11", "13"))
SUITE = Suite(
    name="desk",
    root_seed=7,
    trials=2,
    tasks=tuple(Task(id=t, instruction="", base_seed=7, digest=f"sha256:{t}") for t in ("a", "b")),
    digest="sha256:desk",
)


def header(created: str = LATER, agent: str = "sha256:agent") -> RunHeader:
    """Return the header of a side of two runs over the seeds."""
    return RunHeader(
        suite="desk",
        suite_digest=SUITE.digest,
        root_seed=format_seed(7),
        plan=plan_of(SUITE, repeats=2, max_repeats=2),
        agent=AgentRef(digest=agent),
        created=created,
    )


def record(trial: PlannedTrial, status: Status = Status.PASSED) -> TrialRecord:
    """Return how a trial ended."""
    return TrialRecord(
        task=trial.task.id,
        task_digest=trial.task.digest,
        trial=trial.trial,
        repeat=trial.repeat,
        attempt=trial.attempt,
        seed=format_seed(trial.seed),
        status=status,
        cost_usd=0.5,
    )


@pytest.fixture
def begun(tmp_path: Path) -> Callable[..., Path]:
    """Return a maker of run files in which some trials ended."""

    def make(*statuses: Status, created: str = LATER, finish: StopReason | None = None) -> Path:
        path = tmp_path / "side.run.jsonl"
        with SideJournal(path, header(created), SUITE, since=None, retries=2) as journal:
            for trial, status in zip(journal.missing(), statuses, strict=False):
                journal.append(record(trial, status))
            if finish is not None:
                journal.finish(finish)
        return path

    return make


def test_a_new_one_misses_everything_and_ends_with_a_footer(tmp_path: Path) -> None:
    """Two tasks, two seeds, two runs; round by round."""
    path = tmp_path / "new.run.jsonl"
    with SideJournal(path, header(), SUITE, since=BEGUN, retries=2) as journal:
        missing = journal.missing()
        for trial in missing:
            journal.append(record(trial))
        journal.finish(StopReason.COMPLETE)

    assert journal.planned == len(missing) == 8
    footer = load_run(path).footer
    assert footer is not None
    assert (footer.stop.round, footer.stop.reason, footer.trials) == (4, "complete", 8)


def test_one_of_this_run_is_continued(begun: Callable[..., Path]) -> None:
    """What was judged is not run again; an errored trial gets a further attempt."""
    path = begun(Status.PASSED, Status.ERRORED, Status.FAILED)

    with SideJournal(
        path, header("2026-11-30T14:00:00Z"), SUITE, since=BEGUN, retries=2
    ) as journal:
        missing = journal.missing()

    assert journal.spent_usd == 1.5
    assert len(missing) == 6
    assert [(t.task.id, t.trial, t.repeat, t.attempt) for t in missing[:2]] == [
        ("b", 0, 0, 2),
        ("b", 1, 0, 1),
    ]


def test_a_finished_one_of_this_run_is_left_as_it_is(begun: Callable[..., Path]) -> None:
    """Nothing is missing, and its bytes stay."""
    path = begun(*[Status.PASSED] * 8, finish=StopReason.COMPLETE)
    kept = path.read_bytes()

    with SideJournal(path, header(), SUITE, since=BEGUN, retries=2) as journal:
        assert journal.missing() == []
        journal.finish(StopReason.COMPLETE)

    assert path.read_bytes() == kept


@pytest.mark.parametrize(
    ("created", "agent", "since"),
    [
        (EARLIER, "sha256:agent", BEGUN),
        (LATER, "sha256:other", BEGUN),
        (LATER, "sha256:agent", None),
    ],
    ids=["of an earlier check", "of another agent", "not asked for"],
)
def test_any_other_is_begun_anew(
    begun: Callable[..., Path], created: str, agent: str, since: str | None
) -> None:
    """Trials of another check, or of another agent, are not this recheck's."""
    path = begun(Status.PASSED, created=created)

    with SideJournal(path, header(agent=agent), SUITE, since=since, retries=2) as journal:
        assert len(journal.missing()) == 8

    assert path.read_bytes().count(b"\n") == 1


def test_a_damaged_one_is_begun_anew(begun: Callable[..., Path]) -> None:
    """Nobody can continue it, and the check that it belongs to has ended."""
    path = begun(Status.PASSED)
    path.write_text("nonsense\n")

    with SideJournal(path, header(), SUITE, since=BEGUN, retries=2) as journal:
        assert len(journal.missing()) == 8


@pytest.mark.parametrize("finish", [None, StopReason.BUDGET])
def test_an_unfinished_one_is_not_lost_unasked(
    begun: Callable[..., Path], finish: StopReason | None
) -> None:
    """Somebody has paid for its trials."""
    path = begun(Status.PASSED, finish=finish)

    with pytest.raises(JournalError, match="--resume"):
        refuse_unfinished(path, what="recheck")


def test_a_finished_or_absent_one_stands_in_nobodys_way(begun: Callable[..., Path]) -> None:
    """As the run file of a check, it is replaced."""
    path = begun(*[Status.PASSED] * 8, finish=StopReason.COMPLETE)

    refuse_unfinished(path, what="recheck")
    refuse_unfinished(path.with_name("absent"), what="recheck")


def test_something_else_in_its_place_is_said(tmp_path: Path) -> None:
    """Before any trial, not after all of them."""
    path = tmp_path / "side.run.jsonl"
    path.write_text("{}")

    with pytest.raises(FileFormatError):
        refuse_unfinished(path, what="recheck")


def test_a_header_without_a_date_is_of_no_check(begun: Callable[..., Path]) -> None:
    """A file of another tool is not continued."""
    path = begun(Status.PASSED)
    lines = path.read_bytes().splitlines(keepends=True)
    bare = msgspec.json.decode(lines[0])
    bare["created"] = None
    path.write_bytes(msgspec.json.encode(bare) + b"\n" + lines[1])

    with SideJournal(path, header(), SUITE, since=BEGUN, retries=2) as journal:
        assert len(journal.missing()) == 8


def test_one_with_trials_of_another_suite_is_begun_anew(begun: Callable[..., Path]) -> None:
    """Its footer could not be written after all that is missing had run."""
    path = begun(Status.PASSED)
    path.write_bytes(path.read_bytes().replace(b"sha256:a", b"sha256:z"))

    with SideJournal(path, header(), SUITE, since=BEGUN, retries=2) as journal:
        assert len(journal.missing()) == 8
