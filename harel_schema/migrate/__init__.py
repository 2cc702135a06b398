"""Migrations: Alembic's commands on our engine, each revision whole or not at all.

The functions return frozen results, print nothing, and log what they did as `harel_schema.migrate`.
"""

from harel_schema.migrate.adopting import Adopted, adopt
from harel_schema.migrate.caveats import Caveat
from harel_schema.migrate.commands import (
    current,
    downgrade,
    plan,
    stamp,
    upgrade,
    upgrade_sql,
)
from harel_schema.migrate.results import Current, Migrated, Plan, Step
from harel_schema.revisions import (
    Revision,
    alembic_config,
    history,
    schema_sql,
    script_directory,
)

__all__ = [
    "Adopted",
    "Caveat",
    "Current",
    "Migrated",
    "Plan",
    "Revision",
    "Step",
    "adopt",
    "alembic_config",
    "current",
    "downgrade",
    "history",
    "plan",
    "schema_sql",
    "script_directory",
    "stamp",
    "upgrade",
    "upgrade_sql",
]
