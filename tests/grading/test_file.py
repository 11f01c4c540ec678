"""The grader of files: what is there, what is in it, and no way out of the folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ci_gate.grading.file import LARGEST_READ, build, validate
from ci_gate.model.trial import Grade, Trajectory
from tests.trials import BareWorld, spec_of, trial_of


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    """A working directory with two files."""
    folder = tmp_path / "work"
    (folder / "out").mkdir(parents=True)
    (folder / "report.txt").write_text("total: 45.00\n")
    (folder / "out" / "mail.txt").write_text("Dear Ada")
    return folder


def graded(workdir: Path | None, **options: Any) -> Grade:
    spec = spec_of("file", **options)
    assert validate(spec) == []
    return build(spec).grade(trial_of(), Trajectory(), BareWorld(workdir=workdir))


@pytest.mark.parametrize(
    "options",
    [
        {"path": "report.txt", "exists": True},
        {"path": "./out//mail.txt", "exists": True},
        {"path": "out/mail.txt", "equals": "Dear Ada"},
        {"path": "report.txt", "contains": "45.00"},
        {"path": "report.txt", "contains": ["total", "45"], "exists": True},
        {"path": "report.txt", "matches": r"total: \d+"},
        {"path": "missing.txt", "exists": False},
        {"path": "missing/inner.txt", "exists": False},
        {"path": "report.txt/inner.txt", "exists": False},
    ],
)
def test_a_file_as_asked_passes(workdir: Path, options: dict[str, Any]) -> None:
    """Existence, absence and content are checked at the path below the working directory."""
    assert graded(workdir, **options) == Grade(grader="file", passed=True)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"path": "no.txt", "exists": True}, "expected a file no.txt, found none"),
        ({"path": "no.txt", "contains": "x"}, "expected a file no.txt, found none"),
        ({"path": "report.txt", "exists": False}, "expected no file report.txt, found one"),
        (
            {"path": "out/mail.txt", "equals": "Dear Bo"},
            'out/mail.txt: expected "Dear Bo", found "Dear Ada"',
        ),
        ({"path": "out", "exists": True}, "out cannot be read: it is not a regular file"),
        ({"path": "out", "exists": False}, "out cannot be read: it is not a regular file"),
    ],
)
def test_reasons_name_the_file(workdir: Path, options: dict[str, Any], reason: str) -> None:
    """A failed grade says which file, what was expected and what was found."""
    assert graded(workdir, **options) == Grade(grader="file", passed=False, reason=reason)


def test_a_trial_without_a_folder_has_no_files() -> None:
    """Without a working directory nothing exists, which may be what is asked."""
    assert not graded(None, path="a.txt", exists=True).passed
    assert graded(None, path="a.txt", exists=False).passed


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("path", ["link.txt", "folder/secret.txt", "dangling"])
def test_links_are_never_followed(workdir: Path, tmp_path: Path, path: str, exists: bool) -> None:
    """A link, as the file or on the way to it, fails whether a file is wanted or not."""
    (tmp_path / "secret.txt").write_text("root:x:0:0")
    (workdir / "link.txt").symlink_to(tmp_path / "secret.txt")
    (workdir / "folder").symlink_to(tmp_path)
    (workdir / "dangling").symlink_to("nowhere")
    grade = graded(workdir, path=path, exists=exists)
    assert grade.reason == f"{path} cannot be read: it is a symbolic link, which is not followed"


def test_a_replaced_working_directory_is_not_entered(workdir: Path, tmp_path: Path) -> None:
    """An agent that puts a link in place of its folder shows the grader nothing."""
    workdir.rename(tmp_path / "elsewhere")
    workdir.symlink_to(tmp_path / "elsewhere")
    assert not graded(workdir, path="report.txt", exists=True).passed


def test_pipes_and_devices_do_not_hang(workdir: Path) -> None:
    """A pipe at the path fails at once."""
    os.mkfifo(workdir / "pipe")
    reason = graded(workdir, path="pipe", contains="x").reason
    assert reason == "pipe cannot be read: it is not a regular file"


def test_content_is_bounded(workdir: Path) -> None:
    """A file beyond the bound fails without being read whole."""
    with (workdir / "big").open("wb") as file:
        file.truncate(LARGEST_READ + 1)
    reason = graded(workdir, path="big", contains="x").reason
    assert reason == f"big cannot be read: it has more than {LARGEST_READ} bytes"
    assert graded(workdir, path="big", exists=True).passed


def test_content_that_is_not_text_fails(workdir: Path) -> None:
    """Conditions are on text, so other bytes meet none."""
    (workdir / "bytes").write_bytes(b"\xff\xfe")
    assert graded(workdir, path="bytes", contains="x").reason == (
        "bytes cannot be read: it is not UTF-8"
    )


def test_no_descriptor_is_left_open(workdir: Path) -> None:
    """Grading many files, found or not, leaves no file open."""
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(50):
        graded(workdir, path="out/mail.txt", contains="Ada")
        graded(workdir, path="out/no/file.txt", exists=False)
        graded(workdir, path="out", exists=True)
    assert len(list(Path("/dev/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"exists": True}, "option 'path' must name a file"),
        ({"path": "", "exists": True}, "option 'path' must name a file"),
        ({"path": 3, "exists": True}, "option 'path' must name a file"),
        ({"path": "/etc/passwd", "exists": True}, "must stay inside the working directory"),
        ({"path": "a/../../b", "exists": True}, "must stay inside the working directory"),
        ({"path": "a\0b", "exists": True}, "must stay inside the working directory"),
        ({"path": ".", "exists": True}, "must stay inside the working directory"),
        ({"path": "a"}, "nothing is expected: give 'exists' or 'equals'"),
        ({"path": "a", "exists": "yes"}, "option 'exists' must be true or false"),
        ({"path": "a", "exists": False, "equals": "x"}, "'exists' = false excludes 'equals'"),
        ({"path": "a", "matches": "["}, "is no regular expression"),
        ({"path": "a", "exists": True, "matches": "["}, "is no regular expression"),
        ({"path": "a", "contain": "x"}, "unknown option 'contain'; did you mean 'contains'?"),
    ],
)
def test_mistakes_are_named_when_the_suite_is_loaded(options: dict[str, Any], said: str) -> None:
    """A path that leads out, or a condition that is none, is refused before any trial."""
    problems = validate(spec_of("file", **options))
    assert any(said in problem for problem in problems), problems
