"""What a judge is asked, whoever answers: the rubric, its criteria and how a grade is made of it.

Decides the judge's digest, by which its calibration is found. It must not know where the model is
reached: the same model behind another address is the same judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ci_gate import codec

__all__ = ["PARTS", "PROMPT_VERSION", "JudgeParameters", "Question", "question_of"]

PROMPT_VERSION: Final = 1
"""Of the prompt's text and the form of the reply; another one is another judge."""

PARTS: Final = ("instruction", "input", "answer", "steps", "state")
"""What can be shown to a judge, in the order in which it is."""

_SHOWN: Final = ("instruction", "input", "answer")
_ITEM: Final = re.compile(r"^\s{0,3}(?:[-*]|\d{1,3}[.)])\s+(?=\S)")


class JudgeParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The judge of a configuration: the model, and votes where a rubric sets none.

    Parameters
    ----------
    model : str
    votes : int
    """

    model: str
    votes: int = 1


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A rubric with the model that answers it.

    Parameters
    ----------
    model : str
    rubric : str
    votes : int
    choices : tuple of str
        What the verdict can be.
    passing : tuple of str
        Those of the choices that pass.
    shown : tuple of str
        Parts of the trial that the judge sees, of ``PARTS``.
    """

    model: str
    rubric: str
    votes: int = 1
    choices: tuple[str, ...] = ("pass", "fail")
    passing: tuple[str, ...] = ("pass",)
    shown: tuple[str, ...] = _SHOWN

    @property
    def digest(self) -> str:
        """Return the digest of everything that makes this judge another one."""
        return codec.digest_of(msgspec.to_builtins(self) | {"prompt": PROMPT_VERSION})

    @property
    def criteria(self) -> Mapping[str, str]:
        """Return the rubric's criteria by their ids: its list items, or all of it as one.

        Lines that begin with ``-``, ``*`` or a number are items; indented text below one belongs
        to it. What stands around the list is said to the judge and is no criterion.
        """
        items: list[str] = []
        is_open = False
        for line in self.rubric.splitlines():
            if _ITEM.match(line):
                items.append(_ITEM.sub("", line).strip())
                is_open = True
            elif is_open and line.startswith((" ", "\t")) and line.strip():
                items[-1] += " " + line.strip()
            else:
                is_open = False
        return {f"C{at}": text for at, text in enumerate(items or [self.rubric.strip()], 1)}


def question_of(options: Mapping[str, Any], judge: JudgeParameters) -> Question:
    """Return the question of a grader's options that have no problems.

    Parameters
    ----------
    options : mapping
    judge : JudgeParameters
    """
    choices = tuple(options.get("choices", ("pass", "fail")))
    shown = options.get("show", _SHOWN)
    return Question(
        model=judge.model,
        rubric=options["rubric"],
        votes=options.get("votes", judge.votes),
        choices=choices,
        passing=tuple(options.get("passing", ("pass",))),
        shown=tuple(part for part in PARTS if part in shown),
    )
