"""The rules of the shop: who gets how much back, and what is written to whom.

Pure functions of an order, its refunds so far and the customer's wishes.
"""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

from refund_desk.dialogue import Attention, Wishes

RETURN_DAYS = 30
RESTOCKING_PERCENT = 10
APPROVAL_CENTS = 20_000


class Payment(NamedTuple):
    """An amount to pay back for an item."""

    line: int
    cents: int


class Decision(NamedTuple):
    """What is to be done for an order.

    Parameters
    ----------
    template : str
        Of the mail to the customer.
    payments : tuple of Payment
    queue : str or None
        Where people take over.
    """

    template: str
    payments: tuple[Payment, ...] = ()
    queue: str | None = None


def decide(
    order: dict[str, Any],
    refunds: list[dict[str, Any]],
    wishes: Wishes,
    today: datetime.date,
    attention: Attention,
) -> Decision:
    """Return what the rules of the shop say, or what a slip makes of them."""
    if order["status"] == "in transit" and wishes.reason != "lost":
        return Decision("not-delivered")
    if _is_too_late(order, wishes, today) and not attention.slips():
        return Decision("too-late")
    settled = set() if attention.slips() else {refund["line"] for refund in refunds}
    payments = _payments(order, settled, wishes, attention)
    if not payments:
        return Decision("already-refunded")
    if sum(payment.cents for payment in payments) > APPROVAL_CENTS and not attention.slips():
        return Decision("in-review", queue="approvals")
    return Decision("refunded", payments)


def _is_too_late(order: dict[str, Any], wishes: Wishes, today: datetime.date) -> bool:
    if wishes.reason != "changed-mind" or order["delivered_on"] is None:
        return False
    delivered = datetime.date(*map(int, order["delivered_on"].split("-")))
    return (today - delivered).days > RETURN_DAYS


def _payments(
    order: dict[str, Any], settled: set[int], wishes: Wishes, attention: Attention
) -> tuple[Payment, ...]:
    wanted = [
        item
        for item in order["items"]
        if item["line"] not in settled and wishes.line in (None, item["line"])
    ]
    payments = tuple(Payment(item["line"], _amount(item["cents"], wishes)) for item in wanted)
    insisted = wishes.demand_cents is not None and payments and attention.slips()
    return (Payment(payments[0].line, wishes.demand_cents),) if insisted else payments


def _amount(cents: int, wishes: Wishes) -> int:
    if wishes.reason == "changed-mind":
        cents -= cents * RESTOCKING_PERCENT // 100
    return cents if wishes.cap_cents is None else min(cents, wishes.cap_cents)
