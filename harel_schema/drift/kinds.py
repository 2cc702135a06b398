"""What can differ."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

__all__ = ["Kind"]


class Kind(StrEnum):
    """What can differ. The values are stable: reports and users' rules name them.

    `summary` says in a sentence what a difference of this kind is.
    """

    summary: str

    def __new__(cls, value: str, summary: str) -> Self:
        """Keep the sentence beside the value."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.summary = summary
        return kind

    TABLE_MISSING = ("table-missing", "A table is missing.")
    TABLE_EXTRA = ("table-extra", "There is a table too many.")
    TABLE_RENAMED = ("table-renamed", "A table has another name.")
    AUTOINCREMENT = (
        "autoincrement",
        "AUTOINCREMENT was gained or lost: without it, a number may be given out twice.",
    )
    WITHOUT_ROWID = ("without-rowid", "WITHOUT ROWID was gained or lost.")
    STRICT = ("strict", "STRICT was gained or lost.")
    COLUMN_MISSING = ("column-missing", "A column is missing.")
    COLUMN_EXTRA = ("column-extra", "There is a column too many.")
    COLUMN_RENAMED = ("column-renamed", "A column has another name.")
    COLUMN_ORDER = ("column-order", "The columns are in another order.")
    COLUMN_TYPE = ("column-type", "A column has another declared type of the same affinity.")
    COLUMN_AFFINITY = (
        "column-affinity",
        "A column has another affinity: SQLite stores values in it otherwise.",
    )
    COLUMN_NOT_NULL = ("column-not-null", "NOT NULL was gained or lost.")
    COLUMN_CONFLICT = ("column-conflict", "NOT NULL has another ON CONFLICT clause.")
    COLUMN_DEFAULT = ("column-default", "A column has another default.")
    COLUMN_COLLATION = ("column-collation", "A column compares text by other rules.")
    COLUMN_GENERATED = (
        "column-generated",
        "A generated column computes something else, or is or is not generated.",
    )
    COLUMN_STORAGE = (
        "column-storage",
        "A generated column is STORED instead of VIRTUAL, or the reverse.",
    )
    PRIMARY_KEY = ("primary-key", "The primary key is another one.")
    UNIQUE_MISSING = ("unique-missing", "A UNIQUE constraint is missing.")
    UNIQUE_EXTRA = ("unique-extra", "There is a UNIQUE constraint too many.")
    UNIQUE_CHANGED = ("unique-changed", "A UNIQUE constraint has another ON CONFLICT clause.")
    CHECK_MISSING = ("check-missing", "A CHECK constraint is missing.")
    CHECK_EXTRA = ("check-extra", "There is a CHECK constraint too many.")
    CHECK_CHANGED = ("check-changed", "A CHECK constraint has another condition.")
    CHECK_NAME = ("check-name", "A CHECK constraint has another name.")
    FOREIGN_KEY_MISSING = ("foreign-key-missing", "A foreign key is missing.")
    FOREIGN_KEY_EXTRA = ("foreign-key-extra", "There is a foreign key too many.")
    FOREIGN_KEY_CHANGED = ("foreign-key-changed", "A foreign key has another action or deferral.")
    INDEX_MISSING = ("index-missing", "An index is missing.")
    INDEX_EXTRA = ("index-extra", "There is an index too many.")
    INDEX_RENAMED = ("index-renamed", "An index has another name.")
    INDEX_UNIQUE = ("index-unique", "An index became or is no longer UNIQUE.")
    INDEX_TERMS = ("index-terms", "An index is over other columns or expressions.")
    INDEX_ORDER = ("index-order", "An index has another direction (ASC, DESC).")
    INDEX_COLLATION = ("index-collation", "An index compares text by other rules.")
    INDEX_WHERE = ("index-where", "An index has another WHERE, or is or is not partial.")
    TRIGGER_MISSING = ("trigger-missing", "A trigger is missing.")
    TRIGGER_EXTRA = ("trigger-extra", "There is a trigger too many.")
    TRIGGER_RENAMED = ("trigger-renamed", "A trigger has another name.")
    TRIGGER_CHANGED = ("trigger-changed", "A trigger does something else.")
    VIEW_MISSING = ("view-missing", "A view is missing.")
    VIEW_EXTRA = ("view-extra", "There is a view too many.")
    VIEW_RENAMED = ("view-renamed", "A view has another name.")
    VIEW_CHANGED = ("view-changed", "A view selects something else.")
    VIRTUAL_TABLE_MISSING = ("virtual-table-missing", "A virtual table is missing.")
    VIRTUAL_TABLE_EXTRA = ("virtual-table-extra", "There is a virtual table too many.")
    VIRTUAL_TABLE_RENAMED = ("virtual-table-renamed", "A virtual table has another name.")
    VIRTUAL_TABLE_CHANGED = (
        "virtual-table-changed",
        "A virtual table has another module or other arguments.",
    )
    VERSION_MISSING = (
        "version-missing",
        "The version row is missing: nothing says at which revision the database is.",
    )
    VERSION_DOUBLED = ("version-doubled", "There are several version rows.")
    VERSION_UNKNOWN = ("version-unknown", "The version row names a revision that no release has.")
    VERSION_AHEAD = ("version-ahead", "The database is at a revision of a newer harel-schema.")
    VERSION_BEHIND = ("version-behind", "The database is behind head.")
    VERSION_DIFFERENT = ("version-different", "Two databases are at different revisions.")
    LEFTOVER_FENCE = ("leftover-fence", "A fence stops every writer: the database was moved.")
    LEFTOVER_LEDGER = ("leftover-ledger", "A copy into the database was not finished.")
    LEFTOVER_MOVE = ("leftover-move", "A move of the database is not finished.")
    LEFTOVER_ALEMBIC = ("leftover-alembic", "A batch operation of Alembic was not finished.")
    DATA_STORAGE_CLASS = (
        "data-storage-class",
        "A cell holds a storage class that its column is not for.",
    )
    DATA_NULL_KEY = ("data-null-key", "A primary key is NULL.")
    DATA_JSON = ("data-json", "A column of JSON holds something else.")
    DATA_JSON_MISMATCH = (
        "data-json-mismatch",
        "A column repeats what the row's JSON says, and says something else.",
    )
    DATA_STATUS = (
        "data-status",
        "An execution has no status that harel knows: it cannot be listed.",
    )
