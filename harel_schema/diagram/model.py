"""A picture's content as data: boxes, their lines, relations, and what differs where."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Box", "Diagram", "Line", "Link", "Mark"]

Mark = Literal["missing", "extra", "renamed", "different", "left over"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Marked(_Value):
    name: str
    mark: Mark | None = Field(None, description="How it differs, null where it does not.")
    notes: tuple[str, ...] = Field((), description="What was expected and found, each in words.")

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said about it: how it differs, with what was expected and found."""
        if self.mark is None:
            return ()
        return tuple(f"{self.mark}: {note}" for note in self.notes) or (self.mark,)


class Line(_Marked):
    """A line of a box: a column with its type, an index with its terms, and the like."""

    kind: Literal["column", "index", "trigger", "constraint"]
    detail: str = Field("", description="The declared type, the terms of an index, a condition.")
    keys: tuple[Literal["PK", "FK", "UK"], ...] = Field(
        (), description="The keys that the column is part of or has."
    )
    nullable: bool = Field(default=False, description="Whether NULL can be stored in the column.")


class Box(_Marked):
    """A table, a view (without lines) or a virtual table (too)."""

    kind: Literal["table", "view", "virtual table"] = "table"
    own: bool = Field(default=True, description="Whether it is one of harel's.")
    lines: tuple[Line, ...] = ()


class Link(_Value):
    """The columns of a table that name a row of another one."""

    table: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    declared: bool = Field(description="Whether it is a foreign key.")
    optional: bool = Field(description="Whether a row can do without a parent: NULL is allowed.")
    many: bool = Field(description="Whether several rows can have the same parent.")
    parent_many: bool = Field(description="Whether the columns can name several rows there.")


class Diagram(_Value):
    """A schema with what differs in it: the document of ``diagram --format json``."""

    model_config = ConfigDict(title="harel-schema diagram")

    target: str = Field(description="The database, without a token.")
    prefix: str = Field(description="The first part of the name of every table of harel's.")
    revision: str | None = Field(description="The revision of the database, null if unknown.")
    differences: int = Field(description="How many differences count as drift.")
    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    others: tuple[str, ...] = Field(description="Tables and views that are not in the picture.")
