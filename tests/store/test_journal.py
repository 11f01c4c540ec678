from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ci_gate.errors import FileFormatError, GateError, InternalError, JournalError, UsageError
from ci_gate.model.run import AgentRef, Plan, Stop, StopReason
from ci_gate.model.trial import Grade, Status, TrialRecord
from ci_gate.store import journal as journals
from ci_gate.store.journal import Journal
from ci_gate.store.runs import load_run

COMPLETE = Stop(round=8, reason=StopReason.COMPLETE)
WRITER = """
import pathlib, sys
from ci_gate.model.run import Plan, RunHeader, Stop, StopReason
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.store.journal import Journal

header = RunHeader(suite="desk", plan=Plan(trials=10**6))
path = pathlib.Path(sys.argv[1])
with Journal.open(path, header, resume=True) as journal:
    start = len(journal.records)
    for trial in range(start, int(sys.argv[2])):
        text = "x" * (trial % 50)
        journal.append(TrialRecord(task="a", trial=trial, status=Status.PASSED, reason=text))
        print(trial, flush=True)
    journal.finish(Stop(round=1, reason=StopReason.COMPLETE))
"""


def unfinished(desk, notation: str = "refund ++-", **fields: Any) -> Path:
    """Leave a journal as an interrupted run does."""
    with Journal.open(desk.path, desk.header(**fields)) as journal:
        for record in desk.records(notation):
            journal.append(record)
    return desk.path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_line_is_in_the_file_when_append_returns(desk) -> None:
    """Another reader sees a finished trial at once, while the journal is open."""
    records = desk.records("refund +-")
    with Journal.open(desk.path, desk.header()) as journal:
        journal.append(records[0])
        seen = load_run(desk.path).records
        journal.append(records[1])

    assert seen == (records[0],)
    assert load_run(desk.path).records == tuple(records)


def test_the_file_is_as_readable_as_others(desk) -> None:
    """A journal has the mode of any new file, in a folder that is made for it."""
    path = desk.folder / "made" / "for" / "it" / "x.run.jsonl"
    Journal.open(path, desk.header()).close()

    assert stat.S_IMODE(path.stat().st_mode) & 0o400
    assert names(path.parent) == ["x.run.jsonl"]


def test_a_finished_run_is_replaced_in_one_step(desk) -> None:
    """A new run takes the place of a finished one, which a reader had open stays whole."""
    path = desk.write("refund ++")
    with path.open("rb") as former:
        with Journal.open(path, desk.header()) as journal:
            journal.append(desk.records("cancel -")[0])
        kept = former.read()

    assert kept.endswith(b"}\n")
    assert b'"end":true' in kept
    assert [record.task for record in load_run(path).records] == ["cancel"]
    assert names(desk.folder) == ["desk.run.jsonl"]


def test_an_unfinished_run_asks_what_to_do(desk) -> None:
    """Without --resume or --fresh an unfinished journal is neither continued nor lost."""
    path = unfinished(desk)
    before = path.read_bytes()

    with pytest.raises(JournalError, match=r"holds an unfinished run\. Use --resume .* or --fresh"):
        Journal.open(path, desk.header())

    assert path.read_bytes() == before


@pytest.mark.parametrize("reason", [StopReason.INTERRUPTED, StopReason.BUDGET])
def test_a_paused_run_is_unfinished(desk, reason: StopReason) -> None:
    """A footer that says interrupted or budget is continued like no footer at all."""
    path = desk.write("refund +-", reason=reason)
    with pytest.raises(JournalError, match="unfinished"):
        Journal.open(path, desk.header())

    with Journal.open(path, desk.header(), resume=True) as journal:
        journal.append(desk.records("refund +-+")[2])
        journal.finish(COMPLETE)

    run = load_run(path)
    assert len(run.records) == 3
    assert run.footer.stop == COMPLETE
    assert path.read_bytes().count(b'"end"') == 1


def test_fresh_discards(desk) -> None:
    """--fresh begins anew whatever is there, damaged or not."""
    path = unfinished(desk)
    with path.open("ab") as stream:
        stream.write(b"garbage\n")

    with Journal.open(path, desk.header(), fresh=True) as journal:
        journal.finish(COMPLETE)

    assert load_run(path).records == ()


def test_resume_knows_what_is_finished(desk) -> None:
    """A resumed journal gives the surviving records and goes on behind them."""
    path = unfinished(desk, "refund ++!")
    retried = msgspec.structs.replace(
        desk.records("refund ..+")[0], attempt=2, status=Status.FAILED
    )

    with Journal.open(path, desk.header(created="later"), resume=True) as journal:
        finished = dict(journal.records)
        journal.append(retried)
        footer = journal.finish(COMPLETE)

    assert sorted(finished) == [("refund", 0, 0), ("refund", 1, 0), ("refund", 2, 0)]
    assert finished["refund", 2, 0].status is Status.ERRORED
    assert footer.trials == 3
    run = load_run(path)
    assert [record.status.value for record in run.records] == ["passed", "passed", "failed"]
    assert run.header.created is None


def test_resume_knows_in_which_order_the_lines_that_count_were_written(desk) -> None:
    """A trial that was tried again stands where its last line is; every trial is recorded."""
    path = unfinished(desk, "refund !+ cancel -")
    with Journal.open(path, desk.header(), resume=True) as journal:
        for record in desk.records("refund !", attempt=2):
            journal.append(record)
        assert ("refund", 0, 0) in journal.recorded

    with Journal.open(path, desk.header(), resume=True) as journal:
        order = [(task, trial) for task, trial, _ in journal.records]
        assert order == [("refund", 1), ("cancel", 0), ("refund", 0)]
        assert journal.recorded == journal.records.keys()


def test_resume_knows_what_every_attempt_cost(desk) -> None:
    """Money spent on attempts that later ones superseded stays spent; attempts without a price, 0.

    The digest and the count of a finished run are those of the surviving lines alone.
    """
    first = desk.records("refund !", cost_usd=0.25)[0]
    attempts = [
        msgspec.structs.replace(first, attempt=number, status=status, cost_usd=cost_usd)
        for number, status, cost_usd in (
            (1, Status.ERRORED, 0.25),
            (2, Status.ERRORED, None),
            (3, Status.PASSED, 0.5),
        )
    ]
    with Journal.open(desk.path, desk.header()) as journal:
        for record in (*attempts, *desk.records("cancel +", cost_usd=2.0)):
            journal.append(record)

    with Journal.open(desk.path, desk.header(), resume=True) as journal:
        spent_usd = journal.spent_usd
        footer = journal.finish(COMPLETE)

    alone = desk.write([attempts[-1], *desk.records("cancel +", cost_usd=2.0)], name="alone")
    assert spent_usd == 2.75
    assert footer.trials == 2
    assert load_run(alone).footer.digest == footer.digest


def test_resume_without_a_journal_begins(desk) -> None:
    """--resume starts afresh where there is no journal."""
    with Journal.open(desk.path, desk.header(), resume=True) as journal:
        journal.finish(COMPLETE)
        assert dict(journal.records) == {}

    assert load_run(desk.path).complete


def test_resume_of_a_finished_run_does_nothing(desk) -> None:
    """A finished run of the same digests is given back with its footer, unchanged."""
    path = desk.write("refund +-")
    before = path.read_bytes()

    with Journal.open(path, desk.header(), resume=True) as journal:
        assert journal.footer == load_run(path).footer
        assert len(journal.records) == 2
        with pytest.raises(InternalError, match="finished"):
            journal.append(desk.records("refund ..+")[0])

    assert path.read_bytes() == before


def test_resume_replaces_a_finished_run_of_something_else(desk) -> None:
    """A finished run of another agent is replaced, as without --resume."""
    path = desk.write("refund +-")
    other = desk.header(agent=AgentRef(digest="sha256:other"))

    with Journal.open(path, other, resume=True) as journal:
        assert journal.footer is None

    assert load_run(path).header == other


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"suite": "other"}, "suite was desk, is other"),
        ({"suite_digest": "sha256:x"}, "suite digest was sha256:suite, is sha256:x"),
        ({"root_seed": "0x1"}, "root seed was 0x0000000020261030, is 0x1"),
        ({"agent": AgentRef(digest="sha256:x")}, "agent digest was sha256:good, is sha256:x"),
        ({"agent": None}, "agent digest was sha256:good, is unknown"),
        ({"plan": Plan(trials=16)}, 'plan was {"trials":8'),
        ({"errors": "fail"}, "errors was exclude, is fail"),
        ({"faults_digest": "sha256:f"}, "faults digest was unknown, is sha256:f"),
        ({"judge_digest": "sha256:j"}, "judge digest was unknown"),
        ({"task_filter": "ref*"}, "task filter was unknown"),
        ({"shard": "1/2"}, "shard was unknown"),
    ],
)
def test_another_run_s_journal_is_refused(desk, change: dict[str, Any], named: str) -> None:
    """What makes trials incomparable is named with both values, and the journal stays."""
    path = unfinished(desk)
    before = path.read_bytes()

    with pytest.raises(JournalError) as caught:
        Journal.open(path, desk.header(**change), resume=True)

    assert named in str(caught.value)
    assert "--fresh" in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("curtail", [True, False])
def test_a_stop_is_decided_against_one_baseline(desk, curtail: bool) -> None:
    """Where rounds may stop early, a journal is not continued against another baseline."""
    plan = Plan(trials=8, curtail=curtail)
    path = unfinished(desk, plan=plan, baseline_digest="sha256:one")
    header = desk.header(plan=plan, baseline_digest="sha256:two")

    if curtail:
        with pytest.raises(JournalError, match="baseline digest was sha256:one, is sha256:two"):
            Journal.open(path, header, resume=True)
    else:
        Journal.open(path, header, resume=True).close()


@pytest.mark.parametrize("torn", [b"{", b'{"task":"refund","trial":2', b"\0" * 100, b"x" * 70_000])
def test_a_torn_last_line_is_dropped_and_counted(desk, torn: bytes) -> None:
    """Resuming cuts off what is no whole line, says how much, and every whole line stays."""
    path = unfinished(desk, "refund +-")
    whole = path.read_bytes()
    with path.open("ab") as stream:
        stream.write(torn)

    with Journal.open(path, desk.header(), resume=True) as journal:
        assert journal.dropped_bytes == len(torn)
        assert len(journal.records) == 2
        assert path.read_bytes() == whole


def test_a_last_line_that_lost_only_its_newline_stays(desk) -> None:
    """A trial that is whole but for its newline is kept and the next line begins behind it."""
    path = unfinished(desk, "refund +-")
    os.truncate(path, path.stat().st_size - 1)

    with Journal.open(path, desk.header(), resume=True) as journal:
        assert len(journal.records) == 2
        journal.append(desk.records("refund ..+")[0])

    assert len(load_run(path).records) == 3


@pytest.mark.parametrize("left", [b"", b"{", b'{"schema":"ci-gate/run@1","suite":"de'])
def test_a_journal_that_died_at_its_header_is_none(desk, left: bytes) -> None:
    """A file with at most a part of a header holds no trial and is begun anew."""
    desk.path.write_bytes(left)

    with Journal.open(desk.path, desk.header()) as journal:
        journal.append(desk.records("refund +")[0])

    assert len(load_run(desk.path).records) == 1


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", b'{"a":1}\n', b'{"a":1}'])
@pytest.mark.parametrize("resume", [True, False])
def test_a_file_that_is_no_journal_is_not_overwritten(desk, content: bytes, resume: bool) -> None:
    """Text that no journal left behind is never discarded unasked."""
    desk.path.write_bytes(content)

    with pytest.raises(JournalError, match=r"damaged .* Use --fresh to discard it"):
        Journal.open(desk.path, desk.header(), resume=resume)

    assert desk.path.read_bytes() == content


def test_damage_before_the_end_is_refused(desk) -> None:
    """A broken line in the middle is damage, not a tear; resuming names the line."""
    path = unfinished(desk, "refund ++-")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * 20 + b"\n"
    path.write_bytes(b"".join(lines))

    with pytest.raises(JournalError, match=r"desk\.run\.jsonl:3: is not JSON"):
        Journal.open(path, desk.header(), resume=True)


def test_an_edited_finished_run_is_not_taken_for_done(desk, edited) -> None:
    """Resuming a finished file whose digest is wrong is refused."""
    path = edited(desk.write("refund +-"), b'"failed"', b'"passed"')

    with pytest.raises(JournalError, match="is not that of the lines"):
        Journal.open(path, desk.header(), resume=True)


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_only_a_regular_file_is_a_journal(desk, kind: str) -> None:
    """A folder, link or pipe in the journal's place is refused and stays."""
    precious = desk.folder / "precious"
    precious.write_bytes(b"precious")
    {
        "folder": desk.path.mkdir,
        "link": lambda: desk.path.symlink_to(precious),
        "pipe": lambda: os.mkfifo(desk.path),
    }[kind]()

    with pytest.raises(JournalError, match="is a folder, link, pipe or device"):
        Journal.open(desk.path, desk.header(), fresh=True)

    assert precious.read_bytes() == b"precious"


def test_a_folder_that_cannot_be_made_is_said(desk) -> None:
    """An output below a file is a usage error."""
    (desk.folder / "file").write_bytes(b"")

    with pytest.raises(UsageError, match="file: is no folder, and results belong below it"):
        Journal.open(desk.folder / "file" / "x.run.jsonl", desk.header())


def test_a_second_opener_is_refused(desk) -> None:
    """Two runs never write one journal, whatever the second one asks for."""
    with Journal.open(desk.path, desk.header()):
        for options in ({}, {"resume": True}, {"fresh": True}):
            with pytest.raises(JournalError, match="is in use"):
                Journal.open(desk.path, desk.header(), **options)

    Journal.open(desk.path, desk.header(), resume=True).close()


def test_a_replaced_journal_stays_locked(desk) -> None:
    """The journal that took a finished file's place is locked like a new one."""
    path = desk.write("refund ++")

    with (
        Journal.open(path, desk.header()),
        pytest.raises(JournalError, match="is in use"),
    ):
        Journal.open(path, desk.header(), fresh=True)


def test_a_failed_open_leaves_no_lock_and_no_file(desk) -> None:
    """After a refusal the journal can be opened by whoever asks rightly."""
    path = unfinished(desk)
    with pytest.raises(JournalError):
        Journal.open(path, desk.header())

    Journal.open(path, desk.header(), resume=True).close()
    assert names(desk.folder) == ["desk.run.jsonl"]


def test_an_attempt_is_kept_once(desk) -> None:
    """A second line of the same or an earlier attempt would make the file unreadable."""
    record = desk.records("refund +", attempt=2)[0]
    with Journal.open(desk.path, desk.header()) as journal:
        journal.append(record)
        for attempt in (1, 2):
            with pytest.raises(InternalError, match=f"attempt {attempt} or later"):
                journal.append(msgspec.structs.replace(record, attempt=attempt))
        journal.finish(COMPLETE)

    assert load_run(desk.path).records == (record,)


def test_a_line_that_no_reader_would_take_is_refused(desk) -> None:
    """A record beyond 16 MiB is an error of its trial; the file stays readable."""
    with Journal.open(desk.path, desk.header()) as journal:
        with pytest.raises(InternalError, match="longer than 16777216 bytes"):
            journal.append(desk.records("refund +", reason="x" * (16 * 2**20))[0])
        journal.finish(COMPLETE)

    assert load_run(desk.path).records == ()


def test_text_that_json_cannot_hold_is_replaced(desk) -> None:
    """Lone surrogates in an agent's words become ?, NaN becomes null, and the line is kept."""
    grades = (Grade(grader="a", passed=False, reason="\udcff"),)
    record = desk.records("refund -", reason="a\ud800b", grades=grades, cost_usd=float("nan"))[0]
    with Journal.open(desk.path, desk.header()) as journal:
        journal.append(msgspec.structs.replace(record, measures={"x": float("inf")}))
        journal.finish(COMPLETE)

    kept = load_run(desk.path).records[0]
    assert (kept.reason, kept.grades[0].reason) == ("a?b", "?")
    assert (kept.cost_usd, kept.measures) == (None, {"x": None})


def test_a_closed_journal_takes_nothing(desk) -> None:
    """After close neither a trial nor a footer is written; closing again is harmless."""
    journal = Journal.open(desk.path, desk.header())
    journal.close()
    journal.close()

    with pytest.raises(InternalError, match="finished or closed"):
        journal.append(desk.records("refund +")[0])
    with pytest.raises(InternalError, match="finished or closed"):
        journal.finish(COMPLETE)


def test_lines_reach_the_medium_within_the_promised_time(desk, monkeypatch) -> None:
    """A flush follows a line within 100 ms, and many lines share one."""
    flushed: list[tuple[float, int]] = []
    done = threading.Event()

    def flush(descriptor: int) -> None:
        os.fsync(descriptor)
        flushed.append((time.monotonic(), os.fstat(descriptor).st_size))
        done.set()

    with Journal.open(desk.path, desk.header(trials=500)) as journal:
        monkeypatch.setattr(journals, "_flush", flush)
        for record in desk.records("refund " + "+" * 500):
            journal.append(record)
        written = time.monotonic()
        while not flushed or flushed[-1][1] < desk.path.stat().st_size:
            assert done.wait(2)
            done.clear()

        assert flushed[-1][0] - written < 0.1 + 0.4  # the machine may be busy with other things
        assert len(flushed) < 50


def test_a_medium_that_fails_is_noticed(desk, monkeypatch) -> None:
    """An error of a flush in the background stops the run instead of losing trials unsaid."""
    failed = threading.Event()

    def flush(descriptor: int) -> None:
        failed.set()
        raise OSError(5, "Input/output error")

    journal = Journal.open(desk.path, desk.header())
    monkeypatch.setattr(journals, "_flush", flush)
    journal.append(desk.records("refund +")[0])
    assert failed.wait(5)

    with pytest.raises(InternalError, match="Input/output error"):
        journal.close()


def written_with_room(path: Path, room_bytes: int, total: int) -> subprocess.CompletedProcess[str]:
    """Run a writer that may write no file beyond a size, as on a disk with so much room."""
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({room_bytes},) * 2)\n"
    command = [sys.executable, "-c", limit + WRITER, path, str(total)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_full_disk_loses_no_earlier_trial(desk) -> None:
    """A line that does not fit is an error; the lines before it stand and none is half there."""
    done = written_with_room(desk.path, 20_000, 1000)

    counted = len(done.stdout.split())
    run = load_run(desk.path)
    assert "InternalError" in done.stderr
    assert "File too large" in done.stderr
    assert 10 < len(run.records) == counted < 1000
    assert run.warnings == ()
    assert desk.path.stat().st_size <= 20_000


def test_a_full_disk_at_the_first_line_is_said(desk) -> None:
    """Where not even the header fits, the error says so and a later run begins anew."""
    done = written_with_room(desk.path, 10, 1)

    assert "InternalError" in done.stderr
    Journal.open(desk.path, desk.header()).close()
    assert load_run(desk.path).records == ()


def test_order_of_completion_does_not_show(desk) -> None:
    """Sorted, the file is the same for every order in which trials finished."""
    from ci_gate.store.runs import canonical_lines

    records = desk.records("refund ++-+/+--+ cancel -+!+/++++")
    shuffled = random.Random(3).sample(records, len(records))

    first, second = desk.write(records, "one"), desk.write(shuffled, "two")

    assert list(canonical_lines(first)) == list(canonical_lines(second))


def killed_after(path: Path, total: int, lines: int) -> int:
    """Kill a writer when it has announced some trials; return how many it announced in all."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path, str(total)], stdout=subprocess.PIPE, text=True
    ) as process:
        announced = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        announced += process.stdout.readlines()
    return int(announced[-1]) + 1 if announced and announced[-1].strip() else 0


def test_a_killed_run_loses_no_finished_trial(desk) -> None:
    """After SIGKILL every trial that was counted is in the file, and resuming completes the run."""
    counted = killed_after(desk.path, 10**5, 200)
    assert len(load_run(desk.path).records) >= counted >= 200

    subprocess.run(
        [sys.executable, "-c", WRITER, desk.path, str(counted + 50)],
        check=True,
        stdout=subprocess.DEVNULL,
    )

    run = load_run(desk.path)
    assert run.complete
    assert [record.trial for record in run.records] == list(range(counted + 50))


@pytest.mark.slow
def test_a_hundred_kills_change_nothing(desk, tmp_path: Path) -> None:
    """A run that is killed again and again ends as one that never was."""
    chance = random.Random(20261030)
    counted = 0
    for _ in range(100):
        counted = max(counted, killed_after(desk.path, 10**5, chance.randrange(1, 40)))
        assert len(load_run(desk.path).records) >= counted

    total = len(load_run(desk.path).records) + 10
    whole = tmp_path / "whole.run.jsonl"
    for path in (desk.path, whole):
        subprocess.run(
            [sys.executable, "-c", WRITER, path, str(total)], check=True, stdout=subprocess.DEVNULL
        )

    assert load_run(desk.path).digest == load_run(whole).digest
    assert load_run(desk.path).records == load_run(whole).records


def test_records_of_a_hostile_plan_do_not_pass(desk) -> None:
    """A journal whose lines contradict its own plan is damage that finish does not sign."""
    with Journal.open(desk.path, desk.header(trials=1)) as journal:
        journal.append(TrialRecord(task="a", trial=5, status=Status.PASSED))
        with pytest.raises(FileFormatError, match="out of range"):
            journal.finish(COMPLETE)


def test_errors_carry_the_right_status() -> None:
    """A refused journal is the user's mistake, a full disk is not."""
    assert JournalError("x").exit_code == 2
    assert InternalError("x").exit_code == 4
    assert issubclass(JournalError, GateError)


def test_stopping_between_a_flush_and_the_next_wait_is_never_missed(monkeypatch):
    """The end may come at the moment in which the flusher takes note of its news."""
    monkeypatch.setattr(journals, "_flush", lambda _descriptor: None)
    flusher = journals._Flusher(0)
    clear, is_clearing, may_clear = flusher._news.clear, threading.Event(), threading.Event()

    def clear_slowly() -> None:
        is_clearing.set()
        may_clear.wait(5)
        clear()

    monkeypatch.setattr(flusher._news, "clear", clear_slowly)
    flusher.wake()
    is_clearing.wait(5)
    stopping = threading.Thread(target=flusher.stop, daemon=True)
    stopping.start()
    while not flusher._news.is_set() or not flusher._ended.is_set():
        time.sleep(0.001)
    may_clear.set()

    stopping.join(5)

    assert not stopping.is_alive()


FORGED = b'{"task":"refund","trial":1,"attempt":99,"status":"passed"}\n'
CHANGED = "was changed by someone else while trials ran"


def add_forged(path: Path) -> None:
    with path.open("ab") as file:
        file.write(FORGED)


def test_a_line_of_somebody_else_s_stops_the_next_append(desk) -> None:
    """What an agent adds to the journal is cut off, said, and never part of what is resumed."""
    records = desk.records("refund +--")
    journal = Journal.open(desk.path, desk.header())
    journal.append(records[0])
    add_forged(desk.path)

    with pytest.raises(FileFormatError, match=f"{CHANGED}.*cut off.*--resume"):
        journal.append(records[1])

    journal.close()
    assert FORGED not in desk.path.read_bytes()
    with Journal.open(desk.path, desk.header(), resume=True) as journal:
        assert list(journal.records.values()) == [records[0]]


@pytest.mark.parametrize("end", ["finish", "close"])
def test_a_line_of_somebody_else_s_after_the_last_is_cut_off(desk, end: str) -> None:
    """Neither the end of a run nor its interruption leaves a foreign line behind."""
    journal = Journal.open(desk.path, desk.header())
    journal.append(desk.records("refund -")[0])
    before = desk.path.read_bytes()
    add_forged(desk.path)

    with pytest.raises(FileFormatError, match=CHANGED):
        journal.finish(COMPLETE) if end == "finish" else journal.close()

    journal.close()
    assert desk.path.read_bytes() == before


@pytest.mark.parametrize("resumed", [False, True])
def test_a_changed_line_gets_no_footer(desk, resumed: bool) -> None:
    """A digest of all that was written, or found on resuming, shows a change of equal length."""
    if resumed:
        unfinished(desk, "refund --")
    journal = Journal.open(desk.path, desk.header(), resume=resumed)
    journal.append(desk.records("cancel -")[0])
    forged = desk.path.read_bytes().replace(b'"failed"', b'"passed"')
    with desk.path.open("r+b") as file:
        file.write(forged)

    with pytest.raises(FileFormatError, match=f"{CHANGED}.*--fresh"):
        journal.finish(COMPLETE)

    journal.close()
    assert desk.path.read_bytes() == forged


@pytest.mark.parametrize("end", ["append", "finish"])
@pytest.mark.parametrize("remains", [False, True])
def test_another_file_of_the_name_is_noticed(desk, end: str, remains: bool) -> None:
    """Lines must not go to a file that nobody can find, nor a forged one take its place."""
    journal = Journal.open(desk.path, desk.header())
    record, other = desk.records("refund --")
    journal.append(record)
    content = desk.path.read_bytes()
    desk.path.unlink()
    if remains:
        desk.path.write_bytes(content)

    with pytest.raises(FileFormatError, match=f"{CHANGED}.*removed or replaced"):
        journal.append(other) if end == "append" else journal.finish(COMPLETE)

    with pytest.raises(FileFormatError, match=CHANGED):
        journal.finish(COMPLETE)
    journal.close()


def test_a_shortened_file_is_noticed(desk) -> None:
    """Lines that somebody removed are missed at the next one."""
    journal = Journal.open(desk.path, desk.header())
    records = desk.records("refund --")
    journal.append(records[0])
    os.truncate(desk.path, 40)

    with pytest.raises(FileFormatError, match=f"{CHANGED}.*--fresh"):
        journal.append(records[1])
    journal.close()
