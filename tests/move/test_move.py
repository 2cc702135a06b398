"""A move brings every row over, stops every writer of the source, and can be undone."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest
from harel.engine.store import SqliteStore

from harel_schema import AsyncLibsqlStore, LibsqlStore, StoreMoved, drift, harel, migrate
from harel_schema.drift import Kind
from harel_schema.errors import IntegrityError, MigrationError, StoreError, TransferError
from harel_schema.models import Execution
from harel_schema.move import abort, move, unfence
from harel_schema.target import Target
from harel_schema.transfer import copy
from harel_schema.verify import verify
from tests.transfer.support import contents, definitions, edit, fetch, make_source

EXE = {"id": "new", "definition_id": "d"}


class Stop(BaseException):
    """Raised out of a progress callback, as Ctrl-C is."""


def stopping_at(phase, number=0):
    """Return a callback that raises at the `number`th report of a phase."""
    seen = iter(range(number))

    def progress(report):
        if report.phase == phase and next(seen, None) is None:
            raise Stop

    return progress


def during(phase, *actions):
    """Return a callback that does one of `actions` at each time that a phase begins."""
    left = iter(actions)
    last = ""

    def progress(report):
        nonlocal last
        if report.phase == phase != last:
            next(left, lambda: None)()
        last = report.phase

    return progress


def test_every_row_comes_over(source, dest):
    """The destination holds the same cells and sequences, at the source's revision, undrifted."""
    before = contents(source)
    report = move(source, dest)
    assert (report.action, report.repaired) == ("moved", 0)
    assert contents(dest) == before == contents(source)
    assert not drift.check(dest).differences
    assert verify(source, dest).equal
    assert report.rows == sum(table.rows for table in report.tables) > 200


def test_another_prefix_is_moved_alone(tmp_path, dest):
    """Of a file with two stores, the named one is moved and fenced, and the other is not."""
    source = make_source(tmp_path / "two.db", prefix="a")
    make_source(source, prefix="a_b")
    move(source, dest, prefix="a")
    assert contents(dest)["a_executions"] == contents(source)["a_executions"]
    assert not [name for _, name, *_ in definitions(dest) if name.startswith("a_b")]
    edit(source, "DELETE FROM a_b_executions")
    with pytest.raises(sqlite3.IntegrityError, match="moved to"):
        edit(source, "DELETE FROM a_executions")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {} SELECT * FROM {} LIMIT 1",
        "INSERT OR IGNORE INTO {} SELECT * FROM {} LIMIT 1",
        "REPLACE INTO {} SELECT * FROM {} LIMIT 1",
        "DELETE FROM {}",
        "UPDATE OR IGNORE {} SET rowid = rowid + 1",
    ],
)
def test_no_table_takes_a_write_after_the_move(source, tmp_path, statement):
    """Whatever the statement and the table, it fails, naming where the database is now."""
    move(source, tmp_path / "dest.db")
    before = contents(source)
    for table in before.keys() - {"sqlite_sequence"}:
        with pytest.raises(sqlite3.IntegrityError, match=rf"^moved to {tmp_path}/dest\.db$"):
            edit(source, statement.replace("{}", table))
    assert contents(source) == before


def test_an_upgrade_of_a_moved_database_fails(source, tmp_path):
    """The version table is fenced too, so that no migration goes through."""
    move(source, tmp_path / "dest.db")
    with pytest.raises(sqlite3.IntegrityError, match="moved to"):
        edit(source, "UPDATE harel_alembic_version SET version_num = 'x'")


@pytest.mark.parametrize("driver", ["libsql", "sqlite3"])
def test_our_stores_say_where_the_database_is(source, dest, driver):
    """A store that was open, and one that is opened later, raise StoreMoved with the address."""
    with LibsqlStore(source, driver="sqlite3") as before:
        move(source, dest)
        with pytest.raises(StoreMoved) as moved:
            before.save(Execution(**EXE))
    assert moved.value.address == str(dest)
    with LibsqlStore(source, driver=driver) as after:
        assert after.is_processed("e0001", "event-1")
        for write in (
            lambda: after.commit(Execution(**EXE), [], "event"),
            lambda: after.ack_outbox(1),
            lambda: after.purge("e0001", 1 + 2**53),
            lambda: after.publish_definition("d", 1, "x", "{}"),
        ):
            with pytest.raises(StoreMoved, match="open it there"):
                write()
    with LibsqlStore(moved.value.address, driver=driver) as there:
        there.save(Execution(**EXE))


def test_our_stores_on_a_server_say_where_the_database_is(source, sqld_url, tmp_path):
    """So do they remotely, sync and async, alone and with others in one transaction."""
    copy(source, sqld_url)
    back = tmp_path / "back.db"
    move(sqld_url, back)
    with LibsqlStore(sqld_url) as store, pytest.raises(StoreMoved) as moved:
        store.save(Execution(**EXE))
    assert moved.value.address == str(back)

    async def together():
        store = await AsyncLibsqlStore.create(sqld_url)
        executions = [Execution(id=f"n{number}", definition_id="d") for number in range(5)]
        results = await asyncio.gather(*map(store.save, executions), return_exceptions=True)
        await store.close()
        return results

    assert {(type(e), e.address) for e in asyncio.run(together())} == {(StoreMoved, str(back))}


def test_the_binding_and_harels_own_store(source, tmp_path):
    """The binding raises StoreMoved; harel's own store fails with the same address."""
    from harel.engine.execution import Execution as Theirs  # noqa: PLC0415 - beside our own

    dest = tmp_path / "dest.db"
    with closing(SqliteStore(source)) as theirs:
        move(source, dest)
        with pytest.raises(sqlite3.IntegrityError, match=f"moved to {dest}"):
            theirs.save(Theirs(**EXE))
    with harel.LibsqlStore(source) as ours, pytest.raises(StoreMoved):
        ours.save(Theirs(**EXE))


def test_a_moved_store_is_still_read(source, dest):
    """Reads of the source go on: they see it as it was."""
    move(source, dest)
    with LibsqlStore(source) as store:
        assert len(store.due_timers(2e9)) == 30


def test_unfence_reopens_the_source(source, dest):
    """Unfence takes every trace away; again, it finds nothing to do."""
    before = definitions(source)
    move(source, dest)
    assert {found.kind for found in drift.check(source)} == {Kind.LEFTOVER_FENCE}
    assert unfence(source).moved_to == str(dest)
    assert definitions(source) == before
    assert unfence(source).moved_to is None
    with LibsqlStore(source) as store:
        store.save(Execution(**EXE))


@pytest.mark.parametrize("phase", ["copy", "compare", "catch up", "switch"])
def test_abort_leaves_no_trace(source, dest, phase):
    """Whatever phase a move was stopped in, abort leaves the source as it was before."""
    before = definitions(source)
    with pytest.raises(Stop):
        move(source, dest, progress=stopping_at(phase))
    assert definitions(source) != before
    edit(source, "DELETE FROM harel_timers")
    report = abort(source, dest)
    assert (report.aborted, report.unfenced) == (True, False)
    assert definitions(source) == before
    assert not abort(source, dest).aborted
    edit(source, "UPDATE harel_executions SET version = version + 1")
    assert move(source, dest).action == "moved"
    assert contents(dest) == contents(source)


def test_abort_after_the_fence_reopens_the_source(source, dest):
    """Stopped between the fence and the opening of the destination, the source is opened again."""
    before = definitions(source)
    with pytest.raises(Stop):
        move(source, dest, progress=stopping_at("switch", 3))
    with pytest.raises(sqlite3.IntegrityError, match="moved to"):
        edit(source, "DELETE FROM harel_timers")
    assert abort(source, dest).unfenced
    assert definitions(source) == before
    edit(source, "DELETE FROM harel_timers")
    with pytest.raises(StoreError):
        LibsqlStore(dest)
    report = move(source, dest)
    assert (report.action, report.repaired) == ("moved", 30)
    assert contents(dest) == contents(source)


def test_abort_of_a_finished_move_is_refused(source, dest):
    """When the destination is open the way back is a move."""
    move(source, dest)
    with pytest.raises(TransferError, match=r"finished.*move it back: harel-schema move"):
        abort(source, dest)
    with pytest.raises(TransferError, match="is moved to"):
        abort(source, source.with_name("other.db"))


def test_there_and_back_again(source, dest):
    """What is written at the destination comes back by a move, and goes there again."""
    move(source, dest)
    for here, there, key in ((dest, source, "a"), (source, dest, "b"), (dest, source, "c")):
        with LibsqlStore(here) as store:
            store.save(Execution(id=key, definition_id="d"))
        assert move(here, there).action == "moved"
        assert contents(there) == contents(here)
        with LibsqlStore(here) as store, pytest.raises(StoreMoved):
            store.save(Execution(**EXE))
    assert not drift.check(source).differences


def test_again_changes_nothing(source, dest):
    """A finished move, run again, says so."""
    move(source, dest)
    with LibsqlStore(dest) as store:
        store.save(Execution(**EXE))
    before = contents(dest)
    assert move(source, dest).action == "already moved"
    assert contents(dest) == before


def test_a_move_that_was_stopped_after_the_fence(source, dest):
    """The next run opens the destination, without looking at a row."""
    with pytest.raises(Stop):
        move(source, dest, progress=stopping_at("switch", 3))
    with pytest.raises(StoreError, match="a move into it is not finished"):
        LibsqlStore(dest)
    report = move(source, dest)
    assert (report.action, report.rows) == ("finished", 0)
    with LibsqlStore(dest) as store:
        store.save(Execution(**EXE))


def test_half_a_destination_is_of_no_use(source, dest):
    """While a move into it is not finished, a database takes nothing and is opened by nobody."""
    seen = []

    def look():
        with pytest.raises(StoreError, match="not finished"):
            LibsqlStore(dest, driver="sqlite3")
        if str(dest).endswith(".db"):
            with closing(sqlite3.connect(dest)) as connection:
                for table in contents(dest).keys() - {"sqlite_sequence", "harel_move"}:
                    with pytest.raises(sqlite3.IntegrityError, match=rf"from {source} to here is"):
                        connection.execute(f"INSERT INTO {table} DEFAULT VALUES")
        seen.append({found.kind for found in drift.check(dest)})

    move(source, dest, progress=during("catch up", look))
    assert seen == [{Kind.LEFTOVER_MOVE, Kind.VERSION_MISSING}]
    assert not drift.check(dest).differences


@pytest.mark.parametrize(
    ("phase", "number"), [("copy", 0), ("catch up", 0), ("switch", 2), ("switch", 3)]
)
def test_check_says_what_a_stopped_move_has_left(source, dest, phase, number):
    """At either end one line, which names the other one, and the command that mends it."""
    with pytest.raises(Stop):
        move(source, dest, progress=stopping_at(phase, number))
    here, there = drift.check(source), drift.check(dest)
    (mine,) = here
    if (phase, number) == ("switch", 3):
        assert (mine.kind, mine.fix) == (Kind.LEFTOVER_FENCE, None)
        assert mine.found.startswith(f"a fence: moved to {dest}; `harel-schema move` again ")
    else:
        assert (mine.kind, mine.found) == (
            Kind.LEFTOVER_MOVE,
            f"an unfinished move to {dest}: run it again, or give it up",
        )
        assert mine.fix == f"harel-schema move TARGET {dest} --abort"
    version, move_into = there
    assert (version.kind, version.fix) == (Kind.VERSION_MISSING, None)
    assert move_into.found == f"the destination of an unfinished move from {source}"
    assert move_into.fix == f"harel-schema move {source} TARGET"
    for verb in (migrate.upgrade, migrate.adopt, lambda end: migrate.stamp(end, "head")):
        with pytest.raises(MigrationError, match=r"an unfinished move from .*; finish that: "):
            verb(dest)
    assert drift.check(dest) == there


def test_the_tables_of_an_application_follow(source, dest):
    """A copy of all tables of a moved database brings the others, and nothing of the fence."""
    edit(source, "CREATE TABLE app (x)", "INSERT INTO app VALUES (1), (2)")
    move(source, dest)
    report = copy(source, dest, all_tables=True, merge=True)
    assert report.written == 2
    assert contents(dest) == contents(source)
    assert not [name for kind, name, *_ in definitions(dest) if kind == "trigger"]


def test_a_copy_of_all_tables_during_a_move_has_no_trace_of_it(source, dest, tmp_path):
    """The change log and its triggers stay with the source."""
    before = definitions(source)
    with pytest.raises(Stop):
        move(source, dest, progress=stopping_at("catch up"))
    copy(source, tmp_path / "third.db", all_tables=True)
    assert definitions(tmp_path / "third.db") == before


def test_half_a_destination_cannot_be_reopened_or_moved(source, dest):
    """Neither unfence nor another move takes half a destination for a database."""
    with pytest.raises(Stop):
        move(source, dest, progress=stopping_at("catch up"))
    with pytest.raises(TransferError, match="unfinished move from"):
        unfence(dest)
    with pytest.raises(TransferError, match="unfinished move from"):
        move(dest, source.with_name("third.db"))
    assert not source.with_name("third.db").exists()


def test_a_dry_run_writes_nothing(source, tmp_path):
    """Every check, and not a byte."""
    before = source.read_bytes()
    report = move(source, tmp_path / "dest.db", dry_run=True)
    assert (report.dry_run, report.action) == (True, "moved")
    assert source.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["source.db"]


def refused(source, dest, match, **options):
    """See that a move is refused, and that neither end has changed."""
    before = definitions(source), contents(source), contents(dest)
    with pytest.raises(TransferError, match=match):
        move(source, dest, **options)
    assert (definitions(source), contents(source), contents(dest)) == before


def test_a_destination_with_rows_is_refused(source, dest):
    """Rows of others are not dropped unless that is said."""
    copy(make_source(source.with_name("other.db"), executions=3), dest)
    refused(source, dest, "holds rows; name an empty database, or drop what it holds")
    move(source, dest, replace=True)
    assert contents(dest) == contents(source)


def test_one_move_at_a_time(source, dest, tmp_path):
    """While one move of a source is not finished, one to another place is refused."""
    third = make_source(tmp_path / "third.db", executions=0)
    with pytest.raises(Stop):
        move(source, dest, progress=stopping_at("compare"))
    refused(source, third, "is being moved to .*--abort")
    refused(third, dest, "holds an unfinished move from .*--replace")
    refused(dest, third, "holds an unfinished move from")
    refused(third, source, "is itself being moved to")


def test_a_moved_source_is_refused(source, dest, tmp_path):
    """A database that was moved away is not the source of another move, nor its destination."""
    third = make_source(tmp_path / "third.db", executions=0)
    move(source, dest)
    refused(source, third, "was moved to .*unfence")
    refused(third, source, "was moved to .*--replace")


def test_a_fence_that_points_to_nothing(source, dest, tmp_path):
    """When the destination of a finished move is gone, the error says how to reopen the source."""
    move(source, tmp_path / "dest.db")
    (tmp_path / "dest.db").unlink()
    with pytest.raises(TransferError, match="does not hold it; reopen it: harel-schema unfence"):
        move(source, tmp_path / "dest.db")


def test_rows_without_a_key_are_refused(source, dest):
    """A NULL key, which SQLite allows in two tables, names no row."""
    copy(make_source(source.with_name("empty.db"), executions=0), dest)
    edit(source, "INSERT INTO harel_executions VALUES (NULL, 'd', '{}', 1)")
    refused(source, dest, "holds rows whose key is NULL, in harel_executions")


def test_a_damaged_pair_is_refused(source, tmp_path):
    """The checks of a copy are those of a move: the same database, memory, no such file."""
    for dest in (source, ":memory:"):
        with pytest.raises(TransferError):
            move(source, dest)
    edit(source, "DROP TABLE harel_timers")
    with pytest.raises(Exception, match="table-missing harel_timers"):
        move(source, tmp_path / "dest.db")
    assert not (tmp_path / "dest.db").exists()


def test_a_token_is_in_no_fence(source, sqld):
    """A fence names the destination without its token."""
    dest = Target.parse(sqld.url + "?authToken=s3cr3t")
    move(source, dest)
    assert "s3cr3t" not in source.read_bytes().decode("latin-1")
    assert unfence(source).moved_to == sqld.url


def test_two_runs_of_one_move(source, dest):
    """A run that is overtaken by another one gives up, and harms nothing."""

    def overtake():
        assert move(source, dest).action == "moved"
        with LibsqlStore(dest, driver="sqlite3") as store:
            store.save(Execution(**EXE))

    for phase in ("compare", "catch up", "switch"):
        with pytest.raises(TransferError, match=r"another run|run the same command again"):
            move(source, dest, progress=during(phase, overtake))
        assert contents(dest)["harel_executions"] != contents(source)["harel_executions"]
        move(dest, source)
        assert contents(dest) == contents(source)
        edit(source, "DELETE FROM harel_executions WHERE id = 'new'")


def test_a_table_that_changes_meanwhile(source, dest):
    """A migration during a move stops the move, not the migration; nothing is fenced."""

    def alter():
        edit(source, "ALTER TABLE harel_trace ADD COLUMN more")

    with pytest.raises(TransferError, match="other tables or another revision"):
        move(source, dest, progress=during("catch up", alter))
    edit(source, "ALTER TABLE harel_trace DROP COLUMN more")
    assert move(source, dest).action == "moved"
    assert contents(dest) == contents(source)


def test_the_journal_of_a_file_is_made_fit(source, dest):
    """A file whose readers would stop its writers is switched to WAL, and the report says so."""
    assert fetch(source, "PRAGMA journal_mode") == [("delete",)]
    report = move(source, dest)
    assert fetch(source, "PRAGMA journal_mode") == [("wal",)]
    assert "journal_mode=wal (was delete)" in report.notes[0]


def test_guards_stop_the_last_workers_of_a_file_that_is_moved_back(source, sqld_url):
    """While a database comes back, workers that still point to the old file are still refused."""
    move(source, sqld_url)
    answers = []

    def write():
        with closing(sqlite3.connect(source)) as connection:
            try:
                connection.execute("INSERT INTO harel_executions VALUES ('x', 'd', '{}', 1)")
            except sqlite3.IntegrityError as error:
                answers.append(str(error))

    for phase in ("copy", "compare", "catch up", "switch"):
        move(sqld_url, source, progress=during(phase, write))
        unfence(sqld_url)
        move(source, sqld_url, replace=True)
    assert len(answers) == 4
    assert all("not finished" in answer or "moved to" in answer for answer in answers)
    assert contents(source) == contents(sqld_url)


def test_dbapi_says_it_too(source, dest):
    """A write past the stores is an IntegrityError with the address as its text."""
    from harel_schema import dbapi  # noqa: PLC0415 - only here

    move(source, dest)
    with closing(dbapi.connect(source)) as connection, pytest.raises(IntegrityError) as error:
        connection.execute("DELETE FROM harel_executions")
    assert str(error.value) == f"moved to {dest}"
