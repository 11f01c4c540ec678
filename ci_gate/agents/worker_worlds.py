"""What a trial's world holds beside files and databases: tables, an outbox, payments.

A part of the worker in a file of its own, because most trials use none of it: like ``worker`` it
runs under the agent's interpreter, uses the standard library alone and works from Python 3.8 on.
Nothing here reaches anybody: a message and a payment are a line in a file of the trial, and there
is no setting that would make them more.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Dict

# The worker's own, which it puts here: it is no module that could be imported.
Observation: Any = None

_MAX_DEPTH = 60
_CURRENCY_LETTERS = 3
_MAX_CENTS = 2**53 - 1
_WRITE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
_LOCK = threading.RLock()

Tables = Dict[str, Any]


class Memory:
    """The tables of a trial, read when they are first asked for and written back at its end.

    Parameters
    ----------
    path : str or None
        Of ``tables.json``; there need not be one.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._tables: Tables | None = None
        self._text = ""

    @property
    def tables(self) -> Tables:
        """By name a list of rows, each a dict, free to be changed."""
        with _LOCK:
            if self._tables is None:
                self._text = self._read()
                self._tables = json.loads(self._text)
            return self._tables

    def _read(self) -> str:
        if self._path is None or not os.path.exists(self._path):
            return "{}"
        with open(self._path, encoding="utf-8") as file:
            return file.read()

    def keep(self) -> None:
        """Write the tables back where they were asked for.

        Raises
        ------
        ValueError
            They hold what JSON does not have; the file stays as it is.
        """
        with _LOCK:
            if self._tables is None or self._path is None:
                return
            for what in _misfits(self._tables, "env.world.tables", 0):
                raise ValueError(what)
            _require_rows(self._tables)
            text = json.dumps(self._tables)
            # By their texts: true is not 1.
            if text != json.dumps(json.loads(self._text)) or not os.path.exists(self._path):
                _replace(self._path, text + "\n")
                self._text = text


def _require_rows(tables: Tables) -> None:
    for name, rows in tables.items():
        if not isinstance(rows, (list, tuple)) or not all(isinstance(r, dict) for r in rows):
            raise ValueError(f"env.world.tables[{name!r}] is not a list of dicts")


def _replace(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def _misfits(value: Any, place: str, depth: int) -> Iterator[str]:
    """Yield what in a value JSON does not have, each by its place."""
    if depth > _MAX_DEPTH:
        yield f"{place} is nested too deep"
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _misfits(item, f"{place}[{key!r}]", depth + 1)
            else:
                yield f"{place} has the key {key!r}, and in JSON keys are text"
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from _misfits(item, f"{place}[{at}]", depth + 1)
    elif not _is_simple(value):
        yield f"{place} is {_named(value)}, which JSON does not have"


def _is_simple(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return not any("\ud800" <= char <= "\udfff" for char in value)
    return value is None or isinstance(value, (bool, int))


def _named(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    return "a text that UTF-8 does not have" if isinstance(value, str) else type(value).__name__


class _Log:
    """Lines of JSON in a file of the trial, to which calls of one kind add.

    Parameters
    ----------
    env : Env
    kind : str
    path : str or None
        The file need not be there.
    """

    def __init__(self, env: Any, kind: str, path: str | None) -> None:
        self._env = env
        self._kind = kind
        self._path = path

    def _through(self, name: str, given: Mapping[str, Any], make: Any) -> Any:
        arguments = {key: value for key, value in given.items() if value is not None}

        def made() -> Any:
            try:
                with _LOCK:
                    return Observation(name, make(arguments), False)
            except (OSError, TypeError, ValueError) as error:
                text = f"{type(error).__name__}: {error}"
                return Observation(name, text, True, cause=error)

        return self._env.through(self._kind, name, arguments, made).unwrap()

    def _place(self) -> str:
        if self._path is None:
            raise FileNotFoundError("this trial has no place for records")
        return self._path

    def _lines(self) -> list[bytes]:
        try:
            with open(self._place(), "rb") as file:
                return [line for line in file.read().split(b"\n") if line.strip()]
        except FileNotFoundError:
            return []

    def _append(self, record: Mapping[str, Any]) -> None:
        for what in _misfits(dict(record), "", 0):
            raise TypeError(what.lstrip("[").replace("]", "", 1))
        path = self._place()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with os.fdopen(os.open(path, _WRITE, 0o600), "ab") as file:
            start = b"" if _ends_a_line(path) else b"\n"
            file.write(start + json.dumps(record).encode() + b"\n")


def _ends_a_line(path: str) -> bool:
    with open(path, "rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


class Outbox(_Log):
    """Messages that the agent sends; they reach nobody."""

    def send(
        self,
        *,
        to: Any = None,
        template: str | None = None,
        subject: str | None = None,
        body: Any = None,
        **fields: Any,
    ) -> None:
        """Put a message into the outbox; what is None is left out of it.

        Raises
        ------
        ToolError
            It is empty, or holds what JSON does not have.
        """
        given = {"to": to, "template": template, "subject": subject, "body": body, **fields}
        self._through("send", given, self._sent)

    def _sent(self, message: Mapping[str, Any]) -> None:
        if not message:
            raise ValueError("a message needs a field, such as 'to' or 'template'")
        self._append(message)


class Payments(_Log):
    """Payments that the agent intends; no money moves."""

    def charge(self, **payment: Any) -> dict[str, Any]:
        """Record that a customer is to pay; see ``refund``."""
        return self._intend("charge", payment)

    def refund(self, **payment: Any) -> dict[str, Any]:
        """Record that a customer is to get money back.

        Parameters
        ----------
        amount_cents : int
            Above 0.
        currency : str
            Three letters.
        reference : str, optional
            What it is for, such as an order.
        idempotency_key : str, optional
            The same payment under the same key is one payment.
        **fields
            Anything else that JSON has.

        Returns
        -------
        dict
            What was recorded, with ``id`` and ``kind``; under a known key, what was then.

        Raises
        ------
        ToolError
            It is no payment, or another one has this key.
        """
        return self._intend("refund", payment)

    def payout(self, **payment: Any) -> dict[str, Any]:
        """Record that somebody is to be paid; see ``refund``."""
        return self._intend("payout", payment)

    def _intend(self, kind: str, payment: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self._through(kind, payment, lambda p: self._intent(kind, p))
        return found

    def _intent(self, kind: str, payment: Mapping[str, Any]) -> dict[str, Any]:
        _require_payment(payment)
        wanted = {**payment, "kind": kind, "currency": payment["currency"].upper()}
        lines = self._lines()
        known = _with_key(lines, payment.get("idempotency_key"))
        if known is None:
            record = {"id": f"payment-{len(lines) + 1}", **wanted}
            self._append(record)
            return record
        if {**known, "id": None} != {**wanted, "id": None}:
            key = payment["idempotency_key"]
            raise ValueError(f"the idempotency key {key!r} was used for another payment")
        return known


def _with_key(lines: list[bytes], key: Any) -> dict[str, Any] | None:
    """Return the first payment under an idempotency key, None where there is none."""
    for line in lines if key is not None else ():
        with contextlib.suppress(ValueError):  # a line that the agent spoilt is the graders' matter
            record = json.loads(line)
            if isinstance(record, dict) and record.get("idempotency_key") == key:
                return record
    return None


def _require_payment(payment: Mapping[str, Any]) -> None:
    amount, currency = payment.get("amount_cents"), payment.get("currency")
    if not isinstance(amount, int) or isinstance(amount, bool) or not 0 < amount <= _MAX_CENTS:
        raise ValueError(f"amount_cents must be a whole number above 0, got {amount!r}")
    is_letters = isinstance(currency, str) and currency.isascii() and currency.isalpha()
    if not is_letters or len(currency or "") != _CURRENCY_LETTERS:
        raise ValueError(f"currency must be three letters such as 'EUR', got {currency!r}")
    for name in ("reference", "idempotency_key"):
        if not isinstance(payment.get(name, ""), str):
            raise ValueError(f"{name} must be a text, got {payment[name]!r}")
    for name in ("id", "kind"):
        if name in payment:
            raise ValueError(f"{name!r} is given to a payment by its record")
