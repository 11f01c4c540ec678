"""Each row is a file that must be refused, where the mistake is, and what the message says."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path
from typing import Any

import pytest

from ci_gate.errors import FileFormatError
from ci_gate.model.run import Plan
from ci_gate.store.runs import load_run

HEADER = {"schema": "ci-gate/run@1", "suite": "desk"}
TRIAL = {"task": "refund", "trial": 0, "status": "passed"}
FOOTER = {
    "end": True,
    "trials": 1,
    "stop": {"round": 1, "reason": "complete"},
    "digest": "sha256:0",
}
PLANNED = {**HEADER, "plan": {"trials": 2, "max_repeats": 2}}

ROWS: list[tuple[str, list[Any], str]] = [
    ("empty", [], r":1: the file is empty"),
    ("truncated header", [b'{"schema":"ci-ga'], r":1: is not JSON: Input data was truncated"),
    ("not JSON", [b"hello\n"], r":1: is not JSON"),
    ("array", [b"[]\n"], r":1: is not a JSON object, found an array"),
    ("byte order mark", [b"\xef\xbb\xbf{}\n"], r":1: begins with a byte order mark"),
    ("no schema", [{"suite": "x"}], r":1: has no `schema`\. Expected ci-gate/run@1"),
    (
        "newer",
        [{**HEADER, "schema": "ci-gate/run@2"}],
        r":1: ci-gate/run@2 is another version than the one this version reads: upgrade ci-gate",
    ),
    (
        "baseline",
        [{**HEADER, "schema": "ci-gate/baseline@1"}],
        r":1: has the schema ci-gate/baseline@1\. Expected ci-gate/run@1",
    ),
    ("schema of a wrong type", [{**HEADER, "schema": 1}], r":1: has the schema 1"),
    ("no suite", [{"schema": "ci-gate/run@1"}], r":1: .*missing required field `suite`"),
    ("bad seed", [{**HEADER, "root_seed": "xyz"}], r":1: root_seed: a seed is hexadecimal"),
    ("long seed", [{**HEADER, "root_seed": "0x1" + "0" * 16}], r"root_seed: a seed is a whole"),
    ("no trials", [{**HEADER, "plan": {"trials": 0}}], r":1: plan: trials is 0"),
    ("huge plan", [{**HEADER, "plan": {"trials": 10**12}}], r":1: plan: trials is 10{12}"),
    (
        "huge own number",
        [{**HEADER, "plan": {"trials": 1, "task_trials": {"a\n": -1}}}],
        r":1: plan: task_trials\[a\\n\] is -1",
    ),
    ("repeats", [{**HEADER, "plan": {"trials": 1, "repeats": 0}}], r"plan: repeats is 0"),
    ("no status", [HEADER, {"task": "a", "trial": 0}], r":2: .*required field `status`"),
    (
        "status",
        [HEADER, {**TRIAL, "status": "ok"}],
        r":2: Invalid enum value 'ok' - at `\$\.status`",
    ),
    ("type", [HEADER, {**TRIAL, "trial": "0"}], r":2: Expected `int`, got `str` - at `\$\.trial`"),
    ("negative", [HEADER, {**TRIAL, "trial": -1}], r":2: Expected `int` >= 0 - at `\$\.trial`"),
    ("attempt 0", [HEADER, {**TRIAL, "attempt": 0}], r":2: Expected `int` >= 1"),
    (
        "NaN",
        [HEADER, b'{"task":"a","trial":0,"status":"passed","cost_usd":NaN}\n'],
        r":2: is not JSON: found NaN, which is written null",
    ),
    (
        "infinity",
        [HEADER, b'{"task":"a","trial":0,"status":"passed","cost_usd":-Infinity}\n'],
        r":2: is not JSON: found -Infinity",
    ),
    (
        "beyond floats",
        [HEADER, b'{"task":"a","trial":0,"status":"passed","cost_usd":1e999}\n'],
        r":2: is not JSON: Number out of range",
    ),
    ("negative cost", [HEADER, {**TRIAL, "cost_usd": -1.0}], r":2: Expected `float` >= 0"),
    (
        "not UTF-8",
        [HEADER, b'{"task":"\xff","trial":0,"status":"passed"}\n'],
        r":2: is not UTF-8: byte 9 is 0xff",
    ),
    (
        "not UTF-8 in an unknown field",
        [HEADER, b'{"task":"a","trial":0,"status":"passed","x":"\xff"}\n'],
        r":2: ",
    ),
    (
        "surrogate",
        [HEADER, b'{"task":"\\ud800","trial":0,"status":"passed"}\n'],
        r":2: is not JSON",
    ),
    (
        "nested",
        [
            HEADER,
            b'{"task":"a","trial":0,"status":"passed","x":' + b"[" * 10**5 + b"]" * 10**5 + b"}\n",
        ],
        r":2: ",
    ),
    ("torn", [HEADER, TRIAL, b'{"task":"refund","tr'], r"the last line is torn after 20 bytes"),
    ("broken line", [PLANNED, b'{"task":"ref\n', TRIAL], r":2: is not JSON"),
    (
        "twice",
        [HEADER, TRIAL, TRIAL],
        r":3: task refund, trial 0, repeat 0: attempt 1 is there twice",
    ),
    (
        "twice, superseded",
        [HEADER, TRIAL, {**TRIAL, "attempt": 2}, {**TRIAL, "attempt": 1}],
        r":4: .*attempt 1 is there twice",
    ),
    (
        "trial out of range",
        [PLANNED, {**TRIAL, "trial": 2}],
        r":2: task refund: trial 2 is out of range, the task has 2 trials",
    ),
    (
        "own number",
        [{**HEADER, "plan": {"trials": 9, "task_trials": {"refund": 1}}}, {**TRIAL, "trial": 1}],
        r":2: task refund: trial 1 is out of range, the task has 1 trials",
    ),
    (
        "repeat out of range",
        [PLANNED, {**TRIAL, "repeat": 2}],
        r":2: task refund: repeat 2 is out of range, the plan has at most 2 repeats",
    ),
    (
        "index without plan",
        [HEADER, {**TRIAL, "trial": 10**6}],
        r":2: .*trial 1000000 is out of range",
    ),
    (
        "hostile id",
        [HEADER, {**TRIAL, "task": "a\u202eb"}],
        r":2: the task id 'a\\u202eb' contains",
    ),
    (
        "two digests",
        [HEADER, {**TRIAL, "task_digest": "x"}, {**TRIAL, "trial": 1, "task_digest": "y"}],
        r":3: task refund has another task_digest than before",
    ),
    ("seed", [HEADER, {**TRIAL, "seed": "0xZZ"}], r":2: a seed is hexadecimal"),
    (
        "seeds of repeats",
        [HEADER, {**TRIAL, "seed": "0x1"}, {**TRIAL, "repeat": 1, "seed": "0x2"}],
        r":3: task refund, trial 0: repeat 1 has another seed than repeat 0",
    ),
    (
        "counted wrong",
        [PLANNED, TRIAL, {**FOOTER, "trials": 2}],
        r"counts 2 trials, the file has 1",
    ),
    ("wrong digest", [PLANNED, TRIAL, FOOTER], r"digest sha256:0 is not that of the lines"),
    (
        "stop",
        [PLANNED, TRIAL, {**FOOTER, "stop": {"round": 1, "reason": "tired"}}],
        r":3: Invalid enum",
    ),
    ("after the end", [PLANNED, FOOTER, TRIAL], r":3: a line follows the footer"),
    ("torn after the end", [PLANNED, FOOTER, b'{"ta'], r":3: a line follows the footer"),
]


@pytest.mark.parametrize(
    ("lines", "message"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_bad_file_is_refused_with_its_line(desk, lines: list[Any], message: str) -> None:
    """Every bad file ends in one message with file, line and what was found, and status 2."""
    path = desk.lines(*lines)

    with pytest.raises(
        FileFormatError, match="^" + re.escape(str(path)) + ".*" + message
    ) as caught:
        load_run(path)

    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A missing file, a folder and a pipe are refused at once."""
    path = tmp_path / "x.run.jsonl"
    {"missing": lambda: None, "folder": path.mkdir, "pipe": lambda: os.mkfifo(path)}[kind]()

    with pytest.raises(FileFormatError, match=re.escape(str(path))):
        load_run(path)


@pytest.mark.parametrize("line", [1, 2])
def test_an_endless_line_is_not_read_whole(desk, line: int) -> None:
    """A line of 200 MB is refused after 16 MiB, as header and as trial."""
    path = desk.lines(desk.minimal) if line == 2 else desk.lines()
    with path.open("ab") as stream:
        stream.write(b'{"task":"')
        stream.truncate(200 * 10**6)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(FileFormatError, match=f":{line}: the line is longer than 16777216 bytes"):
        load_run(path)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_hostile_names_stay_on_one_line(desk) -> None:
    """A file name with escapes and newlines cannot forge a message."""
    path = desk.lines(b"hello\n", name="a\n::error::b\x1b[31m.run.jsonl")

    with pytest.raises(FileFormatError) as caught:
        load_run(path)

    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_an_edited_outcome_is_noticed(desk, edited) -> None:
    """Turning one failure into a pass makes the footer's digest wrong."""
    path = edited(desk.write("refund ++-+"), b'"failed"', b'"passed"')

    with pytest.raises(FileFormatError, match="is not that of the lines"):
        load_run(path)


def test_a_removed_line_is_noticed(desk) -> None:
    """A line less makes the footer's count wrong."""
    path = desk.write("refund ++-+")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))

    with pytest.raises(FileFormatError, match="counts 4 trials, the file has 3"):
        load_run(path)


def test_every_truncation_of_a_run_is_refused_or_said(desk) -> None:
    """No prefix of a finished run passes for a finished run."""
    path = desk.write("refund +-", plan=Plan(trials=2))

    for length in range(path.stat().st_size - 2, -1, -5):
        os.truncate(path, length)
        try:
            run = load_run(path)
        except FileFormatError:
            continue
        assert not run.complete
