"""SQL text to tokens that are equal when SQLite reads the same.

SQLite keeps the text of a CREATE statement as it was typed, and `ALTER TABLE … RENAME` rewrites
names in it with quotes. So text is compared by tokens: the case of words, spaces, comments, the
style of quotes and the spelling of a number do not count; what stands in a string does.

A compiled expression is used rather than sqlglot's tokenizer, which costs 100 ms to import and
gives the same token for ``x'1F'`` (a blob) and ``0x1F`` (a number).
"""

from __future__ import annotations

import re
import string
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Token", "canonical", "fold", "quote", "render", "tokenize", "unwrap"]

_LEXER: Final = re.compile(
    r"""
      (?P<space>[ \t\n\f\r]+ | --[^\n]* | /\*.*?(?:\*/|\Z))
    | (?P<blob>[xX]'[0-9a-fA-F]*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\])
    | (?P<number>0[xX][0-9a-fA-F]+
        | (?:[0-9][0-9_]*(?:\.[0-9_]*)? | \.[0-9][0-9_]*) (?:[eE][+-]?[0-9]+)?)
    | (?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
    | (?P<op>->>|->|\|\||<<|>>|<=|>=|<>|!=|==|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SYNONYMS: Final = {"==": "=", "<>": "!="}
_UPPER_TO_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_PLAIN: Final = re.compile(r"[a-z_\u0080-\U0010ffff][a-z0-9_$\u0080-\U0010ffff]*\Z")
# Words that mean something else when they are not quoted: SQLite's reserved words, and the
# literals that it takes for a name only where nothing else is possible.
_RESERVED: Final = frozenset(
    """
    add all alter and as autoincrement between case check collate commit constraint create
    cross current_date current_time current_timestamp default deferrable delete distinct drop
    else escape except exists false filter foreign from full group having in index indexed inner
    insert intersect into is isnull join left limit natural not nothing notnull null on or order
    outer over primary references returning right select set table then to transaction true union
    unique update using values when where window
    """.split()  # noqa: SIM905 - a list of 80 quoted words is hard to read
)
_INT64: Final = 1 << 63


class Token(NamedTuple):
    """One token: its kind (`word`, `quoted`, `string`, `blob`, `number`, `op`) and its text.

    A `word` is folded to lower case; a `quoted` name is bare (without its quotes), in its own case,
    and `mark` is the quote that opened it; a number is in its shortest spelling.
    """

    kind: str
    text: str
    mark: str = ""


def fold(name: str) -> str:
    """The form in which SQLite compares names: ASCII letters in lower case, others as they are."""
    return name.translate(_UPPER_TO_LOWER)


def quote(name: str) -> str:
    """The name as SQL: quoted only where it must be."""
    if _PLAIN.match(fold(name)) and fold(name) not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def tokenize(sql: str) -> list[Token]:
    """The tokens of `sql`, without spaces and comments. Never fails: what is no SQL is an `op`."""
    return [
        _MAKERS[match.lastgroup or "op"](match[0])
        for match in _LEXER.finditer(sql)
        if match.lastgroup != "space"
    ]


def _quoted(text: str) -> Token:
    mark = text[0]
    bare = text[1:-1] if mark == "[" else text[1:-1].replace(mark * 2, mark)
    return Token("quoted", bare, mark)


def _number(text: str) -> Token:
    digits = text.replace("_", "")
    if digits[:2] in ("0x", "0X"):
        value = int(digits, 16) & (2 * _INT64 - 1)
        return Token("number", str(value - 2 * _INT64 if value >= _INT64 else value))
    if digits.isdecimal() and int(digits) <= _INT64:
        return Token("number", str(int(digits)))
    return Token("number", repr(float(digits)))


_MAKERS: Final[dict[str, Callable[[str], Token]]] = {
    "blob": lambda text: Token("blob", text.lower()),
    "string": lambda text: Token("string", text),
    "quoted": _quoted,
    "number": _number,
    "word": lambda text: Token("word", text.translate(_UPPER_TO_LOWER)),
    "op": lambda text: Token("op", _SYNONYMS.get(text, text)),
}


def canonical(tokens: Sequence[Token], names: Iterable[str] | None = None) -> str:
    """One text for all spellings of the same expression.

    `names` are the folded names that a double-quoted word may mean; a double-quoted word that is
    none of them is a string, as SQLite takes it. None: every quoted word is a name.
    """
    known = None if names is None else frozenset(names)
    return render(_resolve(tokens, at, known) for at in range(len(tokens)))


def _resolve(tokens: Sequence[Token], at: int, known: frozenset[str] | None) -> Token:
    token = tokens[at]
    if token.kind != "quoted":
        return token
    if known is not None and token.mark == '"' and fold(token.text) not in known:
        before = tokens[at - 1].text if at else ""
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if before not in ("collate", "as", ".") and after not in ("(", "."):
            return Token("string", "'" + token.text.replace("'", "''") + "'")
    return Token("word", quote(fold(token.text)))


def unwrap(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without parentheses around the whole."""
    while len(tokens) > 1 and tokens[0].text == "(" and tokens[0].kind == "op":
        depths = accumulate(
            (token.text == "(") - (token.text == ")") if token.kind == "op" else 0
            for token in tokens
        )
        if next((at for at, depth in enumerate(depths) if depth == 0), 0) != len(tokens) - 1:
            break
        tokens = tokens[1:-1]
    return tokens


def render(tokens: Iterable[Token]) -> str:
    """Tokens as readable SQL; equal token lists give equal text."""
    parts: list[str] = []
    glue = True
    for token in tokens:
        text = token.text
        before = parts[-1] if parts else ""
        called = text == "(" and before.isidentifier() and before not in _RESERVED
        if not (glue or called or text in (",", ")", ".", ";")):
            parts.append(" ")
        glue = text in ("(", ".") or (text == "-" and before in ("", "(", ","))
        parts.append(text)
    return "".join(parts)
