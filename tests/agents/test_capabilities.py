"""What an agent may call: refused before it is made, whoever asks and whatever it does then."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.agents import worker
from ci_gate.agents.capabilities import Capabilities
from ci_gate.agents.strictness import Noted
from ci_gate.agents.trial_calls import SandboxCalls
from ci_gate.agents.wire import Incoming
from ci_gate.model.trial import Status, Trajectory
from tests.agents.desks import Desk, ScriptedWorld, run_one
from tests.speeds import slow

HEAD = """\
import asyncio, threading
made = []
def refund(cents=1):
    made.append("refund")
    return "done"
def delete_all():
    made.append("delete_all")
def tools(env):
    env.tools.register(refund, delete_all, refund_all=refund)
"""


def outcome(tmp_path: Path, body: str, allow: tuple[str, ...] = (), **spec: Any) -> Trajectory:
    """Run an agent of one function whose lines are given."""
    kind = "async def" if "await " in body else "def"
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"{HEAD}{kind} run(task, env):\n    tools(env)\n{lines}    return ' '.join(made)\n"
    return run_one(Desk(tmp_path, source).python(allow=allow, **spec), ScriptedWorld())


def test_what_is_allowed_is_made(tmp_path: Path) -> None:
    """By kind, by name and by glob."""
    body = """\
env.tools.call("refund")
env.tools.call("refund_all")
env.kv.set("a", 1)
env.call("llm", "m", lambda: 1)"""

    ended = outcome(tmp_path, body, ("tool:refund*", "kv", "llm:*"))

    assert (ended.status, ended.answer) == (None, "refund refund")
    assert len(ended.steps) == 4


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize(
    ("call", "named"),
    [
        ('env.tools.call("delete_all")', "tool delete_all"),
        *slow(
            ('await env.tools.acall("delete_all")', "tool delete_all"),
            ('env.tools.observe("delete_all")', "tool delete_all"),
            ('env.kv.set("a", 1)', "kv set"),
            ('env.files.read("a")', "file read"),
            ('env.call("llm", "m", delete_all)', "llm m"),
        ),
    ],
)
def test_any_other_call_is_refused_before_it_is_made(
    tmp_path: Path, call: str, named: str, isolation: str
) -> None:
    """The trial fails, though the agent swallows it, and nothing is recorded of what was not."""
    body = f"try:\n    {call}\nexcept BaseException:\n    pass"

    ended = outcome(tmp_path, body, ("tool:refund", "kv:get"), isolation=isolation)

    assert ended.status is Status.FAILED
    assert (
        ended.reason == f"capability: {named} is called where only tool:refund, kv:get may be used"
    )
    assert ended.answer == ""
    assert ended.steps == ()


@pytest.mark.slow
def test_an_exception_handler_of_a_tool_does_not_stop_it(tmp_path: Path) -> None:
    """A tool that calls another one is itself refused, and no model is shown an error."""
    body = """\
def cautious():
    try:
        env.tools.call("delete_all")
    except Exception:
        return "never mind"
env.tools.register(cautious)
env.tools.call("cautious")"""

    ended = outcome(tmp_path, body, ("tool:refund", "tool:cautious"))

    assert ended.reason is not None
    assert ended.reason.startswith("capability: tool delete_all is called")
    assert ended.answer is None


def test_a_scope_narrows_what_a_sub_agent_may_do(tmp_path: Path) -> None:
    """Tools, store and generator are the trial's; only what may be called is less."""
    body = """\
env.kv.set("a", 1)
first = env.rng.random()
with env.scope(allow=["tool:refund", "kv:get"]) as inner:
    inner.tools.call("refund")
    assert inner.kv.get("a") == 1 and inner.rng is env.rng and inner.seed == env.seed
    inner.turn()
    inner.tools.register(own=refund)
assert env.turns == 1 and "own" not in env.tools.names
env.tools.call("delete_all")"""

    ended = outcome(tmp_path, body)

    assert (ended.status, ended.answer) == (None, "refund delete_all")


@pytest.mark.parametrize(
    "call",
    [
        'inner.tools.call("delete_all")',
        *slow('env.tools.call("delete_all")', "late(inner)"),
        'asyncio.run(asyncio.to_thread(env.tools.call, "delete_all"))',
    ],
)
def test_a_scope_holds_whichever_env_is_used(tmp_path: Path, call: str) -> None:
    """The outer one within the block; the inner one also in a thread of its own."""
    body = f"""\
def late(inner):
    thread = threading.Thread(target=lambda: inner.tools.call("delete_all"))
    thread.start()
    thread.join()
with env.scope(allow=["tool:refund"]) as inner:
    {call}"""

    ended = outcome(tmp_path, body)

    assert ended.reason == (
        "capability: tool delete_all is called where only tool:refund may be used"
    )
    assert "delete_all" not in (ended.answer or "")


@pytest.mark.slow
def test_scopes_within_scopes_only_ever_narrow(tmp_path: Path) -> None:
    """A call has to be allowed by each."""
    body = """\
with env.scope(allow=["tool:*"]) as inner, inner.scope(allow=["tool:refund*"]) as innermost:
    innermost.tools.call("refund_all")
    innermost.tools.call("delete_all")"""

    ended = outcome(tmp_path, body, ("tool", "kv"))

    assert ended.reason is not None
    assert "only tool:refund* may be used" in ended.reason


@pytest.mark.parametrize(
    "declaration",
    [
        'env.scope(allow=["tool:refund", "llm"]).__enter__()',
        *slow(
            'env.tools.register(helper=refund, allow=["llm"])',
            'env.tools.add("helper", allow=["tool"])(refund)',
            'env.scope(allow=["tool:refund"]).__enter__().tools.register(h=refund, allow=["kv"])',
        ),
    ],
)
def test_a_declaration_beyond_the_parents_is_refused_when_it_is_made(
    tmp_path: Path, declaration: str
) -> None:
    """Before anything of it runs, and swallowed or not."""
    body = f"try:\n    {declaration}\nexcept BaseException:\n    pass"

    ended = outcome(tmp_path, body, ("tool:refund*", "kv"))

    assert ended.status is Status.FAILED
    assert ended.reason is not None
    assert "is declared where only" in ended.reason


@pytest.mark.parametrize("way", [*slow("call"), "acall"])
def test_a_composed_tool_is_held_to_what_it_declared(tmp_path: Path, way: str) -> None:
    """Only while it runs: the agent itself may do more."""
    body = f"""\
{"async " if way == "acall" else ""}def composed(name):
    {"await " if way == "acall" else ""}env.tools.{way}(name)
env.tools.register(composed, allow=["tool:refund"])
{"await " if way == "acall" else ""}env.tools.{way}("composed", name="refund")
env.tools.call("delete_all")
{"await " if way == "acall" else ""}env.tools.{way}("composed", name="delete_all")"""

    ended = outcome(tmp_path, body)

    assert [step.input for step in ended.steps if step.name == "composed"] == [{"name": "refund"}]
    assert ended.reason == (
        "capability: tool delete_all is called where only tool:refund may be used"
    )


@pytest.mark.parametrize("allow", ['"tool:refund"', *slow("[]", '[""]', "[1]", '[":x"]')])
def test_what_is_no_declaration_is_the_agents_mistake(tmp_path: Path, allow: str) -> None:
    """A text is no list of its letters, and nothing is not everything."""
    ended = outcome(tmp_path, f"with env.scope(allow={allow}):\n    pass")

    assert ended.reason is not None
    assert ended.reason.startswith("TypeError: allow is a list such as")


def test_a_tool_may_be_called_allow(tmp_path: Path) -> None:
    """As it could before there were declarations."""
    ended = outcome(tmp_path, 'env.tools.register(allow=refund)\nenv.tools.call("allow")')

    assert ended.answer == "refund"


@pytest.mark.parametrize("asks", [False, True])
def test_this_side_refuses_what_a_worker_does_not(asks: bool) -> None:
    """The decision does not rest with the process that the agent runs in."""
    world = ScriptedWorld()
    calls = SandboxCalls(world, Capabilities(["kv"]), Noted())

    answer = calls(Incoming(op="call", call=1, kind="tool", name="delete_all", asks=asks))
    ended = calls.judged(Trajectory(answer="fine", status=None))

    assert answer.refused == "tool delete_all is called where only kv may be used"
    assert world.steps == []
    assert (ended.status, ended.reason) == (Status.FAILED, f"capability: {answer.refused}")


ENTRIES = st.lists(
    st.sampled_from(["tool", "kv", "tool:refund_*", "*:read", "t?ol:a", "tool:[ab]*", "file:read"]),
    min_size=1,
    max_size=3,
)
NAMES = st.sampled_from(["refund_1", "read", "a", "b", "write", "refund_", ""])
KINDS = st.sampled_from(["tool", "kv", "file", "toool", "llm"])


@given(entries=ENTRIES, kind=KINDS, name=NAMES)
def test_both_sides_have_the_same_rule(entries: list[str], kind: str, name: str) -> None:
    """What the worker lets pass the parent does as well, and the other way round."""
    refusal = Capabilities(entries).refusal(kind, name)

    assert worker.Capabilities(entries).allows(kind, name) is (refusal is None)


GLOBS = st.text(alphabet="ab*?[]", max_size=5)


@given(outer=GLOBS, inner=GLOBS, text=st.text(alphabet="ab*?[]", max_size=6))
def test_what_covers_another_allows_whatever_that_allows(outer: str, inner: str, text: str) -> None:
    """Where it cannot be told, it does not cover."""
    if worker._includes(outer, inner) and fnmatch.fnmatchcase(text, inner):
        assert fnmatch.fnmatchcase(text, outer)


@pytest.mark.parametrize(
    ("outer", "inner", "is_within"),
    [
        ("tool", "tool:refund", True),
        ("tool:refund_*", "tool:refund_1", True),
        ("tool:refund_*", "tool:refund_a*", True),
        ("tool:refund_*", "tool:refund_*", True),
        ("*", "kv:get", True),
        ("tool:refund_*", "tool", False),
        ("tool:refund_*", "tool:*", False),
        ("tool:refund_?", "tool:refund_*", False),
        ("kv", "tool:get", False),
    ],
)
def test_a_narrower_entry_lies_within_a_wider_one(outer: str, inner: str, is_within: bool) -> None:
    """Kind by kind and name by name."""
    assert worker.Capabilities([outer]).covers(inner) is is_within
