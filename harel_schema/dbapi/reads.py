"""Several reads on one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.dbapi.statements import read
from harel_schema.errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.dbapi.session import Row, Session
    from harel_schema.dbapi.statements import Statement

__all__ = ["is_missing_table", "one_by_one"]

_BEGIN = read("BEGIN DEFERRED")
_ROLLBACK = read("ROLLBACK")


def one_by_one(session: Session, statements: Sequence[Statement]) -> list[list[Row] | None]:
    """Run reads in the open transaction, or in one that is begun for them and rolled back.

    Gives None for a statement whose table does not exist.
    """
    begun = not session.in_transaction
    if begun:
        session.run(_BEGIN, (), None)
    try:
        return [_rows(session, statement) for statement in statements]
    finally:
        if begun and session.in_transaction:
            session.run(_ROLLBACK, (), None)


def _rows(session: Session, statement: Statement) -> list[Row] | None:
    try:
        result = session.run(statement, (), None)
        rows = list(result.rows)
        while result.more and (more := result.more()):
            rows += more
    except Error as error:
        if is_missing_table(error):
            return None
        raise
    return rows


def is_missing_table(error: Error) -> bool:
    """Whether a statement failed because a table does not exist: SQLite has no code for it."""
    return "no such table" in error.message
