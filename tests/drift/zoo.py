"""Statements that use every clause of SQLite's schema; they need PARENT and PLAIN."""

from __future__ import annotations

import random
import re

PARENT = "CREATE TABLE parent (id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE)"

KEYS = (
    "CREATE TABLE keys (a TEXT NOT NULL ON CONFLICT IGNORE, b TEXT COLLATE NOCASE DEFAULT 'B',"
    " c INTEGER DEFAULT -1, d REAL DEFAULT (1.5 + 1), e BLOB DEFAULT x'00ff', f,"
    " PRIMARY KEY (a DESC, b) ON CONFLICT REPLACE, UNIQUE (b, c) ON CONFLICT FAIL,"
    " UNIQUE (d COLLATE RTRIM)) WITHOUT ROWID"
)
CHECKS = (
    "CREATE TABLE checks (id INTEGER PRIMARY KEY AUTOINCREMENT, n INT CONSTRAINT positive"
    " CHECK (n > 0), t VARCHAR(20) CHECK (t <> 'no' AND length(t) BETWEEN 1 AND 20),"
    " CONSTRAINT sane CHECK (n IS NULL OR t IS NOT NULL))"
)
GENERATED = (
    "CREATE TABLE generated (a INTEGER, b TEXT, c INTEGER GENERATED ALWAYS AS (a * 2) STORED,"
    " d TEXT AS (upper(b) || '!') VIRTUAL NOT NULL, e ANY DEFAULT CURRENT_TIMESTAMP) STRICT"
)
FOREIGN = (
    "CREATE TABLE foreigners (id INT PRIMARY KEY, p INTEGER REFERENCES parent ON DELETE CASCADE,"
    " q TEXT REFERENCES parent (code) ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED,"
    " r INTEGER, FOREIGN KEY (r) REFERENCES parent (id) NOT DEFERRABLE)"
)
PLAIN = "CREATE TABLE plain (a TEXT, b TEXT, n INTEGER)"
INDEX = (
    "CREATE UNIQUE INDEX plain_by_a ON plain (a COLLATE NOCASE DESC, lower(b), n)"
    " WHERE n > 1 AND b IS NOT NULL"
)
TRIGGER = (
    "CREATE TRIGGER plain_guard BEFORE UPDATE OF a ON plain FOR EACH ROW WHEN new.n > 1"
    " BEGIN SELECT RAISE(ABORT, 'moved to x'); DELETE FROM parent WHERE id = old.n; END"
)
VIEW = "CREATE VIEW busy AS SELECT a, count(*) AS many FROM plain WHERE n > 1 GROUP BY a"

STATEMENTS = (PARENT, KEYS, CHECKS, GENERATED, FOREIGN, PLAIN, INDEX, TRIGGER, VIEW)

# SQLite takes a comment before GENERATED ALWAYS for a part of the type, so these stay together.
LEXEMES = re.compile(
    r"""INTEGER\ GENERATED\ ALWAYS|x'[^']*'|'[^']*'|\w+(?:\.\w+)?|<>|\|\||\S""", re.IGNORECASE
)
NAMES = frozenset(
    [
        "parent",
        "keys",
        "checks",
        "generated",
        "foreigners",
        "plain",
        "plain_by_a",
        "plain_guard",
        "busy",
        "many",
        "id",
        "code",
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
        "n",
        "t",
        "p",
        "q",
        "r",
    ]
)
SPACES = (" ", "\n", "\t ", " /* x */ ", " -- x\n")


def respell(statement: str, seed: int) -> str:
    """Write a statement otherwise: its layout, the case of its words, the quotes of its names."""
    draw = random.Random(seed)
    lexemes = LEXEMES.findall(statement)
    return "".join(
        draw.choice(SPACES) * (at > 0) + _word(lexeme, draw) for at, lexeme in enumerate(lexemes)
    )


def _word(text: str, draw: random.Random) -> str:
    if text in NAMES:
        return draw.choice([text, f'"{text}"', f"[{text}]", f"`{text}`"])
    if text.startswith(("'", "x'")):
        return text
    return draw.choice([text, text.lower(), text.upper(), text.title()])
