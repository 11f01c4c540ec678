"""The difference of two worlds: nothing missed, nothing made up, whatever the order of rows."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from ci_gate.grading.state.difference import apply, difference
from ci_gate.grading.state.world import EMPTY, Entry, Table, WorldState, frozen
from tests.speeds import examples

CELLS = st.none() | st.integers(-3, 3) | st.sampled_from(["a", "b", b"a", 0.5, True])
COLUMNS = st.sampled_from([("id", "x"), ("id", "x", "y")])


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(COLUMNS)
    rows = draw(st.lists(st.tuples(*(CELLS for _ in columns)), max_size=6))
    key = draw(st.sampled_from([(), ("id",), ("id", "x")]))
    return Table(columns=columns, rows=tuple(rows), key=key, is_json=True)


RECORDS = st.lists(st.dictionaries(st.sampled_from("ab"), CELLS, max_size=2), max_size=4)
ENTRIES = st.builds(Entry, kind=st.just("file"), digest=st.sampled_from("xyz"), size=st.just(1))
STATES = st.builds(
    WorldState,
    tables=st.dictionaries(st.sampled_from(["orders", "refunds"]), tables()),
    files=st.dictionaries(st.sampled_from(["a", "b/c"]), ENTRIES),
    messages=RECORDS.map(tuple),
    payments=RECORDS.map(tuple),
)


def unordered(state: WorldState) -> object:
    return (
        {name: (t.columns, Counter(map(frozen, t.rows))) for name, t in state.tables.items()},
        state.files,
        Counter(map(frozen, state.messages)),
        Counter(map(frozen, state.payments)),
    )


@settings(max_examples=examples(25))
@given(STATES, STATES)
def test_changes_applied_to_what_was_give_what_is(before: WorldState, after: WorldState) -> None:
    """Nothing that changed is missing from a difference, and nothing is in it that did not."""
    changes = difference(before, after)
    assert unordered(apply(before, changes)) == unordered(after)
    assert changes.is_empty == (unordered(before) == unordered(after))


@settings(max_examples=examples(10))
@given(STATES)
def test_the_order_of_rows_is_no_change(state: WorldState) -> None:
    """Rows and records have no order."""
    tables = {
        name: Table(columns=t.columns, rows=tuple(reversed(t.rows)), key=t.key, is_json=True)
        for name, t in state.tables.items()
    }
    turned = WorldState(
        tables=tables,
        files=state.files,
        messages=state.messages[::-1],
        payments=state.payments[::-1],
    )
    assert difference(state, turned).is_empty


def test_a_row_is_compared_field_by_field_under_its_key() -> None:
    """A row with a key is said to have changed, and in which fields."""
    columns = ("id", "cents")
    before = Table(columns=columns, rows=((1, 5), (2, 5)), key=("id",))
    after = Table(columns=columns, rows=((1, 7), (3, 5)), key=("id",))
    found = difference(
        WorldState(tables={"refunds": before}), WorldState(tables={"refunds": after})
    ).tables["refunds"]
    assert found.added == ((3, 5),)
    assert found.removed == ((2, 5),)
    assert [(c.before, c.after, c.fields) for c in found.changed] == [((1, 5), (1, 7), ("cents",))]


def test_rows_without_a_key_are_counted() -> None:
    """The same row once more is one row that was added."""
    before, after = (Table(columns=("x",), rows=((1,),) * times) for times in (2, 3))
    found = difference(WorldState(tables={"log": before}), WorldState(tables={"log": after}))
    assert found.tables["log"].added == ((1,),)


def test_a_table_that_is_made_dropped_or_altered_changed_even_without_rows() -> None:
    """Columns are content too."""
    with_table = WorldState(tables={"new": Table(columns=("x",), rows=())})
    altered = WorldState(tables={"new": Table(columns=("x", "y"), rows=())})
    pairs = [(EMPTY, with_table), (with_table, EMPTY), (with_table, altered)]
    assert all(difference(*pair).tables["new"].has_other_columns for pair in pairs)
