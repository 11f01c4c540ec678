"""The gate end to end: from ``init`` to a verdict, as a user meets it."""

from __future__ import annotations

import json

import pytest

from tests.speeds import slow

BROKEN = ("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 0.6")


def verdict(place) -> dict:
    """Return the verdict that the last check kept."""
    return json.loads((place.path / ".ci-gate/example.verdict.json").read_text())


def codes(place) -> set[str]:
    """Return the reason codes of the last check."""
    return {reason["code"] for reason in verdict(place)["reasons"]}


def test_a_new_repository_passes_without_a_baseline_and_says_how_to_make_one(place):
    """No commit, no network, no baseline: exit 0, and the next step is named."""
    place.gate("init")

    ended = place.gate("check")

    assert ended.status == 0
    assert "ci-gate baseline update" in ended.err
    assert ended.out == ""
    assert codes(place) == {"no-baseline"}


def test_an_unchanged_agent_is_green(gated):
    """The same agent against its own baseline passes and says what it could have seen."""
    ended = gated.gate("check")

    assert ended.status == 0, ended.err
    assert "would have seen a drop" in ended.err
    assert verdict(gated)["verdict"] == "passed"


def test_a_broken_agent_is_red_and_each_seed_replays(gated):
    """The command that the report prints fails on the same trial."""
    gated.replace(*BROKEN)

    ended = gated.gate("check")

    assert ended.status == 1, ended.err
    red = verdict(gated)
    replays = [r for task in red["tasks"] for r in task["replay"]]
    assert replays
    command = replays[0]["command"].split()
    assert command[0] == "ci-gate"
    replayed = gated.gate(*command[1:])
    assert replayed.status == 1
    assert "I am not sure." in replayed.out
    assert replays[0]["seed"] in replayed.out


@pytest.mark.slow
def test_results_stay_out_of_git(gated):
    """The folder of results ignores itself."""
    gated.gate("check", "--quiet")

    assert gated.git("status", "--porcelain") == ""


def test_the_baseline_is_the_merge_bases_and_not_the_working_trees(gated):
    """A bar that was lowered in the working tree does not count; the report says whose it is."""
    gated.replace(*BROKEN)
    gated.gate("baseline", "update", "--quiet")

    ended = gated.gate("check")

    assert ended.status == 1
    assert "where HEAD left main" in ended.err
    assert "working tree has another baseline" in " ".join(verdict(gated)["warnings"])


def test_in_a_pull_request_an_edited_baseline_is_red(gated):
    """A change that brings its own bar along is told so, whatever its outcomes."""
    gated.replace("baselines/example.json", "+++", "++-")
    gated.commit()

    ended = gated.gate("check", CI_GATE_BASE_REF="refs/heads/main")

    assert ended.status == 1
    assert "baseline-edited" in codes(gated)


@pytest.mark.slow
def test_in_a_pull_request_a_deleted_baseline_is_red(gated):
    """Removing the bar does not remove the gate."""
    (gated.path / "baselines/example.json").unlink()
    gated.commit()

    ended = gated.gate("check", CI_GATE_BASE_REF="refs/heads/main")

    assert ended.status == 1
    assert "baseline-missing" in codes(gated)


@pytest.mark.slow
def test_a_policy_edited_by_the_change_is_shown_and_not_used(gated):
    """A pull request cannot make its own gate milder."""
    gated.replace("ci-gate.toml", "# [gate]", "[gate]")
    gated.replace("ci-gate.toml", '# mode = "blocking"', 'mode = "advisory"')
    gated.replace(*BROKEN)
    gated.commit()

    ended = gated.gate("check", CI_GATE_BASE_REF="refs/heads/main")

    assert ended.status == 1
    assert any("gate.mode" in warning for warning in verdict(gated)["warnings"])


def test_advisory_mode_reports_everything_and_exits_0(gated):
    """Teams that are not ready to block see the verdict all the same."""
    gated.git("switch", "--quiet", "main")
    gated.replace("ci-gate.toml", "# [gate]", "[gate]")
    gated.replace("ci-gate.toml", '# mode = "blocking"', 'mode = "advisory"')
    gated.commit()
    gated.replace(*BROKEN)

    ended = gated.gate("check")

    assert ended.status == 0
    assert verdict(gated)["verdict"] == "regressed"


@pytest.mark.slow
def test_a_removed_task_is_red_and_an_edited_one_inconclusive(gated):
    """A suite that shrinks or changes cannot pass unseen."""
    text = (gated.path / "evals/example.toml").read_text()
    head, _, _ = text.rpartition("[[task]]")
    (gated.path / "evals/example.toml").write_text(head)
    removed = gated.gate("check")
    removed_codes = codes(gated)
    (gated.path / "evals/example.toml").write_text(text.replace("Greet the", "Please greet the"))

    edited = gated.gate("check")

    assert (removed.status, edited.status) == (1, 3)
    assert "tasks-removed" in removed_codes
    assert "tasks-changed" in codes(gated)


def test_a_filter_restricts_both_sides_and_marks_the_verdict(gated):
    """``--task`` judges a part and says that it is one."""
    ended = gated.gate("check", "--task", "gree*")

    assert ended.status == 0
    assert verdict(gated)["partial"] is True
    assert [task["task"] for task in verdict(gated)["tasks"]] == ["greeting"]


@pytest.mark.slow
def test_reports_go_where_they_are_asked_for(gated, tmp_path):
    """A file for each form, and standard output for a dash."""
    ended = gated.gate(
        "check",
        "--quiet",
        "--json",
        "-",
        "--markdown",
        "a/c.md",
        "--junit",
        str(tmp_path / "j.xml"),
    )

    assert json.loads(ended.out)["schema"] == "ci-gate/verdict@1"
    assert (gated.path / "a/c.md").read_text().startswith("## ")
    assert (tmp_path / "j.xml").read_text().startswith("<?xml")
    assert ended.err == ""


def test_an_unchanged_agent_need_not_run(gated):
    """With ``skip_unchanged`` equal digests pass without a trial."""
    gated.git("switch", "--quiet", "main")
    gated.replace("ci-gate.toml", "# [gate]", "[gate]\nskip_unchanged = true")
    gated.commit()

    ended = gated.gate("check")

    assert ended.status == 0
    assert "unchanged-agent" in codes(gated)
    assert verdict(gated)["trials"]["run"] == 0


def test_two_suites_give_the_worst_verdict(gated):
    """One red suite makes the check red; both are reported."""
    gated.git("switch", "--quiet", "main")
    gated.replace(
        "ci-gate.toml",
        "[agent]\n",
        '[[suite]]\nname = "second"\ntasks = ["evals/*.toml"]\n\n[agent]\n',
    )
    gated.commit()
    gated.replace(*BROKEN)

    ended = gated.gate("check", "--json", "-")

    both = json.loads(ended.out)
    assert ended.status == 1
    assert {one["suite_name"]: one["verdict"] for one in both["suites"]} == {
        "example": "regressed",
        "second": "passed",
    }


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (('python = "toy_agent:run"', 'python = "toy_agent:nothing"'), "toy_agent"),
        *slow((('python = "toy_agent:run"', 'python = "no_such:run"'), "no_such")),
        (("trials = 8", "trials = 4"), "pass^8"),
        (("evals/*.toml", "nowhere/*.toml"), "nowhere/*.toml"),
        (("seed = ", "sead = "), "seed"),
        (("trials = 8", 'trials = "8"'), "trials"),
        (("[[suite]]", "[[suite]"), "TOML"),
    ],
)
def test_bad_configuration_is_a_message_with_exit_2(repository, edit, message):
    """The message names what is wrong; nothing is written and no traceback shown."""
    repository.replace("ci-gate.toml", *edit)
    repository.commit()

    ended = repository.gate("check")

    assert ended.status == 2
    assert message in ended.err
    assert "Traceback (most recent call last)" not in ended.err
    assert not list(repository.path.glob(".ci-gate/*.json*"))


@pytest.fixture
def deterministic(repository):
    """Return a repository whose suite calls itself deterministic, with one trial a task."""
    repository.replace("ci-gate.toml", "# deterministic = false", "deterministic = true")
    repository.replace("ci-gate.toml", "trials = 8", "trials = 1")
    repository.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 0.0")
    assert repository.gate("baseline", "update", "--quiet").status == 0
    repository.commit("set the bar")
    return repository


def test_a_deterministic_suite_is_judged_by_single_flips(deterministic):
    """One trial that passed and now fails is a regression, with n = 1."""
    green = deterministic.gate("check")
    deterministic.replace("evals/toy_agent.py", "Hello {}!", "Hello!")

    red = deterministic.gate("check")

    assert (green.status, red.status) == (0, 1), red.err
    assert "flip" in codes(deterministic)


@pytest.mark.slow
def test_a_suite_that_only_says_it_is_deterministic_is_refused(deterministic):
    """Two runs of one seed that differ are named instead of being judged."""
    deterministic.replace(
        "evals/toy_agent.py",
        "    if env.rng.random() < SLIP:",
        "    marker = __import__('pathlib').Path('../ran')\n"
        "    marker.touch() if (again := marker.exists()) is False else None\n"
        "    if again:",
    )

    ended = deterministic.gate("check")

    assert ended.status == 2
    assert "deterministic = true" in ended.err
    assert "trial 0" in ended.err


@pytest.mark.slow
def test_the_label_lets_a_pull_request_move_the_bar(gated):
    """Labelled, an edited baseline and policy take effect, and what was accepted is said."""
    gated.replace(*BROKEN)
    gated.gate("baseline", "update", "--quiet")
    gated.replace("ci-gate.toml", "max_errored_rate = 0.05", "max_errored_rate = 0.04")
    gated.replace("ci-gate.toml", "# max_errored_rate", "max_errored_rate")
    gated.commit()

    unlabelled = gated.gate("check", CI_GATE_BASE_REF="refs/heads/main")
    labelled = gated.gate("check", CI_GATE_BASE_REF="refs/heads/main", CI_GATE_LABELLED="true")

    assert (unlabelled.status, labelled.status) == (1, 0), labelled.err
    assert codes(gated) - {"curtailed"} == {"bar-moved"}
    warnings = " ".join(verdict(gated)["warnings"])
    assert "Accepted by the label" in warnings
    assert "in effect by the label" in warnings


def test_the_label_counts_in_pull_requests_only(gated):
    """A variable in somebody's shell does not move the bar."""
    gated.replace(*BROKEN)

    assert gated.gate("check", CI_GATE_LABELLED="true").status == 1


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run"])
@pytest.mark.parametrize("verb", [("check",), ("run",), ("baseline", "update")])
def test_an_agent_never_runs_where_forks_get_secrets(gated, event, verb):
    """Privileged events are refused before anything of the change runs."""
    ended = gated.gate(*verb, GITHUB_EVENT_NAME=event)

    assert ended.status == 2
    assert event in ended.err
    assert not (gated.path / ".ci-gate").exists()


@pytest.mark.slow
def test_a_suite_that_a_pull_request_adds_is_run_and_reported(gated):
    """A new suite needs no bar on the base branch."""
    gated.replace(
        "ci-gate.toml",
        "[agent]\n",
        '[[suite]]\nname = "second"\ntasks = ["evals/*.toml"]\n\n[agent]\n',
    )
    gated.commit()

    ended = gated.gate("check", "--json", "-", CI_GATE_BASE_REF="refs/heads/main")

    both = json.loads(ended.out)["suites"]
    assert ended.status == 0
    assert [one["suite_name"] for one in both] == ["example", "second"]
    assert both[1]["reasons"][0]["code"] == "no-baseline"


@pytest.mark.slow
def test_a_removed_suite_with_a_baseline_is_red(gated):
    """Renaming a suite does not shake its bar off."""
    gated.replace("ci-gate.toml", 'name = "example"', 'name = "renamed"')
    gated.commit()

    ended = gated.gate("check", CI_GATE_BASE_REF="refs/heads/main")

    assert ended.status == 1
    assert "baseline-missing" in codes(gated)


@pytest.mark.slow
def test_without_a_baseline_the_working_trees_configuration_counts(repository):
    """A newcomer who edits the committed starter is not held to it."""
    repository.replace("ci-gate.toml", 'name = "example"', 'name = "desk"')

    ended = repository.gate("check")

    assert ended.status == 0
    assert (repository.path / ".ci-gate/desk.verdict.json").exists()
    assert not (repository.path / ".ci-gate/example.verdict.json").exists()


@pytest.mark.slow
def test_the_reason_of_errored_trials_is_shown(repository):
    """A missing key or a dead server is named in the report."""
    repository.replace(
        "ci-gate.toml", "# environment_errors = []", 'environment_errors = ["KeyError"]'
    )
    repository.replace("ci-gate.toml", "# [run]", "[run]")
    repository.replace("ci-gate.toml", "# retries = 3", "retries = 0")
    repository.replace(
        "evals/toy_agent.py",
        "    if env.rng",
        '    import os\n    os.environ["NO_SUCH_KEY_HERE"]\n    if env.rng',
    )

    ended = repository.gate("check")

    assert ended.status == 3
    assert "NO_SUCH_KEY_HERE" in ended.err
    assert "NO_SUCH_KEY_HERE" in (repository.path / ".ci-gate/example.report.md").read_text()


def test_an_unknown_verb_names_the_nearest(place):
    """A typing error is answered by what was meant."""
    ended = place.gate("chekc")

    assert ended.status == 2
    assert "Did you mean 'check'?" in ended.err


@pytest.mark.slow
def test_waiting_trials_of_one_worker_never_wait_for_each_other(place):
    """Inline: a call that waits may read what woke the loop; no trial is lost by that."""
    place.gate("init")
    place.replace("ci-gate.toml", '# interpreter = "auto"', 'isolation = "inline" #')
    place.replace("ci-gate.toml", "# timeout_s = 120", "timeout_s = 5")
    (place.path / "evals/example.toml").unlink()
    place.replace("ci-gate.toml", "evals/*.toml", "evals/*.jsonl")
    tasks = [
        {"id": f"t{n}", "instruction": "-", "graders": [{"type": "answer", "equals": "ok"}]}
        for n in range(60)
    ]
    (place.path / "evals/many.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    (place.path / "evals/toy_agent.py").write_text(
        "import asyncio\n"
        "async def run(task, env):\n"
        "    await asyncio.sleep(0.01)\n"
        "    env.kv.set('seen', task.id)\n"
        "    await asyncio.sleep(0.001)\n"
        "    return 'ok' if env.kv.get('seen') == task.id else 'mixed up'\n"
    )

    ended = place.gate("check", "--jobs", "64", "--json", "-", "--quiet")

    assert json.loads(ended.out)["metrics"]["pass^1"]["candidate"] == 1.0


def test_a_broken_new_baseline_does_not_pass_under_the_label(gated):
    """What the label lets in must be able to serve the next change."""
    (gated.path / "baselines/example.json").write_text("{}")
    gated.commit()

    ended = gated.gate("check", CI_GATE_BASE_REF="refs/heads/main", CI_GATE_LABELLED="true")

    assert ended.status == 2
    assert "baselines/example.json of this change" in ended.err


@pytest.mark.slow
def test_the_report_shows_the_bar_moving_task_by_task(gated):
    """A reviewer of a labelled pull request sees what the new bar gives up."""
    gated.replace(*BROKEN)
    gated.gate("baseline", "update", "--quiet")
    gated.commit()

    gated.gate("check", CI_GATE_BASE_REF="refs/heads/main", CI_GATE_LABELLED="true")

    moves = [one for one in verdict(gated)["warnings"] if one.startswith("The bar moves")]
    assert any("pass^8 from 100.0 % to" in one for one in moves)
    assert any("greeting from 8/8 to" in one for one in moves)


@pytest.mark.slow
def test_a_branch_behind_its_base_is_told_to_catch_up(gated):
    """An untouched branch is not advised to undo what its base has moved on to."""
    gated.git("switch", "--quiet", "main")
    gated.replace("evals/example.toml", "Greet the", "Please greet the")
    gated.commit("edit a task")
    gated.git("switch", "--quiet", "change")

    gated.gate("check", CI_GATE_BASE_REF="refs/heads/main")

    assert any("bring it up to date" in warning for warning in verdict(gated)["warnings"])


@pytest.mark.slow
def test_uncommitted_changes_of_the_agent_are_said(gated):
    """A digest of tracked files may not tell two states of a working tree apart."""
    gated.replace(*BROKEN)

    ended = gated.gate("check")

    assert "uncommitted changes" in " ".join(verdict(gated)["warnings"]), ended.err


@pytest.mark.slow
def test_the_printed_command_repeats_the_trial_of_an_edited_policy(gated):
    """``replay`` takes seed and faults from where ``check`` takes them."""
    gated.replace("ci-gate.toml", 'seed = "0x20261030"', 'seed = "0x99"')
    gated.replace(*BROKEN)
    gated.commit()
    gated.gate("check")
    replay = next(task["replay"][0] for task in verdict(gated)["tasks"] if task["replay"])

    again = gated.gate(*replay["command"].split()[1:])

    assert replay["seed"] in again.out
    assert again.status == 1


@pytest.mark.slow
def test_a_quarantine_of_another_suites_task_is_no_mistake(gated):
    """Each suite is told of its own quarantines only."""
    gated.git("switch", "--quiet", "main")
    gated.replace(
        "ci-gate.toml",
        "[agent]\n",
        '[[suite]]\nname = "second"\ntasks = ["evals/second.jsonl"]\n\n[agent]\n',
    )
    gated.replace(
        "ci-gate.toml",
        "# [baseline]"
        if "# [baseline]" in (gated.path / "ci-gate.toml").read_text()
        else "[baseline]",
        '[[gate.quarantine]]\ntask = "only-here"\nowner = "desk"\nuntil = 2099-01-01\n\n[baseline]',
    )
    (gated.path / "evals/second.jsonl").write_text(
        '{"id": "only-here", "instruction": "-", "graders": [{"type": "answer", "contains": "."}]}'
    )
    gated.commit()

    ended = gated.gate("check", "--json", "-", "--quiet")

    warnings = [one for suite in json.loads(ended.out)["suites"] for one in suite["warnings"]]
    assert not [one for one in warnings if "quarantine" in one]


def test_a_flood_of_mistakes_is_bounded(repository):
    """The first mistakes are shown and the rest counted."""
    lines = ["[[task]]\nid = 1"] * 400
    (repository.path / "evals/bad.toml").write_text("\n".join(lines))

    ended = repository.gate("check")

    assert ended.status == 2
    assert len(ended.err.splitlines()) < 120
    assert " more" in ended.err.splitlines()[-1]
