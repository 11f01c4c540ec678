"""Trials are recorded as they run, and played again from the recording, with nothing called."""

from __future__ import annotations

import base64
import json
import shutil
import sys
import tempfile
import zlib

import msgspec
import pytest

from ci_gate.model.trace_chain import sealed
from ci_gate.store.traces import open_trace, read_trace
from tests.full_disk import largest_file
from tests.places import Place
from tests.speeds import slow

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

SECRET = "zebra-4711-secret"
CONFIG = """\
[[suite]]
name = "desk"
tasks = ["evals/*.toml"]
seed = 7
trials = 2

[agent]
python = "desk:run"

[gate]
metrics = ["pass^1"]
"""
TASK = """\
[[task]]
id = "refund/1"
instruction = "Refund it."
fixture = "world.sql"

[[task.graders]]
type = "sql"
query = "SELECT cents FROM refund"
equals = [[1200]]
"""
WORLD = "CREATE TABLE refund (cents INTEGER);\n"
AGENT = """\
import os
from pathlib import Path

CENTS = 1200


def run(task, env):
    log = Path(os.environ["CALLS"])

    @env.tools.add
    def look_up(order):
        log.write_text(log.read_text() + "look_up\\n")
        return {"row": (order, b"\\xff"), "key": os.environ["DESK_API_KEY"]}

    @env.tools.add
    def refund(cents):
        log.write_text(log.read_text() + "refund\\n")
        with env.world.connect() as connection:
            connection.execute("INSERT INTO refund VALUES (?)", (cents,))
        return "done"

    found = env.tools.call("look_up", order=7)
    assert found["row"] == (7, b"\\xff"), found
    thought = env.call("llm", "model-1", think, prompt="refund?")
    env.kv.set("said", thought["text"])
    env.tools.call("refund", cents=CENTS)
    return {"answer": env.kv.get("said"), "turns": 1}


def think(prompt):
    return {"text": "yes", "usage": {"input_tokens": 10, "output_tokens": 2}}
"""


@pytest.fixture
def desk(place):
    """A project whose agent calls tools, a model and a store, and keeps count of real calls."""
    return _set_up(place)


def _set_up(place):
    (place.path / "evals").mkdir()
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "evals" / "refund.toml").write_text(TASK)
    (place.path / "evals" / "world.sql").write_text(WORLD)
    (place.path / "desk.py").write_text(AGENT)
    (place.path.parent / "calls").write_text("")
    return place


def gate(desk, *arguments):
    """Run ci-gate with the agent's variables."""
    variables = {"CALLS": str(desk.path.parent / "calls"), "DESK_API_KEY": SECRET}
    return desk.gate(*arguments, **variables)


def calls(desk):
    """Return how many calls were made for real."""
    return len((desk.path.parent / "calls").read_text().splitlines())


def traces(desk):
    """Return the trace files by name."""
    folder = desk.path / ".ci-gate" / "traces"
    return {path.name: path for path in sorted(folder.glob("refund-1-*/*.jsonl"))}


@pytest.fixture(scope="module")
def _recorded_once(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("recorded") / "place")
    place.path.mkdir()
    ended = gate(_set_up(place), "run", "--quiet")
    assert ended.status == 0, ended.err
    return place.path


@pytest.fixture
def recorded(place, _recorded_once):
    """The project after a run, a copy of its own."""
    shutil.copytree(_recorded_once, place.path, dirs_exist_ok=True)
    shutil.copy(_recorded_once.parent / "calls", place.path.parent)
    return place


def test_every_call_of_a_trial_is_in_its_trace(recorded):
    """With the world before and after; the run file has place and digest of each."""
    lines = [json.loads(line) for line in traces(recorded)["1.jsonl"].read_text().splitlines()]
    run = (recorded.path / ".ci-gate" / "desk.run.jsonl").read_text().splitlines()
    record = next(r for r in map(json.loads, run) if r.get("trial") == 1)

    assert [(line["kind"], line["name"]) for line in lines[1:-1]] == [
        ("state", "before"),
        ("tool", "look_up"),
        ("llm", "model-1"),
        ("kv", "set"),
        ("tool", "refund"),
        ("kv", "get"),
        ("state", "after"),
        ("state", "result"),
    ]
    assert lines[3]["tokens"] == 12
    assert record["trace"].startswith("traces/refund-1-")
    assert record["trace_digest"] == lines[-1]["head"]


def test_the_recorded_traces_are_whole(recorded):
    """As ``trace verify`` sees it."""
    ended = recorded.gate("trace", "verify", *map(str, traces(recorded).values()))

    assert ended.status == 0
    assert ended.out.count(": 5 calls and 3 states, sha256:") == 2


@pytest.mark.slow
def test_two_runs_of_the_same_agent_leave_the_same_digests(recorded):
    """Durations are outside of them."""
    path = recorded.path / ".ci-gate" / "desk.run.jsonl"
    first = json.loads(path.read_text().splitlines()[-1])["digest"]

    assert gate(recorded, "run", "--quiet", "--fresh", "--jobs", "2").status == 0
    assert json.loads(path.read_text().splitlines()[-1])["digest"] == first


def test_a_trial_is_played_from_its_recording_and_nothing_is_called(recorded):
    """Tuples and bytes come back as they were, and the grader sees the recorded world."""
    before = calls(recorded)

    ended = gate(recorded, "replay", "refund/1", "--trial", "1")

    assert ended.status == 0, ended.out + ended.err
    assert "5 of 5 recorded calls, consistent" in ended.out
    assert "answer: yes" in ended.out
    assert calls(recorded) == before


def test_live_makes_every_call(recorded):
    """Though there is a recording."""
    before = calls(recorded)

    ended = gate(recorded, "replay", "refund/1", "--live")

    assert ended.status == 0
    assert "run live" in ended.out
    assert calls(recorded) == before + 2


def test_a_trace_that_is_named_is_not_played_live_either(recorded):
    """And what is live has nothing to walk through, which is no missing recording."""
    before = calls(recorded)

    ended = gate(recorded, "replay", "--trace", str(traces(recorded)["0.jsonl"]), "--live")
    walked = gate(recorded, "replay", "refund/1", "--live", "--until", "1")

    assert "run live" in ended.out
    assert calls(recorded) == before + 2
    assert (walked.status, walked.out) == (2, "")
    assert "what is run live has no recording to walk through" in walked.err


def test_a_replay_needs_no_credentials(recorded):
    """The recording does not have them either."""
    recorded.replace("desk.py", '"key": os.environ["DESK_API_KEY"]', '"key": 1')

    ended = recorded.gate("replay", "refund/1", CALLS=str(recorded.path.parent / "calls"))

    assert ended.status == 0, ended.out + ended.err


@pytest.mark.parametrize(
    ("before", "after", "drift"),
    [
        ("CENTS = 1200", "CENTS = 1", "drift at call 4: tool refund has another input"),
        ('call("look_up", order=7)', 'call("look_up", order=8)', "drift at call 1"),
        (
            'env.tools.call("refund", cents=CENTS)',
            "pass",
            "drift at call 4: recorded tool refund, came kv get",
        ),
        (
            '    env.tools.call("refund", cents=CENTS)\n    return {"answer": env.kv.get("said")',
            '    return {"answer": "yes"',
            "drift at call 4: tool refund was recorded and is not made now",
        ),
        (
            'return {"answer"',
            'env.kv.keys()\n    return {"answer"',
            "drift at call 5: recorded kv get, came kv keys",
        ),
    ],
    ids=["input", "first", "other", "lost", "more"],
)
def test_an_agent_that_leaves_the_recording_is_told_where(recorded, before, after, drift):
    """Another input, another call, one that is no longer made, one more."""
    recorded.replace("desk.py", before, after)

    ended = gate(recorded, "replay", "refund/1")

    assert ended.status == 1
    assert drift in ended.out
    assert "not consistent" in ended.out
    assert ended.out.splitlines()[-1].endswith("`--live` makes every call for real.")


def test_the_trace_of_a_drift_ends_at_the_agents_line(recorded):
    """What happens within ``env`` is not the reader's."""
    recorded.replace("desk.py", "CENTS = 1200", "CENTS = 1")

    lines = gate(recorded, "replay", "refund/1").out.splitlines()

    last = max(place for place, line in enumerate(lines) if 'File "' in line)
    assert "desk.py" in lines[last]
    assert 'env.tools.call("refund", cents=CENTS)' in lines[last + 1]
    assert "worker" not in "".join(lines[last:])


def test_an_agent_that_swallows_the_drift_does_not_pass(recorded):
    """Whatever it answers then."""
    recorded.replace("desk.py", "CENTS = 1200", "CENTS = 1")
    recorded.replace(
        "desk.py",
        '    env.tools.call("refund", cents=CENTS)',
        '    try:\n        env.tools.call("refund", cents=CENTS)\n'
        '    except BaseException:\n        return "yes"',
    )

    ended = gate(recorded, "replay", "refund/1")

    assert ended.status == 1
    assert "drift at call 4" in ended.out


def test_a_changed_recording_is_refused(recorded):
    """A replay of it would prove nothing."""
    path = traces(recorded)["0.jsonl"]
    path.write_text(path.read_text().replace('"done"', '"dOne"'))

    ended = gate(recorded, "replay", "refund/1")

    assert ended.status == 2
    assert f"{path}:6: call 4 was changed" in ended.err


def test_a_downloaded_artifact_is_played(recorded, tmp_path):
    """On another machine that has the code and no results of its own."""
    (recorded.path / ".ci-gate").rename(tmp_path / "downloaded")

    ended = gate(recorded, "replay", "--artifact", str(tmp_path / "downloaded"), "refund/1")

    assert ended.status == 0, ended.out + ended.err
    assert "5 of 5 recorded calls" in ended.out


def test_an_artifact_without_the_recording_is_refused(recorded, tmp_path):
    """Rather than run live in silence."""
    ended = gate(recorded, "replay", "--artifact", str(tmp_path), "refund/1", "--trial", "1")

    assert ended.status == 2
    assert "has no recording of task 'refund/1', trial 1" in ended.err


def test_no_secret_is_in_any_file_of_the_results(recorded):
    """Plain, in base64 at any alignment, escaped."""
    forms = [SECRET.encode()]
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + SECRET.encode())
        forms.append(encoded[-(-shift * 8 // 6) : (shift + len(SECRET)) * 8 // 6])

    for path in (recorded.path / ".ci-gate").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(form in content for form in forms), path


@pytest.mark.slow
def test_live_mode_records_nothing(desk):
    """Where a team does not want traces."""
    desk.replace("ci-gate.toml", "[gate]", '[run]\nmode = "live"\n\n[gate]')

    assert gate(desk, "run", "--quiet").status == 0
    assert not (desk.path / ".ci-gate" / "traces").exists()


def test_what_is_ignored_does_not_count_in_a_replay(recorded):
    """A request id that differs each time is left out of the digests of inputs."""
    recorded.replace("ci-gate.toml", "[gate]", '[trace]\nignore = ["$.prompt"]\n\n[gate]')
    assert gate(recorded, "run", "--quiet", "--fresh").status == 0
    recorded.replace("desk.py", 'prompt="refund?"', 'prompt="refund now?"')

    ended = gate(recorded, "replay", "refund/1")

    assert ended.status == 0, ended.out


def test_patterns_of_the_configuration_are_redacted(desk):
    """What a team calls secret is in no trace."""
    desk.replace("ci-gate.toml", "[gate]", '[trace]\nredact = ["refund[?]"]\n\n[gate]')

    assert gate(desk, "run", "--quiet").status == 0
    text = traces(desk)["0.jsonl"].read_text()
    assert "refund?" not in text
    assert "[REDACTED:configured]" in text
    assert gate(desk, "replay", "refund/1").status == 0


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ('ignore = ["$.a["]', "trace.ignore"),
        ('ignore = ["("]', "is no regular expression"),
        ('redact = ["("]', "is no regular expression"),
    ],
)
def test_what_cannot_be_left_out_is_refused_before_anything_runs(desk, key, message):
    """A path or expression that cannot be read."""
    desk.replace("ci-gate.toml", "[gate]", f"[trace]\n{key}\n\n[gate]")

    ended = gate(desk, "run")

    assert ended.status == 2
    assert message in ended.err
    assert calls(desk) == 0


def test_the_ledger_of_a_run_is_reconciled_with_its_traces(recorded):
    """The agent reports no tokens, so the trial has those of its calls to models."""
    run = recorded.path / ".ci-gate" / "desk.run.jsonl"
    record = json.loads(run.read_text().splitlines()[1])

    ended = recorded.gate("trace", "verify", "--run", str(run))

    assert (record["tokens"], record["cost_usd"]) == (12, None)
    assert ended.status == 0
    assert ended.out == ("2 traces of 2 trials, all whole: 10 calls, 24 tokens, cost unknown.\n")


def test_money_is_the_tokens_at_the_prices_of_the_configuration(desk):
    """Of the trial and of its call; it counts against a budget."""
    desk.replace("ci-gate.toml", "[gate]", "[prices]\nmodel-1 = {input = 1, output = 5}\n\n[gate]")
    desk.replace("ci-gate.toml", "trials = 2", "trials = 2\nbudget_usd = 0.00001")

    ended = gate(desk, "run", "--jobs", "1")

    lines = (desk.path / ".ci-gate" / "desk.run.jsonl").read_text().splitlines()
    assert json.loads(lines[1])["cost_usd"] == 0.00002
    assert json.loads(lines[-1])["stop"]["reason"] == "budget"
    assert ended.status == 3


@pytest.mark.slow
def test_what_the_agent_reports_itself_stays_and_a_difference_is_told(recorded):
    """It may know of calls that passed nobody."""
    recorded.replace("desk.py", '"turns": 1', '"turns": 1, "tokens": 99')
    assert gate(recorded, "run", "--quiet", "--fresh").status == 0

    ended = recorded.gate("trace", "verify", "--run", ".ci-gate/desk.run.jsonl")

    assert ended.status == 1
    assert "refund/1  trial 0  tokens: the trial says 99, its calls 12" in ended.out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), "the trace of task 'refund/1', trial 1 is missing"),
        (lambda path: path.write_bytes(path.with_name("0.jsonl").read_bytes()), "other digest"),
        (
            lambda path: path.write_text(path.read_text().replace('"done"', '"dOne"')),
            "call 4 was changed",
        ),
    ],
    ids=["missing", "another", "edited"],
)
def test_a_trace_that_is_not_the_runs_is_found(recorded, change, message):
    """Missing, taken from another trial, edited."""
    change(traces(recorded)["1.jsonl"])

    ended = recorded.gate("trace", "verify", "--run", ".ci-gate/desk.run.jsonl")

    assert ended.status == 2
    assert message in ended.err


def test_a_run_file_cannot_have_files_read_from_elsewhere(place):
    """It may come from anybody."""
    (place.path / "x.run.jsonl").write_text(
        '{"schema":"ci-gate/run@1","suite":"x"}\n'
        '{"task":"a","trial":0,"status":"passed","trace":"../secret.jsonl","trace_digest":"sha256:0"}\n'
    )

    ended = place.gate("trace", "verify", "--run", "x.run.jsonl")

    assert ended.status == 2
    assert "names a trace out of its folder: ../secret.jsonl" in ended.err


def test_a_meta_file_fits_its_trace_or_is_found(recorded):
    """It is what a reader may publish, so it must be about this trace."""
    meta = traces(recorded)["0.jsonl"].with_name("0.meta.json")
    fields = json.loads(meta.read_text())

    assert (fields["schema"], fields["calls"], fields["tokens"]) == ("ci-gate/trace-meta@1", 5, 12)
    meta.write_text(meta.read_text().replace('"calls": 5', '"calls": 6'))
    ended = recorded.gate("trace", "verify", str(traces(recorded)["0.jsonl"]))
    assert ended.status == 2
    assert f"{meta}: is not what this trace gives" in ended.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), "no such file"),
        *slow((lambda path: path.write_bytes(b"not zlib"), "is damaged")),
        (lambda path: path.write_bytes(zlib.compress(b"other")), "does not have its digest"),
        (lambda path: path.write_bytes(path.read_bytes()[:20]), "does not have its digest"),
    ],
    ids=["missing", "garbage", "other", "truncated"],
)
def test_a_changed_content_of_the_world_is_refused(recorded, change, message):
    """The graders would judge another world than the recorded one."""
    folder = recorded.path / ".ci-gate" / "traces" / ".contents"
    last = json.loads(traces(recorded)["0.jsonl"].read_text().splitlines()[-3])
    digest = next(iter(last["output"]["files"].values()))["digest"].removeprefix("sha256:")
    change(folder / digest[:2] / digest[2:])

    ended = gate(recorded, "replay", "refund/1")

    assert ended.status in (2, 3), ended.out
    assert message in ended.out + ended.err

    ended = recorded.gate("trace", "verify", "--run", ".ci-gate/desk.run.jsonl")
    assert ended.status == 2
    trace = traces(recorded)["0.jsonl"]
    assert f"{trace.relative_to(recorded.path)}:8: the state after refers to file" in ended.err
    assert message in ended.err
    assert recorded.gate("trace", "verify", str(trace)).status == 2


@pytest.mark.slow
def test_an_output_that_no_replay_can_make_is_named(desk):
    """In the trace and where the replay ends."""
    desk.replace("desk.py", '"row": (order, b"\\xff")', '"row": (order, b"\\xff"), "own": range(3)')
    assert gate(desk, "run", "--quiet").status == 0

    shown = desk.gate("trace", "show", "--call", "1", str(traces(desk)["0.jsonl"]))
    ended = gate(desk, "replay", "refund/1")

    assert "builtins.range" in shown.out
    assert ended.status == 1
    assert "its recording holds builtins.range, which no replay can make again" in ended.out


@pytest.mark.slow
def test_a_fresh_run_leaves_no_trace_of_an_earlier_one(recorded):
    """A trial that it does not have must not be played from another agent's recording."""
    other = recorded.path / ".ci-gate" / "traces" / "notes.txt"
    other.write_text("somebody's own")

    assert gate(recorded, "run", "--quiet", "--fresh", "--trials", "1").status == 0

    assert list(traces(recorded)) == ["0.jsonl"]
    assert other.exists()


def test_a_drift_says_what_of_the_input_differs(recorded):
    """Recorded, now, and the place."""
    recorded.replace("desk.py", "CENTS = 1200", "CENTS = 1")

    ended = gate(recorded, "replay", "refund/1")

    assert "tool refund has another input (at $.cents: 1200 is now 1)" in ended.out


@pytest.mark.slow
def test_an_agent_cannot_make_an_error_of_its_failure_by_breaking_its_record(desk):
    """A name that is no text, in a folder whose place another file has taken."""
    desk.replace("desk.py", "CENTS = 1200", "CENTS = 1")
    desk.replace(
        "desk.py",
        '    return {"answer"',
        '    open(os.path.dirname(env.world.database).encode() + b"/\\xff", "wb").close()\n'
        '    return {"answer"',
    )
    traces_folder = desk.path / ".ci-gate" / "traces"
    traces_folder.mkdir(parents=True)
    (traces_folder / "refund-1-67656b318e").write_text("in the way")

    ended = gate(desk, "run")

    assert ended.status == 0, ended.err
    assert "2 failed, 0 errored" in ended.err
    assert "2 trials have no trace" in ended.err


def _files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "link", ["traces", "traces/refund-1-67656b318e", "traces/.contents", "traces/.contents/ab"]
)
@pytest.mark.parametrize("verb", ["check", "run"])
def test_a_link_among_the_results_is_refused_before_the_first_trial(desk, link, verb):
    """A change could bring it along to have files written, or removed, anywhere."""
    elsewhere = desk.path.parent / "elsewhere"
    (elsewhere / "refund-1-67656b318e").mkdir(parents=True)
    (elsewhere / "refund-1-67656b318e" / "0.jsonl").write_text("mine")
    before = _files(elsewhere)
    place = desk.path / ".ci-gate" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)

    ended = gate(desk, verb, "--quiet")

    assert ended.status == 2, ended.err
    assert f"{place}: is a link, and results are neither written nor read" in ended.err
    assert calls(desk) == 0
    assert _files(elsewhere) == before
    assert not (desk.path / ".ci-gate" / "desk.run.jsonl").exists()


@pytest.mark.parametrize("output", [".ci-gate", "out/deep", "deeper"])
def test_an_output_below_a_link_of_the_repository_is_refused(desk, output):
    """Also where the workflow names it; a link outside of the project is the user's own."""
    elsewhere = desk.path.parent / "elsewhere"
    elsewhere.mkdir()
    for name in (".ci-gate", "out"):
        (desk.path / name).symlink_to(elsewhere)
    (desk.path / "deeper").mkdir()
    (desk.path / "deeper" / "traces").symlink_to(elsewhere)

    ended = gate(desk, "run", "--quiet", "--output", output)

    assert ended.status == 2
    assert "is a link" in ended.err
    assert _files(elsewhere) == set()


@pytest.mark.slow
def test_an_output_that_the_user_has_behind_a_link_is_used(desk):
    """Such as a temporary folder that is one."""
    real = desk.path.parent / "real"
    real.mkdir()
    (desk.path.parent / "linked").symlink_to(real)

    ended = gate(desk, "run", "--quiet", "--output", str(desk.path.parent / "linked" / "out"))

    assert ended.status == 0, ended.err
    assert {"out/desk.run.jsonl", "out/traces"} <= _files(real)


@pytest.mark.parametrize("name", ["0.jsonl", "0.meta.json"])
def test_a_folder_with_the_name_of_a_trace_is_refused_with_words(recorded, name):
    """It stops the run before it began, and the run that was there stays."""
    run = (recorded.path / ".ci-gate" / "desk.run.jsonl").read_bytes()
    path = traces(recorded)["0.jsonl"].with_name(name)
    path.unlink()
    path.mkdir()
    made = calls(recorded)

    ended = gate(recorded, "run", "--quiet")

    assert ended.status == 2
    assert f"{path}: is a folder, and a trace belongs there. Remove it." in ended.err
    assert calls(recorded) == made
    assert (recorded.path / ".ci-gate" / "desk.run.jsonl").read_bytes() == run


@pytest.mark.parametrize("is_artifact", [False, True])
def test_a_recording_behind_a_link_is_not_played(recorded, tmp_path, is_artifact):
    """It could be of anything; a link to the artifact is the user's own."""
    folder = traces(recorded)["0.jsonl"].parent
    real = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(real)
    (tmp_path / "artifact").symlink_to(recorded.path / ".ci-gate")
    artifact = ["--artifact", str(tmp_path / "artifact")] if is_artifact else []

    ended = gate(recorded, "replay", "refund/1", *artifact)

    assert ended.status == 2
    assert f"{folder}: is a link, and results are neither written nor read" in ended.err


@pytest.mark.parametrize(
    ("fixture", "named"), [(True, "ci-gate-worlds-"), (False, "desk.run.jsonl")]
)
def test_results_without_room_are_said_with_the_file(recorded, fixture, named):
    """What was there stays, and no half of a file is left."""
    if not fixture:
        recorded.replace("evals/refund.toml", 'fixture = "world.sql"\n', "")
    before = _files(recorded.path / ".ci-gate")
    with largest_file(100):
        ended = gate(recorded, "run", "--quiet")

    assert ended.status == 4
    assert named in ended.err
    assert "cannot be written: " in ended.err
    assert "Make room or choose another folder" in ended.err
    assert "internal error" not in ended.err
    assert _files(recorded.path / ".ci-gate") == before


def _resealed(path, change):
    """Change a trace and chain it anew, as whoever can write the file can."""
    trace = read_trace(path)
    header = msgspec.structs.replace(trace.header, **change)
    path.unlink()
    writer = open_trace(path.parent.parent, header)
    for record in trace.records:
        writer.append(sealed(record, writer.head))
    writer.finish()
    if writer.path != path:
        path.parent.mkdir(exist_ok=True)
        writer.path.rename(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"suite": "other"}, "suite other and not desk"),
        ({"task": "refund/2"}, "task refund/2 and not refund/1"),
        ({"trial": 1}, "trial 1 and not 0"),
        ({"repeat": 3}, "repeat 3 and not 0"),
        ({"seed": "0x0000000000000001"}, "seed 0x0000000000000001 and not 0x"),
        ({"seed": None, "suite": None}, "suite unknown and not desk; seed unknown and not 0x"),
    ],
)
@pytest.mark.parametrize("is_artifact", [False, True])
def test_a_recording_of_another_trial_is_not_played(recorded, change, message, is_artifact):
    """Whole as it is: it would show what never happened in this one."""
    path = traces(recorded)["0.jsonl"]
    _resealed(path, change)
    artifact = ["--artifact", ".ci-gate"] if is_artifact else []

    ended = gate(recorded, "replay", "refund/1", *artifact)

    assert ended.status == 2
    assert f"{path}: is not the recording of this trial: {message}" in ended.err


def test_a_recording_that_its_run_file_does_not_name_is_not_played(recorded):
    """The right header is not enough: the digest in the run file vouches for a trace."""
    path = traces(recorded)["0.jsonl"]
    _resealed(path, {"tool": "ci-gate 9"})
    assert gate(recorded, "replay", "refund/1").status == 0  # it is outside of the chain
    _resealed(path, {"agent_digest": "sha256:0"})

    ended = gate(recorded, "replay", "refund/1")

    assert ended.status == 2
    assert "is not the trace that desk.run.jsonl names for this trial: other digest" in ended.err


def test_a_recording_without_a_run_file_is_played_and_that_is_said(recorded):
    """Nobody says which digest it should have."""
    (recorded.path / ".ci-gate" / "desk.run.jsonl").unlink()

    ended = gate(recorded, "replay", "refund/1")

    assert ended.status == 0
    assert "No run file vouches for this recording." in ended.out


def test_calls_and_states_are_counted_apart(recorded):
    """As `trace show` counts them."""
    path = str(traces(recorded)["0.jsonl"])

    assert f"{path}: 5 calls and 3 states, sha256:" in recorded.gate("trace", "verify", path).out
    assert "5 calls, " in recorded.gate("trace", "show", path).out


@pytest.mark.slow
def test_traces_of_several_suites_are_found_from_the_run_file(desk):
    """Each suite has a folder of its own, and the run file says so."""
    two = CONFIG.replace('name = "desk"', 'name = "till"').split("[agent]")[0]
    (desk.path / "ci-gate.toml").write_text(two + CONFIG)
    assert gate(desk, "run", "--quiet", "--suite", "till", "--trials", "1").status == 0

    ended = desk.gate("trace", "verify", "--run", ".ci-gate/till.run.jsonl")

    assert ended.status == 0, ended.err
    assert "1 trace of 1 trial, all whole: 5 calls" in ended.out
    assert gate(desk, "replay", "--suite", "till", "refund/1").status == 0


@pytest.mark.parametrize(
    "verb",
    [
        ["run", "--trials", "1", "--fresh"],
        *slow(["replay", "refund/1"], ["trace", "verify", "--twice", "refund/1"]),
    ],
)
def test_whatever_runs_next_sweeps_what_a_killed_process_left(
    recorded, tmp_path, monkeypatch, verb
):
    """A folder that nobody has locked, and its entry in git's list of work trees."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    recorded.git("init", "--quiet")
    recorded.commit()
    left = folder / "ci-gate-worlds-left"
    recorded.git("worktree", "add", "--detach", str(left / "ci-gate-recheck"))
    (left / "lock").write_text("")

    assert gate(recorded, *verb).status == 0

    assert not left.exists()
    assert len(recorded.git("worktree", "list").splitlines()) == 1
