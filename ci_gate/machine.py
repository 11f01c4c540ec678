"""Which failures are the machine's: a full disk or a broken medium is nobody's usage mistake."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from ci_gate.errors import GateError, InternalError, UsageError, printable

__all__ = ["failed_write", "is_of_the_machine", "no_room", "reason_of"]

_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
# SQLITE_IOERR and SQLITE_FULL; the module is slow to import.
_SQLITE: Final = frozenset({10, 13})
_PRIMARY: Final = 0xFF  # of an extended result code


def is_of_the_machine(error: BaseException) -> bool:
    """Return whether a disk is full or broken."""
    if isinstance(error, OSError):
        return error.errno in _ERRNOS
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY in _SQLITE


def failed_write(error: OSError, path: Path) -> GateError:
    """Return the error that says why a file could not be written."""
    if is_of_the_machine(error):
        return no_room(error, path)
    return UsageError(f"cannot be written: {reason_of(error)}", where=printable(path))


def no_room(error: BaseException, path: object) -> InternalError:
    """Return the error that says which file a full or broken disk has no room for."""
    return InternalError(
        f"cannot be written: {reason_of(error)}",
        where=printable(path),
        hint="What was there before is unchanged. Make room or choose another folder.",
    )


def reason_of(error: BaseException) -> str:
    """Return why the system refused, in its own words and safe to print."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return printable(text or error)
