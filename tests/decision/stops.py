"""Runs that ended otherwise than by their plan, and writes what the gate says of them.

``python -m tests.decision.stops`` after a wanted change; read the difference before it is
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from ci_gate.model.policy import Policy
from ci_gate.model.run import Plan, Side, Stop, StopReason
from ci_gate.model.verdict import Verdict
from ci_gate.render.markdown import markdown
from ci_gate.render.view import view
from tests.decision.rounds import alike, baseline_of, honest, so_far, verdict_of
from tests.notation import side_of

GOLDEN = Path(__file__).parent.parent / "golden"
BAR = baseline_of(10)
WIDE = baseline_of(16)


@cache
def _cleared() -> Side:
    return honest(BAR, alike(10, "++++++++", t03="++++-+++"))


def _extended() -> Verdict:
    plan = Plan(trials=8, repeats=1, max_repeats=4, extend=True)
    stop = Stop(round=16, reason=StopReason.EXTENDED)
    rows = alike(10, "++++++++/++++++++", t01="+-+-++++/+-+-+-+-")
    run = side_of(" ".join(f"{t} {row}" for t, row in rows.items()), plan=plan, stop=stop)
    return verdict_of(BAR, run, Policy(on_borderline="extend"))


def _false() -> Side:
    stop = Stop(round=1, reason=StopReason.CURTAILED_PASS, predictive=0.01)
    return so_far(alike(10, "+"), stop=stop, complete=True)


def _with_other_digests() -> Verdict:
    others = msgspec.structs.replace(_cleared(), baseline_digest="sha256:another")
    return verdict_of(BAR, others)


def _regressed(bar: Side, rows: Mapping[str, str]) -> Verdict:
    return verdict_of(bar, honest(bar, rows))


VERDICTS: Mapping[str, Callable[[], Verdict]] = {
    "curtailed-pass": lambda: verdict_of(BAR, _cleared()),
    "curtailed-task": lambda: _regressed(WIDE, alike(16, "++++++++", t03="--------")),
    "curtailed-suite": lambda: _regressed(BAR, alike(10, "-+--+---")),
    "false-stop": lambda: verdict_of(BAR, _false()),
    "other-digests": _with_other_digests,
    "extended": _extended,
}
"""What makes a verdict of each kind, by name."""


def written(verdict: Verdict) -> dict[str, str]:
    """Return a verdict as its file and its report, by ending."""
    return {"json": verdict.to_json(), "md": markdown(view([verdict]))}


if __name__ == "__main__":
    for name, make in VERDICTS.items():
        for ending, text in written(make()).items():
            path = GOLDEN / f"verdict-{name}.{ending}"
            path.write_text(text, encoding="utf-8", newline="\n")
