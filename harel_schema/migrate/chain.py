"""What the chain of revisions makes, as SQL, without a database."""

from __future__ import annotations

import io
import threading
from functools import cache
from typing import TYPE_CHECKING

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from harel_schema.errors import MigrationError
from harel_schema.migrate.config import alembic_config
from harel_schema.names import DEFAULT_PREFIX, check_prefix, version_table

if TYPE_CHECKING:
    from sqlalchemy import Dialect

__all__ = ["ALEMBIC", "offline", "schema_sql", "statements"]

# Alembic's `op` and `context` are globals of the process: one command at a time.
ALEMBIC = threading.RLock()


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
