"""Streams: a transaction kept from request to request, lost out loud and never reopened."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import Any

import pytest

from harel_schema import errors as e
from harel_schema.hrana import (
    AsyncClient,
    Batch,
    Client,
    Close,
    Execute,
    GetAutocommit,
    Rows,
    Statement,
    Step,
)
from tests.support.proxy import Answer, Cut, Drop, Hang

ONE = Statement("SELECT 1")
CREATE = Statement("CREATE TABLE t(a)")
INSERT = Statement("INSERT INTO t VALUES (1)")
COUNT = Statement("SELECT count(*) FROM t")
BEGIN = Statement("BEGIN IMMEDIATE")
MANY = Statement(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT i FROM n"
)
# What sqld 0.24.32 sends for a stream that was idle for 10 s; `test_idle_stream_expires` meets it.
EXPIRED = Answer(
    400,
    b"\x0a\x28The stream has expired due to inactivity\x12\x0eSTREAM_EXPIRED",
    "application/x-protobuf",
)


async def test_stream_keeps_a_transaction(direct: Any) -> None:
    """A transaction spans requests, is not seen outside, and commits."""
    await direct.execute(CREATE)
    async with direct.stream() as stream:
        await stream.execute(BEGIN)
        assert (await stream.execute(INSERT)).affected_row_count == 1
        assert (await stream.pipeline([GetAutocommit()])).results == (False,)
        assert (await direct.execute(COUNT)).rows == [(0,)]
        await stream.execute(Statement("COMMIT"))
    assert (await direct.execute(COUNT)).rows == [(1,)]


async def test_closing_a_stream_rolls_back(direct: Any) -> None:
    """What was not committed is gone, and another writer need not wait."""
    await direct.execute(CREATE)
    async with direct.stream() as stream:
        await stream.execute(BEGIN)
        await stream.execute(INSERT)
    await direct.execute(INSERT)
    assert (await direct.execute(COUNT)).rows == [(1,)]


async def test_stream_that_was_never_used_costs_no_request(direct: Any) -> None:
    """Opening and closing a stream is free until it is used."""
    async with direct.stream():
        pass
    assert direct.requests_sent == 0


async def test_closed_stream_refuses(direct: Any) -> None:
    """A stream that was closed, by either side, says so."""
    stream, other = direct.stream(), direct.stream()
    await stream.close()
    await other.pipeline([Execute(ONE), Close()])
    for closed in (stream, other):
        with pytest.raises(e.InterfaceError, match="closed"):
            await closed.execute(ONE)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Drop(), e.ConnectionLost),
        (Cut(20, "reset"), e.ConnectionLost),
        (Answer(500, b"boom"), e.ServerError),
        (Answer(200, b"\xff", "x/y"), e.ServerError),
        (EXPIRED, e.TransactionLost),
        (Answer(400, b"Received an invalid baton"), e.TransactionLost),
    ],
)
async def test_stream_without_an_answer_is_lost_and_says_so(
    through: Any, proxy: Any, fault: Any, kind: type[e.Error]
) -> None:
    """After a request without an answer every use is `TransactionLost`, and nothing is sent."""
    async with through.stream() as stream:
        await stream.execute(BEGIN)
        proxy.script(fault)
        with pytest.raises(kind):
            await stream.execute(ONE)
        assert stream.expired
        with pytest.raises(e.TransactionLost, match="stream is lost"):
            await stream.execute(ONE)
    assert len(proxy.requests) == 2


async def test_parameter_that_cannot_be_sent_leaves_the_stream_alone(direct: Any) -> None:
    """A DataError before sending costs neither the transaction nor the stream."""
    async with direct.stream() as stream:
        await stream.execute(BEGIN)
        with pytest.raises(e.DataError):
            await stream.execute(Statement("SELECT ?", (2**63,)))
        assert (await stream.pipeline([GetAutocommit()])).results == (False,)


async def test_restarted_server_loses_the_stream(direct: Any, sqld: Any) -> None:
    """A stream of a server that was restarted is `TransactionLost`; the client goes on."""
    stream = direct.stream()
    await stream.execute(BEGIN)
    sqld.restart()
    with pytest.raises(e.TransactionLost, match="baton"):
        await stream.execute(ONE)
    assert stream.expired
    await stream.close()
    assert (await direct.execute(ONE)).rows == [(1,)]


async def test_close_never_raises(direct: Any, sqld: Any) -> None:
    """Closing a stream of a server that is gone is quiet."""
    stream = direct.stream()
    await stream.execute(BEGIN)
    sqld.stop()
    await stream.close()


async def test_stream_cursor_reads_inside_the_transaction(direct: Any) -> None:
    """A streamed read sees the stream's own writes, and the stream goes on after it."""
    await direct.execute(CREATE)
    async with direct.stream() as stream:
        await stream.execute(BEGIN)
        await stream.execute(INSERT)
        entries = [entry async for entry in stream.cursor(Batch([Step(COUNT)]))]
        assert entries[1] == Rows([(1,)])
        assert (await stream.pipeline([GetAutocommit()])).results == (False,)


async def test_abandoned_stream_cursor_leaves_the_stream_usable(direct: Any) -> None:
    """A cursor that is closed early gives the stream back, its transaction included."""
    async with direct.stream() as stream:
        await stream.execute(BEGIN)
        async with aclosing(stream.cursor(Batch([Step(MANY)]))) as entries:
            await anext(entries)
            with pytest.raises(e.InterfaceError, match="in use"):
                await stream.execute(ONE)
        assert (await stream.pipeline([GetAutocommit()])).results == (False,)


async def test_broken_stream_cursor_loses_the_stream(through: Any, proxy: Any) -> None:
    """A cursor that breaks off leaves the stream lost."""
    async with through.stream() as stream:
        await stream.execute(BEGIN)
        proxy.script(Cut(300))
        with pytest.raises(e.ConnectionLost, match="broke before the answer was complete"):
            _ = [entry async for entry in stream.cursor(Batch([Step(MANY)]))]
        with pytest.raises(e.TransactionLost):
            await stream.execute(ONE)


def test_two_threads_on_one_stream_are_refused(proxy: Any) -> None:
    """While a thread waits for the stream's answer, another one gets InterfaceError."""
    hang = Hang(forward=True)
    proxy.script(hang)
    with Client(proxy.url) as client:
        stream = client.stream()
        failures: list[Exception] = []

        def first() -> None:
            try:
                stream.execute(ONE)
            except e.ConnectionLost as exc:
                failures.append(exc)

        thread = threading.Thread(target=first)
        thread.start()
        hang.arrived.wait()
        with pytest.raises(e.InterfaceError, match="in use"):
            stream.execute(ONE)
        hang.release.set()
        thread.join()
        assert len(failures) == 1


async def test_two_tasks_on_one_stream_are_refused(sqld: Any) -> None:
    """While a task waits for the stream's answer, another one gets InterfaceError."""
    async with AsyncClient(sqld.url) as client, client.stream() as stream:
        calls = (stream.execute(ONE), stream.execute(ONE))
        first, second = await asyncio.gather(*calls, return_exceptions=True)
        assert first.rows == [(1,)]
        assert isinstance(second, e.InterfaceError)


async def test_cancelled_request_loses_the_stream(proxy: Any) -> None:
    """A request that was cancelled may have run: the stream is lost, its baton never reused."""
    async with AsyncClient(proxy.url) as client:
        stream = client.stream()
        await stream.execute(BEGIN)
        hang = Hang(forward=True)
        proxy.script(hang)
        task = asyncio.create_task(stream.execute(ONE))
        await asyncio.to_thread(hang.arrived.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(e.TransactionLost, match="interrupted"):
            await stream.execute(ONE)
        assert len(proxy.requests) == 2


@pytest.mark.parametrize(
    ("base_url", "moved"), [("http://127.0.0.1:{port}/sub/", True), ("https://127.0.0.1", False)]
)
async def test_stream_follows_the_servers_base_url(
    through: Any, proxy: Any, base_url: str, *, moved: bool
) -> None:
    """The next request goes where the answer says, unless that would change the scheme."""
    url = base_url.format(port=proxy.url.rpartition(":")[2]).encode()
    proxy.script(Answer(200, b"\x0a\x01b\x12" + bytes([len(url)]) + url, "application/x-protobuf"))
    stream = through.stream()
    if not moved:
        with pytest.raises(e.ServerError, match="not http://"):
            await stream.pipeline([])
        return
    await stream.pipeline([])
    proxy.script(Answer(404))
    with pytest.raises(e.ServerError):
        await stream.pipeline([])
    assert proxy.requests[-1].path == "/sub/v3-protobuf/pipeline"


@pytest.mark.soak
async def test_idle_stream_expires(direct: Any) -> None:
    """A stream without a request for 10 s is TransactionLost with the code STREAM_EXPIRED."""
    stream = direct.stream()
    await stream.execute(BEGIN)
    await asyncio.sleep(12)
    with pytest.raises(e.TransactionLost) as failure:
        await stream.execute(ONE)
    assert failure.value.code == "STREAM_EXPIRED"
    assert stream.expired


@pytest.mark.soak
async def test_stolen_transaction_is_lost(direct: Any) -> None:
    """A transaction of 5 s is taken away when another writer waits, and its holder learns it."""
    await direct.execute(CREATE)
    async with direct.stream() as stream:
        await stream.execute(BEGIN)
        await stream.execute(INSERT)
        await asyncio.sleep(5.5)
        await direct.execute(INSERT)
        with pytest.raises(e.TransactionLost) as failure:
            await stream.execute(INSERT)
        assert failure.value.code == "TRANSACTION_TIMEOUT"
        assert (await stream.pipeline([GetAutocommit()])).results == (True,)
    assert (await direct.execute(COUNT)).rows == [(1,)]
