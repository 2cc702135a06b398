"""The schema at head as SQLAlchemy metadata, for one prefix.

The migrations own the schema (`migrations/versions`); this is the same schema as an application
or Alembic's autogenerate wants to see it. A test holds the two equal.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import REAL, Column, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.ext.compiler import compiles

from harel_schema.names import (
    DEFAULT_PREFIX,
    change_log,
    check_prefix,
    ledger_name,
    move_table,
    version_table,
)
from harel_schema.sql import field_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Relation", "exclude", "include", "metadata", "relations", "shared_metadata"]

# No foreign keys: harel declares none, and a purge deletes an execution before what hangs on it.
_RELATIONS: Final = (
    ("executions", "definition_id", "definitions", "definition_id"),
    ("outbox", "target_id", "executions", "id"),
    ("processed_events", "execution_id", "executions", "id"),
    ("spawns", "parent_id", "executions", "id"),
    ("timers", "execution_id", "executions", "id"),
    ("trace", "execution_id", "executions", "id"),
    ("transport_messages", "group_id", "transport_groups", "group_id"),
)


def metadata(prefix: str = DEFAULT_PREFIX) -> MetaData:
    """Return fresh metadata of every table that harel-schema owns under `prefix`.

    The version table is not part of it: Alembic makes it. Raises `TargetError` for a prefix
    that harel would not take.
    """
    prefix = check_prefix(prefix)
    meta = MetaData()
    _executions(meta, prefix)
    _queues(meta, prefix)
    _per_execution(meta, prefix)
    _definitions(meta, prefix)
    _transport(meta, prefix)
    return meta


@cache
def shared_metadata(prefix: str) -> MetaData:
    """Return what `metadata` does, made once: nobody may change it."""
    return metadata(prefix)


class Relation(NamedTuple):
    """A column whose values name rows of another table, though no constraint says so."""

    table: str
    column: str
    parent: str
    parent_column: str


def relations(prefix: str = DEFAULT_PREFIX) -> tuple[Relation, ...]:
    """Return how the tables under `prefix` refer to each other."""
    prefix = check_prefix(prefix)
    return tuple(
        Relation(f"{prefix}_{table}", column, f"{prefix}_{parent}", parent_column)
        for table, column, parent, parent_column in _RELATIONS
    )


def exclude(*prefixes: str) -> Callable[..., bool]:
    """Return an `include_object` with which an application's Alembic does not see our tables.

    Everything of the prefixes is left out (default: ``harel``), the version table and what a copy
    or a move keeps included; everything else is let through. Raises `TargetError` for a bad prefix.
    """
    hidden = {
        name.lower()
        for prefix in prefixes or (DEFAULT_PREFIX,)
        for name in (*shared_metadata(prefix).tables, *_bookkeeping(prefix))
    }
    return _include_object(hidden)


def include(*prefixes: str) -> Callable[..., bool]:
    """Return an `include_object` for an application whose Alembic has our `metadata` as a target.

    Only what the tools keep for themselves under the prefixes (default: ``harel``) is left out:
    no metadata has it, and autogenerate would drop it. Raises `TargetError` for a bad prefix.
    """
    hidden = {
        name.lower() for prefix in prefixes or (DEFAULT_PREFIX,) for name in _bookkeeping(prefix)
    }
    return _include_object(hidden)


def _bookkeeping(prefix: str) -> tuple[str, ...]:
    prefix = check_prefix(prefix)
    return version_table(prefix), ledger_name(prefix), move_table(prefix), change_log(prefix)


def _include_object(hidden: set[str]) -> Callable[..., bool]:
    def include_object(
        thing: Any, name: str | None, kind: str, reflected: object, compare_to: object
    ) -> bool:
        del reflected, compare_to
        # What hangs on a table is left out with it: Alembic asks about neither then.
        return kind != "table" or str(name or thing.name).lower() not in hidden

    return include_object


class _Int(Integer):
    """INT, which SQLAlchemy writes as INTEGER; what reads it back takes the two for one."""


@compiles(_Int)
def _int(type_: _Int, compiler: object, **context: object) -> str:
    # Alembic compares types by their names, and those it compiles without a column.
    del type_, compiler
    return "INT" if context.get("type_expression") is not None else "INTEGER"


def _key(name: str) -> Column[str]:
    # Lone TEXT keys are nullable in SQLite unless declared otherwise, and harel does not.
    return Column(name, Text, primary_key=True, nullable=True)


def _text(name: str, *, primary_key: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=primary_key, nullable=False)


def _seq() -> Column[int]:
    return Column("seq", Integer, primary_key=True, nullable=True)


def _executions(meta: MetaData, prefix: str) -> None:
    table = Table(
        f"{prefix}_executions",
        meta,
        _key("id"),
        _text("definition_id"),
        _text("data"),
        Column("version", Integer, nullable=False),
    )
    Index(f"{table.name}_by_definition", table.c.definition_id, table.c.id)
    Index(f"{table.name}_by_status", text(field_of("status")), table.c.id)
    Index(
        f"{table.name}_roots",
        table.c.id,
        sqlite_where=text(f"{field_of('parent_id')} IS NULL"),
    )


def _queues(meta: MetaData, prefix: str) -> None:
    outbox = Table(
        f"{prefix}_outbox",
        meta,
        _seq(),
        Column("target_id", Text),
        _text("event"),
        sqlite_autoincrement=True,
    )
    spawns = Table(
        f"{prefix}_spawns",
        meta,
        _seq(),
        _text("parent_id"),
        _text("child_id"),
        _text("root_path"),
        _text("context"),
        sqlite_autoincrement=True,
    )
    Index(f"{outbox.name}_by_target", outbox.c.target_id)
    Index(f"{spawns.name}_by_parent", spawns.c.parent_id)


def _per_execution(meta: MetaData, prefix: str) -> None:
    Table(
        f"{prefix}_processed_events",
        meta,
        _text("execution_id", primary_key=True),
        _text("event_id", primary_key=True),
    )
    timers = Table(
        f"{prefix}_timers",
        meta,
        _text("execution_id", primary_key=True),
        _text("path", primary_key=True),
        Column("fire_at", REAL, nullable=False),
    )
    Index(f"{timers.name}_by_fire_at", timers.c.fire_at)
    Table(
        f"{prefix}_trace",
        meta,
        _text("execution_id", primary_key=True),
        Column("idx", Integer, primary_key=True, nullable=False, autoincrement=False),
        _text("entry"),
    )


def _definitions(meta: MetaData, prefix: str) -> None:
    Table(
        f"{prefix}_definitions",
        meta,
        _text("definition_id", primary_key=True),
        Column("version", Integer, primary_key=True, nullable=False, autoincrement=False),
        _text("digest"),
        _text("source"),
        Column("published_at", REAL),
    )


def _transport(meta: MetaData, prefix: str) -> None:
    messages = Table(
        f"{prefix}_transport_messages",
        meta,
        _seq(),
        _text("group_id"),
        _text("event"),
        Column("locked_by", Text),
        Column("lock_expiry", REAL),
        sqlite_autoincrement=True,
    )
    groups = Table(
        f"{prefix}_transport_groups",
        meta,
        _key("group_id"),
        Column("last_claimed_at", REAL, nullable=False, server_default=text("0.0")),
        Column("priority", _Int, nullable=False, server_default=text("0")),
    )
    Index(f"{groups.name}_by_last_claimed", groups.c.last_claimed_at)
    Index(f"{messages.name}_by_group", messages.c.group_id, messages.c.seq)
