"""A server of its own process that answers everything but a result; prints its address.

Started as ``python -m tests.faults.nonsense``; it ends when its standard input is closed.
"""

from __future__ import annotations

import sys

from tests.support.proxy import Answer, Drop, FaultyProxy

ANSWERS = [
    *(Answer(200, b"<html>"), Answer(500), Drop(), Answer(200, b"\x0a\xff" * 50), Answer(404)),
    *(Answer(200, b"", "application/x-protobuf"), Drop(ending="reset"), Answer(429)),
    *(Answer(302, headers=(("location", "http://elsewhere.invalid"),)), Answer(401, b"{}")),
]


def main() -> None:
    """Answer until nobody asks any more."""
    with FaultyProxy("http://127.0.0.1:1") as proxy:
        proxy.script(*ANSWERS * 20_000)
        sys.stdout.write(f"{proxy.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
