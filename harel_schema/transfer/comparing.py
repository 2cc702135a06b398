"""Two databases side by side: which rows differ, by walking both in the order of the key."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias

from harel_schema import rows
from harel_schema.rows import DIGEST_SIZE
from harel_schema.transfer.progress import Tally
from harel_schema.transfer.reading import TableReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.rows import Row
    from harel_schema.transfer.database import Database
    from harel_schema.transfer.layout import Layout
    from harel_schema.transfer.progress import Meter

__all__ = ["Kind", "Pair", "Side", "compare", "compare_tables"]

Kind: TypeAlias = Literal["changed", "missing", "extra"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A difference: row `a` of the one database, row `b` of the other, under one key.

    ``changed`` when both are there, ``missing`` when the second lacks it, ``extra`` when the
    first does.
    """

    kind: Kind
    a: Row | None
    b: Row | None


class Side:
    """What was read of a table of one database: its rows, and their digest."""

    __slots__ = ("_hash", "tally")

    def __init__(self, table: str, meter: Meter | None) -> None:
        self.tally = Tally(table, meter)
        self._hash = blake2b(digest_size=DIGEST_SIZE)

    def add(self, encoded: bytes) -> None:
        """Count a row, given as its canonical bytes."""
        self.tally.add(len(encoded))
        self._hash.update(encoded)

    def begin_like(self, other: Side) -> None:
        """Take over what `other` has read."""
        self.tally.rows, self.tally.size = other.tally.rows, other.tally.size
        self._hash = other._hash.copy()

    @property
    def rows(self) -> int:
        """The rows that were read."""
        return self.tally.rows

    def hexdigest(self) -> str:
        """Return the digest of the rows in key order, as hexadecimal text."""
        return self._hash.hexdigest()


def compare(
    layout: Layout, rows_a: Iterator[Row], rows_b: Iterator[Row], side_a: Side, side_b: Side
) -> Iterator[Pair]:
    """Yield where the rows of a table differ. Both come in the order of the key.

    Every cell is compared by storage class and bytes. Flat memory: one row of each at a time.
    """
    a, b = _first_pair(rows_a, rows_b, side_a)
    side_b.begin_like(side_a)
    while a is not None or b is not None:
        order = _first(layout, a, b)
        encoded_a = encoded_b = b""
        if a is not None and order <= 0:
            encoded_a = rows.encode(a)
            side_a.add(encoded_a)
        if b is not None and order >= 0:
            encoded_b = rows.encode(b)
            side_b.add(encoded_b)
        if encoded_a != encoded_b:
            yield _pair(order, a, b)
        if order <= 0:
            a = next(rows_a, None)
        if order >= 0:
            b = next(rows_b, None)


def _first_pair(
    rows_a: Iterator[Row], rows_b: Iterator[Row], side: Side
) -> tuple[Row | None, Row | None]:
    """Return the first rows that differ; count the equal ones before them, once for both."""
    for a, b in zip_longest(rows_a, rows_b):
        if a is None or b is None or (encoded := rows.encode(a)) != rows.encode(b):
            return a, b
        side.add(encoded)
    return None, None


def compare_tables(
    a: Database, b: Database, tables: Sequence[Layout], meter: Meter
) -> Iterator[tuple[Layout, Side, Side, Iterator[Pair]]]:
    """Yield each table with what was read of both sides, and its differences.

    The sides are complete when the differences were read to their end.
    """
    with (
        closing(TableReader(a, tables).tables()) as tables_a,
        closing(TableReader(b, tables).tables()) as tables_b,
    ):
        for (table, rows_a), (_, rows_b) in zip(tables_a, tables_b, strict=True):
            side_a, side_b = Side(table.name, meter), Side(table.name, None)
            yield table, side_a, side_b, compare(table, rows_a, rows_b, side_a, side_b)
            side_a.tally.tell()


def _first(layout: Layout, a: Row | None, b: Row | None) -> int:
    """Return -1 when row `a` comes first, 1 when `b` does, 0 when they have the same key."""
    if a is None or b is None:
        return 1 if a is None else -1
    key_a, key_b = layout.key_of(a), layout.key_of(b)
    if key_a == key_b:
        return 0
    order_a, order_b = layout.order(key_a), layout.order(key_b)
    return (order_a > order_b) - (order_a < order_b)


def _pair(order: int, a: Row | None, b: Row | None) -> Pair:
    if order < 0:
        return Pair("missing", a, None)
    if order > 0:
        return Pair("extra", None, b)
    return Pair("changed", a, b)
