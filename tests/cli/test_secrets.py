"""No secret that an agent, a tool or a grader lets slip is in any file or on any screen."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="running agents needs POSIX")

KNOWN = "zebra/4711+secret=x"
LEARNED = "quagga-0815-learned"
COOKIE = "okapi-2342-session"
SHAPED = "sk-proj-abcdefghijklmnop0123"
CUSTOMER = "CUST-998877"
TRACED = ("raises", "says", "writes", "breaks", "errored")
CONFIG = """\
[[suite]]
name = "desk"
tasks = ["tasks.toml"]
seed = 7
trials = 8
max_errored_rate = 1.0

[agent]
python = "desk:run"

[gate]
metrics = ["pass^1"]

[baseline]
keep_traces = true

[trace]
redact = ["CUST-[0-9]+"]
"""
TASKS = """\
[[task]]
id = "raises"
instruction = "Break."
graders = [{type = "answer", equals = "fine"}]

[[task]]
id = "says"
instruction = "Answer."
graders = [{type = "answer", equals = "fine"}, {type = "python", function = "desk:grade"}]

[[task]]
id = "writes"
instruction = "Write."
fixture = "world"
graders = [{type = "file", path = "work/out.txt", contains = "never"}]

[[task]]
id = "breaks"
instruction = "Break a rule."
graders = [{type = "answer", equals = "fine"}]

[[task]]
id = "errored"
instruction = "Report."
graders = [{type = "answer", equals = "fine"}]
"""
AGENT = """\
import base64, json, os, sys
from urllib.parse import quote

KEY = os.environ.get("DESK_API_KEY", "none-at-all")
GOOD = False


def run(task, env):
    @env.tools.add
    def fetch(url):
        raw = f"before {KEY} after".encode()
        return {
            "plain": KEY,
            "json": json.dumps(json.dumps({"k": KEY})),
            "percent": quote(KEY, safe=""),
            "base64": [base64.b64encode(raw[i:]).decode() for i in range(3)],
            "request": {"headers": {"Authorization": "Bearer quagga-0815-learned"}},
            "headers": [["Set-Cookie", "okapi-2342-session"], ["Accept", "*"]],
            "har": [{"name": "Cookie", "value": "okapi-2342-session"}],
            "flat": ["Host", "example.org", "Cookie", "okapi-2342-session"],
            "text": "GET /\\r\\nAuthorization: Bearer sk-proj-abcdefghijklmnop0123\\r\\n",
            KEY: "as a key",
        }

    got = env.tools.call("fetch", url=f"https://bob:{KEY[:9]}@example.org/?key={quote(KEY)}")
    env.kv.set("note", got["request"])
    token = got["request"]["headers"]["Authorization"].split()[-1]
    with env.lane(f"lane {KEY} {token}"), env.scope([f"kind {KEY}:*", "kv"]):
        env.call(f"kind {KEY}", f"name {KEY}", lambda **given: given, **{KEY: [KEY]})
        env.kv.set(f"key {KEY}", KEY)
    asked = f"for CUST-998877 {KEY}"
    env.call("llm", f"model {KEY}", lambda prompt: {"text": prompt}, prompt=asked)
    if GOOD:
        return "fine"
    print("printed", KEY, "sk-proj-abcdefghijklmnop0123")
    print("error", KEY, file=sys.stderr)
    slip = f"{KEY} {token} sk-proj-abcdefghijklmnop0123 CUST-998877"
    if task.id == "raises":
        raise RuntimeError("x" * 470 + KEY + " " + slip)
    if task.id == "writes":
        env.files.write("out.txt", slip)
    if task.id == "breaks":
        with env.lane(f"lane {KEY}"), env.scope([f"llm:{KEY}", f"tool:{token}"]):
            env.call(f"kind {KEY}", f"name {KEY}", lambda: None)
    if task.id == "errored":
        return {"status": "errored", "reason": f"down for {slip}"}
    return {"answer": slip, "measures": {f"m {KEY}": 1.0}, "turns": 1}


def grade(task, trajectory, before, after):
    return {"passed": GOOD, "reason": f"answered {trajectory.answer} with {KEY}"}
"""


def _forms():
    raw = KNOWN.encode()
    yield from (KNOWN, quote(KNOWN), quote(KNOWN, safe=""), KNOWN[:12])
    yield from (LEARNED, COOKIE, SHAPED, CUSTOMER, "quagga", "okapi")
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        core = encoded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        yield from (core, core.replace("+", "-").replace("/", "_"))


FORMS = sorted({form for form in _forms() if len(form) >= 5})


def _leaks(text):
    found = [form for form in FORMS if form in text]
    return [*found, *(form for form in FORMS if json.dumps(form)[1:-1] in text)]


def _unpacked(path):
    content = path.read_bytes()
    return zlib.decompress(content) if ".contents" in path.parts else content


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Everything that was written and printed: file or command, and its text."""
    from tests.places import Place

    place = Place(tmp_path_factory.mktemp("secrets"))
    (place.path / "world" / "work").mkdir(parents=True)
    (place.path / "world" / "work" / "in.txt").write_text("hello")
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "tasks.toml").write_text(TASKS)
    (place.path / "desk.py").write_text(AGENT.replace("GOOD = False", "GOOD = True"))
    said = {}

    def gate(*arguments):
        ended = place.gate(*arguments, DESK_API_KEY=KNOWN)
        said[" ".join(arguments)] = ended.out + ended.err
        return ended

    gate("run")
    gate("baseline", "update", ".ci-gate/desk.run.jsonl")
    (place.path / ".ci-gate" / "desk.run.jsonl").rename(place.path / "before.run.jsonl")
    place.replace("desk.py", "GOOD = True", "GOOD = False")
    place.replace("ci-gate.toml", "[gate]", "[run]\nretries = 0\n\n[gate]")
    gate("run", "--fresh")
    gate("replay", "says")
    gate("replay", "breaks", "--until", "3")
    place.replace("desk.py", 'f"name {KEY}", lambda **', 'f"other {KEY}", lambda **')
    gate("trace", "check")
    gate("replay", "raises")
    place.replace("desk.py", 'f"other {KEY}", lambda **', 'f"name {KEY}", lambda **')
    gate("replay", "raises", "--live")
    for task in TRACED:
        gate("trace", "show", f".ci-gate/traces/{task}/0.jsonl")
        gate("trace", "show", "--call", "1", f".ci-gate/traces/{task}/0.jsonl")
    outputs = ["--json", "v.json", "--markdown", "r.md", "--junit", "j.xml"]
    gate("compare", "before.run.jsonl", ".ci-gate/desk.run.jsonl", *outputs)
    for path in sorted(place.path.rglob("*")):
        if path.is_file() and path.suffix not in (".py", ".toml", ".pyc"):
            content = _unpacked(path).decode("utf-8", "replace")
            said[str(path.relative_to(place.path))] = content
    return said


def test_no_planted_secret_is_anywhere(seen):
    """Plain, base64 at each alignment, JSON-escaped, percent-encoded, in split headers, cut."""
    assert {name: _leaks(text) for name, text in seen.items() if _leaks(text)} == {}


def test_what_was_searched_is_what_there_is(seen):
    """The search is worth something only where every kind of artifact was made."""
    for name in ("v.json", "r.md", "j.xml", ".ci-gate/desk.run.jsonl", "replay says"):
        assert "REDACTED" in seen[name], name
    for task in TRACED:
        assert "[REDACTED:secret]" in seen[f".ci-gate/traces/{task}/0.jsonl"]
        assert f".ci-gate/traces/{task}/0.meta.json" in seen


def test_lanes_kinds_and_rules_have_marks_in_them(seen):
    """A replay finds the calls under the same marks, and a drift names them by these."""
    trace = seen[".ci-gate/traces/breaks/0.jsonl"]
    mark = "[REDACTED:secret]"

    assert f'"lane":"main/lane {mark} {mark}"' in trace
    assert f'"kind":"kind {mark}","name":"name {mark}"' in trace
    assert f"capability: kind {mark} name {mark}" in seen[".ci-gate/desk.run.jsonl"]
    assert "recorded calls, consistent" in seen["replay says"]
    assert "recorded calls, consistent" in seen["replay breaks --until 3"]
    for drifted in ("replay raises", "trace check"):
        assert f"of lane main/lane {mark} " in seen[drifted]
        assert f"recorded kind {mark} name {mark}, came kind {mark} other {mark}" in seen[drifted]
    assert any("desk.traces" in name for name in seen)


def test_what_is_no_secret_stays(seen):
    """A report in which nothing can be read helps nobody."""
    trace = seen[".ci-gate/traces/says/0.jsonl"]

    assert '["Accept","*"]' in trace
    assert '"Host","example.org"' in trace
    assert "RuntimeError: xxx" in seen[".ci-gate/desk.run.jsonl"]


@pytest.mark.slow
def test_an_agent_that_cannot_start_leaks_nothing(place):
    """Though the text of its exception is shown."""
    (place.path / "ci-gate.toml").write_text(CONFIG)
    (place.path / "tasks.toml").write_text(TASKS.replace('fixture = "world"\n', ""))
    (place.path / "desk.py").write_text(
        "import os\nprint(os.environ['DESK_API_KEY'])\n"
        "raise RuntimeError(os.environ['DESK_API_KEY'] + ' CUST-998877')\n"
    )

    ended = place.gate("run", DESK_API_KEY=KNOWN)

    assert ended.status == 2
    assert "RuntimeError: [REDACTED:secret] [REDACTED:configured]" in ended.err
    assert _leaks(ended.out + ended.err) == []


@pytest.mark.slow
def test_a_token_that_a_tool_hands_out_can_be_used_in_a_replay(place):
    """It is the same mark in the recorded answer and in the call that carries it on."""
    config = CONFIG.replace("trials = 8", "trials = 1")
    (place.path / "ci-gate.toml").write_text(config)
    (place.path / "tasks.toml").write_text(
        '[[task]]\nid = "a"\ninstruction = "x"\ngraders = [{type = "answer", equals = "fine"}]\n'
    )
    (place.path / "desk.py").write_text(
        "def run(task, env):\n"
        "    env.tools.register(login=lambda: {'access_token': 'quagga-0815-learned'})\n"
        "    env.tools.register(fetch=lambda token: 'fine')\n"
        "    token = env.tools.call('login')['access_token']\n"
        "    return env.tools.call('fetch', token=token)\n"
    )
    assert place.gate("run").status == 0

    ended = place.gate("replay", "a")

    assert ended.status == 0, ended.out + ended.err
    assert "2 of 2 recorded calls, consistent" in ended.out
    assert "quagga" not in ended.out
