"""A database against its own revision, and against another database."""

from __future__ import annotations

import os
import re
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from harel_schema import dbapi, introspect
from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.drift import legacy
from harel_schema.drift.compare import schema_differences
from harel_schema.drift.data import data_differences
from harel_schema.drift.model import Difference, Drift, Kind
from harel_schema.drift.ours import Split, split
from harel_schema.drift.promise import chain, expected, transport
from harel_schema.drift.unfinished import Unfinished, told, unfinished
from harel_schema.introspect import Schema, fold
from harel_schema.names import DEFAULT_PREFIX, check_prefix, prefix_argument, version_table
from harel_schema.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Examined", "check", "check_schema", "diff", "examine", "examine_pair"]

Named: TypeAlias = Target | str | os.PathLike[str] | dbapi.Connection

_NUMBERED: Final = re.compile(r"[0-9]{4}")


@dataclass(frozen=True, slots=True)
class Examined:
    """A drift with both schemas: the one that was found, and what was expected of it.

    `expected` is empty where nothing was compared.
    """

    drift: Drift
    found: Schema
    expected: Schema


def check(
    database: Named,
    *,
    prefix: str = DEFAULT_PREFIX,
    strict: bool = False,
    data: bool = False,
    timeout: float = PATIENCE,
) -> Drift:
    """Compare a database with what its own revision promises.

    `database` is a target or an open connection. A target is opened read-only; nothing is created
    or changed. With `strict`, tables and views that are not harel's count too. With `data`, every
    row of harel's tables is read too, and what does not fit is counted. `timeout` is how many
    seconds to wait for a lock, or for a silent server.

    Raises `TargetError` or `NotADatabaseError` for what is no database, `DatabaseError` for a
    damaged one, `BusyError`, `ConnectionLost` and `AuthError` for one that cannot be read, and
    `InterfaceError` for a file that is open in this process with another library: pass its
    connection then.
    """
    examined = examine(database, prefix=prefix, strict=strict, data=data, timeout=timeout)
    return examined.drift


def examine(
    database: Named,
    *,
    prefix: str = DEFAULT_PREFIX,
    strict: bool = False,
    data: bool = False,
    timeout: float = PATIENCE,
) -> Examined:
    """Do what `check` does, and return what was read with it."""
    check_prefix(prefix)
    with _opened(database, timeout) as connection:
        found = introspect.read(connection, prefix=prefix)
        said = unfinished(lambda sql: connection.execute(sql).fetchall(), found, prefix)
        examined = _examined(found, said, prefix=prefix, strict=strict)
        drift = examined.drift
        if not data:
            return examined
        want = _promised(found, drift.revision or chain()[-1], prefix)
        more = tuple(data_differences(connection, found, want, prefix))
    whole = drift.model_copy(update={"differences": drift.differences + more})
    return replace(examined, drift=whole)


def diff(a: Named, b: Named, *, prefix: str = DEFAULT_PREFIX, timeout: float = PATIENCE) -> Drift:
    """Compare two live databases, every table in them: `a` is what is expected of `b`.

    Raises what `check` raises.
    """
    return examine_pair(a, b, prefix=prefix, timeout=timeout).drift


def examine_pair(
    a: Named, b: Named, *, prefix: str = DEFAULT_PREFIX, timeout: float = PATIENCE
) -> Examined:
    """Do what `diff` does, and return what was read with it."""
    want, got = (_read(database, check_prefix(prefix), timeout) for database in (a, b))
    differences = [*_versions_differ(want, got, prefix), *schema_differences(want, got)]
    return Examined(Drift(differences=tuple(differences)), found=got, expected=want)


def check_schema(
    found: Schema,
    *,
    prefix: str = DEFAULT_PREFIX,
    strict: bool = False,
    said: Unfinished | None = None,
) -> Drift:
    """Compare a schema that was read with the prefix with what its revision promises.

    `said` is what the database says of copies and moves, where it was asked.
    """
    said = said or unfinished(None, found, prefix)
    return _examined(found, said, prefix=prefix, strict=strict).drift


def _examined(found: Schema, said: Unfinished, *, prefix: str, strict: bool) -> Examined:
    revisions = chain()
    promised = Schema()
    version, revision = _version(found, prefix)
    if version is not None and version.kind is Kind.VERSION_AHEAD:
        # What a newer revision promises is not known here.
        shape, parts = _against(found, revisions[-1], prefix)
        shape.clear()
    elif revision is not None:
        shape, parts = _against(found, revision, prefix)
        promised = _promised(found, revision, prefix)
    else:
        tried = {name: _against(found, name, prefix) for name in reversed(revisions)}
        # Where nothing is there, all of head is missing.
        bare = not tried[revisions[-1]][1].ours.tables
        best = revisions[-1] if bare else min(tried, key=lambda name: len(tried[name][0]))
        shape, parts = tried[best]
        promised = _promised(found, best, prefix)
        version = version and _with_fix(
            version, best, prefix, matches=not shape and said.half is None
        )
        old = legacy.find(found, prefix) if bare else ()
        if old and version:
            version, shape, promised = _to_adopt(version, prefix), [], Schema()
            names = {table.name for each in old for table in each.tables}
            parts = replace(parts, others=tuple(n for n in parts.others if n not in names))
    more = schema_differences(Schema(), parts.strangers) if strict else ()
    # A remedy that drops what belongs to somebody else is none.
    strangers = [difference.model_copy(update={"fix": None}) for difference in more]
    left = told(parts.leftovers, said, prefix)
    drift = Drift(
        differences=(*([version] if version else []), *shape, *left, *strangers),
        others=parts.others,
        revision=revision,
        head=revisions[-1],
    )
    return Examined(drift, found=found, expected=promised)


def _to_adopt(version: Difference, prefix: str) -> Difference:
    """Say of tables that harel made before 0.7 what they are, not that others are missing."""
    found = "the tables of harel before 0.7"
    fix = f"harel-schema adopt{prefix_argument(prefix)}"
    return version.model_copy(update={"found": found, "fix": fix})


def _promised(found: Schema, revision: str, prefix: str) -> Schema:
    """What a revision promises of a database in the state of `found`."""
    want = {fold(table.name): table for table in expected(revision, prefix).tables}
    if found.versions is None:
        # Reported once, as a missing version.
        del want[fold(version_table(prefix))]
    # A revision before the one that makes them allows harel's own.
    if any(found.table(table.name) is not None for table in transport(prefix).tables):
        want = {**transport(prefix).by_name, **want}
    return Schema(tables=tuple(want.values()))


def _against(found: Schema, revision: str, prefix: str) -> tuple[list[Difference], Split]:
    schema = _promised(found, revision, prefix)
    parts = split(found, schema, prefix)
    in_the_way = {fold(view.name): "a view" for view in found.views}
    in_the_way |= {fold(virtual.name): "a virtual table" for virtual in found.virtual_tables}
    differences = []
    for each in schema_differences(schema, parts.ours):
        what = in_the_way.get(fold(each.name)) if each.kind is Kind.TABLE_MISSING else None
        # A name that is taken cannot be made, and what has it may be somebody's.
        differences.append(
            each if what is None else each.model_copy(update={"found": what, "fix": None})
        )
    others = tuple(name for name in parts.others if fold(name) not in schema.by_name)
    return differences, replace(parts, others=others)


def _version(found: Schema, prefix: str) -> tuple[Difference | None, str | None]:
    """What is wrong with the version row, and the revision to compare with (None: unknown)."""
    name, head = version_table(prefix), chain()[-1]
    versions = found.versions or ()
    if len(versions) != 1:
        kind = Kind.VERSION_DOUBLED if versions else Kind.VERSION_MISSING
        rows = ", ".join(sorted(versions)) or None
        return Difference(kind=kind, name=name, expected="one version row", found=rows), None
    version = versions[0]
    if version == head:
        return None, version
    if version in chain():
        behind = Difference(
            kind=Kind.VERSION_BEHIND,
            name=name,
            expected=head,
            found=version,
            fix="harel-schema upgrade",
            counts=False,
        )
        return behind, version
    ahead = _NUMBERED.fullmatch(version) and version > head
    kind = Kind.VERSION_AHEAD if ahead else Kind.VERSION_UNKNOWN
    fix = "pip install --upgrade harel-schema" if ahead else None
    return Difference(kind=kind, name=name, expected=head, found=version, fix=fix), None


def _with_fix(version: Difference, best: str, prefix: str, *, matches: bool) -> Difference:
    """Add the remedy for a bad version row, once it is known which revision the shape is."""
    if not matches:
        return version
    table = version_table(prefix)
    fixes = {
        Kind.VERSION_MISSING: "harel-schema upgrade",
        Kind.VERSION_UNKNOWN: f"UPDATE {table} SET version_num = '{best}';",  # noqa: S608
        Kind.VERSION_DOUBLED: f"DELETE FROM {table} WHERE version_num <> '{best}';",  # noqa: S608
    }
    return version.model_copy(update={"fix": fixes[version.kind]})


def _read(database: Named, prefix: str, timeout: float) -> Schema:
    with _opened(database, timeout) as connection:
        return introspect.read(connection, prefix=prefix)


@contextmanager
def _opened(database: Named, timeout: float) -> Iterator[dbapi.Connection]:
    """Open a target to read it, as one snapshot where it is a file; close it again."""
    if isinstance(database, dbapi.Connection):
        yield database
        return
    target = Target.parse(database)
    target.check_readable()
    opened = dbapi.connect(target, read_only=True, timeout=timeout, request_timeout=timeout)
    with closing(opened) as connection:
        if target.path is not None:
            connection.begin("DEFERRED")
        yield connection


def _versions_differ(want: Schema, got: Schema, prefix: str) -> Iterator[Difference]:
    before, after = sorted(want.versions or ()), sorted(got.versions or ())
    if before != after:
        yield Difference(
            kind=Kind.VERSION_DIFFERENT,
            name=version_table(prefix),
            expected=", ".join(before) or None,
            found=", ".join(after) or None,
        )
