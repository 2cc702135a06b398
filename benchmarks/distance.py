"""A server at a distance: `python benchmarks/distance.py HOST PORT MILLISECONDS`.

A relay that delays each direction by half of the round trip; it prints its own port and ends with
its standard input. In a process of its own, so that it does not slow what it measures.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 16


@contextlib.contextmanager
def at_a_distance(url: str, milliseconds: float) -> Iterator[str]:
    """Yield an address of the server at `url` that is so far away."""
    parts = urlsplit(url)
    command = [sys.executable, __file__, str(parts.hostname), str(parts.port), str(milliseconds)]
    pipe = subprocess.PIPE
    # At its end it says which connections it broke.
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, text=True) as relay:
        assert relay.stdout is not None
        yield f"http://127.0.0.1:{relay.stdout.readline().strip()}"
        relay.kill()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    loop = asyncio.get_running_loop()
    while data := await reader.read(CHUNK):
        loop.call_later(delay, writer.write, data)
    loop.call_later(delay, writer.close)


async def _serve(host: str, port: int, delay: float) -> None:
    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(_pump(reader, far_writer, delay), _pump(far_reader, writer, delay))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) / 2000))
