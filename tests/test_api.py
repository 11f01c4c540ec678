"""The public Python interface."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ci_gate
from ci_gate.config import policy_digest
from ci_gate.errors import UsageError
from tests.decision.rounds import alike, baseline_of, honest

STEADY = {"refund": "++++++++", "cancel": "++++++-+"}
BROKEN = {"refund": "--------", "cancel": "++++++-+"}


def test_a_notebook_compares_outcomes_in_three_lines() -> None:
    """Outcomes in, a verdict out: decision, status, p-values, tasks and JSON."""
    baseline = ci_gate.Run.from_outcomes("desk", STEADY)
    candidate = ci_gate.Run.from_outcomes("desk", BROKEN)

    verdict = ci_gate.compare(baseline, candidate)

    assert verdict.decision == "regressed"
    assert verdict.exit_code == 1
    assert verdict.p_value == verdict.tasks[1].p_adjusted
    assert verdict.metrics["pass^8"].p_value is not None
    assert [task.claim for task in verdict.tasks] == ["unchanged", "regressed"]
    assert json.loads(verdict.to_json())["schema"] == "ci-gate/verdict@1"


def test_the_policy_is_optional_and_judges() -> None:
    """Every key of [gate] is a field with the same default."""
    baseline = ci_gate.Run.from_outcomes("desk", STEADY)
    candidate = ci_gate.Run.from_outcomes("desk", BROKEN)

    advisory = ci_gate.compare(baseline, candidate, ci_gate.Policy(mode="advisory"))
    keyword = ci_gate.compare(baseline, candidate, policy=ci_gate.Policy(alpha=1e-9))

    assert (advisory.decision, advisory.exit_code) == ("regressed", 0)
    assert keyword.decision == "inconclusive"


def test_without_a_root_seed_trials_share_seeds_with_nothing() -> None:
    """Position i of two runs is not the same seed unless both say so."""
    unseeded = [ci_gate.Run.from_outcomes("desk", tasks) for tasks in (STEADY, STEADY)]
    seeded = [
        ci_gate.Run.from_outcomes("desk", STEADY, root_seed=seed)
        for seed in (0x20261030, "0x20261030")
    ]

    assert ci_gate.compare(*unseeded).method.rule == "no seeds"
    assert ci_gate.compare(*seeded).method.rule == "pair"


def test_a_failing_trial_is_named_by_its_published_seed() -> None:
    """The seed of a trial is derived from the root seed and the task id as everywhere else."""
    runs = [
        ci_gate.Run.from_outcomes("desk", tasks, root_seed=0x20261030) for tasks in (STEADY, BROKEN)
    ]

    replay = ci_gate.compare(*runs).tasks[1].replay[3]

    digest = hashlib.sha256(bytes.fromhex("0000000020261030") + b"refund").digest()
    seed = int.from_bytes(digest[:8], "big") ^ (4 * 0x9E3779B9)
    assert (replay.trial, replay.seed) == (3, f"0x{seed:016x}")


def test_a_list_of_strings_holds_repeats_over_the_same_seeds() -> None:
    """Four runs over eight seeds are 32 trials a task."""
    deep = ci_gate.Run.from_outcomes("desk", {"refund": ["++++++++"] * 4}, root_seed=1)
    flat = ci_gate.Run.from_outcomes("desk", {"refund": "++++++++"}, root_seed=1)

    verdict = ci_gate.compare(deep, flat)

    assert verdict.tasks[0].baseline is not None
    assert verdict.tasks[0].baseline.trials == 32
    assert deep.outcomes == {"refund": ("++++++++",) * 4}


def test_without_a_baseline_only_floors_and_errors_are_judged() -> None:
    """None is a baseline that does not exist yet."""
    verdict = ci_gate.compare(None, ci_gate.Run.from_outcomes("desk", STEADY))

    assert [str(reason.code) for reason in verdict.reasons] == ["no-baseline"]


@pytest.mark.parametrize(
    ("outcomes", "seed", "told"),
    [
        ({"refund": "++x"}, None, "unknown outcomes 'x'"),
        ({"refund": ["++", "+"]}, None, "differ in length: 2, 1"),
        ({"refund": []}, None, "no repeat"),
        ({"": "+"}, None, "the id is empty"),
        ({"a\nb": "+"}, None, "control"),
        ({"refund": "+"}, "0xnope", "hexadecimal"),
        ({"refund": "+"}, -1, "root_seed"),
    ],
)
def test_impossible_outcomes_are_refused(outcomes: Any, seed: Any, told: str) -> None:
    """The message says where, what was found and what would be right."""
    with pytest.raises(UsageError, match=told):
        ci_gate.Run.from_outcomes("desk", outcomes, root_seed=seed)


def test_all_mistakes_are_reported_at_once() -> None:
    """Three mistakes, three problems."""
    with pytest.raises(ci_gate.GateError) as caught:
        ci_gate.Run.from_outcomes("desk", {"a": "x", "b": ["+", "++"]}, root_seed="zz")

    assert len(caught.value.problems) == 3


def test_a_side_that_is_none_is_refused() -> None:
    """A path or a table is not a run; the message says how to make one."""
    run = ci_gate.Run.from_outcomes("desk", STEADY)

    with pytest.raises(UsageError, match=r"the candidate is a str.*ci_gate\.load"):
        ci_gate.compare(run, "desk.run.jsonl")  # type: ignore[arg-type]


RUN_FILE = """\
{"schema": "ci-gate/run@1", "suite": "desk", "root_seed": "0x20261030"}
{"task": "refund", "trial": 0, "status": "passed"}
{"task": "refund", "trial": 1, "status": "failed"}
"""
BASELINE_FILE = """\
{"schema":"ci-gate/baseline@1","suite":"desk","suite_digest":null,
"root_seed":"0x0000000020261030","trials":2,"errors":"exclude","faults_digest":null,
"judge_digest":null,
"runs":[
{"agent":{"name":"desk","digest":null},"model":null,"forced":false,"run_digest":"sha256:1"}],
"tasks":{
"refund":{"digest":null,"outcomes":["+-"]}}}
"""


def test_load_returns_what_the_file_says_it_is(tmp_path: Path) -> None:
    """A run becomes a Run and a baseline a Baseline, whatever the files are called."""
    (tmp_path / "one").write_text(RUN_FILE)
    (tmp_path / "two").write_text(BASELINE_FILE)

    run, baseline = ci_gate.load(tmp_path / "one"), ci_gate.load(str(tmp_path / "two"))

    assert isinstance(run, ci_gate.Run)
    assert run.outcomes == {"refund": ("+-",)}
    assert isinstance(baseline, ci_gate.Baseline)
    assert baseline.tasks["refund"].outcomes == ("+-",)


def test_either_side_may_be_a_run_or_a_baseline(tmp_path: Path) -> None:
    """The same outcomes give the same metrics from either kind of file, in either place."""
    (tmp_path / "one").write_text(RUN_FILE)
    (tmp_path / "two").write_text(BASELINE_FILE)
    run, baseline = ci_gate.load(tmp_path / "one"), ci_gate.load(tmp_path / "two")

    verdicts = [ci_gate.compare(b, c) for b in (run, baseline) for c in (run, baseline)]

    assert all(verdict.metrics == verdicts[0].metrics for verdict in verdicts)
    assert all(verdict.method.rule == "pair" for verdict in verdicts)


def test_load_refuses_what_is_neither(tmp_path: Path) -> None:
    """The message names the file."""
    (tmp_path / "other.json").write_text('{"schema": "else/where@1"}')

    with pytest.raises(ci_gate.GateError, match=r"other\.json"):
        ci_gate.load(tmp_path / "other.json")


def test_the_estimates_are_the_published_ones() -> None:
    """pass^k and pass@k of known counts."""
    assert ci_gate.pass_hat_k(6, 8, 4) == 15 / 70
    assert ci_gate.pass_at_k(6, 10, 5) == 1.0
    with pytest.raises(ValueError, match="at least 8"):
        ci_gate.pass_hat_k(6, 6, 8)


def test_seeds_are_the_published_ones() -> None:
    """Trial i's seed is base ^ ((i + 1) * 0x9E3779B9)."""
    assert ci_gate.derive_seed(0x20261030, 0) == 3188812169
    assert ci_gate.derive_seed(0x20261030, 7) == 20696653304


def test_the_chaos_injector_is_part_of_the_interface() -> None:
    """A fixed seed injects the same faults again after a reset."""
    injector = ci_gate.ChaosInjector(7, rate_permille=500, tools={})
    first = [injector.intercept("refund_order", "ok").fault for _ in range(20)]

    injector.reset()

    assert [injector.intercept("refund_order", "ok").fault for _ in range(20)] == first
    assert set(first) - {None}
    assert len(injector.audit) == 20


def test_every_public_name_is_there_and_no_other() -> None:
    """What `__all__` promises can be fetched; a misspelling is an AttributeError."""
    assert {name for name in ci_gate.__all__ if getattr(ci_gate, name) is None} == set()
    assert set(ci_gate.__all__) <= set(dir(ci_gate))
    with pytest.raises(AttributeError, match="pass_hat"):
        _ = ci_gate.pass_hat


_LIGHT = """
import sys, ci_gate
assert not {"numpy", "scipy", "msgspec", "ci_gate.api"} & set(sys.modules), "import"
ci_gate.pass_hat_k(7, 8, 8), ci_gate.derive_seed(1, 0), ci_gate.Policy()
run = ci_gate.Run.from_outcomes("desk", {"refund": "++++++++"})
assert "numpy" not in sys.modules, "numpy before a comparison"
ci_gate.compare(run, run)
assert "scipy" not in sys.modules, "scipy"
"""


def test_importing_is_light_and_without_side_effects() -> None:
    """Nothing is loaded before it is used, and scipy not even for a comparison."""
    done = subprocess.run(
        [sys.executable, "-c", _LIGHT], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_power_foresees_from_outcomes_alone() -> None:
    """A notebook asks what checks against some outcomes would see."""
    outcomes = {f"task-{n}": "+++++++-" for n in range(6)}
    baseline = ci_gate.Run.from_outcomes("desk", outcomes)

    found = ci_gate.power(baseline, drops=(0.3,), trials=(8,))

    assert [sight.shape for sight in found.sights] == ["none", "shift", "flaky", "broken"]
    assert found.check.cost_usd is None
    assert found.sights[1].blocked is not None
    assert found.sights[1].blocked > found.sights[0].blocked


def test_a_run_that_stopped_early_is_judged_by_the_digests_in_its_header() -> None:
    """Against its own baseline and policy it is believed, against another policy it is not."""
    bar = baseline_of(6)
    whole = honest(bar, alike(6, "++++++++"))
    run = msgspec.structs.replace(whole, policy_digest=policy_digest(ci_gate.Policy()))

    own = ci_gate.compare(bar, run)
    other = ci_gate.compare(bar, run, ci_gate.Policy(alpha=0.1))

    assert (own.decision, own.p_value) == ("passed", None)
    assert own.predictive is not None
    assert other.decision == "inconclusive"
    assert "another baseline or policy" in other.reasons[0].text
