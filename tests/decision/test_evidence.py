"""The test over all tasks, task by task."""

from __future__ import annotations

from math import fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.decision.compare import compare
from ci_gate.decision.comparison import Comparison
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.model.verdict import Claim
from tests.notation import side_of
from tests.speeds import examples


def compared(baseline: Side | str, candidate: Side | str, **policy: object) -> Comparison:
    """Compare two sides or their notations."""
    before = side_of(baseline) if isinstance(baseline, str) else baseline
    after = side_of(candidate) if isinstance(candidate, str) else candidate
    return compare(before, after, Policy(**policy))  # type: ignore[arg-type]


def claims(comparison: Comparison) -> dict[str, Claim]:
    """Return the claim on each task."""
    return {task.task: task.claim for task in comparison.tasks}


def test_a_task_that_fell_is_named_and_the_others_are_not() -> None:
    """One broken task among sound ones regresses alone."""
    calm = " ".join(f"t{i} +++++++-" for i in range(10))

    found = compared(f"{calm} broken ++++++++", f"{calm} broken --------")

    assert claims(found) == {f"t{i}": Claim.UNCHANGED for i in range(10)} | {
        "broken": Claim.REGRESSED
    }


def test_a_raw_p_value_alone_makes_a_suspect() -> None:
    """Among 20 tasks a raw p of .038 is chance: the task is a suspect and nothing is red."""
    calm = " ".join(f"t{i} ++++----" for i in range(20))

    found = compared(f"{calm} slack ++++++++", f"{calm} slack ++-+-+--", pairing="none")

    assert claims(found)["slack"] is Claim.SUSPECT
    assert found.evidence is not None
    assert found.evidence.by_task["slack"].p_value == pytest.approx(0.0385, abs=1e-4)
    assert found.evidence.joint.p_value > 0.05


def test_an_improvement_is_claimed_only_beyond_chance() -> None:
    """The mirrored test, adjusted over the tasks: 0/8 to 8/8 improved, 3/8 to 5/8 did not."""
    found = compared(
        "up -------- same +++----- down +++++---", "up ++++++++ same +++++--- down +++++---"
    )

    assert claims(found) == {
        "up": Claim.IMPROVED,
        "same": Claim.UNCHANGED,
        "down": Claim.UNCHANGED,
    }


def test_improvements_are_adjusted_over_the_tasks() -> None:
    """A rise with p = .026 of one task in three is no claim, alone it is one."""
    rise = "up --------", "up ++++----"
    alone = compared(*rise, pairing="none", metrics=("pass^1",))
    calm = " x ++++---- y ++++----"

    among = compared(rise[0] + calm, rise[1] + calm, pairing="none", metrics=("pass^1",))

    assert claims(alone)["up"] is Claim.IMPROVED
    assert claims(among)["up"] is Claim.UNCHANGED


@pytest.mark.parametrize(
    ("baseline", "candidate", "pairing", "strata", "rule"),
    [
        # The same four seeds of each task fail again: seeds matter.
        ("a ++++---- b ++++----", "a ++++---- b ++++----", "auto", "task,seed", "pair"),
        ("a ++++---- b ++++----", "a ++++---- b ++++----", "none", "task", "forced"),
        ("a ++++---- b ++++----", "a --++++-- b --++++--", "auto", "task", "pair"),
        ("a ++++---- b ++++----", "a --++++-- b --++++--", "seed", "task,seed", "forced"),
        ("a ++++----/++++----", "a ++++----", "auto", "task,seed", "baseline repeats"),
        ("a ++++----/--++++--", "a ++++----", "auto", "task", "baseline repeats"),
    ],
)
def test_the_strata_are_chosen_and_the_choice_is_said(
    baseline: str, candidate: str, pairing: str, strata: str, rule: str
) -> None:
    """Agreement by seed decides, the policy overrides, and the method says which it was."""
    found = compared(baseline, candidate, pairing=pairing, metrics=("pass^1",))

    assert (found.method.strata, found.method.rule) == (strata, rule)
    assert found.method.z_seed is not None


@pytest.mark.parametrize("pairing", ["auto", "seed", "none"])
def test_runs_without_shared_seeds_pair_with_nothing(pairing: str) -> None:
    """Whatever the policy asks, there is nothing to pair, and asking for it is answered."""
    before = side_of("a ++++----", root_seed="0x1")
    after = side_of("a ++++----", root_seed="0x2")

    found = compared(before, after, pairing=pairing)

    assert (found.method.strata, found.method.rule) == ("task", "no seeds")
    assert found.method.z_seed is None
    assert any("share no seeds" in text for text in found.remarks) is (pairing == "seed")


def test_a_task_on_seeds_of_its_own_stays_in_a_paired_test() -> None:
    """Where strata are seeds, a task whose seeds differ is one stratum and can still regress."""
    seeds = tuple(f"0x{i:016x}" for i in range(16))
    calm = "a ++++---- b ++++---- c ++++----"
    before = side_of(f"{calm} own ++++++++", own={"seeds": seeds[:8]})
    after = side_of(f"{calm} own --------", own={"seeds": seeds[8:]})

    found = compared(before, after)

    assert found.method.strata == "task,seed"
    assert claims(found)["own"] is Claim.REGRESSED


def test_trials_that_the_other_side_did_not_run_stand_aside_in_a_paired_test() -> None:
    """Of 16 baseline seeds only the 8 shared ones are estimated from where seeds matter."""
    before = side_of("a ++++----++++++++ b ++++----++++++++ c ++++----++++++++")
    after = side_of("a ++++---- b ++++---- c ++++----")

    found = compared(before, after, metrics=("pass^1",))

    assert found.method.rule == "many seeds"
    assert found.method.strata == "task,seed"
    assert found.metrics["pass^1"].baseline == 0.5
    assert found.tasks[0].baseline is not None
    assert found.tasks[0].baseline.trials == 16


_OUTCOMES = st.text("+-!", min_size=1, max_size=8)


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(_OUTCOMES, _OUTCOMES), min_size=1, max_size=5))
def test_contributions_add_up_to_the_difference(sides: list[tuple[str, str]]) -> None:
    """Each task's part of the drop in pass^1, and nothing besides."""
    names = [f"t{i}" for i in range(len(sides))]
    before = side_of(" ".join(f"{n} {b}" for n, (b, _) in zip(names, sides, strict=True)))
    after = side_of(" ".join(f"{n} {c}" for n, (_, c) in zip(names, sides, strict=True)))

    found = compared(before, after, pairing="none")

    parts = [task.contribution for task in found.tasks if task.contribution is not None]
    difference = found.metrics["pass^1"].difference if found.matching.compared else None
    assert fsum(parts) == pytest.approx(difference or 0.0, abs=1e-12)


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(_OUTCOMES, _OUTCOMES), min_size=1, max_size=5))
def test_the_smallest_adjusted_p_value_is_the_gates(sides: list[tuple[str, str]]) -> None:
    """Every claim is adjusted over all of them, so the gate is red if and only if a claim is."""
    names = [f"t{i}" for i in range(len(sides))]
    before = side_of(" ".join(f"{n} {b}" for n, (b, _) in zip(names, sides, strict=True)))
    after = side_of(" ".join(f"{n} {c}" for n, (_, c) in zip(names, sides, strict=True)))

    found = compared(before, after)

    adjusted = [m.p_adjusted for m in found.metrics.values() if m.p_adjusted is not None]
    adjusted += [task.p_adjusted for task in found.tasks if task.p_adjusted is not None]
    if found.evidence is not None:
        assert min(adjusted) == found.evidence.joint.p_value


@pytest.mark.parametrize(
    ("baseline", "phi"),
    [
        # One task, 8 of 16: V0 = (1/4) (8 / (15 * 8)), and the runs lie 1/2 from their mean.
        ("a ++++++++/--------", 15.0),
        ("a ++++++--/++--++++", 0.0),
        ("a ++++++++", None),
    ],
)
def test_the_scatter_between_baseline_runs_is_printed(baseline: str, phi: float | None) -> None:
    """Phi compares the runs' means with what trials explain; one run has none."""
    found = compared(baseline, "a ++++----", pairing="none").method.phi

    assert found == (None if phi is None else pytest.approx(phi))
