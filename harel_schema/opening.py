"""Opening a database: what the store was told, and whether the schema is there."""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from harel_schema.commit.unit import Row, Statement, Unit, nothing
from harel_schema.errors import DatabaseError, Error, StoreError, TargetError
from harel_schema.names import check_prefix, prefix_argument, version_table
from harel_schema.sql import REVISION, TABLES
from harel_schema.target import Target, Token

if TYPE_CHECKING:
    import os

    from harel_schema.sql import Statements

__all__ = ["Opening", "Options", "options", "prepare", "upgrade_command"]

Opening: TypeAlias = Generator[Statement | Unit[Any], Any, None]

_DURABILITY = {"full": "FULL", "normal": "NORMAL"}
_DRIVERS = ("libsql", "sqlite3")


@dataclass(frozen=True, slots=True)
class Options:
    """What a store was told, checked. See `LibsqlStore` for the meaning of each."""

    target: Target
    primary: Target | None
    """The server of which the target is a replica."""
    sync_interval: float | None
    prefix: str
    create_schema: bool
    driver: str
    durability: str
    timeout: float
    request_timeout: float

    @property
    def server(self) -> Target:
        """The server that takes the commits."""
        return self.primary or self.target

    @property
    def pragmas(self) -> tuple[str, ...]:
        """What a local connection is told before its first use."""
        synchronous = f"PRAGMA synchronous={_DURABILITY[self.durability]}"
        if self.primary is not None:
            return ()
        if self.target.kind == "memory":
            return (synchronous,)
        return ("PRAGMA journal_mode=WAL", synchronous)


def options(  # noqa: PLR0913 - the settings of a store
    database: str | os.PathLike[str] | Target,
    *,
    auth_token: Token,
    sync_url: str | None,
    sync_interval: float | None,
    prefix: str,
    create_schema: bool,
    driver: str,
    durability: str,
    timeout: float,
    request_timeout: float,
) -> Options:
    """Check the settings of a store; open nothing.

    Raises `TargetError` for a database or prefix that cannot be, and `ValueError` for another
    setting.
    """
    if driver not in _DRIVERS:
        raise ValueError(f"driver must be one of {', '.join(_DRIVERS)}, not {driver!r}")
    if durability not in _DURABILITY:
        raise ValueError(f"durability must be one of {', '.join(_DURABILITY)}, not {durability!r}")
    if sync_interval is not None and sync_url is None:
        raise ValueError("sync_interval is for an embedded replica; pass sync_url too")
    token = auth_token or None
    primary = None if sync_url is None else Target.parse(sync_url, auth_token=token)
    target = Target.parse(database, auth_token=None if primary else token)
    if primary is not None and (primary.kind != "remote" or target.kind != "file"):
        raise TargetError(
            f"{target} cannot be a replica of {primary}",
            remedy="name a local file as the database, and a server's URL as sync_url",
        )
    if primary is None:
        target.check_writable()
    return Options(
        target=target,
        primary=primary,
        sync_interval=sync_interval,
        prefix=check_prefix(prefix),
        create_schema=create_schema,
        driver=driver,
        durability=durability,
        timeout=timeout,
        request_timeout=request_timeout,
    )


def upgrade_command(prefix: str) -> str:
    """Return the remedy for a schema that lacks something."""
    return f"run `harel-schema upgrade{prefix_argument(prefix)}` on it"


def prepare(sql: Statements, database: str, *, create: bool) -> Opening:
    """See that the tables of `sql.prefix` are there; make them in a database that has none.

    A generator without I/O: it yields a read (a `Statement`) or a change (a `Unit`), and is sent
    its rows or has its error thrown in. A database at head costs one read. Never changes a
    schema that exists: an older one gets a UserWarning if all that the store needs is there.
    Raises `StoreError`, naming the command, when it is not, for the tables of harel before 0.7,
    which have no prefix, and for the destination of a copy or a move that is not finished.
    """
    versioned = True
    try:
        found: Sequence[Row] = yield (sql.revision, ())
    except DatabaseError as exc:
        if "no such table" not in exc.message:
            raise
        # Empty, or made by harel itself: the next read tells.
        found, versioned = (), False
    revision, tables = found[0] if found else (None, 0)
    if revision == REVISION and tables == len(TABLES):
        return
    missing = yield from _missing(sql)
    if missing and found:
        raise StoreError(
            f"{database} says that it is at revision {revision} and has no table "
            + ", ".join(missing),
            remedy=f"see what `harel-schema check{prefix_argument(sql.prefix)}` says of it",
        )
    if create and len(missing) == len(TABLES):
        yield from _create(sql, database)
        missing = yield from _missing(sql)
    if missing:
        raise StoreError(
            f"{database} has no table {', '.join(missing)}", remedy=upgrade_command(sql.prefix)
        )
    if versioned and not found:
        raise StoreError(
            f"{database} has no revision: a copy or a move into it is not finished",
            remedy="run that again, or see what `harel-schema check` says",
        )
    if isinstance(revision, str) and revision < REVISION:
        warnings.warn(
            f"{database} is at revision {revision}, older than {REVISION}; "
            + upgrade_command(sql.prefix),
            stacklevel=4,
        )


def _missing(sql: Statements) -> Generator[Statement | Unit[Any], Any, list[str]]:
    names = [f"{sql.prefix}_{table}" for table in TABLES]
    rows = yield (sql.tables, (json.dumps(names),))
    found = {name for (name,) in rows}
    return [name for name in names if name not in found]


def _create(sql: Statements, database: str) -> Opening:
    # Only a database without a schema pays for importing these.
    from harel_schema.frozen import schema_sql  # noqa: PLC0415
    from harel_schema.introspect.tokens import canonical, fold, tokenize  # noqa: PLC0415

    found = [tokenize(text) for (text,) in (yield (sql.made, ()))]
    # CREATE, TABLE, a name. New tables beside the old ones would be a second, empty life.
    if {fold(tokens[2].text) for tokens in found}.issuperset(TABLES):
        raise StoreError(
            f"{database} has the tables of harel before 0.7",
            remedy="run `harel-schema adopt` on it",
        )
    # harel's transport may have made its own two tables, exactly as the migrations make them.
    made = {canonical(tokens) for tokens in found}
    transport = f"{sql.prefix}_transport_"
    changes = tuple(
        (statement, ((),))
        for statement in schema_sql(sql.prefix)
        if not (transport in statement and canonical(tokenize(statement)) in made)
    )
    try:
        yield Unit(changes, nothing)
    except Error as exc:
        # Several may open an empty database at once. One creates, in one transaction; to the
        # others everything exists already.
        missing = yield from _missing(sql)
        if missing:
            raise StoreError(
                f"the tables cannot be made: {exc.message}",
                remedy=f"see what {version_table(sql.prefix)} says with `harel-schema current`",
            ) from exc
