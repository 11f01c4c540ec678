"""JSON Schemas that a rule grader names by a file: read in the place of their names.

What a grader's options hold is then the same whether a schema stands in the task file or beside it,
and so is the task's digest. This module must not know what a schema means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ci_gate.codec import decode
from ci_gate.errors import printable
from ci_gate.store.paths import named_beside
from ci_gate.store.trees import FileReader

__all__ = ["Mistake", "with_schemas"]

_TYPE: Final = "rules"
_BY_TOOL: Final = "arguments"
_OF_ANSWER: Final = "answer_schema"
_MAX_BYTES: Final = 2**20

Mistake = tuple[str, str]
"""An option's path, and what is wrong with it."""


def with_schemas(
    kind: str, options: Mapping[str, Any], folder: str, files: FileReader
) -> tuple[Mapping[str, Any], list[Mistake]]:
    """Return a grader's options with schemas in the place of the files that hold them.

    Parameters
    ----------
    kind : str
        The grader's type; others than ``rules`` name no schemas.
    options : mapping
    folder : str
        The task file's, relative to the root; names of files are relative to it.
    files : FileReader
        Paths relative to the root.
    """
    named = dict(_named(options)) if kind == _TYPE else {}
    if not named:
        return options, []
    read = {path: _read(name, folder, files) for path, name in named.items()}
    mistakes = [(".".join(path), what) for path, (_, what) in read.items() if what is not None]
    found = dict(options)
    for path, (schema, _) in read.items():
        if len(path) == 1:
            found[_OF_ANSWER] = schema
        else:
            found[_BY_TOOL] = {**found[_BY_TOOL], path[1]: schema}
    return found, mistakes


def _named(options: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    by_tool, answer = options.get(_BY_TOOL), options.get(_OF_ANSWER)
    if isinstance(answer, str):
        yield (_OF_ANSWER,), answer
    if isinstance(by_tool, dict):
        for tool, schema in by_tool.items():
            if isinstance(schema, str):
                yield (_BY_TOOL, tool), schema


def _read(name: str, folder: str, files: FileReader) -> tuple[Any, str | None]:
    shown = printable(name, limit=120)
    path = named_beside(folder, name)
    if path is None:
        return True, f"names '{shown}', which leaves the project; it is relative to its task file"
    if not path.endswith(".json"):
        return True, f"is '{shown}': a JSON Schema is a table, or the name of a .json file"
    content = files.read(path)
    if content is None:
        return True, f"names '{shown}', which is no file; it is relative to its task file"
    if len(content) > _MAX_BYTES:
        return True, f"names '{shown}', which has more than {_MAX_BYTES:,} bytes"
    try:
        return decode(content), None
    except ValueError as error:
        return True, f"names '{shown}', which is not JSON: {printable(error)}"
