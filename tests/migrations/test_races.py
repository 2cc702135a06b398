"""Several processes bring one database to head; others open it meanwhile."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest
from harel.engine.schema import sql_schema

from harel_schema import LibsqlStore, migrate
from harel_schema.migrate.shape import Shapes
from harel_schema.models import Execution
from tests.migrations.conftest import CHAIN, HEAD

if TYPE_CHECKING:
    from subprocess import Popen

PROCESSES = 8


def finish(processes: list[Popen[str]]) -> str:
    """Wait for processes that must all succeed, and return all that they logged."""
    results = [process.communicate(timeout=90) for process in processes]
    assert {process.returncode for process in processes} == {0}, results
    return "".join(err for _, err in results)


@pytest.mark.parametrize("made", [(), tuple(sql_schema("sqlite"))], ids=["fresh", "of-harel"])
def test_of_eight_processes_one_does_the_work(made, database, alembic):
    """All of them exit 0, and each revision is run, or taken over, by one of them once."""
    database.rows(*made, "CREATE TABLE mine (id)")
    target = ("-x", f"target={database.target}")
    log = finish([alembic.start(*target, "upgrade", "head") for _ in range(PROCESSES)])
    taken = ("0001", "0003") if made else ()
    for revision in CHAIN:
        assert log.count(f"upgraded to {revision}") == (revision not in taken)
        assert log.count(f"taken over as it is at {revision}") == (revision in taken)
    assert database.rows("SELECT * FROM harel_alembic_version") == [(HEAD,)]
    assert migrate.current(database.target, shape=True).shape == ()


def test_what_another_process_made_meanwhile_is_not_taken(sqld, alembic, monkeypatch):
    """On a server, tables may come between the look at the revision and that at the names."""
    look = Shapes.refuse_taken

    def late(self, connection, revisions):
        finish([alembic.start("-x", f"target={sqld.url}", "upgrade", "head")])
        look(self, connection, revisions)

    monkeypatch.setattr(Shapes, "refuse_taken", late)
    migrate.upgrade(sqld.url)
    assert migrate.current(sqld.url, shape=True).shape == ()


def test_a_store_that_opens_meanwhile_sees_a_revision(database, alembic):
    """While the schema goes from 0001 to head, every store that opens works on what it finds."""
    migrate.upgrade(database.target, "0001")
    driver = {"driver": "sqlite3"} if not database.target.startswith("http") else {}
    first = LibsqlStore(database.target, prefix="other", **driver)
    first.close()
    process = alembic.start("-x", f"target={database.target}", "upgrade", "head")
    number, seen = 0, set()
    while HEAD not in seen or process.poll() is None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            store = LibsqlStore(database.target, create_schema=False, **driver)
        said = "".join(str(each.message) for each in caught)
        seen.add(next((each for each in CHAIN if f"at revision {each}," in said), HEAD))
        store.save(Execution(id=f"e{number}", definition_id="d"))
        assert store.load(f"e{number}").version == 1
        store.close()
        number += 1
    finish([process])
    assert "0001" in seen
    assert database.rows("SELECT count(*) FROM harel_executions") == [(number,)]


def test_a_store_may_create_what_a_migration_creates(database, alembic):
    """A store that makes the schema and processes that migrate to it leave one schema."""
    driver = {"driver": "sqlite3"} if not database.target.startswith("http") else {}
    processes = [
        alembic.start("-x", f"target={database.target}", "upgrade", "head") for _ in range(2)
    ]
    store = LibsqlStore(database.target, **driver)
    store.save(Execution(id="e", definition_id="d"))
    store.close()
    finish(processes)
    assert migrate.current(database.target, shape=True).shape == ()
    assert database.rows("SELECT id FROM harel_executions") == [("e",)]
