"""A world of tables, messages and payments as a user meets it: run, recorded, played again."""

from __future__ import annotations

import json

import pytest

CONFIG = """
[agent]
python = "desk:run"
[[suite]]
name = "shop"
tasks = ["evals/*.toml"]
trials = 2
[gate]
metrics = ["pass^1"]
"""

AGENT = """
def run(task, env):
    def refund(order):
        row = next(row for row in env.world.tables["orders"] if row["id"] == order)
        row["status"] = "refunded"
        env.world.payments.refund(amount_cents=row["cents"], currency="EUR", idempotency_key="1")
        env.world.outbox.send(to=env.world.identity.user, template="refund")
        return env.clock.iso()
    env.tools.register(refund)
    return env.tools.call("refund", order=4812)
"""

TASK = """
id = "refund"
instruction = "Refund it."
identity = { user = "ada" }
now = 2026-03-01T00:00:00Z
tables = { orders = [{ id = 4812, cents = 4500, status = "paid" }, { id = 4813 }] }
[[graders]]
type = "answer"
equals = "2026-03-01T00:00:00Z"
[[graders]]
type = "state"
checks = [
  { payments = { kind = "refund" }, field = "amount_cents", equals = 4500 },
  { messages = { to = "ada", template = "refund" }, count = 1 },
  { unchanged = { except = ["orders[id=4812].status", "messages", "payments"] } },
]
"""


@pytest.mark.slow
@pytest.mark.parametrize("played", ["replay", "sandboxed"])
def test_what_tools_did_to_it_is_judged_and_played_again(place, played):
    """In a replay no tool runs, and the recorded end of the world is what the graders see."""
    (place.path / "evals").mkdir()
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "desk.py").write_text(AGENT)
    (place.path / "evals/refund.toml").write_text(TASK)

    recorded = place.gate("run", "--quiet", "--mode", "record")
    again = place.gate("run", "--quiet", "--mode", played)

    assert (recorded.status, again.status) == (0, 0), recorded.err + again.err
    paths = ("shop.run.jsonl", f"{played}/shop.run.jsonl")
    files = [(place.path / ".ci-gate" / path).read_text() for path in paths]
    trials = [[json.loads(line) for line in text.splitlines()[1:3]] for text in files]
    assert [[one["status"] for one in run] for run in trials] == [["passed"] * 2] * 2
    assert len({one["initial_state"] for run in trials for one in run}) == 1
