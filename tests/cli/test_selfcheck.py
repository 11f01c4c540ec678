"""``selfcheck`` as a user meets it: on a baseline, on files, on runs that it makes."""

from __future__ import annotations

import json

import pytest

NOISY = """\
import os


def run(task, env):
    if task.id != "refusal" and os.urandom(1)[0] < 64:
        return "I am not sure."
    if task.id == "greeting":
        return "Hello {}!".format(task.input["customer"])
    return str(sum(task.input["amounts"])) if task.id == "sum" else "I cannot help with that."
"""


@pytest.fixture
def noisy(repository):
    """Return a repository whose agent slips by the machine's own chance, whatever its seed."""
    (repository.path / "evals/toy_agent.py").write_text(NOISY)
    repository.replace("ci-gate.toml", "# [gate]", "[gate]\ncurtail = false")
    repository.commit("a noisy agent")
    return repository


def run_lines(statuses, *, suite="mine", **header):
    """Return the lines of a run file as another tool writes it."""
    named = {"p": "passed", "f": "failed"}
    head = {"schema": "ci-gate/run@1", "suite": suite, **header}
    trials = [
        {"task": task, "trial": trial, "status": named[one]}
        for task, row in statuses.items()
        for trial, one in enumerate(row)
    ]
    return "".join(json.dumps(line) + "\n" for line in (head, *trials))


def test_runs_are_made_and_measured(noisy):
    """``--runs 4`` runs the suite four times over the same seeds and shows what the gate did."""
    ended = noisy.gate("selfcheck", "--runs", "4", "--json", "found.json")

    found = json.loads((noisy.path / "found.json").read_text())
    assert ended.status == 0, ended.err
    assert "of 4 comparisons" in ended.out
    assert "Always passing (1): refusal" in ended.out
    assert found["schema"] == "ci-gate/selfcheck@1"
    assert found["measurable"] is True
    assert found["runs"] == [f"example.run.jsonl #{number}" for number in (1, 2, 3, 4)]
    assert [len(task["outcomes"]) for task in found["tasks"]] == [4, 4, 4]
    assert {task["task"] for task in found["tasks"] if task["kind"] == "moves"} >= {"greeting"}
    assert noisy.git("status", "--porcelain") == "?? found.json"


@pytest.mark.slow
def test_the_runs_of_the_baseline_are_measured(noisy):
    """Without files the deep baseline's own repeats are held against each other."""
    assert noisy.gate("baseline", "update", "--quiet").status == 0

    ended = noisy.gate("selfcheck", "--json", "-")

    found = json.loads(ended.out)
    assert ended.status == 0
    assert found["false_alarms"]["comparisons"] == 4
    assert found["runs"][0] == "example.json #1"


@pytest.mark.slow
def test_runs_of_the_baseline_and_further_files_are_joined(noisy):
    """A run file is held against the runs of a baseline file; the baseline's own counts once."""
    noisy.gate("baseline", "update", "--quiet")
    noisy.gate("run", "--quiet")
    files = ("baselines/example.json", ".ci-gate/example.run.jsonl")

    ended = noisy.gate("selfcheck", *files, ".ci-gate/deep/example.run.jsonl", "--json", "-")

    found = json.loads(ended.out)
    assert ended.status == 0, ended.err
    assert len(found["runs"]) == 5
    assert sum("counts once" in remark for remark in found["remarks"]) == 4


@pytest.mark.slow
def test_a_function_of_the_seed_is_told_so(repository):
    """Runs of an agent that draws from its seed alone are copies, and nothing is measured."""
    repository.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 0.4")

    ended = repository.gate("selfcheck", "--runs", "3")

    assert ended.status == 3
    assert "not measurable on 3 runs" in ended.out
    assert "All 3 runs are equal, trial by trial" in ended.out


@pytest.mark.slow
def test_an_agent_that_never_fails_is_told_what_that_is_worth(repository):
    """The starter's agent passes throughout: no alarm, and no task says anything of its noise."""
    ended = repository.gate("selfcheck", "--runs", "3")

    assert ended.status == 0
    assert "0 of 3 comparisons were false alarms" in ended.out
    assert "No outcome ever moved" in ended.out


def test_one_run_is_not_measurable(gated):
    """A baseline of one run ends with status 3 and the command that makes more."""
    ended = gated.gate("selfcheck")

    assert ended.status == 3
    assert "With one run there is nothing to hold it against" in ended.out
    assert "ci-gate selfcheck --runs 4" in ended.out


def test_without_runs_and_baseline_the_next_step_is_named(repository):
    """Nothing to measure on is a mistake of usage."""
    ended = repository.gate("selfcheck")

    assert ended.status == 2
    assert "there is no baseline" in ended.err
    assert "ci-gate selfcheck --runs 4" in ended.err


def test_files_of_another_tool_need_no_configuration(place):
    """Three minimal run files and the default policy are enough, and one bad run is an alarm."""
    rows = ({"a": "pppppppp", "b": "pppfpppp"}, {"a": "pppppppf", "b": "pppppppp"})
    for number, row in enumerate((*rows, {"a": "ffffffff", "b": "ffffffff"})):
        (place.path / f"{number}.jsonl").write_text(run_lines(row))

    ended = place.gate("selfcheck", "0.jsonl", "1.jsonl", "2.jsonl")

    assert ended.status == 0, ended.err
    assert "1 of 3 comparisons was a false alarm" in ended.out
    assert "2.jsonl" in ended.out
    assert "policy: the defaults" in ended.out


def test_the_same_files_give_the_same_bytes(place):
    """The figures are a function of the files."""
    for number, row in enumerate(("ppppfppp", "pppppppp", "ppfppppp")):
        (place.path / f"{number}.jsonl").write_text(run_lines({"a": row, "b": row[::-1]}))
    command = ("selfcheck", "0.jsonl", "1.jsonl", "2.jsonl", "--json", "-")

    assert place.gate(*command).out == place.gate(*command).out != ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--runs", "1"), "2<=x<=100"),
        (("--runs", "3", "x.jsonl"), "--runs makes runs, and files were given"),
        (("--jobs", "2"), "nothing is to be run"),
        (("--resume",), "nothing is to be run"),
        (("absent.jsonl",), "absent.jsonl"),
        (("--suite", "absent"), "absent"),
    ],
)
def test_impossible_requests_are_refused(repository, arguments, said):
    """Options that contradict each other, and files and suites that are not there."""
    ended = repository.gate("selfcheck", *arguments)

    assert ended.status == 2
    assert said in ended.err


@pytest.mark.slow
def test_a_part_of_a_run_is_refused(gated):
    """A filtered run is no whole run."""
    gated.gate("run", "--task", "s*", "--quiet")

    ended = gated.gate("selfcheck", "baselines/example.json", ".ci-gate/example.run.jsonl")

    assert ended.status == 2
    assert "holds a part of the suite (--task s*)" in ended.err


def test_a_run_without_trials_is_refused(place):
    """An empty file of another tool says so."""
    (place.path / "x.jsonl").write_text(run_lines({}))

    ended = place.gate("selfcheck", "x.jsonl")

    assert ended.status == 2
    assert "no trials" in ended.err


def test_a_fork_with_secrets_runs_nothing(noisy):
    """Where a fork's code would meet secrets no run is made, as for a check."""
    ended = noisy.gate("selfcheck", "--runs", "2", GITHUB_EVENT_NAME="pull_request_target")

    assert ended.status == 2
    assert not (noisy.path / ".ci-gate").exists()


@pytest.mark.slow
def test_every_suite_is_measured(noisy):
    """Several suites stand in one report and one JSON document."""
    text = (noisy.path / "ci-gate.toml").read_text()
    second = '\n[[suite]]\nname = "second"\ntasks = ["evals/*.toml"]\nseed = "0x2"\n'
    (noisy.path / "ci-gate.toml").write_text(text + second)

    ended = noisy.gate("selfcheck", "--runs", "2", "--json", "-", "--quiet")

    found = json.loads(ended.out)
    assert ended.status == 0, ended.err
    assert found["schema"] == "ci-gate/selfchecks@1"
    assert [one["suite"] for one in found["suites"]] == ["example", "second"]


def test_help_has_an_example(place):
    """The verb is listed, and says how it is used."""
    assert "selfcheck" in place.gate("--help").out
    assert "ci-gate selfcheck --runs 4" in place.gate("selfcheck", "--help").out
