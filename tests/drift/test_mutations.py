"""Every single-token edit that changes what SQLite does is reported; the others are silent."""

from __future__ import annotations

import random
import re
import sqlite3
from typing import TYPE_CHECKING

import pytest

from harel_schema import introspect
from harel_schema.drift import Kind, schema_differences
from harel_schema.migrate import schema_sql
from tests.drift import oracle, zoo

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN = [s for s in schema_sql("harel") if s.startswith("CREATE")]
SCHEMAS = {"own": OWN, "zoo": list(zoo.STATEMENTS)}

LEXEMES = re.compile(r"""x'[^']*'|'(?:[^']|'')*'|"[^"]*"|\w+(?:\.\d+)?|<>|\|\||\S""")
WORDS = re.findall(
    r"\S+",
    "NOT NULL UNIQUE PRIMARY KEY AUTOINCREMENT DEFAULT CHECK COLLATE NOCASE RTRIM BINARY DESC ASC"
    " ON CONFLICT IGNORE REPLACE ABORT FAIL ROLLBACK REFERENCES CASCADE RESTRICT DEFERRABLE"
    " INITIALLY DEFERRED IMMEDIATE STORED VIRTUAL AS GENERATED ALWAYS WITHOUT ROWID STRICT TEXT"
    " INTEGER INT REAL BLOB NUMERIC VARCHAR ANY CONSTRAINT WHERE AND OR IS BEFORE AFTER INSERT"
    " UPDATE DELETE OF FOR EACH ROW WHEN id a b n x 'x' \"x\" x'00' 0 1 2 1.0 -1 + - * = == <> !="
    " < > <= >= || ( ) ,",
)

# These hold text that is compared by tokens: another text counts, though it may mean the same.
TEXTS = {
    Kind.CHECK_CHANGED, Kind.COLUMN_DEFAULT, Kind.COLUMN_GENERATED, Kind.INDEX_TERMS,
    Kind.INDEX_WHERE, Kind.TRIGGER_CHANGED, Kind.VIEW_CHANGED,
}  # fmt: skip


def edits(statement: str) -> Iterator[str]:
    """Yield the statement with one token less, twice, in another case, other, or more."""
    tokens = LEXEMES.findall(statement)
    for at in range(len(tokens) + 1):
        here = tokens[at : at + 1]
        changed = [[], here * 2, [token.swapcase() for token in here]]
        changed += [[word] for word in WORDS] if here else []
        for replacement in (*changed, *([word, *here] for word in WORDS)):
            yield " ".join([*tokens[:at], *replacement, *tokens[at + 1 :]])


def judge(statements: list[str], at: int, chosen: list[str]) -> tuple[int, int]:
    """Compare our verdict on each edit with SQLite's; count what changed, and what did not."""
    base = oracle.make(statements)
    probes = oracle.probes(base)
    before, expected = oracle.behaviour(base, probes), introspect.read(base)
    base.close()
    changed = silent = 0
    for edit in chosen:
        try:
            connection = oracle.make([*statements[:at], edit, *statements[at + 1 :]])
        except sqlite3.Error:
            continue
        differs = oracle.behaviour(connection, probes) != before
        found = list(schema_differences(expected, introspect.read(connection)))
        connection.close()
        if differs:
            changed += 1
            assert found, f"not seen: {edit}"
        else:
            silent += 1
            assert {difference.kind for difference in found} <= TEXTS, f"seen: {edit}"
    return changed, silent


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_sample_of_edits_is_judged_as_sqlite_judges_them(name):
    """Of every statement: each token left out, and 60 other edits."""
    total = 0
    for at, statement in enumerate(SCHEMAS[name]):
        every = list(dict.fromkeys(edits(statement)))
        tokens = len(LEXEMES.findall(statement))
        chosen = random.Random(at).sample(every, 60) + [
            edit for edit in every if len(LEXEMES.findall(edit)) == tokens - 1
        ]
        total += sum(judge(SCHEMAS[name], at, chosen))
    assert total > 100


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_edit_is_judged_as_sqlite_judges_it(name):
    """All edits of every statement: tens of thousands, of which thousands are valid."""
    changed = silent = 0
    for at, statement in enumerate(SCHEMAS[name]):
        counts = judge(SCHEMAS[name], at, list(dict.fromkeys(edits(statement))))
        changed, silent = changed + counts[0], silent + counts[1]
    assert changed > 5000
    assert silent > 200
