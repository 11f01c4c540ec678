"""What ``ci-gate.toml`` may say, and what is said of each mistake."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate import config
from ci_gate.config.files import MAX_BYTES, MAX_MISTAKES
from ci_gate.config.shape import AgentTable, FaultsTable, GateConfig, SuiteConfig
from ci_gate.errors import ConfigError
from ci_gate.model.agent import AgentSpec, FaultPolicy
from ci_gate.model.policy import Policy
from ci_gate.sandbox.faults import FAULT_KINDS

SUITE = '[[suite]]\nname = "desk"\ntasks = ["evals/*.toml"]\n'
AGENT = '[agent]\npython = "desk.agent:run"\n'


def parse(text: str) -> config.Config:
    return config.parse(text.encode(), name="ci-gate.toml", root=Path("/repo/desk"))


def problems(text: str) -> list[str]:
    """Return the messages about a text that must not be accepted."""
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return [str(problem) for problem in caught.value.problems]


def with_keys(table: str, keys: str) -> str:
    """Return a configuration that is right but for the keys given, which begin on line 6 or 7."""
    if table == "suite":
        return SUITE + keys + "\n" + AGENT
    return (
        SUITE
        + (AGENT if table != "agent" else "[agent]\n")
        + (keys if table == "agent" else f"[{table}]\n{keys}")
    )


def test_what_is_not_said_has_the_documented_default() -> None:
    """A suite and an agent are enough; the rest is as the reference says."""
    found = parse(SUITE + AGENT)

    assert found.suites == (
        SuiteConfig(name="desk", tasks=("evals/*.toml",), seed="0x0000000020261030"),
    )
    assert found.agent == AgentSpec(
        python="desk.agent:run", protocol="python", root="/repo/desk", interpreter="auto"
    )
    assert found.faults is None
    assert found.policy_of(found.suites[0]) == Policy()


def test_every_value_arrives() -> None:
    """Values that differ from the defaults reach the types that the package works with."""
    found = parse(
        """
[[suite]]
name = "desk"
tasks = ["evals/*.toml", "more/*.jsonl"]
seed = 0x10
trials = 16
errors = "fail"
max_errored_rate = 0
deterministic = true
budget_usd = 5
[agent]
command = ["node", "agent.mjs"]
root = "../app"
interpreter = ".venv/bin/python"
timeout_s = 5
environment_errors = ["ConnectionError", "HTTP 5\\\\d\\\\d"]
[run]
jobs = 4
[faults]
rate_permille = 10
tools = { "mcp__postgres__query" = 300 }
kinds = ["timeout", "posix"]
weights = [1, 3]
[gate]
metrics = ["pass^16"]
alpha = 0.1
curtail = "strict"
floors = { "pass^1" = 0.6 }
[[gate.quarantine]]
task = "refund-4817"
owner = "payments"
until = 2027-01-15
"""
    )

    suite, policy = found.suites[0], found.policy_of(found.suites[0])
    assert (suite.root_seed, suite.trials, suite.budget_usd) == (16, 16, 5.0)
    assert found.agent.command == ("node", "agent.mjs")
    assert found.agent.protocol == "command"
    assert (found.agent.root, found.agent.interpreter) == (
        "/repo/app",
        "/repo/app/.venv/bin/python",
    )
    assert found.faults == FaultPolicy(
        rate_permille=10,
        tools={"mcp__postgres__query": 300},
        kinds=("timeout", "posix"),
        weights=(1, 3),
    )
    assert (policy.errors, policy.max_errored_rate, policy.deterministic) == ("fail", 0.0, True)
    assert (policy.ks, policy.alpha, policy.curtail) == ((16,), 0.1, "strict")
    assert policy.floors == {"pass^1": 0.6}
    assert policy.quarantine[0].until == datetime.date(2027, 1, 15)


@pytest.mark.parametrize(
    ("table", "model", "apart"),
    [
        (GateConfig, Policy, {"errors", "max_errored_rate", "deterministic"}),
        (AgentTable, AgentSpec, {"base_url_env", "send_seed"}),
        (FaultsTable, FaultPolicy, set()),
    ],
)
def test_tables_and_model_have_the_same_keys(
    table: type[msgspec.Struct], model: type[msgspec.Struct], apart: set[str]
) -> None:
    """A key that one side knows and the other does not would be ignored in silence."""
    own_tables = {"model"}

    assert set(table.__struct_fields__) - own_tables == set(model.__struct_fields__) - apart


def test_faults_have_the_models_defaults() -> None:
    """``[faults]`` without keys is the published generator."""
    assert parse(SUITE + AGENT + "[faults]\n").faults == FaultPolicy()


def test_without_faults_neither_tools_nor_models_meet_any() -> None:
    """All else stays as the file has it."""
    text = SUITE + AGENT + "[faults]\nrate_permille = 900\n[faults.model]\nrate_permille = 500\n"

    assert config.without_faults(parse(text)) == parse(SUITE + AGENT)


def test_fault_kinds_are_those_the_injector_has() -> None:
    """The configuration offers exactly the kinds that can be injected."""
    kinds = ", ".join(f'"{kind}"' for kind in FAULT_KINDS)

    faults = parse(with_keys("faults", f"kinds = [{kinds}]")).faults

    assert faults is not None
    assert faults.kinds == FAULT_KINDS
    assert problems(with_keys("faults", 'kinds = ["stable"]'))


def test_all_mistakes_are_reported_at_once_in_the_order_of_their_lines() -> None:
    """Nobody repairs a file one run at a time."""
    assert problems(
        """[[suite]]
name = "desk"
tasks = "evals/*.toml"
trails = 8
[agent]
python = "desk.agent:run"
timeout_s = -1
[gate]
alpha = 5
[gaet]
"""
    ) == [
        'ci-gate.toml:3: suite[0].tasks: must be a list, found "evals/*.toml"',
        "ci-gate.toml:4: suite[0].trails: no such key. Did you mean trials?",
        "ci-gate.toml:7: agent.timeout_s: must be a number above 0 and at most 86,400, found -1",
        "ci-gate.toml:9: gate.alpha: must be a number above 0 and below 1, found 5",
        "ci-gate.toml:10: gaet: no such key. Did you mean gate?",
    ]


@pytest.mark.parametrize(
    ("table", "keys", "said"),
    [
        ("suite", 'seed = "0x1ffffffffffffffff"', "suite[0].seed: must be hexadecimal"),
        ("suite", "seed = -1", "suite[0].seed: must be hexadecimal"),
        ("suite", "seed = 1.5", "suite[0].seed: must be text in quotes or a whole number"),
        ("suite", "trials = 4", '4 trials of suite "desk" are too few for pass^8 of gate.metrics'),
        ("suite", "trials = 8.0", "must be a whole number, found 8.0"),
        ("suite", "trials = true", "must be a whole number, found true"),
        ("suite", "trials = 0", "at least 1"),
        ("suite", "max_errored_rate = 1.5", "at most 1"),
        ("suite", "max_errored_rate = nan", "must be a finite number, found nan"),
        ("suite", "budget_usd = inf", "must be a finite number, found inf"),
        ("suite", "budget_usd = 0", "must be a number above 0"),
        ("suite", 'errors = "exclde"', 'Did you mean "exclude"?'),
        ("agent", 'python = "desk.agent"', 'Write it as in "desk.agent:run"'),
        ("agent", 'python = "a:b"\ncommand = ["x"]', "agent: python and command are both given"),
        ("agent", "timeout_s = 1", "agent: neither python nor command is given"),
        ("agent", "command = []", "agent.command: is empty. It needs at least one entry"),
        ("agent", 'command = "node x"', "agent.command: must be a list"),
        ("agent", 'command = ["node", 5]', "agent.command[1]: must be text in quotes, found 5"),
        ("agent", 'command = ["a\\u0000b"]', "holds a NUL character"),
        ("agent", 'python = "a:b"\nprotocol = "exit-code"', '"exit-code" does not go with python'),
        ("agent", 'command = ["x"]\nprotocol = "python"', '"python" does not go with command'),
        ("agent", 'command = ["x"]\nisolation = "inline"', '"inline" needs a Python agent'),
        ("agent", 'python = "a:b"\nenvironment_errors = ["("]', "is no regular expression"),
        ("agent", 'python = "a:b"\nlaundered_errors = ["*"]', "is no regular expression"),
        ("agent", 'python = "a:b"\nfiles = ["../x"]', "leads out of its folder"),
        ("run", "jobs = -1", "run.jobs: must be a whole number at least 0"),
        ("run", 'mode = "rec"', 'Did you mean "record"?'),
        ("faults", "rate_permille = 1001", "at most 1,000"),
        ("faults", "tools = { x = 1.5 }", "faults.tools.x: must be a whole number"),
        ("faults", 'tools = { "" = 1 }', "is empty text"),
        ("faults", 'kinds = ["timeout", "timeout"]', '"timeout" is listed 2 times'),
        ("faults", "kinds = []", "faults.kinds: is empty"),
        ("faults", "weights = [1, 2]", "must hold 4 weights, one a kind, found 2"),
        ("faults", "weights = [0, 0, 0, 0]", "all weights are 0"),
        ("gate", "metrics = []", "gate.metrics: is empty"),
        ("gate", 'metrics = ["pass^0"]', 'Write it as in "pass^8"'),
        ("gate", 'metrics = ["pass^1\\n"]', "does not have the form of this key"),
        ("gate", 'metrics = ["pass@8"]', '"pass@8" does not have the form of this key'),
        ("gate", 'metrics = ["pass^2", "pass^2"]', '"pass^2" is listed 2 times'),
        ("gate", 'metrics = ["pass^9"]', "too few for pass^9 of gate.metrics"),
        ("gate", 'floors = { "pass^9" = 0.1 }', "too few for pass^9 of gate.floors"),
        ("gate", 'floors = { "accuracy" = 0.1 }', "gate.floors.accuracy: "),
        ("gate", 'floors = { "pass^1" = 60 }', 'gate.floors."pass^1": must be a number at least 0'),
        ("gate", "alpha = 0", "gate.alpha: must be a number above 0 and below 1, found 0"),
        ("gate", "alpha = 1", "gate.alpha: must be a number above 0 and below 1, found 1"),
        ("gate", "margin = 1", "gate.margin"),
        ("gate", 'require = "non-inferiority"', '"non-inferiority" needs a margin above 0'),
        ("gate", 'curtail = "no"', 'must be true or false or "strict"'),
        ("gate", 'guards = [{ metric = "turns" }]', "gate.guards[0]: has no limit"),
        (
            "gate",
            'guards = [{ metric = "x", max_increase = 1 }, { metric = "x", max_decrease = 1 }]',
            'gate.guards: "x" is listed 2 times',
        ),
        ("baseline", 'dir = "/srv"', '"/srv" leads out of its folder'),
        ("baseline", 'dir = "C:x"', '"C:x" leads out of its folder'),
        ("baseline", "repeats = 0", "baseline.repeats"),
        (
            "prices",
            '"m" = { input = -1, output = 1 }',
            "prices.m.input: must be a number at least 0",
        ),
        ("prices", '"m" = { input = 1 }', "prices.m.output: is missing"),
        ("gateway", 'base_url_env = ["A B"]', 'Write it as in "OPENAI_BASE_URL"'),
    ],
)
def test_each_mistake_is_named_with_key_and_value(table: str, keys: str, said: str) -> None:
    """Wrong types, impossible values and combinations say where, what and what to do."""
    assert any(said in problem for problem in problems(with_keys(table, keys)))


@pytest.mark.parametrize(
    ("until", "right"),
    [
        ("2027-01-15", True),
        ('"2027-01-15"', False),
        ("2027-01-15T00:00:00Z", False),
        ("2027-01-15T00:00:00", False),
        ("20270115", False),
    ],
)
def test_a_quarantine_ends_on_a_date(until: str, *, right: bool) -> None:
    """A time of day, a number or a string is no date."""
    text = with_keys("[gate.quarantine]", f'task = "t"\nowner = "o"\nuntil = {until}')

    if right:
        assert parse(text).gate.quarantine[0].until == datetime.date(2027, 1, 15)
    else:
        (problem,) = problems(text)
        assert "gate.quarantine[0].until: must be a date such as 2027-01-15" in problem


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".x",
        "Desk",
        "a/b",
        "..",
        "a b",
        "con",
        "nul.x",
        "com1",
        "x.",
        "x.anchor",
        "é",
        "a\n",
        "-x",
    ],
)
def test_suite_names_are_safe_file_names(name: str) -> None:
    """A suite's name becomes file names on every system and must not meet those of others."""
    text = SUITE.replace('"desk"', f'"{name}"'.replace("\n", "\\n")) + AGENT

    assert any("suite[0].name: " in problem for problem in problems(text))


def test_suites_need_different_names() -> None:
    """Two suites of one name would write the same files."""
    (problem,) = problems(SUITE + SUITE + AGENT)

    assert problem.startswith('ci-gate.toml:5: suite[1].name: "desk" is the name of suite[0]')


@pytest.mark.parametrize(
    ("table", "keys", "key"),
    [
        ("run", 'executor = "ray"', "run.executor"),
        ("report", 'language = "zh"', "report.language"),
    ],
)
def test_what_this_version_cannot_do_is_refused_by_name(table: str, keys: str, key: str) -> None:
    """A key that would be ignored is an error, not a surprise."""
    (problem,) = problems(with_keys(table, keys))

    assert f": {key}: " in problem
    assert "is not supported by this version of ci-gate. Leave it out" in problem


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        ("max_repeats = 1", "suite[0].max_repeats: 1 leaves on_borderline"),
        ("deterministic = true", "suite[0].deterministic: a deterministic suite does not go with"),
    ],
)
def test_a_run_that_shall_be_extended_can_be(suite: str, told: str) -> None:
    """A key that could have no effect is an error."""
    (problem,) = problems(f"{SUITE}{suite}\n{AGENT}" + '[gate]\non_borderline = "extend"\n')

    assert told in problem


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ('model = "m"', "judge: base_url and model belong together"),
        ('base_url = "https://a.example/v1"', "judge: base_url and model belong together"),
        ('model = "m"\nbase_url = "file:///v1"', "judge.base_url: must begin with https://"),
        ('model = "m"\nbase_url = "https://:0/"', "judge.base_url: must begin with https://"),
        ('model = "m"\nbase_url = "https://[x/"', "judge.base_url: is no URL"),
        ('model = "m"\nbase_url = "https://u:secret@a.example"', "must hold neither name"),
        ('model = "m"\nbase_url = "https://a.example?k=secret"', "must hold neither name"),
    ],
)
def test_a_judge_has_a_model_and_an_address_without_secrets(keys: str, told: str) -> None:
    """An address and a model make a judge; a key in the address would end up in files."""
    (problem,) = problems(with_keys("judge", keys))

    assert told in problem
    assert "secret" not in problem


def test_values_that_only_repeat_a_default_are_no_request() -> None:
    """Naming the default of something that is not supported yet asks for nothing."""
    text = (
        SUITE + AGENT + '[judge]\nmin_kappa = 0.6\n[run]\nmode = "record"\n[trace]\nignore = []\n'
    )

    assert parse(text) == parse(SUITE + AGENT)


def test_rules_are_silent_about_keys_that_are_wrong_themselves() -> None:
    """One mistake makes one message: a wrong trials is not also too small."""
    assert len(problems(with_keys("suite", 'trials = "4"'))) == 1
    assert len(problems(with_keys("agent", "python = 5"))) == 1
    assert len(problems(AGENT)) == 1


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b"a = \n", "ci-gate.toml:1:"),
        (b"a = 1\n[x\n", "ci-gate.toml:2:3"),
        (b"a = 1\n\na = 2\n", "ci-gate.toml:3:"),
        (b"# \xff\n", "ci-gate.toml:1"),
        (b"a = " + b"[" * 5000, "ci-gate.toml"),
        (b"#" * (MAX_BYTES + 1), "ci-gate.toml"),
    ],
)
def test_what_is_no_toml_says_where(text: bytes, where: str) -> None:
    """Line and column come from the parser; bytes and depth are bounded."""
    with pytest.raises(ConfigError) as caught:
        config.parse(text, name="ci-gate.toml", root=Path("/repo"))

    assert caught.value.problems[0].where.startswith(where)


def test_a_byte_order_mark_is_no_mistake() -> None:
    """Editors on Windows put one at the beginning of a file."""
    assert parse("\ufeff" + SUITE + AGENT) == parse(SUITE + AGENT)


def test_hostile_text_stays_in_one_line() -> None:
    """Keys and values of a change are shown escaped: no new line, no reordering."""
    key = '"\\n::error::x\\u202e"'

    (problem,) = problems(SUITE + AGENT + f"[gate]\n{key} = 1\n")
    assert "\n" not in problem
    assert "\u202e" not in problem


def test_a_flood_of_mistakes_is_cut() -> None:
    """The message stays readable and the time bounded whatever the file holds."""
    flood = "".join(f"key{index} = 1\n" for index in range(5000))

    assert len(problems(flood + SUITE + AGENT)) == MAX_MISTAKES


def test_deep_values_are_refused_without_being_shown_whole() -> None:
    """Arrays in arrays are a wrong type like any other."""
    (problem,) = problems(with_keys("gate", "alpha = " + "[" * 300 + "]" * 300))

    assert "gate.alpha: must be a number" in problem
    assert len(problem) < 300


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    """The first thing a new user meets."""
    with pytest.raises(ConfigError, match=re.escape("`ci-gate init` makes one")) as caught:
        config.load(tmp_path / "ci-gate.toml")

    assert caught.value.exit_code == 2


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    """Any other trouble with the file is its own message, not a stack trace."""
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        config.load(tmp_path)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """Where the command was started does not matter."""
    file = tmp_path / "sub" / "ci-gate.toml"
    file.parent.mkdir()
    file.write_text(SUITE + AGENT + 'root = "app"\n')

    found = config.load(file)

    assert found.root == str(file.parent.resolve())
    assert found.agent.root == str(file.parent.resolve() / "app")


VALUES = st.sampled_from(
    [
        *("1", "-1", "1.5", "nan", "true", '"x"', '""', "[]", "[1]", '["x"]', "{}", "{ a = 1 }"),
        *("2027-01-15", "[[]]", "[{}]", '"pass^1"', '["pass^1"]', "99999999999999999999"),
    ]
)
KEYS = st.sampled_from(
    [
        ("suite", "name tasks seed trials errors max_errored_rate deterministic budget_usd"),
        ("agent", "python command protocol root files timeout_s memory_mb isolation allow setup"),
        ("run", "mode traces jobs retries executor"),
        ("faults", "rate_permille tools kinds weights schedule steps budget real_delays model"),
        ("gate", "mode metrics alpha margin curtail floors guards quarantine allow_removed"),
        ("baseline", "dir repeats max_age_days keep_traces"),
        ("prices", "a b"),
        ("judge", "base_url votes min_kappa"),
    ]
).flatmap(lambda row: st.tuples(st.just(row[0]), st.sampled_from(row[1].split())))


def places_of_problems(text: str) -> list[str]:
    """Return where the problems of a text are; none where it is accepted."""
    try:
        parse(text)
    except ConfigError as error:
        return [problem.where for problem in error.problems]
    return []


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_value_anywhere_is_accepted_or_explained(values: dict[tuple[str, str], str]) -> None:
    """No legal TOML, however wrong, ends in anything but a configuration or a list of problems."""
    lines: dict[str, dict[str, str]] = {
        "suite": {"name": '"desk"', "tasks": '["x"]'},
        "agent": {"python": '"a:b"'},
    }
    for (table, key), value in values.items():
        lines.setdefault(table, {})[key] = value
    text = "".join(
        (f"[[{table}]]\n" if table == "suite" else f"[{table}]\n")
        + "".join(f"{key} = {value}\n" for key, value in keys.items())
        for table, keys in lines.items()
    )

    assert all(re.match(r"ci-gate\.toml:\d+: ", where) for where in places_of_problems(text))
