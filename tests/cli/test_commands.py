"""The other verbs, as a user meets them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.speeds import slow

MINIMAL = [
    {"schema": "ci-gate/run@1", "suite": "mine"},
    *(
        {"task": task, "trial": trial, "status": status}
        for task, statuses in (("a", "pppppppp"), ("b", "ppffffff"))
        for trial, status in enumerate("passed" if char == "p" else "failed" for char in statuses)
    ),
]


def write_run(path, lines):
    """Write a run file as another tool does in ten lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_runs_of_another_tool_are_compared_without_a_configuration(place):
    """Two minimal files and the default policy are enough for a verdict."""
    write_run(place.path / "before.jsonl", MINIMAL)
    worse = [{**line, **({"status": "failed"} if "task" in line else {})} for line in MINIMAL]
    write_run(place.path / "after.jsonl", worse)

    same = place.gate("compare", "before.jsonl", "before.jsonl")
    fell = place.gate("compare", "before.jsonl", "after.jsonl", "--json", "-")

    assert same.status == 0, same.err
    assert fell.status == 1, fell.err
    assert json.loads(fell.out)["verdict"] == "regressed"


def test_the_same_files_give_the_same_bytes(place):
    """The verdict is a pure function of its files."""
    write_run(place.path / "a.jsonl", MINIMAL)
    write_run(place.path / "b.jsonl", [MINIMAL[0], *reversed(MINIMAL[1:])])

    one = place.gate("compare", "a.jsonl", "a.jsonl", "--json", "-", "--quiet")
    other = place.gate("compare", "a.jsonl", "a.jsonl", "--json", "-", "--quiet")
    shuffled = place.gate("compare", "a.jsonl", "b.jsonl", "--json", "-", "--quiet")

    assert one.out == other.out
    assert json.loads(one.out)["tasks"] == json.loads(shuffled.out)["tasks"]


def test_compare_finds_the_baseline_as_check_does(gated):
    """One file is the candidate; the bar is the merge base's."""
    gated.gate("run", "--quiet")

    ended = gated.gate("compare", ".ci-gate/example.run.jsonl")

    assert ended.status == 0
    assert "where HEAD left main" in ended.err


def test_compare_with_a_ref_that_looks_like_an_option(gated):
    """A ref never reaches git as an option."""
    ended = gated.gate("compare", "--baseline-ref=--upload-pack=touch owned", "x.jsonl")

    assert ended.status == 2
    assert not (gated.path / "owned").exists()


def test_run_says_where_its_file_is(repository):
    """``run`` measures and judges nothing."""
    ended = repository.gate("run")

    assert ended.status == 0
    assert "example.run.jsonl" in ended.err
    assert not (repository.path / ".ci-gate/example.verdict.json").exists()


@pytest.mark.slow
def test_an_unfinished_journal_needs_a_decision(repository):
    """Without --resume or --fresh nothing is lost and nothing continued."""
    repository.gate("run", "--quiet")
    path = repository.path / ".ci-gate/example.run.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:10]) + b'{"task":"gree')

    refused = repository.gate("run", "--quiet")
    resumed = repository.gate("run", "--resume")

    assert refused.status == 2
    assert "--resume" in refused.err
    assert resumed.status == 0
    assert "torn line" in resumed.err
    assert sorted(strip_timing(path.read_bytes())) == sorted(strip_timing(b"".join(whole)))


def test_a_journal_with_a_foreign_trial_is_refused_before_the_first(repository):
    """Its footer could not be written at the end, and all trials would have been for nothing."""
    repository.gate("run", "--quiet")
    path = repository.path / ".ci-gate/example.run.jsonl"
    head, first, *_ = path.read_text().splitlines(keepends=True)
    line = json.loads(first)
    path.write_text(head + json.dumps({**line, "task_digest": "sha256:other"}) + "\n")

    resumed = repository.gate("run", "--resume")

    assert resumed.status == 2
    assert f"trial {line['trial']} of task {line['task']} has task_digest" in resumed.err
    assert path.read_text().count("\n") == 2


def strip_timing(content: bytes) -> list[str]:
    """Return the trial lines without what differs between two runs."""
    lines = [json.loads(line) for line in content.splitlines()]
    return [
        json.dumps({**line, "duration_s": None, "created": None}, sort_keys=True) for line in lines
    ]


def test_a_baseline_is_shown_diffed_and_followed(gated):
    """Three views of the bar go to standard output."""
    gated.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 0.3")
    gated.gate("baseline", "update", "--quiet")
    gated.commit("raise the bar\u202e ##[error]x")

    shown = gated.gate("baseline", "show")
    differs = gated.gate("baseline", "diff", "main")
    past = gated.gate("baseline", "history")

    assert "pass^8  " in shown.out
    assert "other outcomes" in differs.out
    assert past.out.count("\n  - ") == 2
    assert "set the bar\n" in past.out
    assert r"raise the bar\u202e # #[error]x" in past.out
    assert (shown.status, differs.status, past.status) == (0, 0, 0)


def test_an_update_that_changes_nothing_writes_nothing(gated):
    """The same outcomes leave the file as it is."""
    path = gated.path / "baselines/example.json"
    before = (path.read_bytes(), path.stat().st_mtime_ns)

    ended = gated.gate("baseline", "update")

    assert "nothing changed" in ended.err
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.slow
def test_a_dead_baseline_is_refused_unless_forced(repository):
    """A bar that nothing passes can serve nobody."""
    repository.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 1.0")

    refused = repository.gate("baseline", "update", "--quiet")
    kept = (repository.path / "baselines").exists()
    forced = repository.gate("baseline", "update", "--quiet", "--force", "--fresh")

    assert (refused.status, kept) == (2, False)
    assert "not a single trial passed" in refused.err
    assert forced.status == 0
    assert '"forced":true' in (repository.path / "baselines/example.json").read_text()


def test_replay_of_an_unknown_task_names_the_nearest(repository):
    """A typing error is answered by what was meant."""
    ended = repository.gate("replay", "greating")

    assert ended.status == 2
    assert "Did you mean 'greeting'?" in ended.err


def test_a_stored_verdict_is_rendered_again(gated):
    """``report`` shows what ``check`` decided, in any form."""
    gated.gate("check", "--quiet", "--markdown", "one.md")

    again = gated.gate("report", ".ci-gate/example.verdict.json", "--format", "markdown")

    assert again.status == 0
    assert again.out == (gated.path / "one.md").read_text()


@pytest.mark.parametrize("name", [*slow("config", "run", "verdict"), "baseline"])
def test_schemas_are_json_schemas(place, name):
    """Each schema is valid against the draft it names."""
    import jsonschema

    printed = json.loads(place.gate("schema", name).out)

    jsonschema.Draft202012Validator.check_schema(printed)


def test_every_help_has_an_example(place):
    """A reader of --help can paste something."""
    for verb in ("init", "check", "run", "compare", "replay", "baseline", "report", "schema"):
        assert "Example:" in place.gate(verb, "--help").out, verb


def test_help_and_version_load_no_heavy_library():
    """The start of the command stays fast."""
    code = (
        "import sys, ci_gate.cli\n"
        "heavy = {'numpy', 'scipy', 'git', 'jinja2', 'rich', 'msgspec'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_verb_is_a_usage_error(place):
    """Words that are no verb exit 2."""
    ended = place.gate("chekc")

    assert ended.status == 2
    assert "chekc" in ended.err


@pytest.mark.slow
def test_the_replay_command_finds_the_right_suite(gated):
    """Two suites may have tasks of one id; the printed command repeats the one that is meant."""
    gated.git("switch", "--quiet", "main")
    gated.replace(
        "ci-gate.toml",
        "[agent]\n",
        '[[suite]]\nname = "second"\ntasks = ["evals/*.toml"]\nseed = "0x77"\n\n[agent]\n',
    )
    gated.gate("baseline", "update", "--quiet")
    gated.commit()
    gated.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 0.9")

    ended = gated.gate("check", "--json", "-", "--config", "ci-gate.toml")

    second = next(one for one in json.loads(ended.out)["suites"] if one["suite_name"] == "second")
    replay = next(task["replay"][0] for task in second["tasks"] if task["replay"])
    again = gated.gate(*replay["command"].split()[1:])
    assert "--suite second --config ci-gate.toml" in replay["command"]
    assert replay["seed"] in again.out
    assert again.status == 1


def test_given_runs_are_held_to_their_word_as_well(repository):
    """``baseline update RUN`` refuses a run in which repeats of a seed differ."""
    repository.replace("ci-gate.toml", "# deterministic = false", "deterministic = true")
    lines = [
        {"schema": "ci-gate/run@1", "suite": "example"},
        {"task": "greeting", "trial": 0, "status": "passed", "repeat": 0},
        {"task": "greeting", "trial": 0, "status": "failed", "repeat": 1},
    ]
    write_run(repository.path / "r.run.jsonl", lines)

    ended = repository.gate("baseline", "update", "r.run.jsonl")

    assert ended.status == 2
    assert "deterministic = true" in ended.err
    assert not (repository.path / "baselines").exists()


@pytest.mark.slow
def test_a_folder_that_exists_is_not_hidden_from_git(repository):
    """Only a folder made for results ignores itself; ``--output .`` hides nobody's files."""
    before = (repository.path / ".gitignore").read_text()

    repository.gate("run", "--quiet", "--output", ".")

    assert (repository.path / ".gitignore").read_text() == before


@pytest.mark.slow
def test_results_are_no_part_of_the_agent(place):
    """Without git every file counts as the agent's, but not what the gate writes itself."""
    place.gate("init")
    place.gate("run", "--quiet", "--output", "evals/out")
    path = place.path / "evals/out/example.run.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))

    resumed = place.gate("run", "--resume", "--quiet", "--output", "evals/out")

    assert resumed.status == 0, resumed.err


def test_options_of_a_run_do_not_go_with_given_runs(repository):
    """An option that would be ignored is refused."""
    write_run(repository.path / "r.run.jsonl", MINIMAL)

    ended = repository.gate("baseline", "update", "r.run.jsonl", "--trials", "8")

    assert ended.status == 2
    assert "--trials" in ended.err


def test_a_bar_that_no_check_could_use_is_not_set(repository):
    """Repeats are no further seeds: what ``check`` refuses, ``baseline update`` refuses."""
    repository.replace("evals/example.toml", 'id = "sum"', 'id = "sum"\ntrials = 2')

    update = repository.gate("baseline", "update", "--quiet")
    check = repository.gate("check", "--quiet")

    assert (update.status, check.status) == (2, 2)
    assert "task 'sum' has 2 trials" in update.err


@pytest.mark.slow
def test_several_suites_have_the_worst_verdict_in_advisory_mode_too(gated):
    """The status is 0 for both; the verdict of the file is still the worst."""
    gated.git("switch", "--quiet", "main")
    gated.replace("ci-gate.toml", "# [gate]", '[gate]\nmode = "advisory"')
    gated.replace(
        "ci-gate.toml",
        "[[suite]]",
        '[[suite]]\nname = "another"\ntasks = ["evals/*.toml"]\n\n[[suite]]',
    )
    gated.commit()
    gated.replace("evals/toy_agent.py", "SLIP = 0.05", "SLIP = 0.9")

    ended = gated.gate("check", "--json", "-", "--quiet")

    several = json.loads(ended.out)
    assert (ended.status, several["exit_code"]) == (0, 0)
    assert several["verdict"] == "regressed"
