"""Texts that attack a report, and how what became of them is read back."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import strategies as st

from tests.render.samples import HOSTILE_TEXTS

_PIECES = [
    *(
        "|",
        "`",
        "``",
        "```",
        "\\",
        "\\|",
        "\n",
        "\r\n",
        "\t",
        "  ",
        "<",
        ">",
        "&",
        "&amp;",
        "&#64;",
    ),
    *(
        "@octocat",
        "@org/team",
        "#12",
        "GH-3",
        "org/repo#4",
        "http://evil.example",
        "www.evil.example",
    ),
    *(
        "me@evil.example",
        "mailto:me@evil.example",
        "xmpp:a@b.c",
        "ftp://evil.example",
        "HTTPS://X.y",
    ),
    *("<script>", "</details>", "</code>", "<!--", "-->", "<img src=x>", "<a href=//e>", "[x](y)"),
    *(
        "![",
        "](",
        "[^1]",
        "[^1]:",
        "[x]: y",
        "**",
        "__",
        "~~",
        "$",
        "$$",
        "#",
        "##[",
        "##vso[",
        "::",
    ),
    *(
        "::error::",
        "- ",
        "* ",
        "+ ",
        "1. ",
        "1) ",
        "> ",
        "---",
        "===",
        "# ",
        "    ",
        "\x00",
        "\x1b[",
    ),
    *(
        "\u202e",
        "\u2066",
        "\u200d",
        "\ufeff",
        "\ud800",
        "\U0001f600",
        "é",
        "a",
        "deadbeefdeadbeef",
        "'",
    ),
    *('"', "{", "{{", "}}", "{%", "%}", "(", ")", "[", "]", ":", ";", "!", "0", "9.", "^", "="),
]
NASTY = st.one_of(
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=8).map("".join),
    st.sampled_from(HOSTILE_TEXTS),
    st.text(min_size=1, max_size=30),
)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.skeleton: list[str] = []
        self.text: list[tuple[str, bool]] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.skeleton.append(tag)
        self._code += tag in {"code", "pre"}

    def handle_endtag(self, tag: str) -> None:
        self.skeleton.append(f"/{tag}")
        self._code -= tag in {"code", "pre"}

    def handle_data(self, data: str) -> None:
        self.text.append((data, self._code > 0))


def _read(page: str) -> _Reader:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader


def tags(page: str) -> set[str]:
    """Return the names of all elements."""
    return {tag.removeprefix("/") for tag in _read(page).skeleton}


def skeleton(page: str) -> list[str]:
    """Return the elements in order, without those that only mark a stretch of text."""
    inline = {"code", "span"}
    return [tag for tag in _read(page).skeleton if tag.removeprefix("/") not in inline]


def text_of(page: str) -> str:
    """Return the text that a reader sees."""
    return "".join(text for text, _ in _read(page).text)


def outside_code(page: str) -> str:
    """Return the text that GitHub's filters walk over, each stretch on its own line."""
    return "\n".join(text for text, in_code in _read(page).text if not in_code)
