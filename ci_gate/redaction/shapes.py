"""What looks like a credential, without anybody knowing it: shapes of keys, and names that say so.

Decides which rules can find anything in a text at all, so that looking at what has no secrets,
which is nearly everything, costs little. Knows texts alone.

A look's ``run`` is the length of the shortest word in which its expressions find anything.

Notes
-----
Every expression begins with a bare character or a few, the rarer the better, and asks only then
what stands before: the search of the standard library jumps from one to the next as fast as memory.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from ci_gate.redaction.runs import Gated, Look

__all__ = [
    "LOGINS",
    "LOGIN_OPTIONS",
    "NAMES",
    "RULES",
    "SECRET",
    "Rule",
    "is_login",
    "is_secret_name",
    "rules_for",
]

SECRET: Final = "[REDACTED:secret]"
"""Stands for every secret that is known, or was found under a name that says so.

One mark for both: a replay whose agent hands on what it was given then makes the recorded call.
"""

_SECRET_WORDS: Final = (
    "authorization",
    "proxyauthorization",
    "xauthorization",
    "httpauthorization",
    "cookie",
    "setcookie",
    "httpcookie",
    "apikey",
    "xapikey",
    "httpxapikey",
    "apitoken",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "authtoken",
    "xauthtoken",
    "bearertoken",
    "sessiontoken",
    "securitytoken",
    "csrftoken",
    "clientsecret",
    "secret",
    "secretkey",
    "secretaccesskey",
    "signingkey",
    "password",
    "passwd",
    "passphrase",
    "privatekey",
    "credentials",
)
_SECRET_NAMES: Final = frozenset(_SECRET_WORDS)
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]")

# Folded: without case, and with what shapes treat alike made the same, so that one look finds "sk-"
# and "PK_"; the looks below are written in it, "secret" as "secset".
_FOLD: Final = bytes.maketrans(
    string.ascii_uppercase.encode() + b"_prPR", string.ascii_lowercase.encode() + b"-ssss"
)


class Rule(NamedTuple):
    """One kind of credential.

    Attributes
    ----------
    looks : tuple of Look
        Searches of a folded content; where none of them finds anything, the rule does not either.
    without : callable
        Returns a text without what the rule finds.
    """

    looks: tuple[Look, ...]
    without: Callable[[str], str]


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether what stands under this name is secret by its name."""
    return _NOT_IN_NAMES.sub("", name.lower()) in _SECRET_NAMES


def _looks(*patterns: bytes, run: int = 0) -> tuple[Look, ...]:
    return tuple(Look(re.compile(pattern).search, run) for pattern in patterns)


def _shape(kind: str, looks: tuple[Look, ...], *patterns: str, kept: str = "") -> Rule:
    replacing = tuple(re.compile(pattern).sub for pattern in patterns)
    mark = f"{kept}[REDACTED:{kind}]"

    def without(text: str) -> str:
        for replaced in replacing:
            text = replaced(mark, text)
        return text

    return Rule(looks, without)


# What may stand before a name in a text; other words before "key" are no secret's.
_BEFORE: Final[Mapping[str, tuple[str, ...]]] = {
    "authorization": ("",),
    "cookie": ("",),
    "password": ("",),
    "passwd": ("",),
    "key": tuple(
        f"{word}{joint}"
        for word in ("api", "access", "secret", "private", "signing")
        for joint in ("", "-", "_")
    ),
    "token": tuple(
        f"{word}{joint}"
        for word in ("api", "access", "refresh", "auth", "bearer", "session", "security")
        for joint in ("", "-", "_")
    ),
    "secret": ("client", "client-", "client_"),
}
_ASSIGNED: Final = re.compile(
    r"\\{0,3}[\"']?\s{0,8}[:=]\s{0,8}\\{0,3}[\"']?(?P<value>[^\s\"'\\&,;][^\r\n\"'\\&,]{0,4000})"
)
_ASCII_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def _without_assigned(text: str) -> str:
    """Return a text in which headers and assignments keep their names alone."""
    if ":" not in text and "=" not in text:
        return text
    parts, done = [], 0
    for start, end in sorted(_assigned(text)):
        if start >= done:
            parts += [text[done:start], SECRET]
            done = end
    return "".join([*parts, text[done:]]) if parts else text


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the values of secret names stand."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters become two
        lowered = text.translate(_ASCII_LOWER)
    for word, before in _BEFORE.items():
        place = lowered.find(word)
        while place >= 0:
            end = place + len(word)
            match = _ASSIGNED.match(text, end) if lowered.endswith(before, 0, place) else None
            if match is not None and not match["value"].startswith("[REDACTED"):
                yield match.span("value")
            place = lowered.find(word, end)


NAMES: Final = Rule(
    (
        *_looks(rb"k(?:ey|en(?<=token)(?!s)|ie(?<=cookie))"),
        *_looks(rb"z(?<=authosiz)ation", run=13),
        *_looks(rb"c(?<=sec)set", rb"w(?<=sassw)", rb"h(?<=sasssh)"),
        *_looks(rb"csedentials", run=11),
    ),
    _without_assigned,
)
"""It looks for what every name of a secret has; what stands under one is the redactor's."""

LOGIN_OPTIONS: Final = frozenset({"-u", "--user", "--proxy-user"})
"""Options that are followed by a name and a password, as those of curl."""

_LOGIN: Final = r"(?!\d+:\d+(?![^\s\"']))[^\s:\"'\\]{1,200}:[^\s\"'\\]{1,200}"
_LOGIN_IN_LINE: Final = re.compile(
    rf"(?<![\w-])(?P<option>-u|--user|--proxy-user)(?P<joint>[ =]{{1,8}}\\{{0,3}}[\"']?){_LOGIN}"
)
_is_login = re.compile(_LOGIN).fullmatch


def is_login(text: str) -> bool:
    """Return whether it is a name and a password with a colon between, and no two numbers."""
    return _is_login(text) is not None


def _without_logins(text: str) -> str:
    return _LOGIN_IN_LINE.sub(rf"\g<option>\g<joint>{SECRET}", text)


LOGINS: Final = Rule(_looks(rb"-u(?:ses)?[\"'\\ =]"), _without_logins)
"""What ``curl -u NAME:PASSWORD`` has on a command line; in a list it is the redactor's."""

RULES: Final = (
    _shape(
        "authorization",
        _looks(rb"b(?:eases|asic)"),
        r"[Bb](?<!\w[Bb])(?i:earer|asic)\s{1,8}[A-Za-z0-9._~+/-]{8,}=*",
    ),
    _shape(
        "private-key",
        _looks(rb"-----begin ", run=10),
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
        r"(?:[A-Za-z0-9+/=\s\\:,]|-(?!----)){0,20000}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?",
    ),
    _shape("password", _looks(rb"@"), r"://[^\s/:@]{0,200}:[^\s/@]{1,200}(?=@)", kept="://"),
    _shape("jwt", _looks(rb"j(?<=eyj)", run=11), r"eyJ(?<!\weyJ)[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}"),
    _shape(
        "api-key",
        _looks(rb"-(?:(?<=sk-)|(?<=gh[sou]-)|(?<=github-sat-)|(?<=glsat-)|(?<=hf-))", run=15),
        r"[spr]k[-_](?<!\w[spr]k[-_])(?:[A-Za-z0-9]+[-_]){0,4}[A-Za-z0-9_-]{16,}",
        r"gh[pousr]_(?<!\wgh[pousr]_)[A-Za-z0-9]{20,}",
        r"github_pat_\w{20,}",
        r"glpat-[\w-]{20,}",
        r"hf_(?<!\whf_)[A-Za-z0-9]{20,}",
    ),
    _shape("api-key", _looks(rb"xox", run=15), r"xox[abeoprs]-[\w-]{10,}"),
    _shape(
        "api-key",
        _looks(rb"k(?<=ak)ia", rb"asia", rb"z(?<=aiz)a", run=15),
        r"A[KS]IA(?<!\wA[KS]IA)[A-Z0-9]{16}\b",
        r"AIza(?<!\wAIza)[\w-]{35}",
    ),
    NAMES,
    LOGINS,
)


_LOOKS: Final = Gated((look, place) for place, rule in enumerate(RULES) for look in rule.looks)


def rules_for(content: bytes, runs: bytes) -> tuple[Rule, ...]:
    """Return the rules that may find something in a text, given its UTF-8 and ``runs_of`` it."""
    places = set(_LOOKS.found(content.translate(_FOLD), runs))
    return tuple(RULES[place] for place in sorted(places)) if places else ()
