"""Task files into a suite: every mistake of every file at once, a digest for every task.

This module decides what a legal task is and which bytes make it the same task as before. It must
not know what graders do with their options, nor whether files come from the disk or from a commit.

Notes
-----
The **digest of a task** is SHA-256 over the RFC 8785 form of ``{"task": ..., "files": {...}}``:
the task's id, instruction, input, metadata, tags, limits, graders, and its expectations, its own
tables, identity, now, number of trials and seed where it has them; and for each file its SHA-256.
Files are the fixture's (``fixture/NAME``, at any depth; ``x:`` before the digest of an executable
one, ``link:`` and the target's text for a link) and the module of an own grader (``grader/PATH``,
relative to the agent's root). The **digest of the suite** is that of ``{"tasks": {ID: DIGEST}}``.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ci_gate.codec import canonical_of_json, digest_bytes, digest_of
from ci_gate.errors import SuiteError, printable
from ci_gate.model.suite import GraderSpec, Limits, Suite, Task
from ci_gate.model.worlds import mistake_in_now, mistake_in_tables
from ci_gate.prng import format_seed, parse_seed, task_seed
from ci_gate.process.expectation import expectation_problems
from ci_gate.store.files import read_whole
from ci_gate.store.paths import folder_of, mistake_in_id, named_beside
from ci_gate.store.rubrics import with_rubric
from ci_gate.store.schema_files import with_schemas
from ci_gate.store.taskfiles import Findings, RawTask, nearest, tasks_in
from ci_gate.store.trees import DiskReader, FileReader, expand, mistake_in_pattern

__all__ = ["SuiteRules", "load_suite", "parse_task_files"]

_SUFFIXES: Final = (".toml", ".jsonl")
_MAX_TASK_FILE_BYTES: Final = 64 * 2**20
_MAX_TRIALS: Final = 10**6
_GRADER_KEYS: Final = ("type", "name")
Mistakes = Iterator[tuple[str, str]]


def _no_mistakes(_: GraderSpec) -> tuple[str, ...]:
    return ()


class SuiteRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says of a suite's tasks.

    Parameters
    ----------
    root_seed : int
        From which tasks without their own seed derive theirs.
    trials : int
        Of a task without its own number.
    known_graders : collection of str
    require_graders : bool
        Whether a task without a grader is a mistake.
    mistakes_of : callable
        What is wrong with a grader's options.
    """

    root_seed: int
    trials: int
    known_graders: Collection[str]
    require_graders: bool
    mistakes_of: Callable[[GraderSpec], Iterable[str]] = _no_mistakes


class _Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Where files are read from while one suite is made, and what was found wrong."""

    rules: SuiteRules
    files: FileReader
    agent_files: FileReader
    root: Path | None
    findings: Findings = msgspec.field(default_factory=Findings)
    digests: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)


def load_suite(
    name: str,
    patterns: Sequence[str],
    *,
    root: Path,
    root_seed: int,
    trials: int,
    known_graders: Collection[str],
    require_graders: bool,
    agent_root: Path,
    mistakes_of: Callable[[GraderSpec], Iterable[str]] = _no_mistakes,
) -> Suite:
    """Load a suite from the disk.

    Parameters
    ----------
    name : str
    patterns : sequence of str
        Globs relative to ``root``; of what they match, ``.toml`` and ``.jsonl`` files are read.
    root : Path
        Folder that no pattern and no fixture may leave.
    root_seed, trials, known_graders, require_graders, mistakes_of
        As in ``SuiteRules``.
    agent_root : Path
        Where the modules of own graders are found.

    Raises
    ------
    SuiteError
        Every mistake of every file, or nothing matched.
    """
    names = _task_files(patterns, root)
    base = root.resolve()
    contents = {one: read_whole(base / one, limit=_MAX_TASK_FILE_BYTES) for one in names}
    rules = SuiteRules(
        root_seed=root_seed,
        trials=trials,
        known_graders=known_graders,
        require_graders=require_graders,
        mistakes_of=mistakes_of,
    )
    return parse_task_files(
        contents,
        name=name,
        rules=rules,
        files=DiskReader(root),
        agent_files=DiskReader(agent_root),
        root=base,
    )


def _task_files(patterns: Sequence[str], root: Path) -> list[str]:
    findings = Findings()
    for pattern in patterns:
        mistake = mistake_in_pattern(pattern)
        if mistake:
            findings.add(f"tasks '{printable(pattern)}'", mistake)
    _raise_any(findings)
    found = expand(root, patterns)
    names = [name for name in found if name.endswith(_SUFFIXES)]
    if not names:
        raise _nothing_matched(patterns, root, len(found))
    return names


def _nothing_matched(patterns: Sequence[str], root: Path, others: int) -> SuiteError:
    shown = ", ".join(repr(printable(pattern)) for pattern in patterns) or "no pattern"
    what = f"no task file matches {shown}"
    if others:
        what += f": {others} files match, none of them .toml or .jsonl"
    return SuiteError(what, where=printable(root), hint="Globs are relative to this folder.")


def _raise_any(findings: Findings) -> None:
    if findings.problems:
        raise SuiteError.of(findings.problems)


def parse_task_files(
    contents: Mapping[str, bytes],
    *,
    name: str,
    rules: SuiteRules,
    files: FileReader,
    agent_files: FileReader,
    root: Path | None = None,
) -> Suite:
    """Make a suite of the contents of task files, wherever they are from.

    Parameters
    ----------
    contents : mapping of str to bytes
        Task files by their path relative to the root.
    name : str
    rules : SuiteRules
    files : FileReader
        For fixtures; paths relative to the root.
    agent_files : FileReader
        For the modules of own graders; paths relative to the agent's root.
    root : Path, optional
        Where the root is on this disk; without it tasks have no ``fixture_path``.

    Raises
    ------
    SuiteError
        Every mistake of every file, in the order of the files.
    """
    reading = _Reading(rules=rules, files=files, agent_files=agent_files, root=root)
    raw = [
        task
        for file in sorted(contents)
        for task in tasks_in(file, contents[file], reading.findings)
    ]
    tasks = [task for task in (_task(one, reading) for one in raw) if task is not None]
    _check_together(raw, reading.findings)
    if not raw and not reading.findings.problems:
        reading.findings.add(printable(name), "has no task files")
    _raise_any(reading.findings)
    tasks.sort(key=lambda task: task.id)
    digest = digest_of({"tasks": {task.id: task.digest for task in tasks}})
    return Suite(
        name=name,
        root_seed=rules.root_seed,
        trials=rules.trials,
        tasks=tuple(tasks),
        digest=digest,
    )


def _check_together(raw: Sequence[RawTask], findings: Findings) -> None:
    """Find ids that are there twice, and ids that would share a folder."""
    first: dict[str, RawTask] = {}
    folders: dict[str, str] = {}
    for task in raw:
        task_id = task.fields.get("id")
        if not isinstance(task_id, str):
            continue
        if task_id in first:
            what = f"the id '{printable(task_id)}' is already used in {first[task_id].source}"
            findings.add(task.source, what)
            continue
        first[task_id] = task
        other = folders.setdefault(folder_of(task_id), task_id)
        if other != task_id:
            what = f"the id '{printable(task_id)}' would share a folder with '{printable(other)}'"
            findings.add(task.source, what, "Change one of them by a character.")


def _task(raw: RawTask, reading: _Reading) -> Task | None:
    """Return the task, or None after adding its mistakes to the findings."""
    mistakes = [*_mistakes(raw.fields, reading.rules), *_unknown_keys(raw.fields)]
    for path, what in mistakes:
        reading.findings.add(_where_of(raw, path), what)
    if mistakes:
        return None
    graders = _with_files(_graders(raw.fields.get("graders", ())), raw, reading)
    _check_graders(graders, raw, reading)
    digests = {**_fixture_digests(raw, reading), **_grader_digests(graders, reading)}
    return _made(raw, graders, digests, reading)


def _unknown_keys(fields: Mapping[str, Any]) -> Mistakes:
    for key in sorted(fields.keys() - _CHECKS.keys()):
        yield printable(key), f"is unknown. {nearest(key, _CHECKS)}"


def _where(raw: RawTask) -> str:
    task_id = raw.fields.get("id")
    return f"{raw.source}: task '{printable(task_id)}'" if isinstance(task_id, str) else raw.source


def _where_of(raw: RawTask, path: str) -> str:
    """Return where a key is; what came from ``[defaults]`` alone is said once, of them."""
    if path.partition(".")[0].partition("[")[0] in raw.defaulted:
        return f"{printable(raw.file)}: defaults.{path}"
    return f"{_where(raw)}: {path}"


def _mistakes(fields: Mapping[str, Any], rules: SuiteRules) -> Mistakes:
    for key in ("id", "instruction"):
        if key not in fields:
            yield key, "is missing"
    for key, value in fields.items():
        if key in _CHECKS:
            yield from _CHECKS[key](key, value)
    graders = fields.get("graders", [])
    if isinstance(graders, list):
        yield from _grader_mistakes(graders, rules)
    if "expect" in fields:
        yield from _expect_mistakes(fields)


def _expect_mistakes(fields: Mapping[str, Any]) -> Mistakes:
    for below, what in expectation_problems(fields["expect"], fields.get("input")):
        yield f"expect.{below}" if below else "expect", what


def _check_id(key: str, value: Any) -> Mistakes:
    if not isinstance(value, str):
        yield key, f"must be a string, found {_shown(value)}"
        return
    mistake = mistake_in_id(value)
    if mistake:
        yield key, mistake


def _shown(value: Any) -> str:
    return printable(repr(value), limit=60)


def _check_text(key: str, value: Any) -> Mistakes:
    if not isinstance(value, str):
        yield key, f"must be a string, found {_shown(value)}"


def _check_any(_key: str, _value: Any) -> Mistakes:
    return iter(())


def _check_table(key: str, value: Any) -> Mistakes:
    if not isinstance(value, dict):
        yield key, f"must be a table, found {_shown(value)}"


def _check_texts(key: str, value: Any) -> Mistakes:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        yield key, f"must be a list of strings, found {_shown(value)}"


def _check_trials(key: str, value: Any) -> Mistakes:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MAX_TRIALS:
        yield key, f"must be a whole number from 1 to {_MAX_TRIALS}, found {_shown(value)}"


def _check_seed(key: str, value: Any) -> Mistakes:
    if isinstance(value, bool) or not isinstance(value, str | int):
        yield key, f"must be a hexadecimal string or a whole number, found {_shown(value)}"
        return
    try:
        parse_seed(value)
    except ValueError as error:
        yield key, printable(error)


def _check_tables(key: str, value: Any) -> Mistakes:
    mistake = mistake_in_tables(value)
    if mistake:
        yield key, mistake


def _check_now(key: str, value: Any) -> Mistakes:
    mistake = mistake_in_now(value)
    if mistake:
        yield key, mistake


def _check_limits(key: str, value: Any) -> Mistakes:
    if not isinstance(value, dict):
        yield key, f"must be a table, found {_shown(value)}"
        return
    known = {limit.name: limit.type for limit in msgspec.structs.fields(Limits)}
    for name, limit in value.items():
        path = f"{key}.{printable(name)}"
        if name not in known:
            yield path, f"is unknown. {nearest(name, known)}"
        elif isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0:
            yield path, f"must be a number above 0, found {_shown(limit)}"
        elif known[name] == int | None and not isinstance(limit, int):
            yield path, f"must be a whole number, found {_shown(limit)}"


def _check_list(key: str, value: Any) -> Mistakes:
    if not isinstance(value, list):
        yield key, f"must be a list of tables, found {_shown(value)}"


_CHECKS: Final[Mapping[str, Callable[[str, Any], Mistakes]]] = {
    "id": _check_id,
    "instruction": _check_text,
    "input": _check_any,
    "metadata": _check_table,
    "tags": _check_texts,
    "fixture": _check_text,
    "tables": _check_tables,
    "identity": _check_table,
    "now": _check_now,
    "limits": _check_limits,
    "trials": _check_trials,
    "seed": _check_seed,
    "grader": _check_text,
    "graders": _check_list,
    "expect": _check_any,
}


def _grader_mistakes(graders: Sequence[Any], rules: SuiteRules) -> Mistakes:
    if not graders and rules.require_graders:
        yield "graders", "are missing: a task needs at least one"
    for at, grader in enumerate(graders):
        yield from _one_grader_mistakes(f"graders[{at}]", grader, rules)
    names = [one.get("name") for one in graders if isinstance(one, dict)]
    for name, count in Counter(name for name in names if isinstance(name, str)).items():
        if count > 1:
            yield "graders", f"have the name '{printable(name)}' {count} times"


def _one_grader_mistakes(path: str, grader: Any, rules: SuiteRules) -> Mistakes:
    if not isinstance(grader, dict):
        yield path, f"must be a table, found {_shown(grader)}"
        return
    kind, name = grader.get("type"), grader.get("name", "x")
    if kind is None:
        yield f"{path}.type", f"is missing. Known are {', '.join(sorted(rules.known_graders))}."
    elif not isinstance(kind, str) or kind not in rules.known_graders:
        hint = nearest(str(kind), rules.known_graders)
        yield f"{path}.type", f"is {_shown(kind)}, which is unknown. {hint}"
    if not isinstance(name, str) or mistake_in_id(name):
        yield f"{path}.name", f"must be a printable string, found {_shown(name)}"


def _graders(tables: Sequence[Mapping[str, Any]]) -> tuple[GraderSpec, ...]:
    """Return the graders; one without a name is called by its type, -2, -3 where that is taken."""
    taken = {table["name"] for table in tables if "name" in table}
    graders = []
    for table in tables:
        name = table.get("name") or _free_name(table["type"], taken)
        taken.add(name)
        options = {key: value for key, value in table.items() if key not in _GRADER_KEYS}
        graders.append(GraderSpec(type=table["type"], name=name, options=options))
    return tuple(graders)


def _free_name(kind: str, taken: Collection[str]) -> str:
    candidates = (
        kind if number == 1 else f"{kind}-{number}" for number in range(1, len(taken) + 2)
    )
    return next(name for name in candidates if name not in taken)


def _with_files(
    graders: Iterable[GraderSpec], raw: RawTask, reading: _Reading
) -> tuple[GraderSpec, ...]:
    folder, found = posixpath.dirname(raw.file), []
    for grader in graders:
        options, of_schemas = with_schemas(grader.type, grader.options, folder, reading.files)
        options, of_rubric = with_rubric(grader.type, options, folder, reading.files)
        for option, what in (*of_schemas, *of_rubric):
            where = f"{_where(raw)}: grader '{printable(grader.name)}'"
            reading.findings.add(where, f"option '{printable(option)}' {what}")
        found.append(msgspec.structs.replace(grader, options=options))
    return tuple(found)


def _check_graders(graders: Iterable[GraderSpec], raw: RawTask, reading: _Reading) -> None:
    for grader in graders:
        for mistake in reading.rules.mistakes_of(grader):
            where = f"{_where(raw)}: grader '{printable(grader.name)}'"
            reading.findings.add(where, printable(mistake, limit=1000))


def _fixture_digests(raw: RawTask, reading: _Reading) -> dict[str, str]:
    if "fixture" not in raw.fields:
        return {}
    path = _fixture_path(raw)
    if path is None:
        what = f"{_shown(raw.fields['fixture'])} leaves the project"
        reading.findings.add(f"{_where(raw)}: fixture", what, "It is relative to its task file.")
        return {}
    if path not in reading.digests:
        reading.digests[path] = _digests_below(path, reading.files)
    if not reading.digests[path]:
        what = f"{_shown(raw.fields['fixture'])} is no file and no folder with files"
        reading.findings.add(f"{_where(raw)}: fixture", what, "It is relative to its task file.")
    return reading.digests[path]


def _fixture_path(raw: RawTask) -> str | None:
    """Return the fixture's path relative to the root, None where that is outside."""
    return named_beside(posixpath.dirname(raw.file), raw.fields["fixture"])


def _digests_below(path: str, files: FileReader) -> dict[str, str]:
    content = files.read(path)
    if content is not None:
        return {f"fixture/{posixpath.basename(path)}": digest_bytes(content)}
    digests = {}
    for entry in files.list(path):
        name = f"fixture/{entry.path.removeprefix(path).lstrip('/')}"
        if entry.target is not None:
            digests[name] = f"link:{entry.target}"
            continue
        content = files.read(entry.path)
        if content is None:
            raise SuiteError("cannot be read", where=printable(entry.path))
        digests[name] = ("x:" if entry.executable else "") + digest_bytes(content)
    return digests


def _grader_digests(graders: Iterable[GraderSpec], reading: _Reading) -> dict[str, str]:
    """Return the digest of each own grader's module; an installed one is known by name alone."""
    digests = {}
    for grader in graders:
        function = grader.options.get("function")
        if grader.type != "python" or not isinstance(function, str):
            continue
        place = function.partition(":")[0].replace(".", "/")
        for path in (f"{place}.py", f"{place}/__init__.py"):
            content = reading.agent_files.read(path) if _is_module(place) else None
            if content is not None:
                digests[f"grader/{path}"] = digest_bytes(content)
    return digests


def _is_module(place: str) -> bool:
    return all(part.isidentifier() for part in place.split("/"))


def _made(
    raw: RawTask,
    graders: tuple[GraderSpec, ...],
    digests: Mapping[str, str],
    reading: _Reading,
) -> Task | None:
    fields = raw.fields
    seed = parse_seed(fields["seed"]) if "seed" in fields else None
    path = _fixture_path(raw) if "fixture" in fields else None
    task = Task(
        id=fields["id"],
        instruction=fields["instruction"],
        input=fields.get("input"),
        metadata=fields.get("metadata", {}),
        tags=tuple(fields.get("tags", ())),
        fixture=fields.get("fixture"),
        fixture_path=str(reading.root / path) if reading.root and path else None,
        tables=fields.get("tables"),
        identity=fields.get("identity"),
        now=fields["now"].replace("+00:00", "Z") if "now" in fields else None,
        limits=msgspec.convert(fields.get("limits", {}), Limits),
        graders=graders,
        expect=fields.get("expect", {}),
        trials=fields.get("trials"),
        base_seed=task_seed(reading.rules.root_seed, fields["id"]) if seed is None else seed,
        digest="",
        source=raw.source,
    )
    try:
        return msgspec.structs.replace(task, digest=_digest(task, seed, digests))
    except RecursionError:
        reading.findings.add(_where(raw), "is nested too deep")
        return None


def _digest(task: Task, seed: int | None, files: Mapping[str, str]) -> str:
    facts: dict[str, Any] = {
        "id": task.id,
        "instruction": task.instruction,
        "input": task.input,
        "metadata": task.metadata,
        "tags": task.tags,
        "limits": msgspec.to_builtins(task.limits),
        "graders": msgspec.to_builtins(task.graders),
    }
    if task.expect:
        facts["expect"] = task.expect
    own = {"tables": task.tables, "identity": task.identity, "now": task.now, "trials": task.trials}
    facts |= {key: value for key, value in own.items() if value is not None}
    if seed is not None:
        facts["seed"] = format_seed(seed)
    return digest_bytes(canonical_of_json({"task": facts, "files": files}))
