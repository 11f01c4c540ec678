"""A real PostgreSQL server for tests, in a folder of its own, gone when it is not needed."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def programs() -> Path | None:
    """Return the folder of the server's programs, None where it is not installed."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


@contextlib.contextmanager
def running_server() -> Iterator[str]:
    """Yield the URL of a server that was started for this."""
    place = programs()
    if place is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    # It refuses to run as the superuser, who has a user for it where it is installed.
    who: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            who = {"user": "postgres", "group": pwd.getpwnam("postgres").pw_gid, "extra_groups": []}
            shutil.chown(folder, "postgres")
        data, port = f"{folder}/data", _free_port()
        _run(place / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", **who)
        options = f"-p {port} -k {folder} -c fsync=off -c listen_addresses=127.0.0.1"
        control = (place / "pg_ctl", "-D", data, "-w", "-l", f"{folder}/log")
        _run(*control, "-o", options, "start", **who)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            _run(*control, "-m", "immediate", "stop", **who)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def _run(*command: Any, **options: Any) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=60, **options)
