"""Opaque cursors of a listing, and the range of ids that a prefix names."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json

from harel_schema.errors import CursorError

__all__ = ["decode", "encode", "successor"]

_VERSION = 1
_LAST_CHARACTER = "\U0010ffff"
_SURROGATES = range(0xD800, 0xE000)


def encode(last_id: str, filters: object) -> str:
    """Return the cursor of the page after `last_id`, in the listing with these `filters`.

    `filters` is anything that JSON can hold; the cursor is good for equal filters only.
    """
    text = json.dumps([_VERSION, last_id, _seal(last_id, filters)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str, filters: object) -> str:
    """Return the id after which the page of `cursor` begins.

    Raises `CursorError` for anything that `encode` did not make of the same filters.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        version, last_id, seal = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (TypeError, ValueError, RecursionError, binascii.Error):
        version, last_id, seal = None, None, None
    if version != _VERSION or not isinstance(last_id, str) or seal != _seal(last_id, filters):
        raise CursorError(
            "the cursor is not one of this listing",
            remedy="pass next_cursor unchanged, with the filters of the page it came from",
        )
    return last_id


def _seal(last_id: str, filters: object) -> str:
    text = json.dumps([_VERSION, last_id, filters])
    return hashlib.blake2b(text.encode(), digest_size=9).hexdigest()


def successor(prefix: str) -> str | None:
    """Return the least text that is greater than every text that begins with `prefix`.

    In the order of SQLite's BINARY collation, which for UTF-8 is the order of code points. None
    when there is no such text: an empty prefix, or one of U+10FFFF alone.
    """
    stem = prefix.rstrip(_LAST_CHARACTER)
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return stem[:-1] + chr(following)
