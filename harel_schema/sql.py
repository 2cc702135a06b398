"""The statements of the runtime store, named, for one table prefix.

Values are never written into SQL: every statement takes them as ``?``. The only text that
varies is the prefix of the tables, which is checked before anything is built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING

from harel_schema.names import DEFAULT_PREFIX, check_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["REVISION", "TABLES", "Statements", "field_of", "many", "statements"]

REVISION = "0004"
"""The revision whose tables these statements are written for: head."""

TABLES = ("executions", "outbox", "processed_events", "timers", "spawns", "trace")
"""The tables without which no store works, each after the prefix and ``_``."""


_ROWS = "{rows}"
_VALUES = re.compile(r"VALUES \([?, ]+\)")


def field_of(name: str, data: str = "data") -> str:
    """Return the expression of a field of the execution in `data`, NULL where that is no JSON.

    It is found in its index only as revision 0004 writes it.
    """
    return f"CASE WHEN json_valid({data}) THEN json_extract({data}, '$.{name}') END"


def _sql(template: str) -> str:
    text: str = field(default=template, init=False)
    return text


@dataclass(frozen=True)
class Statements:
    """Every statement of the store's methods, with ``{p}`` filled in by the prefix.

    Build it with `statements`, which checks the prefix and keeps the result.
    """

    prefix: str

    # The version check (CAS): exactly one writer finds the row at the version it loaded.
    update: str = _sql(
        "UPDATE {p}_executions SET data = ?, version = ? WHERE id = ? AND version = ?"
    )
    # Version 0 is an execution that no store has: the row is new, or another writer was first.
    insert: str = _sql(
        "INSERT INTO {p}_executions (data, version, id, definition_id) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET data = excluded.data, version = excluded.version "
        "WHERE version = 0"
    )
    # Fails (NOT NULL) when the statement before it changed no row. A server runs it as the step
    # on which the rest of the commit depends.
    guard: str = _sql("INSERT INTO {p}_executions (id) SELECT NULL WHERE changes() = 0")
    version: str = _sql("SELECT version FROM {p}_executions WHERE id = ?")

    emit: str = _sql("INSERT INTO {p}_outbox (target_id, event) VALUES (?, ?)")
    mark_processed: str = _sql(
        "INSERT OR IGNORE INTO {p}_processed_events (execution_id, event_id) VALUES (?, ?)"
    )
    spawn: str = _sql(
        "INSERT INTO {p}_spawns (parent_id, child_id, root_path, context) VALUES (?, ?, ?, ?)"
    )
    schedule_timer: str = _sql(
        "INSERT INTO {p}_timers (execution_id, path, fire_at) VALUES (?, ?, ?) "
        "ON CONFLICT (execution_id, path) DO UPDATE SET fire_at = excluded.fire_at"
    )
    cancel_timer: str = _sql("DELETE FROM {p}_timers WHERE execution_id = ? AND path = ?")
    append_trace: str = _sql(
        "INSERT INTO {p}_trace (execution_id, idx, entry) VALUES (?, "
        "COALESCE((SELECT MAX(idx) FROM {p}_trace WHERE execution_id = ?), -1) + 1, ?)"
    )
    trim_trace: str = _sql(
        "DELETE FROM {p}_trace WHERE execution_id = ? AND idx <= "
        "(SELECT MAX(idx) FROM {p}_trace WHERE execution_id = ?) - ?"
    )

    ack_outbox: str = _sql("DELETE FROM {p}_outbox WHERE seq = ?")
    ack_spawn: str = _sql("DELETE FROM {p}_spawns WHERE seq = ?")
    delete_timer: str = _sql(
        "DELETE FROM {p}_timers WHERE execution_id = ? AND path = ? AND fire_at = ?"
    )

    purge: str = _sql("DELETE FROM {p}_executions WHERE id = ? AND version = ?")
    # What else is keyed by an execution goes with it, unless the execution itself stayed.
    purge_processed: str = _sql(
        "DELETE FROM {p}_processed_events WHERE execution_id = ? "
        "AND NOT EXISTS (SELECT 1 FROM {p}_executions WHERE id = ?)"
    )
    purge_trace: str = _sql(
        "DELETE FROM {p}_trace WHERE execution_id = ? "
        "AND NOT EXISTS (SELECT 1 FROM {p}_executions WHERE id = ?)"
    )
    purge_timers: str = _sql(
        "DELETE FROM {p}_timers WHERE execution_id = ? "
        "AND NOT EXISTS (SELECT 1 FROM {p}_executions WHERE id = ?)"
    )
    purge_outbox: str = _sql(
        "DELETE FROM {p}_outbox WHERE target_id = ? "
        "AND NOT EXISTS (SELECT 1 FROM {p}_executions WHERE id = ?)"
    )
    purge_spawns: str = _sql(
        "DELETE FROM {p}_spawns WHERE parent_id = ? "
        "AND NOT EXISTS (SELECT 1 FROM {p}_executions WHERE id = ?)"
    )

    # What a group of commits runs instead, once for all of them: the same change for many rows,
    # each with the parameters of the statement for one. An INSERT of VALUES needs no other text.
    update_many: str = _sql(
        "UPDATE {p}_executions SET data = r.column1, version = r.column2 "
        "FROM ({rows}) AS r WHERE id = r.column3 AND version = r.column4"
    )
    cancel_timers: str = _sql(
        "DELETE FROM {p}_timers WHERE rowid IN (SELECT t.rowid FROM ({rows}) AS r "
        "CROSS JOIN {p}_timers AS t ON t.execution_id = r.column1 AND t.path = r.column2)"
    )
    append_traces: str = _sql(
        "INSERT INTO {p}_trace (execution_id, idx, entry) SELECT column1, "
        "COALESCE((SELECT MAX(idx) FROM {p}_trace WHERE execution_id = column2), -1) + 1, column3 "
        "FROM ({rows})"
    )
    trim_traces: str = _sql(
        "DELETE FROM {p}_trace WHERE rowid IN (SELECT t.rowid FROM ({rows}) AS r "
        "CROSS JOIN {p}_trace AS t ON t.execution_id = r.column1 AND t.idx <= "
        "(SELECT MAX(idx) FROM {p}_trace WHERE execution_id = r.column2) - r.column3)"
    )
    ack_outbox_many: str = _sql("DELETE FROM {p}_outbox WHERE seq IN ({rows})")
    ack_spawns: str = _sql("DELETE FROM {p}_spawns WHERE seq IN ({rows})")

    publish: str = _sql(
        "INSERT OR IGNORE INTO {p}_definitions "
        "(definition_id, version, digest, source, published_at) VALUES (?, ?, ?, ?, ?)"
    )
    definition: str = _sql(
        "SELECT definition_id, version, digest, source, published_at FROM {p}_definitions "
        "WHERE definition_id = ? AND version = ?"
    )

    load: str = _sql("SELECT data FROM {p}_executions WHERE id = ?")
    load_for_event: str = _sql(
        "SELECT (SELECT data FROM {p}_executions WHERE id = ?), "
        "EXISTS (SELECT 1 FROM {p}_processed_events WHERE execution_id = ? AND event_id = ?)"
    )
    is_processed: str = _sql(
        "SELECT 1 FROM {p}_processed_events WHERE execution_id = ? AND event_id = ?"
    )
    read_trace: str = _sql("SELECT idx, entry FROM {p}_trace WHERE execution_id = ? ORDER BY idx")
    pending_outbox: str = _sql("SELECT seq, target_id, event FROM {p}_outbox ORDER BY seq LIMIT ?")
    pending_spawns: str = _sql(
        "SELECT seq, parent_id, child_id, root_path, context FROM {p}_spawns ORDER BY seq LIMIT ?"
    )
    due_timers: str = _sql(
        "SELECT execution_id, path, fire_at FROM {p}_timers WHERE fire_at <= ? "
        "ORDER BY fire_at LIMIT ?"
    )
    ids_between: str = _sql("SELECT id FROM {p}_executions WHERE id >= ? AND id < ? ORDER BY id")
    ids_from: str = _sql("SELECT id FROM {p}_executions WHERE id >= ? ORDER BY id")

    # A page is built of these: the head, the filters that apply, the tail. For several statuses
    # the first two once each, joined by UNION ALL: each comes from an index in the order of the
    # ids, and SQLite merges them.
    list_head: str = _sql(
        "SELECT id, definition_id, version, json_extract(data, '$.status'), "
        "json_extract(data, '$.outcome'), json_extract(data, '$.active_path'), "
        "json_extract(data, '$.parent_id'), json_extract(data, '$.finished_at') "
        "FROM {p}_executions WHERE 1 = 1"
    )
    list_definition: str = _sql(" AND definition_id = ?")
    list_status: str = _sql(f" AND {field_of('status')} = ?")
    list_roots: str = _sql(f" AND {field_of('parent_id')} IS NULL")
    list_after: str = _sql(" AND id > ?")
    list_tail: str = _sql(" ORDER BY id LIMIT ?")

    # What a commit left behind, read back when its answer was lost.
    stored: str = _sql("SELECT version, data FROM {p}_executions WHERE id = ?")
    emitted: str = _sql(
        "SELECT seq, target_id, event FROM {p}_outbox "
        "WHERE (target_id IN (SELECT value FROM json_each(?)) OR target_id IS NULL) "
        "AND event IN (SELECT value FROM json_each(?)) ORDER BY seq"
    )

    # And how many of `TABLES` there are: a row may promise what is not there.
    revision: str = _sql(
        "SELECT version_num, (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ("  # noqa: S608 - names of ours
        + ", ".join(f"'{{p}}_{table}'" for table in TABLES)
        + ")) FROM {p}_alembic_version"
    )
    made: str = _sql("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    tables: str = _sql(
        "SELECT name FROM sqlite_schema WHERE type = 'table' "
        "AND name IN (SELECT value FROM json_each(?))"
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name != "prefix":
                text = getattr(self, each.name).replace("{p}", self.prefix)
                object.__setattr__(self, each.name, text)

    @cached_property
    def together(self) -> Mapping[str, str]:
        """The text for many rows of each statement that has one; `many` completes it."""
        inserts = (self.insert, self.emit, self.mark_processed, self.spawn, self.schedule_timer)
        return {each: _VALUES.sub(_ROWS, each) for each in inserts} | {
            self.update: self.update_many,
            self.cancel_timer: self.cancel_timers,
            self.append_trace: self.append_traces,
            self.trim_trace: self.trim_traces,
            self.ack_outbox: self.ack_outbox_many,
            self.ack_spawn: self.ack_spawns,
        }


@cache
def many(together: str, width: int, count: int) -> str:
    """Return the text of `Statements.together` for `count` rows of `width` values."""
    row = f"({', '.join('?' * width)})"
    return together.replace(_ROWS, "VALUES " + ", ".join([row] * count))


@cache
def _built(prefix: str) -> Statements:
    return Statements(prefix)


def statements(prefix: str = DEFAULT_PREFIX) -> Statements:
    """Return the statements for the tables that begin with `prefix`, built once a prefix.

    Raises `TargetError` for a prefix that `names.check_prefix` refuses.
    """
    return _built(check_prefix(prefix))
