"""Looking at what a live database holds that is not for a revision to change."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harel_schema import introspect
from harel_schema.drift.unfinished import unfinished
from harel_schema.errors import MigrationError
from harel_schema.introspect import fold, quote
from harel_schema.migrate import adoption
from harel_schema.migrate.adoption import Adoption, Contents
from harel_schema.names import prefix_argument
from harel_schema.tables import shared_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harel_schema import dbapi
    from harel_schema.introspect import Schema

__all__ = ["refuse", "refuse_unversioned", "snapshot", "survey"]

log = logging.getLogger("harel_schema.migrate")


@contextmanager
def snapshot(connection: dbapi.Connection) -> Iterator[None]:
    """Read one state in the block: another process may be renaming the tables."""
    connection.begin("DEFERRED")
    try:
        yield
    finally:
        connection.rollback()


def survey(connection: dbapi.Connection, prefix: str) -> tuple[Schema, Adoption]:
    """Return the schema of a database and what would adopt it; changes nothing.

    The connection is in a transaction. Raises `SchemaMismatch` for tables that no release made.
    """
    schema = introspect.read(connection, prefix=prefix)
    names = adoption.involved(schema, prefix)
    contents = _contents(connection, names) if names else {}
    return schema, adoption.plan(schema, contents, prefix)


def refuse(connection: dbapi.Connection, prefix: str) -> None:
    """Raise `MigrationError`, which names `adopt`, if there is something to adopt.

    Where both generations hold rows the later one is somebody's work too: that is only logged.
    """
    where = connection.target
    with snapshot(connection):
        _, found = survey(connection, prefix)
    for conflict in found.conflicts:
        log.warning("%s: %s", where, conflict)
    if found.conflicts or not found.sql:
        return
    raise MigrationError(
        f"{where} has the tables of harel before 0.7: {', '.join(old for old, _ in found.renamed)}",
        remedy=f"take them over with `harel-schema adopt{prefix_argument(prefix)}`",
    )


def refuse_unversioned(connection: dbapi.Connection, prefix: str, *, down: bool) -> None:
    """Raise `MigrationError` for half a copy or move, which must not become a database.

    With `down` also for tables of which no row says at which revision they are.
    """
    where = connection.target
    found = introspect.read(connection, prefix=prefix)
    said = unfinished(lambda sql: connection.execute(sql).fetchall(), found, prefix)
    said.refuse_half(where, prefix, MigrationError)
    if down and any(found.table(name) for name in shared_metadata(prefix).tables):
        raise MigrationError(
            f"{where} has no revision from which to go back",
            remedy="take its tables over first: "
            f"harel-schema upgrade {where}{prefix_argument(prefix)}",
        )


def _contents(connection: dbapi.Connection, names: tuple[str, ...]) -> dict[str, Contents]:
    held = " UNION ALL ".join(
        f"SELECT {at}, EXISTS (SELECT 1 FROM {quote(name)})"  # noqa: S608 - names that were read
        for at, name in enumerate(names)
    )
    rows, numbers = connection.execute_reads([held, "SELECT name, seq FROM sqlite_sequence"])
    sequences = {fold(name): number for name, number in numbers or ()}
    return {
        names[at]: Contents(bool(full), sequences.get(fold(names[at]), 0))
        for at, full in rows or ()
    }
