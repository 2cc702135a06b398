"""A loopback HTTP proxy that does to a request what networks and servers do to it.

::

    with FaultyProxy(sqld.url) as proxy:
        proxy.script(Pass(), Cut(after=40))
        client = Client(proxy.url)

Each request takes the next fault of the script; past its end, requests pass. `requests` holds
every request that arrived and `forwarded` counts those that the real server saw.
"""

from __future__ import annotations

import http.client
import socket
import socketserver
import struct
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from types import TracebackType


Ending = Literal["keep", "close", "reset"]
"""What becomes of the connection; it is closed or reset without announcement."""


@dataclass(frozen=True)
class Pass:
    """Forward, and answer."""

    ending: Ending = "keep"


@dataclass(frozen=True)
class Cut:
    """Forward, and send only the first `after` bytes of the response."""

    after: int
    ending: Ending = "close"


@dataclass(frozen=True)
class Drop:
    """Neither forward nor answer."""

    ending: Ending = "close"


@dataclass(frozen=True)
class Answer:
    """Answer with this, without forwarding."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain"
    headers: tuple[tuple[str, str], ...] = ()
    ending: Ending = "keep"


@dataclass(frozen=True)
class Hang:
    """Answer nothing until `release` is set or the proxy ends; forward first, or not.

    `arrived` is set when the request hangs.
    """

    forward: bool = False
    ending: Ending = "close"
    arrived: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Late:
    """Forward, and answer `seconds` later."""

    seconds: float
    ending: Ending = "keep"


@dataclass(frozen=True)
class Twice:
    """Forward twice, as a gateway that tries again does, and send the second answer."""

    ending: Ending = "keep"


Fault = Pass | Cut | Drop | Answer | Hang | Late | Twice


class Recorded(NamedTuple):
    """A request as it arrived; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class FaultyProxy:
    """The proxy in front of the server at `upstream` (``http://host:port``)."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream).netloc
        self._faults: deque[Fault] = deque()
        self._lock = threading.Lock()
        self._hanging: list[Hang] = []
        self._stopped = False
        self.requests: list[Recorded] = []
        self.responses: list[bytes] = []
        self.connections = 0
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def script(self, *faults: Fault) -> None:
        """Append `faults` for the requests to come."""
        self._faults.extend(faults)

    def forget(self) -> None:
        """Drop what is left of the script and what was recorded, for a test of many rounds."""
        with self._lock:
            self._faults.clear()
            self.requests.clear()
            self.responses.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        with self._lock:
            self._stopped = True
            for hang in self._hanging:
                hang.release.set()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    def take(self, request: Recorded) -> Fault:
        """Record `request` and return what happens to it."""
        with self._lock:
            self.requests.append(request)
            fault = self._faults.popleft() if self._faults else Pass()
            if isinstance(fault, Hang):
                self._hanging.append(fault)
                if self._stopped:
                    fault.release.set()
            return fault

    def forward(self, request: Recorded) -> bytes:
        """Return the real server's response as bytes, with its length in the head."""
        return self.ask(self._upstream, request)

    def ask(self, server: str, request: Recorded) -> bytes:
        """Return the response of the server at ``host:port``; see `forward`."""
        upstream = http.client.HTTPConnection(server)
        try:
            upstream.request(request.method, request.path, request.body, request.headers)
            response = upstream.getresponse()
            body = response.read()
        finally:
            upstream.close()
        whole = http_response(response.status, response.getheader("content-type") or "", body)
        with self._lock:
            self.responses.append(whole)
        return whole

    @property
    def forwarded(self) -> int:
        """How many requests the real server has answered."""
        return len(self.responses)

    @property
    def last_response(self) -> bytes:
        """The real server's latest response, whole, as it went to the client if nothing cut it."""
        return self.responses[-1]

    def wait_for_close(self) -> None:
        """Wait until a connection that was not yet waited for is closed on this side."""
        if not self._server.closed.acquire(timeout=10):
            raise TimeoutError("no connection was closed")


def http_response(
    status: int, content_type: str, body: bytes, headers: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """Return a whole HTTP response."""
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines += [f"content-type: {content_type}", f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, proxy: FaultyProxy) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = proxy
        self.closed = threading.Semaphore(0)
        self._open: list[socket.socket] = []

    def get_request(self):
        request, address = super().get_request()
        self._open.append(request)
        return request, address

    def shutdown_request(self, request) -> None:
        # Not shut down first: after a "reset" the close itself must be what the client sees.
        self.close_request(request)
        self.closed.release()

    def close_connections(self) -> None:
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        self.server.proxy.connections += 1
        with suppress(OSError):
            while (request := self._read()) is not None:
                if not self._act(self.server.proxy.take(request), request):
                    return

    def _read(self) -> Recorded | None:
        first = self.rfile.readline().split()
        if len(first) != 3:
            return None
        headers = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = self.rfile.read(int(headers.get("content-length", "0")))
        return Recorded(first[0].decode(), first[1].decode(), headers, body)

    def _act(self, fault: Fault, request: Recorded) -> bool:
        """Do it; return whether the connection stays open."""
        proxy = self.server.proxy
        match fault:
            case Pass(ending):
                self.wfile.write(proxy.forward(request))
            case Cut(after, ending):
                self.wfile.write(proxy.forward(request)[:after])
            case Drop(ending):
                pass
            case Answer(status, body, content_type, headers, ending):
                self.wfile.write(http_response(status, content_type, body, headers))
            case Hang(forward, ending):
                if forward:
                    proxy.forward(request)
                fault.arrived.set()
                fault.release.wait()
            case Late(seconds, ending):
                answer = proxy.forward(request)
                threading.Event().wait(seconds)
                self.wfile.write(answer)
            case Twice(ending):
                proxy.forward(request)
                self.wfile.write(proxy.forward(request))
        if ending == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        return ending == "keep"
