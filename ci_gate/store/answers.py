"""By which answers the trials of a task can be known again, in runs and in baselines.

This module decides how that is written in a baseline. It must not know what makes a copy of a trial
(`ci_gate.model.copies`).

Notes
-----
A baseline has one text a run, a word a trial: ``-`` nothing is known, 16 hexadecimal digits for the
answers of the models, ``=`` answered by a cache, which the digits may follow. A run of which
nothing is known has null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ci_gate.errors import printable
from ci_gate.model.run import BaselineTask
from ci_gate.model.trial import Answers, Status, TrialRecord

__all__ = ["answer_mistakes", "are_identical", "dumped", "known_answers", "parsed"]

Key = tuple[int, int]
_UNKNOWN: Final = "-"
_CACHED: Final = "="
_WORD: Final = re.compile(r"-|=|=?[0-9a-f]{16}")
_NOTHING: Final = Answers()


def known_answers(lines: Sequence[TrialRecord]) -> dict[Key, Answers]:
    """Return what is known of the trials that show whether they are copies."""
    return {
        (line.trial, line.repeat): line.answers
        for line in lines
        if line.answers is not None and line.answers.may_show_copy
    }


def are_identical(lines: Sequence[TrialRecord]) -> bool:
    """Return whether a task's judged trials, two at least, are the same bytes."""
    judged = [line for line in lines if line.status is not Status.ERRORED]
    digests = {line.answers.digest if line.answers else None for line in judged}
    return len(judged) > 1 and len(digests) == 1 and None not in digests


def dumped(
    answers: Mapping[Key, Answers], length: int, repeats: Sequence[int]
) -> tuple[str | None, ...] | None:
    """Return the texts for a baseline, one for each of these repeats.

    Parameters
    ----------
    answers : mapping of (trial, repeat) to Answers
    length : int
        Trials of the task.
    repeats : sequence of int
    """
    rows = tuple(
        " ".join(_word(answers.get((trial, repeat), _NOTHING)) for trial in range(length))
        for repeat in repeats
    )
    known = tuple(None if set(row) <= {_UNKNOWN, " "} else row for row in rows)
    return known if any(known) else None


def _word(known: Answers) -> str:
    return (_CACHED if known.cached else "") + (known.responses or "") or _UNKNOWN


def parsed(entry: BaselineTask) -> dict[Key, Answers]:
    """Return what a baseline's texts say, trial by trial."""
    return {
        (trial, repeat): Answers(
            responses=word.removeprefix(_CACHED) or None, cached=word.startswith(_CACHED)
        )
        for repeat, row in enumerate(entry.answers or ())
        for trial, word in enumerate((row or "").split())
        if word != _UNKNOWN
    }


def answer_mistakes(entry: BaselineTask) -> Iterator[str]:
    """Yield what is wrong with the texts of a task; how many there are is the caller's to check."""
    for at, row in enumerate(entry.answers or ()):
        words = [] if row is None else row.split(" ")
        wrong = next((word for word in words if not _WORD.fullmatch(word)), None)
        if wrong is not None:
            yield (
                f"answers[{at}] contains {printable(repr(wrong), limit=40)}; a word is - or = or "
                "16 hexadecimal digits, which = may precede"
            )
        elif words and at < len(entry.outcomes) and len(words) != len(entry.outcomes[at]):
            yield f"answers[{at}] has {len(words)} words for {len(entry.outcomes[at])} trials"
