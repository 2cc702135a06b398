"""SQLAlchemy's own pytest plugin, with the databases that the dialect suite needs of us."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.dialects.sqlite import provision  # noqa: F401 - registers what SQLite needs
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: F403 - its hooks become ours
from sqlalchemy.testing.provision import post_configure_engine

import harel_schema.engine  # noqa: F401 - registers the dialect where nothing is installed

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

_attach_test_schema = post_configure_engine.fns["sqlite"]


@post_configure_engine.for_db("sqlite")
def _attach_on_a_file_only(url: URL, engine: Engine, follower_ident: str | None) -> None:
    if not url.host:
        _attach_test_schema(url, engine, follower_ident)
