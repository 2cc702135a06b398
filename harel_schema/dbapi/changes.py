"""Several statements of one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.dbapi.parameters import bind
from harel_schema.dbapi.session import Effect
from harel_schema.dbapi.statements import read_one

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harel_schema.dbapi.parameters import Parameters
    from harel_schema.dbapi.session import Session

__all__ = ["effect", "in_order"]


def in_order(
    session: Session, statements: Iterable[tuple[str, Parameters]], *, must_change: bool
) -> list[Effect]:
    """Run statements one by one; see `Session.run_all`."""
    effects = []
    for sql, parameters in statements:
        effects.append(effect(session, sql, parameters))
        if must_change and not effects[0].rowcount:
            break
    return effects


def effect(session: Session, sql: str, parameters: Parameters) -> Effect:
    """Run one statement, whatever it is, and return all that it gave."""
    statement = read_one(sql)
    result = session.run(statement, bind(statement, parameters), None)
    rows = list(result.rows)
    while result.more and (more := result.more()):
        rows += more
    return Effect(result.rowcount, result.lastrowid, rows)
