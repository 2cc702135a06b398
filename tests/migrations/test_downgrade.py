"""A downgrade loses no row unless it is told to."""

from __future__ import annotations

import pytest

from harel_schema import migrate
from harel_schema.errors import MigrationError
from tests.migrations.conftest import CHAIN


def test_rows_are_not_dropped(database):
    """A downgrade that would drop rows names the tables and counts, and changes nothing."""
    migrate.upgrade(database.target)
    database.rows(
        "INSERT INTO harel_outbox (event) VALUES ('a'), ('b')",
        "INSERT INTO harel_trace VALUES ('a', 0, '{}')",
    )
    before = database.fingerprint()
    with pytest.raises(
        MigrationError, match=r"harel_outbox \(2 rows\), harel_trace \(1 row\).*--force"
    ):
        migrate.downgrade(database.target, "base")
    assert database.fingerprint() == before


def test_rows_that_stay_do_not_hinder(database):
    """A downgrade that drops only empty tables keeps every row of the others."""
    migrate.upgrade(database.target)
    database.rows("INSERT INTO harel_trace VALUES ('a', 0, '{}')")
    assert migrate.downgrade(database.target, "0001").applied == CHAIN[:0:-1]
    assert database.rows("SELECT * FROM harel_trace") == [("a", 0, "{}")]


def test_force_drops_them(database):
    """With force, the rows go with their tables."""
    migrate.upgrade(database.target)
    database.rows("INSERT INTO harel_trace VALUES ('a', 0, '{}')")
    done = migrate.downgrade(database.target, "base", force=True)
    assert (done.after, done.applied) == (None, CHAIN[::-1])
    assert "harel_trace (1 row)" in done.dropped
    assert {"harel_outbox (0 rows)", "harel_timers_by_fire_at"} <= set(done.dropped)
    left = [table.name for table in database.schema().tables]
    assert left == ["harel_alembic_version", "sqlite_sequence"]


@pytest.mark.parametrize("revision", CHAIN)
def test_each_downgrade_says_what_it_drops(revision, file):
    """The tables and indexes that are gone after a step are the ones that it named."""
    names = "SELECT name FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    migrate.upgrade(file.target, revision)
    before = {name for (name,) in file.rows(names)}
    done = migrate.downgrade(file.target, "-1")
    after = {name for (name,) in file.rows(names)}
    said = {name.partition(" (")[0] for name in done.dropped}
    # An index goes with its table.
    assert said <= before - after
    assert {name for name in before - after if not name.startswith(tuple(said))} == set()


def test_a_way_that_does_not_exist_is_refused(database):
    """A downgrade upwards is one clear line."""
    migrate.upgrade(database.target, "0001")
    with pytest.raises(MigrationError, match="0002"):
        migrate.downgrade(database.target, "0002")
