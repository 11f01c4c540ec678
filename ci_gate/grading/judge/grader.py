"""The grader ``judge``: votes of a model on a rubric, of which more than half must pass.

Decides the grade of a trial. A judge out of reach makes the trial errored; one that gives no sound
grade fails it.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ci_gate.errors import printable
from ci_gate.grading.databases import UnusableError
from ci_gate.grading.judge.endpoint import AskJudge, JudgeDown
from ci_gate.grading.judge.options import validate
from ci_gate.grading.judge.prompt import LONGEST_ANSWER, Asked, ask
from ci_gate.grading.judge.question import JudgeParameters, Question, question_of
from ci_gate.grading.judge.reply import Majority, Reply, Vote, majority, vote_of
from ci_gate.grading.judge.showing import parts_of_trial
from ci_gate.grading.state.difference import difference
from ci_gate.grading.state.grader import InitialStates
from ci_gate.grading.state.snapshot import Parts, Places, snapshot
from ci_gate.grading.state.unchanged import uncovered
from ci_gate.model.suite import GraderSpec, PlannedTrial
from ci_gate.model.trial import Cause, Grade, Trajectory
from ci_gate.ports import TrialErrored, TrialSandbox
from ci_gate.prng import derive_seed

__all__ = ["JudgeGrader", "JudgePort", "build", "validate"]

_MOST_CHANGES = 1_000
_EVERYTHING = Parts(tables=None, files=True, messages=True, payments=True)


class JudgePort(NamedTuple):
    """A judge that can be asked.

    Parameters
    ----------
    parameters : JudgeParameters
    ask : AskJudge
    """

    parameters: JudgeParameters
    ask: AskJudge


class JudgeGrader:
    """Passes when more than half of the votes pass.

    Parameters
    ----------
    name : str
    question : Question
    ask : AskJudge
    states : InitialStates
        For the difference in the world, where the judge is shown it.
    """

    def __init__(
        self, name: str, question: Question, *, ask: AskJudge, states: InitialStates
    ) -> None:
        self._name = name
        self._question = question
        self._digest = question.digest
        self._ask = ask
        self._states = states

    async def grade(
        self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox
    ) -> Grade:
        """Return what the judge says of the trial.

        Raises
        ------
        TrialErrored
            The judge is out of reach.
        """
        if trajectory.answer is None:
            return self._failed("the agent gave no answer")
        if len(trajectory.answer) > LONGEST_ANSWER:
            length = len(trajectory.answer)
            return self._failed(f"{length} characters; {LONGEST_ANSWER} are the most it is shown")
        found = await self._majority(trial, trajectory, sandbox)
        return Grade(
            grader=self._name,
            passed=found.passed,
            reason=printable(found.why, limit=500) or None,
            score=found.share if self._question.votes > 1 else None,
            judge=self._digest,
        )

    def _failed(self, reason: str) -> Grade:
        return Grade(grader=self._name, passed=False, reason=reason)

    async def _majority(
        self, trial: PlannedTrial, trajectory: Trajectory, sandbox: TrialSandbox
    ) -> Majority:
        state = ""
        if "state" in self._question.shown:
            state = await asyncio.to_thread(self._changes, trial, sandbox)
        parts = parts_of_trial(trial.task, trajectory, self._question.shown, state=lambda: state)
        seeds = [derive_seed(trial.seed, number) for number in range(self._question.votes)]
        requests = [ask(self._question, parts, seed=seed) for seed in seeds]
        replies = await asyncio.gather(*map(self._replied, requests), return_exceptions=True)
        return majority([self._vote(reply) for reply in replies])

    async def _replied(self, asked: Asked) -> Reply:
        try:
            return await self._ask(asked)
        except JudgeDown as error:
            raise TrialErrored(error.reason, Cause.ENVIRONMENT) from error

    def _vote(self, reply: Reply | BaseException) -> Vote:
        if isinstance(reply, BaseException):
            raise reply
        return vote_of(reply, self._question)

    def _changes(self, trial: PlannedTrial, sandbox: TrialSandbox) -> str:
        places = Places(
            folder=sandbox.folder,
            database=sandbox.database,
            workdir=sandbox.workdir,
            postgres=sandbox.postgres,
        )
        try:
            before, after = self._states.of(trial, _EVERYTHING), snapshot(places, _EVERYTHING)
            lines = uncovered(difference(before, after), (), before, after)
        except UnusableError as error:
            return f"the state cannot be read: {error}"
        shown = [line() for line in lines[:_MOST_CHANGES]]
        if len(lines) > len(shown):
            shown.append(f"[{len(lines) - len(shown)} more changes left out]")
        return "\n".join(shown) or "nothing changed"


def build(spec: GraderSpec, *, judge: JudgePort | None, states: InitialStates) -> JudgeGrader:
    """Return the grader of options that ``validate`` has passed.

    Parameters
    ----------
    spec : GraderSpec
    judge : JudgePort or None
        None where nothing may be asked: each trial is errored then.
    states : InitialStates
    """
    port = judge or JudgePort(JudgeParameters(model=""), _unreachable)
    question = question_of(spec.options, port.parameters)
    return JudgeGrader(spec.name, question, ask=port.ask, states=states)


async def _unreachable(_: object) -> Reply:
    raise JudgeDown("no judge can be asked here: [judge] names none")
