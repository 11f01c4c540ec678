"""Rubrics in files: part of their task, wherever they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci_gate.store.rubrics import with_rubric
from ci_gate.store.trees import DiskReader


@pytest.fixture
def files(tmp_path: Path) -> DiskReader:
    """Return the files of a project with a rubric beside its tasks."""
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/rubric.md").write_text("- polite\n")
    (tmp_path / "evals/latin1.md").write_bytes(b"caf\xe9")
    (tmp_path / "evals/long.md").write_text("x" * 200_001)
    return DiskReader(tmp_path)


def test_a_rubric_in_a_file_is_the_same_as_one_in_the_task(files: DiskReader) -> None:
    """The text stands in the place of its name; other graders are left alone."""
    found, mistakes = with_rubric("judge", {"rubric_file": "rubric.md", "votes": 3}, "evals", files)
    assert (found, mistakes) == ({"rubric": "- polite\n", "votes": 3}, [])
    options = {"rubric_file": "rubric.md"}
    assert with_rubric("answer", options, "evals", files) == (options, [])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rubric_file": "none.md"}, "names no file"),
        ({"rubric_file": "long.md"}, "names no file of at most 200000 bytes"),
        ({"rubric_file": "latin1.md"}, "not UTF-8"),
        ({"rubric_file": "../../etc/passwd"}, "must not leave the project"),
        ({"rubric_file": "/etc/passwd"}, "must not leave the project"),
        ({"rubric_file": 3}, "must be a path"),
        ({"rubric_file": "rubric.md", "rubric": "x"}, "exclude each other"),
    ],
)
def test_a_rubric_that_cannot_be_read_is_a_mistake(
    files: DiskReader, options: dict[str, Any], told: str
) -> None:
    """Each is told once, and what is left of the options has no further mistake."""
    found, mistakes = with_rubric("judge", options, "evals", files)
    ((option, what),) = mistakes
    assert option == "rubric_file"
    assert told in what
    assert found["rubric"]
