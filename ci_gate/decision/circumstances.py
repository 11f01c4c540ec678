"""What the gate knows of a change besides the two files: where the bar came from, who moved it.

Facts only, gathered by the caller from git, the event and the machine; nothing here finds them out.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ci_gate.model.run import Side
from ci_gate.model.verdict import Attribution, Recheck

__all__ = ["Circumstances"]


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """Facts from outside the two files.

    Parameters
    ----------
    baseline_status : {"found", "absent", "missing"}
        ``missing``: the base commit has a baseline that the head no longer matches.
    baseline_edited : bool
        The change edits the file of the baseline or of its anchor without the label.
    labelled : bool
        The change may move the bar: what it does to the comparison with the present baseline is
        shown and accepted. Floors, errors and unfinished runs are judged as ever.
    unchanged_agent : bool
        Agent and suite are those of the baseline, and the policy lets such a change pass without
        running; it counts only where the candidate ran no trial.
    no_credentials : bool
        The run lacked the credentials it needs and was not started.
    today : datetime.date or None
        For the ends of quarantines; None takes the day on which the candidate's run was made, and
        where that is unknown too, quarantines hold.
    policy_digest : str or None
        Of the policy in use, to be held against what a curtailed run was stopped by.
    provenance : mapping
        Commits, refs and ages, shown as they are.
    replay_command : str
        With ``{task}`` and ``{trial}``, which are filled in, quoted for a shell.
    warnings : tuple of str
        Sentences that the report shows and that decide nothing.
    recheck : Recheck or None
        What came out when base and candidate were run again; None where they were not.
    calm : Side or None
        The candidate without faults, which is shown beside it and decides nothing; None where it
        was not run so.
    """

    baseline_status: Literal["found", "absent", "missing"] = "found"
    baseline_edited: bool = False
    labelled: bool = False
    unchanged_agent: bool = False
    no_credentials: bool = False
    today: datetime.date | None = None
    policy_digest: str | None = None
    provenance: Mapping[str, Any] = msgspec.field(default_factory=dict)
    replay_command: str = "ci-gate replay {task} --trial {trial}"
    warnings: tuple[str, ...] = ()
    recheck: Recheck | None = None
    calm: Side | None = None

    @property
    def attribution(self) -> Attribution | None:
        """What the recheck puts a regression by the test down to."""
        return None if self.recheck is None else self.recheck.attribution

    @property
    def clears_change(self) -> bool:
        """Whether what the test found is put down to something else than the change."""
        return self.attribution in (Attribution.ENVIRONMENT, Attribution.NOISE)
