"""The tables of ``ci-gate.toml``: every key with its type, bounds, default and meaning.

This is the one place that lists the keys; the reader, the JSON Schema and the test of the
documentation are derived from it. It knows neither TOML nor what any key does to a run.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ci_gate.prng import parse_seed

__all__ = [
    "AgentTable",
    "BaselineConfig",
    "ConfigFile",
    "FaultsTable",
    "GateConfig",
    "GatewayConfig",
    "GuardTable",
    "JudgeConfig",
    "ModelFaults",
    "Price",
    "QuarantineTable",
    "ReportConfig",
    "RunConfig",
    "SuiteConfig",
    "TraceConfig",
]

_Text = Annotated[str, Meta(min_length=1)]
_Metric = Annotated[str, Meta(pattern=r"^pass\^[1-9][0-9]{0,4}$", examples=["pass^8"])]
_Permille = Annotated[int, Meta(ge=0, le=1000)]
_Usd = Annotated[float, Meta(ge=0)]

FaultKind = Literal[
    "timeout",
    "rate_limit",
    "truncated",
    "posix",
    "latency",
    "http_403",
    "http_500",
    "http_503",
    "eacces",
    "empty",
    "malformed",
    "duplicate",
    "stale",
]


class SuiteConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One suite: which tasks, how often, and what an errored trial counts as."""

    name: Annotated[
        str,
        Meta(
            description="Names the suite's files: lower-case letters, digits, `.`, `_` and `-`.",
            min_length=1,
            max_length=100,
            pattern=r"^[a-z0-9][a-z0-9._-]*$",
            examples=["refund-desk"],
        ),
    ]
    tasks: Annotated[
        tuple[_Text, ...],
        Meta(
            description="Globs of task files (.toml, .jsonl), relative to this file.", min_length=1
        ),
    ]
    seed: Annotated[
        str | int,
        Meta(description="The suite's seed, hexadecimal, 64 bits; every trial's derives from it."),
    ] = "0x20261030"
    trials: Annotated[
        int,
        Meta(
            description="Trials of each task that sets no number of its own; at least the "
            "largest k of gate.metrics.",
            ge=1,
            le=100_000,
        ),
    ] = 8
    errors: Annotated[
        Literal["exclude", "fail"],
        Meta(description="What an errored trial counts as, after retries."),
    ] = "exclude"
    max_errored_rate: Annotated[
        float,
        Meta(
            description="Share of the planned trials that may stay unjudged; beyond it the "
            "verdict is inconclusive.",
            ge=0,
            le=1,
        ),
    ] = 0.05
    deterministic: Annotated[
        bool,
        Meta(
            description="The agent is a pure function of its seed: any pass that becomes a "
            "failure is a regression."
        ),
    ] = False
    max_repeats: Annotated[
        int,
        Meta(
            description="Runs over the same seeds that an extension may use at most.",
            ge=1,
            le=1000,
        ),
    ] = 4
    budget_usd: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="US dollars at which the run stops and the verdict is inconclusive; "
            "absent: no limit."
        ),
    ] = None

    @property
    def root_seed(self) -> int:
        """Return the seed as an integer on 64 bits."""
        return parse_seed(self.seed)


class AgentTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agent under test: exactly one of ``python`` and ``command``."""

    python: Annotated[
        Annotated[
            str,
            Meta(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$", examples=["desk.agent:run"]),
        ]
        | None,
        Meta(description="`module:function` of a Python agent."),
    ] = None
    command: Annotated[
        Annotated[tuple[_Text, ...], Meta(min_length=1)] | None,
        Meta(description="Program and arguments of an agent in any language, run once a trial."),
    ] = None
    protocol: Annotated[
        Literal["python", "command", "exit-code"] | None,
        Meta(
            description="How the agent is spoken to; absent: `python` or `command`, whichever is "
            "given. `exit-code`: 0 is a pass, 75 is errored, anything else a failure."
        ),
    ] = None
    interpreter: Annotated[
        _Text,
        Meta(
            description="The agent's own Python: `auto` is python, else python3 on PATH, else the "
            "one that runs ci-gate; or a path, relative to root."
        ),
    ] = "auto"
    root: Annotated[
        _Text, Meta(description="Folder in which the agent runs, relative to this file.")
    ] = "."
    files: Annotated[
        tuple[_Text, ...],
        Meta(
            description="Globs, relative to root, of the files that make the agent's digest; "
            "empty: tracked files under root without tasks, baselines and docs."
        ),
    ] = ()
    timeout_s: Annotated[
        float,
        Meta(description="Seconds after which a trial is ended and failed.", gt=0, le=86_400),
    ] = 120.0
    memory_mb: Annotated[
        int,
        Meta(description="Memory limit of the agent in MiB; 0: no limit.", ge=0, le=1_073_741_824),
    ] = 0
    isolation: Annotated[
        Literal["process", "inline"],
        Meta(
            description="`process`: one trial at a time in a worker. `inline`: many waiting "
            "trials in one worker (Python agents)."
        ),
    ] = "process"
    network: Annotated[
        Literal["inherit", "none"],
        Meta(
            description="`inherit`: the agent's network is the machine's. `none`: a Python agent's "
            "sockets reach this machine alone, a guard and no wall; a command has no network but "
            "its own loopback (Linux)."
        ),
    ] = "inherit"
    environment_errors: Annotated[
        tuple[_Text, ...],
        Meta(
            description="Exception classes, or regular expressions over the output, that mean: "
            "not the agent's fault."
        ),
    ] = ()
    laundered_errors: Annotated[
        tuple[_Text, ...],
        Meta(
            description="Regular expressions over the answer that mean: a provider's error passed "
            "off as an answer; such a trial is errored."
        ),
    ] = ()
    allow: Annotated[
        tuple[_Text, ...],
        Meta(
            description="Calls a Python agent may make, as `kind` or `kind:name` with globs "
            "(`llm`, `tool:refund_*`); empty: all."
        ),
    ] = ()
    setup: Annotated[
        tuple[_Text, ...],
        Meta(description="Command that prepares a fresh work tree for rechecks; empty: none."),
    ] = ()


class RunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How trials are run."""

    mode: Annotated[
        Literal["record", "live", "replay", "sandboxed"],
        Meta(description="Whether calls are recorded, made unrecorded, or answered from a record."),
    ] = "record"
    traces: Annotated[
        str,
        Meta(
            description="Folder with the `traces` that `replay` and `sandboxed` read, relative to "
            "this file; empty: the folder of results."
        ),
    ] = ""
    jobs: Annotated[
        int, Meta(description="Trials in flight at once; 0: from the cores.", ge=0, le=100_000)
    ] = 0
    max_per_minute: Annotated[
        int,
        Meta(description="Trials started a minute at most; 0: no limit.", ge=0, le=1_000_000_000),
    ] = 0
    retries: Annotated[
        int,
        Meta(
            description="Further attempts of an errored trial at once, after which it gets one "
            "more at the end; 0: none at all. A failed one is never retried.",
            ge=0,
            le=100,
        ),
    ] = 3
    executor: Annotated[Literal["local", "ray"], Meta(description="Where trials run.")] = "local"


class ModelFaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seeded faults of the model's API, apart from those of the tools."""

    rate_permille: Annotated[_Permille, Meta(description="Faults per thousand model calls.")] = 0


class FaultsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seeded faults at the tool boundary; without this table there are none."""

    rate_permille: Annotated[_Permille, Meta(description="Faults per thousand tool calls.")] = 150
    tools: Annotated[
        Mapping[_Text, _Permille],
        Meta(description="Rates of single tools, by name, in place of `rate_permille`."),
    ] = msgspec.field(default_factory=dict)
    kinds: Annotated[
        tuple[FaultKind, ...],
        Meta(description="Kinds of fault, in the order the generator numbers them.", min_length=1),
    ] = ("timeout", "rate_limit", "truncated", "posix")
    weights: Annotated[
        tuple[Annotated[int, Meta(ge=0, le=1_000_000)], ...],
        Meta(description="One weight a kind; empty: the published generator."),
    ] = ()
    schedule: Annotated[
        Literal["sequential", "keyed"],
        Meta(
            description="`sequential`: by the number of the call. `keyed`: by tool and its n-th "
            "call, so that one more call does not shift all later faults."
        ),
    ] = "sequential"
    steps: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=1_000_000_000)], ...],
        Meta(description="Calls (1 is the first) that meet a fault in any case."),
    ] = ()
    budget: Annotated[
        int, Meta(description="Faults a trial at most; 0: no limit.", ge=0, le=1_000_000_000)
    ] = 0
    real_delays: Annotated[
        bool, Meta(description="Wait for real where a fault takes time, instead of simulating it.")
    ] = False
    model: Annotated[ModelFaults, Meta(description="Faults of the model's API.")] = ModelFaults()


class GuardTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit on how far a measure may move."""

    metric: Annotated[
        _Text,
        Meta(
            description="`cost_per_success_usd`, `turns`, `tokens`, `duration_s` (change relative "
            "to the baseline), `self_healing_rate`, `dead_loop_rate`, a process measure or one "
            "of the agent's own (absolute)."
        ),
    ]
    max_increase: Annotated[
        _Usd | None, Meta(description="Largest rise that is accepted; absent: any.")
    ] = None
    max_decrease: Annotated[
        _Usd | None, Meta(description="Largest fall that is accepted; absent: any.")
    ] = None


class QuarantineTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A flaky task that is reported and not judged until a date."""

    task: Annotated[_Text, Meta(description="Id of the task.")]
    owner: Annotated[_Text, Meta(description="Who repairs it.")]
    until: Annotated[
        datetime.date, Meta(description="Last day of the quarantine, a TOML date without quotes.")
    ]


class GateConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of a change: a ``Policy`` without the keys that belong to a suite."""

    mode: Annotated[
        Literal["blocking", "advisory"],
        Meta(description="`advisory` reports everything and exits 0."),
    ] = "blocking"
    metrics: Annotated[
        tuple[_Metric, ...],
        Meta(
            description="Suite metrics that are tested: `pass^K`, all of K trials pass.",
            min_length=1,
        ),
    ] = ("pass^1", "pass^8")
    alpha: Annotated[
        float, Meta(description="Chance that an unchanged agent is blocked.", gt=0, lt=1)
    ] = 0.05
    margin: Annotated[
        float, Meta(description="Drop of a suite metric that is accepted.", ge=0, lt=1)
    ] = 0.0
    pairing: Annotated[
        Literal["auto", "seed", "none"],
        Meta(description="Whether trials of the same seed are compared with each other."),
    ] = "auto"
    require: Annotated[
        Literal["no-regression", "non-inferiority"],
        Meta(
            description="`non-inferiority` passes only what is shown to be no worse than `margin` "
            "allows."
        ),
    ] = "no-regression"
    on_inconclusive: Annotated[
        Literal["fail", "pass"], Meta(description="Exit status 3 or 0 of an inconclusive verdict.")
    ] = "fail"
    on_borderline: Annotated[
        Literal["stop", "extend"],
        Meta(description="`extend` runs further repeats where the evidence is on the border."),
    ] = "stop"
    curtail: Annotated[
        bool | Literal["strict"],
        Meta(description="Whether a run may stop once its verdict is all but certain."),
    ] = True
    allow_removed: Annotated[
        tuple[_Text, ...], Meta(description="Task ids, or globs of them, that may vanish.")
    ] = ()
    floors: Annotated[
        Mapping[
            _Metric,
            Annotated[float, Meta(ge=0, le=1)],
        ],
        Meta(description="Lowest accepted value of a suite metric, by `pass^K`."),
    ] = msgspec.field(default_factory=dict)
    strict_floors: Annotated[
        bool,
        Meta(description="Hold the estimate against the floor, not its upper confidence bound."),
    ] = False
    skip_unchanged: Annotated[
        bool,
        Meta(description="Pass without running where agent and suite digests equal the base's."),
    ] = False
    guards: Annotated[
        tuple[GuardTable, ...], Meta(description="Limits on how far further measures may move.")
    ] = ()
    quarantine: Annotated[
        tuple[QuarantineTable, ...], Meta(description="Flaky tasks that are not judged for a time.")
    ] = ()


class BaselineConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where baselines are, and how deep."""

    dir: Annotated[_Text, Meta(description="Folder of the baselines, relative to this file.")] = (
        "baselines"
    )
    repeats: Annotated[
        int,
        Meta(
            description="Runs over the same seeds in a deep baseline; spread over days where "
            "possible.",
            ge=1,
            le=1000,
        ),
    ] = 4
    max_age_days: Annotated[
        int,
        Meta(description="Days after which the report calls the baseline stale.", ge=1, le=36_500),
    ] = 30
    keep_traces: Annotated[
        bool, Meta(description="Keep one passing trace a task beside the baseline.")
    ] = False


class GatewayConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The recorded door to the model."""

    base_url_env: Annotated[
        tuple[
            Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", examples=["OPENAI_BASE_URL"])],
            ...,
        ],
        Meta(
            description="Environment variables that may hold the base URL of the model's API, for "
            "`env.llm`; the first that is set counts."
        ),
    ] = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
    send_seed: Annotated[
        bool, Meta(description="Put the trial's seed, modulo 2^31, into the requests of `env.llm`.")
    ] = False


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Price of a model in US dollars per million tokens."""

    input: Annotated[_Usd, Meta(description="USD per million input tokens.")]
    output: Annotated[_Usd, Meta(description="USD per million output tokens.")]


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that grades where rules cannot."""

    base_url: Annotated[_Text | None, Meta(description="URL of an OpenAI-compatible API.")] = None
    model: Annotated[_Text | None, Meta(description="The judge's model.")] = None
    api_key_env: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", examples=["JUDGE_API_KEY"])]
        | None,
        Meta(description="Environment variable that holds the key."),
    ] = None
    votes: Annotated[int, Meta(description="Votes a grade; the majority decides.", ge=1, le=99)] = 1
    min_kappa: Annotated[
        float,
        Meta(
            description="Cohen's kappa with people's labels below which a judge cannot gate.",
            ge=0,
            le=1,
        ),
    ] = 0.6
    timeout_s: Annotated[
        float, Meta(description="Seconds of one request to the judge.", gt=0, le=3600)
    ] = 60.0
    max_per_minute: Annotated[
        int,
        Meta(description="Requests a minute at most; 0: no limit.", ge=0, le=1_000_000_000),
    ] = 0


class TraceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What traces leave out."""

    ignore: Annotated[
        tuple[_Text, ...],
        Meta(description="JSON paths and patterns left out of input digests."),
    ] = ()
    redact: Annotated[
        tuple[_Text, ...], Meta(description="Patterns replaced before anything is written.")
    ] = ()


class ReportConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How reports are written."""

    language: Annotated[Literal["en", "zh"], Meta(description="Language of reports.")] = "en"


class ConfigFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole ``ci-gate.toml`` as it is written; ``Config`` is what it means."""

    suite: Annotated[
        tuple[SuiteConfig, ...],
        Meta(description="One table a suite; the verdict is the worst of them.", min_length=1),
    ]
    agent: Annotated[AgentTable, Meta(description="The agent under test.")]
    run: Annotated[RunConfig, Meta(description="How trials are run.")] = RunConfig()
    faults: Annotated[
        FaultsTable | None, Meta(description="Seeded faults of the tools; absent: none.")
    ] = None
    gate: Annotated[GateConfig, Meta(description="What is asked of a change.")] = GateConfig()
    baseline: Annotated[BaselineConfig, Meta(description="Where baselines are, and how deep.")] = (
        BaselineConfig()
    )
    gateway: Annotated[GatewayConfig, Meta(description="The recorded door to the model.")] = (
        GatewayConfig()
    )
    prices: Annotated[
        Mapping[_Text, Price],
        Meta(description="USD per million tokens, by model, before any published price."),
    ] = msgspec.field(default_factory=dict)
    judge: Annotated[JudgeConfig, Meta(description="The model that grades where rules cannot.")] = (
        JudgeConfig()
    )
    trace: Annotated[TraceConfig, Meta(description="What traces leave out.")] = TraceConfig()
    report: Annotated[ReportConfig, Meta(description="How reports are written.")] = ReportConfig()
