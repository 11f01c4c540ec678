"""Folders that files are written into and read from: real ones, reached through no link.

A change under judgement can bring a link along wherever the gate keeps its results. This module
decides what is refused on the way to a file; what is in the file is not known here.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ci_gate.errors import UsageError, printable
from ci_gate.machine import failed_write
from ci_gate.store.files import remove_file, write_whole

__all__ = [
    "make_real_folder",
    "own_folder",
    "refuse_links",
    "remove_beside",
    "remove_named",
    "write_beside",
    "write_named",
]


def make_real_folder(folder: Path) -> None:
    """Make a folder, with those above it, no part of whose path is a link.

    Parameters
    ----------
    folder : Path
        A place whose upper part the user may reach through a link was resolved by the caller.

    Raises
    ------
    UsageError
        A part of the path is a link or no folder, or may not be made.
    InternalError
        The disk is full or broken.
    """
    for place in _parts(folder):
        try:
            mode = _mode_of(place)
            if mode is None:
                with contextlib.suppress(FileExistsError):  # made by another trial just now
                    place.mkdir()
                mode = place.lstat().st_mode
        except OSError as error:
            raise failed_write(error, place) from error
        _require_folder(place, mode)


def refuse_links(path: Path) -> None:
    """Refuse a file or folder that is a link, or is reached through one; it need not exist.

    Raises
    ------
    UsageError
        A part of the path is a link.
    """
    for place in _parts(path):
        if place.is_symlink():
            raise _is_link(place)


def own_folder(folder: Path, *, tree: Path) -> Path:
    """Return a folder that the user named, with its links resolved.

    Outside of a working tree a link is the user's own; inside, a change could have brought it along
    to have files written anywhere.

    Parameters
    ----------
    folder : Path
        Need not exist.
    tree : Path
        The working tree, links resolved.

    Raises
    ------
    UsageError
        A part of the path is a link that lies in the working tree.
    """
    whole = folder.absolute()
    links = [place for place in _parts(whole) if place.is_symlink()]
    for link in links:
        place = link.parent.resolve() / link.name
        if place.is_relative_to(tree):
            raise _is_link(place)
    return whole.resolve() if links else folder


def write_named(path: Path, content: bytes) -> None:
    """Write a file that the user named, as ``write_whole`` does, through no link of the change.

    Raises
    ------
    UsageError, InternalError
        As ``own_folder``, of the folder that we are in, and ``write_whole``.
    """
    folder = own_folder(path.parent, tree=Path.cwd())
    write_whole(folder / path.name, content)


def remove_named(path: Path) -> None:
    """Remove a file that ``write_named`` would replace; there need not be one.

    Raises
    ------
    UsageError, InternalError
        As ``own_folder``, of the folder that we are in, and ``remove_file``.
    """
    folder = own_folder(path.parent, tree=Path.cwd())
    remove_file(folder / path.name)


def remove_beside(path: Path) -> None:
    """Remove a file that ``write_beside`` would replace; there need not be one.

    Raises
    ------
    UsageError, InternalError
        As ``refuse_links``, of the folder, and ``remove_file``.
    """
    refuse_links(path.parent)
    remove_file(path)


def write_beside(path: Path, content: bytes) -> None:
    """Write a file of results as ``write_whole`` does, into a folder that no link leads to.

    Raises
    ------
    UsageError, InternalError
        As ``make_real_folder`` and ``write_whole``.
    """
    make_real_folder(path.parent)
    write_whole(path, content)


def _parts(path: Path) -> Iterator[Path]:
    yield from reversed(path.parents)
    yield path


def _mode_of(place: Path) -> int | None:
    try:
        return os.lstat(place).st_mode
    except FileNotFoundError:
        return None


def _require_folder(place: Path, mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise _is_link(place)
    if not stat.S_ISDIR(mode):
        what = "is no folder, and results belong below it"
        raise UsageError(
            what, where=printable(place), hint="Remove it, or choose another --output."
        )


def _is_link(place: Path) -> UsageError:
    return UsageError(
        "is a link, and results are neither written nor read through one",
        where=printable(place),
        hint="Remove it.",
    )
