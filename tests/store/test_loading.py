from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci_gate.errors import FileFormatError
from ci_gate.model.run import Baseline
from ci_gate.store.baselines import dump_baseline
from ci_gate.store.files import write_whole
from ci_gate.store.loading import load, side_of
from ci_gate.store.pooling import from_run
from ci_gate.store.runs import RunFile


def test_a_file_is_what_its_schema_says(desk) -> None:
    """Runs and baselines are told apart by their schema, whatever their names."""
    run = desk.run("refund ++-+")
    path = desk.folder / "x.txt"
    write_whole(path, dump_baseline(from_run(run)))

    assert isinstance(load(desk.path), RunFile)
    assert isinstance(load(path), Baseline)
    assert side_of(load(desk.path)).kind == "run"
    assert side_of(load(path)).kind == "baseline"
    assert (
        side_of(load(path)).tasks["refund"].outcomes
        == side_of(load(desk.path)).tasks["refund"].outcomes
    )


def test_a_baseline_may_have_any_layout(desk) -> None:
    """A baseline on one line, or on many, is a baseline."""
    fields = json.loads(dump_baseline(from_run(desk.run("refund ++-+"))))
    for indent in (None, 2):
        path = desk.folder / "x.json"
        path.write_text(json.dumps(fields, indent=indent))
        assert isinstance(load(path), Baseline)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"hello", "is not JSON"),
        (
            b'{"schema":"ci-gate/verdict@1"}',
            "has the schema ci-gate/verdict@1. Expected ci-gate/run@1",
        ),
        (b'{"schema":"ci-gate/run@9","suite":"x"}\n', "ci-gate/run@9 is another version"),
        (b'{"schema":"ci-gate/baseline@9"}\n', "ci-gate/baseline@9 is another version"),
        (b'{"a":1}\n', "has no `schema`"),
        (b"[1]\n", "is not a JSON object"),
    ],
)
def test_what_is_neither_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """A file of another kind or version is refused by the name it gives itself."""
    path = tmp_path / "x"
    path.write_bytes(content)

    with pytest.raises(FileFormatError) as caught:
        load(path)

    assert message in str(caught.value)
