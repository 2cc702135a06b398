"""What no PRAGMA tells, out of the stored text of CREATE TABLE and CREATE INDEX.

The text is known to be valid: SQLite stored it. So this reads what it looks for, steps over the
rest, and never fails; `PRAGMA table_xinfo` and its kin stay the source of everything they give.
The grammar is SQLite's `parse.y` (https://sqlite.org/lang_createtable.html).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harel_schema.introspect.tokens import Token, canonical, fold, tokenize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "ColumnText",
    "IndexText",
    "TableText",
    "after_name",
    "index_text",
    "table_text",
    "trigger_body",
]

_BARE = frozenset(("word", "op"))
_TABLE_STARTS = frozenset("constraint primary unique check foreign".split())  # noqa: SIM905


@dataclass(slots=True)
class ColumnText:
    """A column's clauses that PRAGMA table_xinfo does not show."""

    collation: str = "BINARY"
    not_null_conflict: str | None = None
    generated: Sequence[Token] | None = None


@dataclass(slots=True)
class TableText:
    """A table's clauses that no PRAGMA shows; names are folded.

    `conflicts` maps the columns of a PRIMARY KEY or UNIQUE to its conflict clause; `deferred`
    has one item a foreign key, in the order of the text.
    """

    columns: dict[str, ColumnText] = field(default_factory=dict)
    checks: list[tuple[str | None, Sequence[Token]]] = field(default_factory=list)
    conflicts: dict[tuple[str, ...], str] = field(default_factory=dict)
    primary_conflict: str | None = None
    deferred: list[bool] = field(default_factory=list)
    autoincrement: bool = False


@dataclass(slots=True)
class IndexText:
    """The terms of an index, without COLLATE, ASC and DESC at their end, and its WHERE."""

    terms: list[Sequence[Token]]
    where: Sequence[Token] | None


class _Reader:
    """A position in a list of tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        # Looked at some 200 times a table, so made once.
        self._words = [token.text if token.kind in _BARE else "''" for token in tokens]
        self._words += ["", ""]

    def peek(self) -> str:
        """The text of the coming word or operator, `''` for any other token, "" at the end."""
        return self._words[self._at]

    def next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def take(self, first: str, second: str = "") -> bool:
        """Step over one word or two when they come next."""
        if self._words[self._at] != first:
            return False
        if second and self._words[self._at + 1] != second:
            return False
        self._at += 2 if second else 1
        return True

    def group(self) -> Sequence[Token]:
        """The tokens of the parenthesis that comes next, without it; () when none comes."""
        if self._words[self._at] != "(":
            return ()
        start, depth = self._at + 1, 0
        for at in range(self._at, len(self._tokens)):
            word = self._words[at]
            depth += (word == "(") - (word == ")")
            if depth == 0:
                self._at = at + 1
                return self._tokens[start:at]
        self._at = len(self._tokens)
        return self._tokens[start:]

    def rest(self) -> Sequence[Token]:
        """All that is left."""
        start, self._at = self._at, len(self._tokens)
        return self._tokens[start:]

    def conflict(self) -> str | None:
        """The clause ON CONFLICT; None without one and for ABORT, which is the default."""
        if not self.take("on", "conflict"):
            return None
        action = self.next().text.upper()
        return None if action == "ABORT" else action


def table_text(sql: str) -> TableText:
    """Read a CREATE TABLE statement."""
    reader = _Reader(tokenize(sql))
    while reader.peek() not in ("(", ""):
        reader.next()
    return _TableReader(_Reader(reader.group())).read()


class _TableReader:
    """Reads what stands in the parenthesis of CREATE TABLE.

    A constraint's name stays in force until a new column begins or a comma ends a table
    constraint, as in SQLite: ``CONSTRAINT n NOT NULL CHECK (…)`` names the check too.
    """

    def __init__(self, body: _Reader) -> None:
        self.body = body
        self.table = TableText()
        self.name: str | None = None

    def read(self) -> TableText:
        while self.body.peek() and self.body.peek() not in _TABLE_STARTS:
            self._column()
            self.body.take(",")
        while self.body.peek():
            self._table_constraint()
        return self.table

    def _column(self) -> None:
        column = fold(_bare(self.body.next()))
        text = self.table.columns[column] = ColumnText()
        self.name = None
        while self.body.peek() not in ("", ","):
            known = (
                self._constraint(column)
                or self._column_constraint(text)
                or self._reference()
                or self.body.group()
            )
            if not known:
                self.body.next()  # a word of the type, GENERATED ALWAYS, STORED, VIRTUAL

    def _constraint(self, column: str | None) -> bool:
        """Read a clause that a column and a table may both have."""
        body, table = self.body, self.table
        if body.take("constraint"):
            self.name = _bare(body.next())
        elif body.take("check"):
            table.checks.append((self.name, body.group()))
        elif body.take("primary", "key"):
            words = body.group()
            _ = body.take("asc") or body.take("desc")
            table.primary_conflict = body.conflict()
            table.autoincrement = body.take("autoincrement") or any(
                token[:2] == ("word", "autoincrement") for token in words
            )
        elif body.take("unique"):
            terms = _split(body.group())
            columns = (column,) if column else tuple(fold(_bare(term[0])) for term in terms if term)
            conflict = body.conflict()
            if conflict:
                table.conflicts[columns] = conflict
        else:
            return False
        return True

    def _column_constraint(self, text: ColumnText) -> bool:
        body = self.body
        if body.take("not", "null"):
            text.not_null_conflict = body.conflict()
        elif body.take("null"):
            body.conflict()
        elif body.take("default"):
            _ = body.take("+") or body.take("-")
            _ = body.group() or body.next()
        elif body.take("collate"):
            text.collation = _bare(body.next()).upper()
        elif body.take("as"):
            text.generated = body.group()
        else:
            return False
        return True

    def _table_constraint(self) -> None:
        if self.body.take(","):
            self.name = None
        elif self.body.take("foreign", "key"):
            self.body.group()
        elif not (self._constraint(None) or self._reference()):
            self.body.next()

    def _reference(self) -> bool:
        """Read a clause of a foreign key."""
        body, deferred = self.body, self.table.deferred
        if body.take("references"):
            body.next()
            body.group()
            deferred.append(False)
        elif body.take("on", "update") or body.take("on", "delete"):
            _ = body.take("set") or body.take("no")
            body.next()
        elif body.take("match"):
            body.next()
        elif body.take("not", "deferrable"):
            self._defer(negated=True)
        elif body.take("deferrable"):
            self._defer(negated=False)
        else:
            return False
        return True

    def _defer(self, *, negated: bool) -> None:
        """Note it for the latest foreign key, whichever column that is on; none is no error."""
        self.body.take("initially", "immediate")
        deferred = self.body.take("initially", "deferred") and not negated
        self.table.deferred[-1:] = [deferred] if self.table.deferred else []


def index_text(sql: str) -> IndexText:
    """Read a CREATE INDEX statement."""
    reader = _Reader(tokenize(sql))
    while reader.peek() not in ("(", ""):
        reader.next()
    terms = [_bare_term(term) for term in _split(reader.group())]
    return IndexText(terms, reader.rest() if reader.take("where") else None)


def _bare_term(term: Sequence[Token]) -> Sequence[Token]:
    if term and term[-1].kind == "word" and term[-1].text in ("asc", "desc"):
        term = term[:-1]
    while len(term) > 2 and term[-2] == ("word", "collate", ""):  # noqa: PLR2004 - x COLLATE y
        term = term[:-2]
    return term


def after_name(sql: str) -> Sequence[Token]:
    """The tokens after the name of the thing that a CREATE statement makes."""
    reader = _Reader(tokenize(sql))
    while reader.peek() and reader.next().text not in ("table", "view", "trigger"):
        pass
    if reader.take("if", "not"):
        reader.take("exists")
    return reader.rest()[1:]


def trigger_body(tokens: Sequence[Token], names: Iterable[str]) -> str:
    """A trigger's text after its name, with BEFORE and FOR EACH ROW where they are left out."""
    body = list(tokens)
    if body and body[0].text in ("insert", "update", "delete"):
        body.insert(0, Token("word", "before"))
    begin = next((at for at, token in enumerate(body) if token[:2] == ("word", "begin")), 0)
    each = [Token("word", word) for word in ("for", "each", "row")]
    when = next((at for at in range(begin) if body[at][:2] == ("word", "when")), begin)
    if begin and body[when - 3 : when] != each:
        body[when:when] = each
    return canonical(body, names)


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    """The parts between the commas that stand in no inner parenthesis."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "op":
            depth += (token.text == "(") - (token.text == ")")
            if token.text == "," and depth == 0:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts


def _bare(token: Token) -> str:
    """A name without quotes; a string may stand for a name."""
    return token.text[1:-1].replace("''", "'") if token.kind == "string" else token.text
