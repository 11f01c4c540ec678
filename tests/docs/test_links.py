"""Every link inside the repository leads somewhere."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_resolve(path: Path):
    """A relative link names a file that exists, and a heading of it where it has a fragment."""
    text = path.read_text(encoding="utf-8")

    broken = [link for link in links(text) if not _resolves(link, path, text)]

    assert broken == []


def _resolves(link: str, path: Path, text: str) -> bool:
    if link.startswith("https://"):
        return True
    name, _, fragment = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not fragment or fragment in anchors(target.read_text(encoding="utf-8"))


def test_every_page_is_in_the_index():
    """The index of the documentation links every page of docs/."""
    index = ROOT / "docs" / "README.md"
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}

    assert pages <= set(links(index.read_text(encoding="utf-8")))


def test_no_page_names_a_package_index():
    """A reader's own package index counts, so no page names one."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in PAGES}

    assert [name for name, text in texts.items() if "pypi" in text.lower()] == []
