"""The rows that a destination lacks, into it; what it has stays."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from harel_schema.errors import TransferError
from harel_schema.transfer.comparing import compare_tables
from harel_schema.transfer.copying import Batch, Counts
from harel_schema.transfer.database import Insert
from harel_schema.transfer.layout import SEQUENCES, Query

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.rows import Row
    from harel_schema.transfer.comparing import Pair
    from harel_schema.transfer.database import Database, Work
    from harel_schema.transfer.layout import Layout
    from harel_schema.transfer.model import Limits
    from harel_schema.transfer.progress import Meter
    from harel_schema.transfer.reading import TableReader

__all__ = ["check_collisions", "insert_missing", "raise_sequences"]

_NAMED = 3


def check_collisions(
    source: Database, dest: Database, tables: Sequence[Layout], meter: Meter
) -> dict[str, int]:
    """Return how many rows of each table the destination lacks.

    Raises `TransferError` when a key has other rows in the two.
    """
    lacking: dict[str, int] = {}
    for table, _, _, pairs in compare_tables(source, dest, tables, meter):
        collisions: list[str] = []
        lacking[table.name] = 0
        for pair in pairs:
            if pair.kind == "missing":
                lacking[table.name] += 1
            elif pair.kind == "changed" and table.name != SEQUENCES:
                collisions.append(_place(table, pair))
                if len(collisions) == _NAMED:
                    break
        if collisions:
            raise TransferError(
                f"{dest.target} has other rows under the same key: {'; '.join(collisions)}",
                remedy="delete them on one side, or use --replace",
            )
    return lacking


def _place(table: Layout, pair: Pair) -> str:
    return f"{table.name} {table.describe(table.key_of(pair.a or pair.b or ()))}"


def insert_missing(
    reader: TableReader, dest: Database, lacking: dict[str, int], limits: Limits, meter: Meter
) -> tuple[dict[str, Counts], list[Row]]:
    """Insert the rows that the destination lacks; return the counts, and the sequence rows.

    A row that came into the destination meanwhile stays as it is.
    """
    counts: dict[str, Counts] = {}
    sequence_rows: list[Row] = []
    for table, found in reader.tables():
        if table.name == SEQUENCES:
            sequence_rows = list(found)
            meter.add(table.name, len(sequence_rows), 0)
            continue
        count = counts[table.name] = Counts(written=lacking[table.name])
        while (batch := _next_batch(found, limits)).rows:
            if count.written:
                work = [Insert(table, batch.rows, keep_existing=True)]
                dest.transact(work, lambda: False)
            count.rows += len(batch.rows)
            count.bytes += batch.size
            meter.add(table.name, len(batch.rows), batch.size)
    return counts, sequence_rows


def _next_batch(found: Iterator[Row], limits: Limits) -> Batch:
    batch = Batch()
    while not batch.full(limits) and (more := list(islice(found, 1))):
        batch.add(more[0])
    return batch


def raise_sequences(sequence_rows: Sequence[Row]) -> list[Work]:
    """Raise the sequences to those of the source where they are behind."""
    work: list[Work] = []
    for name, seq in sequence_rows:
        update = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?"
        insert = (
            "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ?"
            " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)"
        )
        work += [Query(update, (seq, name)), Query(insert, (name, seq, name))]
    return work
