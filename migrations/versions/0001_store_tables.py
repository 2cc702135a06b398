"""The six tables of the store, exactly as harel 0.7 to 0.9 creates them.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    p = op.get_context().opts["prefix"]
    op.execute(
        f"CREATE TABLE {p}_executions (id TEXT PRIMARY KEY, definition_id TEXT NOT NULL, "
        "data TEXT NOT NULL, version INTEGER NOT NULL)"
    )
    op.execute(
        f"CREATE TABLE {p}_outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, target_id TEXT, "
        "event TEXT NOT NULL)"
    )
    op.execute(
        f"CREATE TABLE {p}_processed_events (execution_id TEXT NOT NULL, "
        "event_id TEXT NOT NULL, PRIMARY KEY (execution_id, event_id))"
    )
    op.execute(
        f"CREATE TABLE {p}_timers (execution_id TEXT NOT NULL, path TEXT NOT NULL, "
        "fire_at REAL NOT NULL, PRIMARY KEY (execution_id, path))"
    )
    op.execute(
        f"CREATE TABLE {p}_spawns (seq INTEGER PRIMARY KEY AUTOINCREMENT, "
        "parent_id TEXT NOT NULL, child_id TEXT NOT NULL, root_path TEXT NOT NULL, "
        "context TEXT NOT NULL)"
    )
    op.execute(
        f"CREATE TABLE {p}_trace (execution_id TEXT NOT NULL, idx INTEGER NOT NULL, "
        "entry TEXT NOT NULL, PRIMARY KEY (execution_id, idx))"
    )


def downgrade() -> None:
    p = op.get_context().opts["prefix"]
    op.execute(f"DROP TABLE {p}_trace")
    op.execute(f"DROP TABLE {p}_spawns")
    op.execute(f"DROP TABLE {p}_timers")
    op.execute(f"DROP TABLE {p}_processed_events")
    op.execute(f"DROP TABLE {p}_outbox")
    op.execute(f"DROP TABLE {p}_executions")
