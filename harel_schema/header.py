"""What the first bytes of a file say, before SQLite opens it.

SQLite answers the same for a text, an encrypted file and an archive, and only says that a file
that was not wholly downloaded is malformed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harel_schema.errors import NotADatabaseError, TargetError
from harel_schema.leases import read_head

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check"]

_MAGIC: Final = b"SQLite format 3\x00"
# https://sqlite.org/fileformat2.html: the header, and the smallest page.
_HEADER: Final = 100
_SECTOR: Final = 512
# 512 random bytes hold about 221 different ones; fewer than 190 are not to be expected in 10**9.
_RANDOM: Final = 190
_ARCHIVES: Final = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}


def check(name: str, path: Path) -> None:
    """Refuse a file that is no whole SQLite database; `name` is what messages call it.

    An empty file is an empty database. A file that this process has open is passed over. Raises
    `NotADatabaseError`, and `TargetError` for one that cannot be read.
    """
    # A writer may be between the pages and the size of one moment, not of two.
    if _fault(name, path) and (fault := _fault(name, path)):
        raise fault


def _fault(name: str, path: Path) -> NotADatabaseError | None:
    try:
        head = read_head(path, _SECTOR)
        journals = any(_beside(path, suffix).exists() for suffix in ("-wal", "-journal"))
        size = path.stat().st_size
    except OSError as error:
        raise TargetError(
            f"{name}: {error.strerror}", remedy="check the path and who may read it"
        ) from error
    if not head:
        return None
    if not head.startswith(_MAGIC):
        return _other(name, head)
    promised = _size(head)
    if size < promised and not journals:
        return NotADatabaseError(
            f"{name} is cut off: {size:,} of {promised:,} bytes",
            code="SQLITE_CORRUPT",
            remedy="copy or download it again",
        )
    return None


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(head: bytes) -> int:
    """Return the size in bytes that the header promises; that of a header if it says nothing."""
    number = int.from_bytes
    if len(head) < _HEADER:
        return _HEADER
    # The number of pages counts only where it was written with the last change.
    if head[24:28] != head[92:96]:
        return _SECTOR
    page = number(head[16:18], "big")
    return number(head[28:32], "big") * (1 << 16 if page == 1 else page)


def _other(name: str, head: bytes) -> NotADatabaseError:
    what, remedy = _guess(head)
    return NotADatabaseError(
        f"{name} is not a SQLite database: {what}", code="SQLITE_NOTADB", remedy=remedy
    )


def _guess(head: bytes) -> tuple[str, str]:
    archive = next((kind for magic, kind in _ARCHIVES.items() if head.startswith(magic)), None)
    if archive is not None:
        return f"it is packed with {archive}", "unpack it first"
    if not head.strip(b"\x00"):
        return "it begins with zeros", "copy or download it again"
    if _is_text(head):
        if b"CREATE TABLE" in head or b"BEGIN TRANSACTION" in head:
            return "it is a dump in SQL", "make a database of it with `sqlite3 NEW.db < DUMP`"
        return "it is text", "check the path"
    if len(head) == _SECTOR and len(set(head)) >= _RANDOM:
        return "it is encrypted, or something else", "decrypt it first: no key can be given"
    return "it is something else", "check the path"


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # The last character may be cut off.
        if error.start < len(head) - 3:
            return False
        text = head[: error.start].decode()
    return all(character.isprintable() or character.isspace() for character in text)
