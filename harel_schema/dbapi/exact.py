"""SQL that says the same in a form that the libsql libraries carry exactly.

Both libraries bind an int outside 32 bits as a REAL, read text up to its first NUL, and panic on
text that is not UTF-8. So such ints become literals of the text, and a query is wrapped so that
every cell arrives in a form they read whole: text as the blob of its bytes, a blob as its
hexadecimal text. `decode` turns a row back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harel_schema.dbapi.statements import Statement, read, tokens
from harel_schema.errors import OperationalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harel_schema.dbapi.parameters import Value
    from harel_schema.dbapi.session import Description, Row

__all__ = [
    "Shape",
    "are_small",
    "columns_probe",
    "decode",
    "inline",
    "returning",
    "returning_probe",
    "wrap",
]

_CELL = "CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) WHEN 'blob' THEN hex({0}) ELSE {0} END"
_LEFT_OF_ALIAS = frozenset({"word", "name", "string", "number", "param"})
_OPERATORS = frozenset({"AND", "OR", "NOT", "IS", "IN", "LIKE", "GLOB", "MATCH", "REGEXP"})
_OPERATORS |= {"BETWEEN", "COLLATE", "ESCAPE", "CASE", "WHEN", "THEN", "ELSE", "DISTINCT", "FROM"}
_BEFORE_TABLE = frozenset(("OR", "INTO", "FROM", "ABORT", "FAIL", "IGNORE", "REPLACE", "ROLLBACK"))
_ENDINGS = frozenset({"END", "ISNULL", "NOTNULL", "NULL"})


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns that a query has of its own, and what goes around its text to read it exactly.

    `columns` are those that a ``*`` stood for when the shape was made; None without one.
    """

    description: Description
    head: str
    tail: str
    columns: Description | None = None


def inline(statement: Statement, values: tuple[Value, ...]) -> tuple[str, tuple[Value, ...]]:
    """Return text and parameters with every int outside 32 bits written into the text."""
    if are_small(values):
        return statement.body, values
    large = {at for at, value in enumerate(values) if not are_small((value,))}
    # Numbers keep the other placeholders where they were. The parentheses part the minus of a
    # value from one before the placeholder, which together would begin a comment.
    text = _replace(statement, lambda at: f"({values[at]!r})" if at in large else f"?{at + 1}")
    return text, tuple(None if at in large else value for at, value in enumerate(values))


def are_small(values: Sequence[Value]) -> bool:
    """Whether every int among the values fits in 32 bits."""
    # A loop, because it is quicker than any(): each statement of a commit comes through here.
    for value in values:
        if value.__class__ is int and not -0x80000000 <= value <= 0x7FFFFFFF:  # noqa: PLR2004
            return False
    return True


def wrap(description: Description, columns: Description | None) -> Shape:
    """Return the shape of a query with these columns.

    The limits keep SQLite from merging the query into the outer one, which would compute each of
    its columns several times.
    """
    names = [f"c{at}" for at in range(len(description))]
    return Shape(
        description,
        f'WITH "harel exact"({",".join(names)}) AS (SELECT * FROM (',  # noqa: S608
        f') LIMIT -1) SELECT {",".join(map(_CELL.format, names))} FROM "harel exact" LIMIT -1',  # noqa: S608
        columns,
    )


def decode(rows: Sequence[Sequence[Any]], codec: str) -> list[Row]:
    """Return the rows of a wrapped query as they are; `codec` is that of the database's text.

    Raises `OperationalError` for text that is not valid in it, as stdlib `sqlite3` does.
    """
    try:
        return [
            tuple(
                [
                    cell.decode(codec)
                    if type(cell) is bytes
                    else bytes.fromhex(cell)
                    if type(cell) is str
                    else cell
                    for cell in row
                ]
            )
            for row in rows
        ]
    except UnicodeDecodeError as error:
        raise OperationalError(
            f"a text value is not {codec.upper()}: byte {error.object[error.start]:#04x} at offset "
            f"{error.start}",
            remedy="read it with CAST(column AS BLOB)",
        ) from None


def columns_probe(statement: Statement) -> str:
    """Return a query of no rows that has the columns of `statement`, if not their very names."""
    return f"SELECT * FROM ({statement.body}) LIMIT 0"  # noqa: S608 - the caller's own SQL


def returning_probe(statement: Statement) -> str:
    """Return a query of no rows whose columns are named as the RETURNING clause names them."""
    body, tokens = statement.body, statement.tokens
    at = statement.main + 1
    while tokens[at].upper in _BEFORE_TABLE:
        at += 1
    end = at + 2 if body[tokens[at + 1].start] == "." else at
    # RETURNING knows the table by its own name only, whatever its alias.
    table = body[tokens[at].start : tokens[end].end]
    with_clause = body[: tokens[statement.main].start]
    items = body[tokens[statement.returning].end :]
    return f"{with_clause}SELECT {items} FROM {table} LIMIT 0"  # noqa: S608 - parts of one statement


def returning(statement: Statement, description: Description) -> Statement:
    """Return the statement with a RETURNING clause that gives the cells as `wrap` does."""
    # The clause repeats each expression, so its placeholders need numbers.
    numbered = read(_numbered(statement))
    head = numbered.body[: numbered.tokens[numbered.returning].start]
    items = _returning_items(numbered)
    stars = items.count("*")
    width = (len(description) - len(items) + stars) // stars if stars else 0
    cells: list[str] = []
    for item in items:
        if item == "*":
            names = [column[0] for column in description[len(cells) : len(cells) + width]]
            cells += ['"' + name.replace('"', '""') + '"' for name in names]
        else:
            cells.append(f"({_without_alias(item)})")
    return read(f"{head}RETURNING {', '.join(map(_CELL.format, cells))}")


def _numbered(statement: Statement) -> str:
    return _replace(statement, lambda index: f"?{index + 1}")


def _replace(statement: Statement, text: Callable[[int], str]) -> str:
    parts: list[str] = []
    end = 0
    for parameter in statement.parameters:
        parts += (statement.body[end : parameter.start], text(parameter.position))
        end = parameter.end
    return "".join((*parts, statement.body[end:]))


def _returning_items(statement: Statement) -> list[str]:
    body, items, depth = statement.body, [], 0
    start = statement.tokens[statement.returning].end
    for token in statement.tokens[statement.returning + 1 :]:
        char = body[token.start] if token.type == "other" else ""
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            items.append(body[start : token.start])
            start = token.end
    return [item.strip() for item in (*items, body[start:])]


def _without_alias(item: str) -> str:
    found = tuple(tokens(item))
    if len(found) < 2 or found[-1].type not in ("word", "name", "string"):  # noqa: PLR2004
        return item
    last, before = found[-1], found[-2]
    if before.upper == "AS":
        return item[: before.start]
    operand = before.type in _LEFT_OF_ALIAS or item[before.start] == ")"
    if operand and before.upper not in _OPERATORS and last.upper not in _ENDINGS:
        return item[: last.start]
    # A comment after the expression would swallow what the cell puts behind it.
    return item[: last.end]
