"""Where the migrations are."""

from __future__ import annotations

from pathlib import Path

from harel_schema.errors import MigrationError

__all__ = ["script_directory"]


def script_directory() -> Path:
    """Return the folder of `env.py` and the revisions: in an installed package, or a checkout.

    Raises `MigrationError` when the package was installed without it.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise MigrationError(
        f"{package} has no migrations beside it", remedy="install harel-schema again"
    )
