"""Calibrations of judges in files, and the labels they are made of.

Decides where a calibration lies and what makes it one. What its figures mean for a gate is not
known here.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Final, Literal

import msgspec

from ci_gate.codec import DIGEST_PREFIX
from ci_gate.errors import FileFormatError, printable
from ci_gate.model.judges import Calibration
from ci_gate.store.formats import JUDGE, check_schema, decode_object, typed

__all__ = ["Label", "calibration_name", "dump_calibration", "parse_calibration", "parse_labels"]

MOST_LABELS: Final = 100_000
_FOLDER: Final = "judges"


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of a file of labels: an answer, and whether people pass it.

    Parameters
    ----------
    answer : str
    label : {"pass", "fail"}
    task : str or None
        Id of the task it answers, whose instruction and input the judge is shown.
    instruction, input, steps, state : optional
        What the judge is shown instead.
    model : str or None
        The model, or the family of models, that gave the answer.
    """

    answer: str
    label: Literal["pass", "fail"]
    task: str | None = None
    instruction: str | None = None
    input: Any = None
    steps: str | None = None
    state: str | None = None
    model: str | None = None


def parse_labels(content: bytes, *, name: str) -> tuple[Label, ...]:
    """Return the labels of JSON lines; empty lines are left out.

    Raises
    ------
    FileFormatError
        A line is no label, or there are none or too many.
    """
    lines = [(at, line) for at, line in enumerate(content.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise FileFormatError(
            "has no labels", where=name, hint='A line is {"answer": "...", "label": "pass"}.'
        )
    if len(lines) > MOST_LABELS:
        raise FileFormatError(f"has more than {MOST_LABELS} labels", where=name)
    return tuple(_label(line, f"{name}:{at}") for at, line in lines)


def _label(line: bytes, where: str) -> Label:
    return typed(decode_object(line, where), Label, where)


def calibration_name(digest: str) -> PurePosixPath:
    """Return the place of a judge's calibration below the folder of baselines."""
    return PurePosixPath(_FOLDER) / f"{digest.removeprefix(DIGEST_PREFIX)}.json"


def dump_calibration(calibration: Calibration) -> bytes:
    """Return the text of the file: one key a line, so that a review shows what moved."""
    return msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n"


def parse_calibration(content: bytes, *, digest: str, name: str) -> Calibration:
    """Return the calibration in a file.

    Parameters
    ----------
    content : bytes
    digest : str
        Of the judge that it must be of.
    name : str
        The file, as messages call it.

    Raises
    ------
    FileFormatError
        It is no calibration, of another version, or of another judge.
    """
    fields = decode_object(content, name)
    check_schema(fields, JUDGE, name)
    calibration = typed(fields, Calibration, name)
    if calibration.digest != digest:
        found = printable(calibration.digest, limit=80)
        raise FileFormatError(
            f"is the calibration of the judge {found}",
            where=name,
            hint="Make it anew: ci-gate judge calibrate.",
        )
    return calibration
