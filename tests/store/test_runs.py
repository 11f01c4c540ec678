from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ci_gate.codec import canonical
from ci_gate.errors import FileFormatError
from ci_gate.model.run import NOT_RUN, Plan, StopReason
from ci_gate.model.trial import Cause, Grade, Status, TrialRecord
from ci_gate.store.runs import canonical_lines, load_run, side_so_far, to_side


def independent_digest(path: Path, *, repeat: int | None = None) -> str:
    """Return the digest of a run by the definition, line by line."""
    survivors: dict[tuple[str, int, int], dict[str, Any]] = {}
    for text in path.read_text().splitlines()[1:]:
        line = json.loads(text)
        if "task" in line:
            key = (line["task"], line["trial"], line.get("repeat", 0))
            if key not in survivors or survivors[key]["attempt"] < line["attempt"]:
                survivors[key] = line
    chosen = [survivors[key] for key in sorted(survivors) if repeat in (None, key[2])]
    for line in chosen:
        del line["attempt"], line["duration_s"]
        line["repeat"] = line["repeat"] if repeat is None else 0
    forms = b"\n".join(map(canonical, chosen))
    return "sha256:" + hashlib.sha256(forms).hexdigest()


def test_a_written_run_is_read_back(desk) -> None:
    """What the journal wrote is what a reader finds, sorted by task, trial and repeat."""
    records = desk.records("refund +-!+ cancel ++--", cost_usd=0.0021, turns=5)
    shuffled = random.Random(1).sample(records, len(records))

    run = desk.run(shuffled, trials=4)

    assert list(run.records) == sorted(records, key=lambda record: record.key)
    assert run.header == desk.header(trials=4)
    assert run.footer.trials == 8
    assert run.complete
    assert run.warnings == ()


def test_the_digest_follows_its_definition(desk) -> None:
    """The footer's digest is the definition's, superseded attempts left out."""
    records = [
        *desk.records(
            "refund !+++ 🧾 +--+", cost_usd=1.0, grades=(Grade(grader="s", passed=True),)
        ),
        *desk.records("refund +", cost_usd=0.25, duration_s=3.5, attempt=2),
    ]

    path = desk.write(records, trials=4)

    assert load_run(path).digest == independent_digest(path)
    assert load_run(path).footer.digest == independent_digest(path)


def test_order_attempts_and_timing_do_not_move_the_digest(desk) -> None:
    """Two runs of the same outcomes agree whatever finished first, took how long, was retried."""
    records = desk.records("refund ++-+ cancel -+!+", duration_s=1.0)
    slower = [msgspec.structs.replace(one, duration_s=9.0, attempt=2) for one in records]
    random.Random(2).shuffle(slower)

    first, second = desk.run(records, "one"), desk.run(slower, "two")

    assert first.digest == second.digest


def test_any_other_fact_moves_the_digest(desk) -> None:
    """One trial's tokens, reason or an unknown field make another digest."""
    plain = desk.lines(desk.minimal, desk.trial(), name="plain")
    digests = {load_run(plain).digest}

    for number, more in enumerate(({"tokens": 1}, {"reason": "x"}, {"colour": "red"})):
        digests.add(load_run(desk.lines(desk.minimal, desk.trial(**more), name=f"{number}")).digest)

    assert len(digests) == 4


def test_the_digest_of_a_repeat_is_that_of_the_same_outcomes_alone(desk) -> None:
    """Repeat 1 of one file and the only repeat of another have one digest for the same facts."""
    both = desk.records("refund ++-+/-+++")
    named = [
        msgspec.structs.replace(one, trace=f"traces/refund/{one.trial}.1.jsonl")
        if one.repeat
        else one
        for one in both
    ]
    alone = [
        msgspec.structs.replace(one, repeat=0, trace=f"traces/refund/{one.trial}.jsonl")
        for one in named
        if one.repeat
    ]

    run, single = desk.run(named, "both"), desk.run(alone, "single")

    assert run.repeat_digests[1] == single.repeat_digests[0] == single.digest
    assert run.repeat_digests[0] == independent_digest(desk.folder / "both.run.jsonl", repeat=0)


def test_a_later_attempt_supersedes(desk) -> None:
    """The highest attempt of a trial counts, wherever in the file it stands."""
    path = desk.lines(
        desk.minimal,
        desk.trial(0, attempt=3, status="passed"),
        desk.trial(0, attempt=1, status="errored"),
        desk.trial(0, attempt=2, status="failed"),
    )

    assert [record.status for record in load_run(path).records] == [Status.PASSED]


def test_ten_lines_of_another_tool_are_a_run(desk) -> None:
    """A header with schema and suite and trials with task, trial and status are enough."""
    path = desk.lines(desk.minimal, desk.trial(0), desk.trial(2, status="failed"))

    side = to_side(load_run(path))

    assert side.complete
    assert side.tasks["refund"].outcomes == ("+.-",)
    assert side.planned == {"refund": 3}
    assert side.stop is None
    assert side.tasks["refund"].seeds is None


def test_a_missing_last_newline_is_no_tear(desk) -> None:
    """A last line that is whole but for its newline counts."""
    path = desk.lines(desk.minimal, desk.trial(0), b'{"task":"a","trial":0,"status":"failed"}')

    assert len(load_run(path).records) == 2


def test_blank_lines_count_for_nothing(desk) -> None:
    """Empty lines and carriage returns between lines are passed over."""
    spaced = desk.lines(desk.minimal, b"\n", desk.trial(0), b"\r\n", desk.trial(1), name="spaced")
    plain = desk.lines(desk.minimal, desk.trial(0), desk.trial(1), name="plain")

    assert load_run(spaced).digest == load_run(plain).digest


def test_a_plan_without_footer_is_an_interrupted_run(desk) -> None:
    """The lines count, the run is not complete, and its plan says what is missing."""
    header = desk.header(trials=3)
    path = desk.lines(header, *desk.records("refund +-"))

    run = load_run(path)

    assert not run.complete
    assert not to_side(run).complete
    assert to_side(run).tasks["refund"].outcomes == ("+-.",)
    assert to_side(run).planned == {"refund": 3}


def test_an_interrupted_footer_is_no_end(desk) -> None:
    """A footer that says interrupted leaves the run incomplete; one that says budget does not."""
    interrupted = desk.run("refund ++", "one", reason=StopReason.INTERRUPTED)
    budget = desk.run("refund ++", "two", reason=StopReason.BUDGET)

    assert not interrupted.complete
    assert budget.complete
    assert to_side(budget).stop.reason is StopReason.BUDGET


def test_a_torn_journal_is_read_up_to_its_last_whole_line(desk) -> None:
    """The torn end of an interrupted run is dropped, and that is said."""
    path = desk.lines(desk.header(), *desk.records("refund +-"), b'{"task":"refund","tri')

    run = load_run(path)

    assert len(run.records) == 2
    assert len(run.warnings) == 1
    assert run.warnings[0].startswith(f"{path}: the last line is torn after 21 bytes")


def test_unknown_fields_of_the_header_are_kept(desk) -> None:
    """What a newer writer says of a run reaches whoever rewrites it."""
    path = desk.lines({**desk.minimal, "weather": {"sun": True}}, desk.trial())

    assert load_run(path).extra == {"weather": {"sun": True}}
    assert to_side(load_run(path)).extra == {"weather": {"sun": True}}


def test_sorted_lines_are_the_lines(desk) -> None:
    """Sorting keeps every byte of the surviving lines, unknown fields included."""
    lines = [
        b'{"task":"b","trial":0,"status":"passed","x":1.0}\n',
        b'{"task":"a","trial":1,"status":"passed"}\n',
        b'{"task": "a","trial":0,"status":"failed","attempt":1}\n',
        b'{"task":"a","trial":0,"attempt":2,"status":"errored"}',
    ]
    path = desk.lines(desk.minimal, *lines)

    assert list(canonical_lines(path)) == [lines[3] + b"\n", lines[1], lines[0]]


def test_seeds_of_a_side_are_normal(desk) -> None:
    """Seeds are 16 hexadecimal digits, however the file writes them; unknown ones are None."""
    path = desk.lines(
        {**desk.minimal, "root_seed": "20261030"}, desk.trial(0, seed="0xAB"), desk.trial(1)
    )

    side = to_side(load_run(path))

    assert side.root_seed == "0x0000000020261030"
    assert side.tasks["refund"].seeds == ("0x00000000000000ab", None)


def test_reasons_are_those_of_trials_that_did_not_pass(desk) -> None:
    """A side knows why a trial failed or errored, by trial and repeat."""
    records = desk.records("refund +-/!+", reason="why")

    side = to_side(desk.run(records, trials=2))

    assert side.tasks["refund"].reasons == {(1, 0): "why", (0, 1): "why"}


def test_the_difference_of_a_failed_grade_is_kept_and_old_files_have_none(desk) -> None:
    """A grade's detail comes back from the file; a grade without one is written without it."""
    grades = (
        Grade(grader="answer", passed=True, detail="not shown"),
        Grade(grader="state", passed=False, reason="x", detail="check 1\n+ id=2"),
        Grade(grader="sql", passed=False, reason="x"),
    )
    path = desk.write([*desk.records("refund -+", grades=grades)], trials=2)

    assert '{"grader":"sql","passed":false,"reason":"x","score":null,"cause":null}' in (
        path.read_text()
    )
    assert to_side(load_run(path)).tasks["refund"].details == {(0, 0): "state: check 1\n+ id=2"}


def test_a_task_has_the_number_of_trials_its_plan_says(desk) -> None:
    """A task with its own number has outcome strings of that length."""
    plan = Plan(trials=2, task_trials={"long": 5}, repeats=2, max_repeats=2)

    side = to_side(desk.run("short +- long +-+-+", plan=plan))

    assert side.tasks["short"].outcomes == ("+-", NOT_RUN * 2)
    assert side.tasks["long"].outcomes == ("+-+-+", NOT_RUN * 5)
    assert side.planned == {"long": 10, "short": 4}


def test_a_planned_task_without_a_line_is_not_unknown(desk) -> None:
    """A side can be told which tasks were planned; one that never ran is there, not run."""
    run = load_run(desk.lines(desk.header(trials=2), *desk.records("refund +")))

    side = to_side(run, tasks={"refund": "x", "cancel": "sha256:c"})

    assert list(side.tasks) == ["cancel", "refund"]
    assert side.tasks["cancel"].outcomes == ("..",)
    assert side.tasks["cancel"].digest == "sha256:c"
    assert side.planned == {"cancel": 2, "refund": 2}


def test_a_side_carries_what_the_comparison_asks(desk) -> None:
    """Provenance, digests and conditions of the header reach the side."""
    run = desk.run(
        "refund +-",
        errors="fail",
        faults_digest="sha256:f",
        judge_digest="sha256:j",
        baseline_digest="sha256:b",
        policy_digest="sha256:p",
        model="m",
        commit="c0ffee",
        created="2026-11-30T12:00:00Z",
        task_filter="ref*",
        tool="ci-gate 0.1.0",
    )

    side = to_side(run)

    assert (side.kind, side.suite, side.suite_digest) == ("run", "desk", "sha256:suite")
    assert (side.errors, side.faults_digest, side.judge_digest) == ("fail", "sha256:f", "sha256:j")
    assert (side.baseline_digest, side.policy_digest) == ("sha256:b", "sha256:p")
    assert (side.created, side.commit, side.tool) == (
        "2026-11-30T12:00:00Z",
        "c0ffee",
        "ci-gate 0.1.0",
    )
    assert side.task_filter == "ref*"
    assert side.digest == run.digest
    assert side.runs[0].agent.digest == "sha256:good"
    assert side.runs[0].model == "m"
    assert side.runs[0].run_digest == run.digest


def test_a_side_knows_the_causes_that_the_harness_recorded(desk) -> None:
    """The cause of a trial that did not pass is carried; a line without one has none."""
    causes = [Cause.AGENT, Cause.CONTAMINATED, None, None]
    records = [
        msgspec.structs.replace(record, cause=cause, reason="grader-error: x")
        for record, cause in zip(desk.records("refund -!-+"), causes, strict=True)
    ]

    side = to_side(desk.run(records))
    foreign = to_side(load_run(desk.lines(desk.minimal, desk.trial(status="failed"))))

    assert side.tasks["refund"].causes == {(0, 0): Cause.AGENT, (1, 0): Cause.CONTAMINATED}
    assert foreign.tasks["refund"].causes == {}


def test_a_cause_that_is_none_is_refused(desk) -> None:
    """The set is closed: another word is a mistake of whoever wrote the file."""
    path = desk.lines(desk.minimal, desk.trial(status="failed", cause="bad luck"))

    with pytest.raises(FileFormatError, match="Invalid enum value 'bad luck'"):
        load_run(path)


def test_a_small_file_cannot_ask_for_much_memory(desk) -> None:
    """Plans and indices that would need millions of outcomes are refused, not built."""
    plan = Plan(trials=10**6, max_repeats=10**4)
    tasks = [TrialRecord(task=f"t{n}", trial=0, status=Status.PASSED) for n in range(10)]

    with pytest.raises(FileFormatError, match="asks for 10000000 trials, at most 5000000"):
        to_side(load_run(desk.lines(desk.header(plan=plan), *tasks)))


def test_a_file_cut_while_it_is_read_is_said(desk, monkeypatch) -> None:
    """Lines that vanish between the two passes are an error that names the line."""
    path = desk.lines(desk.minimal, desk.trial(0), desk.trial(1))
    stream = canonical_lines(path)
    next(stream)

    path.write_bytes(path.read_bytes()[:-5])

    with pytest.raises(FileFormatError, match=":3: changed while it was read"):
        next(stream)


def test_a_run_that_goes_on_is_the_side_that_its_file_will_be(desk) -> None:
    """But for the digest and the measures, the records at hand say what the finished file does."""
    records = desk.records("refund +-!. cancel ++../+...", turns=5, reason="r", cost_usd=0.1)
    tasks = {"lookup": "sha256:lookup", "refund": "sha256:refund"}
    run = desk.run(records, trials=4)

    found = side_so_far(run.header, reversed(records), tasks=tasks)

    side = to_side(run, tasks=tasks)
    bare = {
        name: msgspec.structs.replace(task, measures={}, faulted=None, recovered=None, looped=None)
        for name, task in side.tasks.items()
    }
    assert side.tasks["refund"].measures
    assert found == msgspec.structs.replace(
        side, tasks=bare, digest=None, stop=None, complete=False, runs=found.runs
    )


@pytest.mark.parametrize(("extend", "planned"), [(False, 4), (True, 8)])
def test_an_extended_plan_has_grown_to_its_repeats(desk, extend: bool, planned: int) -> None:
    """What an extension added was planned when it was run."""
    plan = Plan(trials=4, max_repeats=4, extend=extend)

    side = to_side(desk.run(desk.records("refund ++++/++++"), plan=plan))

    assert side.planned == {"refund": planned}
