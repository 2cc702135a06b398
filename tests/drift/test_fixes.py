"""A remedy that is offered mends what it is offered for."""

from __future__ import annotations

import json
from sqlite3 import complete_statement
from typing import TYPE_CHECKING

import pytest

from harel_schema.drift import Difference, Drift, Kind
from harel_schema.sql import REVISION
from tests.drift import zoo
from tests.drift.cases import CHANGED, INJECTED, REDEFINED
from tests.drift.support import checked, differences, redefine

if TYPE_CHECKING:
    import sqlite3


def mend(connection: sqlite3.Connection, difference: Difference) -> None:
    """Run a difference's SQL."""
    assert difference.fix is not None
    connection.executescript(difference.fix)


@pytest.mark.parametrize("case", [case for case in INJECTED if "version" not in case[1]])
def test_the_statement_mends_what_was_injected(migrated: sqlite3.Connection, case):
    """After a difference's statement has run, it is gone, and no other has come."""
    migrated.executescript(case[0])
    (difference,) = checked(migrated)
    mend(migrated, difference)
    assert not len(checked(migrated))


@pytest.mark.parametrize("case", REDEFINED)
def test_a_statement_that_is_offered_for_a_table_mends_it(migrated: sqlite3.Connection, case):
    """Where one statement can mend a column it is offered; where none can, none is."""
    redefine(migrated, *case[:3])
    offered = [difference for difference in checked(migrated) if difference.fix]
    assert {d.kind.value for d in offered} == {case[3]} & {
        "column-missing",
        "column-extra",
        "column-renamed",
    }
    for difference in offered:
        mend(migrated, difference)
    left = {(d.kind, d.name) for d in checked(migrated)}
    assert not left & {(d.kind, d.name) for d in offered}


@pytest.mark.parametrize("case", CHANGED)
def test_a_statement_that_is_offered_for_any_clause_mends_it(migrated, case):
    """The same holds for clauses that harel's tables do not have."""
    statement, old, new, *_ = case
    base = [s for s in (zoo.PARENT, zoo.PLAIN) if s != statement]
    after = [*base, statement.replace(old, new, 1)]
    offered = [d for d in differences([*base, statement], after) if d.fix]
    mended = [*after, *(part for d in offered for part in statements(d.fix))]
    left = {(d.kind, d.name) for d in differences([*base, statement], mended)}
    assert not left & {(d.kind, d.name) for d in offered}


def statements(script: str) -> list[str]:
    """Split a script at the semicolons that end a statement."""
    parts, buffer = [], ""
    for piece in script.split(";"):
        buffer += piece + ";"
        if complete_statement(buffer):
            parts.append(buffer)
            buffer = ""
    return parts


def test_what_is_missing_comes_back_with_its_indexes(migrated: sqlite3.Connection):
    """The statement for a missing table makes its indexes too."""
    migrated.execute("DROP TABLE harel_transport_messages")
    (difference,) = checked(migrated)
    mend(migrated, difference)
    assert not len(checked(migrated))


def test_a_key_that_is_gone_has_no_statement(migrated: sqlite3.Connection):
    """SQLite cannot add a key or NOT NULL to a table that exists, and no statement pretends to."""
    redefine(migrated, "harel_outbox", "event TEXT NOT NULL", "event TEXT")
    redefine(migrated, "harel_trace", ", PRIMARY KEY (execution_id, idx)", "")
    assert {(d.kind, d.fix) for d in checked(migrated)} == {
        (Kind.COLUMN_NOT_NULL, None),
        (Kind.PRIMARY_KEY, None),
    }


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("DELETE FROM harel_alembic_version", "harel-schema upgrade"),
        (
            "INSERT INTO harel_alembic_version VALUES ('0001')",
            f"DELETE FROM harel_alembic_version WHERE version_num <> '{REVISION}';",
        ),
        (
            "UPDATE harel_alembic_version SET version_num = 'feedbeef'",
            f"UPDATE harel_alembic_version SET version_num = '{REVISION}';",
        ),
        (
            "UPDATE harel_alembic_version SET version_num = '9999'",
            "pip install --upgrade harel-schema",
        ),
    ],
)
def test_a_bad_version_row_has_its_command(migrated: sqlite3.Connection, script, command):
    """What is wrong with the version row names the way out."""
    migrated.execute(script)
    (difference,) = checked(migrated)
    assert difference.fix == command
    if command.endswith(";"):
        mend(migrated, difference)
        assert not len(checked(migrated))


def test_a_bad_version_row_over_a_wrong_shape_has_no_command(migrated: sqlite3.Connection):
    """A row is not to be written over a schema that is no revision's."""
    migrated.execute("DELETE FROM harel_alembic_version")
    redefine(migrated, "harel_timers", "fire_at REAL", "fire_at TEXT")
    version, timers = checked(migrated)
    assert (version.kind, version.fix) == (Kind.VERSION_MISSING, None)
    assert timers.kind is Kind.COLUMN_AFFINITY


def test_a_database_ahead_is_not_compared(migrated: sqlite3.Connection):
    """What a newer revision promises is unknown, so its tables are neither wrong nor right."""
    migrated.execute("UPDATE harel_alembic_version SET version_num = '0999'")
    migrated.execute("ALTER TABLE harel_timers ADD COLUMN zone TEXT")
    assert [d.kind for d in checked(migrated)] == [Kind.VERSION_AHEAD]


def test_a_drift_is_data(migrated: sqlite3.Connection):
    """A drift goes to JSON and back whole, and has a JSON Schema."""
    migrated.executescript("DROP TABLE harel_trace; CREATE TABLE people (a)")
    drift = checked(migrated)
    assert Drift.model_validate_json(drift.model_dump_json()) == drift
    assert json.loads(drift.model_dump_json())["differences"][0]["kind"] == "table-missing"
    assert "differences" in Drift.model_json_schema()["properties"]
    assert str(drift) == str(drift.differences[0])


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("CREATE VIEW harel_timers AS SELECT 1 AS a", "a view"),
        ("CREATE VIRTUAL TABLE Harel_Timers USING fts5(a)", "a virtual table"),
    ],
)
def test_what_has_a_table_s_name_is_named_and_not_dropped(
    migrated: sqlite3.Connection, sql: str, found: str
):
    """A view in a table's place is said to be there; no statement would mend that."""
    migrated.executescript(f"DROP TABLE harel_timers; {sql}")
    drift = checked(migrated)
    (difference,) = (each for each in drift if each.kind is Kind.TABLE_MISSING)
    assert (difference.name, difference.found, difference.fix) == ("harel_timers", found, None)
    assert "harel_timers" not in {name.lower() for name in drift.others}
