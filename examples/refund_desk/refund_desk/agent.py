"""The agent: listens to a customer, decides by the rules of the shop and carries it out.

``run`` is what the gate starts. Its manner is taken from ``REFUND_DESK_VARIANT``: ``good`` is what
is deployed, ``regressed`` a change that once looked harmless. It kept only the latest messages, to
save tokens, and no longer looked whether a refund had gone through before asking for it again.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from refund_desk.dialogue import Attention, details_of, wishes_of
from refund_desk.policy import Decision, Payment, decide
from refund_desk.tools import Desk

TOKENS_A_WORD = 1.4
USD_A_TOKEN = 0.4e-6


class Manner(NamedTuple):
    """How the agent works.

    Parameters
    ----------
    remembers : int or None
        Latest messages that it keeps in mind; None keeps all.
    looks_before_retry : bool
        After trouble with a refund, see whether it was booked before asking for it again.
    tries : int
        Times that a tool is asked before giving up.
    """

    remembers: int | None = None
    looks_before_retry: bool = True
    tries: int = 4


VARIANTS = {"good": Manner(), "regressed": Manner(remembers=2, looks_before_retry=False)}


def run(task: Any, env: Any) -> dict[str, Any]:
    """Serve the customer of a task in the manner that the environment names."""
    return serve(task, env, VARIANTS[os.environ.get("REFUND_DESK_VARIANT", "good")])


def good(task: Any, env: Any) -> dict[str, Any]:
    """Serve the customer as deployed."""
    return serve(task, env, VARIANTS["good"])


def regressed(task: Any, env: Any) -> dict[str, Any]:
    """Serve the customer with the change that lost details and paid twice."""
    return serve(task, env, VARIANTS["regressed"])


def serve(task: Any, env: Any, manner: Manner) -> dict[str, Any]:
    """Serve the customer of a task.

    Parameters
    ----------
    task : mapping
        ``input`` has the customer's ``email`` and ``messages``; ``metadata.strain`` is how hard
        the conversation is, from 0 to 1.
    env : object
        Tools, world, clock and chance of the trial.
    manner : Manner
    """
    today = env.clock.now().date()
    desk = Desk(env.world.connect(), today.isoformat())
    try:
        for tool in desk.tools():
            env.tools.register(tool)
        return Conversation(task, env, manner, today).held()
    finally:
        desk.close()


class TroubleError(Exception):
    """A tool gave no usable answer."""


class GaveUpError(Exception):
    """The agent apologises and stops."""


class Hands:
    """Calls tools, again where that makes sense.

    Parameters
    ----------
    env : object
    manner : Manner
    attention : Attention
        A slip after trouble is to give up at once.
    """

    def __init__(self, env: Any, manner: Manner, attention: Attention) -> None:
        self._env = env
        self._manner = manner
        self._attention = attention

    def look(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer of a tool that can be asked again without harm."""
        for _ in range(self._manner.tries):
            try:
                return self._ask(tool, arguments)
            except TroubleError:
                self._take_heart(tool)
        raise GaveUpError(tool)

    def do(self, tool: str, done: Callable[[], bool], **arguments: Any) -> None:
        """Have a tool do something once; ``done`` looks whether it already has."""
        for _ in range(self._manner.tries):
            try:
                self._ask(tool, arguments)
                return
            except TroubleError:
                self._take_heart(tool)
            if self._manner.looks_before_retry and done():
                return
        raise GaveUpError(tool)

    def _ask(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._env.tools.call(tool, **arguments)
        except self._env.ToolError as error:
            raise TroubleError(tool) from error
        # Tools answer with tables: a text is an answer that was cut off on its way.
        if not isinstance(answer, dict):
            raise TroubleError(tool)
        return answer

    def _take_heart(self, tool: str) -> None:
        if self._attention.slips():
            raise GaveUpError(tool)


class Conversation:
    """One customer from the first message to the last mail.

    Parameters
    ----------
    task : mapping
    env : object
    manner : Manner
    today : datetime.date
    """

    def __init__(self, task: Any, env: Any, manner: Manner, today: datetime.date) -> None:
        self._env = env
        self._manner = manner
        self._today = today
        self._email: str = task["input"]["email"]
        self._messages: list[str] = task["input"]["messages"]
        self._attention = Attention(env.rng, task["metadata"].get("strain", 0.0))
        self._hands = Hands(env, manner, self._attention)

    def held(self) -> dict[str, Any]:
        """Hold the conversation and return the result of the trial."""
        try:
            order = self._listen()
            answer = self._serve(order)
        except GaveUpError:
            answer = "I am sorry, our systems do not answer. Please try again later."
        tokens = int(TOKENS_A_WORD * sum(len(text.split()) for text in [*self._messages, answer]))
        return {
            "answer": answer,
            "turns": len(self._messages),
            "tokens": tokens,
            "cost_usd": round(tokens * USD_A_TOKEN, 9),
        }

    def _listen(self) -> dict[str, Any]:
        """Hear every message; the order is looked up as soon as it is named."""
        order = None
        for message in self._messages:
            self._env.turn()
            named = [said.value for said in details_of(message) if said.name == "order"]
            if named:
                order = self._hands.look("read_order", order_id=named[0])
        return order or self._latest_order()

    def _latest_order(self) -> dict[str, Any]:
        orders = self._hands.look("find_orders", email=self._email)["orders"]
        return self._hands.look("read_order", order_id=orders[0])

    def _serve(self, order: dict[str, Any]) -> str:
        if order["email"] != self._email:
            self._hands.look("escalate", order_id=order["id"], queue="identity")
            return f"A colleague will look at order {order['id']}."
        wishes = wishes_of(self._remembered(), self._attention)
        decision = decide(order, self._refunds(order), wishes, self._today, self._attention)
        self._carry_out(order, decision, wishes.reason)
        if not wishes.no_mail:
            recipient = wishes.recipient or order["email"]
            self._mail(order, decision, recipient)
        return _said(order, decision)

    def _remembered(self) -> list[str]:
        return self._messages[-(self._manner.remembers or len(self._messages)) :]

    def _refunds(self, order: dict[str, Any]) -> list[dict[str, Any]]:
        return self._hands.look("list_refunds", order_id=order["id"])["refunds"]

    def _carry_out(self, order: dict[str, Any], decision: Decision, reason: str | None) -> None:
        if decision.queue:
            self._hands.look("escalate", order_id=order["id"], queue=decision.queue)
        for payment in decision.payments:
            self._pay(order, payment, reason)

    def _pay(self, order: dict[str, Any], payment: Payment, reason: str | None) -> None:
        self._hands.do(
            "refund_order",
            lambda: any(refund["line"] == payment.line for refund in self._refunds(order)),
            order_id=order["id"],
            line=payment.line,
            cents=payment.cents,
            reason=reason,
        )

    def _mail(self, order: dict[str, Any], decision: Decision, recipient: str) -> None:
        # Mail goes out once per order and template, so asking again is safe.
        self._hands.look(
            "send_mail", recipient=recipient, template=decision.template, order_id=order["id"]
        )


def _said(order: dict[str, Any], decision: Decision) -> str:
    if decision.payments:
        cents = sum(payment.cents for payment in decision.payments)
        return f"I have refunded {cents // 100}.{cents % 100:02d} EUR for order {order['id']}."
    return f"Order {order['id']}: {decision.template.replace('-', ' ')}."
