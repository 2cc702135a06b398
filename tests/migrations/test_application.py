"""An application with an Alembic of its own in the same database, on stock SQLAlchemy."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from harel_schema import drift, migrate, tables
from harel_schema.errors import TargetError
from harel_schema.names import change_log, ledger_name, move_table
from tests.migrations.conftest import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS = sa.MetaData()
sa.Table("orders", ORDERS, sa.Column("id", sa.Integer, primary_key=True), sa.Column("x", sa.Text))


@pytest.fixture
def connection(file) -> Iterator[sa.Connection]:
    """Return a connection of stock SQLAlchemy to a file with our tables and the application's."""
    migrate.upgrade(file.target)
    migrate.upgrade(file.target, "0002", "Second")
    keepsakes = (ledger_name("harel"), move_table("harel"), change_log("harel"))
    file.rows(*(f"CREATE TABLE {name} (a)" for name in keepsakes))
    engine = sa.create_engine(f"sqlite:///{file.target}")
    ORDERS.create_all(engine)
    with engine.connect() as found, warnings.catch_warnings():
        # Alembic says of an index on an expression that it cannot compare it.
        warnings.filterwarnings("ignore", ".*expression-based index")
        yield found
    engine.dispose()


def context(connection: sa.Connection, include_object: Any = None) -> MigrationContext:
    """Return Alembic's context, as the `env.py` of an application makes it."""
    options = {"include_object": include_object} if include_object else {}
    return MigrationContext.configure(connection, opts={"compare_type": True, **options})


def test_without_help_autogenerate_would_drop_our_tables(connection):
    """What the helpers prevent."""
    found = compare_metadata(context(connection), ORDERS)
    assert "harel_executions" in {each[1].name for each in found if each[0] == "remove_table"}


def test_exclude_hides_our_tables_from_an_application(connection):
    """With `exclude`, autogenerate compares the application's tables alone."""
    hidden = tables.exclude("harel", "second")
    assert compare_metadata(context(connection, hidden), ORDERS) == []
    connection.exec_driver_sql("ALTER TABLE orders ADD COLUMN extra TEXT")
    assert [each[0] for each in compare_metadata(context(connection, hidden), ORDERS)] == [
        "remove_column"
    ]


def test_exclude_hides_only_what_is_named(connection):
    """Another prefix, and tables that only begin like ours, stay the application's."""
    connection.exec_driver_sql("CREATE TABLE harel_orders (id INTEGER)")
    found = compare_metadata(context(connection, tables.exclude()), ORDERS)
    names = {each[1].name for each in found if each[0] == "remove_table"}
    assert {"harel_orders", "Second_executions", "Second_alembic_version"} <= names
    assert not {name for name in names if name.startswith("harel_")} - {"harel_orders"}


def test_include_compares_our_tables_with_the_application_s(connection):
    """With our metadata among its targets, autogenerate finds nothing to do, and sees drift."""
    allowed = tables.include()
    targets = [ORDERS, tables.metadata()]
    both = lambda thing, name, kind, *more: (  # noqa: E731 - as short as an env.py has it
        allowed(thing, name, kind, *more) and tables.exclude("Second")(thing, name, kind, *more)
    )
    assert compare_metadata(context(connection, both), targets) == []
    connection.exec_driver_sql("DROP INDEX harel_timers_by_fire_at")
    connection.exec_driver_sql("ALTER TABLE harel_trace ADD COLUMN extra TEXT")
    found = compare_metadata(context(connection, both), targets)
    assert {each[0] for each in found} == {"add_index", "remove_column"}


def test_metadata_s_create_all_makes_a_database_that_upgrade_takes(tmp_path):
    """Tables that an application made from our metadata are head's, and taken over as such."""
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    tables.metadata().create_all(engine)
    engine.dispose()
    done = migrate.upgrade(tmp_path / "app.db")
    assert (done.after, done.applied) == (HEAD, ())
    assert not drift.check(tmp_path / "app.db")


def test_two_prefixes_are_upgraded_independently(database):
    """Each prefix goes its own way, and an application's alembic_version stays as it is."""
    database.rows(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
        "INSERT INTO alembic_version VALUES ('abc')",
    )
    migrate.upgrade(database.target, "0001", "one")
    migrate.upgrade(database.target, prefix="two")
    database.rows("INSERT INTO two_trace VALUES ('a', 0, '{}')")
    assert migrate.upgrade(database.target, prefix="one").applied[0] == "0002"
    migrate.downgrade(database.target, "base", "one")
    assert migrate.current(database.target, "two").revision == HEAD
    assert not drift.check(database.target, prefix="two")
    assert database.rows("SELECT * FROM two_trace") == [("a", 0, "{}")]
    assert database.rows("SELECT * FROM alembic_version") == [("abc",)]


@pytest.mark.parametrize("helper", [tables.exclude, tables.include])
def test_a_bad_prefix_is_refused(helper):
    """A prefix that cannot be is a mistake in an `env.py`, not a filter that hides nothing."""
    with pytest.raises(TargetError, match="prefix"):
        helper("no-dash")
