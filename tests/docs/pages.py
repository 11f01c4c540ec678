"""The pages of the documentation: their links, headings and fenced blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ROOT / "examples" / "refund_desk" / "README.md",
)
_FENCE = re.compile(r"```(\w*)")
_MARK = re.compile(r"<!-- (.+) -->")
_LINK = re.compile(r"\]\(([^()\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the comment in the line before it."""

    page: str
    language: str
    text: str
    mark: str = ""


def page(name: str) -> str:
    """Return the text of a page of docs/, or of the README."""
    folder = ROOT if name == "README.md" else ROOT / "docs"
    return (folder / name).read_text(encoding="utf-8")


def blocks(text: str, name: str = "") -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    before, fence, lines = "", None, []
    for line in text.splitlines():
        found = _FENCE.fullmatch(line)
        if fence is None and found:
            marked = _MARK.fullmatch(before)
            fence = found[1], marked[1] if marked else ""
        elif fence is not None and line == "```":
            yield Block(name, fence[0], "".join(f"{one}\n" for one in lines), fence[1])
            fence, lines = None, []
        elif fence is not None:
            lines.append(line)
        before = line


def prose(text: str) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    """Return the targets of all links and images outside of code."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", prose(text)))


def anchors(text: str) -> set[str]:
    """Return the names by which GitHub lets a page's headings be linked."""
    seen: Counter[str] = Counter()
    found = set()
    for title in headings(text):
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def headings(text: str, level: str = "#{1,6}") -> list[str]:
    """Return the titles of a page's headings, of one level (``###``) or of all."""
    return re.findall(rf"^{level} (.+)$", prose(text), flags=re.MULTILINE)
