"""What lies in the worlds that trials start in, as text: where an agent can have a value from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ci_gate.grading.databases import UnusableError, reading
from ci_gate.grading.own import InitialState
from ci_gate.model.suite import PlannedTrial

__all__ = ["FixtureTexts"]

_MOST_CHARACTERS: Final = 500_000
_LONGEST_S: Final = 5.0
_SQLITE: Final = b"SQLite format 3\0"


class FixtureTexts:
    """The texts of the states that trials start in, each read once, when it is first asked for.

    Parameters
    ----------
    initial : callable
        Gives the places of the state in which a trial starts, which nobody writes to.
    """

    def __init__(self, initial: InitialState) -> None:
        self._initial = initial
        self._texts: dict[str, str] = {}

    def __call__(self, trial: PlannedTrial) -> str:
        """Return the values of its databases and tables and the text of its files.

        Up to 500,000 characters.

        Values of a PostgreSQL fixture are those of its script. What cannot be read is left out.
        """
        folder = self._initial(trial).get("folder")
        if folder is None:
            return ""
        if folder not in self._texts:
            self._texts[folder] = _bounded(_texts_of(Path(folder), trial.task.fixture_path))
        return self._texts[folder]


def _bounded(texts: Iterator[str]) -> str:
    found: list[str] = []
    room = _MOST_CHARACTERS
    for text in texts:
        found.append(text[:room])
        room -= len(text)
        if room <= 0:
            break
    return "\n".join(found)


def _texts_of(folder: Path, fixture: str | None) -> Iterator[str]:
    if fixture is not None and Path(fixture).suffix == ".sql" and Path(fixture).is_file():
        yield from _text(Path(fixture))
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield from _values(path) if _is_database(path) else _text(path)


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _text(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as stream:
            yield stream.read(_MOST_CHARACTERS)
    except (OSError, UnicodeError):
        return


def _values(path: Path) -> Iterator[str]:
    try:
        with reading(path, _LONGEST_S, is_template=True) as connection:
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            ).fetchall():
                quoted = name.replace('"', '""')
                for row in connection.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608 - quoted
                    yield "\n".join(
                        str(cell) for cell in row if isinstance(cell, str | int | float)
                    )
    except (UnusableError, sqlite3.Error, sqlite3.Warning, OverflowError):
        return
