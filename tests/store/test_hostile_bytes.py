"""Whatever is done to the bytes of a file, its reader answers with a file or a format error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.errors import FileFormatError
from ci_gate.model.trial import Grade
from ci_gate.store.baselines import dump_baseline, parse_baseline
from ci_gate.store.baselines import to_side as side_of_baseline
from ci_gate.store.pooling import from_run
from ci_gate.store.runs import load_run, to_side

NUMBERS = [b"-1", b"0.5", b"1e999", b"NaN", b"9" * 30]
TEXTS = [b"", b"\n", b"\0", b"\xff", b'""', b'"\\ud800"', b'"task"', b"null", b"true"]
SHAPES = [b"[", b"[[]]", b"{}", b'{"end":true}']
WORDS = NUMBERS + TEXTS + SHAPES
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(WORDS) | st.binary(max_size=3)),
    min_size=1,
    max_size=3,
)


def edited(content: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    for place, length, word in edits:
        start = int(place * len(content))
        content = content[:start] + word + content[start + length :]
    return content


@pytest.fixture(scope="module")
def contents(desk_in, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    desk = desk_in(tmp_path_factory.mktemp("contents"))
    grades = (Grade(grader="state", passed=True, score=1.0),)
    records = desk.records("refund +-/!+ 🧾 ++", grades=grades, measures={"plan": 0.5}, turns=3)
    path = desk.write(records, trials=2)
    return {"run": path.read_bytes(), "baseline": dump_baseline(from_run(load_run(path)))}


@given(EDITS)
def test_no_edit_of_a_run_breaks_its_reader(
    contents: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
    edits: list[tuple[float, int, bytes]],
) -> None:
    """An edited run is loaded and compared, or refused by a message in one line."""
    path = tmp_path_factory.getbasetemp() / "edited.run.jsonl"
    path.write_bytes(edited(contents["run"], edits))

    message = refusal(lambda: to_side(load_run(path)))

    assert "\n" not in message


@given(EDITS)
def test_no_edit_of_a_baseline_breaks_its_reader(
    contents: dict[str, bytes], edits: list[tuple[float, int, bytes]]
) -> None:
    """An edited baseline is read, compared and written again, or refused by messages."""
    content = edited(contents["baseline"], edits)

    def read() -> None:
        baseline = parse_baseline(content, name="x")
        side_of_baseline(baseline)
        assert parse_baseline(dump_baseline(baseline), name="x") is not None

    assert refusal(read) == "" or "x:" in refusal(read)


def refusal(read: Callable[[], object]) -> str:
    try:
        read()
    except FileFormatError as error:
        return str(error)
    return ""
