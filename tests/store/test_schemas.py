from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from ci_gate.errors import UsageError
from ci_gate.model.trace import TraceHeader, TraceRecord
from ci_gate.model.trace_chain import sealed
from ci_gate.model.trial import Grade
from ci_gate.store.baselines import dump_baseline
from ci_gate.store.paths import meta_file
from ci_gate.store.pooling import from_run
from ci_gate.store.schemas import NAMES, schema
from ci_gate.store.traces import open_trace

SHA = "sha256:" + "0" * 64
# The examples of the format's description, with real digests and seeds for their dots.
RUN = [
    '{"schema":"ci-gate/run@1","suite":"refund-desk","suite_digest":"SHA","root_seed":"0x0000000020261030","plan":{"trials":8,"task_trials":{},"repeats":1,"max_repeats":4,"curtail":true,"extend":false},"baseline_digest":"SHA","policy_digest":"SHA","errors":"exclude","agent":{"name":"...","digest":"SHA","dirty":false},"model":"...","commit":"...","created":"2026-11-30T12:00:00Z","faults_digest":"SHA","judge_digest":null,"shard":null,"task_filter":null,"tool":"ci-gate 0.1.0"}',  # noqa: E501 - a line of the file
    '{"task":"refund-4812","task_digest":"SHA","trial":0,"repeat":0,"attempt":1,"seed":"0x00","status":"passed","reason":null,"turns":5,"tool_calls":4,"tokens":1234,"cost_usd":0.0021,"duration_s":1.9,"faults":1,"recovered":1,"looped":false,"grades":[{"grader":"state","passed":true,"reason":"..."}],"trace":"traces/refund-4812/0.jsonl","trace_digest":"SHA"}',
    '{"end":true,"trials":400,"stop":{"round":8,"reason":"complete","predictive":null},"digest":"SHA"}',
]
VERDICT = '{"schema":"ci-gate/verdict@1","verdict":"regressed","exit_code":1,"partial":false,"reasons":[{"code":"task-regressed","text":"..."}],"alpha":0.05,"level":0.05,"p_value":0.0004,"predictive":null,"method":{"strata":"task","z_seed":0.4,"phi":1.03,"exact":false,"draws":65536},"metrics":{"pass^1":{"baseline":0.91,"candidate":0.84,"difference":-0.07,"interval":[-0.11,-0.03],"p_value":0.001,"p_adjusted":0.002,"exact":true,"detectable_drop":0.05,"n_tasks":50,"predictive":null}},"tasks":[{"task":"refund-4812","claim":"regressed","predictive":null,"baseline":{"trials":32,"passed":31,"errored":1},"candidate":{"trials":8,"passed":1,"errored":0},"p_value":1e-6,"p_adjusted":0.0004,"replay":[{"trial":3,"repeat":0,"seed":"0x...","command":"ci-gate replay refund-4812 --trial 3"}]}],"floors":[],"guards":[],"suite":{"compared":50,"new":[],"removed":[],"changed":[],"unjudged":[],"quarantined":[]},"trials":{"planned":400,"run":400,"judged":399,"errored":1,"stop":"complete"},"resilience":{},"economics":{},"provenance":{}}'  # noqa: E501 - a line of the file


def mistakes(name: str, value: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema(name))
    return [error.message for error in validator.iter_errors(value)]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_a_schema(name: str) -> None:
    """Each schema is legal in its own dialect and says what it describes."""
    jsonschema.Draft202012Validator.check_schema(schema(name))

    assert schema(name)["title"] == f"ci-gate/{name}@1"
    json.dumps(schema(name))


@pytest.mark.parametrize("line", RUN)
def test_the_published_run_is_legal(line: str) -> None:
    """Every line of the description's example run fits the schema."""
    assert mistakes("run", json.loads(line.replace("SHA", SHA))) == []


def test_the_published_verdict_is_legal() -> None:
    """The description's example verdict fits the schema."""
    example = json.loads(VERDICT)
    required = schema("verdict")["$defs"]["Verdict"]["required"]

    assert mistakes("verdict", {**example, "suite_name": "desk"}) == []
    assert set(required) <= {*example, "suite_name"}


def test_what_is_written_is_legal(desk) -> None:
    """Every line of a real run, and a real baseline, fit their schemas."""
    grades = (Grade(grader="state", passed=False, reason="x", score=0.5),)
    records = desk.records(
        "refund +-/!+", turns=3, grades=grades, measures={"plan": 0.5}, reason="why", looped=False
    )
    path = desk.write(records, trials=2)

    for line in path.read_text().splitlines():
        assert mistakes("run", json.loads(line)) == []
    assert mistakes("baseline", json.loads(dump_baseline(from_run(desk.run(records))))) == []


def test_the_least_that_is_read_is_legal(desk) -> None:
    """What readers require is all that the schemas require; unknown fields are welcome."""
    baseline = {
        "schema": "ci-gate/baseline@1",
        "suite": "x",
        "trials": 1,
        "runs": [{"agent": {"colour": 1}, "run_digest": "x", "day": 1}],
        "tasks": {"a": {"outcomes": ["+"], "extra": 1}},
    }

    assert mistakes("run", {**desk.minimal, "weather": 1}) == []
    assert mistakes("run", desk.trial(mood=1)) == []
    assert mistakes("baseline", baseline) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run", {}),
        ("run", {"schema": "ci-gate/run@2", "suite": "x"}),
        ("run", {"schema": "ci-gate/run@1", "suite": "x", "root_seed": "xyz"}),
        ("run", {"task": "a", "trial": -1, "status": "passed"}),
        ("run", {"task": "a", "trial": 0, "status": "ok"}),
        ("run", {"task": "a", "trial": 0, "status": "passed", "seed": 12}),
        ("run", {"end": True, "trials": 1}),
        (
            "baseline",
            {"schema": "ci-gate/baseline@1", "suite": "x", "trials": 1, "runs": [], "tasks": {}},
        ),
        ("verdict", {"schema": "ci-gate/verdict@1"}),
    ],
)
def test_mistakes_do_not_fit(name: str, value: Any) -> None:
    """The schemas refuse what the readers refuse."""
    assert mistakes(name, value)


def test_an_unknown_schema_is_refused_by_name() -> None:
    """Asking for a schema that does not exist lists those that do."""
    known = r"Known are run, baseline, verdict, trace, trace-meta, judge\."
    with pytest.raises(UsageError, match=rf"no schema 'runs'\. {known}"):
        schema("runs")


def test_a_written_trace_and_its_meta_are_legal(tmp_path) -> None:
    """Every line of a real trace, and what may be published of it, fit their schemas."""
    writer = open_trace(tmp_path, TraceHeader(task="refund", trial=0, repeat=0, seed="0x2a"))
    call = TraceRecord(
        order=0,
        kind="llm",
        name="m",
        input_digest=SHA,
        output={"text": "yes"},
        is_error=True,
        tokens=12,
        cost_usd=0.1,
    )
    writer.append(sealed(call, writer.head))
    writer.finish()

    for line in writer.path.read_text().splitlines():
        assert mistakes("trace", json.loads(line)) == []
    meta = json.loads(meta_file(writer.path).read_text())
    assert mistakes("trace-meta", meta) == []
    assert mistakes("trace-meta", {**meta, "calls": -1}) != []
    assert mistakes("trace", {"order": 0}) != []
