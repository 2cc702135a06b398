"""A drift as data: what differs, what was promised, what was found, what mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from harel_schema.drift.kinds import Kind
from harel_schema.names import listed, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Difference", "Drift", "Kind"]


class Difference(BaseModel):
    """One difference; `str()` is its line.

    `name` is the thing that differs and `table` the table it hangs on, None for a table itself
    or a view. `expected` and `found` are SQL, or None where there is nothing. `fix` is the SQL
    statement or the command that mends it, None where there is none. `counts` is False for what
    is only worth knowing. `rows` is the number of rows that it is about, with up to five of them
    named in `examples`; None for a difference of the schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    name: str
    table: str | None = None
    expected: str | None = None
    found: str | None = None
    fix: str | None = None
    counts: bool = True
    rows: int | None = None
    examples: tuple[str, ...] = ()

    @property
    def severity(self) -> Literal["error", "note"]:
        """`error` for what counts as drift, `note` for the rest."""
        return "error" if self.counts else "note"

    @property
    def where(self) -> str:
        """The place: ``table.name``, or the name alone."""
        return self.name if self.table in (None, self.name) else f"{self.table}.{self.name}"

    def __str__(self) -> str:
        expected = "nothing" if self.expected is None else self.expected
        found = "nothing" if self.found is None else self.found
        line = f"{self.kind} {self.where}: expected {expected}, found {found}"
        if self.rows is not None:
            noun = "row" if self.rows == 1 else "rows"
            line += f" in {self.rows:,} {noun}: {listed(self.examples, self.rows)}"
        return one_line(line)


class Drift(BaseModel):
    """All differences between what was expected and what was found.

    Falsy when none of them counts; iterable, in the order of the tables. `revision` is the
    database's own and `head` the newest known (None in a comparison of two live databases).
    `others` names the tables and views that are not harel's, which do not count unless asked for.

    Blind spots: the rows, unless asked for (`harel_schema.verify` compares all of them with those
    of another database), and what else the file stores (encoding, page size, user_version). And
    two texts of a view, a trigger or an expression count as different when their tokens are,
    though they may mean the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    differences: tuple[Difference, ...] = ()
    others: tuple[str, ...] = ()
    revision: str | None = None
    head: str | None = None

    def __bool__(self) -> bool:
        return any(difference.counts for difference in self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def __iter__(self) -> Iterator[Difference]:  # type: ignore[override]
        return iter(self.differences)

    def __str__(self) -> str:
        return "\n".join(map(str, self.differences))
