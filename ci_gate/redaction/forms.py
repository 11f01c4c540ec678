"""Which values of an environment are secret, and in which forms a secret travels.

Knows texts alone: neither who holds them nor what is written.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

__all__ = ["SHORTEST_SECRET", "all_forms_of", "secrets_of_environment"]

SHORTEST_SECRET: Final = 8
"""Shorter values are words that occur by chance; taking them out would garble everything."""

_SECRET_VARIABLE: Final = re.compile(
    r"(?i)(?:^|_)(?:api_?key|key|token|secret|password|passwd|pwd|credentials?|auth|cookie)(?:_|$)"
)


def secrets_of_environment(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables whose names say that they are secret, longest first."""
    found = {
        value
        for name, value in environment.items()
        if _SECRET_VARIABLE.search(name) and len(value) >= SHORTEST_SECRET and not _is_plain(value)
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def _is_plain(value: str) -> bool:
    """Return whether a value is a path, number or switch, which variables named KEY may hold."""
    return value.isdecimal() or value.startswith(("/", "./", "~")) or value.lower() == "disabled"


def all_forms_of(secrets: Iterable[str]) -> list[str]:
    """Return every form in which the secrets travel, longest first.

    Plain, escaped as JSON once and twice, percent-encoded, and what of base64 and base64url of any
    longer text is the same wherever the secret stands in it.
    """
    forms = {form for secret in secrets for form in _forms_of(secret)}
    return sorted(forms, key=lambda form: (-len(form), form))


def _forms_of(secret: str) -> Iterator[str]:
    yield secret
    once = json.dumps(secret)[1:-1]
    yield from (once, json.dumps(once)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    plain = secret.encode("utf-8", "surrogatepass")
    yield from (quote(plain), quote(plain, safe=""))
    yield from _base64_forms(plain)


def _base64_forms(secret: bytes) -> Iterator[str]:
    """Yield what of base64 is the same whatever stands around the secret, at each alignment."""
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + secret)
        # The first characters hold bits of what stands before, the last of what comes after.
        skip = -(-shift * 8 // 6)
        whole = (shift + len(secret)) * 8 // 6
        core = encoded[skip:whole].decode("ascii")
        if len(core) >= SHORTEST_SECRET:
            yield core
            yield core.replace("+", "-").replace("/", "_")
