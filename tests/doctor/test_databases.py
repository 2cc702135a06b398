"""Databases of every sort: one clear line each, few requests, no write, little memory."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harel_schema import LibsqlStore, dbapi, migrate
from harel_schema import harel as binding
from harel_schema.doctor import Diagnosis, diagnose
from harel_schema.drift import scan as scanning
from harel_schema.errors import SchemaMismatch
from harel_schema.models import Execution
from harel_schema.target import Target
from tests.cli.conftest import run  # noqa: F401 - a fixture
from tests.support import schemas
from tests.support.proxy import FaultyProxy

if TYPE_CHECKING:
    from tests.doctor.conftest import Patient


def made(path: str, *statements: str) -> Path:
    """Return a file that the statements make."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return Path(path)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.db", None, "no such file; check the path"),
        ("empty.db", b"", "holds no tables of the prefix 'harel'; check --prefix, or make them"),
        ("text.db", b"Dear doctor, this is no database.", "is not a SQLite database: it is text"),
        ("short.db", b"SQLite format 3\0", "is cut off: 16 of 100 bytes"),
    ],
)
def test_what_is_no_store_is_one_line(run, name: str, content: bytes | None, says: str) -> None:  # noqa: F811
    """Exit 2 and one line that says what to do; nothing is created."""
    if content is not None:
        Path(name).write_bytes(content)
    code, out, err = run("doctor", name)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert Path(name).exists() == (content is not None)


def test_somebody_else_s_database_is_one_line(run, local: Patient) -> None:  # noqa: F811
    """A database without our tables, or with those of another prefix, is refused."""
    made("other.db", "CREATE TABLE people (name)")
    for args in (("other.db",), (local.target, "--prefix", "mine")):
        code, out, err = run("doctor", *args)
        assert (code, out) == (2, "")
        assert "holds no tables of the prefix" in err
        assert err.count("\n") == 1


def test_tables_of_an_old_harel_are_to_be_adopted(run, root: Path) -> None:  # noqa: F811
    """Before 0.7 they have other names; the line has the command."""
    Path("old.db").write_bytes((root / "tests" / "legacy" / "harel-0.3.1.db").read_bytes())
    ended = run("doctor", "old.db")
    assert ended.code == 2
    assert ended.err.endswith("run harel-schema adopt old.db first\n")


def test_an_older_revision_is_a_note(run) -> None:  # noqa: F811
    """What is there is examined, and the command that brings the rest is named."""
    migrate.upgrade("state.db", "0001")
    code, out, _ = run("doctor", "state.db")
    assert code == 0
    assert "note: at revision 0001, head is " in out
    assert out.endswith("state.db (57.3 kB): sound\n")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE harel_timers RENAME COLUMN fire_at TO due",
        "ALTER TABLE harel_executions RENAME COLUMN data TO document",
        "ALTER TABLE harel_executions RENAME COLUMN id TO name",
        "ALTER TABLE harel_spawns RENAME COLUMN child_id TO child",
        "DROP TABLE harel_executions",
        "DROP TABLE harel_outbox",
        "UPDATE harel_alembic_version SET version_num = '9999'",
        "INSERT INTO harel_alembic_version VALUES ('0001')",
    ],
)
def test_a_drifted_database_is_examined_as_far_as_it_goes(local: Patient, change: str) -> None:
    """Tables with wrong columns, or none, are an error of their own; what is there is read."""
    local.run("INSERT INTO harel_trace VALUES ('y', -1, 'no')", change)
    found = local.diagnose()
    kinds = {each.kind.value: each for each in found.findings}
    assert set(kinds) == {"schema-drift", "data-json"}
    assert kinds["schema-drift"].remedy == f"harel-schema check {found.target}"


def test_a_damaged_file_is_an_error_and_its_rows_are_not_read(run, local: Patient) -> None:  # noqa: F811
    """Exit 1, what SQLite says, and what to do."""
    with closing(sqlite3.connect(local.target)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'harel_timers_by_fire_at'"
        ((page,),) = connection.execute(sql).fetchall()
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    with Path(local.target).open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    code, out, _ = run("doctor", local.target)
    assert code == 1
    assert out.startswith("error: integrity: ")
    assert "remedy: restore it from a backup, or try sqlite3's .recover" in out
    assert "harel_executions: " not in out


def test_a_schema_that_cannot_be_read_is_one_line(run, local: Patient) -> None:  # noqa: F811
    """A file of which the first page is damaged has nothing to examine."""
    with closing(sqlite3.connect(local.target)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with Path(local.target).open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 400)
    code, out, err = run("doctor", local.target)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "malformed" in err


def test_a_locked_file_is_one_line(run, local: Patient) -> None:  # noqa: F811
    """A lock is waited for as long as is said."""
    with closing(sqlite3.connect(local.target)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        code, out, err = run("doctor", local.target, "--timeout", "0.01")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "locked" in err


def test_foreign_keys_of_others_are_looked_at(local: Patient) -> None:
    """The rows that refer to none are counted, by table; harel's own have no foreign keys."""
    made(
        local.target,
        "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
        "CREATE TABLE child (a REFERENCES parent, b REFERENCES parent)",
        "INSERT INTO child VALUES (1, NULL), (NULL, 2), (NULL, NULL)",
    )
    found = local.diagnose()
    assert [(e.kind, e.table, e.count, e.examples) for e in found.findings] == [
        ("foreign-key", "child", 2, ("rowid 1 -> parent",))
    ]
    assert found.sound


def test_the_file_stays_as_it_is(local: Patient) -> None:
    """No byte is written, and no file is made beside it."""
    with closing(sqlite3.connect(local.target)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    before, files = Path(local.target).read_bytes(), sorted(Path(local.target).parent.iterdir())
    local.diagnose()
    assert Path(local.target).read_bytes() == before
    assert sorted(Path(local.target).parent.iterdir()) == files


def test_a_file_that_the_other_driver_has_open_is_read_by_it(local: Patient) -> None:
    """Beside an open store of ours, the doctor uses its library."""
    local.run("INSERT INTO harel_timers VALUES ('gone', 'p', 2000.0)")
    with LibsqlStore(local.target):
        assert local.told() == {"timer-orphan": 1}


def test_a_replica_is_examined_as_a_file(sqld_url: str, tmp_path: Path) -> None:
    """What it has of its server, while a store has it open and afterwards."""
    path = tmp_path / "replica.db"
    with LibsqlStore(path, sync_url=sqld_url) as store:
        store.save(Execution(id="a", definition_id="d"))
        store.load("a")
        found = diagnose(path)
        assert (found.findings, found.tables[0].rows) == ((), 1)
    found = diagnose(path)
    assert (found.findings, found.tables[0].rows) == ((), 1)


def test_any_prefix(tmp_path: Path) -> None:
    """Two stores in one file are examined apart, each by its own prefix."""
    path = tmp_path / "state.db"
    for prefix in ("Orders", "harel"):
        with binding.LibsqlStore(path, prefix=prefix) as store:
            store.append_trace("gone", {})
    migrated = made(str(path), "DELETE FROM harel_trace")
    assert diagnose(migrated).findings == ()
    (found,) = diagnose(migrated, prefix="Orders").findings
    assert (found.kind, found.table) == ("trace-orphan", "Orders_trace")
    assert found.remedy is not None
    made(str(path), found.remedy)
    assert diagnose(migrated, prefix="Orders").findings == ()


def test_a_server_is_asked_in_few_requests(remote: Patient) -> None:
    """One for the schema, one for the whole, one for the executions, one for the other tables."""
    remote.run("INSERT INTO harel_timers VALUES ('gone', 'p', 2000.0)")
    with FaultyProxy(remote.target) as proxy:
        found = diagnose(proxy.url)
        assert len(proxy.requests) == 4
    assert [each.kind.value for each in found.findings] == ["timer-orphan"]
    assert any("while others may write" in note for note in found.notes)


@pytest.mark.parametrize("rows", [1, 3])
def test_runs_of_any_length_count_every_row_once(local: Patient, rows: int, monkeypatch) -> None:
    """However the tables are cut, the figures and findings are the same."""
    whole = local.diagnose()
    monkeypatch.setattr(scanning, "_FIRST_RUN", rows)
    monkeypatch.setattr(scanning, "_MOST", rows)
    local.run("INSERT INTO harel_timers VALUES ('gone', 'p', 2.0), ('gone', 'q', 2.0)")
    found = local.diagnose()
    assert [(e.table, e.rows, e.finished) for e in found.tables if e.table != "harel_timers"] == [
        (e.table, e.rows, e.finished) for e in whole.tables if e.table != "harel_timers"
    ]
    assert local.told() == {"timer-orphan": 2}


def test_progress_counts_every_row(local: Patient) -> None:
    """The total is known from the start, and reached at the end."""
    seen = []
    found = local.diagnose(progress=seen.append)
    total = sum(each.rows for each in found.tables)
    assert (seen[-1].rows_done, seen[-1].rows_total) == (total, total)
    assert seen[-1].bytes_done == sum(each.bytes for each in found.tables)
    assert {each.table for each in seen} >= {"harel_executions", "harel_trace"}


def test_the_document_is_what_its_schema_says(run, local: Patient) -> None:  # noqa: F811
    """JSON on stdout, valid by the published schema; progress events on stderr; exit 1."""
    local.run("DELETE FROM sqlite_sequence")
    code, out, err = run("doctor", local.target, "--format", "json")
    assert code == 1
    assert (
        schemas.problems(json.loads(out), Diagnosis.model_json_schema(mode="serialization")) == []
    )
    assert Diagnosis.model_validate_json(out).target == "state.db"
    assert {json.loads(line)["event"] for line in err.splitlines()} == {"progress"}
    quiet = run("doctor", local.target, "--format", "json", "--quiet")
    assert quiet.err == ""


def test_text_is_for_people(run, local: Patient) -> None:  # noqa: F811
    """A line a finding, worst first, its remedy under it, the figures, the verdict last."""
    local.run(
        "UPDATE harel_executions SET data = json_set(data, '$.parent_id', 'gone') WHERE id = 'y'",
        "INSERT INTO harel_timers VALUES ('gone', 'a' || char(10), 2000.0)",
        "INSERT INTO harel_timers VALUES ('z', 'Last', 1e12)",
    )
    lines = run("doctor", local.target).out.splitlines()
    assert lines[0] == (
        "error: child-orphan harel_executions: 1: id='y'; "
        "An execution's parent is not there: nobody will learn of its end."
    )
    assert lines[1].startswith("  remedy: restore the parent from a backup, or purge the child")
    assert lines[2].startswith("warning: timer-orphan harel_timers: 1: execution_id='gone' path='a")
    assert lines[3].startswith("  remedy: DELETE FROM harel_timers WHERE NOT (EXISTS (")
    assert lines[4].startswith("note: timer-finished harel_timers: 1: execution_id='z' path='Last'")
    assert lines[-1].endswith("): 1 error, 1 warning, 1 note")
    assert "  harel_executions: 11 rows, 7 finished, " in "\n".join(lines)


def test_a_warning_alone_is_no_failure(run, local: Patient) -> None:  # noqa: F811
    """Exit 0; a token is nowhere."""
    local.run("INSERT INTO harel_timers VALUES ('gone', 'p', 2000.0)")
    assert run("doctor", local.target).code == 0


def test_what_a_server_says_of_a_bad_token_is_one_line(run) -> None:  # noqa: F811
    """A server that is not there: one line, without the token."""
    code, out, err = run("doctor", "http://127.0.0.1:1", "--auth-token", "S3cr3t")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "S3cr3t" not in err


def test_dbapi_reads_what_the_doctor_offers(local: Patient) -> None:
    """The SQL of each remedy is one statement, for any client."""
    local.run("INSERT INTO harel_trace VALUES ('gone', 0, '{}')")
    (found,) = local.diagnose().findings
    with closing(dbapi.connect(local.target)) as connection:
        assert found.remedy is not None
        assert connection.execute(found.remedy).rowcount == 1
        connection.commit()


def test_advice_names_the_prefix() -> None:
    """A command that is copied from a report is about the same tables."""
    migrate.upgrade(Target.parse("state.db"), "0003", "work")
    (note,) = diagnose("state.db", prefix="work").notes
    assert note.endswith("run harel-schema upgrade --prefix work")
    with pytest.raises(SchemaMismatch, match=r"upgrade state.db --prefix other$"):
        diagnose("state.db", prefix="other")
