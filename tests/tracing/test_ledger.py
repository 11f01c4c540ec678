"""What calls cost adds up, and what nobody knows is not 0."""

from itertools import permutations

from ci_gate.model.trace import TraceRecord
from ci_gate.model.trace_findings import LedgerEntry
from ci_gate.tracing.ledger import ledger_of


def _call(name, kind="llm", **fields):
    return TraceRecord(order=0, kind=kind, name=name, input_digest="", **fields)


_CALLS = [
    _call("big", tokens=100, cost_usd=0.1, duration_ms=5.0),
    _call("big", tokens=50, cost_usd=0.2),
    _call("unpriced", tokens=7, is_error=True),
    _call("pay", kind="tool", duration_ms=1.0),
]


def test_calls_are_added_up_by_kind_and_name():
    """Tokens, money, time, errors; and calls whose price is unknown."""
    ledger = ledger_of(_CALLS)

    assert [(kind, name, entry.calls) for kind, name, entry in ledger.by_name] == [
        ("llm", "big", 2),
        ("llm", "unpriced", 1),
        ("tool", "pay", 1),
    ]
    assert ledger.total == LedgerEntry(
        calls=4, errors=1, tokens=157, cost_usd=0.30000000000000004, duration_ms=6.0, unpriced=1
    )


def test_an_amount_that_no_call_says_is_unknown():
    """A tool without a price did not cost 0."""
    entry = ledger_of([_call("pay", kind="tool")]).total

    assert (entry.tokens, entry.cost_usd, entry.duration_ms) == (None, None, None)


def test_the_total_does_not_depend_on_the_order_of_the_calls():
    """Floating-point sums are exact before they are rounded once."""
    assert len({ledger_of(order).total.cost_usd for order in permutations(_CALLS)}) == 1
