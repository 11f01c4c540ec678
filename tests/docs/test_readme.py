"""The README shows what is there."""

import re
from importlib import resources

from ci_gate.model.verdict import Decision, ExitCode
from tests.docs.pages import ROOT, blocks, page

README = page("README.md")


def _marked(mark: str) -> str:
    (block,) = [block for block in blocks(README) if block.mark == mark]
    return block.text


def test_the_workflow_is_the_one_that_init_writes():
    """The workflow to paste is the starter's, byte for byte."""
    (shown,) = [block.text for block in blocks(README) if block.language == "yaml"]

    starter = resources.files("ci_gate.gate").joinpath("starter", "agent-gate.yml").read_text()

    assert shown == starter


def test_its_commands_are_those_that_the_projects_own_ci_runs():
    """The two marked commands stand in the form in which they are extracted and run."""
    gate = "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/ci-gate check\n"

    assert (_marked("command: gate"), _marked("command: test")) == (gate, ".ci/test\n")


def test_every_verdict_stands_with_its_exit_status():
    """The table of verdicts agrees with the exit codes."""
    rows = dict(
        re.findall(r"^\| (passed|regressed|inconclusive) \| (\d+) \|", README, re.MULTILINE)
    )

    assert rows == {one.value: str(int(ExitCode[one.name])) for one in Decision}


def test_its_images_have_a_description():
    """A picture says in words what it shows."""
    images = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README)

    assert images
    assert all(len(words) > 40 and (ROOT / place).is_file() for words, place in images)
