"""Reading a live schema into a picture's content: where each thing stands, and its marks."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal, TypeVar

from harel_schema import tables
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.diagram.model import Box, Diagram, Line, Link
from harel_schema.drift import Examined, Kind, examine
from harel_schema.drift.ours import internal_tables
from harel_schema.introspect import Column, Index, Trigger, fold
from harel_schema.names import DEFAULT_PREFIX, fence_trigger, log_trigger
from harel_schema.target import Target

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    from harel_schema.diagram.model import Mark
    from harel_schema.drift import Difference
    from harel_schema.introspect import Key, Table

__all__ = ["draw", "read"]

_Thing = TypeVar("_Thing", Column, Index, Trigger)


def read(
    database: Target | str | os.PathLike[str],
    *,
    prefix: str = DEFAULT_PREFIX,
    all_tables: bool = False,
    timeout: float = PATIENCE,
) -> Diagram:
    """Read the schema of a database, and mark what `drift.check` finds in it. Changes nothing.

    With `all_tables`, tables and views that are not harel's are in it too; without a mark, for
    nobody said what they should be. `timeout` is how many seconds to wait for a lock, or for a
    silent server. Raises what `drift.check` raises.
    """
    target = Target.parse(database)
    examined = examine(target, prefix=prefix, timeout=timeout)
    return draw(examined, str(target), prefix=prefix, all_tables=all_tables)


def draw(
    examined: Examined, target: str, *, prefix: str = DEFAULT_PREFIX, all_tables: bool = False
) -> Diagram:
    """Return the picture of a schema that was compared already; `target` is without a token."""
    drift = examined.drift
    hidden = set() if all_tables else {fold(name) for name in drift.others}
    picture = _Picture(examined, prefix, hidden)
    return Diagram(
        target=target,
        prefix=prefix,
        revision=drift.revision,
        differences=len(picture.counted),
        boxes=tuple(picture.boxes()),
        links=tuple(picture.links()),
        others=() if all_tables else drift.others,
    )


class _Picture:
    """The boxes of a schema, and where each column of an expected table is drawn."""

    def __init__(self, examined: Examined, prefix: str, hidden: set[str]) -> None:
        self.examined = examined
        self.prefix = prefix
        self.hidden = hidden
        self.foreign = {fold(name) for name in examined.drift.others}
        self.counted = [each for each in examined.drift if each.counts]
        # By the folded name of a table: what is said of it, and of what it has.
        self.of_table: dict[str, list[Difference]] = defaultdict(list)
        self.in_table: dict[str, list[Difference]] = defaultdict(list)
        for each in self.counted:
            inner = each.table is not None and each.rows is None
            group = self.in_table if inner else self.of_table
            if each.rows is None:
                group[fold(each.table or _found_name(each))].append(each)
        # Tables and columns by the folded names under which the relations know them.
        self.drawn: dict[str, Table] = {}
        self.columns: dict[tuple[str, str], str] = {}

    def boxes(self) -> Iterator[Box]:
        """Yield the tables, what is missing in its place among them, then what has no lines."""
        found = self.examined.found
        known = internal_tables(found)
        there = [table for table in found.tables if not known(table) and self._shown(table.name)]
        missing = [
            table
            for table in self.examined.expected.tables
            if any(each.kind is Kind.TABLE_MISSING for each in self.of_table[fold(table.name)])
        ]
        for table in sorted([*there, *missing], key=lambda table: fold(table.name)):
            yield self._box(table)
        bare = [("view", view.name) for view in found.views]
        bare += [("virtual table", virtual.name) for virtual in found.virtual_tables]
        for kind, name in bare:
            if self._shown(name):
                yield Box.model_validate({"kind": kind, **self._facts(name)})

    def _shown(self, name: str) -> bool:
        return fold(name) not in self.hidden

    def _facts(self, name: str) -> dict[str, object]:
        own = fold(name) not in self.foreign
        return {"name": name, "own": own, **_marks(self.of_table[fold(name)])}

    def _box(self, table: Table) -> Box:
        said = self.of_table[fold(table.name)]
        renamed = next((each for each in said if each.kind is Kind.TABLE_RENAMED), None)
        name = renamed.name if renamed else table.name
        self.drawn[fold(name)] = table
        want = self.examined.expected.table(name) or table
        lines = tuple(self._lines(name, want, table))
        return Box(lines=lines, **self._facts(table.name))

    def _lines(self, name: str, want: Table, got: Table) -> Iterator[Line]:
        said: dict[tuple[str, str], list[Difference]] = defaultdict(list)
        rest = []
        for each in self.in_table[fold(got.name)]:
            thing = _thing(each)
            if thing == "constraint":
                rest.append(each)
            else:
                said[thing, fold(_found_name(each))].append(each)
        for column in _merged(want.columns, got.columns, said, "column"):
            marks = said["column", fold(column.name)]
            place = marks[0].name if marks else column.name
            self.columns[fold(name), fold(place)] = column.name
            yield _column(column, got, marks)
        for index in _merged(want.indexes, got.indexes, said, "index"):
            yield _index(index, said["index", fold(index.name)])
        for trigger in _merged(want.triggers, got.triggers, said, "trigger"):
            marks = said["trigger", fold(trigger.name)] or self._of_a_move(trigger)
            yield Line(kind="trigger", name=trigger.name, **_marks(marks))
        yield from _constraints(got)
        for each in rest:
            words = each.kind.value.replace("-", " ")
            yield Line(kind="constraint", name=words, **_marks([each]))

    def _of_a_move(self, trigger: Trigger) -> list[Difference]:
        """Return what is said once for all the triggers that a move has left."""
        begins = fold(fence_trigger(self.prefix)), fold(log_trigger(self.prefix))
        kinds = (Kind.LEFTOVER_FENCE, Kind.LEFTOVER_MOVE)
        said = [each for each in self.counted if each.kind in kinds and each.table is None]
        return said[:1] if fold(trigger.name).startswith(begins) else []

    def links(self) -> Iterator[Link]:
        """Yield the foreign keys, then the relations that no constraint declares."""
        declared = set()
        for table in list(self.drawn.values()):
            for key in table.foreign_keys:
                parent = self.drawn.get(fold(key.parent))
                ends = key.parent_columns or _names(parent.primary_key if parent else None)
                if parent is not None and len(ends) == len(key.columns):
                    declared.add((fold(table.name), key.columns))
                    yield _link(table, key.columns, parent, ends, declared=True)
        for relation in tables.relations(self.prefix):
            child = self.drawn.get(fold(relation.table))
            parent = self.drawn.get(fold(relation.parent))
            column = self.columns.get((fold(relation.table), relation.column))
            end = self.columns.get((fold(relation.parent), relation.parent_column))
            if not (child and parent and column and end):
                continue
            if (fold(child.name), (fold(column),)) not in declared:
                yield _link(child, (column,), parent, (end,), declared=False)


def _found_name(difference: Difference) -> str:
    """The name of what is drawn: of a renamed thing the new one."""
    renamed = difference.kind.value.endswith("-renamed")
    return (difference.found or "") if renamed else difference.name


def _thing(difference: Difference) -> Literal["column", "index", "trigger", "constraint"]:
    kind = difference.kind
    if kind.value.startswith("leftover-"):
        return "trigger"
    if kind.value.startswith("column-") and kind is not Kind.COLUMN_ORDER:
        return "column"
    if kind.value.startswith("index-"):
        return "index"
    return "trigger" if kind.value.startswith("trigger-") else "constraint"


def _marks(differences: Sequence[Difference]) -> dict[str, object]:
    if not differences:
        return {}
    marks = [_mark(each.kind) for each in differences]
    return {"mark": marks[0], "notes": tuple(filter(None, map(_note, differences, marks)))}


def _mark(kind: Kind) -> Mark:
    for ending in ("missing", "extra", "renamed"):
        if kind.value.endswith(f"-{ending}"):
            return ending
    return "left over" if kind.value.startswith("leftover-") else "different"


def _note(difference: Difference, mark: Mark) -> str:
    if mark == "renamed":
        return f"expected {difference.expected}"
    if mark == "different":
        return f"expected {difference.expected or 'nothing'}, found {difference.found or 'nothing'}"
    if _thing(difference) == "constraint" and difference.table is not None:
        return difference.expected or difference.found or ""
    return ""


def _merged(
    want: Iterable[_Thing],
    got: Iterable[_Thing],
    said: dict[tuple[str, str], list[Difference]],
    thing: str,
) -> list[_Thing]:
    """What is there, with what is missing after what it should come after."""
    lines = list(got)
    at = 0
    for each in want:
        if any(_mark(d.kind) == "missing" for d in said[thing, fold(each.name)]):
            lines.insert(at, each)
        places = [i for i, line in enumerate(lines) if fold(line.name) == fold(each.name)]
        at = places[0] + 1 if places else at
    return lines


def _column(column: Column, table: Table, marks: Sequence[Difference]) -> Line:
    name = fold(column.name)
    keys = [
        key
        for key, there in (
            ("PK", name in map(fold, _names(table.primary_key))),
            ("FK", any(name in map(fold, key.columns) for key in table.foreign_keys)),
            ("UK", any([name] == [fold(n) for n in _names(key)] for key in table.uniques)),
        )
        if there
    ]
    made = f"AS ({column.generated.expression})" if column.generated else ""
    detail = " ".join(filter(None, (column.type, made)))
    rowid = table.rowid_alias is not None and fold(table.rowid_alias) == name
    facts = {"name": column.name, "detail": detail, "keys": keys, **_marks(marks)}
    facts["nullable"] = not (column.not_null or rowid)
    return Line.model_validate({"kind": "column", **facts})


def _index(index: Index, marks: Sequence[Difference]) -> Line:
    unique = "UNIQUE " if index.unique else ""
    where = f" WHERE {index.where}" if index.where else ""
    detail = f"{unique}({', '.join(map(str, index.terms))}){where}"
    facts = {"name": index.name, "detail": detail, **_marks(marks)}
    return Line.model_validate({"kind": "index", **facts})


def _constraints(table: Table) -> Iterator[Line]:
    for key in table.uniques:
        if len(key.terms) > 1:
            yield Line(kind="constraint", name="unique", detail=str(key))
    for check in table.checks:
        detail = f"({check.expression})"
        yield Line(kind="constraint", name=f"check {check.name or ''}".strip(), detail=detail)


def _names(key: Key | Index | None) -> tuple[str, ...]:
    return tuple(term.text for term in key.terms) if key else ()


def _link(
    child: Table, columns: Sequence[str], parent: Table, ends: Sequence[str], *, declared: bool
) -> Link:
    by_name = child.by_name
    there = [by_name[fold(name)] for name in columns if fold(name) in by_name]
    # A lone key is nullable in SQLite, but each row has its own.
    return Link(
        table=child.name,
        columns=tuple(columns),
        parent=parent.name,
        parent_columns=tuple(ends),
        declared=declared,
        optional=any(not column.not_null for column in there),
        many=not _unique(child, columns),
        parent_many=not _unique(parent, ends),
    )


def _unique(table: Table, columns: Iterable[str]) -> bool:
    """Whether no two rows have the same values in these columns."""
    keys: list[Key | Index] = [*table.uniques]
    keys += [index for index in table.indexes if index.unique and index.where is None]
    if table.primary_key is not None:
        keys.append(table.primary_key)
    given = set(map(fold, columns))
    return any(set(_names(key)) <= given for key in keys)
