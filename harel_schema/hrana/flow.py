"""What decides: when to send again, when to ask for a new token, when a stream is lost.

Each function is a generator without I/O. It yields an action (`Send`, `Wait`, `AskToken`), gets
its outcome back, and returns its result; `client` and `aio` only carry the actions out.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlsplit

from harel_schema import errors as e
from harel_schema.hrana import messages as m
from harel_schema.hrana.decode import decode_pipeline
from harel_schema.hrana.encode import encode_pipeline
from harel_schema.hrana.responses import from_response
from harel_schema.target import AUTH_REMEDY

T = TypeVar("T")

TokenSource: TypeAlias = Callable[[], "str | Awaitable[str]"]

# A gateway that answers so has not passed the request on, or is overloaded for a moment.
_PASSING: Final = frozenset({429, 502, 503, 504})
_OK: Final = 200
# In Protobuf only the result of a single statement tells the replication index. This one a replica
# server passes on to its primary, as it did with the batch, and it takes no lock there.
_LOOK: Final = m.Statement("SAVEPOINT look")
_UNAUTHORIZED: Final = 401
_HEADERS: Final = {
    "content-type": "application/x-protobuf",
    # sqld compresses row by row into a dozen chunks each: reading is 6 to 12 times as fast plain.
    "accept-encoding": "identity",
}


class Send(NamedTuple):
    """Send this request; the outcome is a `Reply` or a `Failure`."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None


class Wait(NamedTuple):
    """Sleep for `seconds`."""

    seconds: float


class AskToken(NamedTuple):
    """Call `source`; the outcome is the token."""

    source: TokenSource


class Reply(NamedTuple):
    """An HTTP response; `stream` is the open response when its body was not read."""

    status: int
    content_type: str
    body: bytes
    stream: Any = None


class Failure(NamedTuple):
    """No response; `error.__cause__` is what the transport raised."""

    error: e.ConnectionLost


Action: TypeAlias = Send | Wait | AskToken
Outcome: TypeAlias = Reply | Failure | str | None
Flow: TypeAlias = Generator[Action, Any, T]


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how patiently a request is sent again.

    `times` bounds the repetitions. The wait before repetition n (from 0) is `jitter()` (from 0
    to 1) times ``base * 2**n`` seconds, at most `cap` seconds.
    """

    times: int = 3
    base: float = 0.05
    cap: float = 2.0
    jitter: Callable[[], float] = random.random

    def delay(self, attempt: int) -> float:
        """Return the wait in seconds after failed attempt number `attempt`, from 0."""
        return self.jitter() * min(self.cap, self.base * 2.0**attempt)


@dataclass(slots=True)
class Session:
    """A server, the token for it, and how often to try. Its token is never in its `repr`."""

    url: str
    source: TokenSource | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    retry: Retry = field(default_factory=Retry)

    def headers(self) -> dict[str, str]:
        """Return the request headers with the token in use."""
        headers = dict(_HEADERS)
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        return headers


def new_session(url: str, auth_token: str | TokenSource | None, retry: Retry | None) -> Session:
    """Return a session for ``http[s]://host[:port][/path]``; raises `TargetError`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise e.TargetError("a Hrana server is named by http://host[:port] or https://host[:port]")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise e.TargetError(
            "the URL of a Hrana server has no user, query or fragment",
            remedy="pass the token as auth_token",
        )
    session = Session(url.rstrip("/"), retry=retry or Retry())
    if callable(auth_token):
        session.source = auth_token
    elif auth_token is not None:
        session.token = _checked(auth_token)
    return session


def pipeline(
    session: Session, requests: Sequence[m.Request], *, baton: str | None, idempotent: bool
) -> Flow[m.Pipeline]:
    """Run `requests` in one HTTP request, more only when that is safe."""
    body = encode_pipeline(requests, baton)
    # A baton counts requests: the server refuses it the second time, so a repetition cannot help.
    repeatable = idempotent and baton is None
    url = f"{session.url}/v3-protobuf/pipeline"
    reply = yield from exchange(session, url, body, repeatable=repeatable)
    return decode_pipeline(reply.body, requests)


def execute(
    session: Session, statement: m.Statement, *, idempotent: bool
) -> Flow[m.StatementResult]:
    """Run one statement and close the stream, in one request; raise the statement's error."""
    requests = (m.Execute(statement), m.Close())
    answer = yield from pipeline(session, requests, baton=None, idempotent=idempotent)
    return expect(answer.results[0], m.StatementResult)


def batch(
    session: Session, steps: m.Batch, *, idempotent: bool, indexed: bool
) -> Flow[m.BatchResult]:
    """Run a batch and close the stream, in one request; the steps' errors stay in their slots."""
    look = (m.Execute(_LOOK),) if indexed else ()
    requests = (m.RunBatch(steps), *look, m.Close())
    answer = yield from pipeline(session, requests, baton=None, idempotent=idempotent)
    result = expect(answer.results[0], m.BatchResult)
    seen = answer.results[1]
    if isinstance(seen, m.StatementResult):
        result = result._replace(replication_index=seen.replication_index)
    return result


def version(session: Session) -> Flow[str]:
    """Ask for the server's version."""
    url = f"{session.url}/version"
    reply = yield from exchange(session, url, None, repeatable=True, binary=False)
    return reply.body.decode("utf-8", "replace").strip()


def expect(result: m.Result, kind: type[T]) -> T:
    """Return `result` when it is of `kind`; raise it when it is an error."""
    if isinstance(result, e.Error):
        raise result
    if not isinstance(result, kind):
        raise e.InternalError(f"expected {kind.__name__}, not {type(result).__name__}")
    return result


def exchange(
    session: Session, url: str, body: bytes | None, *, repeatable: bool = False, binary: bool = True
) -> Flow[Reply]:
    """Send until there is a reply with status 200, or raise why there is none.

    A request is repeated when it certainly did not reach the server, or when it is `repeatable`
    and the failure may pass. A timeout is final, because the caller's time is spent.
    """
    attempt, asked_again = 0, False
    method = "POST" if body is not None else "GET"
    if session.source is not None and session.token is None:
        session.token = _checked((yield AskToken(session.source)))
    while True:
        token = session.token
        outcome = yield Send(method, url, session.headers(), body)
        if (
            isinstance(outcome, Reply)
            and outcome.status == _OK
            and _is_ours(outcome, binary=binary)
        ):
            return outcome
        if _refused(outcome) and session.source is not None and not asked_again:
            asked_again = True
            if session.token == token:  # no other thread has brought a new one meanwhile
                session.token = _checked((yield AskToken(session.source)))
            if session.token != token:
                continue
        if attempt >= session.retry.times or not _may_repeat(outcome, repeatable=repeatable):
            raise _error_of(outcome, session, token, repeatable=repeatable)
        yield Wait(session.retry.delay(attempt))
        attempt += 1


def _refused(outcome: Reply | Failure) -> bool:
    return isinstance(outcome, Reply) and outcome.status == _UNAUTHORIZED


def _may_repeat(outcome: Reply | Failure, *, repeatable: bool) -> bool:
    if isinstance(outcome, Reply):
        return repeatable and outcome.status in _PASSING
    if isinstance(outcome.error, e.RequestTimeout):
        return False
    return repeatable or not outcome.error.sent


def _is_ours(reply: Reply, *, binary: bool) -> bool:
    return not binary or not reply.content_type.startswith(("text/", "application/json"))


def _error_of(
    outcome: Reply | Failure, session: Session, token: str | None, *, repeatable: bool
) -> e.Error:
    if isinstance(outcome, Failure):
        if repeatable and outcome.error.sent:
            outcome.error.remedy = "check that the server is well, and run it again: that is safe"
        return outcome.error
    return from_response(outcome.status, outcome.body, where=session.url, token=token)


def as_token(answer: str | Awaitable[str]) -> str:
    """Return what a token source gave to a synchronous client; `InterfaceError` if awaitable."""
    if isawaitable(answer):
        raise e.InterfaceError("an awaitable token needs AsyncClient")
    return answer


async def as_awaited_token(answer: str | Awaitable[str]) -> str:
    """Return what a plain or async token source gave."""
    return await answer if isawaitable(answer) else answer


def _checked(token: object) -> str:
    """Return a token that fits into a header, without the line end that files leave on it."""
    if not isinstance(token, str):
        raise e.AuthError(
            f"the token is of type {type(token).__name__}, not text", remedy=AUTH_REMEDY
        )
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise e.AuthError(
            "the token is empty or has characters that no token has",
            remedy=AUTH_REMEDY,
        )
    return token
