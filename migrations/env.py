"""Alembic's environment. What it does is in `harel_schema.migrate.environment`."""

from __future__ import annotations

from harel_schema.migrate import environment

environment.run()
