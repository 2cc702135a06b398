"""Results as JSON for machines."""

from __future__ import annotations

import json

from pydantic_core import to_jsonable_python

__all__ = ["to_json"]


def to_json(result: object, **facts: object) -> str:
    """Return one JSON document: the fields of a result, and `facts` that it derives.

    Bytes are base64; an infinite float is the string ``"Infinity"``, which JSON has no number for.
    """
    value = to_jsonable_python(result, bytes_mode="base64", inf_nan_mode="strings")
    if facts:
        value = {**value, **facts}
    return json.dumps(value, ensure_ascii=False, indent=2)
