"""Runs into a baseline: which runs belong together, what moves the bar, what may serve as one.

This module decides when two runs are repeats over the same seeds, and whether a baseline is
admitted. It must not know files' layout, nor how two sides are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from ci_gate.errors import BaselineError, Problem, printable
from ci_gate.model.copies import copies_of, without_copies
from ci_gate.model.policy import within_rate
from ci_gate.model.run import (
    ERRORED,
    FAILED,
    NOT_RUN,
    PASSED,
    AgentRef,
    Baseline,
    BaselineRun,
    BaselineTask,
    ErrorPolicy,
    SideTask,
    StopReason,
)
from ci_gate.store.answers import dumped
from ci_gate.store.baselines import to_side as side_of_baseline
from ci_gate.store.measures import STANDARD, rounded
from ci_gate.store.runs import RunFile, to_side

__all__ = ["admit", "from_run", "moves_bar", "pool"]

_COUNTS: Final = ("faulted", "recovered", "looped")
_MOST_NAMED: Final = 5
_STOPPED_BY_OUTCOMES: Final = frozenset({StopReason.CURTAILED_PASS, StopReason.CURTAILED_REGRESSED})
_CUT_SHORT: Final = frozenset({StopReason.INTERRUPTED, StopReason.BUDGET})


def from_run(run: RunFile, *, forced: bool = False) -> Baseline:
    """Return a baseline of one run file: an entry of ``runs`` for each repeat that has trials.

    Parameters
    ----------
    run : RunFile
    forced : bool
        Recorded with each run: it was admitted against the rules.

    Raises
    ------
    BaselineError
        The file has no trials, or they were answered from recordings.
    """
    if not run.records:
        raise BaselineError("has no trials, so it cannot be a baseline", where=run.name)
    if run.header.mode is not None:
        raise BaselineError(
            f"was answered from recordings (mode {run.header.mode}), so nothing was measured anew",
            where=run.name,
            hint="Give the run that was recorded, or none for a deep run.",
        )
    side, header = to_side(run), run.header
    repeats = sorted(run.repeat_digests)
    lengths = [len(task.outcomes[0]) for task in side.tasks.values()]
    trials = max(lengths) if header.plan is None else header.plan.trials
    return Baseline(
        suite=header.suite,
        suite_digest=header.suite_digest,
        root_seed=side.root_seed,
        trials=trials,
        errors=header.errors,
        faults_digest=header.faults_digest,
        judge_digest=header.judge_digest,
        runs=tuple(_provenance(run, repeat, forced=forced) for repeat in repeats),
        tasks={task: _entry(one, trials, repeats) for task, one in side.tasks.items()},
    )


def _provenance(run: RunFile, repeat: int, *, forced: bool) -> BaselineRun:
    agent = run.header.agent or AgentRef()
    return BaselineRun(
        # A clean work tree is the rule and not said.
        agent=msgspec.structs.replace(agent, dirty=agent.dirty or None),
        model=run.header.model,
        forced=forced,
        run_digest=run.repeat_digests[repeat],
    )


def _entry(task: SideTask, trials: int, repeats: Sequence[int]) -> BaselineTask:
    length = len(task.outcomes[0])
    measures = {
        name: tuple(rounded(values[repeat]) for repeat in repeats)
        for name, values in task.measures.items()
    }
    own = {name: values for name, values in measures.items() if name not in STANDARD}
    process = {
        name: tuple(rounded(values[repeat]) for repeat in repeats)
        for name, values in task.process.items()
    }
    counts: dict[str, Any] = {name: _chosen(getattr(task, name), repeats) for name in _COUNTS}
    standard: dict[str, Any] = {name: measures.get(name) for name in STANDARD}
    return BaselineTask(
        digest=task.digest,
        outcomes=tuple(_outcomes(task.outcomes[repeat]) for repeat in repeats),
        trials=None if length == trials else length,
        measures=own or None,
        process=process or None,
        answers=dumped(task.answers, length, repeats),
        **counts,
        **standard,
    )


def _chosen(
    counts: Sequence[int | None] | None, repeats: Sequence[int]
) -> tuple[int | None, ...] | None:
    return None if counts is None else tuple(counts[repeat] for repeat in repeats)


def _outcomes(outcomes: str) -> str:
    """Return the outcomes of a task in a run, nothing where the run did not have the task."""
    return outcomes if outcomes.strip(NOT_RUN) else ""


def pool(existing: Baseline | None, runs: Sequence[RunFile], *, forced: bool = False) -> Baseline:
    """Return the baseline after an update with runs.

    Runs of the suite, seeds and agent of the existing baseline become further repeats of it; runs
    of another agent, suite, plan or conditions replace it. A run whose digest is already there adds
    nothing. An agent without a digest is never the same as another.

    Parameters
    ----------
    existing : Baseline or None
    runs : sequence of RunFile
        At least one.
    forced : bool
        Recorded with the runs that are added.

    Raises
    ------
    BaselineError
        No run was given, one has no trials, or the given runs do not belong together.
    """
    if not runs:
        raise BaselineError("no run was given to make a baseline of")
    given = from_run(runs[0], forced=forced)
    for run in runs[1:]:
        other = from_run(run, forced=forced)
        _check_together(given, other, run.name)
        given = _merged(given, other)
    if existing is None:
        return given
    if _adds_nothing(existing, given):
        return existing
    return _merged(existing, given) if _is_further_repeat(existing, given) else given


def _check_together(given: Baseline, other: Baseline, name: str) -> None:
    differences = list(_differences(given, other))
    if differences:
        what = f"does not belong to the runs before it: {'; '.join(differences)}"
        hint = "Give runs of one agent, suite and plan, or update with one after the other."
        raise BaselineError(what, where=name, hint=hint)


def _differences(given: Baseline, other: Baseline) -> Iterator[str]:
    for name, then, now in _conditions(given, other):
        if then != now:
            yield f"{name} {printable(_shown(then))}, now {printable(_shown(now))}"
    for task in sorted(given.tasks.keys() & other.tasks.keys()):
        if _identity(given.tasks[task]) != _identity(other.tasks[task]):
            yield f"task {printable(task)} has another digest or number of trials"


def _conditions(given: Baseline, other: Baseline) -> Iterator[tuple[str, Any, Any]]:
    for name, value in _CONDITIONS.items():
        yield name, value(given), value(other)


_CONDITIONS: Final[Mapping[str, Callable[[Baseline], Any]]] = {
    "suite": lambda baseline: baseline.suite,
    "suite digest": lambda baseline: baseline.suite_digest,
    "root seed": lambda baseline: baseline.root_seed,
    "trials": lambda baseline: baseline.trials,
    "errors": lambda baseline: baseline.errors,
    "faults digest": lambda baseline: baseline.faults_digest,
    "judge digest": lambda baseline: baseline.judge_digest,
    "agent digest": lambda baseline: baseline.runs[-1].agent.digest,
}


def _shown(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _identity(task: BaselineTask) -> tuple[Any, ...]:
    return task.digest, task.trials


def _adds_nothing(existing: Baseline, given: Baseline) -> bool:
    known = {run.run_digest for run in existing.runs}
    same_agent = given.runs[-1].agent.digest == existing.runs[-1].agent.digest
    return same_agent and all(run.run_digest in known for run in given.runs)


def _is_further_repeat(existing: Baseline, given: Baseline) -> bool:
    # Two agents that nobody could identify are not known to be the same.
    identified = given.runs[-1].agent.digest is not None
    return identified and not any(_differences(existing, given))


def _merged(first: Baseline, second: Baseline) -> Baseline:
    """Return the baseline with the runs of both, each once."""
    known = {run.run_digest for run in first.runs}
    kept = range(len(first.runs))
    added = [at for at, run in enumerate(second.runs) if run.run_digest not in known]
    tasks = {
        name: _joined(_Half(first.tasks.get(name), kept), _Half(second.tasks.get(name), added))
        for name in sorted(first.tasks.keys() | second.tasks.keys())
    }
    runs = (*first.runs, *(second.runs[at] for at in added))
    return msgspec.structs.replace(first, runs=runs, tasks=tasks)


class _Half(NamedTuple):
    """A task of one of two baselines and the runs that are taken from it."""

    task: BaselineTask | None
    runs: Sequence[int]


def _joined(first: _Half, second: _Half) -> BaselineTask:
    halves = (first, second)
    entries = [half.task for half in halves if half.task is not None]
    rows: dict[str, Any] = {
        name: _known(_row(halves, attrgetter(name), None))
        for name in (*_COUNTS, *STANDARD, "answers")
    }
    named = {kind: _named_rows(kind, halves) for kind in ("measures", "process")}
    outcomes = _row(halves, attrgetter("outcomes"), "")
    return msgspec.structs.replace(entries[0], outcomes=outcomes, **named, **rows)


def _named_rows(kind: str, halves: Sequence[_Half]) -> dict[str, Any] | None:
    """Return the rows of measures that a task has by their names; None where there are none."""
    entries = [half.task for half in halves if half.task is not None]
    names = sorted({name for entry in entries for name in getattr(entry, kind) or ()})
    return {name: _row(halves, _named(kind, name), None) for name in names} or None


def _named(kind: str, name: str) -> Callable[[BaselineTask], Any]:
    return lambda task: (getattr(task, kind) or {}).get(name)


def _row(
    halves: Sequence[_Half], values_of: Callable[[BaselineTask], Any], absent: Any
) -> tuple[Any, ...]:
    return tuple(value for half in halves for value in _part(half, values_of, absent))


def _part(half: _Half, values_of: Callable[[BaselineTask], Any], absent: Any) -> list[Any]:
    values = None if half.task is None else values_of(half.task)
    return [absent if values is None else values[at] for at in half.runs]


def _known(row: tuple[Any, ...]) -> tuple[Any, ...] | None:
    return row if any(value is not None for value in row) else None


def moves_bar(existing: Baseline | None, updated: Baseline) -> bool:
    """Return whether an update changed an outcome or a digest; if not, nothing is to be written.

    Measures alone (a run took longer) move nothing.
    """
    return existing is None or _bar(existing) != _bar(updated)


def _bar(baseline: Baseline) -> tuple[Any, ...]:
    conditions = [value(baseline) for value in _CONDITIONS.values()]
    runs = [(run.agent.digest, run.run_digest, run.forced) for run in baseline.runs]
    tasks = {
        name: (task.digest, task.trials, task.outcomes) for name, task in baseline.tasks.items()
    }
    return conditions, runs, tasks


def admit(
    baseline: Baseline,
    *,
    ks: Sequence[int],
    max_errored_rate: float,
    runs: Sequence[RunFile] = (),
) -> list[Problem]:
    """Return why a baseline cannot serve; nothing where it can.

    Parameters
    ----------
    baseline : Baseline
    ks : sequence of int
        The k of each metric of the policy; the largest needs that many judged trials of every task,
        and without any a task needs one.
    max_errored_rate : float
        Share of the trials that may have errored, 0 to 1; not looked at where errors count as
        failures.
    runs : sequence of RunFile
        The runs that the update was made of.

    Notes
    -----
    Refused are: a run that was cut short, was stopped by its outcomes or holds a part of the suite,
    a run each of whose trials is a copy, trials that were not run, a task with too few judged
    trials for the largest k (the gate would not see it break; copies are no trials), too many
    errored trials, not a single passing trial.
    """
    problems = [problem for run in runs for problem in _mistakes_of_run(run)]
    outcomes = "".join(row for task in baseline.tasks.values() for row in task.outcomes)
    where = f"baseline of {printable(baseline.suite)}"
    mistakes = [
        _not_run(outcomes),
        _replayed(baseline),
        _too_few_judged(baseline, max(ks, default=1)),
        _too_many_errors(baseline, outcomes, max_errored_rate),
        None if PASSED in outcomes else "not a single trial passed",
    ]
    return [*problems, *(Problem(what=one, where=where) for one in mistakes if one is not None)]


def _mistakes_of_run(run: RunFile) -> Iterator[Problem]:
    if not run.complete or (run.footer and run.footer.stop.reason in _CUT_SHORT):
        yield Problem(what="the run was cut short", where=run.name, hint="Continue it by --resume.")
    if run.footer and run.footer.stop.reason in _STOPPED_BY_OUTCOMES:
        what = "the run was stopped by its own outcomes, so that what is in it is no fair sample"
        hint = "`ci-gate baseline update` without a run makes a whole one; so does curtail = false."
        yield Problem(what=what, where=run.name, hint=hint)
    for name, value in (("--task", run.header.task_filter), ("--shard", run.header.shard)):
        if value is not None:
            what = f"the run holds a part of the suite ({name} {printable(value)})"
            yield Problem(what=what, where=run.name)


def _not_run(outcomes: str) -> str | None:
    missing = outcomes.count(NOT_RUN)
    return f"{missing} of {len(outcomes)} trials were not run" if missing else None


def _replayed(baseline: Baseline) -> str | None:
    """Return which runs measured nothing: each of their trials is a copy or came from a cache."""
    tasks = side_of_baseline(baseline).tasks.values()
    replayed = Counter(repeat for task in tasks for _, repeat in copies_of(task).replayed)
    copied = [at for at, number in sorted(replayed.items()) if number == _judged_in(tasks, at)]
    if not copied:
        return None
    shown = ", ".join(f"runs[{at}]" for at in copied[:_MOST_NAMED])
    more = f" and {len(copied) - _MOST_NAMED} more" if len(copied) > _MOST_NAMED else ""
    return (
        f"{shown}{more} of {len(baseline.runs)} measured nothing: every trial is a copy, with the "
        "models' answers of an earlier trial or from a cache"
    )


def _judged_in(tasks: Iterable[SideTask], run: int) -> int:
    return sum(task.outcomes[run].count(char) for task in tasks for char in (PASSED, FAILED))


def _too_few_judged(baseline: Baseline, k: int) -> str | None:
    tasks = without_copies(side_of_baseline(baseline)).tasks
    judged = {name: _judged(task, baseline.errors) for name, task in tasks.items()}
    short = [f"{printable(name)} has {number}" for name, number in judged.items() if number < k]
    if not short:
        return None
    more = f" and {len(short) - _MOST_NAMED} more" if len(short) > _MOST_NAMED else ""
    trials = "1 judged trial" if k == 1 else f"{k} judged trials"
    return f"pass^{k} needs {trials} of each task: {', '.join(short[:_MOST_NAMED])}{more}"


def _judged(task: SideTask, errors: ErrorPolicy) -> int:
    counted = PASSED + FAILED + (ERRORED if errors == "fail" else "")
    return sum(outcomes.count(char) for outcomes in task.outcomes for char in counted)


def _too_many_errors(baseline: Baseline, outcomes: str, limit: float) -> str | None:
    errored = outcomes.count(ERRORED)
    ran = errored + outcomes.count(PASSED) + outcomes.count(FAILED)
    if baseline.errors == "fail" or within_rate(errored, ran, limit):
        return None
    return f"{errored} of {ran} trials errored, at most {limit:.1%} may"
