"""Taking over a database of any release of harel: one transaction, and then the revisions."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from harel_schema import dbapi
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.errors import (
    ConnectionLost,
    DatabaseError,
    MigrationError,
    RequestTimeout,
    TransactionLost,
)
from harel_schema.introspect import fold
from harel_schema.migrate import caveats, commands
from harel_schema.migrate.connect import check, label, open_database, own_errors, raw
from harel_schema.migrate.survey import snapshot, survey
from harel_schema.names import DEFAULT_PREFIX, check_prefix, version_table
from harel_schema.revisions import history
from harel_schema.target import Target

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from harel_schema.introspect import Schema
    from harel_schema.migrate.adoption import Adoption
    from harel_schema.migrate.caveats import Caveat
    from harel_schema.migrate.connect import Database

__all__ = ["Adopted", "adopt"]

log = logging.getLogger("harel_schema.migrate")

Named: TypeAlias = "Target | str | os.PathLike[str] | dbapi.Connection"

_RETRIES = 5


@dataclass(frozen=True, slots=True)
class Adopted:
    """What an adoption did, or with `dry_run` would do.

    `renamed` holds pairs of names, `created` and `dropped` names of tables (those that are
    dropped hold no row), `applied` the revisions that were run after it. `notes` tell what was
    left as it is; `caveats` what no change of the schema can mend. `sql` is the whole text of a
    dry run, empty otherwise.
    """

    target: str
    prefix: str
    before: str | None
    after: str | None
    renamed: tuple[tuple[str, str], ...]
    created: tuple[str, ...]
    dropped: tuple[str, ...]
    applied: tuple[str, ...]
    notes: tuple[str, ...]
    caveats: tuple[Caveat, ...]
    dry_run: bool = False
    sql: str = ""


def adopt(
    database: Named,
    prefix: str = DEFAULT_PREFIX,
    *,
    timeout: float = PATIENCE,
    dry_run: bool = False,
) -> Adopted:
    """Bring a database that harel 0.1.0 to 0.9.0 wrote to head, with all its rows and no others.

    Tables without a prefix (harel before 0.7) are renamed, together with the version row, in one
    transaction; then the revisions are run as by `upgrade`. A database that needs no renaming is
    only upgraded. `database` is a target, its text, or an open connection that is in no
    transaction. `timeout` is how many seconds to wait for a lock, or for a silent server. With
    `dry_run` nothing is written.

    Raises `SchemaMismatch` for tables that no release made, `MigrationError` when both
    generations hold rows or when there is nothing of harel's, and what `upgrade` raises.
    """
    prefix = check_prefix(prefix)
    named = database if isinstance(database, dbapi.Connection) else Target.parse(database)
    # Refuses a file that is not there, a transaction, and a database that is ahead.
    before = commands.current(named, prefix, timeout=timeout).revision
    with own_errors(), open_database(named, read_only=True, timeout=timeout) as connection:
        live = raw(connection)
        with snapshot(live):
            schema, change = survey(live, prefix)
            _refuse(named, schema, change, prefix)
            found = _caveats(live, schema, change, prefix)
    sql = ""
    after: str | None = history()[-1].revision
    if dry_run:
        sql, applied = _rehearse(schema, change, prefix)
    else:
        change = _apply(named, change, prefix, timeout)
        done = commands.upgrade(named, prefix=prefix, timeout=timeout)
        applied, after = done.applied, done.after
    return Adopted(
        target=label(named),
        prefix=prefix,
        before=before,
        after=after,
        renamed=change.renamed,
        created=change.created,
        dropped=change.dropped,
        applied=applied,
        notes=change.notes,
        caveats=found,
        dry_run=dry_run,
        sql=sql,
    )


def _refuse(named: Database, schema: Schema, change: Adoption, prefix: str) -> None:
    if change.conflicts:
        raise MigrationError(
            f"{label(named)}: {'; '.join(change.conflicts)}; which of them is true cannot be told",
            remedy="keep the one that is, empty the other, and run it again",
        )
    of_prefix = fold(prefix) + "_"
    if not change.sql and not any(fold(t.name).startswith(of_prefix) for t in schema.tables):
        raise MigrationError(
            f"{label(named)} holds nothing that harel made",
            remedy="make new tables with `harel-schema upgrade`",
        )


def _caveats(
    connection: dbapi.Connection, schema: Schema, change: Adoption, prefix: str
) -> tuple[Caveat, ...]:
    new = f"{prefix}_executions"
    now = next((old for old, renamed in change.renamed if fold(renamed) == fold(new)), new)
    table = schema.table(now)
    # One in another shape is for the upgrade to refuse, by what differs.
    readable = table is not None and {"id", "data"} <= {fold(each.name) for each in table.columns}
    return caveats.read(connection, now) if readable else ()


def _apply(named: Database, planned: Adoption, prefix: str, timeout: float) -> Adoption:
    """Change the database, and return what was done: nothing, if another process did it."""
    if not planned.sql:
        return planned
    check(named, write=True, create=False)
    lost = False
    for attempt in range(_RETRIES + 1):
        try:
            done = _change(named, prefix, timeout)
        except (ConnectionLost, TransactionLost) as error:
            final = isinstance(named, dbapi.Connection) or isinstance(error, RequestTimeout)
            if attempt == _RETRIES or final:
                raise
            lost = True
            log.warning("%s: %s; trying again", label(named), error)
        else:
            # Where the answer to the COMMIT was lost, it was done after all.
            return planned if lost and not done.sql else done
    return planned


def _change(named: Database, prefix: str, timeout: float) -> Adoption:
    with (
        own_errors(),
        open_database(named, timeout=timeout) as connection,
        connection.begin(),
    ):
        live = raw(connection)
        _, change = survey(live, prefix)
        try:
            live.executescript(";\n".join(change.sql))
        except DatabaseError as error:
            if isinstance(error, ConnectionLost | TransactionLost):
                raise
            raise MigrationError(
                f"{label(named)}: the adoption failed and was rolled back: {error}"
            ) from error
    if change.sql:
        log.info("%s: took over the tables of harel before 0.7", label(named))
    return change


def _rehearse(schema: Schema, change: Adoption, prefix: str) -> tuple[str, tuple[str, ...]]:
    """Do it to an empty copy of the schema; return the SQL of it all and the revisions."""
    with closing(dbapi.connect(":memory:")) as copy:
        copy.executescript(";\n".join([*_copied(schema, change, prefix), *change.sql]))
        following = commands.plan(copy, prefix=prefix)
    if not change.sql:
        return following.sql, following.pending
    steps = ("BEGIN IMMEDIATE", *change.sql, "COMMIT")
    return "".join(f"{step};\n\n" for step in steps) + following.sql, following.pending


def _copied(schema: Schema, change: Adoption, prefix: str) -> Iterator[str]:
    """Make the tables that the change and the revisions speak of, and the version row."""
    old = {fold(name) for name, _ in change.renamed}
    for table in schema.tables:
        name = fold(table.name)
        if name in old or name.startswith(fold(prefix) + "_"):
            yield table.sql
            yield from (index.sql for index in table.indexes)
    for version in schema.versions or ():
        yield f"INSERT INTO {version_table(prefix)} VALUES ('{version}')"  # noqa: S608 - known
