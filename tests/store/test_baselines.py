from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.codec import decode, digest_bytes, encode
from ci_gate.errors import FileFormatError
from ci_gate.model.run import AgentRef, Baseline, BaselineRun, BaselineTask, Measure
from ci_gate.store.baselines import (
    digest_of_baseline,
    dump_baseline,
    load_baseline,
    parse_baseline,
    to_side,
)

# The example of the format's description, which is also the form that is written.
EXAMPLE = """\
{"schema":"ci-gate/baseline@1","suite":"refund-desk","suite_digest":"sha256:...",
"root_seed":"0x0000000020261030","trials":8,"errors":"exclude","faults_digest":"sha256:...","judge_digest":null,
"runs":[
{"agent":{"name":"...","digest":"sha256:..."},"model":"...","forced":false,"run_digest":"sha256:..."},
{"agent":{"name":"...","digest":"sha256:..."},"model":"...","forced":false,"run_digest":"sha256:..."}],
"tasks":{
"refund-4812":{"digest":"sha256:...","outcomes":["+++++++-","++++++!+"],"faulted":[3,3],"recovered":[3,2],"looped":[0,0],"turns":[[5.1,0.8,5.0],[5.0,0.7,5.0]],"tokens":[[1210,88,1200],[1190,90,1180]],"cost_usd":[[0.0021,0.0002,0.0021],[0.0021,0.0002,0.0021]],"duration_s":[[1.8,0.3,1.8],[1.7,0.3,1.7]]}}}
"""


def changed(**fields: Any) -> bytes:
    return encode({**decode(EXAMPLE), **fields})


def with_task(**fields: Any) -> bytes:
    task = decode(EXAMPLE)["tasks"]["refund-4812"]
    return changed(tasks={"refund-4812": {**task, **fields}})


def minimal(**fields: Any) -> dict[str, Any]:
    return {
        "schema": "ci-gate/baseline@1",
        "suite": "desk",
        "trials": 2,
        "runs": [{"agent": {}, "run_digest": "sha256:1"}],
        "tasks": {"refund": {"outcomes": ["+-"]}},
        **fields,
    }


def test_the_example_is_read_and_written_to_the_byte() -> None:
    """The published example is exactly the form in which a baseline is written."""
    assert dump_baseline(parse_baseline(EXAMPLE.encode(), name="x")).decode() == EXAMPLE


def test_any_layout_becomes_the_one_form() -> None:
    """A baseline that was reformatted or reordered has the same content, digest and bytes."""
    import json

    pretty = json.dumps(dict(reversed(decode(EXAMPLE).items())), indent=2).encode()

    baseline = parse_baseline(pretty, name="x")

    assert dump_baseline(baseline).decode() == EXAMPLE
    assert digest_of_baseline(baseline) == digest_bytes(EXAMPLE.encode())


def test_a_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    """Loading a file is parsing its bytes under its name."""
    path = tmp_path / "refund-desk.json"
    path.write_text(EXAMPLE)

    assert load_baseline(path) == parse_baseline(EXAMPLE.encode(), name="x")


def test_little_is_required() -> None:
    """Suite, trials, runs with a digest and outcomes make a baseline; the rest is unknown."""
    side = to_side(parse_baseline(encode(minimal()), name="x"))

    assert side.tasks["refund"].outcomes == ("+-",)
    assert side.tasks["refund"].digest is None
    assert side.tasks["refund"].measures == {}
    assert side.root_seed is None


def test_unknown_fields_survive_in_their_places() -> None:
    """Fields of a newer writer are kept at the top, in runs, in agents and in tasks."""
    fields = minimal(
        weather="sun",
        extra=[1],
        runs=[{"agent": {"name": None, "digest": None, "colour": "red"}, "model": None,
               "forced": False, "run_digest": "sha256:1", "day": 3}],
    )  # fmt: skip
    fields["tasks"]["refund"] |= {"mood": None, "extra": {"a": 1}}

    once = dump_baseline(parse_baseline(encode(fields), name="x"))

    kept = decode(once)
    assert (kept["weather"], kept["extra"]) == ("sun", [1])
    assert kept["runs"][0]["day"] == 3
    assert kept["runs"][0]["agent"]["colour"] == "red"
    assert kept["tasks"]["refund"]["extra"] == {"a": 1}
    assert "mood" in kept["tasks"]["refund"]
    assert dump_baseline(parse_baseline(once, name="x")) == once


def test_a_task_is_a_line() -> None:
    """A change of one task's outcomes changes one line of the file."""
    tasks = {f"task-{n}": {"outcomes": ["+-"]} for n in range(5)}
    before = dump_baseline(parse_baseline(encode(minimal(tasks=tasks)), name="x")).splitlines()
    tasks["task-3"] = {"outcomes": ["--"]}
    after = dump_baseline(parse_baseline(encode(minimal(tasks=tasks)), name="x")).splitlines()

    different = [line for line, other in zip(before, after, strict=True) if line != other]
    assert len(different) == 1
    assert different[0].startswith(b'"task-3":')


def test_the_side_of_a_baseline_has_a_row_a_run() -> None:
    """A task that was not in a run has a row of trials that were not run and not planned."""
    run = {"agent": {}, "run_digest": "sha256:1"}
    fields = minimal(
        runs=[run, run],
        root_seed="0xAB",
        tasks={
            "refund": {"outcomes": ["+-", ""], "turns": [[1, None, 1], None]},
            "long": {
                "outcomes": ["+-!", "..+"],
                "trials": 3,
                "measures": {"plan": [None, [1, 0, 1]]},
            },
        },
    )

    side = to_side(parse_baseline(encode(fields), name="x"))

    assert list(side.tasks) == ["long", "refund"]
    assert side.tasks["refund"].outcomes == ("+-", "..")
    assert side.tasks["refund"].measures == {"turns": (Measure(1.0, None, 1.0), None)}
    assert side.tasks["long"].outcomes == ("+-!", "..+")
    assert side.tasks["long"].measures == {"plan": (None, Measure(1.0, 0.0, 1.0))}
    assert side.planned == {"refund": 2, "long": 6}
    assert side.root_seed == "0x00000000000000ab"
    assert side.kind == "baseline"
    assert len(side.runs) == 2


TWO = {"agent": {}, "run_digest": "x"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"\xff{}", "is not UTF-8: byte 0 is 0xff"),
        (EXAMPLE[:400].encode(), "is not JSON: Input data was truncated"),
        (b"[]", "is not a JSON object, found an array"),
        (b"{}", "has no `schema`"),
        (changed(schema="ci-gate/baseline@2"), "upgrade ci-gate"),
        (changed(schema="ci-gate/run@1"), "has the schema ci-gate/run@1"),
        (changed(schema="other"), "has the schema other"),
        (b'{"schema":"ci-gate/baseline@1"}', "suite"),
        (changed(trials=0), "trials: must be from 1 to 1000000, found 0"),
        (changed(trials=8.5), r"Expected `int`, got `float` - at `\$.trials`"),
        (changed(errors="ignore"), "Invalid enum value 'ignore'"),
        (changed(root_seed="0xg"), "root_seed: a seed is hexadecimal"),
        (changed(root_seed="0x1" + "0" * 16), "root_seed: a seed is a whole number"),
        (changed(runs=[]), "runs: must be a list with at least one entry"),
        (changed(runs=[TWO, {"agent": {}}]), r"runs\[1\]: .*missing required field `run_digest`"),
        (changed(runs=[TWO, 5]), r"runs\[1\]: Expected `object`, got `int`"),
        (changed(tasks={}), "tasks: must be an object with at least one task"),
        (changed(tasks=[1]), "tasks: must be an object"),
        (
            changed(tasks={"a\n": {"outcomes": ["+" * 8] * 2}}),
            r"tasks\['a\\n'\]: the task id contains",
        ),
        (changed(tasks={"a": 1}), r"tasks\['a'\]: Expected `object`, got `int`"),
        (with_task(outcomes=["+++++++-"]), "outcomes has 1 entries for 2 runs"),
        (
            with_task(outcomes=["+++++++", "++++++++"]),
            r"outcomes\[0\] has 7 characters for 8 trials",
        ),
        (with_task(outcomes=["++++x++y", "++++++++"]), r"outcomes\[0\] contains 'xy'"),
        (with_task(outcomes=["", ""]), "is in none of the runs"),
        (with_task(trials=3), r"outcomes\[0\] has 8 characters for 3 trials"),
        (with_task(faulted=[1]), "faulted has 1 entries for 2 runs"),
        (with_task(turns=[[1, 2]] * 2), r"Expected `array` of length 3"),
        (with_task(turns=[[1, 2, 3, 0]] * 2), r"Expected `int` >= 1"),
        (with_task(turns=[["x", 1, 1]] * 2), r"Expected `float \| null`, got `str`"),
        (with_task(measures={"plan": [None]}), "measures.plan has 1 entries for 2 runs"),
        (EXAMPLE.replace("[5.1,", "[NaN,").encode(), "found NaN"),
        (
            EXAMPLE.replace(
                '"tasks":{\n', '"tasks":{\n"refund-4812":{"outcomes":["+"]},\n'
            ).encode(),
            "has twice: 'refund-4812'",
        ),
        (
            EXAMPLE.replace('"runs":[\n', '"runs":[\n<<<<<<< HEAD\n').encode(),
            "has conflict markers of a merge",
        ),
    ],
)
def test_a_bad_baseline_is_refused(content: bytes, message: str) -> None:
    """Every field is checked, and the message names file, key and what was found."""
    with pytest.raises(FileFormatError, match=f"^base.json: (.|\n)*{message}"):
        parse_baseline(content, name="base.json")


def test_every_mistake_is_said_at_once() -> None:
    """All impossible fields are reported together, not one a run."""
    content = changed(trials=0, root_seed="x", runs=[TWO, {}], tasks={"a": {"outcomes": ["?"]}})

    with pytest.raises(FileFormatError) as caught:
        parse_baseline(content, name="x")

    assert len(caught.value.problems) == 5


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """A baseline that does not exist is a format error with its path."""
    with pytest.raises(FileFormatError, match=r"no\.json: there is no such file"):
        load_baseline(tmp_path / "no.json")


IDS = st.text(st.characters(categories=("L", "N", "S")), min_size=1, max_size=8)
ROWS = st.sampled_from(["", "++", "+-", "!.", "--"])
NUMBERS = st.none() | st.floats(-1e12, 1e12)
MEASURES = st.none() | st.builds(Measure, NUMBERS, NUMBERS, NUMBERS)


@given(
    st.dictionaries(
        IDS,
        st.builds(
            BaselineTask,
            digest=st.none() | IDS,
            outcomes=st.tuples(ROWS, st.just("+-")),
            faulted=st.none() | st.tuples(st.none() | st.integers(0, 9), st.none()),
            tokens=st.none() | st.tuples(MEASURES, MEASURES),
            measures=st.none() | st.dictionaries(IDS, st.tuples(MEASURES, MEASURES), min_size=1),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["exclude", "fail"]),
)
def test_writing_and_reading_settle_at_once(tasks: dict[str, BaselineTask], errors: Any) -> None:
    """Whatever a baseline holds, what is written is read back and written again the same."""
    run = BaselineRun(agent=AgentRef(name="a"), run_digest="sha256:1")
    baseline = Baseline(suite="desk", trials=2, errors=errors, runs=(run, run), tasks=tasks)

    once = dump_baseline(baseline)

    assert dump_baseline(parse_baseline(once, name="x")) == once
    assert to_side(parse_baseline(once, name="x")).planned == to_side(baseline).planned
