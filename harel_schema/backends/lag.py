"""How far a replica server must have come to answer a read.

A sqld that follows a primary passes commits on to it and reads its own file, which lags. So a read
names the replication index of the store's last commit, and waits there until the file has it.
A server that is no replica ignores it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.hrana import protocol as hrana

if TYPE_CHECKING:
    from harel_schema.commit.unit import Statement

__all__ = ["Lag"]


class Lag:
    """What the answers of a server told of its replication index.

    A primary that was killed begins its count anew, lower than before, and the higher count of a
    replica that has not noticed yet then says nothing. Until the count is past the highest one
    seen, `unknown` is true: the primary itself must be asked.
    """

    def __init__(self) -> None:
        self.unknown = False
        self._index: int | None = None
        self._highest = 0

    def query(self, statement: Statement) -> hrana.Statement:
        """Return a read that waits for the last commit."""
        sql, args = statement
        return hrana.Statement(sql, args, replication_index=self._index)

    def committed(self, index: int | None) -> None:
        """Note the index after a commit, None if its answer had none."""
        if index is not None:
            self._index = index
            self.unknown = index < self._highest
            self._highest = max(self._highest, index)

    def answers(self, query: hrana.Statement, result: hrana.StatementResult) -> bool:
        """Whether the result is as new as the query asked for.

        A replica server that begins anew, after its primary did, lets the reads go that wait.
        """
        found, wanted = result.replication_index, query.replication_index
        self._highest = max(self._highest, found or 0)
        return found is None or wanted is None or found >= wanted
