"""What a configuration means: the types in which the rest of the package reads it.

Besides building them it decides which part of a change's own configuration counts in CI, and says
what the change edits of the part that does not.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ci_gate import codec
from ci_gate.config.reading import found, key_text, nearest
from ci_gate.config.shape import (
    AgentTable,
    BaselineConfig,
    ConfigFile,
    FaultsTable,
    GateConfig,
    GatewayConfig,
    JudgeConfig,
    ModelFaults,
    Price,
    ReportConfig,
    RunConfig,
    SuiteConfig,
    TraceConfig,
)
from ci_gate.errors import UsageError
from ci_gate.model.agent import AgentSpec, FaultPolicy
from ci_gate.model.policy import Policy
from ci_gate.prng import format_seed

__all__ = [
    "Config",
    "config_of",
    "differences",
    "faults_digest",
    "merge_from_base",
    "policy_digest",
    "same_agent",
    "without_faults",
]

# Of ``[gateway]``, under whose name they are shown.
_GATEWAY_KEYS = ("base_url_env", "send_seed")
# What a change may set for itself; everything else is part of the bar it is held against.
_OWN_AGENT_KEYS = ("python", "command", "protocol", "interpreter", "root", "files", "setup")
_OWN_TABLES = ("report",)


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration that was checked.

    Parameters
    ----------
    name : str
        The file, as messages call it.
    root : str
        Absolute folder of the file; tasks and baselines are relative to it.
    suites : tuple of SuiteConfig
        At least one, with different names.
    agent : AgentSpec
        Its ``root`` and ``interpreter`` (unless ``auto``) are absolute.
    run : RunConfig
    faults : FaultPolicy or None
        None: the tools meet no faults.
    model_faults : ModelFaults
    gate : GateConfig
        The policy without the keys of a suite; see ``policy_of``.
    baseline : BaselineConfig
    gateway : GatewayConfig
    prices : mapping of str to Price
    judge : JudgeConfig
    trace : TraceConfig
    report : ReportConfig
    """

    name: str
    root: str
    suites: tuple[SuiteConfig, ...]
    agent: AgentSpec
    run: RunConfig
    faults: FaultPolicy | None
    model_faults: ModelFaults
    gate: GateConfig
    baseline: BaselineConfig
    gateway: GatewayConfig
    prices: Mapping[str, Price]
    judge: JudgeConfig
    trace: TraceConfig
    report: ReportConfig

    def suite(self, name: str) -> SuiteConfig:
        """Return the suite of that name.

        Raises
        ------
        UsageError
            There is none.
        """
        for suite in self.suites:
            if suite.name == name:
                return suite
        names = [suite.name for suite in self.suites]
        raise UsageError(
            f"there is no suite {found(name)}", where=self.name, hint=nearest(name, names)
        )

    def policy_of(self, suite: SuiteConfig) -> Policy:
        """Return ``[gate]`` with what the suite says of errors."""
        fields = msgspec.to_builtins(self.gate) | {
            "errors": suite.errors,
            "max_errored_rate": suite.max_errored_rate,
            "deterministic": suite.deterministic,
        }
        return msgspec.convert(fields, Policy)


def config_of(file: ConfigFile, *, name: str, root: Path) -> Config:
    """Return what a checked file means.

    Parameters
    ----------
    file : ConfigFile
        A file without mistakes.
    name : str
        The file, as messages call it.
    root : Path
        Absolute folder of the file.
    """
    return Config(
        name=name,
        root=str(root),
        suites=tuple(_with_canonical_seed(suite) for suite in file.suite),
        agent=msgspec.structs.replace(
            _agent_of(file.agent, root),
            base_url_env=file.gateway.base_url_env,
            send_seed=file.gateway.send_seed,
        ),
        run=file.run,
        faults=_faults_of(file.faults),
        model_faults=file.faults.model if file.faults else ModelFaults(),
        gate=file.gate,
        baseline=file.baseline,
        gateway=file.gateway,
        prices=file.prices,
        judge=file.judge,
        trace=file.trace,
        report=file.report,
    )


def merge_from_base(head: Config, base: Config, *, held: Collection[str] | None = None) -> Config:
    """Return the configuration by which CI judges a change.

    Everything is the base commit's but how the change's agent is started and reports are written.
    A suite that the change adds comes along; one that it takes away stays where it is held to.

    Parameters
    ----------
    head : Config
        Of the change.
    base : Config
        Of the commit it is compared with.
    held : collection of str or None
        Suites of the base that stay although the change has them no longer; None holds all.
    """
    present = {suite.name for suite in head.suites}
    known = {suite.name for suite in base.suites}
    stays = [s for s in base.suites if held is None or s.name in held or s.name in present]
    suites = (*stays, *(suite for suite in head.suites if suite.name not in known))
    own = {key: getattr(head.agent, key) for key in _OWN_AGENT_KEYS}
    # Only Python agents share a worker; a change that moves to a command cannot keep that.
    isolation = base.agent.isolation if head.agent.protocol == "python" else "process"
    agent = msgspec.structs.replace(base.agent, isolation=isolation, **own)
    tables = {key: getattr(head, key) for key in _OWN_TABLES}
    return msgspec.structs.replace(
        base, name=head.name, root=head.root, suites=suites, agent=agent, **tables
    )


def same_agent(head: Config, base: Config) -> bool:
    """Return whether a change starts its agent as the base does: nothing of it is its own."""
    return all(getattr(head.agent, key) == getattr(base.agent, key) for key in _OWN_AGENT_KEYS)


def differences(head: Config, base: Config) -> tuple[str, ...]:
    """Return a line for each key that a change edits and that CI takes from the base commit.

    Suites that only one of them has are left out: they are judged by their baselines.

    Parameters
    ----------
    head, base : Config
        As for ``merge_from_base``.

    Returns
    -------
    tuple of str
        Such as ``gate.alpha: 0.05 -> 0.2``; the base's keys in their order, then new ones. Safe
        in one line of a terminal, not escaped for Markdown.
    """
    common = {suite.name for suite in head.suites} & {suite.name for suite in base.suites}
    before, after = _bar(base, common), _bar(head, common)
    return tuple(
        f"{key}: {before.get(key, 'absent')} -> {after.get(key, 'absent')}"
        for key in (before | after)
        if before.get(key) != after.get(key)
    )


def policy_digest(policy: Policy) -> str:
    """Return ``sha256:...`` of a policy, every key included."""
    return codec.digest_of(msgspec.to_builtins(policy))


def _with_canonical_seed(suite: SuiteConfig) -> SuiteConfig:
    return msgspec.structs.replace(suite, seed=format_seed(suite.root_seed))


def _agent_of(table: AgentTable, root: Path) -> AgentSpec:
    spoken: Literal["python", "command"] = "command" if table.python is None else "python"
    fields = msgspec.structs.asdict(table)
    folder = os.path.normpath(root / table.root)
    fields |= {
        "command": table.command or (),
        "protocol": table.protocol or spoken,
        "root": folder,
        "interpreter": _interpreter(table.interpreter, folder),
    }
    return AgentSpec(**fields)


def _interpreter(name: str, folder: str) -> str:
    # Not resolved: the interpreter of a virtual environment is a link, and is found by its place.
    return name if name == "auto" else os.path.normpath(Path(folder) / name)


def _faults_of(table: FaultsTable | None) -> FaultPolicy | None:
    if table is None:
        return None
    fields = msgspec.structs.asdict(table)
    del fields["model"]
    return FaultPolicy(**fields)


def faults_digest(config: Config) -> str | None:
    """Return the digest of the faults that calls of tools and to models meet; None without any."""
    if config.faults is None:
        return None
    rate = config.model_faults.rate_permille
    of_models = {"model": {"rate_permille": rate}} if rate else {}
    return codec.digest_of(msgspec.to_builtins(config.faults) | of_models)


def without_faults(config: Config) -> Config:
    """Return the configuration under which no call meets an injected fault."""
    return msgspec.structs.replace(config, faults=None, model_faults=ModelFaults())


def _bar(config: Config, suites: Collection[str]) -> dict[str, str]:
    """Return every key that a change cannot set for itself, with its value as shown."""
    tables = msgspec.structs.asdict(config)
    for name in ("name", "root", "suites", "agent", "faults", "model_faults", *_OWN_TABLES):
        del tables[name]
    agent, hidden = msgspec.structs.asdict(config.agent), (*_OWN_AGENT_KEYS, *_GATEWAY_KEYS)
    ordered = {
        "suite": {suite.name: suite for suite in config.suites if suite.name in suites},
        "agent": {key: agent[key] for key in agent if key not in hidden},
        **({"faults": config.faults} if config.faults else {}),
        **tables,
    }
    shown = _leaves(ordered, ())
    return shown | {"faults.model.rate_permille": found(config.model_faults.rate_permille)}


def _leaves(value: Any, path: tuple[str, ...]) -> dict[str, str]:
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if not isinstance(value, Mapping):
        shown = "absent" if value is None else found(msgspec.to_builtins(value))
        return {key_text(path): shown}
    return {
        key: text
        for name, item in value.items()
        for key, text in _leaves(item, (*path, name)).items()
    }
