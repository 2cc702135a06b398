"""Each invariant, broken by one statement, is found, named and counted, and nothing else is."""

from __future__ import annotations

import pytest
from harel import DurableRunner

from harel_schema.doctor import Kind, Thresholds
from harel_schema.harel import LibsqlStore
from tests.store.test_zoo import Clock, runner

EVENT = """'{"id":"1","kind":"go","data":{}}'"""
LONG_AGO = -200_000.0
SPAWN = "INSERT INTO harel_spawns (parent_id, child_id, root_path, context) VALUES"
W = "WHERE id = 'w'"
MANY = "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1204)"

# What is done, what is found how often, whether the SQL that is offered mends it.
BROKEN: list[tuple[str, dict[str, int], bool]] = [
    ("INSERT INTO harel_timers VALUES ('gone', 'p', 2000.0)", {"timer-orphan": 1}, True),
    ("INSERT INTO harel_trace VALUES ('gone', 0, '{}'), ('gone', 1, '{}')",
     {"trace-orphan": 2}, True),
    ("INSERT INTO harel_processed_events VALUES ('gone', '1')", {"processed-orphan": 1}, True),
    (f"{SPAWN} ('gone', 'gone:a', '', '{{}}')", {"spawn-orphan": 1}, True),
    (f"INSERT INTO harel_outbox (target_id, event) VALUES ('gone', {EVENT})",
     {"outbox-orphan": 1}, True),
    ("UPDATE harel_executions SET data = json_set(data, '$.parent_id', 'gone') WHERE id = 'y'",
     {"child-orphan": 1}, False),
    ("INSERT INTO harel_timers VALUES ('z', 'Last', 1e12)", {"timer-finished": 1}, True),
    (f"INSERT INTO harel_timers VALUES ('y', 'Last', {LONG_AGO})", {"timer-overdue": 1}, False),
    (f"{MANY} INSERT INTO harel_trace SELECT 'w', i, '{{}}' FROM n", {"trace-long": 5}, True),
    ("UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'harel_spawns'",
     {"sequence-behind": 1}, True),
    ("UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'harel_spawns'",
     {"sequence-behind": 1}, True),
    ("DELETE FROM sqlite_sequence WHERE name = 'harel_outbox'", {"sequence-behind": 1}, True),
    ("UPDATE harel_outbox SET event = json_set(event, '$.created_time', '1960-01-01T00:00:00Z')",
     {"outbox-stale": 1}, False),
    (f"UPDATE harel_executions SET data = json_set(data, '$.updated_at', {LONG_AGO}) {W}",
     {"outbox-stale": 1, "spawns-stale": 1}, False),
    (f"INSERT INTO harel_transport_messages (group_id, event) VALUES ('z', {EVENT})",
     {"message-ungrouped": 1}, True),
    ("INSERT INTO harel_definitions VALUES ('other', 1, 'd', '{}', NULL)",
     {"definition-unpublished": 2}, False),
    ("UPDATE harel_executions SET data = '{' WHERE id = 'y'", {"data-json": 1}, False),
    ("UPDATE harel_executions SET data = json_set(data, '$.status', 'LOST') WHERE id = 'y'",
     {"data-status": 1}, False),
    ("UPDATE harel_executions SET version = version + 1 WHERE id IN ('y', 'z')",
     {"data-json-mismatch": 2}, False),
    ("UPDATE harel_executions SET definition_id = 'x'", {"data-json-mismatch": 11}, False),
    ("UPDATE harel_outbox SET event = '{}'", {"data-json": 1}, False),
    ("UPDATE harel_outbox SET event = CAST(event AS BLOB)", {"data-storage-class": 1}, True),
    ("DELETE FROM harel_executions WHERE id = 'y'",
     {"child-orphan": 2, "processed-orphan": 1, "trace-orphan": 2}, False),
    ("DROP INDEX harel_timers_by_fire_at", {"schema-drift": 1}, False),
]  # fmt: skip


def test_a_store_in_the_middle_of_its_life_is_sound(patient) -> None:
    """What harel and the store have written is no finding, whatever it waits for."""
    found = patient.diagnose()
    assert found.findings == ()
    assert found.sound
    rows = {each.table: each.rows for each in found.tables}
    assert (rows["harel_executions"], rows["harel_outbox"], rows["harel_spawns"]) == (11, 1, 1)
    assert [each.finished for each in found.tables if each.finished] == [7]
    assert all(each.bytes for each in found.tables if each.rows)
    assert found.bytes > sum(each.bytes for each in found.tables)
    assert found.measured_at is not None


@pytest.mark.parametrize(
    ("statement", "expected", "mended"), BROKEN, ids=["-".join(found) for _, found, _ in BROKEN]
)
def test_what_is_broken_is_found(patient, mend, statement, expected, mended) -> None:
    """One statement breaks it; the finding has its kind, its count and examples; SQL mends it."""
    patient.run(statement)
    found = patient.diagnose()
    assert {each.kind.value: each.count for each in found.findings} == expected
    assert all(len(each.examples) == min(each.count, 3) for each in found.findings)
    assert found.sound == (not found.of("error"))
    mend(patient, found)
    assert (patient.told() == {}) == mended


def test_a_queue_may_be_as_long_as_is_said(patient) -> None:
    """One row over the limit is too many."""
    assert patient.told(thresholds=Thresholds(queue=1)) == {}
    assert patient.told(thresholds=Thresholds(queue=0)) == {"outbox-long": 1, "spawns-long": 1}


def test_a_ring_may_be_as_large_as_is_said(local) -> None:
    """Workers may keep fewer steps, more, or all."""
    local.run(f"{MANY} INSERT INTO harel_trace SELECT 'w', i, '{{}}' FROM n")
    told = {keep: local.told(thresholds=Thresholds(trace=keep)) for keep in (0, 100, 204, 205)}
    assert told == {0: {}, 100: {"trace-long": 105}, 204: {"trace-long": 1}, 205: {}}


def test_ages_are_measured_at_the_newest_commit_or_by_the_clock(local) -> None:
    """A store that rests since 1970 is old for whoever says that its workers run."""
    assert local.told() == {}
    found = {"outbox-stale": 1, "spawns-stale": 1, "timer-overdue": 1}
    assert local.told(live=True) == found
    assert local.told(live=True, thresholds=Thresholds(age=1e12)) == {}


def test_a_clock_that_was_ahead_once_makes_nothing_old(local) -> None:
    """The newest commit is no later than now; a time that is none is none."""
    local.run(
        "UPDATE harel_executions SET data = json_set(data, '$.updated_at', 'soon') WHERE id = 'z'"
    )
    assert local.told() == {}
    local.run("UPDATE harel_executions SET data = json_set(data, '$.updated_at', 9e15)")
    assert local.told(thresholds=Thresholds(age=1e12)) == {}


def test_what_helps_by_a_store_and_a_worker_helps(local) -> None:
    """Purging the child, publishing the definition, and a worker that works mend the rest."""
    local.run(
        "UPDATE harel_executions SET data = json_set(data, '$.parent_id', 'gone')"
        " WHERE id = (SELECT max(id) FROM harel_executions WHERE id LIKE 'y:%')",
        "INSERT INTO harel_definitions VALUES ('other', 1, 'd', '{}', NULL)",
        f"UPDATE harel_executions SET data = json_set(data, '$.updated_at', {LONG_AGO}) {W}",
        f"UPDATE harel_timers SET fire_at = {LONG_AGO}",
    )
    found = local.told()
    assert set(found) == {
        "child-orphan", "definition-unpublished", "outbox-stale", "spawns-stale", "timer-overdue",
    }  # fmt: skip
    with LibsqlStore(local.target) as store:
        child = max(store.ids_with_prefix("y:"))
        assert store.purge(child, store.load(child).version)
        store.publish_definition(store.load("y").definition_id, 1, "d", "{}")
        zoo = runner(DurableRunner, store, Clock())
        zoo.fire_due_timers()
        zoo.recover(store.load("y").definition_id)
    assert local.told() == {}


def test_every_kind_is_broken_here_or_elsewhere() -> None:
    """No kind can be added without a database in which it is found."""
    named = {kind for _, found, _ in BROKEN for kind in found}
    elsewhere = {Kind.OUTBOX_LONG, Kind.SPAWNS_LONG, Kind.INTEGRITY, Kind.FOREIGN_KEY}
    assert set(Kind) <= named | elsewhere
    assert not named & elsewhere
