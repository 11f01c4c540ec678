"""Tables, outbox, payments, identity and clock as agents find them, through real workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ci_gate.model.trial import Status, Trajectory
from tests.agents.desks import Desk, ScriptedWorld, run_one
from tests.speeds import slow
from tests.trials import task_of, trial_of


def ran(
    folder: Path, source: str, home: Path, isolation: str = "process", **task: Any
) -> Trajectory:
    desk = Desk(folder, source)
    now = task.pop("now", "2026-01-01T09:00:00Z")
    world, trial = ScriptedWorld(home=home, now=now), trial_of(task_of(**task))
    return run_one(desk.python(isolation=isolation), world, trial)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The place of a world that has tables."""
    (tmp_path / "world").mkdir()
    (tmp_path / "world/tables.json").write_text('{"orders": [{"id": 1, "done": 1}]}')
    return tmp_path / "world"


@pytest.mark.parametrize("isolation", ["process", *slow("inline")])
def test_changed_tables_are_what_the_trial_leaves(
    tmp_path: Path, home: Path, isolation: str
) -> None:
    """Rows are plain dicts, one for all of the trial's code; true in place of 1 is a change."""
    source = """
def run(task, env):
    env.tools.register(finish)
    env.world.tables["orders"][0]["done"] = True
    with env.scope(allow=["tool"]) as inner:
        inner.world.tables["refunds"] = [{"id": 1, "cents": 4500}]
    return str(len(env.world.tables))
def finish(): ...
"""
    assert ran(tmp_path, source, home, isolation).answer == "2"
    kept = json.loads((home / "tables.json").read_text())
    assert kept == {"orders": [{"id": 1, "done": True}], "refunds": [{"id": 1, "cents": 4500}]}
    assert kept["orders"][0]["done"] is True
    assert [entry.name for entry in home.iterdir()] == ["tables.json"]


def test_tables_are_kept_where_the_agent_raised(tmp_path: Path, home: Path) -> None:
    """A mess that was left before a crash is a mess."""
    source = """
def run(task, env):
    env.world.tables["orders"].clear()
    raise RuntimeError("no")
"""
    trajectory = ran(tmp_path, source, home)
    assert (trajectory.reason or "").startswith("RuntimeError: no")
    assert json.loads((home / "tables.json").read_text()) == {"orders": []}


def test_what_json_does_not_have_is_refused_by_its_place(tmp_path: Path, home: Path) -> None:
    """The trial fails and says where; nothing half is written."""
    source = """
from decimal import Decimal
def run(task, env):
    env.world.tables["orders"][0]["total"] = Decimal("4.5")
    return "done"
"""
    trajectory = ran(tmp_path, source, home)
    place = "env.world.tables['orders'][0]['total']"
    assert trajectory.status is Status.FAILED
    assert trajectory.reason == f"garbage: {place} is Decimal, which JSON does not have"
    assert "total" not in (home / "tables.json").read_text()


def test_messages_are_lines_that_go_nowhere(tmp_path: Path) -> None:
    """Each is a recorded call and a line, also in a world that had no folder; None is left out."""
    source = """
def run(task, env):
    env.world.outbox.send(to="ada@example.org", template="refund", order_id=4812)
    said = []
    for message in ({}, {"body": {1}}):
        try:
            env.world.outbox.send(**message)
        except env.ToolError as error:
            said.append(str(error))
    return " | ".join(said)
"""
    desk, world = Desk(tmp_path, source), ScriptedWorld(home=tmp_path / "new")
    trajectory = run_one(desk.python(), world)
    sent = {"to": "ada@example.org", "template": "refund", "order_id": 4812}
    assert lines(tmp_path / "new/outbox.jsonl") == [sent]
    assert trajectory.answer == (
        "ValueError: a message needs a field, such as 'to' or 'template' | "
        "TypeError: 'body' is set, which JSON does not have"
    )
    assert [(step.kind, step.name, step.is_error) for step in world.steps] == [
        ("outbox", "send", False),
        ("outbox", "send", True),
        ("outbox", "send", True),
    ]


def test_payments_are_intents_and_a_key_names_one(tmp_path: Path, home: Path) -> None:
    """The same payment under a key is one; another one, or no payment at all, is an error."""
    (home / "payments.jsonl").write_text('{"id": "payment-1", "kind": "charge"}')
    source = """
def run(task, env):
    pay = env.world.payments
    asked = dict(amount_cents=4500, currency="eur", reference="4812", idempotency_key="k")
    assert pay.refund(**asked) == pay.refund(**asked)
    pay.payout(amount_cents=1, currency="EUR")
    said = []
    for wrong in ({"amount_cents": 4501}, {"amount_cents": 0}, {"amount_cents": True},
                  {"currency": "euros"}, {"id": "x"}):
        try:
            pay.refund(**{**asked, **wrong})
        except env.ToolError as error:
            said.append(str(error).partition(" must be")[0])
    return " | ".join(said)
"""
    trajectory = ran(tmp_path, source, home)
    assert trajectory.answer == (
        "ValueError: the idempotency key 'k' was used for another payment | "
        "ValueError: amount_cents | ValueError: amount_cents | ValueError: currency | "
        "ValueError: 'id' is given to a payment by its record"
    )
    refund = {"id": "payment-2", "kind": "refund", "amount_cents": 4500, "currency": "EUR"}
    assert lines(home / "payments.jsonl")[1:] == [
        {**refund, "reference": "4812", "idempotency_key": "k"},
        {"id": "payment-3", "kind": "payout", "amount_cents": 1, "currency": "EUR"},
    ]


def test_a_payment_that_is_not_allowed_is_not_recorded(tmp_path: Path, home: Path) -> None:
    """The kinds are ``outbox`` and ``payment``, held to ``allow`` as any other call."""
    source = """
def run(task, env):
    with env.scope(allow=["payment:charge"]) as inner:
        inner.world.payments.refund(amount_cents=1, currency="EUR")
"""
    trajectory = ran(tmp_path, source, home)
    assert (trajectory.reason or "").startswith("capability: payment refund is called where only")
    assert not (home / "payments.jsonl").exists()


def test_identity_and_time_are_the_task_s(tmp_path: Path, home: Path) -> None:
    """Who is asking cannot be changed, not even within; the clock starts where the task says."""
    source = """
def run(task, env):
    who, refused = env.world.identity, 0
    for write in (lambda: who.update(user="eve"), lambda: who["of"].update(shop=2),
                  lambda: who["roles"].append("admin")):
        try:
            write()
        except (TypeError, AttributeError):
            refused += 1
    return f"{who.user} {who['roles']} {refused} {env.clock.iso()}"
"""
    identity = {"user": "ada", "roles": ["agent"], "of": {"shop": 1}}
    now = "2026-03-01T00:00:00Z"
    answer = ran(tmp_path, source, home, identity=identity, now=now).answer
    assert answer == "ada ('agent',) 3 2026-03-01T00:00:00Z"


def test_a_command_finds_all_of_it_in_its_environment(tmp_path: Path, home: Path) -> None:
    """Paths of three files, of which two begin with the first line, and who is asking as JSON."""
    script = """#!/bin/sh
echo '{"template": "refund"}' >> "$CI_GATE_OUTBOX"
echo '{"kind": "refund"}' >> "$CI_GATE_PAYMENTS"
cat "$CI_GATE_TABLES" >&2
printf '{"answer": {"who": %s, "now": "%s"}}' "$CI_GATE_IDENTITY" "$CI_GATE_NOW"
"""
    desk = Desk(tmp_path)
    agent = desk.command(str(desk.program("agent.sh", script)))
    trial = trial_of(task_of(identity={"user": "ada"}))
    trajectory = run_one(agent, ScriptedWorld(home=home, now="2026-03-01T00:00:00Z"), trial)
    assert json.loads(trajectory.answer or "") == {
        "who": {"user": "ada"},
        "now": "2026-03-01T00:00:00Z",
    }
    assert lines(home / "outbox.jsonl") == [{"template": "refund"}]
    assert lines(home / "payments.jsonl") == [{"kind": "refund"}]
    assert '"orders"' in trajectory.output_tail
