"""Which tool observations become faults.

The default schedule is a published one that other programs repeat bit by bit, so the order of the
draws may not change. Weights, further kinds, the keyed schedule, chosen steps and a budget are
additions: with them off, nothing differs. The injector knows seeds, tool names and texts; it knows
no tasks, worlds or clocks, and makes nobody wait.
"""

from __future__ import annotations

import difflib
import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, Literal

import msgspec

from ci_gate.errors import Problem, UsageError, printable
from ci_gate.model.agent import FaultPolicy
from ci_gate.prng import Xorshift64Star, parse_seed
from ci_gate.sandbox.faults import (
    DELAY_S,
    FAULT_KINDS,
    PUBLISHED_KINDS,
    STALE,
    Place,
    rendered,
)

__all__ = ["Audited", "ChaosInjector", "Interception", "policy_problems"]

_PER_MILLE: Final = 1000


class Interception(msgspec.Struct, frozen=True, gc=False):
    """What became of one observation.

    Parameters
    ----------
    observation : str
        What the agent reads.
    fault : str or None
        Kind of the fault, None where the observation passed through.
    roll : int
        The draw that decided, 0 <= roll < 1000; below the tool's rate is a fault.
    step : int
        Number of the observation, 1 for the first.
    delay_s : float
        Seconds that the fault takes.
    """

    observation: str
    fault: str | None
    roll: int
    step: int
    delay_s: float = 0.0


class Audited(msgspec.Struct, frozen=True, gc=False):
    """One line of the audit trail.

    Parameters
    ----------
    step : int
    tool : str
    roll : int
    threshold : int
        The tool's rate, per thousand.
    fault : str or None
    """

    step: int
    tool: str
    roll: int
    threshold: int
    fault: str | None


class ChaosInjector:
    """Turns some tool observations into faults, the same ones for the same seed.

    Parameters
    ----------
    seed : int or str
        On 64 bits, or hexadecimal; 0 becomes 0x9E3779B97F4A7C15.
    rate_permille : int
        Faults per thousand observations, 0 to 1000.
    tools : mapping of str to int, optional
        Rates of single tools, instead of ``rate_permille``.
    kinds : sequence of str
        From ``faults.FAULT_KINDS``.
    weights : sequence of int
        One a kind; empty is the published choice, all equally likely.
    schedule : {"sequential", "keyed"}
        ``keyed`` lets a fault depend on the seed, the tool and how often that tool was called, so
        that one more call of another tool shifts nothing.
    steps : sequence of int
        Steps, from 1, that are faults whatever the rate says.
    budget : int
        Faults at most; 0 is no limit. Draws are made as without it.
    keep_audit : bool
        False keeps no trail, so that memory does not grow with the steps.

    Raises
    ------
    UsageError
        Parameters out of their range, kinds that are unknown: all at once.

    Notes
    -----
    Step n draws ``roll = next % 1000``; where it is below the rate, the kind is
    ``kinds[next % len(kinds)]``. With weights, ``next % sum(weights)`` falls into the shares of
    the kinds in their order. In the keyed schedule each tool has a generator of its own, seeded
    with the first 8 bytes of SHA-256 over the seed (8 bytes, big-endian) and the tool's name, of
    which every call takes two numbers.
    """

    def __init__(
        self,
        seed: int | str,
        rate_permille: int = 150,
        tools: Mapping[str, int] | None = None,
        kinds: Sequence[str] = PUBLISHED_KINDS,
        weights: Sequence[int] = (),
        schedule: Literal["sequential", "keyed"] = "sequential",
        steps: Iterable[int] = (),
        budget: int = 0,
        *,
        keep_audit: bool = True,
    ) -> None:
        policy = FaultPolicy(
            rate_permille=rate_permille,
            tools=dict(tools or {}),
            kinds=tuple(kinds),
            weights=tuple(weights),
            schedule=schedule,
            steps=tuple(steps),
            budget=budget,
        )
        _refuse([*_seed_problems(seed), *policy_problems(policy)])
        self._set_up(parse_seed(seed), policy, keep_audit=keep_audit)

    @classmethod
    def of(cls, policy: FaultPolicy, seed: int, *, keep_audit: bool = True) -> ChaosInjector:
        """Return the injector of one trial, for a policy that ``policy_problems`` has passed."""
        injector = cls.__new__(cls)
        injector._set_up(seed, policy, keep_audit=keep_audit)
        return injector

    def _set_up(self, seed: int, policy: FaultPolicy, *, keep_audit: bool) -> None:
        self._policy = policy
        self._rates = policy.tools
        self._shares = tuple(accumulate(policy.weights)) or tuple(range(1, len(policy.kinds) + 1))
        self._chosen = frozenset(policy.steps)
        self._keep_audit = keep_audit
        self.seed = Xorshift64Star(seed).seed
        self.reset()

    def reset(self) -> None:
        """Go back to the start: the same observations meet the same faults again."""
        self._random = Xorshift64Star(self.seed)
        self._streams: dict[str, Xorshift64Star] = {}
        self._step = 0
        self._faults = 0
        self._audit: list[Audited] = []

    @property
    def audit(self) -> tuple[Audited, ...]:
        """Every step so far; empty where no trail is kept."""
        return tuple(self._audit)

    @property
    def needs_earlier(self) -> bool:
        """Whether a fault may give an earlier answer in the place of a new one."""
        return STALE in self._policy.kinds

    def intercept(
        self, tool_name: str, observation: str, *, earlier: str | None = None
    ) -> Interception:
        """Return the observation as it is, or the fault in its place.

        Parameters
        ----------
        tool_name : str
        observation : str
            What the tool gave.
        earlier : str or None
            What it first gave to the same call. Without one that differs nothing can be stale: the
            observation passes.
        """
        self._step = step = self._step + 1
        threshold = self._rates.get(tool_name, self._policy.rate_permille)
        keyed = self._policy.schedule == "keyed"
        random = self._stream(tool_name) if keyed else self._random
        roll = random.next() % _PER_MILLE
        due = roll < threshold or step in self._chosen
        # A keyed call takes two numbers whatever happens: the n-th call never depends on others.
        choice = random.next() if due or keyed else 0
        kind = self._kind(choice) if due and self._affordable() else None
        if kind == STALE and earlier in (None, observation):
            kind = None
        if self._keep_audit:
            self._audit.append(Audited(step, tool_name, roll, threshold, kind))
        if kind is None:
            return Interception(observation, None, roll, step)
        self._faults += 1
        text = rendered(kind, Place(self.seed, step, tool_name, observation, earlier))
        return Interception(text, kind, roll, step, DELAY_S.get(kind, 0.0))

    def _stream(self, tool_name: str) -> Xorshift64Star:
        stream = self._streams.get(tool_name)
        if stream is None:
            key = self.seed.to_bytes(8, "big") + tool_name.encode("utf-8", "surrogatepass")
            start = int.from_bytes(hashlib.sha256(key).digest()[:8], "big")
            stream = self._streams[tool_name] = Xorshift64Star(start)
        return stream

    def _kind(self, choice: int) -> str:
        return self._policy.kinds[bisect_right(self._shares, choice % self._shares[-1])]

    def _affordable(self) -> bool:
        return self._policy.budget == 0 or self._faults < self._policy.budget


def policy_problems(policy: FaultPolicy) -> list[Problem]:
    """Return every reason why the policy cannot be carried out, each with its key.

    Parameters
    ----------
    policy : FaultPolicy
    """
    return [
        *_rate_problems("rate_permille", policy.rate_permille),
        *(
            problem
            for tool, rate in policy.tools.items()
            for problem in _rate_problems(f"tools.{printable(tool)}", rate)
        ),
        *_kind_problems(policy.kinds),
        *_weight_problems(policy),
        *_schedule_problems(policy),
    ]


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise UsageError.of(problems)


def _seed_problems(seed: int | str) -> Iterator[Problem]:
    try:
        parse_seed(seed)
    except (ValueError, TypeError) as error:
        yield Problem(what=str(error), where="seed")


def _rate_problems(where: str, rate: Any) -> Iterator[Problem]:
    if not _is_whole(rate) or not 0 <= rate <= _PER_MILLE:
        yield Problem(
            what=f"a rate is a whole number from 0 to {_PER_MILLE}, found {printable(rate)}",
            where=where,
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind_problems(kinds: Sequence[str]) -> Iterator[Problem]:
    if not kinds:
        yield Problem(what="no kind of fault is named", where="kinds", hint=_known())
    if len(set(kinds)) < len(kinds):
        yield Problem(what="a kind of fault is named twice", where="kinds", hint="Use weights")
    for kind in kinds:
        if kind not in FAULT_KINDS:
            what = f"unknown kind of fault {printable(kind)!r}"
            yield Problem(what=what, where="kinds", hint=_nearest(kind))


def _nearest(kind: str) -> str:
    near = difflib.get_close_matches(str(kind), FAULT_KINDS, 1)
    return f"Did you mean {near[0]!r}?" if near else _known()


def _known() -> str:
    return f"Kinds are {', '.join(FAULT_KINDS)}"


def _weight_problems(policy: FaultPolicy) -> Iterator[Problem]:
    weights = policy.weights
    if not weights:
        return
    if len(weights) != len(policy.kinds):
        what = f"{len(weights)} weights for {len(policy.kinds)} kinds; each kind needs one"
        yield Problem(what=what, where="weights")
    if not all(_is_whole(weight) and weight >= 0 for weight in weights) or not any(weights):
        what = f"weights are whole numbers from 0, one above 0, found {list(weights)}"
        yield Problem(what=printable(what), where="weights")


def _schedule_problems(policy: FaultPolicy) -> Iterator[Problem]:
    if policy.schedule not in ("sequential", "keyed"):
        what = f"a schedule is 'sequential' or 'keyed', found {printable(policy.schedule)!r}"
        yield Problem(what=what, where="schedule")
    if not all(_is_whole(step) and step >= 1 for step in policy.steps):
        what = f"steps are whole numbers from 1, found {list(policy.steps)}"
        yield Problem(what=printable(what), where="steps")
    if not _is_whole(policy.budget) or policy.budget < 0:
        what = f"a budget is a whole number from 0 (no limit), found {printable(policy.budget)}"
        yield Problem(what=what, where="budget")
