"""What both clients do when the network or the server fails, seen from behind a breaking proxy."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpcore
import pytest

from harel_schema import errors as e
from harel_schema.hrana import AsyncClient, Client, Retry, Statement
from harel_schema.hrana.flow import Session
from tests.support.proxy import Answer, Cut, Drop, Hang, Pass

ONE = Statement("SELECT 1")
INSERT = Statement("INSERT INTO t VALUES (1)")
HTML = b"<html><head><style>p {}</style></head><body><h1>Bad\n gateway</h1>\0</body></html>"


async def count(client: Any) -> int:
    """Return how many rows the write of a test has left."""
    return (await client.execute(Statement("SELECT count(*) FROM t"), idempotent=True)).rows[0][0]


async def test_response_cut_at_every_byte_is_lost_and_not_repeated(
    through: Any, proxy: Any, waits: list[float]
) -> None:
    """Wherever the answer to a write breaks off, it is `ConnectionLost(sent=True)`, sent once."""
    await through.execute(Statement("CREATE TABLE t(a)"))
    await through.execute(INSERT)
    whole = len(proxy.last_response)
    for after in range(whole):
        proxy.script(Cut(after))
        with pytest.raises(e.ConnectionLost) as failure:
            await through.execute(INSERT)
        assert failure.value.sent
        assert failure.value.__cause__ is not None
    assert proxy.forwarded == whole + 2
    assert await count(through) == whole + 1
    assert waits == []


async def test_cursor_cut_at_every_byte_never_looks_complete(through: Any, proxy: Any) -> None:
    """Wherever a streamed answer breaks off, its reader learns it, and the stream is closed."""
    query = Statement("SELECT 1 UNION ALL SELECT 2")
    assert [row async for row in through.rows(query)] == [(1,), (2,)]
    whole = proxy.responses[0]
    for after in range(whole.index(b"\r\n\r\n"), len(whole)):
        proxy.script(Cut(after))
        with pytest.raises(e.ConnectionLost):
            _ = [row async for row in through.rows(query)]


@pytest.mark.parametrize("fault", [Drop(), Drop("reset"), Cut(0), Cut(30, "reset")])
async def test_idempotent_request_is_repeated(
    through: Any, proxy: Any, waits: list[float], fault: Any
) -> None:
    """A read whose answer was lost is sent again until it has one."""
    proxy.script(fault, fault, fault)
    assert (await through.execute(ONE, idempotent=True)).rows == [(1,)]
    assert len(proxy.requests) == through.requests_sent == 4
    assert len(waits) == 3


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_idempotent_request_is_repeated_after_a_passing_status(
    through: Any, proxy: Any, status: int
) -> None:
    """A read that a gateway turned away for the moment is sent again; a write is not."""
    proxy.script(Answer(status), Pass(), Answer(status))
    assert (await through.execute(ONE, idempotent=True)).rows == [(1,)]
    with pytest.raises(e.ServerError, match=f"HTTP {status}") as failure:
        await through.execute(ONE)
    assert failure.value.status == status
    assert len(proxy.requests) == 3


async def test_repetitions_are_bounded_and_wait_longer_each_time(
    connect: Any, proxy: Any, waits: list[float]
) -> None:
    """After `times` repetitions the last failure is raised; the waits double up to `cap`."""
    retry = Retry(times=4, base=1.0, cap=5.0, jitter=lambda: 1.0)
    client = await connect(proxy.url, retry=retry)
    proxy.script(*[Drop()] * 5)
    with pytest.raises(e.ConnectionLost):
        await client.execute(ONE, idempotent=True)
    assert waits == [1.0, 2.0, 4.0, 5.0]
    assert len(proxy.requests) == 5


async def test_unreachable_server_is_tried_again_and_known_unsent(
    connect: Any, waits: list[float]
) -> None:
    """A refused connection is repeated even for a write, and the error says it was not sent."""
    with socket.socket() as taken:  # bound but not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        client = await connect(f"http://127.0.0.1:{taken.getsockname()[1]}", retry=Retry(times=2))
        with pytest.raises(e.ConnectionLost, match="cannot connect") as failure:
            await client.execute(INSERT)
    assert not failure.value.sent
    assert len(waits) == 2


@pytest.mark.parametrize("ending", ["close", "reset"])
async def test_connection_closed_while_idle_costs_nothing(
    through: Any, proxy: Any, ending: Any
) -> None:
    """A kept-alive connection that the server has closed is replaced without a word."""
    proxy.script(Pass(ending))
    await through.execute(Statement("CREATE TABLE t(a)"))
    proxy.wait_for_close()
    await through.execute(INSERT)
    assert (await count(through), len(proxy.requests)) == (1, 3)


def test_connection_reset_under_the_request_is_known_unsent(
    proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request whose head could not be written is sent again, even a write.

    On the synchronous client only: asyncio's transport does not report a failed first write.
    """
    # The pool looks for a closed connection before it uses it; here it looks too early.
    monkeypatch.setattr(httpcore.HTTP11Connection, "has_expired", lambda _: False)
    proxy.script(Pass("reset"))
    waits: list[float] = []
    with Client(proxy.url, sleep=waits.append) as client:
        client.execute(Statement("CREATE TABLE t(a)"))
        proxy.wait_for_close()
        client.execute(INSERT)
        assert client.execute(Statement("SELECT count(*) FROM t")).rows == [(1,)]
    assert (len(waits), proxy.forwarded) == (1, 3)


@pytest.mark.parametrize("forward", [True, False])
async def test_silence_is_a_timeout_and_not_repeated(
    connect: Any, proxy: Any, *, forward: bool
) -> None:
    """A server that does not answer in time is `RequestTimeout`, even for a read."""
    client = await connect(proxy.url, timeout=0.05)
    proxy.script(Hang(forward=forward))
    with pytest.raises(e.RequestTimeout, match=r"did not answer for 0\.05 s") as failure:
        await client.execute(ONE, idempotent=True)
    assert failure.value.sent
    assert "run it again: that is safe" in str(failure.value)
    assert len(proxy.requests) == 1
    assert (await client.execute(ONE)).rows == [(1,)]


async def test_a_write_without_an_answer_says_to_look_first(connect: Any, proxy: Any) -> None:
    """What to do next differs from a read's: the write may have been applied."""
    client = await connect(proxy.url, timeout=0.05)
    proxy.script(Hang())
    with pytest.raises(e.RequestTimeout, match="look before you send it again"):
        await client.execute(INSERT)


async def test_tls_to_a_server_without_it_names_the_scheme(connect: Any, sqld: Any) -> None:
    """A server without TLS, named by https://, is told from one that does not run."""
    client = await connect(sqld.url.replace("http:", "https:"))
    with pytest.raises(e.ConnectionLost, match="does not speak TLS; name it by http://") as failure:
        await client.execute(ONE)
    assert not failure.value.sent


async def test_paused_server_is_a_timeout(connect: Any, sqld: Any) -> None:
    """A server that stands still is `RequestTimeout`, and the client goes on when it does."""
    client = await connect(sqld.url, timeout=0.2)
    await client.execute(ONE)
    sqld.pause()
    with pytest.raises(e.RequestTimeout):
        await client.execute(ONE)
    sqld.resume()
    assert (await client.execute(ONE)).rows == [(1,)]


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (Answer(400, b"no"), e.ServerError, "HTTP 400: no"),
        (Answer(401, b'{"error":"why"}'), e.AuthError, "asks for a token (HTTP 401): why; pass"),
        (Answer(403, b""), e.AuthError, "TURSO_AUTH_TOKEN"),
        (Answer(404, b""), e.ServerError, "check that the URL is a libSQL server's"),
        (Answer(405, b""), e.ServerError, "check that the URL is a libSQL server's"),
        (Answer(501, HTML, "text/html"), e.ServerError, "check that the URL is a libSQL server's"),
        (
            Answer(404, b'{"error":"Namespace `x` doesn\'t exist"}'),
            e.ServerError,
            "create the namesp",
        ),
        (Answer(413, b"too large"), e.ServerError, "send fewer rows"),
        (Answer(500, HTML, "text/html"), e.ServerError, "HTTP 500: Bad gateway; try again"),
        (Answer(500, b"\xff\x00", "x/y"), e.ServerError, "HTTP 500"),
        (Answer(200, HTML, "text/html"), e.ServerError, "HTTP 200: Bad gateway; check"),
        (Answer(200, b"{}", "application/json"), e.ServerError, "HTTP 200"),
        (Answer(200, b"\xff\xff", "x/y"), e.ServerError, "cut off or is not Hrana"),
        (Answer(200, b"", "x/y"), e.ServerError, "answered 0 of 2"),
        (Answer(204, b""), e.ServerError, "HTTP 204"),
        (Answer(500, b"a\n" * 5000), e.ServerError, "…"),
    ],
)
async def test_answer_that_is_no_result_is_one_clear_line(
    through: Any, proxy: Any, answer: Answer, kind: type[e.Error], words: str
) -> None:
    """Whatever a server or a gateway says instead of a result becomes one line and a next step."""
    proxy.script(answer)
    with pytest.raises(kind) as failure:
        await through.execute(ONE)
    line = str(failure.value)
    assert words in line
    assert line.isprintable()
    assert len(line) < 400
    assert len(proxy.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirect_is_not_followed(connect: Any, proxy: Any, status: int) -> None:
    """A redirect is an error: following it would carry the token to another host."""
    client = await connect(proxy.url, auth_token="secret")
    proxy.script(Answer(status, headers=(("location", "http://elsewhere.invalid/"),)))
    with pytest.raises(e.ServerError, match="redirects are not followed"):
        await client.execute(ONE)
    assert len(proxy.requests) == 1


async def test_cancelled_request_leaves_the_client_usable(proxy: Any) -> None:
    """A cancelled call frees its connection; the next one works."""
    hang = Hang()
    proxy.script(hang)
    async with AsyncClient(proxy.url) as client:
        task = asyncio.create_task(client.execute(ONE))
        await asyncio.to_thread(hang.arrived.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.execute(ONE)).rows == [(1,)]


async def test_failing_sleep_leaves_the_client_usable(connect: Any, proxy: Any) -> None:
    """An interrupt while waiting for a repetition ends the call, not the client."""

    def interrupt() -> float:
        raise KeyboardInterrupt

    client = await connect(proxy.url, retry=Retry(jitter=interrupt))
    proxy.script(Drop())
    with pytest.raises(KeyboardInterrupt):
        await client.execute(ONE, idempotent=True)
    assert (await client.execute(ONE)).rows == [(1,)]


def test_session_hides_its_token() -> None:
    """The token is in no `repr`."""
    assert "secret" not in repr(Session("http://host", token="secret"))
