"""How far a move has come, as its two ends say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from harel_schema.move.destination import Standing, standing
from harel_schema.transfer import state
from harel_schema.transfer.access import open_database

if TYPE_CHECKING:
    from harel_schema.target import Target

__all__ = ["Stage", "stage"]

Stage: TypeAlias = Literal["not begun", "begun", "fenced", "moved"]
"""``fenced``: the source takes no more writes, and the destination is not open yet."""


def stage(source: Target, dest: Target, *, prefix: str, timeout: float) -> Stage:
    """Return how far the move of `source` to `dest` is; changes nothing.

    `timeout` is how many seconds to wait for a silent server. Raises what a connection raises.
    """
    at_source = _look(source, prefix, timeout)
    if state.identity(dest) not in (at_source.peer, at_source.moved_to):
        return "not begun"
    if at_source.moved_to is None:
        return "begun"
    return "moved" if _look(dest, prefix, timeout).role is None else "fenced"


def _look(target: Target, prefix: str, timeout: float) -> Standing:
    with open_database(target, read_only=True, timeout=timeout) as database:
        return standing(database, database.schema(prefix), prefix)
