"""``judge calibrate``: hold a judge against people's labels and keep what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ci_gate import codec
from ci_gate.engine.executors import run_locally
from ci_gate.errors import JudgeError, Problem, printable
from ci_gate.gate.judges import (
    JudgeUse,
    address_of,
    calibration_path,
    uses_of,
)
from ci_gate.gate.project import Project, Word, open_project, refuse_privileged_event
from ci_gate.gate.suites import configured_suite
from ci_gate.grading.judge.calibrating import Compared, calibration_of, family_of, weakness
from ci_gate.grading.judge.endpoint import AskJudge, Endpoint, JudgeDown, require_client
from ci_gate.grading.judge.prompt import LONGEST_ANSWER, ask
from ci_gate.grading.judge.question import Question
from ci_gate.grading.judge.reply import Vote, majority, vote_of
from ci_gate.grading.judge.showing import text_of_input
from ci_gate.model.judges import Calibration
from ci_gate.model.suite import Task
from ci_gate.prng import derive_seed
from ci_gate.store.calibrations import Label, dump_calibration, parse_labels
from ci_gate.store.files import read_whole, write_whole
from ci_gate.store.folders import make_real_folder

__all__ = ["CalibrateRequest", "Calibrated", "calibrate"]

_NEEDED = ("steps", "state")


class CalibrateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What ``judge calibrate`` was asked; None is what the user did not say.

    ``judge`` is a task's id, or ``TASK/GRADER`` where it has several judges.
    """

    labels: Path
    judge: str | None
    config_path: Path | None
    suite: str | None
    environment: Mapping[str, str]


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """A calibration and what follows.

    Attributes
    ----------
    calibration : Calibration
    path : Path
        Where it was written.
    min_kappa : float
    weakness : str or None
        Why this judge cannot gate, None where it can.
    remarks : tuple of str
        What was noticed about the labels.
    """

    calibration: Calibration
    path: Path
    min_kappa: float
    weakness: str | None
    remarks: tuple[str, ...] = ()


class _Item(msgspec.Struct, frozen=True, kw_only=True):
    """A label with the parts that the judge is shown."""

    label: Label
    parts: Mapping[str, str]


def calibrate(request: CalibrateRequest) -> Calibrated:
    """Ask the judge about every label, in both orders of the parts, and keep the calibration.

    Raises
    ------
    JudgeError
        The suite has no such judge, or the judge cannot be asked; nothing is written.
    FileFormatError
        The file of labels is none.
    """
    refuse_privileged_event(request.environment)
    project = open_project(
        request.config_path,
        output=None,
        baseline_ref=None,
        word=Word.OWN,
        environment=request.environment,
    )
    uses = _chosen(_all_uses(project, request), request.judge)
    content = read_whole(request.labels)
    items, remarks = _items(parse_labels(content, name=printable(request.labels)), uses)
    require_client()
    endpoint = Endpoint(address_of(project.config, request.environment))
    question = uses[0].question
    compared = run_locally(lambda: _compared(endpoint, question, items))
    found = calibration_of(question, compared, labels_digest=codec.digest_bytes(content))
    path = calibration_path(project, found.digest)
    make_real_folder(path.parent)
    write_whole(path, dump_calibration(found))
    min_kappa = project.config.judge.min_kappa
    return Calibrated(
        calibration=found,
        path=path,
        min_kappa=min_kappa,
        weakness=weakness(found, min_kappa),
        remarks=tuple(remarks),
    )


def _all_uses(project: Project, request: CalibrateRequest) -> list[JudgeUse]:
    uses = [
        use
        for suite in project.suites(request.suite)
        for use in uses_of(
            configured_suite(project.config, suite, trials=None, task_filter=None), project.config
        )
    ]
    if not uses:
        raise JudgeError(
            "no task has a grader of type judge",
            where=printable(project.path),
            hint="docs/tasks.md says how to write one.",
        )
    return uses


def _chosen(uses: Sequence[JudgeUse], named: str | None) -> list[JudgeUse]:
    """Return every use of the one judge that is meant.

    Raises
    ------
    JudgeError
        There is no such judge, or the name fits several.
    """
    meant = [use for use in uses if named is None or named in _names(use)]
    digests = {use.question.digest for use in meant}
    if len(digests) == 1:
        return [use for use in uses if use.question.digest in digests]
    known = ", ".join(sorted({printable(_names(use)[1], limit=80) for use in meant or uses})[:20])
    what = f"no judge is called {printable(named)!r}" if not digests else "several judges are meant"
    raise JudgeError(what, where="--judge", hint=f"Name one of: {known}.")


def _names(use: JudgeUse) -> tuple[str, str]:
    return use.task.id, f"{use.task.id}/{use.grader.name}"


def _items(labels: Sequence[Label], uses: Sequence[JudgeUse]) -> tuple[list[_Item], list[str]]:
    """Return what the judge is asked about; labels of other tasks are left out."""
    tasks = {use.task.id: use.task for use in uses}
    only = next(iter(tasks.values())) if len(tasks) == 1 else None
    own = [one for one in labels if one.task is None or one.task in tasks]
    shown = uses[0].question.shown
    items = [
        _Item(label=one, parts=_parts(one, tasks.get(one.task or "", only), shown)) for one in own
    ]
    _require(items, shown)
    left_out = len(labels) - len(own)
    remarks = [f"{left_out} labels are of tasks without this judge."] if left_out else []
    bare = sum("instruction" in shown and "instruction" not in item.parts for item in items)
    if bare:
        remarks.append(
            f"{bare} labels name no task and hold no instruction: the judge did not see one, and"
            " sees one where it gates."
        )
    return items, remarks


def _parts(label: Label, task: Task | None, shown: Sequence[str]) -> Mapping[str, str]:
    given: Any = label.input if label.input is not None or task is None else task.input
    instruction = label.instruction
    if instruction is None and task is not None:
        instruction = task.instruction
    parts = {
        "instruction": instruction,
        "input": None if given is None else text_of_input(given),
        "answer": label.answer,
        "steps": label.steps,
        "state": label.state,
    }
    return {name: parts[name] or "" for name in shown if parts[name] is not None}


def _require(items: Sequence[_Item], shown: Sequence[str]) -> None:
    """Check that there are labels, and that they hold what the judge is shown.

    Raises
    ------
    JudgeError
        There are none; parts are missing; or an answer is longer than is judged.
    """
    if not items:
        raise JudgeError("no label is of a task with this judge", where="--judge")
    missing = [
        name for name in _NEEDED if name in shown and any(name not in item.parts for item in items)
    ]
    problems = [
        Problem(what=f"labels lack {name!r}, which the judge is shown", where="LABELS")
        for name in missing
    ]
    if any(len(item.label.answer) > LONGEST_ANSWER for item in items):
        what = f"an answer has more than {LONGEST_ANSWER} characters, which no judge is shown"
        problems.append(Problem(what=what, where="LABELS"))
    if problems:
        raise JudgeError.of(problems)


async def _compared(
    endpoint: Endpoint, question: Question, items: Sequence[_Item]
) -> list[Compared]:
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_one(endpoint.ask, question, item, number))
                for number, item in enumerate(items)
            ]
    except* JudgeDown as down:
        first = down.exceptions[0]
        raise JudgeError(
            printable(first, limit=400), where="[judge]", hint="Nothing was written."
        ) from down
    finally:
        await endpoint.close()
    return [task.result() for task in tasks]


async def _one(ask_judge: AskJudge, question: Question, item: _Item, number: int) -> Compared:
    straight = await _votes(ask_judge, question, item.parts, number, is_swapped=False)
    swapped = await _votes(ask_judge, question, item.parts, number, is_swapped=True)
    model = item.label.model
    return Compared(
        label=item.label.label == "pass",
        judged=majority(straight).passed,
        swapped=majority(swapped).passed,
        is_sound=all(vote.is_sound for vote in straight),
        length=len(item.label.answer),
        family=None if model is None else family_of(model),
    )


async def _votes(
    ask_judge: AskJudge,
    question: Question,
    parts: Mapping[str, str],
    number: int,
    *,
    is_swapped: bool,
) -> list[Vote]:
    votes = []
    for vote in range(question.votes):
        seed = derive_seed(number, vote)
        asked = ask(question, parts, seed=seed, is_swapped=is_swapped)
        votes.append(vote_of(await ask_judge(asked), question))
    return votes
