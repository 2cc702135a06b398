"""The synchronous Hrana client: `flow` decides, this carries it out with httpx."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Self, TypeVar

import httpx

from harel_schema import errors as e
from harel_schema.hrana import flow as f
from harel_schema.hrana import messages as m
from harel_schema.hrana.decode import CursorDecoder
from harel_schema.hrana.streams import StreamState
from harel_schema.hrana.transport import (
    HeadWatch,
    cut_off,
    failure,
    is_read,
    reply,
    settings,
    to_loopback,
)
from harel_schema.target import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from types import TracebackType

    from harel_schema.hrana.flow import Retry

T = TypeVar("T")


class Client:
    """A libSQL server over HTTP. Threads may share it; each request takes a pooled connection.

    `url` is ``http[s]://host[:port][/path]``. `auth_token` is the token or a callable that gives
    it, asked at the first request and once more when the server refuses what it gave. `timeout`
    is in seconds: the longest silence while a response is awaited or read. `retry` bounds the
    repetitions; `sleep` waits between them. Raises `TargetError` for another URL.

    A request is sent again only when it certainly did not reach the server, or when the caller
    says `idempotent=True`. Otherwise the caller gets `ConnectionLost` (`sent=True`) and decides.
    Redirects are not followed: they would carry the token elsewhere. Every method raises
    `ConnectionLost`, `RequestTimeout`, `AuthError` or `ServerError` when there is no result.
    """

    def __init__(
        self,
        url: str,
        *,
        auth_token: str | Callable[[], str] | None = None,
        timeout: float = PATIENCE,
        retry: Retry | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._session = f.new_session(url, auth_token, retry)
        self._sleep = sleep
        self._http = httpx.Client(**settings(url, timeout), event_hooks={"request": [to_loopback]})
        self._pid = os.getpid()
        self._count = 0
        self._count_lock = threading.Lock()

    def pipeline(
        self,
        requests: Sequence[m.Request],
        *,
        baton: str | None = None,
        idempotent: bool = False,
    ) -> m.Pipeline:
        """Run `requests` in ONE HTTP request (more only when a retry is safe).

        Without a `baton` they run on a new stream, which stays open until it expires after 10 s
        of silence unless the last of them is `Close`. Errors stay in their slots.
        """
        session = self._session
        return self._run(f.pipeline(session, requests, baton=baton, idempotent=idempotent))

    def execute(self, statement: m.Statement, *, idempotent: bool = False) -> m.StatementResult:
        """Run one statement on a stream of its own, in one HTTP request; raise its error."""
        return self._run(f.execute(self._session, statement, idempotent=idempotent))

    def batch(
        self, batch: m.Batch, *, idempotent: bool = False, indexed: bool = False
    ) -> m.BatchResult:
        """Run a batch on a stream of its own, in one HTTP request.

        Errors of the steps stay in their slots. An error of the whole batch is raised; a step
        that does not parse is one, and then none of them has run. With `indexed` the result
        has the replication index: how far a replica server must have come to read what it wrote.
        """
        flow = f.batch(self._session, batch, idempotent=idempotent, indexed=indexed)
        return self._run(flow)

    def stream(self) -> Stream:
        """Return a server-side connection of its own; its first request opens it."""
        return Stream(self, StreamState(self._session))

    def cursor(self, batch: m.Batch) -> Generator[m.CursorEntry]:
        """Run a batch on a stream of its own and yield its entries as they arrive.

        The memory in use does not grow with the result. Rows come in runs, as they arrived. An
        iterator that is closed early closes the response and the stream.
        """
        with self.stream() as stream:
            yield from stream.cursor(batch)

    def rows(self, statement: m.Statement) -> Generator[m.Row]:
        """Run one statement as a `cursor` and yield its rows; raise its error."""
        for entry in self.cursor(m.Batch((m.Step(statement),), statement.replication_index)):
            if isinstance(entry, m.Rows):
                yield from entry.rows
            elif isinstance(entry, m.StepError):
                raise entry.error

    def version(self) -> str:
        """Return what the server calls itself, such as ``sqld 0.24.32``."""
        return self._run(f.version(self._session))

    @property
    def requests_sent(self) -> int:
        """The number of HTTP requests so far, repeated ones included."""
        return self._count

    def close(self) -> None:
        """Close the pooled connections; any further request raises `InterfaceError`."""
        if os.getpid() == self._pid:  # after a fork they are the parent's
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self._session.url}>"

    def _run(self, flow: f.Flow[T], *, stream: bool = False) -> T:
        """Carry out the actions of `flow` and return its result."""
        try:
            action = next(flow)
            while True:
                action = flow.send(self._outcome(action, stream=stream))
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            flow.close()

    def _outcome(self, action: f.Action, *, stream: bool) -> f.Outcome:
        match action:
            case f.Send():
                return self._send(action, stream=stream)
            case f.Wait(seconds):
                return self._sleep(seconds)
            case f.AskToken(source):
                return f.as_token(source())

    def _send(self, action: f.Send, *, stream: bool) -> f.Reply | f.Failure:
        self._admit()
        watch = HeadWatch()
        method, url, headers, body = action
        request = self._http.build_request(
            method, url, headers=headers, content=body, extensions={"trace": watch}
        )
        try:
            response = self._http.send(request, stream=True)
            if stream and response.is_success:
                return reply(response, b"", stream=True)
            with closing(response):
                return reply(response, _read(response))
        except httpx.RequestError as exc:
            return failure(exc, action.url, watch)

    def _admit(self) -> None:
        if self._http.is_closed:
            raise e.InterfaceError("the client is closed")
        if os.getpid() != self._pid:
            raise e.InterfaceError(
                "the client belongs to the process that made it", remedy="make one after fork()"
            )
        with self._count_lock:
            self._count += 1

    def _entries(self, flow: f.Flow[f.Reply], decoder: CursorDecoder) -> Generator[m.CursorEntry]:
        response = self._run(flow, stream=True).stream
        with closing(response):
            try:
                for chunk in response.iter_bytes():
                    yield from decoder.feed(chunk)
            except httpx.RequestError as exc:
                raise cut_off(exc, self._session.url) from exc
        decoder.finish()


class Stream:
    """A server-side connection: one transaction at a time, kept from request to request.

    Two threads must not use it at once: the second gets `InterfaceError`. The server drops it
    after 10 s of silence; then, and after a request that got no answer, every use raises
    `TransactionLost`. Nothing is reopened silently.
    """

    def __init__(self, client: Client, state: StreamState) -> None:
        self._client = client
        self._state = state

    @property
    def expired(self) -> bool:
        """True once the server no longer has the stream, or may no longer have it."""
        return self._state.lost

    def pipeline(self, requests: Sequence[m.Request]) -> m.Pipeline:
        """Run `requests` in one HTTP request; errors stay in their slots."""
        return self._client._run(self._state.pipeline(requests))  # noqa: SLF001

    def execute(self, statement: m.Statement) -> m.StatementResult:
        """Run one statement in one HTTP request; raise its error."""
        return f.expect(self.pipeline((m.Execute(statement),)).results[0], m.StatementResult)

    def batch(self, batch: m.Batch) -> m.BatchResult:
        """Run a batch in one HTTP request; errors of the steps stay in their slots."""
        return f.expect(self.pipeline((m.RunBatch(batch),)).results[0], m.BatchResult)

    def cursor(self, batch: m.Batch) -> Generator[m.CursorEntry]:
        """Run a batch and yield its entries as they arrive.

        Until the iterator ends or is closed, the stream takes no other request.
        """
        decoder = CursorDecoder()
        with self._state.cursor(batch, decoder) as flow:
            yield from self._client._entries(flow, decoder)  # noqa: SLF001

    def close(self) -> None:
        """Drop the stream on the server, as far as it can be reached; never raises."""
        with suppress(e.Error):
            self._client._run(self._state.close())  # noqa: SLF001

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Stream of {self._client!r}>"


def _read(response: httpx.Response) -> bytes:
    if response.is_success:
        return response.read()
    body, chunks = b"", response.iter_bytes()
    while not is_read(response) and (chunk := next(chunks, b"")):
        body += chunk
    return body
