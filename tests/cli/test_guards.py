"""Guards from ``ci-gate.toml`` to the exit status."""

from __future__ import annotations

import json

BAR = {"CI_GATE_BASE_REF": "refs/heads/main"}
TURNS = """

def counted(task, env):
    return {"answer": run(task, env), "turns": 5, "measures": {"lookups": 2, "turns": 1}}
"""


def test_a_guard_is_judged_beside_the_test(gated):
    """Every trial passes as before, in three times the turns, whatever the agent calls its own."""
    gated.git("switch", "--quiet", "main")
    agent, config = gated.path / "evals/toy_agent.py", gated.path / "ci-gate.toml"
    agent.write_text(agent.read_text() + TURNS)
    guard = '\n[gate]\ncurtail = false\n\n[[gate.guards]]\nmetric = "turns"\nmax_increase = 0.5\n'
    config.write_text(config.read_text().replace("toy_agent:run", "toy_agent:counted") + guard)
    assert gated.gate("baseline", "update", "--quiet").status == 0
    gated.commit("a guard")
    gated.git("switch", "--quiet", "--force-create", "change")

    calm = gated.gate("check", "--json", "-", **BAR)
    gated.replace("evals/toy_agent.py", '"turns": 5', '"turns": 15')
    slow = gated.gate("check", "--json", "-", "--fresh", **BAR)

    assert calm.status == 0, calm.err
    assert json.loads(calm.out)["guards"][0]["passed"] is True
    verdict = json.loads(slow.out)
    assert (slow.status, [reason["code"] for reason in verdict["reasons"]]) == (1, ["guard"])
    assert verdict["guards"][0]["change"] == 2.0
