"""What a notebook or another tool imports as ``ci_gate``: runs in, verdicts out.

A thin layer over the store and the decision. It decides nothing, and loads numpy only when sides
are compared or foreseen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_gate.errors import Problem, UsageError, printable
from ci_gate.model.policy import Policy
from ci_gate.model.power import Prospect
from ci_gate.model.run import ERRORED, FAILED, NOT_RUN, PASSED, Baseline, Side, SideTask
from ci_gate.model.verdict import Verdict
from ci_gate.prng import derive_seed, format_seed, parse_seed, task_seed
from ci_gate.store.paths import mistake_in_id

__all__ = ["Run", "compare", "load", "power"]

_OUTCOMES = PASSED + FAILED + ERRORED + NOT_RUN


@dataclass(frozen=True)
class Run:
    """The outcomes of one suite, a trial a character.

    Attributes
    ----------
    side : Side
        The run in the form in which it is compared.
    """

    side: Side

    @classmethod
    def from_outcomes(
        cls,
        suite: str,
        outcomes: Mapping[str, str | Sequence[str]],
        root_seed: int | str | None = None,
    ) -> Run:
        """Make a run of outcomes that come from anywhere.

        Parameters
        ----------
        suite : str
            Its name.
        outcomes : mapping of str to str or sequence of str
            For each task a character a trial: ``+`` passed, ``-`` failed, ``!`` errored, ``.`` not
            run. A list of strings holds repeats over the same seeds, all of the same length.
        root_seed : int, str or None
            An integer or a hexadecimal string. Two runs of one root seed ran trial i of a task on
            the same seed. Without one, trials share their seeds with nothing.

        Raises
        ------
        UsageError
            An unknown character, repeats of different lengths, an impossible task id or seed; all
            of them at once.

        Examples
        --------
        >>> Run.from_outcomes("desk", {"refund": "++-+", "cancel": ["++!+", "+-.."]}).tasks
        ('cancel', 'refund')
        """
        tasks = {task: _repeats(runs) for task, runs in outcomes.items()}
        problems = [problem for task in tasks for problem in _problems(task, tasks[task])]
        seed = _root_seed(root_seed, problems)
        if problems:
            raise UsageError.of(problems)
        return cls(
            Side(
                kind="run",
                suite=suite,
                root_seed=None if seed is None else format_seed(seed),
                tasks={task: _side_task(task, tasks[task], seed) for task in sorted(tasks)},
                planned={task: sum(map(len, tasks[task])) for task in sorted(tasks)},
            )
        )

    @property
    def suite(self) -> str:
        """The suite's name."""
        return self.side.suite

    @property
    def tasks(self) -> tuple[str, ...]:
        """The ids of its tasks, sorted."""
        return tuple(sorted(self.side.tasks))

    @property
    def outcomes(self) -> dict[str, tuple[str, ...]]:
        """For each task a string a repeat, as ``from_outcomes`` takes them."""
        return {task: self.side.tasks[task].outcomes for task in self.tasks}


def _repeats(runs: str | Sequence[str]) -> tuple[str, ...]:
    return (runs,) if isinstance(runs, str) else tuple(runs)


def _problems(task: str, runs: tuple[str, ...]) -> list[Problem]:
    where = f"task {printable(task)}"
    mistake = mistake_in_id(task)
    if mistake:
        return [Problem(what=f"the id {mistake}", where=where)]
    if len({len(run) for run in runs}) != 1:
        lengths = ", ".join(str(len(run)) for run in runs) or "no repeat"
        hint = "Repeats are over the same seeds; `.` stands for a trial that was not run."
        return [Problem(what=f"repeats differ in length: {lengths}", where=where, hint=hint)]
    unknown = sorted({char for run in runs for char in run} - set(_OUTCOMES))
    if unknown:
        found = printable("".join(unknown))
        hint = "Outcomes are + passed, - failed, ! errored and . not run."
        return [Problem(what=f"unknown outcomes {found!r}", where=where, hint=hint)]
    return []


def _root_seed(root_seed: int | str | None, problems: list[Problem]) -> int | None:
    try:
        return None if root_seed is None else parse_seed(root_seed)
    except ValueError as error:
        problems.append(Problem(what=printable(error), where="root_seed"))
        return None


def _side_task(task: str, runs: tuple[str, ...], root_seed: int | None) -> SideTask:
    if root_seed is None:
        return SideTask(outcomes=runs)
    base = task_seed(root_seed, task)
    seeds = tuple(format_seed(derive_seed(base, trial)) for trial in range(len(runs[0])))
    return SideTask(outcomes=runs, seeds=seeds)


def load(path: str | os.PathLike[str]) -> Run | Baseline:
    """Read a run or a baseline; the schema in the file says which it is.

    Parameters
    ----------
    path : str or path-like

    Raises
    ------
    FileFormatError
        There is no such file, or it is neither.
    """
    from ci_gate.store import loading

    found = loading.load(Path(path))
    return found if isinstance(found, Baseline) else Run(loading.side_of(found))


def compare(
    baseline: Run | Baseline | Side | None,
    candidate: Run | Baseline | Side,
    policy: Policy | None = None,
) -> Verdict:
    """Judge a candidate against a baseline.

    Parameters
    ----------
    baseline : Run, Baseline or None
        None: there is none yet, and only floors and errors are judged.
    candidate : Run or Baseline
    policy : Policy or None
        None: the defaults.

    Returns
    -------
    Verdict
        The same for the same outcomes, whatever the order of the tasks.

    Raises
    ------
    UsageError
        The policy is impossible, or a side is none.
    """
    from ci_gate.config import policy_digest
    from ci_gate.decision.circumstances import Circumstances
    from ci_gate.decision.compare import compare as gather
    from ci_gate.decision.decide import decide
    from ci_gate.decision.policy_checks import require_judgeable

    chosen = Policy() if policy is None else policy
    require_judgeable(chosen)
    before = None if baseline is None else _side(baseline, "baseline")
    known = Circumstances(policy_digest=policy_digest(chosen))
    return decide(gather(before, _side(candidate, "candidate"), chosen, known), chosen, known)


def power(
    baseline: Run | Baseline | Side,
    policy: Policy | None = None,
    *,
    drops: Sequence[float] = (0.02, 0.05, 0.10),
    wanted: float = 0.8,
    trials: Sequence[int] = (),
    jobs: int = 1,
) -> Prospect:
    """Say what checks against a baseline would see, before one is run.

    Parameters
    ----------
    baseline : Run or Baseline
    policy : Policy or None
        None: the defaults.
    drops : sequence of float
        Drops of the suite's pass^1 that are to be seen, each in (0, 1).
    wanted : float
        The chance with which, in (0, 1).
    trials : sequence of int
        Trials a task to try; empty: the fewest that do are looked for.
    jobs : int
        Trials at a time, for durations; at least 1.

    Returns
    -------
    Prospect
        The same for the same outcomes, whatever the order of the tasks.

    Raises
    ------
    UsageError
        The question or the policy is impossible, or the baseline cannot answer it.
    """
    from ci_gate.decision.power import Question, foresee

    question = Question(drops=tuple(drops), power=wanted, trials=tuple(trials), jobs=jobs)
    return foresee(_side(baseline, "baseline"), Policy() if policy is None else policy, question)


def _side(found: object, name: str) -> Side:
    if isinstance(found, Run):
        return found.side
    if isinstance(found, Baseline):
        from ci_gate.store.loading import side_of

        return side_of(found)
    if isinstance(found, Side):
        return found
    what = f"the {name} is a {type(found).__name__}"
    raise UsageError(what, hint="Pass what ci_gate.load or Run.from_outcomes returns.")
