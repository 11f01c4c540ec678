from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.codec import digest_of
from ci_gate.errors import SuiteError
from ci_gate.model.suite import GraderSpec, Limits, Suite
from ci_gate.prng import task_seed
from ci_gate.store.suites import SuiteRules, load_suite, parse_task_files
from ci_gate.store.trees import FileEntry

GRADERS = ("answer", "sql", "file", "python")
ROOT_SEED = 0x20261030
ONE = 'id = "refund"\ninstruction = "Refund it."\ngraders = [{ type = "answer", equals = "ok" }]\n'


class Project:
    """A real folder with task files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file below the root."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def load(self, *patterns: str, **options: Any) -> Suite:
        """Load the suite of this folder."""
        settings: dict[str, Any] = {
            "root": self.root,
            "root_seed": ROOT_SEED,
            "trials": 8,
            "known_graders": GRADERS,
            "require_graders": True,
            "agent_root": self.root,
        }
        return load_suite("desk", patterns or ("evals/*",), **(settings | options))

    def mistakes(self, *patterns: str, **options: Any) -> list[str]:
        """Return the messages of a suite that cannot be loaded."""
        with pytest.raises(SuiteError) as caught:
            self.load(*patterns, **options)
        assert caught.value.exit_code == 2
        return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


class Memory:
    """Files of a commit, as the gate reads them."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def read(self, path: str) -> bytes | None:
        """Return a file's content."""
        return self._files.get(path)

    def list(self, folder: str) -> list[FileEntry]:
        """Return the files below a folder."""
        return [FileEntry(name) for name in sorted(self._files) if name.startswith(f"{folder}/")]


def test_a_file_may_be_one_task(project: Project) -> None:
    """A TOML file with an id is a task; everything else has its defaults."""
    project.write("evals/refund.toml", ONE)

    suite = project.load()

    (task,) = suite.tasks
    assert (suite.name, suite.root_seed, suite.trials) == ("desk", ROOT_SEED, 8)
    assert task.base_seed == task_seed(ROOT_SEED, "refund")
    assert task.graders == (GraderSpec(type="answer", name="answer", options={"equals": "ok"}),)
    assert (task.trials, task.limits, task.fixture, task.tags) == (None, Limits(), None, ())
    assert task.source == "evals/refund.toml:1"
    assert suite.trials_of(task) == 8


def test_every_key_reaches_the_task(project: Project) -> None:
    """All keys of a task are read, dates become ISO 8601, seeds are numbers."""
    project.write("fixtures/world.sql", "create table orders(id)")
    project.write(
        "evals/all.toml",
        """
        id = "all"
        instruction = "Do."
        input = { day = 2026-11-30, at = 2026-11-30T12:00:00Z, time = 10:00:00, n = [1, 2.5] }
        metadata = { a = { b = true } }
        tags = ["x", "y"]
        fixture = "../fixtures/world.sql"
        trials = 16
        seed = "0xFF"
        limits = { timeout_s = 1.5, turns = 3, tool_calls = 4, tokens = 5, cost_usd = 0.5 }
        graders = [
          { type = "sql", query = "select 1", equals = 1 },
          { type = "sql", query = "select 2", equals = 2 },
          { type = "answer", name = "said", contains = "ok" },
        ]
        """,
    )

    (task,) = project.load().tasks

    assert task.input == {
        "day": "2026-11-30",
        "at": "2026-11-30T12:00:00+00:00",
        "time": "10:00:00",
        "n": [1, 2.5],
    }
    assert task.metadata == {"a": {"b": True}}
    assert task.tags == ("x", "y")
    assert task.fixture == "../fixtures/world.sql"
    assert task.fixture_path == str(project.root.resolve() / "fixtures/world.sql")
    assert task.trials == 16
    assert task.base_seed == 0xFF
    assert task.limits == Limits(timeout_s=1.5, turns=3, tool_calls=4, tokens=5, cost_usd=0.5)
    assert [grader.name for grader in task.graders] == ["sql", "sql-2", "said"]


def test_tables_and_lines_make_one_suite(project: Project) -> None:
    """Tasks of several files, in both formats, come sorted by id with file and line."""
    project.write("evals/b.toml", f"[[task]]\n{ONE}\n# more\n[[ task ]] # yes\n{ONE}".replace(
        '"refund"', '"b2"', 1).replace('"refund"', '"b1"', 1))  # fmt: skip
    project.write(
        "evals/a.jsonl",
        '{"id":"a","instruction":"x","graders":[{"type":"answer"}]}\n\n'
        '{"id":"c","instruction":"x","graders":[{"type":"answer"}],"seed":7}\n',
    )

    suite = project.load()

    assert [(task.id, task.source) for task in suite.tasks] == [
        ("a", "evals/a.jsonl:1"),
        ("b1", "evals/b.toml:7"),
        ("b2", "evals/b.toml:1"),
        ("c", "evals/a.jsonl:3"),
    ]
    assert suite.tasks[3].base_seed == 7


def test_defaults_apply_to_tasks_that_lack_them(project: Project) -> None:
    """[defaults] fills what a task does not say; its tags and graders come before the task's."""
    project.write(
        "evals/a.toml",
        """
        [defaults]
        tags = ["all"]
        trials = 4
        limits = { turns = 9 }
        now = 2026-03-01T00:00:00Z
        graders = [{ type = "answer", contains = "ok" }]
        [[task]]
        id = "plain"
        instruction = "x"
        [[task]]
        id = "own"
        instruction = "x"
        tags = ["mine"]
        trials = 2
        limits = { tokens = 5 }
        graders = [{ type = "sql", query = "q" }]
        """,
    )

    own, plain = project.load().tasks

    assert (plain.tags, plain.trials, plain.limits) == (("all",), 4, Limits(turns=9))
    assert plain.now == "2026-03-01T00:00:00Z"
    assert (own.tags, own.trials, own.limits) == (("all", "mine"), 2, Limits(tokens=5))
    assert [grader.type for grader in own.graders] == ["answer", "sql"]


def test_text_that_looks_like_a_task_moves_no_line(project: Project) -> None:
    """A [[task]] within a multi-line string is text, and lines stay right."""
    text = f'[[task]]\n{ONE}input = """\n[[task]]\n"""\n'
    project.write("evals/a.toml", text)

    assert project.load().tasks[0].source == "evals/a.toml:1"


ROWS: list[tuple[str, str]] = [
    ('instruction = "x"\ngraders = [{type="answer"}]', r"evals/a.toml:1: id: is missing"),
    ('id = "a"\ngraders = [{type="answer"}]', "evals/a.toml:1: task 'a': instruction: is missing"),
    ('id = "a"\ninstruction = "x"', "graders: are missing: a task needs at least one"),
    (ONE + "trails = 3", "task 'refund': trails: is unknown. Did you mean 'trials'?"),
    (
        ONE + "xyz = 3",
        "xyz: is unknown. Known are expect, fixture, grader, graders, id, identity, input, ",
    ),
    (ONE + "grader = 3", "grader: must be a string, found 3"),
    (ONE + "trials = 0", "trials: must be a whole number from 1 to 1000000, found 0"),
    (ONE + "trials = true", "trials: must be a whole number from 1 to 1000000, found True"),
    (ONE + 'trials = "8"', "trials: must be a whole number"),
    (ONE + 'seed = "xyz"', "seed: a seed is hexadecimal"),
    (ONE + "seed = -1", "seed: a seed is a whole number"),
    (ONE + "seed = 1.5", "seed: must be a hexadecimal string or a whole number, found 1.5"),
    (ONE + 'tags = "x"', "tags: must be a list of strings, found 'x'"),
    (ONE + "tags = [1]", "tags: must be a list of strings, found [1]"),
    (ONE + "metadata = 1", "metadata: must be a table, found 1"),
    (ONE + "fixture = 1", "fixture: must be a string, found 1"),
    (ONE + 'fixture = "no.sql"', "fixture: 'no.sql' is no file and no folder with files"),
    (ONE + 'fixture = "../../x"', "fixture: '../../x' leaves the project"),
    (ONE + 'fixture = "/etc/passwd"', "fixture: '/etc/passwd' leaves the project"),
    (ONE + "limits = 1", "limits: must be a table"),
    (ONE + "limits = {turn = 1}", "limits.turn: is unknown. Did you mean 'turns'?"),
    (ONE + "limits = {turns = 1.5}", "limits.turns: must be a whole number, found 1.5"),
    (ONE + "limits = {timeout_s = 0}", "limits.timeout_s: must be a number above 0, found 0"),
    (ONE + "limits = {cost_usd = true}", "limits.cost_usd: must be a number above 0, found True"),
    (ONE.replace("[{", "{").replace("}]", "}"), "graders: must be a list of tables"),
    (ONE.replace("[{", "[1, {"), "graders[0]: must be a table, found 1"),
    (
        ONE.replace("type =", "typ ="),
        "graders[0].type: is missing. Known are answer, file, python, sql",
    ),
    (ONE.replace('"answer"', '"answr"'), "is 'answr', which is unknown. Did you mean 'answer'?"),
    (ONE.replace('"answer"', "3"), "graders[0].type: is 3, which is unknown"),
    (ONE.replace("type =", 'name = "", type ='), "graders[0].name: must be a printable string"),
    (
        ONE.replace("[{", '[{ type="sql", name="x" }, { name="x",'),
        "graders: have the name 'x' 2 times",
    ),
    (ONE.replace('"refund"', '""'), "id: is empty"),
    (ONE.replace('"refund"', '"a\\u202Eb"'), "id: contains a control, newline or bidirectional"),
    (ONE.replace('"refund"', '" a"'), "id: begins or ends with white space"),
    (ONE.replace('"refund"', f'"{"x" * 513}"'), "id: has 513 characters, at most 512 are allowed"),
    (ONE.replace('"refund"', "3"), "id: must be a string, found 3"),
    (ONE.replace('"Refund it."', "3"), "instruction: must be a string, found 3"),
    ("id = ", "evals/a.toml: is not TOML: Invalid value (at end of document)"),
    ("a = 1\na = 2", "evals/a.toml: is not TOML: Cannot overwrite a value (at end of document)"),
    (ONE + "tables = { orders = 3 }", "tables: must be a table of lists of rows; 'orders' is no"),
    (ONE + "identity = 3", "identity: must be a table, found 3"),
    (ONE + 'now = "today"', "now: must be a time such as 2026-03-01T00:00:00Z, found 'today'"),
    (ONE + "input = nan", "evals/a.toml: cannot be read: input is nan, which JSON does not have"),
    (ONE + "input = [{a = -inf}]", "input[0].a is -inf, which JSON does not have"),
    ("", "evals/a.toml: contains no task"),
    ("[defaults]\ntrials = 3", "evals/a.toml: contains no task"),
    (f"defaults = 3\n{ONE}", "evals/a.toml: defaults: is not a table. Write [defaults]."),
    (f"{ONE}[defaults]\ntag = 3", "evals/a.toml: defaults.tag: is unknown. Did you mean 'tags'?"),
    (
        f"[[task]]\n{ONE}[other]\nx = 1",
        "evals/a.toml: other: is unknown. Beside [[task]] there is only",
    ),
    ("task = 3", "evals/a.toml: task: is not an array of tables. Write [[task]]."),
    (f"[task]\n{ONE}", "evals/a.toml: task: is not an array of tables. Write [[task]]."),
]


@pytest.mark.parametrize(("text", "message"), ROWS)
def test_a_mistake_is_said_with_its_place(project: Project, text: str, message: str) -> None:
    """Every mistake in a task file names file, task and key, and what was found."""
    project.write("evals/a.toml", text)

    mistakes = project.mistakes()

    assert len(mistakes) == 1
    assert message in mistakes[0]
    assert mistakes[0].startswith("evals/a.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "evals/a.jsonl:1: is not JSON"),
        (b"\n[1]", "evals/a.jsonl:2: is not a JSON object"),
        (b'{"id":"a"}\n{"id":NaN}', "evals/a.jsonl:2: is not JSON"),
        (b'\n{"id":"\xff"}', "evals/a.jsonl:2: is not UTF-8: byte 0xff"),
        (b'{"id":"\\ud800"}', "evals/a.jsonl:1: is not JSON"),
        (b"", "evals/a.jsonl: contains no task"),
        (b'{"id":"a","instruction":"x","graders":[{"type":"sql"}],"x":1}', "x: is unknown"),
    ],
)
def test_a_mistake_in_a_line_is_said(project: Project, text: bytes, message: str) -> None:
    """Lines of JSON are held to the same rules, with their line."""
    project.write("evals/a.jsonl", text)

    assert any(message in mistake for mistake in project.mistakes())


@pytest.mark.parametrize("depth", [500, 900, 10**5])
def test_nesting_without_end_is_refused(project: Project, depth: int) -> None:
    """Deep nesting, in either format, is a task or one mistake, and never a crash."""
    start = '{"id":"a","instruction":"x","graders":[{"type":"sql"}],"input":'
    project.write("evals/a.jsonl", start + "[" * depth + "]" * depth + "}")
    project.write("evals/b.toml", "x = " + "[" * depth)

    mistakes = project.mistakes()

    assert 1 <= len(mistakes) <= 2
    assert any(mistake.startswith("evals/b.toml") for mistake in mistakes)


def test_all_mistakes_are_said_at_once(project: Project) -> None:
    """Mistakes of all files come in one error, those of [defaults] once."""
    project.write("evals/a.toml", f"[defaults]\ntrials = 0\n[[task]]\n{ONE}[[task]]\n{ONE}")
    project.write("evals/b.toml", ONE + "x = 1\ny = 2")
    project.write("evals/c.jsonl", "{")

    mistakes = project.mistakes()

    assert len(mistakes) == 6
    assert mistakes[0].startswith("evals/c.jsonl:1")
    assert "evals/a.toml: defaults.trials: must be a whole number" in mistakes[1]
    assert mistakes[4].endswith("the id 'refund' is already used in evals/a.toml:3")


def test_ids_are_used_once(project: Project) -> None:
    """The same id in two files is refused with both places."""
    project.write("evals/a.toml", ONE)
    project.write("evals/b.toml", ONE)

    assert project.mistakes() == [
        "evals/b.toml:1: the id 'refund' is already used in evals/a.toml:1"
    ]


def test_ids_do_not_share_a_folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even ids whose derived names collide are told apart, by refusing the second."""
    from ci_gate.store import suites

    monkeypatch.setattr(suites, "folder_of", lambda task_id: "same")
    project.write("evals/a.toml", ONE)
    project.write("evals/b.toml", ONE.replace("refund", "cancel"))

    (mistake,) = project.mistakes()

    assert "the id 'cancel' would share a folder with 'refund'" in mistake


@pytest.mark.parametrize(
    "task_id", ["../../etc/passwd", "con", "a b; rm -rf", "x" * 300, "🧾", "a|b`c`", "<script>"]
)
def test_awkward_ids_are_loaded(project: Project, task_id: str) -> None:
    """Ids that are awkward but legal are tasks like others."""
    project.write("evals/a.jsonl", msgspec.json.encode(
        {"id": task_id, "instruction": "x", "graders": [{"type": "sql"}]}))  # fmt: skip

    assert project.load().tasks[0].id == task_id


def test_an_exit_code_agent_needs_no_graders(project: Project) -> None:
    """Where the agent's exit status judges, a task may have no grader."""
    project.write("evals/a.toml", 'id = "a"\ninstruction = "x"')

    assert project.load(require_graders=False).tasks[0].graders == ()


def test_graders_judge_their_options(project: Project) -> None:
    """What a grader says of its options is reported like every other mistake."""
    project.write("evals/a.toml", ONE)

    mistakes = project.mistakes(mistakes_of=lambda grader: [f"{grader.type} is wrong", "twice"])

    assert mistakes == [
        "evals/a.toml:1: task 'refund': grader 'answer': answer is wrong",
        "evals/a.toml:1: task 'refund': grader 'answer': twice",
    ]


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (("no/*.toml", "x.jsonl"), "no task file matches 'no/*.toml', 'x.jsonl'"),
        (("evals/*.sql",), "1 files match, none of them .toml or .jsonl"),
        ((), "no task file matches no pattern"),
        (("../*.toml",), "tasks '../*.toml': must be relative and stay below the root"),
        (("/etc/*.toml",), "must be relative"),
        (("",), "is empty"),
        (("evals/**",), "must end in the name of files"),
        (("a**/x",), "has ** next to other characters"),
    ],
)
def test_patterns_that_match_nothing_are_named(
    project: Project, patterns: tuple[str, ...], message: str
) -> None:
    """Patterns that leave the root or match no task file are refused by name."""
    project.write("evals/world.sql", "")

    with pytest.raises(SuiteError) as caught:
        load_suite(
            "desk", patterns, root=project.root, root_seed=1, trials=1, known_graders=GRADERS,
            require_graders=True, agent_root=project.root,
        )  # fmt: skip

    assert message in str(caught.value)


def test_links_do_not_lead_out(project: Project, tmp_path: Path) -> None:
    """A task file or fixture that is a link to outside the project is refused."""
    outside = tmp_path / "outside.toml"
    outside.write_text(ONE)
    project.write("evals/a.toml", ONE + 'fixture = "world"')
    (project.root / "evals" / "world").symlink_to(outside)
    assert "fixture: 'world' is no file" in project.mistakes("evals/a.toml")[0]

    (project.root / "evals" / "b.toml").symlink_to(outside)
    assert project.mistakes() == ["evals/b.toml: is a link that leads out of the project"]


def test_a_pipe_in_a_fixture_is_refused(project: Project) -> None:
    """A fixture folder holds files, folders and links."""
    project.write("evals/a.toml", ONE + 'fixture = "world"')
    project.write("evals/world/x", "x")
    os.mkfifo(project.root / "evals" / "world" / "pipe")

    assert "evals/world/pipe: is a pipe, socket or device" in project.mistakes("evals/*.toml")[0]


def digest(project: Project) -> str:
    return project.load("evals/*.toml").tasks[0].digest


def test_the_task_digest_follows_its_definition(project: Project) -> None:
    """The digest is that of the canonical task and the digests of its files."""
    from ci_gate.codec import digest_bytes

    project.write("evals/world.sql", "create table x(a)")
    project.write("graders/mine.py", "def check(): ...")
    project.write("evals/a.toml", (
        'id = "a"\ninstruction = "x"\nfixture = "world.sql"\nseed = 1\nlimits = {turns = 2}\n'
        'graders = [{ type = "python", function = "graders.mine:check" }]'))  # fmt: skip

    suite = project.load("evals/*.toml")

    limits = {"timeout_s": None, "turns": 2, "tool_calls": None, "tokens": None, "cost_usd": None}
    grader = {"type": "python", "name": "python", "options": {"function": "graders.mine:check"}}
    expected = digest_of(
        {
            "task": {
                "id": "a",
                "instruction": "x",
                "input": None,
                "metadata": {},
                "tags": [],
                "limits": limits,
                "graders": [grader],
                "seed": "0x0000000000000001",
            },
            "files": {
                "fixture/world.sql": digest_bytes(b"create table x(a)"),
                "grader/graders/mine.py": digest_bytes(b"def check(): ..."),
            },
        }
    )
    assert suite.tasks[0].digest == expected
    assert suite.digest == digest_of({"tasks": {"a": expected}})


CHANGES: dict[str, Callable[[Project], object]] = {
    "instruction": lambda p: p.write("evals/a.toml", TASK.replace("Do.", "Do it.")),
    "tags": lambda p: p.write("evals/a.toml", TASK + 'tags = ["x"]'),
    "tables": lambda p: p.write("evals/a.toml", TASK + "tables = { orders = [{ id = 1 }] }"),
    "identity": lambda p: p.write("evals/a.toml", TASK + 'identity = { user = "ada" }'),
    "now": lambda p: p.write("evals/a.toml", TASK + "now = 2026-03-01T00:00:00Z"),
    "trials": lambda p: p.write("evals/a.toml", TASK + "trials = 9"),
    "seed": lambda p: p.write("evals/a.toml", TASK + "seed = 9"),
    "limits": lambda p: p.write("evals/a.toml", TASK + "limits = {turns = 9}"),
    "grader": lambda p: p.write("evals/a.toml", TASK.replace("check", "other")),
    "fixture file": lambda p: p.write("evals/world/deep/x", "2"),
    "fixture name": lambda p: (p.root / "evals/world/deep/x").rename(p.root / "evals/world/deep/y"),
    "one file more": lambda p: p.write("evals/world/more", ""),
    "executable": lambda p: (p.root / "evals/world/deep/x").chmod(0o755),
    "link target": lambda p: (
        (p.root / "evals/world/link").unlink(),
        (p.root / "evals/world/link").symlink_to("elsewhere"),
    ),
    "grader source": lambda p: p.write("mine/__init__.py", "def check(): return True"),
}
TASK = """\
id = "a"
instruction = "Do."
fixture = "world"
graders = [{ type = "python", function = "mine:check" }]
"""


@pytest.fixture
def whole(project: Project) -> Project:
    """Return a project whose task has a folder, a link and a grader of its own."""
    project.write("evals/a.toml", TASK)
    project.write("evals/world/deep/x", "1")
    (project.root / "evals/world/link").symlink_to("/etc/passwd")
    project.write("mine/__init__.py", "def check(): ...")
    return project


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_task_is_made_of_is_in_its_digest(whole: Project, change: str) -> None:
    """A change of the task, of a byte of its fixture or of its grader changes its digest."""
    before = digest(whole)

    CHANGES[change](whole)

    assert digest(whole) != before


def test_where_a_task_stands_is_not_in_its_digest(whole: Project) -> None:
    """Comments, the file's name and other tasks in it do not change a task."""
    before = digest(whole)

    (whole.root / "evals/a.toml").unlink()
    whole.write("evals/moved.toml", f"# moved\n[[task]]\n{TASK}")
    whole.write("evals/other.toml", ONE.replace("refund", "z"))

    assert digest(whole) == before


def test_a_commit_s_files_make_the_same_suite(whole: Project) -> None:
    """Files read from elsewhere give the digests that the same files give on disk."""
    (whole.root / "evals/world/link").unlink()
    names = ["evals/a.toml", "evals/world/deep/x", "mine/__init__.py"]
    files = Memory({name: (whole.root / name).read_bytes() for name in names})

    suite = parse_task_files(
        {"evals/a.toml": TASK.encode()},
        name="desk",
        rules=SuiteRules(
            root_seed=ROOT_SEED, trials=8, known_graders=GRADERS, require_graders=True
        ),
        files=files,
        agent_files=files,
    )

    assert suite.digest == whole.load("evals/*.toml").digest
    assert suite.tasks[0].fixture_path is None


def test_an_installed_grader_is_known_by_name(project: Project) -> None:
    """A grader module outside the agent's root adds no source to the digest, nor is it read."""
    project.write("evals/a.toml", TASK.replace('fixture = "world"\n', "").replace("mine", "../x"))

    assert len(project.load().tasks) == 1


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e300, 1e300) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("abz"), inner, max_size=2),
    max_leaves=5,
)
KEYS = "id instruction input metadata tags seed fixture limits trials graders x"


@given(st.dictionaries(st.sampled_from(KEYS.split()), JSON))
def test_no_task_is_so_strange_that_it_breaks_the_reader(fields: dict[str, Any]) -> None:
    """Any JSON object is a task with its id or an error that says what is wrong."""
    rules = SuiteRules(root_seed=1, trials=8, known_graders=GRADERS, require_graders=False)
    content = {"a.jsonl": msgspec.json.encode(fields)}

    try:
        suite = parse_task_files(
            content, name="x", rules=rules, files=Memory({}), agent_files=Memory({})
        )
    except SuiteError:
        return

    assert suite.tasks[0].id == fields["id"]
