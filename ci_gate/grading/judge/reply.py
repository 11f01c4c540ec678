"""What a judge's reply says, read strictly: whatever is not a sound grade is no pass.

A reply passes only if it is one JSON object of the asked form, judges every criterion of the rubric
once, gives a choice that passes and calls no criterion unmet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ci_gate import codec
from ci_gate.errors import printable
from ci_gate.grading.judge.question import Question

__all__ = ["Majority", "Reply", "Vote", "majority", "vote_of"]

_FENCED: Final = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)
_SHOWN: Final = 200


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back from a judge that could be reached.

    Parameters
    ----------
    text : str or None
    problem : str or None
        Why there is no text to read.
    """

    text: str | None = None
    problem: str | None = None


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """One judgement.

    Parameters
    ----------
    passed : bool
    why : str
        Why not; empty for a pass.
    is_sound : bool
        Whether the reply could be read; without it the vote is no pass.
    """

    passed: bool
    why: str = ""
    is_sound: bool = True


class Majority(msgspec.Struct, frozen=True, kw_only=True):
    """What votes come to.

    Parameters
    ----------
    passed : bool
    why : str
    share : float
        Of the votes that pass.
    """

    passed: bool
    why: str
    share: float


class _RepeatedKey(ValueError):
    """A key stands in an object twice, so that it says two things."""


def vote_of(reply: Reply, question: Question) -> Vote:
    """Return the vote that a reply casts.

    Parameters
    ----------
    reply : Reply
    question : Question
    """
    if reply.problem is not None:
        return _unsound(reply.problem)
    if not reply.text or not reply.text.strip():
        return _unsound("the reply is empty")
    try:
        return _read(_object(reply.text.strip()), question)
    except ValueError as error:
        return _unsound(str(error))


def _unsound(why: str) -> Vote:
    return Vote(passed=False, why=f"the judge gave no grade: {why}", is_sound=False)


def _object(text: str) -> dict[str, Any]:
    fenced = _FENCED.match(text)
    text = fenced[1] if fenced else text
    if codec.is_too_deep(text):
        raise ValueError("the reply is nested too deep")
    try:
        value = json.loads(text, object_pairs_hook=_table)
    except _RepeatedKey:
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the reply is not one JSON object: {_quoted(text)}") from error
    if not isinstance(value, dict):
        raise ValueError(f"the reply is no JSON object: {_quoted(text)}")
    return value


def _table(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise _RepeatedKey("the reply contradicts itself: a key stands in it twice")
    return table


def _quoted(value: object) -> str:
    return f'"{printable(value, limit=_SHOWN)}"'


def _read(reply: dict[str, Any], question: Question) -> Vote:
    if set(reply) != {"criteria", "verdict"}:
        keys = ", ".join(sorted(reply)) or "nothing"
        raise ValueError(f"the reply has {_quoted(keys)} instead of criteria and verdict")
    verdict = reply["verdict"]
    if not isinstance(verdict, str) or verdict not in question.choices:
        raise ValueError(f"the verdict {_quoted(verdict)} is none of the choices")
    unmet = _unmet(reply["criteria"], question)
    if verdict not in question.passing:
        return Vote(passed=False, why=f"{verdict}: {unmet}" if unmet else verdict)
    if unmet:
        raise ValueError(f"the reply contradicts itself: {verdict}, but {unmet}")
    return Vote(passed=True)


def _unmet(criteria: Any, question: Question) -> str:
    """Return the first criterion that is not met with the judge's evidence, empty where none is."""
    if not isinstance(criteria, list) or not all(map(_is_criterion, criteria)):
        raise ValueError("the criteria are not a list of id, met and evidence")
    ids = [one["id"] for one in criteria]
    if sorted(ids) != sorted(question.criteria):
        asked = ", ".join(question.criteria)
        raise ValueError(f"the reply judges {_quoted(', '.join(ids))} and not {asked}")
    for one in criteria:
        if not one["met"]:
            return f"{one['id']} is not met: {printable(one['evidence'], limit=_SHOWN)}"
    return ""


def _is_criterion(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"id", "met", "evidence"}
        and isinstance(value["id"], str)
        and isinstance(value["met"], bool)
        and isinstance(value["evidence"], str)
    )


def majority(votes: Sequence[Vote]) -> Majority:
    """Return what at least one vote comes to: more than half must pass, a tie does not.

    Parameters
    ----------
    votes : sequence of Vote
        A reply that could not be read is a vote that does not pass.
    """
    passing = sum(vote.passed for vote in votes)
    share, passed = passing / len(votes), 2 * passing > len(votes)
    if passed:
        return Majority(passed=True, why="", share=share)
    first = next(vote.why for vote in votes if not vote.passed)
    many = f"{passing} of {len(votes)} votes pass; " if len(votes) > 1 else ""
    return Majority(passed=False, why=many + first, share=share)
