"""What each revision makes, without Alembic, which takes 300 ms to import.

The revisions are the one truth. ``python -m harel_schema.frozen`` (`make generate`) writes down
what they make, with the digest of their files; when the files are others, what is written is
passed over, and Alembic is asked.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from harel_schema.names import DEFAULT_PREFIX, check_prefix
from harel_schema.scripts import script_directory

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["chain", "freeze", "schema_sql"]

_FILE: Final = "frozen.json"
_PREFIX: Final = "{prefix}"
# A prefix that no statement has in it by chance.
_STAND_IN: Final = "zz9_stands_for_prefix_9zz"


def chain() -> tuple[str, ...]:
    """Return all known revisions, from the first to head."""
    if frozen := _frozen():
        return tuple(frozen)
    from harel_schema.revisions import history  # noqa: PLC0415 - imports Alembic

    return tuple(step.revision for step in history())


def schema_sql(prefix: str = DEFAULT_PREFIX, revision: str = "head") -> tuple[str, ...]:
    """Return what `harel_schema.revisions.schema_sql` does, up to the quotes around names.

    Raises `TargetError` for a bad prefix and `MigrationError` for an unknown revision.
    """
    check_prefix(prefix)
    frozen = _frozen()
    if revision == "head" and frozen:
        revision = next(reversed(frozen))
    if revision in frozen:
        return tuple(statement.replace(_PREFIX, prefix) for statement in frozen[revision])
    from harel_schema.revisions import schema_sql  # noqa: PLC0415 - as above

    return schema_sql(prefix, revision)


@cache
def _frozen() -> dict[str, list[str]]:
    """The statements from base to each revision; empty where they are not those of the files."""
    folder = script_directory()
    try:
        written: dict[str, Any] = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except OSError:
        return {}
    found: dict[str, list[str]] = written["revisions"]
    return found if written["digest"] == _digest(folder) else {}


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted((folder / "versions").glob("*.py")):
        digest.update(f"{path.name}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def freeze() -> str:
    """Return the file's text for the revisions as they are."""
    from harel_schema import revisions  # noqa: PLC0415 - as above

    made = {
        step.revision: [
            statement.replace(_STAND_IN, _PREFIX)
            for statement in revisions.schema_sql(_STAND_IN, step.revision)
        ]
        for step in revisions.history()
    }
    document = {"digest": _digest(script_directory()), "revisions": made}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    (script_directory() / _FILE).write_text(freeze(), encoding="utf-8")
