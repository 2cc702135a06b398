"""Rows that do not fit: storage classes, NULL keys, JSON that disagrees with its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harel_schema.drift import scan
from harel_schema.drift.model import Difference
from harel_schema.drift.probes import probes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harel_schema.drift.probes import Probe
    from harel_schema.introspect import Schema, Table

__all__ = ["data_differences", "difference"]


def data_differences(
    reader: scan.Reader, found: Schema, expected: Schema, prefix: str
) -> Iterator[Difference]:
    """Yield what is wrong with the rows of the tables that both schemas have, counted.

    Raises what the reader raises.
    """
    tables = ((found.table(table.name), table) for table in expected.tables)
    scans = [
        scan.Scan(live, asked)
        for live, table in tables
        if live is not None and (asked := probes(live, table, prefix))
    ]
    scan.read(reader, scans)
    for each in scans:
        for faulty in each.faulty():
            yield difference(each.table, faulty)


def difference(table: Table, faulty: scan.Faulty[Probe]) -> Difference:
    """Return what is wrong with rows of a live table, as a difference."""
    probe = faulty.question
    return Difference(
        kind=probe.kind,
        name=probe.column,
        table=table.name,
        expected=probe.expected,
        found=probe.found or _listed(sorted(faulty.whats)),
        fix=probe.fix_for(set(faulty.whats)),
        rows=faulty.rows,
        examples=faulty.examples,
    )


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
