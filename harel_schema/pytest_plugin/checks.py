"""The four tests that the plugin adds; each fails with a line that says what to do."""

from __future__ import annotations

from contextlib import closing
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import pytest

from harel_schema import dbapi, drift, migrate
from harel_schema.drift import Kind
from harel_schema.errors import HarelSchemaError
from harel_schema.introspect import quote
from harel_schema.names import version_table
from harel_schema.report.differences import difference_lines
from harel_schema.target import TOKEN_VARIABLES, Target, with_environment_token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harel_schema.drift import Difference

__all__ = [
    "CHECKS",
    "drop_tables",
    "schema_equals_models",
    "single_head",
    "up_down_up",
    "upgrade_from_base",
]

# A version row that no single chain of revisions explains.
_ASTRAY: Final = (Kind.VERSION_DOUBLED, Kind.VERSION_UNKNOWN, Kind.VERSION_AHEAD)


def _told(check: Callable[..., None]) -> Callable[..., None]:
    """Let a test fail with the line of an error of ours, not with our stack."""

    @wraps(check)
    def told(**fixtures: Any) -> None:
        line: str | None = None
        try:
            check(**fixtures)
        except HarelSchemaError as error:
            line = str(error)
        # Outside of the except clause, so that pytest does not show the error twice.
        if line is not None:
            pytest.fail(line, pytrace=False)

    return told


@_told
def single_head(harel_target: Any, harel_prefix: str) -> None:
    """The migrations end in one revision, and the database is at one of theirs."""
    chain = migrate.history()
    heads = {each.revision for each in chain} - {each.down_revision for each in chain}
    if len(heads) != 1:
        pytest.fail(
            f"the migrations have {len(heads)} heads: {', '.join(sorted(heads))}", pytrace=False
        )
    found = drift.check(_parsed(harel_target), prefix=harel_prefix)
    _fail([each for each in found if each.kind in _ASTRAY])


@_told
def upgrade_from_base(harel_scratch: tuple[Any, str]) -> None:
    """An empty database goes up to head, and after each revision has what that one promises."""
    target, prefix = harel_scratch
    for revision in migrate.history():
        migrate.upgrade(_parsed(target), revision.revision, prefix)
        _check(target, prefix)


@_told
def schema_equals_models(harel_target: Any, harel_prefix: str) -> None:
    """The database has what its revision promises."""
    _check(harel_target, harel_prefix)


@_told
def up_down_up(harel_scratch: tuple[Any, str]) -> None:
    """Up, down to nothing and up again leaves the same schema."""
    target, prefix = harel_scratch
    migrate.upgrade(_parsed(target), "head", prefix)
    migrate.downgrade(_parsed(target), "base", prefix)
    left = set(_tables(target, prefix)) - {version_table(prefix)}
    if left:
        pytest.fail(f"a downgrade to base left {', '.join(sorted(left))}", pytrace=False)
    migrate.upgrade(_parsed(target), "head", prefix)
    _check(target, prefix)


CHECKS: Final[tuple[Callable[..., None], ...]] = (
    single_head,
    upgrade_from_base,
    schema_equals_models,
    up_down_up,
)


def drop_tables(target: Any, prefix: str) -> None:
    """Drop every table of a prefix that a test made up."""
    with closing(dbapi.connect(_parsed(target))) as connection, connection:
        for name in _tables(connection, prefix):
            connection.execute(f"DROP TABLE {quote(name)}")


def _tables(database: Any, prefix: str) -> list[str]:
    if not isinstance(database, dbapi.Connection):
        with closing(dbapi.connect(_parsed(database), read_only=True)) as connection:
            return _tables(connection, prefix)
    rows = database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, ?) = ?",
        (len(prefix) + 1, f"{prefix}_"),
    )
    return [name for (name,) in rows]


def _parsed(target: Any) -> Target:
    return with_environment_token(Target.parse(target), *TOKEN_VARIABLES)


def _check(target: Any, prefix: str) -> None:
    _fail([each for each in drift.check(_parsed(target), prefix=prefix) if each.counts])


def _fail(differences: Sequence[Difference]) -> None:
    if differences:
        lines = [line for each in differences for line in difference_lines(each)]
        pytest.fail("\n".join(lines), pytrace=False)
