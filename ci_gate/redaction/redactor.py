"""Takes secrets out of what is about to be written: traces, reports, logs.

Three kinds are known: values that the caller knows to be secret, in every form in which they
travel; text that has the shape of a credential; and values under a name that says so. What was
once found under such a name is taken out wherever it turns up later. The same input always gives
the same output, so that digests over redacted values agree between a recording and its replay.
It does not know what is written, nor where.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from ci_gate.codec import encode
from ci_gate.redaction.forms import SHORTEST_SECRET, all_forms_of
from ci_gate.redaction.runs import Gated, Look, longest_run, runs_of
from ci_gate.redaction.shapes import (
    LOGIN_OPTIONS,
    LOGINS,
    NAMES,
    RULES,
    SECRET,
    Rule,
    is_login,
    is_secret_name,
    rules_for,
)

__all__ = ["Redactor"]

_MOST_LEARNED: Final = 200
_MOST_TEXTS: Final = 1000
_MAX_DEPTH: Final = 200
_HEADER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,60}")
_NAMED_BY: Final = ("name", "key", "header")
# Where a text was cut, or may have been.
_CUT: Final = re.compile(r"\.\.\.|\Z")
_NUMBERS: Final = (type(None), bool, int, float)

_Step = Callable[[str], str]


class Redactor:
    """Takes secrets out of JSON values; one is used for everything that belongs together.

    Parameters
    ----------
    secrets : iterable of str
        Values that are known to be secret; those shorter than 8 characters are left alone.
    patterns : iterable of str
        Regular expressions of the configuration; what they match is taken out.

    Notes
    -----
    A known secret is found as it is, escaped as JSON once or twice, percent-encoded, and inside of
    base64 and base64url of any longer text. Encrypted, compressed or reversed ones are not.
    """

    def __init__(self, secrets: Iterable[str] = (), patterns: Iterable[str] = ()) -> None:
        self._known = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self._configured = tuple(
            _taking_out(re.compile(pattern), "[REDACTED:configured]") for pattern in patterns
        )
        self._learned = 0
        self._set_literals()

    def _set_literals(self) -> None:
        forms = all_forms_of(self._known)
        found = re.compile("|".join(map(re.escape, forms))) if forms else None
        self._literals: tuple[_Step, ...] = () if found is None else (_taking_out(found, SECRET),)
        self._looks = Gated((_look_for(form), form) for form in forms)
        self._texts: dict[str, str] = {}

    def fresh(self) -> Redactor:
        """Return one that knows what this one knows, and learns for itself from here on."""
        copied = copy.copy(self)
        copied._known = set(self._known)
        copied._texts = {}
        return copied

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        if len(text) < SHORTEST_SECRET and not self._configured:
            return text
        content = text.encode("utf-8", "surrogatepass")
        runs = runs_of(content)
        return _applied(self._steps(content, runs, rules_for(content, runs)), text)

    def name(self, text: str) -> str:
        """Return what ``text`` does, of texts that come again and again."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) == _MOST_TEXTS:
                self._texts.clear()
            known = self._texts[text] = self.text(text)
        return known

    def reason(self, text: str) -> str:
        """Return what ``text`` does, of a text that may have been cut within a secret."""
        text = self.text(text)
        for cut in reversed(list(_CUT.finditer(text))):
            head, rest = text[: cut.start()], text[cut.start() :]
            text = self._without_beginning(head) + rest
        return text

    def _without_beginning(self, head: str) -> str:
        """Return a text without the beginning of a secret at its end."""
        for secret in self._known:
            place = head.rfind(secret[:SHORTEST_SECRET])
            if place >= 0 and secret.startswith(head[place:]):
                return head[:place] + SECRET
        return head

    def value(self, value: Any, content: bytes | None = None) -> Any:
        """Return a JSON value without secrets; keys are kept unless they are secrets themselves.

        Parameters
        ----------
        value : Any
        content : bytes or None
            Its JSON, where the caller has it; the order of keys does not matter.

        Returns
        -------
        Any
            The value itself, where nothing is found.
        """
        if isinstance(value, _NUMBERS):
            return value
        content = _content_of(value) if content is None else content
        runs = b"" if content is None else runs_of(content)
        rules = RULES if content is None else rules_for(content, runs)
        if NAMES in rules or LOGINS in rules:
            for secret in _named_secrets(value, 0):
                self._learn(secret)
        steps = self._steps(content, runs, rules)
        return _without(value, steps, 0) if steps else value

    def content(self, content: bytes) -> bytes | None:
        """Return the content of a file without secrets; None where it has some and is no text.

        Of what is no text, only the secrets that are known are looked for.
        """
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return None if self._has_known(content, runs_of(content)) else content
        shown = self.text(text)
        return content if shown == text else shown.encode()

    def _steps(
        self, content: bytes | None, runs: bytes, rules: Sequence[Rule]
    ) -> tuple[_Step, ...]:
        """Return what may find something in a content; None: nobody knows what is in it."""
        has_known = content is None or self._has_known(content, runs)
        known = self._literals if has_known else ()
        if not (known or rules or self._configured):
            return ()
        return (*known, *(rule.without for rule in rules), *self._configured)

    def _has_known(self, content: bytes, runs: bytes) -> bool:
        return next(self._looks.found(content, runs), None) is not None

    def _learn(self, secret: str) -> None:
        is_new = len(secret) >= SHORTEST_SECRET and secret not in self._known
        if is_new and not secret.startswith("[REDACTED") and self._learned < _MOST_LEARNED:
            self._learned += 1
            self._known.add(secret)
            self._set_literals()


@lru_cache(maxsize=4096)
def _look_for(form: str) -> Look:
    # A search for a literal takes half the time of ``in``.
    content = form.encode("utf-8", "surrogatepass")
    return Look(re.compile(re.escape(content)).search, longest_run(content))


def _taking_out(pattern: re.Pattern[str], mark: str) -> _Step:
    # A function: a template would be read anew each time, and could hold a group's number.
    return lambda text: pattern.sub(lambda _: mark, text)


def _content_of(value: Any) -> bytes | None:
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError):  # no JSON: the long way copes with it
        return None


def _applied(steps: Iterable[_Step], text: str) -> str:
    for step in steps:
        text = step(text)
    return text


def _without(value: Any, steps: Sequence[_Step], depth: int) -> Any:
    if isinstance(value, str):
        return _applied(steps, value)
    if depth >= _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return _mapping(value, steps, depth)
    if isinstance(value, list | tuple):
        places = _secret_places(value)
        return [
            SECRET if place in places else _without(item, steps, depth + 1)
            for place, item in enumerate(value)
        ]
    return value


def _mapping(value: Mapping[str, Any], steps: Sequence[_Step], depth: int) -> dict[str, Any]:
    is_header = _is_header(value)
    found = {}
    for key, item in value.items():
        is_secret = is_secret_name(key) or (is_header and key == "value")
        shown = SECRET if is_secret and _is_leaf(item) else _without(item, steps, depth + 1)
        found[_applied(steps, key)] = shown
    return found


def _named_secrets(value: Any, depth: int) -> Iterator[str]:
    """Yield the texts that stand under names of secrets."""
    if depth >= _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        is_header = _is_header(value)
        for key, item in value.items():
            is_secret = is_secret_name(key) or (is_header and key == "value")
            yield from (
                _texts_of(item) if is_secret and _is_leaf(item) else _named_secrets(item, depth + 1)
            )
    elif isinstance(value, list | tuple):
        places = _secret_places(value)
        for place, item in enumerate(value):
            yield from _texts_of(item) if place in places else _named_secrets(item, depth + 1)


def _texts_of(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list | tuple) else [value]:
        if isinstance(item, str):
            yield item
            scheme, _, rest = item.partition(" ")
            if scheme.lower() in {"bearer", "basic", "token"}:
                yield rest.strip()


def _is_leaf(value: Any) -> bool:
    """Return whether a value can be a secret: a text, or a list of texts."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, str) for item in value)
    return isinstance(value, str) and bool(value)


def _is_header(value: Mapping[str, Any]) -> bool:
    """Return whether this is a header as an object with its name and its value."""
    if "value" not in value:
        return False
    names = (value.get(key) for key in _NAMED_BY)
    return any(isinstance(name, str) and is_secret_name(name) for name in names)


def _secret_places(items: Sequence[Any]) -> frozenset[int]:
    """Return where secrets stand in a list: after an option, or after the name of a header."""
    return _places_after_options(items) | _places_by_turns(items)


def _places_after_options(items: Sequence[Any]) -> frozenset[int]:
    """Return where the secrets of a command line stand, such as what follows ``--password``."""
    return frozenset(
        place
        for place, (option, value) in enumerate(pairwise(items), start=1)
        if isinstance(option, str) and option[:1] == "-"
        if isinstance(value, str) and value[:2] != "--"
        if _is_secret_option(option) or (option in LOGIN_OPTIONS and is_login(value))
    )


def _is_secret_option(option: str) -> bool:
    return option.lower() == "--token" or is_secret_name(option)


def _places_by_turns(items: Sequence[Any]) -> frozenset[int]:
    if len(items) % 2 or not all(isinstance(item, str) for item in items):
        return frozenset()
    names = items[::2]
    if not all(_HEADER_NAME.fullmatch(name) for name in names):
        return frozenset()
    return frozenset(2 * i + 1 for i, name in enumerate(names) if is_secret_name(name))
