"""Giving up a move that is not finished, and reopening a database that was moved."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.drift.unfinished import fence_address
from harel_schema.errors import DatabaseError, TransferError
from harel_schema.move.destination import Destination, standing
from harel_schema.move.model import AbortReport, UnfenceReport
from harel_schema.move.source import Source
from harel_schema.names import DEFAULT_PREFIX, check_prefix
from harel_schema.target import Target
from harel_schema.transfer import state
from harel_schema.transfer.access import open_database

if TYPE_CHECKING:
    import os

    from harel_schema.transfer.access import Database

__all__ = ["abort", "unfence"]


def abort(
    source: Target | str | os.PathLike[str],
    dest: Target | str | os.PathLike[str],
    *,
    prefix: str = DEFAULT_PREFIX,
    timeout: float = PATIENCE,
) -> AbortReport:
    """Give up the unfinished move of `source` to `dest`, and take every trace of it off `source`.

    What `dest` holds stays, and cannot be opened: the next move goes on with it. `timeout` is how
    many seconds to wait for a lock, or for a silent server. Raises
    `TransferError` when the move is finished, or is one to another destination.
    """
    check_prefix(prefix)
    ends = Target.parse(source), Target.parse(dest)
    ends[0].check_readable()
    name = state.identity(ends[1])
    with closing(Source(ends[0], prefix, timeout)) as opened:
        peer, moved_to = opened.peer(), fence_address(opened.schema(), prefix)
        elsewhere = next((each for each in (peer, moved_to) if each not in (None, name)), None)
        if elsewhere is not None:
            raise TransferError(f"{ends[0]} is moved to {elsewhere}", remedy="name that database")
        if moved_to is not None:
            with open_database(ends[1], read_only=False, timeout=timeout) as database:
                _take_back(database, state.identity(ends[0]), prefix)
            opened.unfence()
        elif peer is not None:
            opened.clear()
    unfenced = moved_to is not None
    return AbortReport(str(ends[0]), str(ends[1]), unfenced or peer is not None, unfenced)


def _take_back(database: Database, source: str, prefix: str) -> None:
    """See that nobody opens the destination of a move whose source is about to be reopened."""
    there = standing(database, database.schema(prefix), prefix)
    refusal = TransferError(
        f"the move to {database.target} is finished, and it may have been written to",
        remedy=f"move it back: harel-schema move {database.target} {source}",
    )
    if there.role != "dest" or there.peer != source or there.run is None:
        raise refusal
    # Claimed as the run that was killed, so that the two cannot both have their way.
    dest = Destination(database, prefix, there.run)
    dest.state = "catching up"
    dest.refresh()
    try:
        dest.transact(())
    except (DatabaseError, TransferError):
        raise refusal from None


def unfence(
    target: Target | str | os.PathLike[str],
    *,
    prefix: str = DEFAULT_PREFIX,
    timeout: float = PATIENCE,
) -> UnfenceReport:
    """Let writers into a database again that was moved.

    What was written to its destination since is not in it. Raises `TransferError` for the
    destination of a move that is not finished.
    """
    check_prefix(prefix)
    where = Target.parse(target)
    where.check_readable()
    with closing(Source(where, prefix, timeout)) as opened:
        opened.peer()
        moved_to = fence_address(opened.schema(), prefix)
        if moved_to is not None:
            opened.unfence()
    return UnfenceReport(str(where), moved_to)
