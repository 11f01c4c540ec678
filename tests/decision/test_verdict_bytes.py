"""The same facts give the same bytes, in the documented form."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.decision.circumstances import Circumstances
from ci_gate.decision.compare import compare
from ci_gate.decision.decide import decide
from ci_gate.decision.digits import six_digits
from ci_gate.model.policy import Policy
from ci_gate.model.run import Side
from ci_gate.model.verdict import Verdict
from tests.notation import side_of
from tests.speeds import examples


def verdict_of(baseline: Side, candidate: Side, **policy: Any) -> Verdict:
    """Judge two sides."""
    chosen = Policy(**policy)
    return decide(compare(baseline, candidate, chosen), chosen)


def reordered(side: Side, order: list[str]) -> Side:
    """Return the side with its tasks in another order."""
    return msgspec.structs.replace(
        side,
        tasks={task: side.tasks[task] for task in order if task in side.tasks},
        planned={task: side.planned[task] for task in reversed(order) if task in side.planned},
    )


NAMES = [f"t{i}" for i in range(7)]
_TASKS = st.lists(
    st.tuples(st.text("+-!", min_size=8, max_size=8), st.text("+-!", min_size=8, max_size=8)),
    min_size=7,
    max_size=7,
)


@settings(max_examples=examples(30))
@given(_TASKS, st.permutations(NAMES), st.permutations(NAMES))
def test_the_order_of_tasks_changes_no_byte(
    tasks: list[tuple[str, str]], one: list[str], other: list[str]
) -> None:
    """Whatever order the files have, the verdict's JSON is the same."""
    baseline = side_of(" ".join(f"{n} {b}" for n, (b, _) in zip(NAMES, tasks, strict=True)))
    candidate = side_of(" ".join(f"{n} {c}" for n, (_, c) in zip(NAMES, tasks, strict=True)))
    policy = {"max_errored_rate": 0.9, "metrics": ("pass^1", "pass^4")}

    straight = verdict_of(baseline, candidate, **policy)
    shuffled = verdict_of(reordered(baseline, one), reordered(candidate, other), **policy)

    assert straight.to_json() == shuffled.to_json()


def test_a_drawn_verdict_is_the_same_every_time_and_in_every_order() -> None:
    """The draws have a fixed seed and the tasks one order: judging again changes nothing."""
    before = side_of(" ".join(f"t{i} {'+' * (i % 9)}{'-' * (8 - i % 9)}" for i in range(40)))
    after = side_of(" ".join(f"t{i} {'+' * (i % 7)}{'-' * (8 - i % 7)}" for i in range(40)))

    first = verdict_of(before, after, margin=0.05)

    assert first.method.draws
    backwards = [reordered(side, sorted(side.tasks, reverse=True)) for side in (before, after)]
    assert first.to_json() == verdict_of(*backwards, margin=0.05).to_json()


DOCUMENTED = {
    "": "schema verdict exit_code partial reasons alpha level p_value predictive method metrics "
    "tasks floors guards suite trials resilience economics provenance",
    "method": "strata z_seed phi exact draws",
    "metrics.pass^1": "baseline candidate difference interval p_value p_adjusted exact "
    "detectable_drop n_tasks predictive",
    "tasks.0": "task claim predictive baseline candidate p_value p_adjusted replay",
    "tasks.0.baseline": "trials passed errored",
    "tasks.0.replay.0": "trial repeat seed command",
    "reasons.0": "code text",
    "suite": "compared new removed changed unjudged quarantined",
    "trials": "planned run judged errored stop",
}


def test_the_json_has_the_documented_fields() -> None:
    """Every field of ci-gate/verdict@1 is there under its name; more may be."""
    verdict = verdict_of(side_of("a ++++++++ b ++++++++"), side_of("a -------- b ++++++++"))

    found = json.loads(verdict.to_json())

    for path, fields in DOCUMENTED.items():
        value = found
        for step in filter(None, path.split(".")):
            value = value[int(step)] if isinstance(value, list) else value[step]
        assert set(fields.split()) <= set(value), path
    assert found["schema"] == "ci-gate/verdict@1"
    assert found["verdict"] == "regressed"


def test_a_verdict_survives_its_json() -> None:
    """What is written can be read back whole."""
    verdict = verdict_of(side_of("a ++++++++ b ++++++++"), side_of("a -------- b ++++++++"))

    assert msgspec.json.decode(verdict.to_json(), type=Verdict) == verdict


def test_figures_have_six_significant_digits() -> None:
    """Thirds and tiny p-values alike; counts and exact numbers stay as they are."""
    values = {"third": 1 / 3, "tiny": 1.23456789e-12, "zero": -0.0, "count": 10**9, "all": (2 / 3,)}

    assert json.dumps(six_digits(values)) == json.dumps(
        {"third": 0.333333, "tiny": 1.23457e-12, "zero": 0.0, "count": 10**9, "all": [0.666667]}
    )


def test_the_decision_is_taken_before_rounding() -> None:
    """A p-value just above alpha is not red because it is printed as alpha."""
    before, after = side_of("a ++++++++ b ++++++++"), side_of("a ++++---- b ++++++++")
    policy = Policy(metrics=("pass^1",), pairing="none")
    comparison = compare(before, after, policy)
    assert comparison.evidence is not None
    p_value = comparison.evidence.joint.p_value

    alpha = p_value * (1 - 1e-9)
    strict = Policy(metrics=("pass^1",), pairing="none", alpha=alpha)
    verdict = decide(compare(before, after, strict), strict)

    assert verdict.decision == "passed"
    assert six_digits(p_value) == six_digits(alpha)


def test_the_callers_provenance_is_shown_as_it_is() -> None:
    """Nothing of it is rounded or renamed."""
    policy = Policy()
    around = Circumstances(provenance={"ages": {"baseline_days": 1.23456789}})
    side = side_of("a ++++++++")

    verdict = decide(compare(side, side, policy, around), policy, around)

    assert verdict.provenance["ages"] == {"baseline_days": 1.23456789}
