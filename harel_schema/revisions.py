"""The chain of revisions: where it is, what is in it, and what it makes, without a database."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from harel_schema.errors import MigrationError
from harel_schema.names import DEFAULT_PREFIX, check_prefix, version_table
from harel_schema.scripts import script_directory

if TYPE_CHECKING:
    from alembic.script import Script
    from sqlalchemy import Dialect

__all__ = [
    "ALEMBIC",
    "Revision",
    "alembic_config",
    "history",
    "identifiers",
    "offline",
    "schema_sql",
    "script_directory",
    "statements",
]

# Alembic's `op` and `context` are globals of the process: one command at a time.
ALEMBIC = threading.RLock()


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of the chain; `down_revision` is None for the first one."""

    revision: str
    down_revision: str | None
    summary: str


def alembic_config() -> Config:
    """Return a configuration of Alembic for these migrations that prints nothing."""
    config = Config(stdout=io.StringIO(), output_buffer=io.StringIO())
    # A % would be read as an interpolation of the ini file.
    config.set_main_option("script_location", str(script_directory()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


@cache
def history() -> tuple[Revision, ...]:
    """Return the chain of revisions, from the first to head. Cached."""
    found = ScriptDirectory.from_config(alembic_config()).walk_revisions()
    return tuple(reversed([_revision(each) for each in found]))


def identifiers(script: ScriptDirectory) -> tuple[str, ...]:
    """Return the names of a chain's revisions, from the first to head."""
    return tuple(reversed([found.revision for found in script.walk_revisions()]))


@cache
def schema_sql(prefix: str = DEFAULT_PREFIX, revision: str = "head") -> tuple[str, ...]:
    """Return the statements that take an empty database from base to `revision`.

    They hold the version table and its row, and neither BEGIN nor COMMIT: run them in one
    transaction. Cached: the chain does not change while the process lives. Raises `TargetError`
    for a bad prefix and `MigrationError` for an unknown revision.
    """
    check_prefix(prefix)
    with ALEMBIC:
        try:
            return statements(ScriptDirectory.from_config(alembic_config()), prefix, revision)
        except CommandError as error:
            raise MigrationError(str(error), remedy="see `harel-schema history`") from error


def statements(script: ScriptDirectory, prefix: str, revision: str) -> tuple[str, ...]:
    """Return what `schema_sql` does, uncached and for the chain of `script`."""
    buffer = _Statements()
    context = MigrationContext.configure(
        dialect=offline(SQLiteDialect()),
        opts={
            "as_sql": True,
            "fn": lambda heads, _: script._upgrade_revs(revision, heads),  # noqa: SLF001
            "output_buffer": buffer,
            "prefix": prefix,
            "script": script,
            "transactional_ddl": False,
            "version_table": version_table(prefix),
        },
    )
    with Operations.context(context):
        context.run_migrations()
    return tuple(buffer.found)


def offline(dialect: Dialect) -> Dialect:
    """Make `dialect` write the version row's INSERT without a RETURNING that nobody fetches."""
    dialect.insert_returning = False
    return dialect


class _Statements(io.StringIO):
    """Alembic's output buffer: it writes each statement, and each comment, in one call."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def write(self, text: str) -> int:
        statement = text.strip()
        if not statement.startswith("--"):
            self.found.append(statement.removesuffix(";"))
        return len(text)


def _revision(script: Script) -> Revision:
    # Several would be a merge of branches, and the chain has none.
    down = script.down_revision if isinstance(script.down_revision, str) else None
    return Revision(script.revision, down, script.doc)
