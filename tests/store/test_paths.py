from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.store.paths import folder_of, mistake_in_id, named_beside, trace_file

HOSTILE = [
    "../../etc/passwd",
    "con",
    "COM1",
    "a b; rm -rf",
    "x" * 300,
    "🧾 refund",
    "-rf",
    "a/b",
    ".",
    "..",
    "~",
    "$(id)",
    "`id`",
    "refund.",
]


@pytest.mark.parametrize("task_id", [*HOSTILE, "refund-4812", "Überweisung", "<script>", "a|b"])
def test_awkward_ids_are_legal(task_id: str) -> None:
    """Slashes, quotes, emoji, device names and 300 characters are legal ids."""
    assert mistake_in_id(task_id) is None


@pytest.mark.parametrize(
    "task_id",
    ["", " a", "a ", "a\n", "a\nb", "a\x00b", "a\x1b[31m", "a\u202eb", "a\u2066b", "a\u2028b",
     "a\u200fb", "a\u0085b", "a\ud800b", "x" * 513, "\u00a0a"],
)  # fmt: skip
def test_ids_that_deceive_are_refused(task_id: str) -> None:
    """Empty, overlong, controls, newlines, bidirectional characters, surrogates, outer blanks."""
    assert mistake_in_id(task_id) is not None


def test_a_plain_id_is_its_own_folder() -> None:
    """A short safe id is readable on disk."""
    assert folder_of("refund-4812") == "refund-4812"


@pytest.mark.parametrize("task_id", HOSTILE)
def test_the_folder_of_a_hostile_id_is_one_safe_component(task_id: str) -> None:
    """Whatever the id, its folder is a plain name of at most 71 characters with a digest."""
    assert re.fullmatch(r"[a-z0-9_][a-z0-9_-]{0,59}-[0-9a-f]{10}", folder_of(task_id))


@given(st.text(st.characters(), min_size=1, max_size=100))
def test_every_folder_is_safe(task_id: str) -> None:
    """Any text at all leads to a plain name that is no device and stays in its folder."""
    folder = folder_of(task_id)

    assert re.fullmatch(r"[a-z0-9_][a-z0-9_-]*", folder)
    assert len(folder) <= 71
    assert folder not in {"con", "prn", "aux", "nul", "com1", "lpt9"}


@given(st.lists(st.text("aAbB-_/. é", min_size=1, max_size=4), min_size=2, unique=True))
def test_different_ids_have_different_folders(ids: list[str]) -> None:
    """Ids that slug alike, or differ by case alone, do not share a folder, on any file system."""
    folders = [folder_of(task_id).casefold() for task_id in ids]

    assert len(set(folders)) == len(ids)


def test_an_id_cannot_pose_as_another_s_folder() -> None:
    """The derived folder of one id, used as an id, gets another folder."""
    derived = folder_of("Refund!")

    assert folder_of(derived) != derived


def test_traces_of_repeats_lie_side_by_side() -> None:
    """Repeat 0 is TRIAL.jsonl, repeat r is TRIAL.r.jsonl."""
    assert trace_file(Path("t"), "refund", 3, 0) == Path("t/refund/3.jsonl")
    assert trace_file(Path("t"), "refund", 3, 2) == Path("t/refund/3.2.jsonl")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("rubric.md", "evals/rubric.md"),
        ("../shared/x.md", "shared/x.md"),
        ("./a//b", "evals/a/b"),
        ("../../x", None),
        ("/etc/passwd", None),
        ("..", None),
        ("a\\b", None),
        ("a\0b", None),
    ],
)
def test_what_a_task_file_names_stays_in_the_project(name: str, path: str | None) -> None:
    """Names are relative to the task file's folder and do not lead out of the root."""
    assert named_beside("evals", name) == path
