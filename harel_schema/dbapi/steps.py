"""Statements as the steps of a Hrana batch, each run only if the one before it succeeded. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harel_schema.dbapi.channel import OPEN
from harel_schema.dbapi.session import Description, Result
from harel_schema.dbapi.statements import Kind, Statement, pragma
from harel_schema.hrana import messages as m

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harel_schema.dbapi.parameters import Value

__all__ = ["Plan", "chunks", "description", "many", "of", "one", "result", "script", "writes"]

# Far below the 32 MB that a server takes in one request.
_CHUNK_ROWS = 500
_CHUNK_BYTES = 4_000_000
# PRAGMAs that ask about what they are given.
_QUESTIONS = frozenset(
    {
        "FOREIGN_KEY_CHECK",
        "FOREIGN_KEY_LIST",
        "INDEX_INFO",
        "INDEX_LIST",
        "INDEX_XINFO",
        "INTEGRITY_CHECK",
        "QUICK_CHECK",
        "TABLE_INFO",
        "TABLE_LIST",
        "TABLE_XINFO",
    }
)
_LOOK = m.Statement("SELECT 1 FROM sqlite_schema LIMIT 0", want_rows=False)


class Plan(NamedTuple):
    """A batch, and the range of the steps whose results matter: each of them must have run."""

    steps: tuple[m.Step, ...]
    first: int
    last: int


def of(statement: Statement, values: tuple[Value, ...], *, want_rows: bool = True) -> m.Statement:
    """Return a statement with its values; NaN becomes NULL, as SQLite has it."""
    # NaN is the one value that differs from itself.
    args = tuple([None if value != value else value for value in values])  # noqa: PLR0124
    if statement.names is None:
        return m.Statement(statement.body, args, want_rows)
    return m.Statement(statement.body, dict(zip(statement.names, args, strict=True)), want_rows)


def one(
    statement: m.Statement, guard: m.Condition | None, begin: str | None, *, star: bool = False
) -> Plan:
    """Return the plan of one statement, in a transaction of its own if `begin`.

    `star` says that its columns depend on the schema. The server takes them from what it knows of
    the schema before it runs the statement, so a step that looks at the schema goes first.
    """
    return _chain((statement,), guard, begin, look=star)


def many(
    statement: Statement,
    rows: Sequence[tuple[Value, ...]],
    guard: m.Condition | None,
    begin: str | None,
) -> Plan:
    """Return the plan of a statement run once a row."""
    return _chain([of(statement, row, want_rows=False) for row in rows], guard, begin)


def script(statements: Sequence[Statement], guard: m.Condition | None) -> Plan:
    """Return the plan of a script, whose own BEGIN and COMMIT decide what is whole."""
    found = [of(statement, (), want_rows=False) for statement in statements]
    conditions = (guard, *map(m.Ok, range(len(found) - 1)))
    return Plan(tuple(map(m.Step, found, conditions)), 0, len(found))


def _chain(
    statements: Sequence[m.Statement],
    guard: m.Condition | None,
    begin: str | None,
    *,
    look: bool = False,
) -> Plan:
    steps: list[m.Step] = []
    if begin is not None:
        steps.append(m.Step(m.Statement(f"BEGIN {begin}")))
        guard = OPEN
    if look:
        steps.append(m.Step(_LOOK))
    first = len(steps)
    for statement in statements:
        before = m.Ok(len(steps) - 1) if steps else None
        steps.append(m.Step(statement, _both(before, guard)))
    if begin is not None:
        # A statement that fails takes the transaction that was begun for it with it.
        failed = m.And((m.Not(m.Ok(first)), OPEN))
        steps.append(m.Step(m.Statement("ROLLBACK"), failed))
    return Plan(tuple(steps), first, first + len(statements))


def _both(first: m.Condition | None, second: m.Condition | None) -> m.Condition | None:
    if first is None or second is None:
        return first or second
    return m.And((first, second))


def result(statement: Statement, found: m.StatementResult) -> Result:
    """Return what a statement gave, as a local driver tells it."""
    columns = description(found.columns) if found.columns else None
    if statement.kind is not Kind.WRITE:
        return Result(columns, found.rows)
    rowcount = found.affected_row_count if columns is None else len(found.rows)
    lastrowid = found.last_insert_rowid if statement.inserts else None
    return Result(columns, found.rows, rowcount=rowcount, lastrowid=lastrowid)


def description(columns: Sequence[str]) -> Description:
    """Return PEP 249's description of columns: SQLite has nothing to say but their names."""
    return tuple((name, None, None, None, None, None, None) for name in columns)


def chunks(rows: Iterable[tuple[Value, ...]]) -> Iterator[list[tuple[Value, ...]]]:
    """Yield rows in lists that fit into a request.

    When `rows` fails, what it gave before comes first, as it would have been run one by one.
    """
    chunk: list[tuple[Value, ...]] = []
    size = 0
    try:
        for row in rows:
            chunk.append(row)
            size += sum(len(value) for value in row if isinstance(value, str | bytes))
            if len(chunk) == _CHUNK_ROWS or size > _CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
    except GeneratorExit:
        raise
    except BaseException:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def writes(statement: Statement) -> bool:
    """Whether a read-only connection must refuse a statement that it sends to a server."""
    if statement.kind is Kind.PRAGMA:
        name, given = pragma(statement)
        return given and name not in _QUESTIONS
    return statement.kind in (Kind.WRITE, Kind.SCHEMA, Kind.OUTSIDE)
