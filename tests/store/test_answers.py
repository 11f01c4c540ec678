"""By which answers trials are known again: in runs, in baselines, and what is no measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ci_gate.errors import FileFormatError
from ci_gate.model.trial import Answers, TrialRecord
from ci_gate.store.baselines import dump_baseline, parse_baseline, to_side
from ci_gate.store.pooling import admit, from_run, pool
from ci_gate.store.runs import RunFile
from ci_gate.store.runs import to_side as side_of_run


def named(number: int) -> str:
    """Return a digest of answers."""
    return f"{number:016x}"


def answered(
    records: list[TrialRecord], answers: Callable[[TrialRecord], Answers | None]
) -> list[TrialRecord]:
    """Return the records with what is known of their answers."""
    return [msgspec.structs.replace(one, answers=answers(one)) for one in records]


def fresh(record: TrialRecord) -> Answers:
    """Return answers that no other trial has."""
    return Answers(digest=named(7), responses=named(100 * record.repeat + record.trial))


def replayed(record: TrialRecord) -> Answers:
    """Return answers that the trial of the same seed index in every repeat has."""
    return Answers(responses=named(record.trial))


@pytest.fixture
def run_of(desk: Any) -> Callable[..., RunFile]:
    """Return a function that writes a run of which answers are known."""

    def write(
        notation: str, answers: Callable[[TrialRecord], Answers | None], name: str = "desk"
    ) -> RunFile:
        return desk.run(answered(desk.records(notation), answers), name, trials=8)

    return write


def test_what_shows_copies_reaches_the_side(run_of: Any) -> None:
    """Names and the word of a cache do; equal bytes alone are one flag a task."""
    words = (fresh, lambda _: Answers(cached=True), lambda _: Answers(digest=named(1)))

    sides = [side_of_run(run_of("a ++", word)).tasks["a"] for word in words]

    assert [side.answers for side in sides[:2]] == [
        {(0, 0): fresh_at(0), (1, 0): fresh_at(1)},
        {(0, 0): Answers(cached=True), (1, 0): Answers(cached=True)},
    ]
    assert sides[2].answers == {}
    assert [side.identical for side in sides] == [True, False, True]


def fresh_at(trial: int) -> Answers:
    """Return the fresh answers of a seed index in the first run."""
    return Answers(digest=named(7), responses=named(trial))


@pytest.mark.parametrize(
    ("notation", "identical"), [("a ++", True), ("a +-", True), ("a +!", False)]
)
def test_one_trial_is_not_identical_with_itself(
    run_of: Any, notation: str, identical: bool
) -> None:
    """It takes two that were judged, however they ended."""
    run = run_of(notation, lambda _: Answers(digest=named(1)))

    assert side_of_run(run).tasks["a"].identical is identical


def test_answers_survive_in_a_baseline(run_of: Any) -> None:
    """A baseline says of each run what its trials can be known by, in a word a trial."""
    known = {0: Answers(responses=named(5)), 1: Answers(cached=True)}
    known[2] = Answers(responses=named(6), cached=True)
    run = run_of("a +++-/+++- b ++++", lambda record: known.get(record.trial + 9 * record.repeat))

    baseline = from_run(run)
    read = parse_baseline(dump_baseline(baseline), name="x")

    none = " - - - -"
    words = f"{named(5)} = ={named(6)} -{none}"
    assert read.tasks["a"].answers == (words, None)
    assert to_side(read).tasks["a"].answers == {(trial, 0): one for trial, one in known.items()}
    assert dump_baseline(read) == dump_baseline(baseline)


def test_a_baseline_of_which_nothing_is_known_has_no_answers(run_of: Any) -> None:
    """Its bytes are those of a baseline before there were answers."""
    assert b"answers" not in dump_baseline(from_run(run_of("a ++++++++", lambda _: None)))


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["- -"], "2 words for 8 trials"),
        (["x" + " -" * 7], "contains 'x'"),
        (["=" * 2 + " -" * 7], "contains '=='"),
        (["0123" + " -" * 7], "contains '0123'"),
        ([None, None], "answers has 2 entries for 1 runs"),
    ],
)
def test_a_bad_word_is_named(run_of: Any, answers: list[str | None], words: str) -> None:
    """A reader is told which word is none, and of how many trials."""
    baseline = from_run(run_of("a ++++++++", fresh))
    task = msgspec.structs.replace(baseline.tasks["a"], answers=tuple(answers))
    broken = msgspec.structs.replace(baseline, tasks={"a": task})

    with pytest.raises(FileFormatError, match=words):
        parse_baseline(dump_baseline(broken), name="x")


def mistakes(*runs: RunFile) -> str:
    """Return why the baseline of some runs cannot serve."""
    problems = admit(pool(None, runs), ks=(1, 8), max_errored_rate=0.05, runs=runs)
    return "; ".join(problem.what for problem in problems)


def test_fresh_repeats_make_a_baseline(run_of: Any) -> None:
    """Answers that are new in every run are what a baseline is made of."""
    assert mistakes(run_of("a ++++++++/+++++++-", fresh)) == ""


def test_a_run_that_repeats_another_is_no_measurement(run_of: Any) -> None:
    """A second run replayed from a cache is refused, by its answers."""
    run = run_of("a ++++++++/++++++++ b +-++++++/+-++++++", replayed)

    assert mistakes(run).startswith("runs[1] of 2 measured nothing")


def test_a_run_that_is_pooled_must_be_new(run_of: Any) -> None:
    """The answers that a baseline keeps refuse a later update with a replay of it."""
    first = run_of("a ++++++++", replayed, "one")
    again = run_of("a ++++++++", replayed, "two")
    fields = {"digest": "sha256:other", "repeat_digests": {0: "sha256:other"}}
    again = msgspec.structs.replace(again, **fields)
    kept = parse_baseline(dump_baseline(pool(None, [first])), name="x")

    pooled = pool(kept, [again])

    assert len(pooled.runs) == 2
    problems = admit(pooled, ks=(1, 8), max_errored_rate=0.05)
    assert next(one.what for one in problems).startswith("runs[1] of 2 measured nothing")


def test_a_run_from_a_cache_is_no_measurement(run_of: Any) -> None:
    """Whether or not its answers are known."""
    run = run_of("a +++-++++", lambda _: Answers(cached=True))

    assert mistakes(run).startswith("runs[0] of 1 measured nothing")


def test_copies_do_not_make_a_task_deep(run_of: Any) -> None:
    """Eight trials of one answer are one trial, too few for pass^8."""
    run = run_of("a ++++++++ b ++++++++", lambda r: replayed(r) if r.task == "a" else _same(r))

    assert mistakes(run) == "pass^8 needs 8 judged trials of each task: b has 1"


def _same(record: TrialRecord) -> Answers:
    return Answers(responses=named(9))
