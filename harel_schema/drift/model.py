"""A drift as data: what differs, what was promised, what was found, what mends it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Difference", "Drift", "Kind"]


class Kind(StrEnum):
    """What can differ. The values are stable: reports and users' rules name them."""

    TABLE_MISSING = "table-missing"
    TABLE_EXTRA = "table-extra"
    TABLE_RENAMED = "table-renamed"
    AUTOINCREMENT = "autoincrement"
    WITHOUT_ROWID = "without-rowid"
    STRICT = "strict"
    COLUMN_MISSING = "column-missing"
    COLUMN_EXTRA = "column-extra"
    COLUMN_RENAMED = "column-renamed"
    COLUMN_ORDER = "column-order"
    COLUMN_TYPE = "column-type"
    COLUMN_AFFINITY = "column-affinity"
    COLUMN_NOT_NULL = "column-not-null"
    COLUMN_CONFLICT = "column-conflict"
    COLUMN_DEFAULT = "column-default"
    COLUMN_COLLATION = "column-collation"
    COLUMN_GENERATED = "column-generated"
    COLUMN_STORAGE = "column-storage"
    PRIMARY_KEY = "primary-key"
    UNIQUE_MISSING = "unique-missing"
    UNIQUE_EXTRA = "unique-extra"
    UNIQUE_CHANGED = "unique-changed"
    CHECK_MISSING = "check-missing"
    CHECK_EXTRA = "check-extra"
    CHECK_CHANGED = "check-changed"
    CHECK_NAME = "check-name"
    FOREIGN_KEY_MISSING = "foreign-key-missing"
    FOREIGN_KEY_EXTRA = "foreign-key-extra"
    FOREIGN_KEY_CHANGED = "foreign-key-changed"
    INDEX_MISSING = "index-missing"
    INDEX_EXTRA = "index-extra"
    INDEX_RENAMED = "index-renamed"
    INDEX_UNIQUE = "index-unique"
    INDEX_TERMS = "index-terms"
    INDEX_ORDER = "index-order"
    INDEX_COLLATION = "index-collation"
    INDEX_WHERE = "index-where"
    TRIGGER_MISSING = "trigger-missing"
    TRIGGER_EXTRA = "trigger-extra"
    TRIGGER_RENAMED = "trigger-renamed"
    TRIGGER_CHANGED = "trigger-changed"
    VIEW_MISSING = "view-missing"
    VIEW_EXTRA = "view-extra"
    VIEW_RENAMED = "view-renamed"
    VIEW_CHANGED = "view-changed"
    VIRTUAL_TABLE_MISSING = "virtual-table-missing"
    VIRTUAL_TABLE_EXTRA = "virtual-table-extra"
    VIRTUAL_TABLE_RENAMED = "virtual-table-renamed"
    VIRTUAL_TABLE_CHANGED = "virtual-table-changed"
    VERSION_MISSING = "version-missing"
    VERSION_DOUBLED = "version-doubled"
    VERSION_UNKNOWN = "version-unknown"
    VERSION_AHEAD = "version-ahead"
    VERSION_BEHIND = "version-behind"
    VERSION_DIFFERENT = "version-different"
    LEFTOVER_FENCE = "leftover-fence"
    LEFTOVER_LEDGER = "leftover-ledger"
    LEFTOVER_MOVE = "leftover-move"
    LEFTOVER_ALEMBIC = "leftover-alembic"
    DATA_STORAGE_CLASS = "data-storage-class"
    DATA_NULL_KEY = "data-null-key"
    DATA_JSON = "data-json"
    DATA_JSON_MISMATCH = "data-json-mismatch"


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
        if self.rows is None:
            return line
        more = ", …" if self.rows > len(self.examples) else ""
        noun = "row" if self.rows == 1 else "rows"
        return f"{line} in {self.rows:,} {noun}: {', '.join(self.examples)}{more}"


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
