"""A database of any release comes to head with all its rows and no others."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from harel_schema import drift, migrate
from harel_schema.errors import MigrationError
from tests.adopt.conftest import EARLIER, LATER, STORE, Database, original, renamed
from tests.migrations.conftest import Alembic

HEAD = migrate.history()[-1].revision


def promised(before: dict[str, Any], prefix: str = "harel") -> dict[str, Any]:
    """What becomes of each row of a database without a prefix: its table's name, no more."""
    after = {renamed(name, prefix): rows for name, rows in before.items() if name[:7] != "sqlite_"}
    numbers = [(renamed(name, prefix), seq) for name, seq in before["sqlite_sequence"]]
    after["sqlite_sequence"] = sorted(numbers)
    if "groups" not in before:
        # Never claimed, of no priority, in the order in which they came.
        groups = dict.fromkeys(group for _, _, group, *_ in before["messages"])
        made = enumerate(groups, 1)
        after[renamed("groups", prefix)] = [(rowid, group, 0.0, 0) for rowid, group in made]
    after[f"{prefix}_alembic_version"] = [(1, HEAD)]
    after[f"{prefix}_definitions"] = []
    return after


@pytest.mark.parametrize("release", EARLIER)
def test_every_row_is_kept(release, written):
    """Table by table and rowid by rowid, the rows and the sequences are those of before."""
    database = written(release)
    before = database.everything()
    assert all(before[name] for name in (*STORE, "messages", "sqlite_sequence"))
    done = migrate.adopt(database.target)
    assert (done.before, done.after) == (None, HEAD)
    assert database.everything() == promised(before)
    assert not drift.check(database.target, strict=True)


@pytest.mark.parametrize("release", LATER)
def test_a_later_release_is_only_upgraded(release, written):
    """Where the names are right already, adopt does what upgrade does."""
    database = written(release)
    before = database.everything()
    done = migrate.adopt(database.target)
    assert (done.after, done.renamed, done.caveats) == (HEAD, (), ())
    after = database.everything()
    assert {name: after[name] for name in before} == before
    assert not drift.check(database.target, strict=True)


@pytest.mark.parametrize("release", [EARLIER[0], EARLIER[-1], LATER[-1]])
def test_the_second_time_nothing_is_done(release, written):
    """Adopt run again says the same of the executions and writes nothing."""
    database = written(release)
    first = migrate.adopt(database.target)
    before = database.fingerprint()
    again = migrate.adopt(database.target)
    assert database.fingerprint() == before
    assert (again.before, again.renamed, again.applied) == (HEAD, (), ())
    assert again.caveats == first.caveats


@pytest.mark.parametrize("release", [EARLIER[0], EARLIER[-1]])
@pytest.mark.parametrize("prefix", ["Work_1", "_", "p" * 30])
def test_any_prefix(release, prefix, file):
    """The tables get the prefix that is asked for."""
    database = file(release)
    before = database.everything()
    migrate.adopt(database.target, prefix)
    assert database.everything() == promised(before, prefix)
    assert not drift.check(database.target, prefix=prefix, strict=True)


@pytest.mark.parametrize("release", EARLIER)
def test_upgrade_stops_and_names_adopt(release, written):
    """An upgrade leaves such a database alone and says what to run."""
    database = written(release)
    before = database.fingerprint()
    for command in (migrate.upgrade, migrate.plan):
        with pytest.raises(MigrationError, match=r"executions.*`harel-schema adopt`"):
            command(database.target)
    assert migrate.current(database.target).revision is None
    assert database.fingerprint() == before


def test_alembic_stops_too(file, root, capfd):
    """`alembic upgrade head` fails in one line that names adopt, prefix included."""
    database = file(EARLIER[-1])
    alembic = Alembic(root / "alembic.ini", capfd)
    arguments = ("-x", f"target={database.target}", "-x", "prefix=p", "upgrade", "head")
    assert "`harel-schema adopt --prefix p`" in alembic.refused(*arguments)
    alembic("-x", f"target={database.target}", "current")


@pytest.mark.parametrize("release", [EARLIER[0], EARLIER[-1], LATER[-1]])
def test_a_dry_run_writes_nothing_and_its_sql_does_it_all(release, written, tmp_path):
    """The SQL of a dry run, as a script of stdlib's, makes what the adoption makes."""
    database = written(release)
    before = database.fingerprint()
    plan = migrate.adopt(database.target, dry_run=True)
    assert plan.dry_run
    assert database.fingerprint() == before
    other = tmp_path / "other.db"
    other.write_bytes(original(release).read_bytes())
    with closing(sqlite3.connect(other)) as connection:
        connection.executescript(plan.sql)
    done = migrate.adopt(database.target)
    assert (plan.renamed, plan.created, plan.applied) == (done.renamed, done.created, done.applied)
    assert plan.caveats == done.caveats
    assert Database(str(other)).everything() == database.everything()
    assert not drift.diff(other, database.target)
