"""Makes text from outside inert in each format it is printed in.

Task ids, reasons, refs and names are chosen by whoever writes the code under test. ``inert`` makes
them safe in one line of any log; the others add what Markdown, GitHub and HTML would act upon. None
of them knows what a text means.

Notes
-----
GitHub acts upon text twice: cmark-gfm parses Markdown (entities hide characters from it), then
filters walk over the text of the resulting HTML and make mentions, references and links (entities
hide nothing from them; ``<code>`` and a word joiner do).

References
----------
GitHub Flavored Markdown Spec, 0.29; github/cmark-gfm, ``extensions/autolink.c``; html-pipeline,
``MentionFilter``; actions/runner, ``ActionCommand.cs`` (``##[`` is read anywhere in a line).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from ci_gate.errors import printable

__all__ = ["code_html", "code_span", "fence", "inert", "inert_command", "prose", "sentence"]

_MAX_COMMAND = 1500
_LOG_COMMAND = re.compile(r"##(?=\w*\[)")
# Mentions, references, the starts of links, and what could be a commit: each is cut after its head.
_ACTED_UPON = re.compile(
    r"[@#]|:(?=//)|(?i:www)(?=\.)|\b(?i:gh)(?=-\d)|\b[0-9A-Fa-f]{6}(?=[0-9A-Fa-f])"
)
_BLOCK_START = re.compile(r"\A(?:[-+](?=[-\s]|\Z)|=|:(?=:)|\d{1,9}[.)](?=\s|\Z))")
# An underscore between letters or digits is no emphasis, and task names are full of them.
_PROSE_SPECIAL = re.compile(r"[&<>`*~\[\]|\\$\u2060]|(?<![^\W_])_|_(?![^\W_])")
_BACKTICKED = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_CODE_PLAIN = frozenset(" ,;-'%?")
_PLAIN_CODE = re.compile(r"[\w.,:;=@#%/+()\[\]{}?!*~^$-]+(?: [\w.,:;=@#%/+()\[\]{}?!*~^$-]+)*")


def inert(text: object, *, limit: int = 120) -> str:
    """Return text from outside as one line in which nothing controls a terminal or a log.

    Parameters
    ----------
    text : object
        Anything; it is converted by ``str``.
    limit : int
        Characters kept before the text is cut and its length named.
    """
    return _LOG_COMMAND.sub("# #", printable(text, limit=limit).strip())


def inert_command(command: str) -> str | None:
    """Return a shell-quoted command that can be pasted, or None where it cannot be shown exactly.

    A control character would have to be altered and a very long command to be cut, and either
    makes another command of it; a log would obey a line that starts with ``::``. ``##[`` is taken
    apart by closing and opening the single quotes it stands in, which means the same to a shell.
    """
    altered = len(command) > _MAX_COMMAND or printable(command, limit=_MAX_COMMAND) != command
    if altered or command.lstrip().startswith("::"):
        return None
    return _LOG_COMMAND.sub("#''#", command)


def prose(text: object) -> Markup:
    """Return text that reads the same in a Markdown or HTML sentence and does nothing there."""
    apart = _ACTED_UPON.sub("\\g<0>\N{WORD JOINER}", str(text))
    return Markup(_BLOCK_START.sub(_unblocked, _PROSE_SPECIAL.sub(_prose_entity, apart)))  # noqa: S704 - escaped here


def _prose_entity(found: re.Match[str]) -> str:
    # A pair of dollar signs is mathematics to GitHub, whose documentation asks for this form.
    entity = f"&#{ord(found[0])};"
    return f"<span>{entity}</span>" if found[0] == "$" else entity


def _unblocked(start: re.Match[str]) -> str:
    """Hide the last character of what would start a list, a rule or, in a log, a command."""
    return f"{start[0][:-1]}&#{ord(start[0][-1])};"


def sentence(text: object) -> Markup:
    """Return prose in which whatever stands between two backticks is code."""
    parts = _BACKTICKED.split(str(text))
    return Markup("").join(
        code_span(part) if at % 2 else prose(part) for at, part in enumerate(parts)
    )


def code_span(text: object) -> Markup:
    """Return an identifier as Markdown code, also in a table cell; HTML where backticks fail."""
    shown = str(text)
    return Markup(f"`{shown}`") if _PLAIN_CODE.fullmatch(shown) else code_html(shown)  # noqa: S704 - plain characters


def code_html(text: object) -> Markup:
    """Return an identifier as HTML code that neither Markdown nor an HTML block changes."""
    return Markup(f"<code>{''.join(map(_code_char, str(text)))}</code>")  # noqa: S704 - escaped here


def _code_char(char: str) -> str:
    if char == "@":  # alone in its text node, else cmark-gfm finds an e-mail address around it
        return "<span>&#64;</span>"
    plain = char.isalnum() or char in _CODE_PLAIN or ord(char) > 127
    return char if plain else f"&#{ord(char)};"


def fence(lines: Sequence[str], language: str = "sh") -> Markup:
    """Return lines as a block of code whose fence is longer than any run of backticks inside."""
    runs = (len(list(run)) for char, run in groupby("\n".join(lines)) if char == "`")
    ticks = "`" * max(3, max(runs, default=0) + 1)
    return Markup("\n".join((f"{ticks}{language}", *lines, ticks)))  # noqa: S704 - nothing is parsed in a fence
