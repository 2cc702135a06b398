"""Are two databases the same? Schema, rows and sequences; each difference by name."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from harel_schema import drift, rows
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.drift.ours import ledger_name, without_move
from harel_schema.errors import TransferError
from harel_schema.names import DEFAULT_PREFIX, check_prefix, version_table
from harel_schema.target import Target
from harel_schema.transfer.access import open_database
from harel_schema.transfer.comparing import compare_tables
from harel_schema.transfer.fulltext import as_tables, full_text
from harel_schema.transfer.layout import SEQUENCES, layout
from harel_schema.transfer.plan import all_names, own_names, part
from harel_schema.transfer.preflight import layouts
from harel_schema.transfer.progress import Meter

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from harel_schema.drift import Difference
    from harel_schema.introspect import Schema, Table
    from harel_schema.rows import Row, StorageClass, Value
    from harel_schema.transfer.access import Database
    from harel_schema.transfer.comparing import Kind, Pair
    from harel_schema.transfer.layout import Layout
    from harel_schema.transfer.model import OnProgress

__all__ = ["BLIND_SPOT", "Cell", "RowDifference", "TableVerify", "VerifyReport", "verify"]

BLIND_SPOT = (
    "quick: counts, least and greatest keys, bytes and storage classes of each column; "
    "a change that keeps all of these is not seen"
)
"""What `quick` looks at, and what it cannot see."""

_EXCERPT = 40


@dataclass(frozen=True, slots=True)
class Cell:
    """A column in which two rows of one key differ: each side's storage class and value."""

    column: str
    class_a: StorageClass
    a: Value
    class_b: StorageClass
    b: Value

    @property
    def excerpts(self) -> tuple[str, str]:
        """Both values as Python writes them, cut to what is around the first difference."""
        return _excerpts(repr(self.a), repr(self.b))

    def __str__(self) -> str:
        """Both sides, cut to what is around the first difference."""
        text_a, text_b = self.excerpts
        return f"{self.column}: {self.class_a} {text_a} != {self.class_b} {text_b}"


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs: ``changed``, ``missing`` from the second database, or ``extra`` in it.

    `key` names the row: columns and values. `cells` are the differing ones of a changed row.
    """

    table: str
    kind: Kind
    key: tuple[tuple[str, Value], ...]
    cells: tuple[Cell, ...] = ()

    def __str__(self) -> str:
        """One line."""
        key = ", ".join(f"{column}={value!r}" for column, value in self.key)
        cells = f": {'; '.join(map(str, self.cells))}" if self.cells else ""
        return f"{self.kind} {self.table} {key}{cells}"


@dataclass(frozen=True, slots=True)
class TableVerify:
    """A table of both databases: its rows, how many differ, and the digests of its rows.

    Equal digests mean equal rows, also across reports of the same version. In a quick report
    they are None, and `aggregates` names the sums that differ.
    """

    name: str
    rows_a: int
    rows_b: int
    changed: int = 0
    missing: int = 0
    extra: int = 0
    digest_a: str | None = None
    digest_b: str | None = None
    aggregates: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether no difference was found."""
        return not (self.changed or self.missing or self.extra or self.aggregates)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What differs between database `a` and database `b`. Falsy when nothing does, as a `Drift`.

    `rows` holds the first differing rows of each table, as many as were asked for; `tables` counts
    all of them. Tables that only one side has, or that have other columns, are in `schema` only.
    The table ``sqlite_sequence`` stands for the counters of AUTOINCREMENT. `quick` reports see
    less: `BLIND_SPOT`. `seconds` is the wall time.
    """

    a: str
    b: str
    quick: bool
    schema: tuple[Difference, ...]
    tables: tuple[TableVerify, ...]
    rows: tuple[RowDifference, ...]
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether no difference was found."""
        return not self.schema and all(table.equal for table in self.tables)

    @property
    def compared(self) -> int:
        """How many rows of `a` were compared, the counters of AUTOINCREMENT left out."""
        return sum(table.rows_a for table in self.tables if table.name != SEQUENCES)

    @property
    def blind_spot(self) -> str | None:
        """What a quick comparison cannot have seen; None for a whole one."""
        return BLIND_SPOT if self.quick else None

    def __bool__(self) -> bool:
        return not self.equal


def verify(  # noqa: PLR0913 - keyword-only options of one verb
    a: Target | str | os.PathLike[str],
    b: Target | str | os.PathLike[str],
    *,
    prefix: str = DEFAULT_PREFIX,
    show: int = 10,
    quick: bool = False,
    all_tables: bool = False,
    timeout: float = PATIENCE,
    progress: OnProgress | None = None,
) -> VerifyReport:
    """Compare harel's tables of two databases, or with `all_tables` everything in them.

    Every cell is compared by storage class and bytes; `show` is the number of differing rows of
    a table to report, of either kind. `quick` compares sums, one request a table. Both are opened
    read-only and nothing is created. `timeout` is how many seconds to wait for a lock, or for a
    silent server. Raises `TargetError` and `NotADatabaseError` for what is no
    database, `TransferError` when neither holds such tables, and the errors of
    `harel_schema.dbapi`.
    """
    started = time.monotonic()
    check_prefix(prefix)
    targets = Target.parse(a), Target.parse(b)
    for target in targets:
        target.check_readable()
    meter = Meter(progress)
    with ExitStack() as stack:
        databases = [
            stack.enter_context(open_database(target, read_only=True, timeout=timeout))
            for target in targets
        ]
        for database in databases:
            stack.enter_context(database.snapshot())
        schemas = [database.schema(prefix) for database in databases]
        if all_tables:
            pairs = zip(databases, schemas, strict=True)
            schemas = [as_tables(schema, full_text(db, schema)) for db, schema in pairs]
        names = own_names(prefix) if not all_tables else _all_names(schemas, prefix)
        if not any(schema.table(name) for schema in schemas for name in names):
            raise TransferError(
                f"neither {targets[0]} nor {targets[1]} holds tables of the prefix {prefix!r}",
                remedy="check --prefix",
            )
        differences = _schema_differences(schemas, names, prefix, views=all_tables)
        tables = layouts(_comparable(schemas, names), *databases)
        meter.start("compare")
        compared = _quick(databases, tables) if quick else _full(databases, tables, show, meter)
    return VerifyReport(
        a=str(targets[0]),
        b=str(targets[1]),
        quick=quick,
        schema=tuple(differences),
        tables=tuple(table for table, _ in compared),
        rows=tuple(chain.from_iterable(found for _, found in compared)),
        seconds=time.monotonic() - started,
    )


def _all_names(schemas: Sequence[Schema], prefix: str) -> list[str]:
    return list(dict.fromkeys(name for schema in schemas for name in all_names(schema, prefix)))


def _schema_differences(
    schemas: Sequence[Schema], names: Sequence[str], prefix: str, *, views: bool
) -> Iterator[Difference]:
    versions = [sorted(map(str, schema.versions or ())) for schema in schemas]
    if versions[0] != versions[1]:
        want, got = (", ".join(each) or None for each in versions)
        yield drift.Difference(
            kind=drift.Kind.VERSION_DIFFERENT,
            name=version_table(prefix),
            expected=want,
            found=got,
        )
    names = [*names, ledger_name(prefix)]
    view_names = [view.name for schema in schemas for view in schema.views] if views else []
    if views:
        names += [table.name for schema in schemas for table in schema.virtual_tables]
    # The fence of a database that was moved is no difference: it says where the other one is.
    bare = (without_move(schema, prefix) for schema in schemas)
    want_schema, got_schema = (part(schema, names, view_names) for schema in bare)
    yield from drift.schema_differences(want_schema, got_schema)


def _comparable(schemas: Sequence[Schema], names: Sequence[str]) -> list[Table]:
    """Return the tables that both have with the same columns and key."""
    found = []
    for name in names:
        a, b = (schema.table(name) for schema in schemas)
        if a is not None and b is not None and layout(a) == layout(b):
            found.append(a)
    return found


_Compared = list[tuple[TableVerify, list["RowDifference"]]]


def _full(
    databases: Sequence[Database], tables: Sequence[Layout], show: int, meter: Meter
) -> _Compared:
    compared: _Compared = []
    a, b = databases
    for table, side_a, side_b, pairs in compare_tables(a, b, tables, meter):
        counts: Counter[Kind] = Counter()
        shown: list[RowDifference] = []
        for pair in pairs:
            counts[pair.kind] += 1
            if len(shown) < show:
                shown.append(_row_difference(table, pair))
        result = TableVerify(
            name=table.name,
            rows_a=side_a.rows,
            rows_b=side_b.rows,
            changed=counts["changed"],
            missing=counts["missing"],
            extra=counts["extra"],
            digest_a=side_a.hexdigest(),
            digest_b=side_b.hexdigest(),
        )
        compared.append((result, shown))
    return compared


def _quick(databases: Sequence[Database], tables: Sequence[Layout]) -> _Compared:
    compared: _Compared = []
    for table in tables:
        query, names = table.aggregates()
        (a,), (b,) = (database.query(query) for database in databases)
        cells = zip(names, a, b, strict=True)
        differing = tuple(name for name, x, y in cells if rows.encode((x,)) != rows.encode((y,)))
        compared.append((TableVerify(table.name, a[0], b[0], aggregates=differing), []))
    return compared


def _row_difference(table: Layout, pair: Pair) -> RowDifference:
    row: Row = pair.a or pair.b or ()
    names = [table.columns[position] for position in table.key]
    key = tuple(zip(names, table.key_of(row), strict=True))
    return RowDifference(table.name, pair.kind, key, tuple(_cells(table, pair)))


def _cells(table: Layout, pair: Pair) -> Iterator[Cell]:
    if pair.a is None or pair.b is None:
        return
    for column, a, b in zip(table.columns, pair.a, pair.b, strict=True):
        if rows.encode((a,)) != rows.encode((b,)):
            yield Cell(column, rows.storage_class(a), a, rows.storage_class(b), b)


def _excerpts(a: str, b: str) -> tuple[str, str]:
    """Return both texts, cut to what is around their first difference."""
    pairs = enumerate(zip(a, b, strict=False))
    common = next((at for at, (x, y) in pairs if x != y), min(len(a), len(b)))
    start = max(0, common - _EXCERPT // 2)
    return _excerpt(a, start), _excerpt(b, start)


def _excerpt(text: str, start: int) -> str:
    end = start + _EXCERPT
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
