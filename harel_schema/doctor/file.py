"""What is asked of a database as a whole: damage, foreign keys, counters, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from harel_schema.doctor.kinds import Kind
from harel_schema.doctor.model import NAMED, Finding
from harel_schema.errors import DatabaseError
from harel_schema.introspect import quote
from harel_schema.transfer import preflight
from harel_schema.transfer.layout import SEQUENCES, Query

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harel_schema.introspect import Schema, Table
    from harel_schema.transfer.access import Cells, Database

__all__ = ["Whole", "look"]

_SIZES: Final = (
    "SELECT page_count * page_size, freelist_count * page_size"
    " FROM pragma_page_count, pragma_page_size, pragma_freelist_count"
)


@dataclass(frozen=True, slots=True)
class Whole:
    """What was found, whether the rows can be read, and the database's size in bytes.

    `rows` is the number of rows of each table, None where they were not counted.
    """

    findings: tuple[Finding, ...]
    readable: bool
    bytes: int
    free: int
    rows: tuple[int, ...] | None


def look(database: Database, schema: Schema, tables: Sequence[Table], *, count: bool) -> Whole:
    """Ask everything in one request. `count` also counts the rows of `tables`.

    Raises what the database raises, but for damage, which is a finding.
    """
    counted = [t for t in tables if t.autoincrement] if schema.table(SEQUENCES) else []
    foreign = any(table.foreign_keys for table in schema.tables)
    queries = ["PRAGMA integrity_check", _SIZES]
    queries += [preflight.FOREIGN_KEYS] if foreign else []
    queries += map(_counter, counted)
    queries += [f"SELECT count(*) FROM {quote(t.name)}" for t in tables] if count else []  # noqa: S608
    try:
        answers = iter(database.survey(list(map(Query, queries))))
        lines = [str(line) for (line,) in next(answers)]
        damage = preflight.damage(database, schema.tables, lines)
    except DatabaseError as exc:
        if exc.code != "SQLITE_CORRUPT":
            raise
        damage = [exc.message]
    if damage:
        return Whole((_damaged(damage),), False, 0, 0, None)
    ((size, free),) = next(answers)
    broken = [*(next(answers) if foreign else ())]
    sequences = (_behind(table, *next(answers)) for table in counted)
    findings = [*_foreign(broken), *chain.from_iterable(sequences)]
    rows = tuple(int(answer[0][0]) for answer in answers) if count else None
    return Whole(tuple(findings), True, size, free, rows)


def _damaged(lines: list[str]) -> Finding:
    return _finding(Kind.INTEGRITY, None, len(lines), [" ".join(line.split()) for line in lines])


def _foreign(broken: list[Cells]) -> Iterator[Finding]:
    """Yield a finding for each table; SQLite has grouped its rows by what they refer to."""
    for table in dict.fromkeys(name for name, *_ in broken):
        parents = [cells for cells in broken if cells[0] == table]
        places = [
            f"{'' if rowid is None else f'rowid {rowid} '}-> {parent}"
            for _, rowid, parent, _ in parents
        ]
        yield _finding(Kind.FOREIGN_KEY, table, sum(cells[-1] for cells in parents), places)


def _counter(table: Table) -> str:
    """Ask for the counter of a table, the greatest number, how many are over it, and which."""
    name, seq = quote(table.name), quote(table.rowid_alias or "rowid")
    where = f"name = '{table.name}'"
    counter = f"max(0, coalesce((SELECT seq FROM {SEQUENCES} WHERE {where}), 0) + 0)"  # noqa: S608
    over = f"{name} WHERE {seq} > {counter}"
    return (
        f"SELECT (SELECT count(*) FROM {SEQUENCES} WHERE {where}),"  # noqa: S608
        f" (SELECT count(*) FROM {over}),"
        f" (SELECT group_concat(n) FROM (SELECT {seq} AS n FROM {over} ORDER BY n LIMIT {NAMED}))"
    )


def _behind(table: Table, cells: Cells) -> Iterator[Finding]:
    there, count, numbers = cells
    if not count:
        return
    name, seq = quote(table.name), quote(table.rowid_alias or "rowid")
    greatest = f"(SELECT max({seq}) FROM {name})"  # noqa: S608
    remedy = (
        f"UPDATE {SEQUENCES} SET seq = {greatest} WHERE name = '{table.name}';"  # noqa: S608
        if there
        else f"INSERT INTO {SEQUENCES} (name, seq) VALUES ('{table.name}', {greatest});"  # noqa: S608
    )
    examples = [f"{seq}={number}" for number in numbers.split(",")]
    yield _finding(Kind.SEQUENCE_BEHIND, table.name, count, examples, remedy)


def _finding(
    kind: Kind, table: str | None, count: int, examples: list[str], remedy: str | None = None
) -> Finding:
    return Finding(
        kind=kind,
        severity=kind.severity,
        table=table,
        count=count,
        examples=tuple(examples[:NAMED]),
        detail=kind.summary,
        remedy=remedy or kind.remedy,
    )
