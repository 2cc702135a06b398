"""The JSON Schemas of what ``--format json`` prints: ``python -m harel_schema.report.schemas DIR``.

`make generate` writes those of this version to ``docs/schemas``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harel_schema.diagram import Diagram
from harel_schema.doctor import Diagnosis
from harel_schema.report.comparison import Comparison

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["DOCUMENTS", "json_schema"]

DOCUMENTS: Final[dict[str, type[BaseModel]]] = {
    "diagram": Diagram,
    "doctor": Diagnosis,
    "drift": Comparison,
}
"""The documents that have a published schema; ``drift`` is that of `check` and `diff`."""


def json_schema(name: str) -> str:
    """Return the JSON Schema (draft 2020-12) of a document, as text."""
    schema = DOCUMENTS[name].model_json_schema(mode="serialization")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    for document in DOCUMENTS:
        path = Path(sys.argv[1], f"{document}.schema.json")
        path.write_text(json_schema(document), encoding="utf-8")
