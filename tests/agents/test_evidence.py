"""The rule that tells a failed trial from an errored one, as a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.agents.evidence import (
    FAULT_MARK,
    Ending,
    Patterns,
    judged_ending,
    time_up,
    told,
)
from ci_gate.errors import ConfigError
from ci_gate.model.trial import Status, Trajectory

CONNECTION = ("builtins.ConnectionResetError", "builtins.ConnectionError", "builtins.OSError")
RUNTIME = ("builtins.RuntimeError",)
TIMEOUT = ("httpx.ReadTimeout", "httpx.TimeoutException", "builtins.Exception")


def ending(reason: str = "it ended", **fields: object) -> Ending:
    return Ending(reason=reason, **fields)  # type: ignore[arg-type] # given by name in the table


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        # A class: bare, qualified, by its base.
        (["ConnectionResetError"], ending(exceptions=CONNECTION)),
        (["builtins.ConnectionError"], ending(exceptions=CONNECTION)),
        (["OSError"], ending(exceptions=CONNECTION)),
        # A pattern over what the agent said, the trace or the output.
        ([r"HTTP 5\d\d"], ending(said="RuntimeError: HTTP 503", exceptions=RUNTIME)),
        ([r"HTTP 5\d\d"], ending(said="gave up: HTTP 503")),
        ([r"(?i)bad gateway"], ending(text="line\n502 Bad Gateway\n")),
        # A name where there is no exception: a command that printed it.
        (["ConnectionError"], ending("crash: exit status 1", text="ConnectionError: refused")),
        # Claims of the agent.
        ([], ending("exit status 75", claims_environment=True)),
        ([], ending("the service is down", claims_environment=True)),
        # Faults of another kind were delivered.
        (["ConnectionResetError"], ending(exceptions=CONNECTION, faults=("rate_limit",))),
        ([], ending("DNS lookup of example.org", claims_environment=True)),
    ],
)
def test_evidence_makes_a_trial_errored(patterns: list[str], found: Ending) -> None:
    """A configured class or pattern, status 75 and a result that says so are evidence."""
    judged = judged_ending(found, Patterns(patterns))
    assert judged.status is Status.ERRORED
    assert judged.reason == found.reason


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        ([], ending(exceptions=CONNECTION)),
        # The harness's own words for an ending, whatever they resemble.
        (["(?i)timeout", "(?i)time.?out"], time_up(5.0)),
        (["crash", r"exit status \d+", "signal"], ending("crash: exit status 1")),
        (["SIGTERM"], ending("signal SIGTERM")),
        (["garbage", "json"], ending("garbage: no line of the standard output is a json object")),
        (["the agent says"], told(Trajectory(status=Status.FAILED))),
        (["TimeoutError"], ending(exceptions=CONNECTION)),
        (["Connection"], ending(exceptions=CONNECTION)),
        # The name of a class stands in the trace, but something else was raised.
        (
            ["ConnectionError"],
            ending(exceptions=("builtins.ValueError",), text="ConnectionError: handled"),
        ),
        # Injected, and the exception came from the tool error itself.
        (["TimeoutException"], ending(exceptions=TIMEOUT, through_fault=True)),
        # Injected, and the text of the fault is what matched.
        (["Too Many"], ending(f"RuntimeError: [{FAULT_MARK} seed=0x1 step=1]: HTTP 429 Too Many")),
        # Injected as data, and the agent raised an error of that kind by itself.
        (["TimeoutException"], ending(exceptions=TIMEOUT, faults=("timeout",))),
        (["OSError"], ending("OSError: No space left", exceptions=CONNECTION, faults=("posix",))),
        ([r"429"], ending(text="giving up: 429", faults=("rate_limit",))),
        (["JSONDecodeError"], ending(exceptions=("json.JSONDecodeError",), faults=("truncated",))),
        # A kind this rule does not know explains everything.
        (["ConnectionError"], ending(exceptions=CONNECTION, faults=("new-kind",))),
        # A claim that names no cause cannot be told from the fault that was injected.
        ([], ending("exit status 75", claims_environment=True, faults=("timeout",))),
        ([], ending("request timed out", claims_environment=True, faults=("timeout",))),
    ],
)
def test_without_evidence_or_behind_an_injected_fault_it_is_failed(
    patterns: list[str], found: Ending
) -> None:
    """Nothing configured, another class, or a fault of that kind: the agent's failure."""
    judged = judged_ending(found, Patterns(patterns))
    assert judged.status is Status.FAILED
    assert judged.reason.startswith(found.reason)


@given(st.text(), st.lists(st.sampled_from(["timeout", "posix", "stale"])), st.booleans())
def test_without_patterns_and_claims_nothing_is_excused(
    text: str, faults: list[str], through: bool
) -> None:
    """Whatever an agent prints and raises, by itself it is never the environment's fault."""
    found = ending(text, said=text, text=text, faults=tuple(faults), through_fault=through)
    assert judged_ending(found, Patterns()).status is Status.FAILED


@given(st.text(), st.booleans())
def test_a_fault_in_the_chain_is_never_excused(text: str, claims: bool) -> None:
    """An exception that came from an injected fault is a failure under every pattern and claim."""
    found = ending(text, said=text, text=text, through_fault=True, claims_environment=claims)
    assert judged_ending(found, Patterns([""])).status is Status.FAILED


def test_a_pattern_that_is_none_is_refused_by_name() -> None:
    """A broken regular expression is an error of the configuration with its key."""
    with pytest.raises(ConfigError, match=r"agent\.environment_errors: '\(' is not a regular"):
        Patterns(["("])


@pytest.mark.slow
def test_a_text_that_no_pattern_gets_through_excuses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search without end is given up and counts as no match; the next pattern is tried."""
    monkeypatch.setattr("ci_gate.patterns.LONGEST_S", 0.2)
    endless = ending(said="a" * 40 + "!")
    assert Patterns([r"^(\w+\s?)*$"]).match(endless) is None
    assert Patterns([r"^(\w+\s?)*$", "a!"]).match(endless) == "a" * 40 + "!"
