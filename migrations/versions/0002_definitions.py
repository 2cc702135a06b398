"""The published machine versions.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    p = op.get_context().opts["prefix"]
    op.execute(
        f"CREATE TABLE {p}_definitions (definition_id TEXT NOT NULL, version INTEGER NOT NULL, "
        "digest TEXT NOT NULL, source TEXT NOT NULL, published_at REAL, "
        "PRIMARY KEY (definition_id, version))"
    )


def downgrade() -> None:
    p = op.get_context().opts["prefix"]
    op.execute(f"DROP TABLE {p}_definitions")
