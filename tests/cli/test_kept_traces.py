"""Traces kept with the baseline: made, read from the base commit, played, shown on a red gate."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from ci_gate.gate.kept import find_kept, kept_of
from ci_gate.gate.kept_play import play
from ci_gate.gate.project import Word, open_project
from ci_gate.gate.suites import configured_suite
from tests.places import Place

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

CONFIG = """\
[[suite]]
name = "desk"
tasks = ["evals/*.toml"]
seed = 7
trials = 6

[agent]
python = "desk:run"

[gate]
metrics = ["pass^1"]

[baseline]
repeats = 1
keep_traces = true
"""
TASKS = """\
[[task]]
id = "refund/1"
instruction = "Refund it."
fixture = "world.sql"

[[task.graders]]
type = "sql"
query = "SELECT cents FROM refund"
equals = [[1200]]

[[task]]
id = "look"
instruction = "Look it up."

[[task.graders]]
type = "answer"
equals = "12"
"""
AGENT = """\
CENTS = 1200


def run(task, env):
    @env.tools.add
    def refund(cents, note):
        with env.world.connect() as connection:
            connection.execute("INSERT INTO refund VALUES (?)", (cents,))
        return "done"

    if task["id"] == "look":
        return env.call("tool", "look_up", lambda order: "12", order=7)
    env.kv.set("said", "<b>yes</b> @octocat")
    env.tools.call("refund", cents=CENTS, note="::error::x `y` </code> @octocat")
    return "refunded"
"""
KEPT = "baselines/desk.traces"


@pytest.fixture(scope="session")
def kept_once(tmp_path_factory) -> Place:
    place = Place(tmp_path_factory.mktemp("kept") / "place")
    (place.path / "evals").mkdir(parents=True)
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "evals" / "desk.toml").write_text(TASKS)
    (place.path / "evals" / "world.sql").write_text("CREATE TABLE refund (cents INTEGER);\n")
    (place.path / "desk.py").write_text(AGENT)
    (place.path / ".gitignore").write_text("__pycache__/\n.ci-gate/\n")
    place.git("init", "--quiet", "--initial-branch=main")
    place.commit("set up")
    ended = place.gate("baseline", "update")
    assert ended.status == 0, ended.err
    (place.path / "said").write_text(ended.err)
    return place


@pytest.fixture
def desk(place, kept_once):
    """A repository on a branch off main, whose baseline and kept traces are committed there."""
    shutil.copytree(kept_once.path, place.path, dirs_exist_ok=True)
    (place.path / "said").unlink()
    shutil.rmtree(place.path / ".ci-gate")
    place.commit("set the bar")
    place.git("switch", "--quiet", "--create", "change")
    return place


def traces(place):
    """Return the kept traces of a place, by folder of the task."""
    return {path.parent.name: path for path in (place.path / KEPT).glob("*/*.jsonl")}


def test_an_update_keeps_a_passing_trace_of_each_task(kept_once):
    """With the contents that its states refer to, and the size is said."""
    kept = traces(kept_once)

    assert sorted(name.partition("-")[0] for name in kept) == ["look", "refund"]
    assert {path.name for path in kept.values()} == {"0.jsonl"}
    assert len(list((kept_once.path / KEPT / ".contents").glob("*/*"))) == 2
    assert "desk.traces (kept: 2 of 2 tasks, " in (kept_once.path / "said").read_text()
    assert kept_once.gate("trace", "verify", *map(str, kept.values())).status == 0
    assert sorted(path.name for path in (kept_once.path / "baselines").iterdir()) == [
        *("desk.anchor.json", "desk.json", "desk.traces"),
    ]


@pytest.mark.slow
def test_a_further_run_of_the_same_agent_moves_no_kept_trace(desk):
    """A review shows what moved and nothing else."""
    ended = desk.gate("baseline", "update")

    assert ended.status == 0
    assert "(kept as they were: 2 of 2 tasks" in ended.err
    assert desk.git("status", "--porcelain", KEPT) == ""


@pytest.mark.slow
def test_another_agent_renews_them_and_a_task_that_is_gone_takes_its_trace_along(desk):
    """The folder always belongs to the baseline beside it."""
    (desk.path / "evals" / "desk.toml").write_text(TASKS[: TASKS.index('[[task]]\nid = "look"')])
    desk.replace("desk.py", 'env.kv.set("said", ', 'env.kv.set("told", ')

    assert desk.gate("baseline", "update", "--quiet").status == 0

    [path] = traces(desk).values()
    assert path.parent.name.startswith("refund-1-")
    assert "told" in path.read_text()
    desk.commit("move the bar")
    assert desk.gate("trace", "check", "--baseline-ref", "HEAD").status == 0


@pytest.mark.slow
def test_a_change_that_makes_the_same_calls_follows_every_kept_trace(desk):
    """Nothing is called, graded or written."""
    ended = desk.gate("trace", "check")

    assert ended.status == 0, ended.err
    assert "  ok  look\n  ok  refund/1\n" in ended.out
    assert desk.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_a_changed_call_is_named_with_what_changed(desk):
    """The first drift of each task, as JSON too."""
    desk.replace("desk.py", "CENTS = 1200", "CENTS = 1")

    shown, asked = desk.gate("trace", "check"), desk.gate("trace", "check", "--json")

    drift = "drift at call 2: tool refund has another input, at $.cents: 1200 is now 1"
    assert shown.status == asked.status == 1
    assert f"  ok  look\n  NO  refund/1: {drift}\n" in shown.out
    found = json.loads(asked.out)["traces"]
    assert (found["kept"], found["played"], found["unplayed"]) == (2, 2, [])
    assert [(one["task"], one["trial"], one["drift"]) for one in found["drifted"]] == [
        ("refund/1", 0, drift)
    ]


@pytest.mark.slow
def test_a_lost_call_says_why_it_was_lost(desk):
    """An agent that breaks makes no further call."""
    desk.replace("desk.py", '    env.tools.call("refund"', '    1 / 0\n    env.tools.call("refund"')

    ended = desk.gate("trace", "check", "--task", "refund*")

    assert "drift at call 2: tool refund was recorded and is not made now (Zero" in ended.out


def test_a_damaged_trace_and_an_edited_task_are_not_played(desk):
    """A trace of something else would prove nothing."""
    path = next(path for name, path in traces(desk).items() if name.startswith("refund"))
    path.write_text(path.read_text().replace('"done"', '"dOne"'))
    desk.commit("damage")
    desk.git("switch", "--quiet", "--create", "next")
    desk.replace("evals/desk.toml", "Look it up.", "Look it up!")

    ended = desk.gate("trace", "check", "--baseline-ref", "change")

    assert ended.status == 1
    assert "??  look: the task was edited since" in ended.out
    assert "??  refund/1: it is no whole trace: call 2 was changed" in ended.out


def test_without_kept_traces_a_check_of_them_is_refused(desk):
    """Silence would look like consistency."""
    shutil.rmtree(desk.path / KEPT)
    desk.commit("none")

    ended = desk.gate("trace", "check", "--baseline-ref", "HEAD")

    assert ended.status == 2
    assert "there are no kept traces. Set keep_traces = true" in ended.err


@pytest.mark.slow
def test_a_pull_request_does_not_bring_its_own_traces(desk):
    """They are the base commit's, by object id, whatever stands in the working tree."""
    desk.replace("desk.py", "CENTS = 1200", "CENTS = 1")
    for path in traces(desk).values():
        path.write_text(path.read_text().replace("1200", "1"))
    desk.commit("a change and traces to its taste")

    ended = desk.gate("trace", "check", CI_GATE_BASE_REF=desk.git("rev-parse", "main"))

    assert ended.status == 1
    assert "at $.cents: 1200 is now 1" in ended.out


@pytest.fixture(scope="session")
def red(kept_once, tmp_path_factory):
    """The same after a change that refunds another amount, checked; and what was printed."""
    place = Place(tmp_path_factory.mktemp("red") / "place")
    shutil.copytree(kept_once.path, place.path)
    place.commit("set the bar")
    place.git("switch", "--quiet", "--create", "change")
    place.replace("desk.py", "CENTS = 1200", "CENTS = 1")
    ended = place.gate("check", "--json", "verdict.json")
    assert ended.status == 1, ended.err
    return place, ended.err


def test_a_red_gate_shows_where_passing_and_failing_trials_part(red):
    """The same seed, both calls, what differs in them, and the command for all of it."""
    desk, said = red
    traces = json.loads((desk.path / "verdict.json").read_text())["traces"]

    [parting] = traces["partings"]
    assert (parting["task"], parting["same_seed"]) == ("refund/1", True)
    assert (parting["baseline_trial"], parting["candidate_trial"]) == (0, 0)
    assert parting["parting"]["kind"] == "arguments-changed"
    assert parting["parting"]["differences"] == [
        {"path": "$.cents", "baseline": "1200", "candidate": "1"}
    ]
    assert "after 1 call the same call has other arguments" in said
    assert "    - call 2: tool refund(cents=1200, note=" in said
    assert "    + call 2: tool refund(cents=1, note=" in said
    assert parting["command"] in said


def test_the_command_for_more_can_be_run(red):
    """Its paths are those of the project's folder."""
    desk, _ = red
    [parting] = json.loads((desk.path / "verdict.json").read_text())["traces"]["partings"]

    ended = desk.gate(*parting["command"].split()[1:])

    assert ended.status == 1
    assert "the same call has other arguments" in ended.out


def test_kept_traces_are_played_before_the_first_trial(red):
    """What they show is said before the run, and in the report after it."""
    desk, said = red
    report = (desk.path / ".ci-gate" / "desk.report.md").read_text()

    sentence = "1 of 2 kept traces: the agent makes other calls. First drift: refund/1, drift at"
    assert said.index(sentence) < said.index("Regressed: desk")
    assert "Kept traces (1 of 2 drifted)" in report
    assert json.loads((desk.path / "verdict.json").read_text())["traces"]["kept"]["played"] == 2


@pytest.mark.slow
def test_a_named_baseline_has_no_kept_traces(desk):
    """Those of the repository are of another baseline."""
    desk.replace("desk.py", "CENTS = 1200", "CENTS = 1")

    ended = desk.gate("check", "--baseline", "baselines/desk.json", "--json", "-")

    assert ended.status == 1
    assert json.loads(ended.out)["traces"] is None


@pytest.mark.slow
def test_results_that_a_workflow_uploads_are_fetched_first(desk):
    """Only where a variable says that they are; else no command pretends to know."""
    desk.replace("desk.py", "CENTS = 1200", "CENTS = 1")
    run = {"GITHUB_RUN_ID": "77", "GITHUB_REPOSITORY": "o/r", "CI_GATE_ARTIFACT": "a run"}

    ended = desk.gate("check", **run)

    download = "gh run download 77 -n 'a run' -D ci-gate-run-77 -R o/r"
    fetch = f"test -d ci-gate-run-77 || {download} &&"
    replay = "ci-gate replay --artifact ci-gate-run-77 refund/1 --trial 0"
    assert f"{fetch} {replay}" in ended.err
    assert f"{fetch} ci-gate trace diff {KEPT}/refund-1-" in ended.err


@pytest.mark.slow
def test_what_is_too_large_is_not_kept(desk, monkeypatch):
    """And is said, with the bound."""
    monkeypatch.setattr("ci_gate.gate.keeping.MOST_TASK_BYTES", 2100)

    ended = desk.gate("baseline", "update")

    assert ended.status == 0
    assert "(kept: 1 of 2 tasks" in ended.err
    assert (
        "No trace is kept of 1 task, because the traces take more than 4 MiB: refund/1."
        in ended.err
    )


@pytest.mark.slow
def test_traces_that_no_update_renews_are_pointed_at(desk):
    """Once keeping them is turned off."""
    desk.replace("ci-gate.toml", "keep_traces = true", "keep_traces = false")

    ended = desk.gate("baseline", "update")

    assert "baselines/desk.traces holds traces of an earlier baseline" in ended.err


def test_no_trace_is_begun_when_the_time_is_over(desk, monkeypatch):
    """A check is not held up by what decides nothing; what was not played is said."""
    monkeypatch.setattr("ci_gate.gate.kept_play._JOBS", 1)
    monkeypatch.chdir(desk.path)
    project = open_project(None, output=None, baseline_ref=None, word=Word.BASE, environment={})
    [config] = project.config.suites
    suite = configured_suite(project.config, config, trials=None, task_filter=None)
    kept = find_kept(project, "desk")

    found = play(project.config, suite, kept, kept_of(kept, suite.tasks), within_s=-1.0)

    assert (found.kept, found.played, found.drifted) == (2, 1, ())
    assert [(one.task, one.why) for one in found.unplayed] == [
        ("refund/1", "30 seconds were over"),
    ]


@pytest.mark.slow
def test_a_failing_trial_of_another_seed_is_taken_where_that_of_the_kept_one_passed(desk):
    """And it is said that more than the change may tell them apart."""
    header = next(path for name, path in traces(desk).items() if "refund" in name)
    seed = json.loads(header.read_text().splitlines()[0])["seed"]
    desk.replace("desk.py", "cents=CENTS", f"cents=CENTS if env.seed == {seed} else 1")

    ended = desk.gate("check", "--json", "-")

    [parting] = json.loads(ended.out)["traces"]["partings"]
    assert (parting["same_seed"], parting["candidate_trial"]) == (False, 1)
    assert "trial 1 beside trial 0 of the baseline, another seed: " in ended.err


@pytest.mark.slow
def test_an_agent_that_cannot_start_is_met_by_the_run_itself(desk):
    """What decides nothing stops nothing."""
    desk.replace("ci-gate.toml", "desk:run", "desk:gone")

    ended = desk.gate("check")

    assert ended.status == 2
    assert "Not played, because" in ended.err
    assert ended.err.splitlines()[-1].startswith("ci-gate: ")


def test_traces_cannot_be_played_to_a_command(desk):
    """It makes its calls by itself; a check leaves them alone."""
    desk.replace("ci-gate.toml", 'python = "desk:run"', 'command = ["true"]')

    ended = desk.gate("trace", "check")

    assert ended.status == 2
    assert "[agent]: protocol command makes its calls by itself" in ended.err


def test_a_run_that_is_refused_plays_no_trace_first(desk):
    """An unfinished run is met at once, not after half a minute of playing."""
    journal = desk.path / ".ci-gate" / "desk.run.jsonl"
    journal.parent.mkdir(exist_ok=True)
    journal.write_text('{"schema":"ci-gate/run@1","suite":"desk"}\n')

    ended = desk.gate("check")

    assert ended.status == 2
    assert "desk.run.jsonl: holds an unfinished run" in ended.err
    assert "kept trace" not in ended.err
