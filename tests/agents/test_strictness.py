"""What was noticed in trials is told in few safe lines; a command is never held in vain."""

from __future__ import annotations

import pytest

from ci_gate.agents.strictness import Noted, Strictness, require_python
from ci_gate.errors import AgentSetupError
from ci_gate.model.agent import AgentSpec


def test_places_are_counted_over_trials_the_most_frequent_first() -> None:
    """Calls and the trials they were seen in."""
    noted = Noted()
    noted.add({"time.time() at a.py:1": 1, "uuid.uuid4() at a.py:2": 4})
    noted.add({"uuid.uuid4() at a.py:2": 1})

    assert noted.lines() == (
        "Not decided by the seed: uuid.uuid4() at a.py:2, 5 times in 2 trials.",
        "Not decided by the seed: time.time() at a.py:1, 1 time in 1 trial.",
    )


def test_many_places_are_few_lines() -> None:
    """The rest is counted; a worker cannot fill this process's memory with them."""
    noted = Noted()
    noted.add({f"time.time() at a.py:{n:05}": 1 for n in range(5000)})

    lines = noted.lines()

    assert len(lines) == 21
    assert lines[-1] == "Not decided by the seed: 980 more places."


def test_a_place_from_outside_controls_no_terminal() -> None:
    """It names a file, which the agent may have called anything."""
    noted = Noted()
    noted.add({"time.time() at \x1b[31m\n::error::x.py:1": 1})

    (line,) = noted.lines()

    assert "\x1b" not in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("spec", "strictness", "key"),
    [
        ({"allow": ("llm",)}, {}, "agent.allow"),
        ({}, {"determinism": "warn"}, "--strict-determinism"),
    ],
)
@pytest.mark.parametrize("protocol", ["command", "exit-code"])
def test_a_command_is_refused_what_only_a_worker_can_hold(spec, strictness, key, protocol):
    """Also where the base's configuration asks it of a change that moved to a command."""
    agent = AgentSpec(command=("true",), protocol=protocol, root="/", **spec)

    with pytest.raises(AgentSetupError, match=f"^{key}: needs a Python agent"):
        require_python(agent, Strictness(**strictness))


def test_a_replay_has_less_network_than_any_configuration() -> None:
    """What a replay reaches, its recording does not have."""
    agent = AgentSpec(python="a:b", protocol="python", root="/", network="none")

    assert Strictness().network(agent) == "none"
    assert Strictness(is_replay=True).network(agent) == "replay"
