"""Which runs go on with more repeats, at which level, and that a run kept to its own looks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ci_gate.decision.extension import level_of, look_for_extension, why_not_extended
from ci_gate.model.policy import Policy
from ci_gate.model.run import Plan, Side, Stop, StopReason
from ci_gate.model.verdict import Decision
from tests.decision.rounds import alike, baseline_of, codes, verdict_of
from tests.notation import side_of

BAR = baseline_of(6)
EXTEND = Policy(on_borderline="extend")
PLAN = Plan(trials=8, repeats=1, max_repeats=4, extend=True)
CALM = "++++++++"
NEAR = "+-+-++++"
"""6 of 8 of one task: p = 0.149 with five calm ones."""
WORSE = "+-+-+-+-"
"""4 of 8: p = 0.005."""


def run(odd: str, *, others: str = CALM, **fields: Any) -> Side:
    """Return a finished run of six tasks, of which one is odd; ``/`` begins another repeat."""
    repeats = odd.count("/") + 1
    rows = alike(6, "/".join([others] * repeats), t01=odd)
    reason = StopReason.EXTENDED if repeats > 1 else StopReason.COMPLETE
    settings = {"plan": PLAN, "stop": Stop(round=8 * repeats, reason=reason)}
    return side_of(" ".join(f"{t} {row}" for t, row in rows.items()), **(settings | fields))


@pytest.mark.parametrize(
    ("odd", "repeats"),
    [(CALM, None), (NEAR, 2), (WORSE, None), (f"{NEAR}/{WORSE}", None), (f"{NEAR}/+++-++++", 4)],
    ids=["calm", "near", "red", "red at the second look", "near at the second look"],
)
def test_a_run_goes_on_while_it_lies_near_the_border(odd: str, repeats: int | None) -> None:
    """Between the level and 0.3 with twice the repeats; else it ends."""
    assert look_for_extension(BAR, run(odd), EXTEND).repeats == repeats


def test_the_last_look_ends_the_run() -> None:
    """Four repeats are all that max_repeats allows."""
    odd = "/".join([NEAR, CALM, CALM, CALM])

    assert look_for_extension(BAR, run(odd), EXTEND).repeats is None


@pytest.mark.parametrize(
    ("max_repeats", "level"), [(1, 0.05), (2, 0.0313), (3, 0.0258), (4, 0.0250), (9, 0.0250)]
)
def test_every_look_has_the_level_of_its_plan(max_repeats: int, level: float) -> None:
    """At 8, 16 and 32 trials against a baseline of 32: what was computed for these looks."""
    plan = msgspec.structs.replace(PLAN, max_repeats=max_repeats)

    assert level_of(BAR, run(CALM, plan=plan), EXTEND) == pytest.approx(level, abs=5e-5)


def test_without_extension_the_level_is_alpha() -> None:
    """A plan that cannot be extended is looked at once."""
    plan = Plan(trials=8, max_repeats=4)

    assert level_of(BAR, run(CALM, plan=plan), EXTEND) == 0.05
    assert level_of(None, run(CALM), EXTEND) == 0.05


def test_the_verdict_is_held_against_the_level_whether_or_not_it_was_extended() -> None:
    """At p = 0.035 a run is red at 0.05, and not at the level of a first look."""
    close = run("+-+-+-++")

    assert verdict_of(BAR, close, EXTEND).decision is Decision.PASSED
    assert verdict_of(BAR, msgspec.structs.replace(close, plan=None)).decision is Decision.REGRESSED
    assert verdict_of(BAR, close, EXTEND).level == pytest.approx(0.025, abs=1e-4)


def test_an_extended_run_says_so_and_why() -> None:
    """The reason names both plans; the verdict has p-values as any other."""
    verdict = verdict_of(BAR, run(f"{NEAR}/{WORSE}"), EXTEND)

    assert codes(verdict) == ["task-regressed", "extended"]
    assert "Extended from 1 to 2 repeats (96 of 96 planned trials)" in verdict.reasons[1].text
    assert verdict.p_value is not None
    assert verdict.p_value <= verdict.level
    assert verdict.trials.stop == "extended"


@pytest.mark.parametrize(
    ("candidate", "told"),
    [
        (run(f"{WORSE}/{CALM}"), "it was to end after 1 repeat, red"),
        (run(f"{CALM}/{WORSE}"), "it was to end after 1 repeat, without a drop near"),
        (run(f"{NEAR}/{CALM}/{CALM}"), "it has 3 repeats, and is looked at after 1, 2, 4"),
        (run(f"{NEAR}/{CALM}", plan=None), "its plan lets no run be extended"),
    ],
    ids=["past a red look", "past futility", "between looks", "not allowed"],
)
def test_a_run_that_did_not_keep_to_its_looks_is_refused(candidate: Side, told: str) -> None:
    """Further trials are no appeal, and the level allows for the planned looks alone."""
    verdict = verdict_of(BAR, candidate, EXTEND)

    text = next(reason.text for reason in verdict.reasons if reason.code == "extended")
    assert told in text
    assert verdict.decision is not Decision.PASSED
    assert len(text) < 300


def test_a_run_that_ended_near_the_border_is_judged_with_a_warning() -> None:
    """Its level allows for more looks than it took, so that it is red too rarely at most."""
    verdict = verdict_of(BAR, run(NEAR), EXTEND)

    assert (verdict.decision, codes(verdict)) == (Decision.PASSED, [])
    assert any("was to go on to 2 repeats" in text for text in verdict.warnings)


def test_non_inferiority_goes_on_while_it_is_unshown() -> None:
    """Also where nothing dropped: more repeats narrow the interval."""
    policy = Policy(on_borderline="extend", require="non-inferiority", margin=0.05)

    look = look_for_extension(BAR, run(CALM), policy)

    assert look.p_value > 0.3
    assert look.repeats == 2
    assert look.level < look_for_extension(BAR, run(CALM), EXTEND).level


def test_non_inferiority_that_is_shown_ends_the_run() -> None:
    """A wide margin needs no second look."""
    policy = Policy(
        on_borderline="extend", require="non-inferiority", margin=0.2, metrics=("pass^1",)
    )

    assert look_for_extension(BAR, run(CALM), policy).repeats is None


@pytest.mark.parametrize(
    "candidate",
    [
        run("!!!!!!!!"),
        run(NEAR, faults_digest="sha256:others"),
        side_of(f"fresh {NEAR}", plan=PLAN),
    ],
    ids=["unjudged task", "other faults", "nothing compared"],
)
def test_what_cannot_be_judged_is_not_extended(candidate: Side) -> None:
    """More trials of the same kind would not be judged either."""
    look = look_for_extension(BAR, candidate, EXTEND)

    assert (look.p_value, look.repeats) == (1.0, None)


@pytest.mark.parametrize(
    ("policy", "fields", "word"),
    [
        ({}, {}, "on_borderline = stop"),
        ({"on_borderline": "extend", "deterministic": True}, {}, "deterministic"),
        ({"on_borderline": "extend"}, {"shard": "1/2"}, "shard"),
        ({"on_borderline": "extend"}, {"plan": Plan(trials=8)}, "max_repeats"),
        ({"on_borderline": "extend"}, {"judge_digest": "x"}, "not compared"),
    ],
)
def test_what_is_never_extended_says_why(
    policy: dict[str, Any], fields: dict[str, Any], word: str
) -> None:
    """Each obstacle is a sentence that names itself."""
    why = why_not_extended(BAR, run(CALM, **fields), Policy(**policy))

    assert why is not None
    assert word in why


def test_a_run_against_a_baseline_may_be_extended() -> None:
    """And one without may not."""
    assert why_not_extended(BAR, run(CALM), EXTEND) is None
    assert why_not_extended(None, run(CALM), EXTEND) is not None
