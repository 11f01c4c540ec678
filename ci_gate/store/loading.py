"""Any file that can be one side of a comparison.

This module decides by the schema in a file whether it is a run or a baseline. It must not know
either format beyond its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ci_gate.codec import decode
from ci_gate.errors import FileFormatError, printable
from ci_gate.model.run import Baseline, Side
from ci_gate.store import baselines, runs
from ci_gate.store.files import open_regular
from ci_gate.store.formats import BASELINE, RUN
from ci_gate.store.scan import MAX_LINE_BYTES

__all__ = ["load", "side_of"]


def load(path: Path) -> runs.RunFile | Baseline:
    """Read a run or a baseline, by the schema in the file.

    Raises
    ------
    FileFormatError
        It is neither, or not a legal one.
    """
    schema = _schema_of_first_line(path)
    if isinstance(schema, str) and schema.startswith(RUN.partition("@")[0]):
        return runs.load_run(path)
    if isinstance(schema, str) and not schema.startswith(BASELINE.partition("@")[0]):
        what = f"has the schema {printable(schema)}"
        raise FileFormatError(what, where=printable(path), hint=f"Expected {RUN} or {BASELINE}.")
    return baselines.load_baseline(path)


def _schema_of_first_line(path: Path) -> Any:
    """Return the schema that the first line states; a baseline may begin in any layout."""
    with open_regular(path) as stream:
        first = stream.readline(MAX_LINE_BYTES)
    if not first:
        raise FileFormatError("the file is empty", where=printable(path))
    try:
        fields = decode(first)
    except ValueError:
        return None
    return fields.get("schema") if isinstance(fields, dict) else None


def side_of(source: runs.RunFile | Baseline) -> Side:
    """Return a run or baseline in the form in which two sides are compared.

    Raises
    ------
    FileFormatError
        As ``runs.to_side``.
    """
    if isinstance(source, Baseline):
        return baselines.to_side(source)
    return runs.to_side(source)
