"""How numbers are worded."""

from __future__ import annotations

__all__ = ["count", "size"]

_KILO = 1_000


def count(number: int, noun: str) -> str:
    """Return ``1 row``, ``2 rows``, ``1,000 rows``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: float) -> str:
    """Return ``1.4 kB``, ``43.0 MB``, ``5.2 GB``: three digits or so, powers of 1,000."""
    if number < _KILO:
        return f"{number:,.0f} bytes"
    for unit in ("kB", "MB"):
        number /= _KILO
        if number < _KILO:
            return f"{number:,.1f} {unit}"
    return f"{number / _KILO:,.1f} GB"
