"""What a check would see, on a terminal."""

from __future__ import annotations

import io

import msgspec

from ci_gate.model.power import Bill, KnownBaseline, Prospect, ProspectivePlan, Sight
from ci_gate.render.power import render_prospect
from ci_gate.render.screen import console_for

CHECK = Bill(trials=192, tokens=7270.4, cost_usd=0.00291, duration_s=0.764)
NOTHING = Bill(trials=0, tokens=0.0, cost_usd=0.0, duration_s=0.0)
DEEP = Bill(trials=768, tokens=29_082.0, cost_usd=12.5, duration_s=5400.0)


def sight(shape: str, drop: float, blocked: float | None) -> Sight:
    """A sight from 1,024 checks."""
    error = None if blocked is None else 0.017
    return Sight(shape=shape, drop=drop, blocked=blocked, error=error, repeats=1024)


PROSPECT = Prospect(
    suite="refund-desk",
    baseline=KnownBaseline(tasks=24, runs=1, trials=8, pass_1=0.88, strata="task", z_seed=None),
    trials=8,
    level=0.05,
    power=0.8,
    jobs=2,
    check=CHECK,
    detectable_drop=0.098,
    sights=(
        sight("none", 0.0, 0.024),
        sight("shift", 0.1, 0.809),
        sight("broken", 0.039, 1.0),
        sight("shift", 0.9, None),
    ),
    curve=(sight("shift", 0.05, 0.25), sight("shift", 0.1, 0.8), sight("shift", 0.2, 1.0)),
    plans=(
        ProspectivePlan(
            trials=8,
            runs=1,
            renewed=False,
            sight=sight("shift", 0.1, 0.809),
            check=CHECK,
            baseline=NOTHING,
            cheapest=True,
        ),
        ProspectivePlan(
            trials=32,
            runs=4,
            renewed=True,
            sight=sight("shift", 0.05, 0.83),
            check=DEEP,
            baseline=DEEP,
        ),
    ),
    unreached=(0.02,),
    most_trials=64,
    remarks=("A remark.",),
)


def shown(prospect: Prospect, *, encoding: str = "utf-8", **environ: str) -> list[str]:
    """Return the lines that are printed in a log."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    render_prospect(prospect, console_for(stream, {"CI": "1", "COLUMNS": "100", **environ}))
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode(encoding).splitlines()


def test_the_answer_comes_first_and_every_number_says_what_it_is_for() -> None:
    """A headline, the baseline, the check and its price, then tables and the plot."""
    lines = shown(PROSPECT)

    assert lines[0] == "refund-desk: a drop of 9.8 points in pass^1 is seen with 80 % power"
    assert lines[1].startswith("  Baseline: 24 tasks, 1 run over 8 seeds, pass^1 88.0 %")
    assert "192 in all; tokens 7,270, cost $0.00291, time 0.764 s at 2 jobs" in lines[2]
    assert any(
        line.split("  ")[1:2] == ["- every task a little worse"] and "80.9 % ± 1.7" in line
        for line in lines
    )
    assert any("the best task always fails" in line and "100 % ± 1.7" in line for line in lines)
    assert any("cannot fall so far" in line for line in lines)
    assert lines[-1] == "  A remark."


def test_plans_say_what_the_baseline_needs_and_which_is_cheapest() -> None:
    """A plan is a row with its price; a drop that no plan sees is named."""
    lines = shown(PROSPECT)

    (cheapest,) = [line for line in lines if line.endswith("cheapest")]
    assert "as it is" in cheapest
    assert "nothing" in cheapest
    (renewed,) = [line for line in lines if "new, 32 × 4" in line]  # noqa: RUF001 - as shown
    assert "$12.50" in renewed
    assert "1 h 30 min" in renewed
    assert "768 trials, $12.50" in renewed
    assert "    −2.0: not with up to 64 trials a task" in lines  # noqa: RUF001 - as shown


def test_the_plot_rises_and_marks_the_wanted_power() -> None:
    """A bar a drop, as long as the chance; the mark stands where the bar ends before it."""
    bars = [line for line in shown(PROSPECT) if "█" in line]

    lengths = [line.count("█") for line in bars]
    assert lengths == [10, 32, 40]
    assert ["┊" in bar for bar in bars] == [True, True, False]


def test_a_console_without_blocks_gets_a_plain_plot() -> None:
    """Nothing but ASCII is printed where the encoding has no more."""
    lines = shown(PROSPECT, encoding="ascii")

    assert any("##########" in line and "|" in line for line in lines)
    assert all(line.isascii() for line in lines)


def test_unknown_money_is_called_unknown() -> None:
    """What the baseline does not know is never shown as nothing."""
    unknown = Bill(trials=192, tokens=None, cost_usd=None, duration_s=None)

    line = shown(msgspec.structs.replace(PROSPECT, check=unknown))[2]

    assert "tokens unknown, cost unknown, time unknown" in line


def test_a_suite_that_sees_no_shared_drop_says_so() -> None:
    """Without a detectable drop the headline does not invent one."""
    headline = shown(msgspec.structs.replace(PROSPECT, detectable_drop=None))[0]

    assert headline == "refund-desk: no drop that all tasks share is seen with 80 % power"


def test_hostile_names_are_inert() -> None:
    """A suite's name or a remark cannot move the cursor or start a command."""
    hostile = msgspec.structs.replace(
        PROSPECT, suite="::error::x\x1b[2J", remarks=("\n::set-output::y",)
    )

    lines = shown(hostile)

    assert all(line.isprintable() and not line.lstrip().startswith("::") for line in lines)
