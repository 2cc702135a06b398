"""A proxy that makes a server far away: every byte arrives some time after it was sent.

It has a process of its own, unlimited bandwidth, and no delay for opening a connection.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

_CHUNK = 1 << 18


@contextmanager
def delayed(url: str, round_trip: float) -> Iterator[str]:
    """Give the URL of a proxy in front of `url`, `round_trip` seconds away."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(url, round_trip / 2, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()
        process.join()


def _run(url: str, delay: float, ready: Connection) -> None:
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(url, delay, ready))


async def _serve(url: str, delay: float, ready: Connection) -> None:
    parts = urlsplit(url)

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(parts.hostname, parts.port)
        await asyncio.gather(
            _pump(reader, far_writer, delay),
            _pump(far_reader, writer, delay),
            return_exceptions=True,
        )

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Carry bytes from `reader` to `writer`, each `delay` seconds after it has come."""
    clock = asyncio.get_running_loop().time
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(due - clock())
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    delivery = asyncio.create_task(deliver())
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            under_way.put_nowait((clock() + delay, data))
    under_way.put_nowait((clock() + delay, b""))
    with suppress(OSError):
        await delivery
