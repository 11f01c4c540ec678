"""Executes a program where there is no network but itself; run as a script, by its path.

``python seclusion.py PROGRAM ARGUMENT...`` moves into a network of its own, in which only the
loopback device exists, and becomes the program. It needs Linux, and no rights where users may have
namespaces of their own. Standard library alone, because it is started for every trial without the
folders of installed packages.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Sequence

__all__ = ["NOT_EXECUTED", "NOT_SECLUDED", "main", "seclude"]

NOT_EXECUTED = 126
"""Exit status where the system cannot execute the program, as a shell has it."""

NOT_SECLUDED = 125
"""Exit status where the network could not be taken away; the program was not started."""

_NEW_USER = 0x10000000
_NEW_NETWORK = 0x40000000
_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_IS_UP = 1


def seclude() -> None:
    """Leave the network of this machine for one that has the loopback device alone.

    Users and groups keep their numbers. The namespace of users comes with it, because who has the
    rights of the machine's superuser could go back.

    Raises
    ------
    OSError
        The system does not let this user do so, or is none that can.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(_NEW_USER | _NEW_NETWORK)
    except OSError:
        _unshare(_NEW_NETWORK)  # the superuser, where namespaces of users are switched off
    else:
        _write("setgroups", "deny")
        _write("uid_map", f"{user} {user} 1")
        _write("gid_map", f"{group} {group} 1")
    _raise_loopback()


def _unshare(flags: int) -> None:
    try:
        call = ctypes.CDLL(None, use_errno=True).unshare
    except AttributeError:
        raise OSError("this system has no namespaces") from None
    if call(flags) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _write(name: str, text: str) -> None:
    descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _raise_loopback() -> None:
    """Let a service that the agent starts for itself be reached."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(any_socket, _GET_FLAGS, request), 16)
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _IS_UP))


def main(command: Sequence[str]) -> int:
    """Become the program; return an exit status where that fails. Without one only try it."""
    try:
        seclude()
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        return NOT_SECLUDED
    if not command:
        return 0
    try:
        os.execv(command[0], list(command))  # noqa: S606 - the command that the user configured
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be executed: {error.strerror}\n")
        return NOT_EXECUTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
