"""The file of an embedded replica is copied by the library that keeps it, and never written to."""

from __future__ import annotations

from contextlib import closing

import pytest

from harel_schema import dbapi
from harel_schema.errors import TransferError
from harel_schema.testing import Server
from harel_schema.transfer import copy
from harel_schema.verify import verify
from tests.transfer.support import contents, fetch


@pytest.fixture
def primary(source, tmp_path):
    """Return a server that replicas follow, with rows in it."""
    with Server(tmp_path / "primary", grpc=True) as server:
        copy(source, server.url)
        yield server.url


@pytest.fixture
def replica(primary, tmp_path):
    """Return the file of a replica that nobody has open any more."""
    path = tmp_path / "replica.db"
    with closing(dbapi.connect(path, sync_url=primary)) as connection:
        connection.sync()
    return path


def test_a_replica_is_a_source(source, replica, dest):
    """Its rows come over exactly, by the library that keeps the file."""
    copy(replica, dest)
    assert contents(dest) == contents(source)
    assert verify(replica, dest).equal


def test_a_replica_in_use_is_a_source(source, primary, tmp_path, dest):
    """Its rows come over as well while this process has it open."""
    path = tmp_path / "open.db"
    with closing(dbapi.connect(path, sync_url=primary)) as connection:
        connection.sync()
        copy(path, dest)
        assert connection.execute("SELECT count(*) FROM harel_trace").fetchone() == (30,)
    assert contents(dest) == contents(source)


def test_a_replica_is_no_destination(source, replica, primary):
    """A row that only the replica had would never reach its server."""
    before = fetch(primary, "SELECT count(*) FROM harel_trace")
    with pytest.raises(TransferError, match="is an embedded replica, whose rows are its server"):
        copy(source, replica, replace=True)
    assert fetch(primary, "SELECT count(*) FROM harel_trace") == before
