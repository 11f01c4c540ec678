"""The judge that trials are put to: the one of the configuration, with its replies kept or played.

A single trial that is played again meets the replies that were kept beside its recording, without
network or key. A run is judged by what the judge says now, whatever lies beside it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from ci_gate import codec
from ci_gate.config import Config
from ci_gate.errors import GateError, JudgeError
from ci_gate.gate.judges import KIND, address_of, parameters_of
from ci_gate.grading.judge.endpoint import AskJudge, Endpoint, JudgeDown, require_client
from ci_gate.grading.judge.grader import JudgePort
from ci_gate.grading.judge.prompt import Asked
from ci_gate.grading.judge.reply import Reply
from ci_gate.model.suite import Task
from ci_gate.redaction import Redactor
from ci_gate.store.replies import KeptReply, Replies

__all__ = ["KeptBeside", "asking"]


class KeptBeside(msgspec.Struct, frozen=True, kw_only=True):
    """Where replies are kept: beside which traces, and whether they are played from there."""

    traces: Path
    is_played: bool = False


@asynccontextmanager
async def asking(
    config: Config,
    tasks: Iterable[Task],
    environment: Mapping[str, str],
    *,
    kept: KeptBeside | None,
    redactor_of: Callable[[], Redactor],
) -> AsyncIterator[JudgePort | None]:
    """Yield the judge of tasks, None where they have none.

    Parameters
    ----------
    config : Config
    tasks : iterable of Task
    environment : mapping
        That holds the key.
    kept : KeptBeside or None
        None: replies are neither kept nor played.
    redactor_of : callable
        Makes what takes secrets out of what is kept.

    Raises
    ------
    JudgeError
        It is not configured, or has no key, and its replies are not played.
    """
    used = next((t for t in tasks if any(spec.type == KIND for spec in t.graders)), None)
    if used is None:
        yield None
        return
    parameters = parameters_of(config, where=used.source)
    judge: _Asked | _Played
    if kept is not None and kept.is_played:
        judge = _Played(Replies(kept.traces), lambda: _endpoint(config, environment))
    else:
        replies = None if kept is None else Replies(kept.traces)
        judge = _Asked(_endpoint(config, environment), replies, redactor_of())
    try:
        yield JudgePort(parameters, judge.ask)
    finally:
        await judge.close()


def _endpoint(config: Config, environment: Mapping[str, str]) -> Endpoint:
    require_client()
    return Endpoint(address_of(config, environment))


def _digest(asked: Asked) -> str:
    return codec.digest_of(msgspec.to_builtins(asked))


class _Asked:
    """Asks, and keeps what came back where that is wanted; a full disk costs only the copy."""

    def __init__(self, endpoint: Endpoint, replies: Replies | None, redactor: Redactor) -> None:
        self._endpoint = endpoint
        self._replies = replies
        self._redactor = redactor

    async def ask(self, asked: Asked) -> Reply:
        reply = await self._endpoint.ask(asked)
        if self._replies is not None:
            with contextlib.suppress(GateError):
                self._replies.put(_digest(asked), self._without_secrets(reply))
        return reply

    def _without_secrets(self, reply: Reply) -> KeptReply:
        text, problem = (
            None if one is None else self._redactor.text(one) for one in (reply.text, reply.problem)
        )
        return KeptReply(text=text, problem=problem)

    async def close(self) -> None:
        await self._endpoint.close()


class _Played:
    """Plays the replies that were kept; what was not asked then is asked now."""

    def __init__(self, replies: Replies, endpoint_of: Callable[[], Endpoint]) -> None:
        self._replies = replies
        self._endpoint_of = endpoint_of
        self._endpoint: Endpoint | None = None

    async def ask(self, asked: Asked) -> Reply:
        kept = self._replies.get(_digest(asked))
        if kept is not None:
            return Reply(text=kept.text, problem=kept.problem)
        return await self._opened()(asked)

    def _opened(self) -> AskJudge:
        try:
            self._endpoint = self._endpoint or self._endpoint_of()
        except JudgeError as error:
            why = f"this was not asked when the trial was recorded, and {error.problems[0].what}"
            raise JudgeDown(why) from error
        return self._endpoint.ask

    async def close(self) -> None:
        if self._endpoint is not None:
            await self._endpoint.close()
