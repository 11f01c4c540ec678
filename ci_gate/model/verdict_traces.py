"""What a verdict says of traces: nothing in it decides, it shows where to look. Data alone."""

from __future__ import annotations

import msgspec

from ci_gate.model.trace_findings import Parting

__all__ = [
    "CallExcerpt",
    "DifferenceExcerpt",
    "KeptTraceDrift",
    "KeptTraces",
    "PartingExcerpt",
    "TrialParting",
    "UnplayedTrace",
    "VerdictTraces",
]


class CallExcerpt(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a trace and its answer as text, each cut where it is long.

    ``order`` is its place in the trace, ``fault`` the kind of the injected fault.
    """

    order: int
    call: str
    answer: str
    fault: str | None = None


class DifferenceExcerpt(msgspec.Struct, frozen=True, kw_only=True):
    """A place at which two payloads differ, as text; None is a side that has nothing there."""

    path: str
    baseline: str | None
    candidate: str | None


class PartingExcerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Where two traces part first.

    ``place`` counts the calls of the lane before it. A call that is None was not made: that side
    had stopped. ``hidden`` are differences beyond those that are listed.
    """

    kind: Parting
    lane: str
    place: int
    baseline: CallExcerpt | None
    candidate: CallExcerpt | None
    differences: tuple[DifferenceExcerpt, ...] = ()
    hidden: int = 0


class TrialParting(msgspec.Struct, frozen=True, kw_only=True):
    """A passing trial of the baseline beside a failing one of the candidate.

    ``same_seed`` says that both are the same trial; else they are of the same task and more than
    the change may tell them apart. ``parting`` is None where every call and answer agrees. The
    traces are named as seen from the configuration; ``command`` compares them in full.
    """

    task: str
    same_seed: bool
    baseline_trial: int
    baseline_trace: str
    candidate_trial: int
    candidate_repeat: int
    candidate_trace: str
    parting: PartingExcerpt | None
    command: str


class KeptTraceDrift(msgspec.Struct, frozen=True, kw_only=True):
    """A kept trace that the agent no longer follows; ``drift`` says where it left it first."""

    task: str
    trial: int
    trace: str
    drift: str


class UnplayedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A kept trace that was not played, and why."""

    task: str
    why: str


class KeptTraces(msgspec.Struct, frozen=True, kw_only=True):
    """The kept traces of passing trials, played to the candidate before its first trial.

    Parameters
    ----------
    origin : str
        Which folder of which commit.
    kept : int
        Traces of the tasks that were asked for.
    played : int
    drifted : tuple of KeptTraceDrift
        Of those played; the agent followed all others call by call.
    unplayed : tuple of UnplayedTrace
    """

    origin: str
    kept: int
    played: int
    drifted: tuple[KeptTraceDrift, ...] = ()
    unplayed: tuple[UnplayedTrace, ...] = ()


class VerdictTraces(msgspec.Struct, frozen=True, kw_only=True):
    """What traces show: ``kept`` is None where none are kept or none can be played."""

    kept: KeptTraces | None = None
    partings: tuple[TrialParting, ...] = ()
