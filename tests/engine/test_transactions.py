"""What a transaction of the engine is, on each kind of database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, event, func, insert, select
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, ProgrammingError

from harel_schema.engine import create_engine
from harel_schema.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Engine

METADATA = MetaData()
ROWS = Table("rows", METADATA, Column("id", Integer, primary_key=True))
COUNT = select(func.count()).select_from(ROWS)
TABLES = "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"


@pytest.fixture
def rows(engine: Engine) -> Engine:
    """Return an engine over a database with one empty table."""
    METADATA.create_all(engine)
    return engine


def test_ddl_rolls_back(engine: Engine) -> None:
    """A transaction that fails after DDL leaves nothing of it behind."""
    with engine.connect() as connection:
        METADATA.create_all(connection)
        connection.exec_driver_sql("CREATE INDEX rows_by_id ON rows (id)")
        with pytest.raises(OperationalError, match="already exists"):
            connection.exec_driver_sql("CREATE TABLE rows (id)")
        connection.rollback()
    with engine.connect() as connection:
        assert connection.exec_driver_sql(TABLES).all() == []


def test_ddl_and_rows_commit_together(engine: Engine) -> None:
    """A table and its rows appear with one commit."""
    with engine.begin() as connection:
        METADATA.create_all(connection)
        connection.execute(insert(ROWS), {"id": 1})
    with engine.connect() as connection:
        assert connection.scalar(COUNT) == 1


def test_a_savepoint_rolls_back_alone(rows: Engine) -> None:
    """What a savepoint held is undone, what the transaction did around it stays."""
    with rows.begin() as connection:
        connection.execute(insert(ROWS), {"id": 1})
        savepoint = connection.begin_nested()
        connection.execute(insert(ROWS), {"id": 2})
        with pytest.raises(IntegrityError):
            connection.execute(insert(ROWS), {"id": 1})
        savepoint.rollback()
        connection.execute(insert(ROWS), {"id": 3})
    with rows.connect() as connection:
        assert connection.scalars(select(ROWS.c.id)).all() == [1, 3]


@pytest.mark.parametrize("driver", ["sqlite3", "libsql"])
def test_what_was_read_still_holds_when_it_is_written(driver: str, tmp_path: Path) -> None:
    """From its first read on, a transaction on a file keeps other writers out."""
    first, second = (
        create_engine(tmp_path / "state.db", connect_args={"driver": driver, "timeout": 0})
        for _ in range(2)
    )
    METADATA.create_all(first)
    with first.begin() as connection:
        assert connection.scalar(COUNT) == 0
        with pytest.raises(OperationalError) as caught, second.begin():
            pass
        assert isinstance(caught.value.orig, BusyError)
    first.dispose()
    second.dispose()


def test_a_deferred_engine_reads_beside_a_writer(
    rows: Engine, make_engine: Callable[..., Engine]
) -> None:
    """With `begin_mode="DEFERRED"` a transaction that reads takes no lock and waits for none."""
    reader = make_engine(connect_args={"timeout": 0}, begin_mode="DEFERRED")
    with rows.connect() as writer:
        assert writer.scalar(COUNT) == 0
        with reader.connect() as connection:
            assert connection.scalar(COUNT) == 0


def test_autocommit_commits_each_statement(
    rows: Engine, make_engine: Callable[..., Engine]
) -> None:
    """In AUTOCOMMIT nothing begins, and a rollback undoes nothing."""
    engine = make_engine(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(insert(ROWS), {"id": 1})
        connection.rollback()
        assert connection.get_isolation_level() == "AUTOCOMMIT"
    with rows.connect() as connection:
        assert connection.scalar(COUNT) == 1


def test_autocommit_of_one_connection_ends_with_it(rows: Engine) -> None:
    """A connection that was in AUTOCOMMIT comes out of the pool again with transactions."""
    with rows.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        assert connection.get_isolation_level() == "AUTOCOMMIT"
    with rows.connect() as connection:
        assert connection.get_isolation_level() == "SERIALIZABLE"
        connection.execute(insert(ROWS), {"id": 1})
        connection.rollback()
        assert connection.scalar(COUNT) == 0


def test_an_isolation_level_that_means_nothing_is_refused(engine: Engine) -> None:
    """Levels that the database does not have are refused with the list of those that it has."""
    refused = ["REPEATABLE READ"]
    if engine.url.host:
        refused.append("READ UNCOMMITTED")
    for level in refused:
        with (
            pytest.raises(ArgumentError, match="SERIALIZABLE"),
            engine.connect().execution_options(isolation_level=level),
        ):
            pass


def test_errors_are_sqlalchemys_around_ours(rows: Engine) -> None:
    """Each error is wrapped in SQLAlchemy's class of the same name."""
    with rows.connect() as connection:
        connection.execute(insert(ROWS), {"id": 1})
        with pytest.raises(IntegrityError) as caught:
            connection.execute(insert(ROWS), {"id": 1})
        assert caught.value.orig.code.startswith("SQLITE_CONSTRAINT")
        with pytest.raises((OperationalError, ProgrammingError), match="nothing_here"):
            connection.exec_driver_sql("SELECT * FROM nothing_here")


def test_features_are_those_of_the_database_that_answers(engine: Engine) -> None:
    """The dialect's version is that of the SQLite behind the connection."""
    with engine.connect() as connection:
        version = connection.exec_driver_sql("SELECT sqlite_version()").scalar_one()
        assert ".".join(map(str, engine.dialect.server_version_info)) == version


def test_a_cached_statement_is_compiled_once(rows: Engine) -> None:
    """The dialect takes part in SQLAlchemy's cache of compiled statements."""
    hits: list[str] = []

    @event.listens_for(rows, "before_cursor_execute")
    def note(*arguments: object) -> None:
        hits.append(arguments[4].cache_hit.name)  # type: ignore[attr-defined]

    with rows.connect() as connection:
        for number in (1, 2):
            connection.execute(select(ROWS).where(ROWS.c.id == number))
    assert hits == ["CACHE_MISS", "CACHE_HIT"]
