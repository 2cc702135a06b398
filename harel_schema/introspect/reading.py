"""A live database to a `Schema`: a fixed list of SELECTs, one snapshot, one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from harel_schema.introspect.building import Builder
from harel_schema.introspect.tokens import fold
from harel_schema.names import version_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.introspect.building import Rows
    from harel_schema.introspect.model import Schema

__all__ = ["Connection", "read"]

# A virtual table has no root page. CROSS JOIN keeps the order: a pragma needs what its left gives.
_MASTER = "SELECT type, name, tbl_name, rootpage, sql FROM main.sqlite_schema ORDER BY rowid"
_TABLES = "SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main'"
_COLUMNS = (
    'SELECT m.name, x.name, x.type, x."notnull", x.dflt_value, x.pk, x.hidden'
    " FROM main.sqlite_schema AS m CROSS JOIN pragma_table_xinfo(m.name, 'main') AS x"
    " WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY m.rowid, x.cid"
)
_INDEXES = (
    'SELECT m.name, l.name, l."unique", l.origin, x.cid, x.name, x."desc", x.coll'
    " FROM main.sqlite_schema AS m CROSS JOIN pragma_index_list(m.name, 'main') AS l"
    " CROSS JOIN pragma_index_xinfo(l.name, 'main') AS x"
    " WHERE m.type = 'table' AND m.rootpage > 0 AND x.key = 1 ORDER BY m.rowid, l.seq, x.seqno"
)
_FOREIGN_KEYS = (
    'SELECT m.name, f.id, f."table", f."from", f."to", f.on_update, f.on_delete'
    " FROM main.sqlite_schema AS m CROSS JOIN pragma_foreign_key_list(m.name, 'main') AS f"
    " WHERE m.type = 'table' AND m.rootpage > 0 ORDER BY m.rowid, f.id, f.seq"
)


class _Cursor(Protocol):
    def fetchall(self) -> Sequence[Any]: ...


class Connection(Protocol):
    """What `read` needs: a connection of `harel_schema.dbapi`, or a plain `sqlite3` one."""

    def execute(self, sql: str, /) -> _Cursor:
        """Run one statement."""
        ...


def read(connection: Connection, *, prefix: str | None = None) -> Schema:
    """The schema of the main database of `connection`.

    One snapshot; a remote database is read in one request. `prefix` names the version table
    whose rows become `Schema.versions`. Raises what the connection raises.
    """
    statements = [_MASTER, _TABLES, _COLUMNS, _INDEXES, _FOREIGN_KEYS]
    if prefix is not None:
        statements.append(f'SELECT * FROM main."{version_table(prefix)}"')  # noqa: S608
    execute_reads = getattr(connection, "execute_reads", None)
    if execute_reads is not None:
        results = cast("list[Rows | None]", execute_reads(statements))
    else:
        results = _snapshot(connection, statements)
    versions = results[5] if prefix is not None else None
    return Builder(*(rows or [] for rows in results[:5])).schema(prefix, versions)


def _snapshot(connection: Connection, statements: Sequence[str]) -> list[Rows | None]:
    """Run the statements on a plain `sqlite3` connection, in its transaction or in one of ours."""
    if getattr(connection, "in_transaction", False):
        return _rows(connection, statements)
    connection.execute("BEGIN")
    try:
        return _rows(connection, statements)
    finally:
        connection.execute("ROLLBACK")


def _rows(connection: Connection, statements: Sequence[str]) -> list[Rows | None]:
    results: list[Rows | None] = []
    names: set[str] = set()
    for statement in statements:
        _, quoted, name = statement.partition('FROM main."')
        if quoted and fold(name.rstrip('"')) not in names:
            results.append(None)
            continue
        results.append([tuple(row) for row in connection.execute(statement).fetchall()])
        names = names or {fold(row[1]) for row in results[0] or ()}
    return results
