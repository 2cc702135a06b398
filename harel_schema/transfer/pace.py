"""How large the batches of a copy are."""

from __future__ import annotations

from typing import Final

from harel_schema.transfer.model import Limits

__all__ = ["Pace"]

# A request of a server's is at most about 32 MB, and two batches are in memory, in three forms.
_MOST: Final = Limits(rows=20_000, size=8_000_000)
_SLOW: Final = 2.0
_SHARE: Final = 0.1


class Pace:
    """How large batches are: as `limits` says, or when that is None, as suits the destination.

    `round_trip` is the time in seconds that its shortest answer takes. A batch grows while
    that is much of its time, and shrinks when the destination is slow or refuses its size.
    """

    def __init__(self, limits: Limits | None, round_trip: float) -> None:
        self.limits = limits or Limits()
        self._fixed = limits is not None
        self._round_trip = round_trip

    def took(self, seconds: float) -> None:
        """Learn how long a batch took."""
        if not self._fixed and seconds > _SLOW:
            self._scale(1 / 2)
        elif not self._fixed and self._round_trip > seconds * _SHARE:
            self._scale(2)

    def refused(self) -> None:
        """Learn that a batch was too large for the destination."""
        self._scale(1 / 2)
        self._fixed = True

    def _scale(self, factor: float) -> None:
        rows_, size = (int(each * factor) for each in (self.limits.rows, self.limits.size))
        self.limits = Limits(
            rows=max(1, min(rows_, _MOST.rows)), size=max(1, min(size, _MOST.size))
        )
