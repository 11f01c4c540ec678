"""What the desk can do in the shop's systems: look things up, pay back, write, hand over.

Every tool answers with a table of its own; money is in cents. A refund books the ledger in the same
transaction. Mail is sent once per order and template, however often it is asked for; refunds have
no such protection, because an order can rightly have several of the same amount.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


class Desk:
    """The tools over one database.

    Parameters
    ----------
    connection : sqlite3.Connection
    today : str
        ISO date that is written into what the desk books.
    """

    def __init__(self, connection: sqlite3.Connection, today: str) -> None:
        connection.row_factory = sqlite3.Row
        # The shop's real database is durable; this one lives as long as the conversation.
        connection.execute("PRAGMA synchronous=OFF")
        self._connection = connection
        self._today = today

    def tools(self) -> list[Callable[..., Row]]:
        """Return the functions that the agent may call."""
        return [
            self.find_orders,
            self.read_order,
            self.list_refunds,
            self.refund_order,
            self.send_mail,
            self.escalate,
        ]

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def find_orders(self, email: str) -> Row:
        """Return the ids of a customer's orders, the latest first."""
        rows = self._rows(
            "SELECT orders.id FROM orders JOIN customers ON customers.id = customer_id"
            " WHERE email = ? ORDER BY placed_on DESC",
            email,
        )
        return {"orders": [row["id"] for row in rows]}

    def read_order(self, order_id: str) -> Row:
        """Return an order with its customer's address and its items."""
        orders = self._rows(
            "SELECT orders.id, email, status, delivered_on FROM orders"
            " JOIN customers ON customers.id = customer_id WHERE orders.id = ?",
            order_id,
        )
        if not orders:
            raise LookupError(f"there is no order {order_id}")
        items = self._rows(
            "SELECT line, title, quantity * unit_cents AS cents FROM items"
            " WHERE order_id = ? ORDER BY line",
            order_id,
        )
        return {**orders[0], "items": items}

    def list_refunds(self, order_id: str) -> Row:
        """Return what was paid back for an order so far."""
        rows = self._rows(
            "SELECT line, cents FROM refunds WHERE order_id = ? ORDER BY id", order_id
        )
        return {"refunds": rows}

    def refund_order(self, order_id: str, line: int, cents: int, reason: str | None) -> Row:
        """Pay back an amount for one item of an order."""
        if cents <= 0:
            raise ValueError(f"a refund is above 0 cents, not {cents}")
        with self._connection:
            cursor = self._connection.execute(
                "INSERT INTO refunds (order_id, line, cents, reason, made_on)"
                " VALUES (?, ?, ?, ?, ?)",
                (order_id, line, cents, reason, self._today),
            )
            self._connection.execute(
                "INSERT INTO ledger (order_id, entry, cents, made_on) VALUES (?, 'refund', ?, ?)",
                (order_id, -cents, self._today),
            )
        return {"refund": cursor.lastrowid, "order": order_id, "line": line, "cents": cents}

    def send_mail(self, recipient: str, template: str, order_id: str) -> Row:
        """Write to a customer with one of the shop's templates, once per order."""
        with self._connection:
            self._connection.execute(
                "INSERT OR IGNORE INTO outbox (recipient, template, order_id, made_on)"
                " VALUES (?, ?, ?, ?)",
                (recipient, template, order_id, self._today),
            )
        return {"sent": template, "to": recipient}

    def escalate(self, order_id: str, queue: str) -> Row:
        """Hand an order over to people, once per queue."""
        with self._connection:
            self._connection.execute(
                "INSERT OR IGNORE INTO escalations (order_id, queue, made_on) VALUES (?, ?, ?)",
                (order_id, queue, self._today),
            )
        return {"queue": queue, "order": order_id}

    def _rows(self, query: str, *values: Any) -> list[Row]:
        return [dict(row) for row in self._connection.execute(query, values)]
