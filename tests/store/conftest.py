"""Real run files from a tiny notation: ``refund ++-+/+++! cancel ----``, ``/`` begins a repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ci_gate.codec import digest_bytes, encode
from ci_gate.model.run import AgentRef, Plan, RunHeader, Stop, StopReason
from ci_gate.model.trial import Status, TrialRecord
from ci_gate.prng import derive_seed, format_seed, task_seed
from ci_gate.store.journal import Journal
from ci_gate.store.runs import RunFile, load_run

ROOT_SEED = 0x20261030
STATUS = {"+": Status.PASSED, "-": Status.FAILED, "!": Status.ERRORED}


def records_of(notation: str, **fields: Any) -> list[TrialRecord]:
    """Return a record for each outcome; ``.`` is a trial that has none."""
    words = notation.split()
    return [
        TrialRecord(
            task=task,
            task_digest=digest_bytes(task.encode()),
            trial=trial,
            repeat=repeat,
            seed=format_seed(derive_seed(task_seed(ROOT_SEED, task), trial)),
            status=STATUS[char],
            **fields,
        )
        for task, outcomes in zip(words[::2], words[1::2], strict=True)
        for repeat, row in enumerate(outcomes.split("/"))
        for trial, char in enumerate(row)
        if char != "."
    ]


def header_of(trials: int = 8, **fields: Any) -> RunHeader:
    """Return the header of a planned run."""
    settings: dict[str, Any] = {
        "suite": "desk",
        "suite_digest": "sha256:suite",
        "root_seed": format_seed(ROOT_SEED),
        "plan": Plan(trials=trials, max_repeats=4),
        "agent": AgentRef(name="good", digest="sha256:good", dirty=False),
    }
    return RunHeader(**(settings | fields))


def write_run(
    path: Path,
    records: Iterable[TrialRecord],
    header: RunHeader | None = None,
    reason: StopReason = StopReason.COMPLETE,
) -> Path:
    """Write a finished run through the journal."""
    with Journal.open(path, header or header_of(), fresh=True) as journal:
        for record in records:
            journal.append(record)
        journal.finish(Stop(round=8, reason=reason))
    return path


def write_lines(path: Path, *lines: Any) -> Path:
    """Write lines as another tool might: values become JSON, bytes stay."""
    texts = [line if isinstance(line, bytes) else encode(line) + b"\n" for line in lines]
    path.write_bytes(b"".join(texts))
    return path


HEADER = {"schema": "ci-gate/run@1", "suite": "desk"}


def trial(index: int = 0, **fields: Any) -> dict[str, Any]:
    """Return the least that a trial line must say, and more."""
    return {"task": "refund", "trial": index, "status": "passed", **fields}


class Desk:
    """The functions above, bound to one test's folder."""

    header = staticmethod(header_of)
    records = staticmethod(records_of)
    trial = staticmethod(trial)
    minimal = HEADER

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "desk.run.jsonl"

    def lines(self, *lines: Any, name: str = "desk.run.jsonl") -> Path:
        """Write a file of another tool."""
        return write_lines(self.folder / name, *lines)

    def write(self, source: str | Sequence[TrialRecord], name: str = "desk", **fields: Any) -> Path:
        """Write a finished run; fields are the header's."""
        records = records_of(source) if isinstance(source, str) else source
        reason = fields.pop("reason", StopReason.COMPLETE)
        path = self.folder / f"{name}.run.jsonl"
        return write_run(path, records, header_of(**fields), reason)

    def run(
        self, source: str | Sequence[TrialRecord], name: str = "desk", **fields: Any
    ) -> RunFile:
        """Write a finished run and load it."""
        return load_run(self.write(source, name, **fields))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return writers of real run files in a folder of this test."""
    return Desk(tmp_path)


@pytest.fixture(scope="session")
def desk_in() -> type[Desk]:
    """Return what makes writers for a folder, for fixtures that several tests share."""
    return Desk


@pytest.fixture
def edited() -> Callable[[Path, bytes, bytes], Path]:
    """Return a function that replaces bytes in a file that has them."""

    def edit(path: Path, old: bytes, new: bytes) -> Path:
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new))
        return path

    return edit
