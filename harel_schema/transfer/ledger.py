"""The ledger of a copy: which part of which table is done, kept in the destination.

It cuts the keys of every table into ranges, each after one key up to and with another. A range
is done, with the digest of its rows as they were read, or still to do; the rows of a range that
is to do are not in the destination. A batch of rows is inserted in the transaction that marks
its range done, so that the two never disagree, and a copy that was stopped goes on. The ledger
is made in the first transaction of a copy and dropped in its last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harel_schema import rows
from harel_schema.drift.ours import ledger_name
from harel_schema.errors import TransferError
from harel_schema.introspect import fold, quote
from harel_schema.transfer.layout import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harel_schema.rows import Row
    from harel_schema.transfer.database import Database

__all__ = ["Ledger", "Range"]

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Range:
    """The keys of `table` after `lower` up to and with `upper`; None stands for either end.

    `digest` is that of the range's `count` rows, None while it is to do.
    """

    table: str
    lower: Row | None = None
    upper: Row | None = None
    count: int = 0
    digest: bytes | None = None


class Ledger:
    """The statements of a ledger. Writing ones are for `Database.transact`."""

    def __init__(self, database: Database, prefix: str) -> None:
        self._database = database
        self.table = ledger_name(prefix)
        self._name = quote(self.table)

    def exists(self) -> bool:
        """Return whether a copy into the destination is unfinished."""
        found = Query(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND lower(name) = ?",
            (fold(self.table),),
        )
        return bool(self._database.query(found)[0][0])

    def begun(self, run: bytes) -> bool:
        """Return whether `begin` has made this ledger for `run`."""
        sql = f"SELECT digest FROM {self._name} WHERE tbl = ''"  # noqa: S608
        return self.exists() and self._database.query(Query(sql)) == [(run,)]

    def source(self) -> str:
        """Return the name of the source of the unfinished copy.

        Raises `TransferError` when another version of this tool began it.
        """
        sql = f"SELECT count, source FROM {self._name} WHERE tbl = ''"  # noqa: S608
        found = self._database.query(Query(sql))
        if not found or found[0][0] != _FORMAT:
            raise TransferError(
                f"{self._database.target} holds the ledger of a copy by another version",
                remedy="start over with --replace",
            )
        return str(found[0][1])

    def tables(self) -> set[str]:
        """Return the names of the tables that the unfinished copy takes."""
        sql = f"SELECT DISTINCT tbl FROM {self._name} WHERE tbl <> ''"  # noqa: S608
        return {str(name) for (name,) in self._database.query(Query(sql))}

    def ranges(self) -> dict[str, list[Range]]:
        """Return the ranges of each table, in no order."""
        sql = f"SELECT tbl, lower, upper, count, digest FROM {self._name} WHERE tbl <> ''"  # noqa: S608
        found: dict[str, list[Range]] = {}
        for table, lower, upper, count, digest in self._database.query(Query(sql)):
            part = Range(table, _key(lower), _key(upper), count, digest)
            found.setdefault(table, []).append(part)
        return found

    def holds(self, done: Range) -> bool:
        """Return whether `done` is marked done, just as it is given."""
        sql = f"SELECT upper, digest FROM {self._name} WHERE tbl = ? AND lower = ?"  # noqa: S608
        found = self._database.query(Query(sql, (done.table, _bytes(done.lower) or b"")))
        return found == [(_bytes(done.upper), done.digest)]

    def begin(self, source: str, tables: Sequence[str], run: bytes) -> list[Query]:
        """Make the ledger, with all of `tables` to do; `run` is random and tells it from others."""
        table = (
            f"CREATE TABLE {self._name} (tbl TEXT NOT NULL, lower BLOB NOT NULL, upper BLOB,"
            " count INTEGER NOT NULL, digest BLOB, source TEXT, PRIMARY KEY (tbl, lower))"
            " WITHOUT ROWID"
        )
        head = (
            f"INSERT INTO {self._name} (tbl, lower, count, digest, source)"  # noqa: S608
            " VALUES ('', x'', ?, ?, ?)"
        )
        todo = f"INSERT INTO {self._name} (tbl, lower, count) VALUES (?, x'', 0)"  # noqa: S608
        return [
            Query(table),
            Query(head, (_FORMAT, run, source)),
            *(Query(todo, (name,)) for name in tables),
        ]

    def advance(self, before: Range, done: Range) -> list[Query]:
        """Mark `done`, the first part of `before` or all of it; what is left of it is to do.

        The statements fail unless the ledger holds `before`.
        """
        claim = Query(
            f"UPDATE {self._name} SET upper = ?, count = ?, digest = ?"  # noqa: S608
            " WHERE tbl = ? AND lower = ? AND upper IS ? AND digest IS ?",
            (
                _bytes(done.upper),
                done.count,
                done.digest,
                before.table,
                _bytes(before.lower) or b"",
                _bytes(before.upper),
                before.digest,
            ),
        )
        guard = Query(f"INSERT INTO {self._name} (tbl) SELECT NULL WHERE changes() = 0")
        if done.upper == before.upper:
            return [claim, guard]
        rest = Query(
            f"INSERT INTO {self._name} (tbl, lower, upper, count) VALUES (?, ?, ?, 0)",  # noqa: S608
            (before.table, _bytes(done.upper), _bytes(before.upper)),
        )
        return [claim, guard, rest]

    def drop(self) -> Query:
        """Drop the ledger; fails when it is gone."""
        return Query(f"DROP TABLE {self._name}")


def _bytes(key: Row | None) -> bytes | None:
    return None if key is None else rows.encode(key)


def _key(data: bytes | None) -> Row | None:
    return rows.decode(data) if data else None
