"""``init`` adds what is missing and touches nothing that exists."""

from pathlib import Path

import pytest

from ci_gate.errors import UsageError
from ci_gate.gate.scaffold import scaffold

ALL = (
    "ci-gate.toml",
    "evals/example.toml",
    "evals/toy_agent.py",
    ".github/workflows/agent-gate.yml",
)


def test_an_empty_folder_gets_every_file(tmp_path: Path):
    """Configuration, tasks, agent and workflow are written."""
    result = scaffold(tmp_path)

    assert result.written == ALL
    assert all((tmp_path / name).stat().st_size > 100 for name in ALL)


def test_running_it_again_changes_nothing(tmp_path: Path):
    """The second run writes no file."""
    scaffold(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in ALL}

    result = scaffold(tmp_path)

    assert (result.written, result.kept) == ((), ALL)
    assert before == {name: (tmp_path / name).read_bytes() for name in ALL}


def test_an_existing_configuration_gets_no_example(tmp_path: Path):
    """A team's own suite is not joined by the toy tasks."""
    (tmp_path / "ci-gate.toml").write_text("# ours\n")

    result = scaffold(tmp_path)

    assert result.written == (".github/workflows/agent-gate.yml",)
    assert (tmp_path / "ci-gate.toml").read_text() == "# ours\n"


def test_a_dangling_link_is_not_followed(tmp_path: Path):
    """Writing never lands outside the folder through a link."""
    outside = tmp_path / "outside.toml"
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "ci-gate.toml").symlink_to(outside)

    scaffold(folder)

    assert not outside.exists()


def test_a_missing_folder_is_a_usage_error(tmp_path: Path):
    """The message names the folder."""
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere"):
        scaffold(tmp_path / "nowhere")


def test_below_the_top_of_a_repository_no_workflow_is_written(tmp_path: Path):
    """GitHub reads workflows at the top only; the user is told where it belongs."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "pkg"
    folder.mkdir()

    result = scaffold(folder)

    assert result.top == tmp_path
    assert not (folder / ".github").exists()
    assert "ci-gate.toml" in result.written
