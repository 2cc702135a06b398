"""The two tables of the transport, exactly as harel 0.7 to 0.9 creates them.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    p = op.get_context().opts["prefix"]
    op.execute(
        f"CREATE TABLE {p}_transport_messages (seq INTEGER PRIMARY KEY AUTOINCREMENT, "
        "group_id TEXT NOT NULL, event TEXT NOT NULL, locked_by TEXT, lock_expiry REAL)"
    )
    op.execute(
        f"CREATE TABLE {p}_transport_groups (group_id TEXT PRIMARY KEY, "
        "last_claimed_at REAL NOT NULL DEFAULT 0.0, priority INT NOT NULL DEFAULT 0)"
    )
    op.execute(
        f"CREATE INDEX {p}_transport_groups_by_last_claimed "
        f"ON {p}_transport_groups (last_claimed_at)"
    )
    op.execute(
        f"CREATE INDEX {p}_transport_messages_by_group ON {p}_transport_messages (group_id, seq)"
    )


def downgrade() -> None:
    p = op.get_context().opts["prefix"]
    op.execute(f"DROP TABLE {p}_transport_groups")
    op.execute(f"DROP TABLE {p}_transport_messages")
