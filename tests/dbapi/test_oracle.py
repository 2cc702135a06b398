"""The same statements on stdlib `sqlite3` and on every driver of ours have the same outcome."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing

import pytest

from harel_schema import dbapi

SETUP = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE, b REAL CHECK (b < 100))",
    "CREATE TABLE log (x NOT NULL)",
    """CREATE TRIGGER tr AFTER INSERT ON t BEGIN
        INSERT INTO log VALUES (1); INSERT INTO log VALUES (2);
    END""",
    "CREATE TRIGGER fence BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'moved to ''x'''); END",
    "INSERT INTO t VALUES (1, 'one', 1.0), (2, 'two', 2.0)",
)

STATEMENTS = [
    "SELECT * FROM t ORDER BY id",
    "SELECT id, id, a AS id FROM t WHERE 0",
    "SELECT count(*) FROM t",
    "WITH x AS (SELECT 1 AS y) SELECT y FROM x",
    "VALUES (1, 'a'), (2, NULL)",
    "INSERT INTO t (a) VALUES ('three')",
    "INSERT INTO t (a, b) VALUES ('p', 1), ('q', 2)",
    "INSERT INTO t (a) SELECT 'x' WHERE 0",
    "INSERT OR IGNORE INTO t (id) VALUES (1)",
    "INSERT INTO t (a) VALUES ('one') ON CONFLICT (a) DO UPDATE SET b = 5 RETURNING id, b",
    "INSERT INTO t (a) VALUES ('one') ON CONFLICT DO NOTHING RETURNING id",
    "REPLACE INTO t VALUES (1, 'uno', 1)",
    "/* c */ INSERT INTO t (a) VALUES ('c')",
    "UPDATE t SET b = b + 1",
    "UPDATE t SET b = 1 WHERE 0",
    "UPDATE t SET b = 3 WHERE id = 1 RETURNING *",
    "DELETE FROM t WHERE id = 2",
    "DELETE FROM t",
    "DELETE FROM t RETURNING id AS x, a || b",
    "CREATE TABLE u (a)",
    "CREATE TABLE u AS SELECT * FROM t",
    "CREATE INDEX i ON t (b)",
    "ALTER TABLE t ADD COLUMN c",
    "DROP TABLE log",
    "PRAGMA table_info(t)",
    "PRAGMA foreign_keys",
    "PRAGMA foreign_keys = ON",
    "SAVEPOINT s",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "",
    " -- nothing",
    ";",
    # Failures.
    "selec",
    "SELECT",
    "SELECT * FROM nope",
    "SELECT nope FROM t",
    "SELECT json('{')",
    "SELECT abs(-9223372036854775808)",
    "INSERT INTO t (id) VALUES (1)",
    "INSERT INTO t (a) VALUES ('one')",
    "INSERT INTO t (a, b) VALUES ('x', 100)",
    "INSERT INTO log VALUES (NULL)",
    "INSERT INTO t (id) VALUES ('text')",
    "INSERT INTO t VALUES (1)",
    "DELETE FROM log",
    "CREATE TABLE t (a)",
    "DROP TABLE nope",
    "COMMIT",
    "ROLLBACK",
    "RELEASE nope",
    "SELECT 1; SELECT 2",
]


def outcome(connection, sql):
    """Return all that PEP 249 shows of a statement: rows, names, counts, or the error's class."""
    cursor = connection.cursor()
    try:
        cursor.execute(sql)
        rows = cursor.fetchall()
    except (sqlite3.Error, dbapi.Error) as error:
        mro = [each.__name__ for each in type(error).__mro__]
        return (
            next(name for name in mro if hasattr(sqlite3, name)),
            connection.in_transaction,
        )
    names = cursor.description and [column[0] for column in cursor.description]
    return names, rows, connection.in_transaction


@pytest.mark.parametrize("sql", STATEMENTS)
def test_same_outcome(any_connection, oracle, sql):
    """A statement has stdlib's rows, names, error class, effect and transaction state."""
    for connection in (any_connection, oracle):
        for each in SETUP:
            connection.execute(each)
    assert outcome(any_connection, sql) == outcome(oracle, sql)
    for table in ("t", "log"):
        after = f"SELECT count(*), total(rowid), group_concat(quote(rowid)) FROM {table}"
        assert outcome(any_connection, after) == outcome(oracle, after)


COUNTS = [
    ("INSERT INTO t (a) VALUES ('x'), ('y')", 2, 4),
    ("WITH x AS (SELECT 'w' AS a) INSERT INTO t (a) SELECT a FROM x", 1, 3),
    ("REPLACE INTO t VALUES (1, 'uno', 1)", 1, 1),
    ("INSERT INTO t (a) VALUES ('r') RETURNING a", 1, 3),
    ("UPDATE t SET b = 3 RETURNING a", 2, None),
    ("UPDATE t SET b = 3", 2, None),
    ("UPDATE t SET b = 3 WHERE 0", 0, None),
    ("DELETE FROM t", 2, None),
    ("SELECT * FROM t", -1, None),
    ("CREATE TABLE u AS SELECT * FROM t", -1, None),
    ("PRAGMA user_version", -1, None),
]


@pytest.mark.parametrize(("sql", "rowcount", "lastrowid"), COUNTS)
def test_counts(any_connection, sql, rowcount, lastrowid):
    """`rowcount` is the statement's own, without its triggers', and `lastrowid` an INSERT's."""
    for each in SETUP:
        any_connection.execute(each)
    cursor = any_connection.execute(sql)
    assert (cursor.rowcount, cursor.lastrowid) == (rowcount, lastrowid)


def test_counts_start_again(any_connection):
    """A reused cursor counts each statement anew, and keeps the last row id that it wrote."""
    for each in SETUP:
        any_connection.execute(each)
    cursor = any_connection.cursor()
    found = []
    for sql in ("UPDATE t SET b = 1", "UPDATE t SET b = 2", "SELECT 1", "DELETE FROM t WHERE 0"):
        cursor.execute(sql)
        found.append(cursor.rowcount)
    assert found == [2, 2, -1, 0]
    cursor.execute("INSERT INTO t (a) VALUES ('x')")
    assert cursor.execute("SELECT 1").lastrowid == 3


def test_fetching_past_the_end_runs_nothing(any_connection):
    """However often the end is reached, a statement runs once."""
    any_connection.execute("CREATE TABLE t (a)")
    cursor = any_connection.execute("INSERT INTO t VALUES (1) RETURNING a")
    assert [cursor.fetchall(), cursor.fetchall(), cursor.fetchmany(3)] == [[(1,)], [], []]
    assert cursor.fetchone() is None
    assert any_connection.execute("SELECT count(*) FROM t").fetchone() == (1,)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 256, 1000])
def test_every_way_to_fetch(any_connection, size):
    """fetchone, fetchmany, fetchall and iteration give the same rows, at every chunk's edge."""
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n LIMIT ?"
    expected = [(i + 1,) for i in range(size)]

    def execute():
        return any_connection.execute(sql, (size,))

    assert execute().fetchall() == expected
    assert list(execute()) == expected
    assert execute().fetchmany(size + 1) == expected
    one, cursor = [], execute()
    while (row := cursor.fetchone()) is not None:
        one.append(row)
    assert one == expected
    cursor = execute()
    assert [*cursor.fetchmany(100), *cursor.fetchall()] == expected
    cursor = execute()
    first = cursor.fetchmany(100)
    assert first + [row for run in cursor.runs() for row in run] == expected
    assert cursor.fetchone() is None


def test_large_rows_are_not_read_ahead():
    """With sqlite3, of rows of 1 MB only a few are in memory, wherever in the result they are."""
    sql = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)"
        " SELECT i, zeroblob(iif(i > 100, 1000000, 1)) FROM n"
    )
    with closing(dbapi.connect(":memory:", driver="sqlite3")) as connection:
        tracemalloc.start()
        try:
            assert sum(1 for _ in connection.execute(sql)) == 300
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 10_000_000


def test_fetching_from_nothing(any_connection):
    """A statement without rows has no description and fetches as empty, as in stdlib."""
    cursor = any_connection.execute("CREATE TABLE t (a)")
    assert (cursor.description, cursor.fetchall(), cursor.fetchone()) == (None, [], None)


def test_executemany(any_connection):
    """Executemany takes any iterable of parameters, adds up the rows, and drops RETURNING's."""
    any_connection.begin()
    any_connection.execute("CREATE TABLE t (a, b)")
    cursor = any_connection.executemany(
        "INSERT INTO t VALUES (:x, :y) RETURNING a", ({"x": i, "y": 2**40} for i in range(1200))
    )
    assert (cursor.rowcount, cursor.fetchall()) == (1200, [])
    assert any_connection.execute("SELECT count(*), sum(a), max(b) FROM t").fetchone() == (
        1200,
        719400,
        2**40,
    )
    assert any_connection.executemany("DELETE FROM t WHERE a = ?", []).rowcount == 0


def test_executemany_refuses_a_query(any_connection):
    """Executemany is for statements that change rows."""
    with pytest.raises(dbapi.ProgrammingError):
        any_connection.executemany("SELECT ?", [(1,)])


@pytest.mark.parametrize("source", ["constraint", "iterable", "value"])
def test_executemany_stops_at_the_first_failure(any_connection, source):
    """What executemany did before a failure stays in the transaction; nothing runs after it."""
    any_connection.execute("CREATE TABLE t (a PRIMARY KEY)")
    any_connection.begin()

    def rows():
        yield from ((i,) for i in range(5))
        if source == "iterable":
            raise ZeroDivisionError
        yield (0 if source == "constraint" else object(),)
        yield (99,)

    with pytest.raises((dbapi.IntegrityError, dbapi.ProgrammingError, ZeroDivisionError)):
        any_connection.executemany("INSERT INTO t VALUES (?)", rows())
    assert any_connection.in_transaction
    assert any_connection.execute("SELECT count(*), max(a) FROM t").fetchone() == (5, 4)


def test_script_stops_at_the_first_failure(any_connection):
    """A script raises the first error and runs nothing after it, syntax errors included."""
    for bad in ("INSERT INTO t VALUES (1)", "selec", "INSERT INTO nope VALUES (1)"):
        script = f"CREATE TABLE t (a PRIMARY KEY); INSERT INTO t VALUES (1); {bad}; DROP TABLE t"
        with pytest.raises(dbapi.DatabaseError):
            any_connection.executescript(script)
        assert any_connection.execute("SELECT a FROM t").fetchall() == [(1,)]
        any_connection.execute("DROP TABLE t")


def test_script_begins_and_commits_nothing(open_any):
    """A script runs in the transaction that is open, and without one each statement stands."""
    connection = open_any()
    connection.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    assert not connection.in_transaction
    connection.begin()
    connection.executescript("INSERT INTO t VALUES (2); INSERT INTO t VALUES (3);")
    assert connection.in_transaction
    connection.rollback()
    connection.executescript("BEGIN; INSERT INTO t VALUES (4); COMMIT; BEGIN")
    assert connection.in_transaction
    connection.rollback()
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,), (4,)]


def test_script_takes_no_parameters(any_connection):
    """A placeholder in a script is refused before anything runs."""
    with pytest.raises(dbapi.ProgrammingError):
        any_connection.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (?)")
    assert any_connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


def test_foreign_keys_are_off_until_asked_for(open_any):
    """Foreign keys are off by default, as in SQLite, and PRAGMA turns them on."""
    connection = open_any(isolation_level=None)
    connection.execute("CREATE TABLE p (id PRIMARY KEY)")
    connection.execute("CREATE TABLE c (id REFERENCES p)")
    connection.execute("INSERT INTO c VALUES (1)")
    connection.execute("PRAGMA foreign_keys = ON")
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    with pytest.raises(dbapi.IntegrityError, match="FOREIGN KEY"):
        connection.execute("INSERT INTO c VALUES (2)")
