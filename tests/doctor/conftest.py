"""A store in the middle of its life: finished, running and waiting executions."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from harel import DurableRunner, Event

from harel_schema import dbapi, transfer
from harel_schema.doctor import Diagnosis, diagnose
from harel_schema.harel import LibsqlStore
from harel_schema.models import Execution
from tests.store.test_zoo import EVENTS, Clock, live, runner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Patient:
    """A database, and what a test does to it."""

    target: str

    def run(self, *statements: str) -> None:
        """Run statements, whatever they break."""
        with closing(dbapi.connect(self.target)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def diagnose(self, **options: object) -> Diagnosis:
        """Ask the doctor."""
        return diagnose(self.target, **options)

    def told(self, **options: object) -> dict[str, int]:
        """Return what the doctor found, and how often."""
        return {each.kind.value: each.count for each in self.diagnose(**options).findings}


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a store; it must be copied.

    `z` is done, `y` has two regions with a timer, `w` has an event and a child that wait.
    """
    path = tmp_path_factory.mktemp("lived") / "state.db"
    with LibsqlStore(path) as store:
        live(store)
        zoo = runner(DurableRunner, store, Clock())
        zoo.create("zoo", {"items": [True]}, "y")
        zoo.process("y", EVENTS[1])
        waiting = Execution(id="w", definition_id="zoo", updated_at=Clock.now)
        store.commit(waiting, [("w", Event(kind="Start"))], spawns=(("w:a", "", {}),))
    return path


@pytest.fixture
def local(lived: Path, tmp_path: Path) -> Patient:
    """Return the store on a file."""
    path = tmp_path / "state.db"
    shutil.copy(lived, path)
    return Patient(str(path))


@pytest.fixture
def remote(local: Patient, sqld_url: str) -> Patient:
    """Return the store on a server."""
    transfer.copy(local.target, sqld_url)
    return Patient(sqld_url)


@pytest.fixture(params=["local", "remote"])
def patient(request: pytest.FixtureRequest) -> Patient:
    """Return the store on a file, and on a server."""
    found: Patient = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def mend() -> Callable[[Patient, Diagnosis], None]:
    """Run the SQL that a diagnosis offers."""

    def run(patient: Patient, found: Diagnosis) -> None:
        patient.run(*(e.remedy for e in found.findings if e.remedy and e.remedy.endswith(";")))

    return run
