"""The indexes of the store's hot paths.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# An expression must be written in a statement exactly as in its index. The CASE keeps an index
# from refusing a row whose data is no JSON.
_FIELD = "CASE WHEN json_valid(data) THEN json_extract(data, '$.{}') END"


def upgrade() -> None:
    p = op.get_context().opts["prefix"]
    op.execute(f"CREATE INDEX {p}_timers_by_fire_at ON {p}_timers (fire_at)")
    op.execute(f"CREATE INDEX {p}_outbox_by_target ON {p}_outbox (target_id)")
    op.execute(f"CREATE INDEX {p}_spawns_by_parent ON {p}_spawns (parent_id)")
    op.execute(f"CREATE INDEX {p}_executions_by_definition ON {p}_executions (definition_id, id)")
    op.execute(
        f"CREATE INDEX {p}_executions_by_status ON {p}_executions ({_FIELD.format('status')}, id)"
    )
    op.execute(
        f"CREATE INDEX {p}_executions_roots ON {p}_executions (id) "
        f"WHERE {_FIELD.format('parent_id')} IS NULL"
    )


def downgrade() -> None:
    p = op.get_context().opts["prefix"]
    op.execute(f"DROP INDEX {p}_executions_roots")
    op.execute(f"DROP INDEX {p}_executions_by_status")
    op.execute(f"DROP INDEX {p}_executions_by_definition")
    op.execute(f"DROP INDEX {p}_spawns_by_parent")
    op.execute(f"DROP INDEX {p}_outbox_by_target")
    op.execute(f"DROP INDEX {p}_timers_by_fire_at")
