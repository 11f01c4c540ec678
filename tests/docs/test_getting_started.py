"""The pages with commands: a newcomer who does what they say sees what they show."""

import shutil
from pathlib import Path

import pytest

from tests.docs.newcomer import Newcomer, matches, steps
from tests.docs.pages import blocks, page


@pytest.mark.slow
def test_getting_started(tmp_path: Path):
    """Every command of the page, in its order, prints what the page shows of its output."""
    assert Newcomer(tmp_path).follow(page("getting-started.md")) == []


@pytest.mark.slow
def test_a_run_from_another_tool(tmp_path: Path):
    """The writer of the page on formats writes a run that the gate compares."""
    (writer,) = [b for b in blocks(page("files.md")) if b.mark == "run write_run.py"]
    somebody = Newcomer(tmp_path)
    somebody.write("write_run.py", writer.text)

    somebody.run(f"{shutil.which('python3') or 'python3'} write_run.py")
    printed = somebody.run("ci-gate compare mine.run.jsonl mine.run.jsonl; echo $?")

    assert printed.startswith("Passed: desk")
    assert printed.endswith("\n0\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "name", "agent"),
    [
        ("python", "agent.py", 'python = "agent:run"'),
        pytest.param(
            "js",
            "agent.mjs",
            'command = ["node", "agent.mjs"]',
            marks=pytest.mark.skipif(not shutil.which("node"), reason="there is no node"),
        ),
    ],
)
def test_the_agents_of_the_page_run(tmp_path: Path, language: str, name: str, agent: str):
    """The agents that the page shows pass a task in a real run."""
    shown = next(b for b in blocks(page("agents.md")) if b.language == language)
    somebody = Newcomer(tmp_path)
    somebody.write(name, shown.text)
    somebody.write(
        "ci-gate.toml", f'[[suite]]\nname = "x"\ntasks = ["*.jsonl"]\n[agent]\n{agent}\n'
    )
    grader = '{"type": "answer", "matches": "a, b|hello from hello"}'
    somebody.write("t.jsonl", f'{{"id": "hello", "instruction": "x", "graders": [{grader}]}}\n')

    printed = somebody.run("ci-gate replay hello")

    assert printed.endswith("passed\n"), printed


@pytest.mark.slow
def test_the_grader_of_the_page_runs(tmp_path: Path):
    """The own grader that the page shows judges a real trial."""
    (shown,) = [b for b in blocks(page("tasks.md")) if b.language == "python"]
    somebody = Newcomer(tmp_path)
    somebody.write("graders.py", shown.text)
    somebody.write("agent.py", "def run(task, env):\n    return 'done'\n")
    somebody.write("world.sql", "CREATE TABLE refunds (id);\n")
    somebody.write(
        "ci-gate.toml",
        '[[suite]]\nname = "x"\ntasks = ["t.toml"]\n[agent]\npython = "agent:run"\n',
    )
    somebody.write(
        "t.toml",
        'id = "hello"\ninstruction = "x"\nfixture = "world.sql"\n'
        '[[graders]]\ntype = "python"\nfunction = "graders:refunded_once"\n',
    )

    printed = somebody.run("ci-gate replay hello")

    assert "NO  python: 0 refunds" in printed, printed


def test_an_output_must_be_the_one_shown():
    """Left out are only the lines for which `...` stands."""
    shown = ["a", "...", "c ... d"]

    assert matches(shown, "a\nb\nb\nc x d\n")
    assert not matches(shown, "a\nb\nc x\n")
    assert not matches(shown, "b\na\nc x d\n")


def test_a_console_block_is_read_command_by_command():
    """What stands under a command is its output."""
    assert [tuple(step) for step in steps("$ a\n1\n$ b\n")] == [("a", ["1"]), ("b", [])]
