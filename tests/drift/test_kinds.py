"""Every kind of drift, injected, is named with what was expected and what was found."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from harel_schema.drift import Kind
from harel_schema.revisions import schema_sql
from harel_schema.sql import REVISION
from tests.drift import zoo
from tests.drift.cases import CHANGED, INDEXED, INJECTED, REDEFINED
from tests.drift.support import checked, differences, redefine


def _id(case: tuple[str | None, ...]) -> str:
    return next(part for part in case if part in set(Kind))


@pytest.mark.parametrize("case", REDEFINED, ids=_id)
def test_a_table_made_otherwise_is_named(migrated: sqlite3.Connection, case):
    """A change of a migrated table's definition is one difference of its kind, and counts."""
    table, old, new, kind, name, expected, found = case
    redefine(migrated, table, old, new)
    drift = checked(migrated)
    (difference,) = [d for d in drift if d.kind == kind]
    assert (difference.table, difference.name) == (table, name)
    assert (difference.expected, difference.found) == (expected, found)
    assert drift


@pytest.mark.parametrize("case", INJECTED, ids=_id)
def test_what_happens_to_a_database_is_named(migrated: sqlite3.Connection, case):
    """What is dropped, added, renamed or left behind is the one difference that is found."""
    script, kind, name, expected, found = case
    migrated.executescript(script)
    (difference,) = checked(migrated)
    assert (difference.kind, difference.name) == (kind, name)
    assert (difference.expected, difference.found) == (expected, found)
    assert difference.counts


@pytest.mark.parametrize("case", INDEXED, ids=_id)
def test_an_index_made_otherwise_is_named(migrated: sqlite3.Connection, case):
    """An index of the right name and another definition is one difference, with the cure."""
    statement, kind, expected, found = case
    migrated.execute("DROP INDEX harel_transport_messages_by_group")
    migrated.execute(statement)
    (difference,) = checked(migrated)
    assert (difference.kind, difference.expected, difference.found) == (kind, expected, found)
    assert difference.name == "harel_transport_messages_by_group"
    migrated.executescript(difference.fix)
    assert not checked(migrated)


@pytest.mark.parametrize("case", CHANGED, ids=_id)
def test_a_clause_that_harel_does_not_use_is_seen_too(case):
    """Clauses of other people's tables are compared as well, for `diff` and for later revisions."""
    statement, old, new, kind, expected, found = case
    base = [s for s in (zoo.PARENT, zoo.PLAIN) if s != statement]
    assert old in statement
    drift = differences([*base, statement], [*base, statement.replace(old, new, 1)])
    (difference,) = [d for d in drift if d.kind == kind]
    for text, shown in ((expected, difference.expected), (found, difference.found)):
        assert (text is None) == (shown is None)
        assert text is None or text in shown


@pytest.mark.parametrize("statement", zoo.STATEMENTS)
def test_what_is_only_here_or_only_there_is_missing_or_extra(statement):
    """Every kind of thing is missed when it is gone, and noticed when it is new."""
    base = [s for s in (zoo.PARENT, zoo.PLAIN) if s != statement]
    kinds = {d.kind.rpartition("-")[2] for d in differences([*base, statement], base)}
    assert kinds == {"missing"}
    kinds = {d.kind.rpartition("-")[2] for d in differences(base, [*base, statement])}
    assert kinds == {"extra"}


def test_a_revision_behind_head_is_told_and_does_not_count():
    """A database at an older revision is compared with that revision; head is information."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in schema_sql(revision="0001"):
            connection.execute(statement)
        drift = checked(connection)
    assert [(d.kind, d.counts, d.severity) for d in drift] == [(Kind.VERSION_BEHIND, False, "note")]
    assert not drift
    assert (drift.revision, drift.head) == ("0001", REVISION)


def test_every_kind_has_a_test(request: pytest.FixtureRequest):
    """No kind can be added without an injected example of it here."""
    named = {case[3] for case in (*REDEFINED, *CHANGED)} | {
        case[1] for case in (*INJECTED, *INDEXED)
    }
    # These are injected by other tests of this folder.
    elsewhere = {
        Kind.VERSION_BEHIND,
        Kind.VERSION_DIFFERENT,
        Kind.TABLE_EXTRA,
        Kind.VIEW_EXTRA,
        Kind.VIRTUAL_TABLE_MISSING,
        Kind.VIRTUAL_TABLE_EXTRA,
        Kind.DATA_STORAGE_CLASS,
        Kind.DATA_NULL_KEY,
        Kind.DATA_JSON,
        Kind.DATA_JSON_MISMATCH,
        Kind.DATA_STATUS,
    }
    assert named | elsewhere == set(Kind)
    assert not named & elsewhere


def test_a_column_s_collation_is_told_once_and_not_for_its_indexes_too(
    migrated: sqlite3.Connection,
):
    """An index follows the collation of its column, and making it again would mend nothing."""
    old, new = "definition_id TEXT", "definition_id TEXT COLLATE NOCASE"
    redefine(migrated, "harel_executions", old, new)
    (difference,) = checked(migrated)
    assert (difference.kind, difference.name) == (Kind.COLUMN_COLLATION, "definition_id")
