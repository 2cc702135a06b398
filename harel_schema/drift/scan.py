"""Questions to every row of a table, which SQLite answers by counting.

It hands over a line for each combination of faults of a table with the first five rows that have
it: one pass, and as much memory for ten rows as for ten million. A large table is read in runs
of rows, so that no request takes long.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from harel_schema.introspect import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from harel_schema.introspect import Table

__all__ = ["Faulty", "Question", "Reader", "Scan", "read"]

_NAMED: Final = 5
_FIRST_RUN: Final = 20_000
_SHORT: Final = 1.0
_LONG: Final = 5.0
_MOST: Final = 5_000_000
_SHOWN: Final = 60
_ROWID: Final = ("rowid", "_rowid_", "oid")


class Reader(Protocol):
    """What a database is read by."""

    def execute_reads(self, statements: Sequence[str], /) -> list[list[Any] | None]:
        """Return the rows of each statement, all of one snapshot; None without its table."""


class Question(Protocol):
    """A question to every row.

    `right` is a condition that is true for a row that fits; `what` an expression for what is
    there instead, a word.
    """

    @property
    def right(self) -> str: ...  # noqa: D102
    @property
    def what(self) -> str: ...  # noqa: D102


_Q = TypeVar("_Q", bound=Question)


@dataclass(frozen=True, slots=True)
class Faulty(Generic[_Q]):
    """The rows that do not fit: how many, the first five by name, what is there instead."""

    question: _Q
    rows: int
    examples: tuple[str, ...]
    whats: frozenset[str]


@dataclass(slots=True)
class Scan(Generic[_Q]):
    """One table on its way: what was found so far, and behind which row to go on.

    `sums` are expressions over the rows of a run, whose values `add` takes up for each run.
    """

    table: Table
    questions: tuple[_Q, ...]
    sums: tuple[str, ...] = ()
    add: Callable[[Sequence[Any]], object] | None = None
    after: int | None = None
    rowid: str = field(init=False)
    counts: Counter[tuple[int, str]] = field(default_factory=Counter)
    places: dict[int, list[tuple[int, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rowid = next(name for name in _ROWID if name not in self.table.by_name)

    def statements(self, run: int) -> list[str]:
        """Return the statement for the next `run` rows, and the one that says where they end."""
        name = quote(self.table.name)
        sums = "".join(f", {each}" for each in self.sums)
        if self.table.without_rowid:
            return [self._select("0", ""), f"SELECT NULL{sums} FROM {name}"]  # noqa: S608
        rowid = self.rowid
        begin = "" if self.after is None else f" WHERE {rowid} > {self.after}"
        end = f"SELECT {rowid} FROM {name}{begin} ORDER BY {rowid} LIMIT 1 OFFSET {run - 1}"  # noqa: S608
        until = f"{rowid} <= coalesce(({end}), {2**63 - 1})"
        where = f" WHERE {until}" if not begin else f"{begin} AND {until}"
        tail = f"{sums} FROM {name}{where}" if sums else ""
        return [self._select(rowid, where), f"SELECT ({end}){tail}"]

    def _select(self, rowid: str, where: str) -> str:
        faults = " || ".join(
            f"CASE WHEN {each.right} THEN '' ELSE '{number}=' || {each.what} || ' ' END"
            for number, each in enumerate(self.questions)
        )
        faults = faults or "''"
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
        self.after, *sums = end[0] if end else (None,)
        if sums and self.add is not None:
            self.add(sums)
        return self.after is not None

    def faulty(self) -> Iterator[Faulty[_Q]]:
        """Yield what was found, in the order of the questions."""
        for number, question in enumerate(self.questions):
            whats = {what: n for (at, what), n in self.counts.items() if at == number}
            if whats:
                labels = tuple(label for _, label in self.places[number])
                yield Faulty(question, sum(whats.values()), labels, frozenset(whats))


def read(reader: Reader, scans: Sequence[Scan[_Q]]) -> None:
    """Ask every row.

    A small database on a server is read in one request, a large one in a request for each few
    seconds of reading. Raises what `reader` raises.
    """
    run = _FIRST_RUN
    # The first request has the beginning of every table, each later one has one run of rows.
    waiting = [[*scans]] if scans else []
    while waiting:
        batch = waiting.pop()
        began = time.monotonic()
        statements = [sql for scan in batch for sql in scan.statements(run)]
        results = iter(reader.execute_reads(statements))
        unfinished = [scan for scan in batch if scan.take(results)]
        waiting += [[scan] for scan in reversed(unfinished)]
        run = _next_run(run, time.monotonic() - began)


def _next_run(rows: int, seconds: float) -> int:
    if seconds < _SHORT:
        return min(rows * 4, _MOST)
    return max(rows // 2, 1) if seconds > _LONG else rows


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
