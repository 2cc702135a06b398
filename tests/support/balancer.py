"""A load balancer over several servers, which gives each of them a request in turn."""

from __future__ import annotations

from itertools import cycle
from urllib.parse import urlsplit

from tests.support.proxy import FaultyProxy, Recorded


class Balancer(FaultyProxy):
    """A proxy that forwards the requests, in their order, to `upstreams` in turn."""

    def __init__(self, *upstreams: str) -> None:
        super().__init__(upstreams[0])
        self._turns = cycle(urlsplit(url).netloc for url in upstreams)

    def forward(self, request: Recorded) -> bytes:
        """Return the response of the server whose turn it is."""
        with self._lock:
            upstream = next(self._turns)
        return self.ask(upstream, request)
