"""The state of a server-side stream, without I/O: its baton, and why it is lost."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harel_schema import errors as e
from harel_schema.hrana.decode import decode_pipeline
from harel_schema.hrana.encode import encode_cursor, encode_pipeline
from harel_schema.hrana.flow import exchange
from harel_schema.hrana.messages import Close

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.hrana import messages as m
    from harel_schema.hrana.decode import CursorDecoder
    from harel_schema.hrana.flow import Flow, Reply, Session


class StreamState:
    """The baton of a stream. It is spent by a request and comes back with the answer.

    A request that gets no answer, for whatever reason, leaves no baton: the stream is lost, and
    every later use says so. It is never opened again behind the caller's back.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._url = session.url
        self._baton: str | None = None
        self._closed = False
        self._busy = Lock()
        self._lost: str | None = None

    @property
    def lost(self) -> bool:
        """True once the server no longer has the stream, or may no longer have it."""
        return self._lost is not None

    @property
    def open(self) -> bool:
        """True while the server holds the stream for us."""
        return self._baton is not None

    def pipeline(self, requests: Sequence[m.Request]) -> Flow[m.Pipeline]:
        """Run `requests` on the stream, in one HTTP request."""
        with self._turn():
            body = encode_pipeline(requests, self._baton)
            reply = yield from self._send("pipeline", body)
            answer = decode_pipeline(reply.body, requests)
            self._answered(answer.baton, answer.base_url)
        return answer

    @contextmanager
    def cursor(self, steps: m.Batch, decoder: CursorDecoder) -> Iterator[Flow[Reply]]:
        """Hold the stream for a streamed batch; yields the flow that starts it.

        The stream goes on with the baton that `decoder` has read when the block is left, whether
        or not the entries were read to their end.
        """
        with self._turn():
            body = encode_cursor(steps, self._baton)
            try:
                yield self._send("cursor", body)
            except (e.ConnectionLost, e.ServerError) as exc:
                # The baton is good for one thing: to close the stream.
                self._baton, self._lost = decoder.baton, exc.message
                raise
            except BaseException:
                # The batch failed, or its reader stopped early: the stream itself is sound.
                self._resume(decoder)
                raise
            self._resume(decoder)

    def close(self) -> Flow[None]:
        """Tell the server to drop the stream, if it has it."""
        self._closed = True
        if self._baton is None:
            return
        body = encode_pipeline((Close(),), self._baton)
        self._baton = None
        yield from exchange(self._session, f"{self._url}/v3-protobuf/pipeline", body)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._busy.acquire(blocking=False):
            raise e.InterfaceError("the stream is in use by another thread or task")
        try:
            self._check()
            yield
        finally:
            self._busy.release()

    def _check(self) -> None:
        if self._lost is not None:
            raise e.TransactionLost(
                f"the stream is lost: {self._lost}",
                remedy="open a new stream and run the transaction again",
            )
        if self._closed:
            raise e.InterfaceError("the stream is closed")

    def _send(self, path: str, body: bytes) -> Flow[Reply]:
        self._baton, self._lost = None, "a request on it was interrupted"
        try:
            return (yield from exchange(self._session, f"{self._url}/v3-protobuf/{path}", body))
        except e.Error as exc:
            self._lost = exc.message
            raise

    def _resume(self, decoder: CursorDecoder) -> None:
        if decoder.started:
            self._answered(decoder.baton, decoder.base_url)

    def _answered(self, baton: str | None, base_url: str | None) -> None:
        """Take the baton of an answer; without one the server has closed the stream."""
        if base_url is not None:
            self._url = _sticky(base_url, self._session.url)
        self._baton, self._lost = baton, None
        self._closed = self._closed or baton is None


def _sticky(base_url: str, current: str) -> str:
    """Return where the stream goes on; it may move, but the token stays as safe as before."""
    target, source = urlsplit(base_url), urlsplit(current)
    if target.scheme != source.scheme or not target.hostname:
        raise e.ServerError(f"the server moves the stream to a URL that is not {source.scheme}://")
    return base_url.rstrip("/")
