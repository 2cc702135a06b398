"""What both clients promise when nothing breaks; every test runs on both."""

from __future__ import annotations

import gc
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

import pytest

from harel_schema import errors as e
from harel_schema.hrana import (
    And,
    Batch,
    Client,
    Close,
    Describe,
    Description,
    Err,
    Execute,
    GetAutocommit,
    IsAutocommit,
    Not,
    Ok,
    Or,
    Rows,
    RunBatch,
    Sequence,
    Statement,
    Step,
    StepBegin,
    StepEnd,
    StepError,
)
from harel_schema.testing import sqld_server

COUNT = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n"
)


def steps(*parts: str | tuple[str, Any]) -> Batch:
    """Return a batch of statements, some with a condition."""
    pairs = [(part, None) if isinstance(part, str) else part for part in parts]
    return Batch([Step(Statement(sql), condition) for sql, condition in pairs])


async def test_execute_is_one_request(direct: Any) -> None:
    """A statement is one HTTP request, and its stream does not stay behind."""
    await direct.execute(Statement("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)"))
    result = await direct.execute(Statement("INSERT INTO t(b) VALUES (?), (?)", ("x", "y")))
    assert (result.affected_row_count, result.last_insert_rowid) == (2, 2)
    result = await direct.execute(Statement("SELECT a, b, a + 1 AS c FROM t"))
    assert result.rows == [(1, "x", 2), (2, "y", 3)]
    assert (result.columns, result.decltypes) == (("a", "b", "c"), ("INTEGER", "TEXT", None))
    assert direct.requests_sent == 3


async def test_large_requests_leave_nothing_behind(direct: Any) -> None:
    """The body of a request is let go of when it is answered, without the garbage collector."""
    await direct.execute(Statement("SELECT 1"))
    blob = bytes(2_000_000)
    tracemalloc.start()
    gc.disable()
    try:
        for _ in range(5):
            await direct.execute(Statement("SELECT length(?), length(?)", (blob, "x")))
        left, peak = tracemalloc.get_traced_memory()
    finally:
        gc.enable()
        tracemalloc.stop()
    assert left < len(blob)
    assert peak < 4 * len(blob)


async def test_pipeline_answers_each_request(direct: Any) -> None:
    """One HTTP request carries requests of every kind; an error stays in its slot."""
    await direct.execute(Statement("CREATE TABLE t(a INTEGER)"))
    answer = await direct.pipeline(
        [
            Execute(Statement("SELECT * FROM nowhere")),
            Sequence("BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"),
            GetAutocommit(),
            Describe("UPDATE t SET a = :new WHERE a = ? RETURNING a"),
            RunBatch(steps("SELECT a FROM t", ("SELECT 0", Err(0)))),
            Sequence("ROLLBACK"),
            GetAutocommit(),
            Execute(Statement("SELECT count(*) FROM t")),
            Close(),
        ]
    )
    failed, sequence, inside, described, batch, _, outside, counted, closed = answer.results
    assert isinstance(failed, e.OperationalError)
    assert (sequence, inside, outside, closed) == (None, False, True, None)
    assert described == Description((":new", None), ("a",), ("INTEGER",), False, False)
    assert (batch.results[0].rows, batch.results[1], batch.errors) == (
        [(1,), (2,)],
        None,
        (None, None),
    )
    assert (counted.rows, answer.baton, direct.requests_sent) == ([(0,)], None, 2)


async def test_conditions_decide_which_steps_run(direct: Any) -> None:
    """Each condition of Hrana 3 is evaluated as the specification says."""
    conditions = [
        (Ok(0), True),
        (Ok(1), False),
        (Err(1), True),
        (Err(0), False),
        (Not(Ok(1)), True),
        (IsAutocommit(), True),
        (And([Ok(0), Err(1)]), True),
        (And([Ok(0), Ok(1)]), False),
        (And([]), True),
        (Or([Ok(1), Ok(0)]), True),
        (Or([]), False),
    ]
    batch = steps("SELECT 0", "SELECT * FROM nowhere", *(("SELECT 1", c) for c, _ in conditions))
    result = await direct.batch(batch)
    assert [slot is not None for slot in result.results] == [
        True,
        False,
        *(ran for _, ran in conditions),
    ]
    assert [slot is not None for slot in result.errors] == [False, True, *[False] * len(conditions)]


async def test_batch_is_an_atomic_commit_in_one_request(direct: Any) -> None:
    """A transaction with a guard is one request, and the guard's failure undoes all of it."""
    await direct.execute(Statement("CREATE TABLE t(a NOT NULL)"))
    result = await direct.batch(
        steps(
            "BEGIN IMMEDIATE",
            ("INSERT INTO t VALUES (1)", Ok(0)),
            ("INSERT INTO t VALUES (NULL)", Ok(1)),
            ("COMMIT", Ok(2)),
            ("ROLLBACK", Not(IsAutocommit())),
        )
    )
    assert isinstance(result.errors[2], e.IntegrityError)
    assert result.results[3] is None
    assert result.results[4] is not None
    assert (await direct.execute(Statement("SELECT count(*) FROM t"))).rows == [(0,)]
    assert direct.requests_sent == 3


async def test_batch_that_does_not_parse_is_raised_and_nothing_ran(direct: Any) -> None:
    """A step that does not parse fails the whole batch, in a pipeline and in a cursor."""
    batch = steps("CREATE TABLE t(a)", "SELEC 1")
    with pytest.raises(e.OperationalError, match="syntax error") as failure:
        await direct.batch(batch)
    assert failure.value.code == "SQL_PARSE_ERROR"
    with pytest.raises(e.OperationalError, match="syntax error") as failure:
        _ = [entry async for entry in direct.cursor(batch)]
    assert failure.value.code == "SQL_PARSE_ERROR"
    with pytest.raises(e.OperationalError, match="no such table"):
        await direct.execute(Statement("SELECT * FROM t"))


async def test_cursor_tells_the_steps_apart(direct: Any) -> None:
    """A cursor yields the begin, rows and end or error of each step, and skips as a batch does."""
    batch = steps(
        "SELECT 1 AS a UNION ALL SELECT 2",
        "SELECT * FROM nowhere",
        ("SELECT 3", Ok(1)),
        "SELECT 4 WHERE 0",
    )
    entries = [entry async for entry in direct.cursor(batch)]
    rows = [row for entry in entries if isinstance(entry, Rows) for row in entry.rows]
    others = [entry for entry in entries if not isinstance(entry, Rows)]
    assert rows == [(1,), (2,)]
    assert others[:2] == [StepBegin(0, ("a",), (None,)), StepEnd(0, None)]
    assert isinstance(others[2], StepError)
    assert (others[2].step, type(others[2].error)) == (1, e.OperationalError)
    assert others[3:] == [StepBegin(3, ("4",), (None,)), StepEnd(0, None)]


async def test_cursor_has_no_size_limit(direct: Any) -> None:
    """A cursor streams more than the 10 MB that one response may hold."""
    big = Statement(f"SELECT i, hex(randomblob(4000)) FROM ({COUNT})", (2000,))
    with pytest.raises(e.OperationalError, match="cursor") as failure:
        await direct.execute(big)
    assert failure.value.code == "RESPONSE_TOO_LARGE"
    read = [(row[0], len(row[1])) async for row in direct.rows(big)]
    assert read == [(i, 8000) for i in range(1, 2001)]


async def test_rows_raise_the_statements_error(direct: Any) -> None:
    """`rows` raises what `execute` would."""
    with pytest.raises(e.OperationalError, match="no such table: nowhere"):
        _ = [row async for row in direct.rows(Statement("SELECT * FROM nowhere"))]


async def test_abandoned_cursor_frees_its_connection_and_its_stream(direct: Any) -> None:
    """Closing a cursor early leaves neither a pooled connection nor a stream behind."""
    for _ in range(140):  # more than the 128 connections that sqld serves
        async with aclosing(direct.rows(Statement(COUNT, (10**7,)))) as rows:
            assert await anext(rows) == (1,)
    assert (await direct.execute(Statement("SELECT 1"))).rows == [(1,)]


async def test_version_names_the_server(direct: Any) -> None:
    """`version` is the server's own name and number."""
    assert (await direct.version()).startswith("sqld 0.")


async def test_closed_client_refuses(direct: Any) -> None:
    """A client that was closed says so."""
    await direct.close()
    with pytest.raises(e.InterfaceError, match="closed"):
        await direct.execute(Statement("SELECT 1"))


def test_client_does_not_outlive_a_fork(client: Client) -> None:
    """In a child process the parent's client refuses instead of sharing its connections."""
    client.execute(Statement("SELECT 1"))
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            client.execute(Statement("SELECT 1"))
        except BaseException as exc:  # noqa: BLE001 - whatever it is, the parent looks at it
            os.write(write, type(exc).__name__.encode())
        client.close()
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"InterfaceError"
    os.close(read)
    assert client.execute(Statement("SELECT 1")).rows == [(1,)]


def test_threads_share_a_client(client: Client) -> None:
    """Requests of many threads at once all get their own answer."""
    with ThreadPoolExecutor(16) as threads:
        results = threads.map(lambda n: client.execute(Statement("SELECT ?", (n,))), range(100))
        assert [result.rows for result in results] == [[(n,)] for n in range(100)]
    assert client.requests_sent == 100


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("libsql://host", "http"),
        ("host:80", "http"),
        ("http://", "http"),
        ("https://user:secret@host", "auth_token"),
        ("https://host?authToken=secret", "auth_token"),
        ("http://a..b", "'a..b' is no name of a host"),
        (f"http://{64 * 'a'}", "is no name of a host"),
        ("http://999.1.1.1", "is no name of a host"),
        ("http://xn--a", "is no name of a host"),
    ],
)
async def test_bad_url_is_refused_and_not_quoted(connect: Any, url: str, reason: str) -> None:
    """A URL that cannot be used is one clear line, without what may be a secret in it."""
    with pytest.raises(e.TargetError, match=reason) as failure:
        await connect(url)
    assert "secret" not in str(failure.value)


async def test_a_name_below_localhost_is_this_machine(connect, tmp_path):
    """``NAME.localhost`` needs no resolver, and keeps its name: two namespaces stay apart."""
    with sqld_server(tmp_path / "sqld", admin=True, namespaces=True) as server:
        for name in ("a", "b"):
            client = await connect(server.create_namespace(name))
            await client.execute(Statement("CREATE TABLE t (x)"))
