"""Numbers that are no amounts end in an unknown value or in words, never in a crash."""

from __future__ import annotations

import json

BAR = {"CI_GATE_BASE_REF": "refs/heads/main"}
WILD = """

WILD = [1.7e308, float("inf"), float("nan"), -1, 10**300, 10**5000]


def wild(task, env):
    number = WILD[env.trial % len(WILD)]
    answer = {"answer": run(task, env), "tokens": number, "measures": {"own": 1.7e308}}
    answer["tokens"] = 7 if isinstance(number, float) else number
    return {**answer, "cost_usd": number}
"""


def test_an_agent_that_reports_absurd_numbers_changes_no_verdict(gated):
    """What it cost is unknown in each of those trials, and a warning says so."""
    agent = gated.path / "evals/toy_agent.py"
    calm = gated.gate("check", "--json", "-", **BAR)
    agent.write_text(agent.read_text() + WILD)
    gated.replace("ci-gate.toml", "toy_agent:run", "toy_agent:wild")

    found = gated.gate("check", "--json", "-", "--fresh", **BAR)

    assert found.status == calm.status == 0, found.err
    verdict = json.loads(found.out)
    assert verdict["p_value"] == json.loads(calm.out)["p_value"]
    candidate = verdict["economics"]["candidate"]
    assert (candidate["cost_usd"], candidate["cost_known_trials"]) == (None, 0)
    assert candidate["tokens"] == 7 * candidate["tokens_known_trials"] > 0
    trials = candidate["trials"]
    what = "report cost_usd in a number that is no amount: it is unknown."
    assert f"{trials} judged trials {what}" in verdict["warnings"]
