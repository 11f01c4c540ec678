"""A draft of a task file says what it was given and nothing else, whoever wrote the texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_gate.errors import UsageError
from ci_gate.store.task_drafts import DraftGrader, TaskDraft, draft_text
from ci_gate.store.taskfiles import Findings, tasks_in

HOSTILE = (
    'x"\n[[graders]]\ntype = "answer"',
    '"""\nid = "other"',
    "'''",
    "\\",
    'C:\\path "q"',
    "a\r\nb\r",
    "\x00\x1b[31m\x7f\u0085\u2028",
    "\u202egnihton",
    "::error::x",
    "",
    "a\nb\nc\\\n",
    "  \n \n ",
)
GRADER = DraftGrader(what="the answer", table={"type": "answer", "contains": "x"})


def _draft(fields, *, graders=(GRADER,), **rest):
    return TaskDraft(fields=fields, graders=graders, **rest)


def _read(text):
    findings = Findings()
    [task] = tasks_in("x.toml", text.encode(), findings)
    assert findings.problems == []
    return task.fields


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_data_wherever_it_stands(text):
    """In a value, a key, a list, a comment, and in a grader that is commented out."""
    fields = {
        "id": text,
        "instruction": text,
        "input": {text or "k": text, "list": [text, {text or "k": text}]},
        "metadata": {"m": text},
    }
    hidden = DraftGrader(what=text, table={"type": "file", "path": text})
    draft = _draft(fields, graders=(GRADER, hidden), remarks=[text], notes=[text])

    written, lost = draft_text(draft, name="x")

    assert _read(written) == {**fields, "graders": [GRADER.table]}
    assert lost == []
    assert not any(char in written for char in "\x00\x1b\x7f\u0085\u2028\u202e\r")


JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(told=JSON, instruction=st.text())
def test_every_json_value_is_read_as_it_was_written(told, instruction):
    """Texts, keys and numbers of any kind."""
    written, _ = draft_text(_draft({"instruction": instruction, "input": told}), name="x")

    found = _read(written)

    assert (found["instruction"], found["input"]) == (instruction, told)


def test_what_toml_does_not_have_is_left_out_and_named():
    """A null anywhere, by its place."""
    told = {"a": None, "b": [1, None], "c": {"d": None, "e": 1}}

    written, lost = draft_text(_draft({"input": told}), name="x")

    assert _read(written)["input"] == {"b": [1], "c": {"e": 1}}
    assert lost == ["input.a", "input.b[1]", "input.c.d"]
    assert "# TODO: TOML has no null; 3 left out: input.a, input.b[1], input.c.d\n" in written


def test_a_lone_surrogate_is_replaced():
    """Neither TOML nor UTF-8 has one."""
    written, _ = draft_text(_draft({"instruction": "a\ud800b"}), name="x")

    assert _read(written)["instruction"] == "a\ufffdb"


def test_what_no_reader_would_take_is_refused():
    """Instead of a file that breaks the suite."""
    deep: object = 1
    for _ in range(2000):
        deep = [deep]

    with pytest.raises(UsageError, match="nested too deep"):
        draft_text(_draft({"input": deep}), name="x")


def test_only_the_first_grader_is_in_effect():
    """The others can be taken into use by removing the marks."""
    other = DraftGrader(what="a table", table={"type": "sql", "query": 'SELECT "a"', "equals": [1]})

    written, _ = draft_text(_draft({"id": "x"}, graders=(GRADER, other)), name="x")
    unmarked = written.replace("# [[graders]]", "[[graders]]")
    unmarked = unmarked.replace("# type", "type").replace("# query", "query")
    unmarked = unmarked.replace("# equals", "equals")

    assert _read(written)["graders"] == [GRADER.table]
    assert _read(unmarked)["graders"] == [GRADER.table, other.table]
    assert "# query = 'SELECT \"a\"'\n" in written
