"""Results are written into real folders: a change can bring a link along, and it is refused."""

from pathlib import Path

import pytest

from ci_gate.errors import UsageError
from ci_gate.store.folders import (
    make_real_folder,
    own_folder,
    refuse_links,
    write_beside,
    write_named,
)


@pytest.fixture
def elsewhere(tmp_path):
    """A folder out of the results, with a file that is nobody's to change."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "file").write_text("mine")
    return folder


def test_missing_folders_are_made(tmp_path):
    """All of them, and what is there already may be there."""
    make_real_folder(tmp_path / "a" / "b")
    make_real_folder(tmp_path / "a" / "b" / "c")

    assert (tmp_path / "a" / "b" / "c").is_dir()


@pytest.mark.parametrize("link", ["out", "out/deep", "out/deep/last"])
def test_a_link_anywhere_on_the_path_is_refused_by_name(tmp_path, elsewhere, link):
    """Whether the last part or one above; nothing is made behind it."""
    place = tmp_path / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(elsewhere)

    for refused in (make_real_folder, refuse_links, lambda path: write_beside(path / "f", b"")):
        with pytest.raises(UsageError, match=f"{link}: is a link, and results are neither"):
            refused(tmp_path / "out" / "deep" / "last")
    assert [path.name for path in elsewhere.iterdir()] == ["file"]


def test_a_dangling_link_is_one(tmp_path):
    """It would be made where it points."""
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")

    with pytest.raises(UsageError, match="is a link"):
        make_real_folder(tmp_path / "out")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_on_the_path_is_refused(tmp_path):
    """There is no folder to be made below it."""
    (tmp_path / "out").write_text("")

    with pytest.raises(UsageError, match="is no folder, and results belong below it"):
        make_real_folder(tmp_path / "out" / "deep")


def test_a_file_that_is_a_link_is_not_written_through(tmp_path, elsewhere):
    """The file it points to stays as it was."""
    (tmp_path / "report.md").symlink_to(elsewhere / "file")

    with pytest.raises(UsageError, match="is a folder, link, pipe or device"):
        write_beside(tmp_path / "report.md", b"theirs")
    assert (elsewhere / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["reports/v.json", "deep/reports/v.json", "../linked/reports/v.json"]
)
def test_a_named_file_is_not_written_through_a_link_of_the_tree(
    tmp_path, elsewhere, monkeypatch, name
):
    """Whichever way it is named, also by a link of the user's that leads into the tree."""
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tree)
    for folder in (tree, tree / "deep"):
        (folder / "reports").symlink_to(elsewhere)
    monkeypatch.chdir(tree)

    with pytest.raises(UsageError, match="reports: is a link"):
        write_named(Path(name), b"theirs")
    assert [path.name for path in elsewhere.iterdir()] == ["file"]


def test_a_link_of_the_users_own_is_followed(tmp_path, elsewhere, monkeypatch):
    """It lies outside of the tree, where no change can put one."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "mine").symlink_to(elsewhere)
    monkeypatch.chdir(tmp_path / "tree")

    write_named(tmp_path / "mine" / "v.json", b"ours")

    assert (elsewhere / "v.json").read_bytes() == b"ours"
    assert own_folder(tmp_path / "mine" / "new", tree=tmp_path / "tree") == elsewhere / "new"
    assert own_folder(Path("new"), tree=tmp_path / "tree") == Path("new")
