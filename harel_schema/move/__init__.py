"""Moving a live store to another database: every row, once, with its writers stopped for a moment.

`move` is the whole of it, `abort` gives one up, `unfence` reopens a source. Below: `statements`
(the change log, the marks and the fence as SQL), `source` and `destination` (the two ends),
`filling` (the first copy), `catchup` (changes, carried over and compared), and `switching`.
"""

from harel_schema.move.job import move
from harel_schema.move.model import AbortReport, MoveAction, MoveReport, Switched, UnfenceReport
from harel_schema.move.undo import abort, unfence

__all__ = [
    "AbortReport",
    "MoveAction",
    "MoveReport",
    "Switched",
    "UnfenceReport",
    "abort",
    "move",
    "unfence",
]
