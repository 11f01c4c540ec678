"""The part of the worker that watches what an agent does beside its calls: chance, time, sockets.

Decides which of it is a breach of what the trial is held to. Like ``worker.py`` it uses the
standard library alone, works from Python 3.8 on, and is handed to the agent's interpreter; it is
read only where something is to be watched. It is a guard against mistakes and no wall: the agent
runs in the same process, child processes and libraries in C are not seen.

Notes
-----
Functions of the standard library that are written in C are recognised as they are called, by a
profile function: replacing them would miss those that were imported by name, and the class
``datetime`` cannot be replaced without breaking what is made by it. Functions whose arguments
matter, and those of NumPy, which no profile function sees, are replaced before the agent is loaded.
"""

from __future__ import annotations

import contextlib
import contextvars
import datetime
import errno
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

_MAX_PLACES = 200
_CLIP_CHARS = 200
_CLOCKS = (
    *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
    *("process_time", "process_time_ns", "thread_time", "thread_time_ns"),
    *("clock_gettime", "clock_gettime_ns"),
)
# These read the clock where their last argument is left out, which is the n-th.
_CLOCKS_BY_DEFAULT = (("localtime", 1), ("gmtime", 1), ("ctime", 1), ("asctime", 1))
_TODAYS = frozenset(("now", "utcnow", "today"))
_UUIDS = ("uuid1", "uuid4", "uuid6", "uuid7", "uuid8", "getnode")
_SECRETS = ("token_bytes", "token_hex", "token_urlsafe", "randbelow")
_NO_DRAWS = frozenset(("getstate", "setstate", "__getstate__", "__setstate__", "__reduce__"))
_NO_NUMPY_DRAWS = frozenset(("get_state", "set_state", "get_bit_generator", "set_bit_generator"))

_LOOPBACK = re.compile(r"(::ffff:)?127(\.\d{1,3}){3}|::1|localhost", re.IGNORECASE)
_LOOK_UPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_CONTACTS = ("socket.connect", "socket.sendto", "socket.sendmsg")


class NondeterminismError(BaseException):
    """Chance or time was used that no seed decides.

    No ``Exception``: the trial is over, and what an agent does after it proves nothing.
    """


class NetworkOffError(OSError):
    """A socket wanted to reach somebody where the network is off."""


class _Trials:
    """Which trial the running code belongs to."""

    def __init__(self) -> None:
        self._current: Any = contextvars.ContextVar("trial", default=None)
        self._running: list[Any] = []

    @property
    def is_any_running(self) -> bool:
        return bool(self._running)

    def current(self) -> Any:
        """Return the conduct of the trial; None where several run and it cannot be told."""
        conduct = self._current.get()
        if conduct is None and len(self._running) == 1:
            return self._running[0]
        return conduct

    @contextlib.contextmanager
    def running(self, conduct: Any) -> Iterator[None]:
        token = self._current.set(conduct)
        self._running.append(conduct)
        try:
            yield
        finally:
            self._running.remove(conduct)
            self._current.reset(token)


class Guard:
    """Watches the trials of a worker; made before the agent is loaded.

    Parameters
    ----------
    root : str
        The agent's folder: code below it is the agent's own.
    network : {"inherit", "none", "replay"}
        ``none`` refuses what leaves this machine, ``replay`` every connection of a trial.
    determinism : {"off", "raise", "warn"}
    """

    def __init__(self, root: str, network: str, determinism: str) -> None:
        self._trials = _Trials()
        self._watch = None
        if network != "inherit":
            sys.addaudithook(_NetworkWatch(self._trials, network))
        if determinism != "off":
            self._watch = DeterminismWatch(_Own(root), self._trials, determinism)
            self._watch.install()

    @property
    def is_spent(self) -> bool:
        """Whether a thread that may outlive its trial is no longer watched."""
        return self._watch is not None and self._watch.is_spent

    @contextlib.contextmanager
    def watching(self, conduct: Any) -> Iterator[None]:
        """Watch the code of one trial, whose breaches go into ``conduct``."""
        with self._trials.running(conduct):
            if self._watch is not None:
                sys.setprofile(self._watch.seen)
            try:
                yield
            finally:
                if self._watch is not None:
                    sys.setprofile(None)


class _Own:
    """Tells the agent's own code from that of libraries."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, str] = {}

    def place_of(self, frame: Any) -> str | None:
        """Return ``file:line`` where own code runs in a frame, or in the one that called it.

        Code without a file, such as the ``__init__`` of a dataclass, is its module's.
        """
        while frame is not None:
            name = frame.f_code.co_filename
            if name[:1] != "<":
                shown = self._shown(name)
                return f"{shown}:{frame.f_lineno}" if shown else None
            if not self._shown(frame.f_globals.get("__file__") or ""):
                return None
            frame = frame.f_back
        return None

    def _shown(self, path: str) -> str:
        """Return an own file's path below the root; empty for another's."""
        if path not in self._known:
            self._known[path] = self._below_root(path)
        return self._known[path]

    def _below_root(self, path: str) -> str:
        full = os.path.normpath(os.path.join(self._root, path)) if path else ""
        if not full.startswith(self._root.rstrip(os.sep) + os.sep):
            return ""
        parts = os.path.relpath(full, self._root).split(os.sep)
        is_installed = "site-packages" in parts or "dist-packages" in parts
        is_library = full.startswith(os.path.dirname(os.__file__) + os.sep)
        return "" if is_installed or is_library else "/".join(parts)


class DeterminismWatch:
    """Notices chance and time in the agent's own code.

    Attributes
    ----------
    is_spent : bool
        A thread other than the main one is no longer watched.
    """

    def __init__(self, own: _Own, trials: _Trials, mode: str) -> None:
        self._own = own
        self._trials = trials
        self._raises = mode == "raise"
        self._builtins = _builtins()
        self._codes = _codes()
        self.is_spent = False

    def install(self) -> None:
        """Watch every thread that is started from now on, and put guards where none is seen."""
        threading.setprofile(self.seen)
        _replace_clocks(self._judge)
        _replace_numpy(self._judge)

    def seen(self, frame: Any, event: str, arg: Any) -> None:
        """Take note of what a thread does; a profile function.

        Raises
        ------
        NondeterminismError
            In place of the call, where that is wanted.
        """
        if event == "c_call":
            name = self._builtins.get(arg)
            if name is None and arg.__name__ in _TODAYS:
                name = _today_of(arg)
            if name is not None:
                self._judge(name, frame)
        elif event == "call":
            name_of = self._codes.get(id(frame.f_code))
            name = None if name_of is None else name_of(frame)
            if name is not None:
                self._judge(name, frame.f_back)

    def _judge(self, name: str, caller: Any) -> None:
        conduct = self._trials.current()
        place = None if conduct is None else self._own.place_of(caller)
        if place is None:
            return
        what = f"{name} at {place}"
        if not self._raises:
            if what in conduct.noted or len(conduct.noted) < _MAX_PLACES:
                conduct.noted[what] = conduct.noted.get(what, 0) + 1
            return
        conduct.breach(f"nondeterminism: {what}")
        # Python takes a profile function that raises from the thread for good.
        self.is_spent |= threading.current_thread() is not threading.main_thread()
        raise NondeterminismError(what)


def _builtins() -> dict[Any, str]:
    """Return the functions in C that are chance or time, by themselves."""
    import random

    found = {}
    for name in _CLOCKS:
        if hasattr(time, name):
            found[getattr(time, name)] = f"time.{name}()"
    for name in ("urandom", "getrandom"):
        if hasattr(os, name):
            found[getattr(os, name)] = f"os.{name}()"
    for name in ("random", "getrandbits"):
        found[getattr(random, name)] = f"random.{name}()"
    return found


def _today_of(function: Any) -> str | None:
    owner = function.__self__
    if not isinstance(owner, type) or not issubclass(owner, datetime.date):
        return None
    base = "datetime" if issubclass(owner, datetime.datetime) else "date"
    return f"{base}.{function.__name__}()"


def _codes() -> dict[int, Callable[[Any], str | None]]:
    """Return the functions in Python that are chance or time, by the identity of their code."""
    import random
    import secrets
    import uuid

    found: dict[int, Callable[[Any], str | None]] = {}
    for module, names in ((uuid, _UUIDS), (secrets, _SECRETS)):
        for name in names:
            if hasattr(module, name):
                shown = f"{module.__name__}.{name}()"
                found[id(getattr(module, name).__code__)] = _always(shown)
    for kind in (random.SystemRandom, random.Random):
        for name, function in vars(kind).items():
            if hasattr(function, "__code__") and name not in _NO_DRAWS:
                found[id(function.__code__)] = _method_of_random
    return found


def _always(name: str) -> Callable[[Any], str]:
    return lambda _: name


def _method_of_random(frame: Any) -> str | None:
    """Return what a method of a generator draws from, if no seed decides it."""
    import random
    import secrets

    generator = frame.f_locals.get("self")
    method = frame.f_code.co_name
    if generator is random._inst:
        return f"random.{method}()"
    if generator is secrets._sysrand:  # type: ignore[attr-defined]  # private, and the only way
        return f"secrets.{'randbits' if method == 'getrandbits' else method}()"
    if isinstance(generator, random.SystemRandom):
        return None if method in ("__init__", "seed") else f"random.SystemRandom.{method}()"
    given = [frame.f_locals.get(name) for name in ("x", "a")]
    if method == "__init__" and given == [None, None]:
        return "random.Random() without a seed"
    if method == "seed" and given == [None, None]:
        return "random.Random.seed() without a seed"
    return None


class _Replaced:
    """Stands for a function, and tells who calls it.

    No function: a class that keeps it in an attribute must not make a method of it.
    """

    def __init__(
        self, function: Any, name: str, judge: Callable[[str, Any], None], harmless_from: int
    ) -> None:
        self._function = function
        self._name = name
        self._judge = judge
        self._harmless_from = harmless_from
        self.__name__ = getattr(function, "__name__", name)
        self.__doc__ = getattr(function, "__doc__", None)
        self.__wrapped__ = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        given = [one for one in (*arguments, *named.values()) if one is not None]
        if len(given) < self._harmless_from:
            self._judge(self._name, sys._getframe(1))
        return self._function(*arguments, **named)


def _replace_clocks(judge: Callable[[str, Any], None]) -> None:
    for name, needed in (*_CLOCKS_BY_DEFAULT, ("strftime", 2)):
        setattr(time, name, _Replaced(getattr(time, name), f"time.{name}()", judge, needed))


def _replace_numpy(judge: Callable[[str, Any], None]) -> None:
    """Replace the functions of ``numpy.random`` that draw from its global generator."""
    if "numpy.random" in sys.modules:
        _replace_draws(sys.modules["numpy.random"], judge)
    else:
        sys.meta_path.insert(0, _AfterImport("numpy.random", lambda m: _replace_draws(m, judge)))


def _replace_draws(module: Any, judge: Callable[[str, Any], None]) -> None:
    never = sys.maxsize
    source = sys.modules.get("numpy.random.bit_generator")
    if hasattr(source, "randbits"):
        # Drawn for seeded generators as well, from C, where no frame says on whose behalf.
        setattr(source, "randbits", _random_bits)  # noqa: B010 - a module that has no such type
    for name in getattr(module, "__all__", ()):
        function = getattr(module, name, None)
        if not callable(function) or isinstance(function, type) or name in _NO_NUMPY_DRAWS:
            continue
        shown, harmless_from = f"numpy.random.{name}()", never
        if name == "default_rng":
            shown, harmless_from = f"{shown} without a seed", 1
        replaced = _Replaced(function, shown, judge, harmless_from)
        for holder in (module, sys.modules.get("numpy.random.mtrand")):
            if getattr(holder, name, None) is function:
                setattr(holder, name, replaced)


def _random_bits(count: int) -> int:
    return int.from_bytes(os.urandom((count + 7) // 8), "big") >> (-count % 8)


class _AfterImport:
    """Calls back when a module was imported, with the module."""

    def __init__(self, name: str, act: Callable[[Any], None]) -> None:
        self._name = name
        self._act = act

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find the module by the others' means, once."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return self._calling_back(spec)
        return None

    def _calling_back(self, spec: Any) -> Any:
        execute = spec.loader.exec_module

        def executed(module: Any) -> None:
            execute(module)
            self._act(module)

        spec.loader.exec_module = executed
        return spec


class _NetworkWatch:
    """Refuses what would reach somebody over the network; an audit hook, which stays for good."""

    def __init__(self, trials: _Trials, network: str) -> None:
        self._trials = trials
        self._is_replay = network == "replay"

    def __call__(self, event: str, arguments: Any) -> None:
        if event[:7] != "socket." or (self._is_replay and not self._trials.is_any_running):
            return
        if event in _CONTACTS:
            self._contact(*arguments[:2])
        elif event in _LOOK_UPS:
            self._look_up(arguments[0])

    def _contact(self, socket: Any, address: Any) -> None:
        known = sys.modules["_socket"]
        if socket.family not in (known.AF_INET, known.AF_INET6) or not isinstance(address, tuple):
            return
        host, port = _text(address[0]), address[1]
        if self._is_replay or not _is_here(host):
            shown = f"[{host}]" if ":" in host else host
            self._refuse(f"connect to {shown}:{port}")

    def _look_up(self, host: Any) -> None:
        name = _text(host)
        if not _is_here(name) and not _is_address(name):  # which asks nobody
            self._refuse(f"look-up of {name}")

    def _refuse(self, what: str) -> None:
        why = "in a replay" if self._is_replay else 'with [agent] network = "none"'
        conduct = self._trials.current()
        if conduct is not None:
            conduct.breach(f"network: {what} {why}")
        raise NetworkOffError(errno.ENETUNREACH, f"the network is off: {what} {why}")


def _is_here(host: str) -> bool:
    return not host or _LOOPBACK.fullmatch(host) is not None


def _is_address(host: str) -> bool:
    known = sys.modules["_socket"]
    for family in (known.AF_INET, known.AF_INET6):
        with contextlib.suppress(OSError, ValueError):
            known.inet_pton(family, host)
            return True
    return False


def _text(host: Any) -> str:
    shown = host.decode("ascii", "replace") if isinstance(host, (bytes, bytearray)) else host
    return "" if shown is None else str(shown)[:_CLIP_CHARS]
