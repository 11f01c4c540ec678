"""A self check on a terminal."""

from __future__ import annotations

import io

import msgspec
import pytest

from ci_gate.model.selfcheck import (
    FalseAlarms,
    LeftOut,
    MetricScatter,
    RunScatter,
    SeedAgreement,
    SelfCheck,
    SelfComparison,
    TaskInformation,
)
from ci_gate.model.verdict import Decision
from ci_gate.render.screen import console_for
from ci_gate.render.selfcheck import render_self_check


def shown(found: SelfCheck) -> list[str]:
    """Return the lines that are printed in a log."""
    stream = io.StringIO()
    render_self_check(found, console_for(stream, {"CI": "1"}))
    return stream.getvalue().splitlines()


def comparison(run: str, decision: Decision, **fields) -> SelfComparison:
    """Return a comparison with a rate of 75 %."""
    plain = {"reasons": (), "tasks": (), "p_value": 0.4, "metrics": {"pass^1": 0.75}}
    return SelfComparison(run=run, decision=decision, **(plain | fields))


def task(name: str, kind: str, outcomes: tuple[str, ...], **fields) -> TaskInformation:
    """Return a task whose counts follow from its outcomes."""
    text = "".join(outcomes)
    plain = {"trials": len(text), "passed": text.count("+"), "errored": 0, "noise_share": 0.0}
    return TaskInformation(task=name, kind=kind, outcomes=outcomes, **(plain | fields))


MEASURED = SelfCheck(
    suite="desk",
    policy="ci-gate.toml of main",
    alpha=0.05,
    measurable=True,
    runs=("deep #1", "deep #2"),
    false_alarms=FalseAlarms(
        comparisons=2,
        blocked=1,
        inconclusive=0,
        rate=0.5,
        interval=(0.0126, 0.9874),
        comparisons_to_show_alpha=72,
    ),
    comparisons=(
        comparison("deep #1", Decision.PASSED),
        comparison(
            "deep #2",
            Decision.REGRESSED,
            reasons=("task-regressed",),
            tasks=("refund",),
            p_value=0.01,
        ),
    ),
    metrics={
        "pass^1": MetricScatter(pooled=0.75, lowest=0.7, highest=0.8, detectable_drop=0.123),
        "pass^8": MetricScatter(pooled=None, lowest=None, highest=None, detectable_drop=None),
    },
    seed_effect=SeedAgreement(z_seed=0.4, matters=False, strata="task"),
    run_effect=RunScatter(phi=3.2, p_value=0.02, matters=True, implied_alpha=0.179),
    tasks=(
        task("refund", "moves", ("++-+", "----"), noise_share=1.0),
        task("cancel", "fixed", ("+-", "+-")),
        task("never", "fails", ("--", "--")),
        task("always", "passes", ("++", "++")),
    ),
    left_out=(LeftOut(task="edited", why="its content differs between runs"),),
    remarks=("2 runs share their comparisons.",),
)


def test_a_measured_gate_is_shown_whole() -> None:
    """Rate, effects, runs, drops and tasks stand in this order, with what each means."""
    lines = shown(MEASURED)

    assert [line[:40] for line in lines[:4]] == [
        "desk: 1 of 2 comparisons was a false ala",
        "  Measured rate 50.0 %, 95 % interval 1.",
        "  Run effect: phi 3.2 (p 0.020), whole r",
        "  Seed effect: z 0.4 (limit 1.645), no s",
    ]
    assert "1.3 % to 98.7 % (as if independent); alpha is 5.0 %" in lines[1]
    assert "at 5.0 % is really one at 17.9 %" in lines[2]
    assert lines[4:] == [
        "",
        "  Each run held against all others",
        "    Run      pass^1  pass^8      p  Verdict",
        "  - deep #1  75.0 %       –  0.400  passed",  # noqa: RUF001 - the dash for no figure
        "  - deep #2  75.0 %       –  0.010  regressed (task-regressed: refund)",  # noqa: RUF001 - same
        "",
        "  What it would have caught with 80 % power (a baseline of 1 run)",
        "    Metric  All runs  Lowest  Highest  Detectable drop",
        "  - pass^1    75.0 %  70.0 %   80.0 %             12.3",
        "  - pass^8         –       –        –                –",  # noqa: RUF001 - same
        "",
        "  Information: 2 of 4 tasks sometimes pass and sometimes fail",
        "    Task          Passed  Share of the noise  Outcomes, a word a run",
        "  - refund  3/8 (37.5 %)               100 %  ++-+ ----",
        "  - cancel  2/4 (50.0 %)                 0 %  +- +-  by seed alone",
        "  Always passing (1): always",
        "    they see a break, and make no noise",
        "  Always failing (1): never",
        "    they can never drop, so their trials show nothing",
        "  left out: edited (its content differs between runs)",
        "  2 runs share their comparisons.",
        "  policy: ci-gate.toml of main",
    ]


def test_what_cannot_be_measured_says_why() -> None:
    """No table of comparisons stands where there is none."""
    lines = shown(
        SelfCheck(
            suite="desk",
            policy="the defaults",
            alpha=0.05,
            measurable=False,
            because="With one run there is nothing to hold it against.",
            runs=("one",),
        )
    )

    assert lines == [
        "desk: not measurable on 1 run",
        "  With one run there is nothing to hold it against.",
        "  policy: the defaults",
    ]


@pytest.mark.parametrize("text", ["::error::x", "a\n::error::x", "\x1b[31mred", "##[group]x", "‮x"])
def test_names_from_outside_are_inert(text: str) -> None:
    """Task ids, file names and reasons neither begin a line nor colour it, wherever they stand."""
    hostile = SelfCheck(
        suite=text,
        policy=text,
        alpha=0.05,
        measurable=False,
        because=text,
        runs=(text, "two"),
        comparisons=(comparison(text, Decision.REGRESSED, reasons=(text,), tasks=(text,)),),
        metrics={"pass^1": MEASURED.metrics["pass^1"]},
        tasks=(task(text, "moves", ("+-", "++")), task(text, "fails", ("-",))),
        left_out=(LeftOut(task=text, why=text),),
        remarks=(text,),
    )

    lines = shown(hostile)

    assert len(lines) == len(shown(_tame(hostile)))
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert not any(mark in line for line in lines for mark in ("\x1b", "##[", "‮"))


def _tame(found: SelfCheck) -> SelfCheck:
    tasks = (task("a", "moves", ("+-", "++")), task("b", "fails", ("-",)))
    return msgspec.structs.replace(found, suite="x", because="x", tasks=tasks, remarks=("x",))


def test_long_lists_are_cut_and_counted() -> None:
    """Thirty noisy tasks and ten names are shown; how many follow is said."""
    many = [task(f"t{i:03}", "moves", ("+-", "++")) for i in range(40)]
    quiet = [task(f"q{i:03}", "passes", ("++", "++")) for i in range(25)]

    lines = shown(msgspec.structs.replace(MEASURED, tasks=(*many, *quiet)))

    assert "    and 10 more" in lines
    assert any(line.startswith("  Always passing (25): q000") for line in lines)
    assert any(line.endswith("q009 and 15 more") for line in lines)
