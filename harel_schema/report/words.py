"""How numbers, names and verdicts are worded, and coloured."""

from __future__ import annotations

__all__ = ["count", "painted", "shortened", "shown", "size", "size_and_free", "verdict"]

_KILO = 1_000


def count(number: int, noun: str) -> str:
    """Return ``1 row``, ``2 rows``, ``1,000 rows``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def painted(text: str, code: int, *, color: bool) -> str:
    """Return text in a colour of a terminal (the number of an SGR code), if `color`."""
    return f"\x1b[{code}m{text}\x1b[0m" if color else text


def shortened(text: str, room: int) -> str:
    """Return text of at most `room` characters; what does not fit is ``…``."""
    return text if len(text) <= room else f"{text[: room - 1]}…"


def shown(name: str) -> str:
    """Return a name as it can be seen: in quotes where there is nothing but space."""
    return name if name.strip() else f'"{name}"'


def size(number: float) -> str:
    """Return ``1.4 kB``, ``43.0 MB``, ``5.2 GB``: three digits or so, powers of 1,000."""
    if number < _KILO:
        return f"{number:,.0f} bytes"
    for unit in ("kB", "MB"):
        number /= _KILO
        if number < _KILO:
            return f"{number:,.1f} {unit}"
    return f"{number / _KILO:,.1f} GB"


def size_and_free(whole: int, free: int) -> str:
    """Return ``5.2 GB, 1.4 kB of it free``; a database without free pages by its size alone."""
    return f"{size(whole)}, {size(free)} of it free" if free else size(whole)


def verdict(differences: int, revision: str | None) -> str:
    """Return ``no drift`` or ``2 differences``, with the revision that the database is at."""
    at = f" (revision {revision})" if revision else ""
    return f"{count(differences, 'difference') if differences else 'no drift'}{at}"
