"""Files of any shape, theirs and ours: whatever is in them comes over and back."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pyproj.datadir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harel_schema.testing import Server
from harel_schema.transfer import Limits, copy
from harel_schema.verify import verify
from tests.support.text import any_text
from tests.transfer.support import EDGES, contents, definitions, fetch

ODD = ["select", "a b", 'q"uote', "it's", "rowid", "ключ", "[x]", "`", "x;--", "%s", "0", "_", "É"]
NAMES = st.sampled_from(ODD) | st.text(
    st.characters(exclude_categories=["Cs"], min_codepoint=33), max_size=6
)
NAMES = NAMES.filter(lambda name: name and not name.lower().startswith(("sqlite_", "harel")))
TYPES = ["INTEGER", "INT", "TEXT", "REAL", "BLOB"]
LOOSE = ["", "NUMERIC", "VARCHAR(3)", "DOUBLE PRECISION", "no type", *TYPES]
VALUES = (
    st.sampled_from(EDGES).filter(lambda value: len(str(value)) < 1_000)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | any_text(max_size=8)
    | st.binary(max_size=8)
)


@dataclass(frozen=True)
class Made:
    """A table as SQL, how many cells a row of it takes, and rows that it may refuse."""

    name: str
    sql: list[str]
    rows: list[tuple[object, ...]]
    insert: str


def quoted(name: str) -> str:
    """Return a name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


@st.composite
def tables(draw, names: list[str]) -> Made:
    """Make a table: columns, key, generated columns, indexes, a trigger, a reference, rows."""
    name, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    columns = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
    strict = draw(st.booleans())
    types = [draw(st.sampled_from([*TYPES, "ANY"] if strict else LOOSE)) for _ in columns]
    terms = [f"{quoted(c)} {kind}" for c, kind in zip(columns, types, strict=True)]
    terms = [f"{t} {draw(st.sampled_from(['', 'COLLATE NOCASE', 'COLLATE RTRIM']))}" for t in terms]
    key = draw(st.lists(st.sampled_from(columns), max_size=2, unique=True))
    form = draw(st.sampled_from(["alias", "auto", "key", "none"]))
    without = form == "key" and bool(key) and draw(st.booleans())
    if form in ("alias", "auto"):
        own = f"id{'I' * len(columns)}d"
        terms.insert(0, f"{own} INTEGER PRIMARY KEY{' AUTOINCREMENT' * (form == 'auto')}")
    elif form == "key" and key:
        direction = [draw(st.sampled_from(["", " DESC", " COLLATE NOCASE"])) for _ in key]
        parts = ", ".join(quoted(k) + d for k, d in zip(key, direction, strict=True))
        terms.append(f"PRIMARY KEY ({parts})")
    if draw(st.booleans()):
        how = draw(st.sampled_from(["STORED", "VIRTUAL"]))
        made = f"made TEXT AS (hex({quoted(columns[0])})) {how}"
        terms.insert(draw(st.integers(0, 1)) if form != "key" else len(columns), made)
    if draw(st.booleans()):
        terms.append(f"FOREIGN KEY ({quoted(columns[0])}) REFERENCES {quoted(other)}")
    terms.sort(key=lambda term: term.startswith(("PRIMARY KEY (", "FOREIGN KEY")))
    options = ", ".join(["WITHOUT ROWID"] * without + ["STRICT"] * strict)
    sql = [f"CREATE TABLE {quoted(name)} ({', '.join(terms)}) {options}"]
    first = quoted(columns[0])
    extra = {
        "index": f"CREATE INDEX {quoted(name + ' i')} ON {quoted(name)} ({first} DESC)",
        "part": f"CREATE INDEX {quoted(name + ' p')} ON {quoted(name)} (lower({first}))"
        f" WHERE {first} > 5",
        "view": f"CREATE VIEW {quoted(name + ' v')} AS SELECT {first} FROM {quoted(name)}",
        "trigger": f"CREATE TRIGGER {quoted(name + ' t')} AFTER INSERT ON {quoted(name)}"
        f" BEGIN DELETE FROM {quoted(name)}; END",
    }
    sql += [extra[each] for each in draw(st.sets(st.sampled_from(sorted(extra)))) - {"trigger"}]
    listed = ", ".join(map(quoted, columns))
    marks = ", ".join("?" * len(columns))
    rows = draw(st.lists(st.tuples(*[VALUES] * len(columns)), max_size=12))
    insert = f"INSERT OR IGNORE INTO {quoted(name)} ({listed}) VALUES ({marks})"
    if draw(st.booleans()):
        return Made(name, [*sql, extra["trigger"]], rows, insert)
    return Made(name, sql, rows, insert)


@st.composite
def databases(draw) -> list[Made]:
    """Make some tables that may refer to one another."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
    made = draw(st.lists(tables(names), min_size=1, max_size=4))
    return list({each.name: each for each in made}.values())


def build(path: Path, made: list[Made]) -> None:
    """Write a file; what SQLite itself refuses is left out."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for each in made:
            for statement in each.sql:
                with suppress(sqlite3.OperationalError):
                    connection.execute(statement)
            with suppress(sqlite3.OperationalError, sqlite3.IntegrityError):
                connection.executemany(each.insert, each.rows)


def rowids(path: Path | str) -> list[object]:
    """Return the rowids of all tables that have no key, by name."""
    listed = fetch(path, "SELECT name FROM pragma_table_list WHERE type = 'table' AND wr = 0")
    keyed = "SELECT count(*) FROM pragma_table_xinfo('{}') WHERE pk > 0 OR lower(name) = 'rowid'"
    bare = [
        name
        for (name,) in sorted(listed)
        if not name.startswith("sqlite_")
        and fetch(path, keyed.format(name.replace("'", "''"))) == [(0,)]
    ]
    return [fetch(path, f"SELECT rowid FROM {quoted(name)} ORDER BY 1") for name in bare]


@pytest.fixture(scope="module")
def namespaces(tmp_path_factory):
    """Return what makes an empty database on a server, and gives its URL."""
    folder = tmp_path_factory.mktemp("server")
    numbers = count()
    with Server(folder, admin=True, namespaces=True) as server:
        yield lambda: server.create_namespace(f"n{next(numbers)}")


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(databases(), st.integers(1, 5))
def test_any_schema(tmp_path_factory, namespaces, made, size):
    """Tables of any shape and rows of any kind are the same at a server, and back in a file."""
    folder, url = tmp_path_factory.mktemp("any"), namespaces()
    source, back = folder / "source.db", folder / "back.db"
    build(source, made)
    copy(source, url, all_tables=True, limits=Limits(rows=size))
    copy(url, back, all_tables=True)
    for other in (url, back):
        assert verify(source, other, all_tables=True).equal
        assert definitions(other) == definitions(source)
        assert contents(other) == contents(source)
        assert rowids(other) == rowids(source)


def differing(one: Path, two: Path, table: str) -> int:
    """Return how many rows of a table, as SQLite writes their cells, only one of two files has."""
    with closing(sqlite3.connect(one)) as connection:
        connection.execute("ATTACH ? AS two", (str(two),))
        columns = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        cells = ", ".join(f"typeof({quoted(c)}), quote({quoted(c)})" for (c,) in columns)
        select = f"SELECT {cells}, count(*) FROM {{}}.{quoted(table)} GROUP BY {cells}"
        a, b = select.format("main"), select.format("two")
        pairs = (f"SELECT count(*) FROM ({x} EXCEPT {y})" for x, y in ((a, b), (b, a)))
        return sum(connection.execute(each).fetchone()[0] for each in pairs)


@pytest.mark.soak
def test_a_database_of_other_people(tmp_path, sqld_url):
    """PROJ's own: 37 tables, 74,000 rows, triggers that refuse, views, rows that refer to rows."""
    source, back = Path(pyproj.datadir.get_data_dir()) / "proj.db", tmp_path / "back.db"
    copy(source, sqld_url, all_tables=True)
    copy(sqld_url, back, all_tables=True)
    # What ANALYZE has found is not copied.
    wanted = [each for each in definitions(source) if not each[1].startswith("sqlite_stat")]
    assert definitions(back) == wanted
    tables = [name for kind, name, *_ in wanted if kind == "table"]
    assert [name for name in tables if differing(source, back, name)] == []
