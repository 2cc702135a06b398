"""A file as an end of a copy."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from harel_schema import introspect
from harel_schema.transfer.database import Insert, no_room
from harel_schema.transfer.layout import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harel_schema import dbapi
    from harel_schema.errors import OperationalError
    from harel_schema.introspect import Schema
    from harel_schema.target import Target
    from harel_schema.transfer.database import Cells, Run, Work
    from harel_schema.transfer.layout import Scan

__all__ = ["LocalDatabase"]

_T = TypeVar("_T")


class LocalDatabase:
    """A file, by one connection."""

    remote = False
    round_trip = 0.0

    def __init__(self, target: Target, connection: dbapi.Connection) -> None:
        self.target = target
        self._connection = connection

    def schema(self, prefix: str | None) -> Schema:
        """See `Database`."""
        return introspect.read(self._connection, prefix=prefix)

    def query(self, query: Query) -> list[Cells]:
        """See `Database`."""
        return self._connection.execute(*query).fetchall()

    def survey(self, queries: Sequence[Query]) -> list[list[Cells]]:
        """See `Database`."""
        return list(map(self.query, queries))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See `Database`."""
        self._connection.begin("DEFERRED")
        try:
            # A deferred transaction has no snapshot before its first read.
            self.query(Query("SELECT count(*) FROM sqlite_schema"))
            yield
        finally:
            self._connection.rollback()

    def stream(self, queries: Sequence[Query]) -> Iterator[tuple[int, Cells]]:
        """See `Database`; the snapshot is that of the transaction that is open."""
        for position, query in enumerate(queries):
            for row in self._connection.execute(*query):
                yield position, row

    def scan(self, scans: Sequence[Scan]) -> Iterator[Run]:
        """See `Database`; the snapshot is that of the transaction that is open."""
        for position, scan in enumerate(scans):
            for run in self._connection.execute(*scan.query()).runs():
                yield position, run

    def prepare(self, insert: Insert) -> Work:
        """See `Database`."""
        return insert

    def transact(self, work: Sequence[Work], applied: Callable[[], bool]) -> None:
        """See `Database`. A file's answer is never lost, so `applied` is not asked."""
        del applied
        self._connection.begin("IMMEDIATE")
        try:
            for item in work:
                if isinstance(item, Insert):
                    for query in item.statements():
                        self._connection.execute(*query)
                elif isinstance(item, Query):
                    self._connection.execute(*item)
            self._connection.commit()
        except BaseException as exc:
            self._connection.rollback()
            if full := no_room(exc):
                raise full from exc
            raise

    def patiently(self, action: Callable[[], _T]) -> _T:
        """See `Database`; the connection has waited for its locks."""
        return action()

    def may_pass(self, error: OperationalError) -> bool:
        """See `Database`."""
        del error
        return False

    def close(self) -> None:
        """See `Database`."""
        self._connection.close()
