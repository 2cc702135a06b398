"""The version table: which revision a database says it is at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from harel_schema.errors import MigrationError, OperationalError, ProgrammingError, UnknownRevision
from harel_schema.revisions import identifiers

if TYPE_CHECKING:
    from alembic.runtime.migration import MigrationContext

__all__ = ["heads"]

_NO_COLUMN = "no such column"


def heads(context: MigrationContext) -> tuple[str, ...]:
    """Return the database's revision, or nothing when it has none.

    Raises `UnknownRevision` for one that the chain does not have, and `MigrationError` when the
    table holds several rows or is not Alembic's.
    """
    table = context.version_table
    try:
        found = context.get_current_heads()
    except DBAPIError as error:
        # Not their subclasses: a lock or a lost connection says nothing about the table.
        if type(error.orig) in (OperationalError, ProgrammingError) and _NO_COLUMN in str(
            error.orig
        ):
            raise MigrationError(
                f"{table} is not a version table of Alembic: {error.orig}",
                remedy="rename it, or use another --prefix",
            ) from error
        raise
    if len(found) > 1:
        rows = ", ".join(sorted(map(repr, found)))
        raise MigrationError(
            f"{table} holds {len(found)} rows ({rows}) where there must be one",
            remedy="find out which is true and `harel-schema stamp --purge --revision` it",
        )
    if found and context.script and found[0] not in identifiers(context.script):
        raise UnknownRevision(
            f"{table} says {found[0]!r}, which this version of harel-schema does not know",
            revision=str(found[0]),
            remedy="the database is ahead: install the version that upgraded it, or a later one",
        )
    return found
