"""The source of a move: its change log, its write lock, its fence."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from harel_schema import dbapi, introspect
from harel_schema.drift.ours import without_move
from harel_schema.drift.unfinished import fence_address
from harel_schema.errors import BusyError, ConnectionLost, Error, ProgrammingError, TransferError
from harel_schema.introspect import fold, quote
from harel_schema.move.statements import (
    ChangeLog,
    Mark,
    drop_triggers,
    fence,
    made_by_move,
)
from harel_schema.names import change_log, move_table, version_table
from harel_schema.transfer.layout import Query
from harel_schema.transfer.plan import own_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harel_schema.introspect import Schema
    from harel_schema.rows import Row
    from harel_schema.target import Target
    from harel_schema.transfer.layout import Layout

__all__ = ["Source"]

_TRIMMED = 5_000


class Source:
    """The source, by a connection that writes; `prefix` begins its tables' names.

    `timeout` is how many seconds to wait for a lock, or for a silent server.
    """

    def __init__(self, target: Target, prefix: str, timeout: float) -> None:
        self.target = target
        self._prefix = prefix
        self._timeout = timeout
        self._mark = Mark(prefix)
        self._open()

    def _open(self) -> None:
        self._connection = dbapi.connect(
            self.target,
            isolation_level=None,
            timeout=self._timeout,
            request_timeout=self._timeout,
        )
        if self.target.path is not None:
            # A fence that a power cut takes back would leave two open databases. The log of a
            # large file is written back when the writers are not waiting.
            for pragma in ("synchronous = FULL", "wal_autocheckpoint = 0"):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()

    def close(self) -> None:
        """Let go of the database; a transaction is rolled back."""
        self._connection.close()

    def schema(self) -> Schema:
        """Read the schema, and the rows of the version table."""
        return introspect.read(self._connection, prefix=self._prefix)

    def let_writers_go_on(self) -> str | None:
        """See that a long read does not stop the writers of a file; return the journal's old mode.

        None when nothing had to be changed. Raises `TransferError` when it cannot be.
        """
        if self.target.path is None:
            return None
        ((mode,),) = self._connection.execute("PRAGMA journal_mode").fetchall()
        if mode == "wal":
            return None
        with contextlib.suppress(BusyError):
            ((now,),) = self._connection.execute("PRAGMA journal_mode = WAL").fetchall()
            if now == "wal":
                return str(mode)
        raise TransferError(
            f"{self.target} has journal_mode={mode}, in which its writers would have to wait for "
            "the whole copy, and it is too busy to change that",
            remedy="run PRAGMA journal_mode=WAL on it while no writer runs",
        )

    def write_back(self) -> None:
        """Bring what the write-ahead log holds into the file, as far as readers allow."""
        if self.target.path is not None:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.begin("IMMEDIATE")
        try:
            yield
            self._connection.commit()
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """End the transaction; what led here says more than an error of the rollback."""
        with contextlib.suppress(Error):
            self._connection.rollback()

    def _run(self, work: Iterable[Query]) -> None:
        for query in work:
            self._connection.execute(*query)

    def _script(self, work: Iterable[Query]) -> None:
        """Run statements without parameters; on a server they are few requests."""
        self._connection.executescript(";\n".join(query.sql for query in work))

    def _rows(self, query: Query) -> list[Any]:
        return self._connection.execute(*query).fetchall()

    def peer(self) -> str | None:
        """Return where the source is being moved to; None when no move runs.

        Raises `TransferError` for the destination of a move, and for a mark that no move made.
        """
        if self.schema().table(self._mark.table) is None:
            return None
        role, peer, *_ = self._mark.understood(self._rows(self._mark.read()), self.target)
        if role != "source":
            raise TransferError(
                f"{self.target} holds an unfinished move from {peer}",
                remedy=f"finish it: harel-schema move {peer} {self.target}",
            )
        return peer

    def install(self, log: ChangeLog, peer: str, run: bytes, seen: Schema) -> None:
        """Begin to note changes, in a new log; `seen` is the schema that was looked at.

        Raises `TransferError` when the schema has changed since, or another move runs.
        """
        begun = self.peer()
        if begun not in (None, peer):
            raise TransferError(
                f"{self.target} is being moved to {begun}",
                remedy=f"finish that, or give it up: "
                f"harel-schema move {self.target} {begun} --abort",
            )
        with self._transaction():
            found = self.schema()
            if without_move(found, self._prefix) != without_move(seen, self._prefix):
                raise self._changed()
            if fence_address(found, self._prefix) is not None:
                raise self._changed()
            self._script([*self._removal(found), *log.create()])
            self._run(self._mark.create("source", peer, run, "open"))
            self._names = self._watched(log.layouts)
            self._footprint = self._read_footprint()

    def _changed(self) -> TransferError:
        return TransferError(
            f"{self.target} got other tables or another revision meanwhile",
            remedy="run the same command again",
        )

    def _removal(self, found: Schema) -> list[Query]:
        work = drop_triggers(made_by_move(found, self._prefix, fences=False))
        work.append(Query(f"DROP TABLE IF EXISTS {quote(change_log(self._prefix))}"))
        return [*work, self._mark.drop()]

    def _watched(self, layouts: Sequence[Layout]) -> set[str]:
        names = [*own_names(self._prefix), *(layout.name for layout in layouts)]
        names += [version_table(self._prefix), move_table(self._prefix), change_log(self._prefix)]
        return set(map(fold, names))

    def _read_footprint(self) -> list[Any]:
        """Read in one query what must not change until the fence is there."""
        version, mark = quote(version_table(self._prefix)), quote(self._mark.table)
        rows = self._rows(
            Query(
                "SELECT type, name, tbl_name, sql FROM sqlite_schema"  # noqa: S608
                f" UNION ALL SELECT 'version', version_num, NULL, NULL FROM {version}"
                f" UNION ALL SELECT 'run', hex(run), NULL, NULL FROM {mark}"
            )
        )
        return sorted(
            (row for row in rows if row[2] is None or fold(row[2]) in self._names), key=repr
        )

    def pending(self, log: ChangeLog, most: int) -> tuple[int, int]:
        """Return the number of the oldest entries, `most` at most, and their last `seq`."""
        ((count, upper),) = self._rows(log.pending(most))
        return count, upper or 0

    def backlog(self, log: ChangeLog) -> int:
        """Return about how many entries the log holds."""
        ((count,),) = self._rows(log.backlog())
        return int(count)

    def note(self, log: ChangeLog, layout: Layout, keys: Sequence[Row]) -> None:
        """Enter rows into the log as if they had changed."""
        with self._transaction():
            rows = [(layout.name, *key) for key in keys]
            self._connection.executemany(log.note(layout), rows)

    def trim(self, log: ChangeLog, upper: int, run: bytes) -> None:
        """Drop the entries up to `upper`, which were carried over."""
        with self._transaction():
            self._run([log.trim(upper, run)])

    def lock(self) -> None:
        """Take the write lock, and see that all is as `install` left it.

        The transaction is open afterwards. Raises `TransferError` when something has changed, and
        what a connection raises when the lock is not to be had.
        """
        self._connection.begin("IMMEDIATE")
        try:
            unchanged = self._read_footprint() == self._footprint
        except ProgrammingError:
            # Without its tables this move has been given up, or is done.
            unchanged = False
        if not unchanged:
            raise TransferError(
                f"{self.target} got other tables or another revision, or another run took the "
                "move over",
                remedy="run the same command again",
            )

    def read(self, query: Query) -> list[Any]:
        """Return the rows of a query, in the transaction that `lock` has opened."""
        return self._rows(query)

    def fence(self, tables: Sequence[str], address: str, names: Sequence[str]) -> None:
        """Stop every writer and take the log away, and commit.

        `names` are those of the log's triggers. When the answer to the COMMIT is lost, the
        database is asked. Raises `ConnectionLost` when that fails too: then the fence may be there.
        """
        work = [*fence(self._prefix, tables, address), *drop_triggers(names)]
        work += [Query(f"DROP TABLE {quote(change_log(self._prefix))}"), self._mark.drop()]
        self._script(work)
        try:
            self._connection.commit()
        except ConnectionLost:
            if self.is_fenced() != address:
                raise

    def is_fenced(self) -> str | None:
        """Return where the source was moved to, after all that is under way has ended."""
        with contextlib.suppress(Error):
            self._connection.close()
        self._open()
        # Whoever gets the lock comes after a COMMIT that is still on its way.
        with self._transaction():
            return fence_address(self.schema(), self._prefix)

    def clear(self) -> None:
        """Take the change log and the mark away."""
        with self._transaction():
            self._script(self._removal(self.schema()))

    def unfence(self) -> int:
        """Take the fence away; return the number of its triggers."""
        with self._transaction():
            names = made_by_move(self.schema(), self._prefix, fences=True)
            if names:
                self._script(drop_triggers(names))
        return len(names)
