"""Where the migrations are, and Alembic's configuration for them."""

from __future__ import annotations

import io
from pathlib import Path

from alembic.config import Config

from harel_schema.errors import MigrationError

__all__ = ["alembic_config", "script_directory"]


def script_directory() -> Path:
    """Return the folder of `env.py` and the revisions: in an installed package, or a checkout.

    Raises `MigrationError` when the package was installed without it.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise MigrationError(
        f"{package} has no migrations beside it", remedy="install harel-schema again"
    )


def alembic_config() -> Config:
    """Return a configuration of Alembic for these migrations that prints nothing."""
    config = Config(stdout=io.StringIO(), output_buffer=io.StringIO())
    # A % would be read as an interpolation of the ini file.
    config.set_main_option("script_location", str(script_directory()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
