"""Which values of ``ci-gate.toml`` go together, and which this version cannot honour yet.

Each rule says what it has read, so that a rule about a key that is itself wrong stays silent.
The rules know the words of the file and nothing of how trials run or verdicts are made.
"""

from __future__ import annotations

import re
import urllib.parse
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import msgspec

from ci_gate.config.lines import KeyPath
from ci_gate.config.reading import Mistake, found, key_text
from ci_gate.config.shape import AgentTable, ConfigFile, FaultsTable, SuiteConfig
from ci_gate.prng import parse_seed
from ci_gate.sandbox.ignoring import Ignored, PathError

__all__ = ["NOT_YET", "NotYet", "conflicts_in", "value_at"]

_DEVICES = {"con", "prn", "aux", "nul"} | {
    f"{port}{number}" for port in ("com", "lpt") for number in range(10)
}
_FEWEST_REPEATS = 2
_RESERVED_ENDINGS = (".anchor", ".")


class NotYet(NamedTuple):
    """A part of the configuration that this version refuses, because it would not act on it.

    Parameters
    ----------
    path : tuple of str
        The key.
    refused : tuple
        The values that are refused; empty: every value but the default.
    """

    path: tuple[str, ...]
    refused: tuple[Any, ...] = ()


# What later versions bring: they delete rows here, and nothing else has to change.
NOT_YET: Sequence[NotYet] = (
    NotYet(("run", "executor"), ("ray",)),
    NotYet(("report", "language"), ("zh",)),
)


# A file in which every key has its default (and the required ones nothing that a row could name).
_DEFAULTS = ConfigFile(suite=(), agent=AgentTable(), faults=FaultsTable())


class _Conflict(NamedTuple):
    mistake: Mistake
    reads: tuple[KeyPath, ...]


def conflicts_in(file: ConfigFile, wrong: Iterable[KeyPath]) -> tuple[Mistake, ...]:
    """Return what is impossible or not supported although each value alone is legal.

    Parameters
    ----------
    file : ConfigFile
        The file, with defaults in the place of keys that are wrong.
    wrong : iterable of tuple
        The keys that are wrong; no rule that reads one of them, or a part of one, is reported.
    """
    known_wrong = tuple(wrong)
    return tuple(
        conflict.mistake
        for rule in (_suites, _agent, _faults, _trace, _gate, _baseline, _judge, _not_yet)
        for conflict in rule(file)
        if not any(_overlap(read, bad) for read in conflict.reads for bad in known_wrong)
    )


def value_at(file: Any, path: Sequence[str]) -> Any:
    """Return the value of a key in nested structs; None where a table on the way is absent."""
    for name in path:
        file = getattr(file, name) if file is not None else None
    return file


def _overlap(left: KeyPath, right: KeyPath) -> bool:
    shared = min(len(left), len(right))
    return left[:shared] == right[:shared]


def _conflict(path: KeyPath, what: str, hint: str = "", *also: KeyPath) -> _Conflict:
    return _Conflict(Mistake(path, what, hint), (path, *also))


def _suites(file: ConfigFile) -> Iterator[_Conflict]:
    for index, suite in enumerate(file.suite):
        path: KeyPath = ("suite", index)
        yield from _suite_name(suite.name, (*path, "name"))
        yield from _seed(suite.seed, (*path, "seed"))
        yield from _inside((*path, "tasks"), suite.tasks)
        yield from _depth(file, suite, (*path, "trials"))
        yield from _extension(file, suite, path)
    yield from _duplicate_names(file.suite)


def _suite_name(name: str, path: KeyPath) -> Iterator[_Conflict]:
    if name.split(".")[0] in _DEVICES:
        yield _conflict(path, f"{found(name)} is the name of a device on Windows", "Rename it.")
    if name.endswith(_RESERVED_ENDINGS):
        yield _conflict(
            path, f'{found(name)} must not end with "." or ".anchor"', "Files of others end so."
        )


def _seed(seed: str | int, path: KeyPath) -> Iterator[_Conflict]:
    try:
        parse_seed(seed)
    except ValueError:
        yield _conflict(
            path,
            f"must be hexadecimal with at most 64 bits, found {found(seed)}",
            'Write it as in "0x20261030".',
        )


def _depth(file: ConfigFile, suite: SuiteConfig, path: KeyPath) -> Iterator[_Conflict]:
    """Check that a suite has the trials that its deepest metric and floor need.

    A deterministic suite is judged by flips, for which one trial is enough.
    """
    if suite.deterministic:
        return
    asked = [(("gate", "metrics"), metric) for metric in file.gate.metrics]
    asked += [(("gate", "floors"), metric) for metric in file.gate.floors]
    if not asked:
        return
    key, metric = max(asked, key=lambda item: _k_of(item[1]))
    if suite.trials < _k_of(metric):
        yield _conflict(
            path,
            f"{suite.trials} trials of suite {found(suite.name)} are too few for {metric} of "
            f"{key_text(key)}",
            f"Set trials to {_k_of(metric)} or more, or leave {metric} out.",
            ("gate", "metrics"),
            ("gate", "floors"),
        )


def _extension(file: ConfigFile, suite: SuiteConfig, path: KeyPath) -> Iterator[_Conflict]:
    """Check that a run which shall be extended can be."""
    asked: KeyPath = ("gate", "on_borderline")
    if file.gate.on_borderline != "extend":
        return
    if suite.deterministic:
        yield _conflict(
            (*path, "deterministic"),
            'a deterministic suite does not go with on_borderline = "extend"',
            "Every further repeat of it is a copy; leave one of them out.",
            asked,
        )
    elif suite.max_repeats < _FEWEST_REPEATS:
        yield _conflict(
            (*path, "max_repeats"),
            f'{suite.max_repeats} leaves on_borderline = "extend" nothing to add',
            f"Set max_repeats to {_FEWEST_REPEATS} or more; 4 allows for three looks.",
            asked,
        )


def _k_of(metric: str) -> int:
    return int(metric.removeprefix("pass^"))


def _duplicate_names(suites: Sequence[SuiteConfig]) -> Iterator[_Conflict]:
    seen: dict[str, int] = {}
    for index, suite in enumerate(suites):
        first = seen.setdefault(suite.name, index)
        if first != index:
            yield _conflict(
                ("suite", index, "name"),
                f"{found(suite.name)} is the name of suite[{first}] already",
                "Suites need different names.",
                ("suite", first, "name"),
            )


def _inside(path: KeyPath, places: Sequence[str]) -> Iterator[_Conflict]:
    """Check that globs and folders stay below the folder that they start from."""
    for index, place in enumerate(places):
        pure = PurePosixPath(place.replace("\\", "/"))
        if pure.is_absolute() or ".." in pure.parts or PureWindowsPath(place).drive:
            key = (*path, index) if len(places) > 1 else path
            yield _conflict(key, f"{found(place)} leads out of its folder", "Use a path below it.")


def _agent(file: ConfigFile) -> Iterator[_Conflict]:
    agent, key = file.agent, ("agent",)
    spoken = ("agent", "python"), ("agent", "command")
    if agent.python is not None and agent.command is not None:
        yield _conflict(
            key, "python and command are both given", "An agent has one of them.", *spoken
        )
    elif agent.python is None and agent.command is None:
        yield _conflict(
            key,
            "neither python nor command is given",
            'Set python = "module:function" or command = ["program", "argument"].',
            *spoken,
        )
    else:
        yield from _protocol(file, spoken)
    yield from _inside((*key, "files"), agent.files)
    yield from _patterns((*key, "environment_errors"), agent.environment_errors)
    yield from _patterns((*key, "laundered_errors"), agent.laundered_errors)
    yield from _capabilities((*key, "allow"), agent.allow)


def _capabilities(path: KeyPath, entries: Sequence[str]) -> Iterator[_Conflict]:
    """Check that each entry has a kind; which kinds there are is the agent's own choice."""
    for entry in entries:
        kind, colon, name = entry.partition(":")
        if entry != entry.strip() or not kind or (colon and not name):
            yield _conflict(
                path,
                f"{found(entry)} is no capability",
                "Write a kind, or a kind and a name: llm, tool:refund_*, file:read.",
            )
    yield from _repeated(path, entries)


def _trace(file: ConfigFile) -> Iterator[_Conflict]:
    """Check what traces leave out: paths and regular expressions."""
    path: KeyPath = ("trace", "ignore")
    for entry in file.trace.ignore:
        if entry.startswith("$"):
            try:
                Ignored([entry])
            except PathError as error:
                yield _conflict(path, str(error), "Write it as in $.request_id or $..at.")
        else:
            yield from _patterns(path, [entry])
    yield from _patterns(("trace", "redact"), file.trace.redact)


def _judge(file: ConfigFile) -> Iterator[_Conflict]:
    """Check that a judge has an address and a model, and that the address holds no secret."""
    judge, path = file.judge, ("judge", "base_url")
    if (judge.base_url is None) != (judge.model is None):
        yield _conflict(
            ("judge",),
            "base_url and model belong together",
            "Give both, or neither.",
            path,
            ("judge", "model"),
        )
    if judge.base_url is None:
        return
    mistake = _mistake_in_url(judge.base_url)
    if mistake:
        yield _conflict(path, mistake, 'Write it as in "https://api.example.org/v1".')


def _mistake_in_url(url: str) -> str | None:
    """Return what is wrong with the base of an API's address; what it holds is not repeated."""
    try:
        parts = urllib.parse.urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return "is no URL"
    if parts.scheme not in ("http", "https") or not has_host or not url.isascii():
        return "must begin with https:// or http:// and a host"
    if not url.isprintable() or " " in url:
        return "is no URL"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "must hold neither name, password, query nor fragment: the key is in api_key_env"
    return None


def _protocol(file: ConfigFile, spoken: tuple[KeyPath, ...]) -> Iterator[_Conflict]:
    agent = file.agent
    given, other = ("command", "python") if agent.python is None else ("python", "command")
    if agent.protocol is not None and (agent.protocol == "python") != (given == "python"):
        yield _conflict(
            ("agent", "protocol"),
            f"{found(agent.protocol)} does not go with {given}",
            f"Leave it out, or give {other} in place of {given}.",
            *spoken,
        )
    if agent.isolation == "inline" and agent.python is None:
        yield _conflict(
            ("agent", "isolation"),
            '"inline" needs a Python agent; a command runs in a process of its own',
            "Leave isolation out.",
            *spoken,
        )
    if agent.python is None and agent.allow:
        yield _conflict(
            ("agent", "allow"),
            "needs a Python agent: what a command does is not seen",
            "Leave allow out.",
            *spoken,
        )


def _patterns(path: KeyPath, patterns: Sequence[str]) -> Iterator[_Conflict]:
    for pattern in patterns:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            yield _conflict(path, f"{found(pattern)} is no regular expression: {error}")


def _faults(file: ConfigFile) -> Iterator[_Conflict]:
    faults, key = file.faults, ("faults",)
    if faults is None:
        return
    kinds = (*key, "kinds")
    yield from _repeated(kinds, faults.kinds)
    if not faults.weights:
        return
    if len(faults.weights) != len(faults.kinds):
        yield _conflict(
            (*key, "weights"),
            f"must hold {len(faults.kinds)} weights, one a kind, found {len(faults.weights)}",
            "They stand in the order of kinds.",
            kinds,
        )
    elif not sum(faults.weights):
        yield _conflict((*key, "weights"), "all weights are 0", "One must be above 0.", kinds)


def _repeated(path: KeyPath, names: Sequence[str]) -> Iterator[_Conflict]:
    for name, times in Counter(names).items():
        if times > 1:
            yield _conflict(path, f"{found(name)} is listed {times} times", "Once is enough.")


def _gate(file: ConfigFile) -> Iterator[_Conflict]:
    gate, key = file.gate, ("gate",)
    yield from _repeated((*key, "metrics"), gate.metrics)
    if gate.require == "non-inferiority" and not gate.margin:
        yield _conflict(
            (*key, "require"),
            '"non-inferiority" needs a margin above 0',
            "No number of trials shows that nothing at all was lost; start with 0.05.",
            (*key, "margin"),
        )
    for index, guard in enumerate(gate.guards):
        if guard.max_increase is None and guard.max_decrease is None:
            place = (*key, "guards", index)
            yield _conflict(place, "has no limit", "Set max_increase or max_decrease.")
    yield from _repeated((*key, "guards"), [guard.metric for guard in gate.guards])
    yield from _repeated((*key, "quarantine"), [entry.task for entry in gate.quarantine])


def _baseline(file: ConfigFile) -> Iterator[_Conflict]:
    yield from _inside(("baseline", "dir"), [file.baseline.dir])


def _not_yet(file: ConfigFile) -> Iterator[_Conflict]:
    for row in NOT_YET:
        value, default = value_at(file, row.path), value_at(_DEFAULTS, row.path)
        absent = value_at(file, row.path[:-1]) is None
        refused = value in row.refused if row.refused else value != default
        if refused and not absent:
            yield _conflict(
                row.path,
                f"{found(msgspec.to_builtins(value))} is not supported by this version of ci-gate",
                "Leave it out."
                if default is None
                else f"Leave it out; the default is {found(default)}.",
            )
