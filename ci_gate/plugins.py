"""Which implementations exist: one explicit table for each kind, and nothing found by itself."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ci_gate.agents.command import CommandAgent
from ci_gate.agents.exit_code import ExitCodeAgent
from ci_gate.agents.python_agent import PythonAgent
from ci_gate.agents.strictness import Strictness, require_python
from ci_gate.errors import printable
from ci_gate.grading import answer, file, own, rules, sql
from ci_gate.grading.judge import grader as judge
from ci_gate.grading.judge.grader import JudgePort
from ci_gate.grading.own import CallGrader, InitialState
from ci_gate.grading.state import grader as state
from ci_gate.grading.state.grader import InitialStates
from ci_gate.model.agent import AgentSpec, FaultPolicy
from ci_gate.model.suite import GraderSpec, Task
from ci_gate.ports import Agent, Grader, GraderCost, GradersByTask, RankedGrader

__all__ = [
    "AGENTS",
    "GRADERS",
    "GraderKind",
    "GraderPorts",
    "agent_of",
    "grader_problems",
    "graders_of",
]

AGENTS: Final[Mapping[str, Callable[[AgentSpec, int, bool, Strictness], Agent]]] = {
    "python": lambda spec, jobs, real, strictness: PythonAgent(
        spec, jobs=jobs, real_delays=real, strictness=strictness
    ),
    "command": lambda spec, jobs, real, strictness: CommandAgent(spec),
    "exit-code": lambda spec, jobs, real, strictness: ExitCodeAgent(spec),
}
"""By protocol; given the agent, the number of trials at a time, whether delays are real, and what
the trials are held to."""


class GraderPorts(NamedTuple):
    """What graders that leave the process are handed.

    Parameters
    ----------
    call : CallGrader
        Runs a function of the team's own in a worker.
    initial : InitialState
        Places of the world as it was at the start of a trial.
    states : InitialStates or None
        What lies in those places, where somebody has read it already.
    judge : JudgePort or None
        The model that grades; None: nothing may be asked.
    """

    call: CallGrader
    initial: InitialState
    states: InitialStates | None = None
    judge: JudgePort | None = None


class GraderKind(NamedTuple):
    """One kind of grader.

    Parameters
    ----------
    validate : callable
        Returns what is wrong with a spec's options as sentences.
    build : callable
        Returns the grader of a spec that ``validate`` has passed.
    cost : GraderCost
        What asking it takes, and so when it is asked.
    sees_world : bool
        It may look at what the trial left, so that it cannot judge where that is unknown.
    """

    validate: Callable[[GraderSpec], Sequence[str]]
    build: Callable[[GraderSpec, GraderPorts], Grader]
    cost: GraderCost = GraderCost.LOOK
    sees_world: bool = True

    def made(self, spec: GraderSpec, ports: GraderPorts) -> RankedGrader:
        """Return the grader of a spec with its rank."""
        return RankedGrader(self.build(spec, ports), self.cost)


GRADERS: Final[Mapping[str, GraderKind]] = {
    "answer": GraderKind(answer.validate, lambda spec, _: answer.build(spec), sees_world=False),
    "sql": GraderKind(sql.validate, lambda spec, _: sql.build(spec)),
    "file": GraderKind(file.validate, lambda spec, _: file.build(spec)),
    "state": GraderKind(
        state.validate,
        lambda spec, ports: state.build(spec, states=ports.states or InitialStates(ports.initial)),
    ),
    "python": GraderKind(
        own.validate,
        lambda spec, ports: own.build(spec, call=ports.call, initial=ports.initial),
        GraderCost.OWN,
    ),
    "rules": GraderKind(
        rules.validate, lambda spec, _: rules.build(spec), GraderCost.RULE, sees_world=False
    ),
    "judge": GraderKind(
        judge.validate,
        lambda spec, ports: judge.build(
            spec, judge=ports.judge, states=ports.states or InitialStates(ports.initial)
        ),
        GraderCost.JUDGE,
    ),
}


def agent_of(
    spec: AgentSpec,
    *,
    jobs: int,
    faults: FaultPolicy | None,
    strictness: Strictness | None = None,
) -> Agent:
    """Return the agent that a configuration describes, not yet started.

    Parameters
    ----------
    spec : AgentSpec
    jobs : int
        Trials at a time.
    faults : FaultPolicy or None
        Says whether an injected delay is waited for.
    strictness : Strictness or None
        What the trials are held to; None: to nothing but the configuration.

    Raises
    ------
    AgentSetupError
        They are to be held to something that an agent of this protocol cannot be held to.
    """
    strictness = strictness or Strictness()
    require_python(spec, strictness)
    real_delays = faults is not None and faults.real_delays
    return AGENTS[spec.protocol](spec, jobs, real_delays, strictness)


def grader_problems(spec: GraderSpec) -> list[str]:
    """Return what is wrong with a grader of a task file, without a place.

    Parameters
    ----------
    spec : GraderSpec
    """
    kind = GRADERS.get(spec.type)
    if kind is not None:
        return list(kind.validate(spec))
    near = difflib.get_close_matches(spec.type, GRADERS, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"types are {', '.join(GRADERS)}"
    return [f"unknown type of grader {printable(spec.type)!r}; {hint}"]


def graders_of(tasks: Iterable[Task], ports: GraderPorts) -> GradersByTask:
    """Return the graders of each task by its id, the cheapest first.

    Those of equal cost keep the order of the task file.

    Parameters
    ----------
    tasks : iterable of Task
        With graders that have no ``grader_problems``.
    ports : GraderPorts
    """
    return {task.id: _ranked(task, ports) for task in tasks}


def _ranked(task: Task, ports: GraderPorts) -> tuple[RankedGrader, ...]:
    made = [GRADERS[spec.type].made(spec, ports) for spec in task.graders]
    return tuple(sorted(made, key=lambda one: one.cost))
