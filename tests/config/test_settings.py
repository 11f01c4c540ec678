"""What of a change's own configuration counts, and what it is seen to edit."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ci_gate import config
from ci_gate.errors import UsageError
from ci_gate.model.policy import Policy

BASE = """
[[suite]]
name = "desk"
tasks = ["evals/*.toml"]
trials = 8
[agent]
python = "desk.agent:run"
timeout_s = 60
isolation = "inline"
[gate]
alpha = 0.05
floors = { "pass^1" = 0.6 }
"""


def parse(text: str, root: str = "/repo") -> config.Config:
    return config.parse(text.encode(), name="ci-gate.toml", root=Path(root))


def edited(*pairs: tuple[str, str]) -> config.Config:
    """Return the base's configuration with texts replaced."""
    text = BASE
    for before, after in pairs:
        assert before in text
        text = text.replace(before, after)
    return parse(text)


def test_a_change_starts_its_own_agent_and_is_judged_by_the_base() -> None:
    """How the agent is started comes from the change; limits, trials and policy do not."""
    head = edited(
        ('"desk.agent:run"', '"desk.second:run"\ninterpreter = "py"\nroot = "app"\nfiles = ["x"]'),
        ("timeout_s = 60", 'timeout_s = 6000\nenvironment_errors = [".*"]'),
        ("trials = 8", 'trials = 16\nerrors = "fail"'),
        ("alpha = 0.05", "alpha = 0.0001"),
    )
    base = parse(BASE)

    merged = config.merge_from_base(head, base)

    assert (merged.suites, merged.gate) == (base.suites, base.gate)
    assert merged.agent == msgspec.structs.replace(
        head.agent, timeout_s=60.0, environment_errors=()
    )


def test_a_change_to_another_protocol_is_not_held_to_workers_of_python() -> None:
    """``inline`` of the base means nothing to a command."""
    head = edited(
        ('python = "desk.agent:run"', 'command = ["node", "x"]'), ('"inline"', '"process"')
    )

    merged = config.merge_from_base(head, parse(BASE))

    assert (merged.agent.command, merged.agent.isolation) == (("node", "x"), "process")


def test_the_merge_of_equal_files_changes_nothing() -> None:
    """A change that leaves the configuration alone is judged by just that."""
    assert config.merge_from_base(parse(BASE), parse(BASE)) == parse(BASE)
    assert config.differences(parse(BASE), parse(BASE)) == ()


def test_each_edit_of_the_bar_is_a_line() -> None:
    """Whoever reviews a change sees what it asks to be judged by."""
    head = edited(
        ("alpha = 0.05", "alpha = 0.2"),
        ('{ "pass^1" = 0.6 }', '{ "pass^8" = 0.1 }'),
        ("trials = 8", "trials = 16"),
        ("timeout_s = 60", "timeout_s = 600"),
        ("[gate]", "[faults]\nrate_permille = 0\n[gate]"),
    )

    lines = config.differences(head, parse(BASE))

    assert [line for line in lines if not line.startswith("faults.")] == [
        "suite.desk.trials: 8 -> 16",
        "agent.timeout_s: 60.0 -> 600.0",
        "gate.alpha: 0.05 -> 0.2",
        'gate.floors."pass^1": 0.6 -> absent',
        'gate.floors."pass^8": absent -> 0.1',
    ]
    assert "faults.rate_permille: absent -> 0" in lines


def test_what_a_change_may_set_is_no_edit_of_the_bar() -> None:
    """The agent's own keys and the report are the change's business."""
    head = edited(('"desk.agent:run"', '"desk.second:run"\nsetup = ["make"]\nroot = "app"'))

    assert config.differences(head, parse(BASE)) == ()


def test_the_same_seed_in_another_notation_is_no_edit() -> None:
    """A seed is a number, however it is written."""
    text = BASE.replace("trials = 8", 'seed = "0x10"')
    other = BASE.replace("trials = 8", "seed = 16")

    assert config.differences(parse(text), parse(other)) == ()


def test_hostile_values_stay_in_one_line() -> None:
    """A line of differences is one line, whatever a change writes."""
    text = BASE + 'allow_removed = ["a\\n::error::b\\u202e"]\n'

    (line,) = config.differences(parse(text), parse(BASE))

    assert "\n" not in line
    assert "\u202e" not in line


def test_a_suite_that_does_not_exist_is_named_with_the_nearest() -> None:
    """A typing error on the command line is told apart from an empty configuration."""
    assert parse(BASE).suite("desk").trials == 8
    with pytest.raises(UsageError, match=r'there is no suite "dsk"\. Did you mean desk\?'):
        parse(BASE).suite("dsk")


def test_the_policy_digest_follows_every_key() -> None:
    """Equal policies have equal digests, and no key is left out."""
    other = Policy(mode="advisory")

    assert config.policy_digest(Policy()) == config.policy_digest(Policy())
    for field in ("mode", "deterministic", "curtail"):
        changed = {"mode": "advisory", "deterministic": True, "curtail": "strict"}[field]
        other = msgspec.structs.replace(Policy(), **{field: changed})
        assert config.policy_digest(other) != config.policy_digest(Policy())
