"""What no schema change can mend is named, and nothing else is."""

from __future__ import annotations

import json

import pytest

from harel_schema import dbapi, report
from harel_schema.migrate import adopt
from harel_schema.migrate.caveats import NAMED, Caveat, read


@pytest.fixture
def executions():
    """Return an empty table of executions, and a function that adds one of some state."""
    connection = dbapi.connect(":memory:")
    connection.execute("CREATE TABLE executions (id TEXT PRIMARY KEY, data TEXT)")

    def add(name: str, data: str | None = None, **state: object) -> None:
        whole = {"status": "RUNNING", "context": {}, "children": {}} | state
        connection.execute(
            "INSERT INTO executions VALUES (?, ?)", (name, data or json.dumps(whole))
        )

    yield connection, add
    connection.close()


def waiting(numbers: list[str], **child: object) -> dict:
    """Return the state of an execution that waits in Work for children of these numbers."""
    children = {f"e:Work:{number}": {"submachine": True} | child for number in numbers}
    return {"active_path": "Work", "children": children}


@pytest.mark.parametrize(
    ("state", "named"),
    [
        (waiting(["0", "1"]), True),
        (waiting(["0", "1"], key=""), True),
        (waiting(["0:0", "0:1"], key="Work:0"), False),
        (waiting(["0", "1"]) | {"status": "CANCELLED"}, False),
        (waiting(["0", "1"]) | {"status": "SUSPENDED"}, True),
        (waiting(["0", "1"]) | {"active_path": "Other"}, False),
        (waiting(["0"]) | {"context": {"lines": ["ink"]}}, True),
        (waiting(["0"]) | {"context": {"lines": ["ink", "paper"], "n": 1}}, False),
        (waiting(["0"], key="") | {"context": {"lines": ["ink"]}}, False),
        (waiting(["0", "1"], submachine=False), False),
        ({"active_path": None, "children": {"e:A": {"root_path": "A"}}}, False),
    ],
)
def test_which_fan_outs_are_named(state, named, executions):
    """Children numbered as by harel 0.2.0 and older, that an execution still waits for."""
    connection, add = executions
    add("e", **({"finished_at": 1.0} | state))
    found = read(connection, "executions")
    assert found == ((Caveat("fan-out", 1, ("e",)),) if named else ())


def test_which_undated_executions_are_named(executions):
    """Those that are done or cancelled without a `finished_at`: absent or null."""
    connection, add = executions
    for status in ("PENDING", "RUNNING", "FAILED", "DONE", "CANCELLED"):
        add(f"{status} absent", status=status)
        add(f"{status} null", status=status, finished_at=None)
        add(f"{status} noted", status=status, finished_at=0.5)
    names = ("CANCELLED absent", "CANCELLED null", "DONE absent", "DONE null")
    assert read(connection, "executions") == (Caveat("undated", 4, names),)


@pytest.mark.parametrize("data", ["", "{", "[]", '"text"', "null", "\x00", '{"status": "DONE"'])
def test_data_that_is_damaged_is_no_reason_to_fail(data, executions):
    """What is no execution is passed over: adoption moves it as it is."""
    connection, add = executions
    add("damaged", data=data)
    add("odd", children=["e:Work:0"], context=None)
    add("odder", active_path=7, children={"e:7:0": 1, "e:7:1": None}, context={})
    assert read(connection, "executions") == ()


def test_only_the_first_are_named(executions):
    """All are counted, 100 are named, 10 of them in a line of text."""
    connection, add = executions
    for number in range(NAMED + 23):
        add(f"e{number:04}", status="DONE")
    (caveat,) = read(connection, "executions")
    assert (caveat.total, len(caveat.executions)) == (NAMED + 23, NAMED)


def test_the_text_of_a_dry_run_is_sql_whatever_the_names(file):
    """A name with a line break cannot end the comment that it stands in."""
    database = file("0.2.0")
    database.rows("UPDATE executions SET id = 'a' || char(10) || 'DROP' WHERE id = 'delivered'")
    lines = report.adopted_text(adopt(database.target, dry_run=True)).splitlines()
    assert any(line.startswith("-- warning: ") and r"a\nDROP" in line for line in lines)
    assert not any(line.startswith("DROP") for line in lines[: lines.index("BEGIN IMMEDIATE;")])
