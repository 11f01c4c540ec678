"""Which judges a suite has, whether they may gate, and how they are asked.

A judge gates only with a calibration of exactly this judge, read from where the bar is read: a pull
request cannot bring its own. Everything is found before the first trial.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ci_gate import codec
from ci_gate.config import Config, SuiteConfig
from ci_gate.errors import JudgeError, Problem, printable
from ci_gate.gate.project import Project
from ci_gate.grading.judge.endpoint import JudgeAddress, require_client
from ci_gate.grading.judge.question import (
    PROMPT_VERSION,
    JudgeParameters,
    Question,
    question_of,
)
from ci_gate.model.judges import Calibration
from ci_gate.model.suite import GraderSpec, Suite, Task
from ci_gate.store.calibrations import calibration_name, parse_calibration
from ci_gate.store.files import read_whole

__all__ = [
    "KIND",
    "JudgeUse",
    "address_of",
    "calibration_path",
    "find_calibration",
    "judge_digest",
    "lacks_key",
    "parameters_of",
    "require_calibrated",
    "uncalibrated",
    "uses_of",
]

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")

KIND: Final = "judge"
"""The type of the graders that this is about."""


class JudgeUse(msgspec.Struct, frozen=True, kw_only=True):
    """A judge in a task."""

    task: Task
    grader: GraderSpec
    question: Question


def uses_of(suite: Suite, config: Config) -> tuple[JudgeUse, ...]:
    """Return where a suite uses judges.

    Raises
    ------
    JudgeError
        It uses one, and the configuration names no model.
    """
    found = [(task, spec) for task in suite.tasks for spec in task.graders if spec.type == KIND]
    if not found:
        return ()
    parameters = parameters_of(config, where=found[0][0].source)
    return tuple(
        JudgeUse(task=task, grader=spec, question=question_of(spec.options, parameters))
        for task, spec in found
    )


def parameters_of(config: Config, *, where: str) -> JudgeParameters:
    """Return the judge that a configuration names.

    Raises
    ------
    JudgeError
        It names none.
    """
    if config.judge.model is None:
        raise JudgeError(
            "a grader is a judge, and [judge] names no model",
            where=where,
            hint=f"Set base_url and model under [judge] in {printable(config.name)}.",
        )
    return JudgeParameters(model=config.judge.model, votes=config.judge.votes)


def judge_digest(suite: Suite, config: Config) -> str | None:
    """Return the digest of what answers a suite's rubrics, None where nothing does.

    The rubrics are left out: they belong to their tasks, and a task with another one is changed.
    """
    model, votes = config.judge.model, config.judge.votes
    if not any(spec.type == KIND for task in suite.tasks for spec in task.graders):
        return None
    return codec.digest_of({"model": model, "votes": votes, "prompt": PROMPT_VERSION})


def require_calibrated(
    project: Project, suite: SuiteConfig, loaded: Suite, environment: Mapping[str, str]
) -> None:
    """Refuse a suite whose judges cannot be asked, or must not gate.

    Parameters
    ----------
    project : Project
    suite : SuiteConfig
    loaded : Suite
    environment : mapping
        That holds the key.

    Raises
    ------
    JudgeError
        A judge is not configured, has no key, has no calibration or too weak a one; all of them.
    """
    uses = uses_of(loaded, project.config)
    if not uses:
        return
    require_client()
    if not lacks_key(project, loaded, environment):
        address_of(project.config, environment)
    if project.config.policy_of(suite).mode == "advisory":
        return
    problems = list(_problems(project, uses))
    if problems:
        raise JudgeError.of(problems)


def lacks_key(project: Project, suite: Suite, environment: Mapping[str, str]) -> bool:
    """Return whether a pull request is run without the judge's key, as those from forks are.

    Parameters
    ----------
    project : Project
    suite : Suite
        Whose tasks may have judges.
    environment : mapping
    """
    name = project.config.judge.api_key_env
    if name is None or not project.judges_a_pull_request or environment.get(name, "").strip():
        return False
    return any(spec.type == KIND for task in suite.tasks for spec in task.graders)


def _problems(project: Project, uses: Sequence[JudgeUse]) -> Iterator[Problem]:
    for digest, first in {use.question.digest: use for use in reversed(uses)}.items():
        why = uncalibrated(project, digest)
        if why is not None:
            task, grader = printable(first.task.id), printable(first.grader.name)
            yield Problem(
                what=f"the judge {grader!r} cannot gate: {why}",
                where=f"{first.task.source}: task {task!r}",
                hint=f"{_how(project, first)} See docs/judge.md.",
            )


def _how(project: Project, use: JudgeUse) -> str:
    command = f"ci-gate judge calibrate LABELS --judge '{printable(use.task.id)}'"
    if project.judges_a_pull_request and not project.labelled:
        return (
            f"`{command}` makes it; it counts once it is on the base branch, or with the label"
            " that moves the bar."
        )
    return f"Calibrate it: `{command}`, and commit the file."


def uncalibrated(project: Project, digest: str) -> str | None:
    """Return why a judge cannot gate, None where it can."""
    from ci_gate.grading.judge.calibrating import weakness  # only suites with judges need it

    calibration = find_calibration(project, digest)
    if calibration is None:
        return f"there is no calibration {_shown(project, digest)}{_there(project)}"
    return weakness(calibration, project.config.judge.min_kappa)


def _there(project: Project) -> str:
    return f" at {project.base.explanation}" if _is_bound(project) else ""


def _is_bound(project: Project) -> bool:
    """Return whether only what the base has counts."""
    is_asked = project.judges_a_pull_request or project.base.kind == "ref"
    return is_asked and not project.labelled


def calibration_path(project: Project, digest: str) -> Path:
    """Return the file that holds a judge's calibration in the working tree."""
    return project.root / project.config.baseline.dir / calibration_name(digest)


def _shown(project: Project, digest: str) -> str:
    return printable(calibration_path(project, digest).relative_to(project.root).as_posix())


def find_calibration(project: Project, digest: str) -> Calibration | None:
    """Return the calibration that counts, or None.

    It is the base commit's, and the working tree's only where the base has none and nothing is
    judged in CI; where the label moves the bar, the working tree's.

    Raises
    ------
    FileFormatError
        The file is no calibration of this judge.
    """
    if not _DIGEST.fullmatch(digest):  # of a run file that anybody may have written
        return None
    path = calibration_path(project, digest)
    content = None if project.labelled else project.base_blob(path)
    name = f"{_shown(project, digest)} of {project.base.explanation}"
    if content is None:
        if _is_bound(project) or not path.is_file():
            return None
        content, name = read_whole(path), _shown(project, digest)
    return parse_calibration(content, digest=digest, name=name)


def address_of(config: Config, environment: Mapping[str, str]) -> JudgeAddress:
    """Return how the judge of a configuration is reached.

    Raises
    ------
    JudgeError
        It names none, or its key is missing or none.
    """
    judge = config.judge
    if judge.base_url is None:
        raise JudgeError(
            "[judge] names no base_url",
            where=config.name,
            hint="Set base_url and model under [judge].",
        )
    return JudgeAddress(
        base_url=judge.base_url,
        key=_key(config, environment),
        timeout_s=judge.timeout_s,
        max_per_minute=judge.max_per_minute,
    )


def _key(config: Config, environment: Mapping[str, str]) -> str | None:
    name = config.judge.api_key_env
    if name is None:
        return None
    key = environment.get(name, "").strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        state = "is not set" if not key else "is no key: it has characters that no header can have"
        raise JudgeError(
            f"the environment variable {name}, which holds the judge's key, {state}",
            where=f"{config.name}: judge.api_key_env",
            hint="Set it, in CI from a secret; pull requests from forks get none.",
        )
    return key
