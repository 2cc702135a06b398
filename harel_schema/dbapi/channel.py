"""The stream that a remote session speaks through: opened late, and opened again when idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema import errors as e
from harel_schema.dbapi.reads import is_missing_table
from harel_schema.hrana import messages as m

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from harel_schema.dbapi.session import Row
    from harel_schema.dbapi.statements import Statement
    from harel_schema.hrana.client import Client, Stream

__all__ = ["OPEN", "Channel"]

OPEN = m.Not(m.IsAutocommit())
"""The condition that a transaction is still open."""

# Settings of a connection that the server lets us change; a new stream must get them again.
_SETTINGS = ("FOREIGN_KEYS", "RECURSIVE_TRIGGERS", "CASE_SENSITIVE_LIKE")


class Channel:
    """Batches on one Hrana stream of `client`.

    `fresh=True` says that no transaction is open. Then a stream that the server has dropped,
    which it does after 10 s of silence, is replaced without a word: nothing was lost with it
    but settings, and those are made again.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stream: Stream | None = None
        # As on a local file, foreign keys are off until they are turned on.
        self._settings = {"FOREIGN_KEYS": "PRAGMA foreign_keys=OFF"}

    def send(self, steps: Sequence[m.Step], *, fresh: bool) -> tuple[m.BatchResult | e.Error, bool]:
        """Run `steps` in one request; return their results and whether no transaction is open.

        Raises what kept the request from being answered.
        """
        try:
            return self._send(steps, fresh=fresh)
        except e.TransactionLost:
            if not fresh:
                raise
            # The server refused the request with the stream: nothing of it was run.
            self.drop()
            return self._send(steps, fresh=True)

    def _send(
        self, steps: Sequence[m.Step], *, fresh: bool
    ) -> tuple[m.BatchResult | e.Error, bool]:
        stream, setup = self._open(fresh=fresh)
        answer = stream.pipeline((*setup, m.RunBatch(m.Batch(steps)), m.GetAutocommit()))
        *first, result, autocommit = answer.results
        for each in (*first, autocommit):
            if isinstance(each, e.Error):
                raise each
        if not isinstance(result, m.BatchResult | e.Error) or not isinstance(autocommit, bool):
            raise e.InternalError("the server answered something else than it was asked")
        return result, autocommit

    def read(self, statements: Sequence[Statement]) -> list[list[Row] | None]:
        """Run reads on one snapshot, on a stream that lives for this one request.

        None for a statement whose table does not exist.
        """
        steps = [m.Step(m.Statement("BEGIN"))]
        steps += [m.Step(m.Statement(statement.body), OPEN) for statement in statements]
        batch = self._client.batch(m.Batch(tuple(steps)), idempotent=True)
        for error in filter(None, batch.errors):
            if not is_missing_table(error):
                raise error
        return [None if found is None else list(found.rows) for found in batch.results[1:]]

    def cursor(self, step: m.Step, *, fresh: bool) -> Generator[m.CursorEntry]:
        """Run one step and yield its entries as they arrive; the stream is taken until the end."""
        stream, setup = self._open(fresh=fresh)
        if setup:
            stream.pipeline(setup)
        return stream.cursor(m.Batch((step,)))

    def _open(self, *, fresh: bool) -> tuple[Stream, tuple[m.Request, ...]]:
        """Return the stream, and the requests that set it up if it is new."""
        if self._stream is not None and not (fresh and self._stream.expired):
            return self._stream, ()
        self._stream = self._client.stream()
        return self._stream, tuple(
            m.Execute(m.Statement(sql, want_rows=False)) for sql in self._settings.values()
        )

    def remember(self, name: str, sql: str) -> None:
        """Keep a PRAGMA that was set, for the streams to come."""
        if name in _SETTINGS:
            self._settings[name] = sql

    def drop(self) -> None:
        """Forget the stream; the server rolls back what is open on it when it expires."""
        self._stream = None

    def close(self) -> None:
        """Close the stream, which rolls back what is open on it; never raises."""
        if self._stream is not None:
            self._stream.close()
