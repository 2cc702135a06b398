"""What changes while a store is moved is noted and carried over, whoever writes it and how."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harel_schema import hrana
from harel_schema.errors import HarelSchemaError, TransferError
from harel_schema.move import move, switching, unfence
from harel_schema.move.destination import Destination
from harel_schema.move.source import Source
from harel_schema.transfer import Limits, copy
from harel_schema.transfer.layout import Query
from harel_schema.transfer.plan import own_names
from tests.move.test_move import during
from tests.support.proxy import Cut, Drop, FaultyProxy, Pass
from tests.transfer.support import contents, edit, make_source

# Every way to write that harel's stores and ours use, and some that nobody does. A `#` becomes a
# number.
STATEMENTS = [
    "INSERT OR REPLACE INTO harel_executions VALUES ('e000#', 'd', 'replaced', #)",
    "REPLACE INTO harel_timers VALUES ('e000#', 'a/b', #.5)",
    """INSERT INTO harel_timers VALUES ('e000#', 'a/b', #) ON CONFLICT (execution_id, path)
       DO UPDATE SET fire_at = excluded.fire_at""",
    "INSERT OR IGNORE INTO harel_processed_events VALUES ('e000#', 'event-#'), ('new', 'n#')",
    "UPDATE harel_executions SET version = version + 1 WHERE id > 'e002#'",
    "UPDATE harel_executions SET id = id || 'x' WHERE id LIKE 'e001#%'",
    "UPDATE OR REPLACE harel_timers SET execution_id = 'e0020' WHERE execution_id = 'e001#'",
    "UPDATE harel_outbox SET seq = seq + 1000 WHERE seq % 7 = #",
    "UPDATE OR REPLACE harel_trace SET idx = idx / 2 WHERE idx > 1#",
    "DELETE FROM harel_executions WHERE id = 'e002#'",
    "DELETE FROM harel_outbox WHERE seq % 9 = #",
    "DELETE FROM harel_spawns",
    "INSERT INTO harel_spawns (parent_id, child_id, root_path, context) VALUES ('#', '', '', '')",
    "INSERT INTO harel_transport_messages (group_id, event) VALUES ('g#', x'00#0')",
    "UPDATE sqlite_sequence SET seq = seq + 1#",
    "INSERT OR REPLACE INTO harel_definitions VALUES ('order', #, 'd', x'0#', 1e9)",
    """INSERT INTO harel_trace VALUES ('e', 1.5, '#'), ('e', 'text', '#'), ('e', x'#0', '#')
       ON CONFLICT DO NOTHING""",
]
writes = st.lists(
    st.builds(
        lambda sql, n: sql.replace("#", str(n)), st.sampled_from(STATEMENTS), st.integers(1, 9)
    )
)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.tuples(writes, writes, writes))
def test_whatever_is_written_meanwhile_is_there(tmp_path_factory, rounds):
    """After any statements in any phase, the destination holds the source to the bit."""
    folder = tmp_path_factory.mktemp("any")
    source, dest = make_source(folder / "source.db"), folder / "dest.db"
    left = dict(zip(("copy", "catch up", "switch"), rounds, strict=True))

    def progress(report):
        edit(source, *left.pop(report.phase, ()))

    move(source, dest, progress=progress, limits=Limits(rows=9))
    assert contents(dest) == contents(source)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_statement_on_a_server(sqld, tmp_path, statement):
    """A server's change log misses none of them either."""
    source, dest = sqld.url, tmp_path / "dest.db"
    copy(make_source(tmp_path / "initial.db"), source)
    with hrana.Client(source) as client:

        def write():
            client.execute(hrana.Statement(statement.replace("#", "3")))

        move(source, dest, progress=during("switch", write))
    assert contents(dest) == contents(source)


def test_many_changes_come_in_rounds(source, dest):
    """A long change log is carried over in pieces while writers go on; the rest is short."""
    one = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)"
        " INSERT INTO harel_processed_events SELECT 'new', i FROM n"
    )

    def write():
        edit(source, one)

    def again():
        edit(source, "DELETE FROM harel_processed_events WHERE event_id % 100 = 1")

    progress = during("switch", again)
    first = during("catch up", write)
    report = move(source, dest, progress=lambda at: (first(at), progress(at)))
    assert report.switch.rounds >= 2
    assert report.switch.changes >= 10_000
    assert 120 <= report.switch.last_changes <= 2_120
    assert contents(dest) == contents(source)


def test_writers_that_are_too_fast(source, dest, monkeypatch):
    """A move that can never catch up says so; the source stays open."""
    monkeypatch.setattr(switching, "_FRUITLESS", 3)
    monkeypatch.setattr(switching, "_SECONDS", -1)

    def write(report):
        if report.phase == "catch up":
            edit(source, *["UPDATE harel_executions SET version = version + 1"] * 20)

    with pytest.raises(TransferError, match=r"changes faster .* \(\d+ are waiting\); run the same"):
        move(source, dest, progress=write)
    edit(source, "DELETE FROM harel_executions")
    assert move(source, dest).action == "moved"
    assert contents(dest) == contents(source)


def test_a_null_key_that_comes_meanwhile(source, dest):
    """A row that no key names stops the move and not the source."""

    def write():
        edit(source, "INSERT INTO harel_executions VALUES (NULL, 'd', '{}', 1)")

    with pytest.raises(TransferError, match="key is NULL was written to harel_executions"):
        move(source, dest, progress=during("switch", write))
    edit(source, "DELETE FROM harel_executions WHERE id IS NULL")
    move(source, dest)
    assert contents(dest) == contents(source)


def test_the_pause_looks_at_what_changed_only(source, dest, monkeypatch):
    """Changed rows are found by the index of their key, in the source and in the destination."""
    log = None
    install, statements = Source.install, []
    transact, query = Destination.transact, Destination.query

    def installed(self, found, *args):
        nonlocal log
        log = found
        install(self, found, *args)

    def transacting(self, work, applied=None):
        statements.extend(each for each in work if isinstance(each, Query))
        transact(self, work, applied)

    def asking(self, asked):
        statements.append(asked)
        return query(self, asked)

    def write():
        monkeypatch.setattr(Destination, "transact", transacting)
        monkeypatch.setattr(Destination, "query", asking)
        for table in own_names("harel"):
            edit(source, f"DELETE FROM {table} WHERE rowid % 2")
            edit(source, f"UPDATE {table} SET rowid = rowid + 10000 WHERE rowid % 4")

    monkeypatch.setattr(Source, "install", installed)
    monkeypatch.setattr(switching, "_SECONDS", -1)
    move(source, dest, progress=during("catch up", write))
    unfence(source)
    edit(source, *(query.sql for query in log.create()))
    plans = []
    with closing(sqlite3.connect(source)) as connection:
        for sql, args in (*statements, log.changes(), log.changes(7)):
            if "sqlite_sequence" not in sql and not sql.startswith("DROP"):
                plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", args)
                plans += [row[3] for row in plan]
    assert "t" in {plan.split()[1] for plan in plans if plan.startswith("SEARCH")}
    scanned = {plan.split()[1] for plan in plans if plan.startswith("SCAN")}
    # A list of values is scanned as "23 CONSTANT ROWS".
    named = {name for name in scanned if not name.isdigit()} - {"CONSTANT"}
    assert named == {"harel_move_log", "k", "l"}


def test_a_writer_whose_transaction_is_open(source, dest, monkeypatch):
    """A transaction that has written comes over whole; one that has read can write no more."""
    reader = sqlite3.connect(source, isolation_level=None, timeout=0)
    writer = sqlite3.connect(source, isolation_level=None, check_same_thread=False)
    asked = threading.Event()
    lock = Source.lock

    def locking(self):
        asked.set()
        lock(self)

    def end():
        asked.wait()
        writer.execute("COMMIT")

    def begin():
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM harel_executions").fetchall()
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO harel_executions VALUES ('late', 'd', '{}', 1)")
        thread.start()

    monkeypatch.setattr(Source, "lock", locking)
    thread = threading.Thread(target=end)
    with closing(reader), closing(writer):
        assert writer.execute("PRAGMA journal_mode=WAL").fetchall() == [("wal",)]
        move(source, dest, progress=during("switch", begin))
        thread.join()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            reader.execute("DELETE FROM harel_executions")
        reader.execute("ROLLBACK")
        with pytest.raises(sqlite3.IntegrityError, match="moved to"):
            reader.execute("DELETE FROM harel_executions")
    assert contents(dest) == contents(source)
    assert next(
        (row[1], row[0]) for row in contents(dest)["harel_executions"] if "'late'" in row
    ) == ("'late'", "'text'")


def test_prepared_statements_of_writers_notice(source, dest):
    """A writer that goes on with a statement from before is noted, and then refused."""
    sql = "UPDATE harel_executions SET version = version + 1 WHERE id = 'e0001'"
    with closing(sqlite3.connect(source, isolation_level=None)) as writer:
        writer.execute(sql)

        def write():
            writer.execute(sql)

        report = move(source, dest, progress=during("switch", write))
        assert report.switch.last_changes == 1
        with pytest.raises(sqlite3.IntegrityError, match="moved to"):
            writer.execute(sql)
    assert contents(dest) == contents(source)


def test_a_server_that_takes_the_lock_away(sqld, tmp_path):
    """A server ends a transaction of more than 5 s when a writer waits: then it is done again."""
    source, dest = sqld.url, tmp_path / "dest.db"
    copy(make_source(tmp_path / "initial.db"), source)
    reports = []

    def progress(report):
        reports.append(report.phase)
        if reports.count("switch") == 2:
            # Waits for the lock that the move holds, until the server takes it away.
            with hrana.Client(source) as client:
                client.execute(hrana.Statement("DELETE FROM harel_timers WHERE path = 'a/b'"))

    move(source, dest, progress=progress)
    assert reports.count("catch up") > reports.count("check")
    assert contents(dest) == contents(source)
    assert contents(dest)["harel_timers"] == []


@pytest.mark.parametrize("fault", [Drop(), Cut(0), Cut(60)])
@pytest.mark.parametrize(("end", "stride"), [("dest", 5), ("source", 19)])
def test_an_answer_may_be_lost(sqld, tmp_path, end, stride, fault):
    """One request or its answer is lost: the move ends all the same, or the next one does."""
    lose_answers(sqld, tmp_path, end, stride, fault)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", [Drop(), Cut(0), Cut(60)])
@pytest.mark.parametrize("end", ["dest", "source"])
def test_any_answer_may_be_lost(sqld, tmp_path, end, fault):
    """Each of them."""
    lose_answers(sqld, tmp_path, end, 1, fault)


def lose_answers(sqld, tmp_path, end, stride, fault):
    """Move with a fault at one request after another, each `stride`th."""
    original = make_source(tmp_path / "original.db", executions=5)
    with FaultyProxy(sqld.url) as proxy:
        ends = (proxy.url, tmp_path / "d.db") if end == "source" else (tmp_path / "s.db", proxy.url)
        number, total = 0, 1
        while number < total:
            for path in tmp_path.glob("[sd].db*"):
                path.unlink()
            wipe(sqld.url)
            copy(original, sqld.url if end == "source" else ends[0])
            proxy.forget()
            proxy.script(*[Pass()] * number, fault)
            try:
                assert move(*ends).action == "moved"
            except HarelSchemaError:
                assert move(*ends).action in ("moved", "finished")
            total = len(proxy.requests) if number == 0 else total
            assert contents(ends[1] if end == "source" else sqld.url) == contents(original)
            number += stride


def wipe(url):
    """Take everything out of a server."""
    with hrana.Client(url) as client:
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for (name,) in client.execute(hrana.Statement(sql)).rows:
            client.execute(hrana.Statement(f'DROP TABLE "{name}"'))
