"""Rows that do not fit: storage classes, NULL keys, JSON that disagrees with its columns.

SQLite counts, and hands over a line for each combination of faults of a table with the first
five rows that have it: one pass, and as much memory for ten rows as for ten million. A large
table is read in runs of rows, so that no request takes long.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from harel_schema.drift.model import Difference
from harel_schema.drift.probes import Probe, probes
from harel_schema.introspect import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from harel_schema.introspect import Schema, Table

__all__ = ["data_differences"]

_NAMED: Final = 5
_FIRST_RUN: Final = 20_000
_SHORT: Final = 1.0
_LONG: Final = 5.0
_MOST: Final = 5_000_000
_SHOWN: Final = 60
_ROWID: Final = ("rowid", "_rowid_", "oid")


class _Connection(Protocol):
    def execute_reads(self, statements: Sequence[str], /) -> list[list[Any] | None]: ...


def data_differences(
    connection: _Connection, found: Schema, expected: Schema, prefix: str
) -> Iterator[Difference]:
    """Yield what is wrong with the rows of the tables that both schemas have, counted.

    A small database on a server is read in one request, a large one in a request for each few
    seconds of reading. Raises what the connection raises.
    """
    scans = [scan for table in expected.tables if (scan := _scan(found, table, prefix))]
    run = _FIRST_RUN
    # The first request has the beginning of every table, each later one has one run of rows.
    waiting = [scans]
    while waiting:
        batch = waiting.pop()
        began = time.monotonic()
        statements = [sql for scan in batch for sql in scan.statements(run)]
        results = iter(connection.execute_reads(statements))
        unfinished = [scan for scan in batch if scan.take(results)]
        waiting += [[scan] for scan in reversed(unfinished)]
        run = _next_run(run, time.monotonic() - began)
    for scan in scans:
        yield from scan.differences()


def _scan(found: Schema, expected: Table, prefix: str) -> _Scan | None:
    live = found.table(expected.name)
    if live is None:
        return None
    wanted = probes(live, expected, prefix)
    return _Scan(live, wanted) if wanted else None


def _next_run(rows: int, seconds: float) -> int:
    if seconds < _SHORT:
        return min(rows * 4, _MOST)
    return max(rows // 2, 1) if seconds > _LONG else rows


@dataclass(slots=True)
class _Scan:
    """One table on its way: what was found so far, and behind which row to go on."""

    table: Table
    probes: tuple[Probe, ...]
    after: int | None = None
    rowid: str = field(init=False)
    counts: Counter[tuple[int, str]] = field(default_factory=Counter)
    places: dict[int, list[tuple[int, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rowid = next(name for name in _ROWID if name not in self.table.by_name)

    def statements(self, run: int) -> list[str]:
        """Return the statement for the next `run` rows, and the one that says where they end."""
        name = quote(self.table.name)
        if self.table.without_rowid:
            return [self._select("0", ""), "SELECT NULL"]
        rowid = self.rowid
        begin = "" if self.after is None else f" WHERE {rowid} > {self.after}"
        end = f"SELECT {rowid} FROM {name}{begin} ORDER BY {rowid} LIMIT 1 OFFSET {run - 1}"  # noqa: S608
        until = f"{rowid} <= coalesce(({end}), {2**63 - 1})"
        where = f" WHERE {until}" if not begin else f"{begin} AND {until}"
        return [self._select(rowid, where), f"SELECT ({end})"]

    def _select(self, rowid: str, where: str) -> str:
        faults = " || ".join(
            f"CASE WHEN {probe.right} THEN '' ELSE '{number}=' || {probe.what} || ' ' END"
            for number, probe in enumerate(self.probes)
        )
        rows = (
            f"SELECT {faults} AS faults, {rowid} AS place, {self._label()} AS label"  # noqa: S608
            f" FROM {quote(self.table.name)}{where}"
        )
        numbered = (
            "SELECT faults, place, label, row_number() OVER (PARTITION BY faults ORDER BY place)"  # noqa: S608
            f" AS number FROM ({rows}) WHERE faults <> ''"
        )
        return (
            "SELECT faults, count(*), group_concat(place || ' ' || label, ';')"  # noqa: S608
            f" FILTER (WHERE number <= {_NAMED}) FROM ({numbered}) GROUP BY faults"
        )

    def _label(self) -> str:
        """Return an expression for a row's key: hexadecimal, so that any bytes come through."""
        parts = [
            f"substr(typeof({name}), 1, 1) || ':' || coalesce(hex(substr(CAST({name} AS BLOB), 1,"
            f" {_SHOWN})), '')"
            for name in map(quote, _key(self.table))
        ]
        return " || ',' || ".join(parts) or "''"

    def take(self, results: Iterator[list[Any] | None]) -> bool:
        """Read the answers to `statements`; return whether rows are left."""
        rows, end = next(results), next(results)
        for faults, count, places in rows or ():
            found = [_place(self.table, place) for place in places.split(";")]
            for fault in faults.split():
                number, what = fault.split("=")
                self.counts[int(number), what] += count
                named = self.places.setdefault(int(number), [])
                named += found
                named.sort()
                del named[_NAMED:]
        # No answer: somebody dropped the table meanwhile.
        self.after = end[0][0] if end else None
        return self.after is not None

    def differences(self) -> Iterator[Difference]:
        """Yield one difference for each fault that was found."""
        for number, probe in enumerate(self.probes):
            whats = {what: n for (at, what), n in self.counts.items() if at == number}
            if whats:
                yield Difference(
                    kind=probe.kind,
                    name=probe.column,
                    table=self.table.name,
                    expected=probe.expected,
                    found=probe.found or _listed(sorted(whats)),
                    fix=probe.fix_for(set(whats)),
                    rows=sum(whats.values()),
                    examples=tuple(label for _, label in self.places[number]),
                )


def _key(table: Table) -> list[str]:
    terms = table.primary_key.terms if table.primary_key else ()
    return [term.text for term in terms]


def _place(table: Table, text: str) -> tuple[int, str]:
    """Read what `_label` gave to the rowid and a readable key; a key with NULL names the rowid."""
    rowid, _, label = text.partition(" ")
    cells = [_cell(part) for part in label.split(",") if part]
    if not cells or (None in cells and not table.without_rowid):
        return int(rowid), f"rowid {rowid}"
    pairs = zip(_key(table), cells, strict=True)
    return int(rowid), " ".join(f"{name}={cell or 'NULL'}" for name, cell in pairs)


def _cell(text: str) -> str | None:
    kind, _, digits = text.partition(":")
    if kind == "n":
        return None
    if kind == "b":
        return f"x'{digits.lower()}'"
    value = bytes.fromhex(digits).decode(errors="replace")
    more = "…" if len(digits) >= 2 * _SHOWN else ""
    return f"{value!r}{more}" if kind == "t" else value


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
