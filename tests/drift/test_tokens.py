"""Text is the same when SQLite reads the same, and only then."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given

from harel_schema.introspect import fold, quote
from harel_schema.introspect.tokens import canonical, tokenize, unwrap
from tests.support.text import any_text

SAME = [
    ("SELECT a FROM t", "select  A\nfrom T -- and a comment"),
    ("a/* one */>/* two */0", "a > 0"),
    ('"a" > 0', "[a] > 0"),
    ("`a` > 0", "a > 0"),
    ('"A b" = 1', "[a B] == 1"),
    ("a <> 1", "a != 1"),
    ("a = 0x10", "a = 16"),
    ("a = 1.50", "a = 15e-1"),
    ("a = X'0F'", "a = x'0f'"),
    ("a = 007", "a = 7"),
]
DIFFERENT = [
    ("a = 'x'", "a = 'X'"),
    ("a = 'x y'", "a = 'x  y'"),
    ("a = 'a'", "a = a"),
    ("a = x'0f'", "a = 0x0f"),
    ("a = 1", "a = 1.0"),
    ("a = '-- b'", "a = '' -- b'"),
    ("a -> 'b'", "a ->> 'b'"),
    ('a = "null"', "a = null"),
    ('a = "current_date"', "a = current_date"),
    ("(a) + (b)", "a) + (b"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_the_same_are_equal(one, other):
    """Case of words, spaces, comments, quotes and the writing of numbers do not count."""
    assert canonical(tokenize(one)) == canonical(tokenize(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_means_something_else_is_different(one, other):
    """Strings count to the letter, and a name is no literal."""
    assert canonical(tokenize(one)) != canonical(tokenize(other))


def test_a_double_quoted_word_that_names_nothing_is_a_string():
    """SQLite takes an unknown name in double quotes for a string, and so does the comparison."""
    assert canonical(tokenize('a = "No"'), {"a"}) == "a = 'No'"
    assert canonical(tokenize('a = "No"'), {"a", "no"}) == "a = no"
    assert canonical(tokenize('a = b COLLATE "NOCASE"'), {"a"}) == "a = b collate nocase"
    assert canonical(tokenize("a = [No]"), {"a"}) == "a = no"


@pytest.mark.parametrize(
    ("text", "bare"),
    [("((a))", "a"), ("(a) + (b)", "(a) + (b)"), ("(')')", "')'"), ("()", ""), ("a", "a")],
)
def test_parentheses_around_the_whole_are_taken_off(text, bare):
    """Only parentheses that belong together and hold everything go."""
    assert canonical(unwrap(tokenize(text))) == bare


@given(any_text(max_size=40))
def test_any_text_has_tokens(text):
    """Whatever is stored, reading it neither fails nor hangs, and is stable."""
    once = canonical(tokenize(text))
    assert canonical(tokenize(text)) == once


@given(any_text(min_size=1).filter(lambda name: "\0" not in name))
def test_a_quoted_name_is_that_name_to_sqlite(name):
    """What `quote` writes names the same column to SQLite, whatever is in the name."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"CREATE TABLE t (a, {quote(name)} INT)")
    except sqlite3.OperationalError as error:
        assert "duplicate column" in str(error)  # noqa: PT017 - SQLite folded `A` to `a`
        assert fold(name) == "a"
    else:
        assert connection.execute("PRAGMA table_info(t)").fetchall()[1][1] == name
    finally:
        connection.close()
