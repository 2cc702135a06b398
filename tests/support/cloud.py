"""The newer sync protocol, served in front of a real sqld: an emulator of Turso Cloud.

::

    with CloudProxy(sqld) as cloud:
        LibsqlStore("replica.db", sync_url=cloud.url)

The `libsql` library asks for ``/info``, ``/export/GENERATION`` (a whole database file) and
``/sync/GENERATION/START/END`` (the frames of its WAL from START, the first being 1, up to
END, not included); the source of its client (tursodatabase/libsql, ``libsql/src/sync.rs``) is
the only description. The frames are those that sqld wrote itself, read from its WAL. All other
requests, commits among them, pass to sqld.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, NamedTuple, Self

from tests.support.proxy import FaultyProxy, Recorded, http_response

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harel_schema.testing import Server

PAGE = 4096
_FRAME_HEAD = struct.Struct(">II16x")
_WAL_HEAD = 32
_BYTES = "application/octet-stream"
_NOTHING = {"method": "POST", "path": "/v2/pipeline", "body": b'{"requests":[]}'}


class _Index(NamedTuple):
    """How far the WAL is committed, from the header of its index (the ``-shm`` file)."""

    frames: int
    salt: bytes

    @classmethod
    def read(cls, path: Path) -> _Index:
        head = path.read_bytes()[:48] if path.exists() else b""
        return cls(struct.unpack_from("=I", head, 16)[0], head[32:40]) if head else cls(0, b"")


class PrimaryLog:
    """What a database file and its WAL have been: a base and the frames since, by generation."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._salt = b""
        self._seen = 0
        self._pages = _pages(data)
        self._size = len(self._pages)
        self.bases = [self._whole()]
        self.frames: list[list[bytes]] = [[]]
        self.follow()

    @classmethod
    def of(cls, server: Server) -> Self:
        """Return the log of a server's database."""
        return cls(server.directory / "data" / "dbs" / "default" / "data")

    @property
    def generation(self) -> int:
        """The current one; the first is 1."""
        return len(self.bases)

    def follow(self) -> None:
        """Take what was committed since the last time."""
        index = _Index.read(self._beside("-shm"))
        if index.salt != self._salt or index.frames < self._seen:
            # Folded into the file since, and begun anew.
            self._compare()
            self._salt, self._seen = index.salt, 0
        if index.frames > self._seen:
            size = _FRAME_HEAD.size + PAGE
            wal = self._beside("-wal").read_bytes()[_WAL_HEAD:]
            for at in range(self._seen, index.frames):
                self._take(wal[at * size : (at + 1) * size])
            self._seen = index.frames

    def begin_generation(self) -> None:
        """Begin the next generation, as a checkpoint at the primary does."""
        self.follow()
        self.bases.append(self._whole())
        self.frames.append([])

    def _compare(self) -> None:
        """Take what the file has and was not in the frames that were seen, as one transaction."""
        found = _pages(self._data)
        changed = [at for at, page in found.items() if self._pages.get(at) != page]
        for at in changed:
            self._take(_FRAME_HEAD.pack(at, len(found) if at == changed[-1] else 0) + found[at])

    def _take(self, frame: bytes) -> None:
        number, size = _FRAME_HEAD.unpack_from(frame)
        self._pages[number] = frame[_FRAME_HEAD.size :]
        self._size = size or self._size
        self.frames[-1].append(frame)

    def _whole(self) -> bytes:
        return b"".join(self._pages[at] for at in range(1, self._size + 1))

    def _beside(self, suffix: str) -> Path:
        return self._data.with_name(self._data.name + suffix)


class CloudProxy(FaultyProxy):
    """A sqld that also speaks the newer sync protocol."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.url)
        self.log = PrimaryLog.of(server)

    def forward(self, request: Recorded) -> bytes:
        """Answer what belongs to the protocol, and forward the rest."""
        kind, *numbers = request.path.strip("/").split("/")
        if kind not in {"info", "export", "sync"}:
            return super().forward(request)
        # As alive, and as careful about tokens, as the server itself.
        answer = super().forward(request._replace(**_NOTHING))
        if not answer.startswith(b"HTTP/1.1 200 "):
            return answer
        return getattr(self, f"_{kind}")(*map(int, numbers))

    def _info(self) -> bytes:
        return _json(200, current_generation=self.log.generation)

    def _export(self, generation: int) -> bytes:
        return http_response(200, _BYTES, self.log.bases[generation - 1])

    def _sync(self, generation: int, start: int, end: int) -> bytes:
        self.log.follow()
        frames: Sequence[bytes] = ()
        if generation <= self.log.generation:
            frames = self.log.frames[generation - 1][start - 1 : end - 1]
        if not frames:
            return _json(400, generation=self.log.generation)
        return http_response(200, _BYTES, b"".join(frames))


def _json(status: int, **body: int) -> bytes:
    return http_response(status, "application/json", json.dumps(body).encode())


def _pages(data: Path) -> dict[int, bytes]:
    whole = data.read_bytes()
    return {at // PAGE + 1: whole[at : at + PAGE] for at in range(0, len(whole), PAGE)}
