"""What the pages show as configuration, tasks and files is accepted by what reads them."""

import json
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import tomli

from ci_gate import config
from ci_gate.agents import worker
from ci_gate.agents.command import _order
from ci_gate.agents.executions import trial_environment
from ci_gate.agents.results import trajectory_of
from ci_gate.grading import answer, file, sql
from ci_gate.grading.judge import options as judge_options
from ci_gate.model.run import RunFooter, RunHeader
from ci_gate.model.suite import Limits, PlannedTrial, Task
from ci_gate.model.trace import TraceFooter, TraceHeader, TraceRecord
from ci_gate.model.trial import TrialRecord
from ci_gate.model.verdict import Verdict
from ci_gate.plugins import GRADERS, grader_problems
from ci_gate.store.baselines import dump_baseline, parse_baseline
from ci_gate.store.suites import _CHECKS, SuiteRules, parse_task_files
from ci_gate.store.taskfiles import DEFAULT_KEYS
from ci_gate.store.trees import DiskReader
from tests.docs.pages import PAGES, Block, blocks, page

ALL = [block for path in PAGES for block in blocks(path.read_text(encoding="utf-8"), path.name)]
TOML = [block for block in ALL if block.language == "toml"]


def _named(block: Block) -> str:
    return f"{block.page}-{block.text.splitlines()[0] if block.text else ''}"


def _is_tasks(block: Block) -> bool:
    return bool(tomli.loads(block.text).keys() & {"task", "id", "instruction"})


@pytest.mark.parametrize("block", [b for b in TOML if not _is_tasks(b)], ids=_named)
def test_configuration_is_accepted(block: Block, tmp_path: Path):
    """A fragment of ci-gate.toml is legal once the required tables stand beside it."""
    found = tomli.loads(block.text)
    text = block.text
    if "suite" not in found:
        text += '\n[[suite]]\nname = "x"\ntasks = ["x.toml"]\n'
    if "agent" not in found:
        text += '\n[agent]\npython = "x:y"\n'

    assert config.parse(text.encode(), name="ci-gate.toml", root=tmp_path).suites


@pytest.mark.parametrize(
    "block",
    [b for b in ALL if b.language == "toml" and _is_tasks(b)]
    + [b for b in ALL if b.page == "tasks.md" and b.language == "json"],
    ids=_named,
)
def test_tasks_are_accepted(block: Block, tmp_path: Path):
    """Tasks that are shown make a suite, graders included."""
    (tmp_path / "world.sql").write_text("CREATE TABLE refunds (id TEXT, cents INTEGER);")
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/answer.json").write_text('{"type": "object"}')
    name = "x.toml" if block.language == "toml" else "x.jsonl"
    rules = SuiteRules(
        root_seed=1,
        trials=8,
        known_graders=frozenset(GRADERS),
        require_graders=True,
        mistakes_of=grader_problems,
    )

    suite = parse_task_files(
        {name: block.text.encode()},
        name="x",
        rules=rules,
        files=DiskReader(tmp_path),
        agent_files=DiskReader(tmp_path),
    )

    assert suite.tasks


def test_the_baseline_that_is_shown_is_one_to_the_byte():
    """It is read, and written again it is the same."""
    (block,) = [block for block in ALL if block.mark == "document baseline"]

    baseline = parse_baseline(block.text.encode(), name="docs")

    assert dump_baseline(baseline).decode() == block.text


def test_the_lines_of_a_run_that_are_shown_have_every_field():
    """Header, trial and footer are as the records write them: no field more, none less."""
    (block,) = [block for block in ALL if block.mark == "lines run"]
    shown = [json.loads(line) for line in block.text.splitlines()]

    for fields, kind in zip(shown, (RunHeader, TrialRecord, RunFooter), strict=True):
        msgspec.convert(fields, kind)
        always = [f.name for f in msgspec.structs.fields(kind) if f.default is not msgspec.UNSET]
        assert list(fields) == always


def test_the_lines_of_a_trace_that_are_shown_have_every_field():
    """Header, calls and footer are as they are written, and the page describes each field."""
    (block,) = [block for block in ALL if block.mark == "lines trace"]
    shown = [json.loads(line) for line in block.text.splitlines()]

    for fields, kind in zip(
        shown, (TraceHeader, TraceRecord, TraceRecord, TraceFooter), strict=True
    ):
        msgspec.convert(fields, kind)
        always = [f.name for f in msgspec.structs.fields(kind) if f.default is not msgspec.UNSET]
        assert list(fields) == always
    named = [name for name in TraceRecord.__struct_fields__ if f"`{name}`" not in page("traces.md")]
    assert named == []


def test_every_field_of_a_verdict_is_described():
    """The page on formats names each key of the verdict."""
    text = page("files.md")
    keys = [name for name in Verdict.__struct_encode_fields__ if name != "schema"]

    assert [key for key in keys if f"`{key}`" not in text] == []


def test_every_key_of_a_task_and_option_of_a_grader_is_described():
    """The page on tasks names them all."""
    text = page("tasks.md")
    names = {
        *_CHECKS,
        *DEFAULT_KEYS,
        *Limits.__struct_fields__,
        *GRADERS,
        *answer._OPTIONS,
        *sql._OPTIONS,
        *file._OPTIONS,
        *judge_options._OPTIONS,
    }

    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_every_member_of_env_is_described():
    """The page on agents names each public member of what a trial offers."""
    text = page("agents.md")
    ours = {"finish", "through", "athrough", "declared", "within", "lead", "leading"}
    members = [f"env.{name}" for name in _public(worker.Env) - ours]
    members += [f"env.tools.{name}" for name in _public(worker.Tools)]
    channels = (worker.KeyValues, worker.Files, worker.TrialClock)
    members += [f"{name}(" for channel in channels for name in _public(channel)]

    missing = [member for member in sorted(members) if member not in text]

    assert missing == []


def _public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def test_every_variable_and_key_of_a_result_is_described(tmp_path):
    """The page on agents names what a program is told, and what an agent may return."""
    text = page("agents.md")
    names = [*worker._RESULT_KEYS, *_variables(tmp_path)]

    assert [name for name in names if f"`{name}`" not in text] == []


def _variables(home: Path) -> list[str]:
    (home / "tables.json").touch()
    task = SimpleNamespace(id="x", identity={})
    trial = SimpleNamespace(seed=1, trial=0, task=task)
    sandbox = SimpleNamespace(now="", workdir="w", database="d", postgres="p", home=home)
    return list(trial_environment(trial, sandbox))


def test_the_order_that_is_shown_is_the_one_a_program_gets():
    """The keys of the line on standard input are those on the page."""
    (block,) = [b for b in ALL if b.page == "agents.md" and b.language == "json"]
    shown = json.loads(block.text)
    task = Task(id="hello", instruction="Say hello", base_seed=0, digest="")
    trial = PlannedTrial(task=task, trial=3, repeat=0, attempt=1, seed=int(shown["seed"], 16))

    assert json.loads(_order(trial)) == shown


def test_a_short_result_is_a_result():
    """The keys of a result are all optional, as the page says."""
    assert trajectory_of({"answer": "x", "own": 1}).answer == "x"
