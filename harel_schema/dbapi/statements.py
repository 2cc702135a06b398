"""Reading SQL text just far enough: its kind, its parameters, where it ends.

This is a tokenizer, not a parser: bad SQL gets a plausible answer, and the database says what is
wrong with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from harel_schema.errors import ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Kind", "Parameter", "Statement", "Token", "pragma", "read", "split", "tokens"]

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\n\f\r]+ | --[^\n]* | /\*.*?(?:\*/|\Z))
    | (?P<string>[xX]?'[^']*(?:''[^']*)*(?:'|\Z))
    | (?P<name>"[^"]*(?:""[^"]*)*(?:"|\Z) | `[^`]*(?:``[^`]*)*(?:`|\Z) | \[[^\]]*(?:\]|\Z))
    | (?P<param>\?[0-9]* | [:@$][A-Za-z0-9_$\x80-\U0010ffff]+)
    | (?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
    | (?P<number>[0-9][0-9A-Za-z_.]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Kind(Enum):
    """What a statement does to a transaction."""

    EMPTY = "empty"
    READ = "read"
    WRITE = "write"
    SCHEMA = "schema"
    PRAGMA = "pragma"
    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RELEASE = "release"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"


_KINDS = {
    "SELECT": Kind.READ,
    "VALUES": Kind.READ,
    "EXPLAIN": Kind.READ,
    "INSERT": Kind.WRITE,
    "REPLACE": Kind.WRITE,
    "UPDATE": Kind.WRITE,
    "DELETE": Kind.WRITE,
    "CREATE": Kind.SCHEMA,
    "ALTER": Kind.SCHEMA,
    "DROP": Kind.SCHEMA,
    "REINDEX": Kind.SCHEMA,
    "ANALYZE": Kind.SCHEMA,
    "PRAGMA": Kind.PRAGMA,
    "BEGIN": Kind.BEGIN,
    "COMMIT": Kind.COMMIT,
    "END": Kind.COMMIT,
    "ROLLBACK": Kind.ROLLBACK,
    "SAVEPOINT": Kind.SAVEPOINT,
    "RELEASE": Kind.RELEASE,
    "ATTACH": Kind.OUTSIDE,
    "DETACH": Kind.OUTSIDE,
    "VACUUM": Kind.OUTSIDE,
}
_MAIN_VERBS = ("SELECT", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE")


class Token(NamedTuple):
    """A piece of SQL that is neither space nor comment; `upper` is set for a bare word."""

    type: str
    start: int
    end: int
    upper: str


class Parameter(NamedTuple):
    """A placeholder's place in the text, and the place (from 0) of the value it takes."""

    start: int
    end: int
    position: int


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One statement, read once and kept.

    `body` is its text from the first token to the last, without the semicolon; positions count in
    it. `names` holds one name a parameter, or is None when no placeholder has a name. `mode` is
    the mode of a BEGIN, and "TO" for a ROLLBACK to a savepoint. `main` is the place of the main
    verb among the tokens, `returning` that of RETURNING, or -1. `star` tells whether the columns
    of a query depend on its tables and not only on its text; `more`, whether another statement
    follows.
    """

    kind: Kind
    verb: str
    body: str
    tokens: tuple[Token, ...]
    parameters: tuple[Parameter, ...] = ()
    count: int = 0
    names: tuple[str, ...] | None = None
    mode: str = ""
    main: int = 0
    returning: int = -1
    star: bool = False
    more: bool = False

    @property
    def inserts(self) -> bool:
        """Whether the statement sets the last row id."""
        return self.verb in ("INSERT", "REPLACE")


def tokens(sql: str) -> Iterator[Token]:
    """Yield the tokens of `sql`, without spaces and comments."""
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or ""
        if kind != "space":
            upper = match[0].upper() if kind == "word" else ""
            yield Token(kind, match.start(), match.end(), upper)


def read(sql: str) -> Statement:
    """Read the first statement of `sql`, whatever follows it.

    Raises `ProgrammingError` for text that holds a NUL or is not Unicode.
    """
    return _read(sql) if len(sql) < _LONG else _read_long(sql)


@lru_cache(maxsize=1024)
def _read(sql: str) -> Statement:
    if "\0" in sql:
        raise ProgrammingError("the statement holds a NUL character")
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise ProgrammingError(
            f"the statement holds a lone surrogate at index {error.start}"
        ) from None
    found = tuple(tokens(sql))
    length = _length(sql, found)
    more = any(sql[token.start] != ";" for token in found[length:])
    if not length:
        return Statement(kind=Kind.EMPTY, verb="", body="", tokens=(), more=more)
    start, stop = found[0].start, found[length - 1].end
    body = sql[start:stop]
    own = found[:length] if not start else tuple(tokens(body))
    verb, at = _verb(body, own)
    parameters, count, names = _parameters(body, own)
    kind = _KINDS.get(verb, Kind.UNKNOWN)
    returning = _returning(body, own, at) if kind is Kind.WRITE else -1
    return Statement(
        kind=kind,
        verb=verb,
        body=body,
        tokens=own,
        parameters=parameters,
        count=count,
        names=names,
        mode=_mode(verb, own),
        main=at,
        returning=returning,
        star=_star(body, own),
        more=more,
    )


# What is known of a long statement takes many times its length: keep few of them.
_LONG = 4096
_read_long = lru_cache(maxsize=16)(_read.__wrapped__)


def read_one(sql: str) -> Statement:
    """Read `sql`, which must be one statement; raises `ProgrammingError`."""
    if not isinstance(sql, str):
        raise ProgrammingError(f"a statement is text, not {type(sql).__name__}")
    statement = read(sql)
    if statement.more:
        raise ProgrammingError(
            "only one statement can be executed at a time", remedy="use executescript"
        )
    return statement


@lru_cache(maxsize=256)
def plain_count(sql: str) -> int:
    """Return how many ``?`` a plain change takes; -1 for any other text.

    Plain is an INSERT, REPLACE, UPDATE or DELETE and nothing around it, without WITH, RETURNING
    and names: a driver can have it as it is.
    """
    statement = read(sql)
    plain = statement.kind is Kind.WRITE and statement.body == sql and not statement.main
    return statement.count if plain and statement.names is None and statement.returning < 0 else -1


def pragma(statement: Statement) -> tuple[str, bool]:
    """Return the name of a PRAGMA, in capitals, and whether it is given a value."""
    body, (_, *rest) = statement.body, statement.tokens
    if len(rest) > 2 and body[rest[1].start] == ".":  # noqa: PLR2004 - schema, dot, name
        rest = rest[2:]
    name = body[rest[0].start : rest[0].end].strip("\"'`[]").upper() if rest else ""
    return name, len(rest) > 1


def split(script: str) -> Iterator[str]:
    """Yield the statements of a script, each without its semicolon; a trigger stays whole."""
    found = tuple(tokens(script))
    while found:
        length = _length(script, found)
        if length:
            yield script[found[0].start : found[length - 1].end]
        found = found[length + 1 :]


def _length(sql: str, found: tuple[Token, ...]) -> int:
    """Return how many tokens belong to the first statement, its semicolon not counted."""
    trigger = _is_trigger(found)
    for at, token in enumerate(found):
        if sql[token.start] == ";" and (not trigger or _ends_trigger(sql, found, at)):
            return at
    return len(found)


def _is_trigger(found: tuple[Token, ...]) -> bool:
    words = [token.upper for token in found[:6]]
    if words[:3] == ["EXPLAIN", "QUERY", "PLAN"]:
        words = words[3:]
    elif words[:1] == ["EXPLAIN"]:
        words = words[1:]
    if words[1:2] in (["TEMP"], ["TEMPORARY"]):
        del words[1]
    return words[:2] == ["CREATE", "TRIGGER"]


def _ends_trigger(sql: str, found: tuple[Token, ...], at: int) -> bool:
    # A trigger ends with `; END ;`: an END that closes a CASE never follows a semicolon.
    return at > 1 and found[at - 1].upper == "END" and sql[found[at - 2].start] == ";"


def _verb(sql: str, own: tuple[Token, ...]) -> tuple[str, int]:
    """Return the main verb and where it stands, seeing through WITH."""
    if not own:
        return "", 0
    if own[0].upper != "WITH":
        return own[0].upper, 0
    depth = 0
    for at, token in enumerate(own):
        depth += _nesting(sql, token)
        if depth == 0 and token.upper in _MAIN_VERBS:
            return token.upper, at
    return "WITH", 0


def _nesting(sql: str, token: Token) -> int:
    if token.type != "other":
        return 0
    return {"(": 1, ")": -1}.get(sql[token.start], 0)


def _parameters(
    sql: str, own: tuple[Token, ...]
) -> tuple[tuple[Parameter, ...], int, tuple[str, ...] | None]:
    """Number the placeholders as SQLite does."""
    found: list[Parameter] = []
    names: dict[str, int] = {}
    count = 0
    for token in own:
        if token.type != "param":
            continue
        text = sql[token.start : token.end]
        if text == "?":
            index = count
        elif text[0] == "?":
            index = int(text[1:]) - 1
        else:
            index = names.setdefault(text, count)
        count = max(count, index + 1)
        found.append(Parameter(token.start, token.end, index))
    return tuple(found), count, _names(names, count)


def _names(names: dict[str, int], count: int) -> tuple[str, ...] | None:
    if not names:
        return None
    by_index = {index: name[1:] for name, index in names.items()}
    # A plain `?` among names has no name, as in sqlite3: a mapping cannot fill it.
    return tuple(by_index.get(index, "") for index in range(count))


def _mode(verb: str, own: tuple[Token, ...]) -> str:
    words = [token.upper for token in own[1:]]
    if verb == "BEGIN":
        return words[0] if words and words[0] in ("IMMEDIATE", "EXCLUSIVE") else "DEFERRED"
    return "TO" if verb == "ROLLBACK" and "TO" in words else ""


def _star(sql: str, own: tuple[Token, ...]) -> bool:
    return any(
        sql[token.start] == "*"
        and (
            sql[before.start] in ",." or before.upper in ("SELECT", "DISTINCT", "ALL", "RETURNING")
        )
        for before, token in pairwise(own)
        if token.type == "other"
    )


def _returning(sql: str, own: tuple[Token, ...], at: int) -> int:
    """Return the place of a top-level RETURNING among the tokens, or -1."""
    depth = 0
    for place in range(at, len(own)):
        depth += _nesting(sql, own[place])
        if depth == 0 and own[place].upper == "RETURNING":
            return place
    return -1
