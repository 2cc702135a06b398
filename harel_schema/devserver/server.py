"""The life of one sqld process."""

from __future__ import annotations

import http
import os
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Self

from harel_schema.devserver.binary import find_sqld
from harel_schema.devserver.loopback import HOST, free_ports, healthy, request
from harel_schema.errors import InterfaceError, ServerNotStarted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

__all__ = ["Server"]

BACKTRACE = "Stack backtrace:"
ERROR_TAIL = 400
LOG_TAIL = 4000
PORT_ATTEMPTS = 5
PORT_TAKEN = "Address already in use"
POLL_INTERVAL = 0.005

# Kills the server when our end of the pipe closes: unlike PR_SET_PDEATHSIG this is bound to the
# process, not to the thread that started the server, and it works on macOS.
GUARD = 'read -r _; kill -KILL "$1"'


class Server:
    """A sqld process on a loopback port; a context manager that starts and stops it.

    `directory` holds the database and the log, and may be used again later; None is a
    temporary one, removed when the block, or at the latest the process, ends. `port` 0 chooses
    a free one, and `restart` keeps it. `auth_key` is the Ed25519 public key (PEM, or its bytes
    in URL-safe base64) against which clients' JWTs are checked. `admin` opens the admin API,
    `grpc` the port from which replicas follow this server, and `primary_grpc_url` makes this
    server such a replica. `sticky` tells clients its address, so that behind a load balancer the
    requests of a transaction come to it. `namespaces` (which needs `admin`) serves many databases,
    told apart by the first label of the host name. `log` is the file that gets sqld's output;
    default ``sqld.log`` in `directory`.

    Its methods raise `ServerNotFound` without a binary, and `ServerNotStarted`, with the end of
    the log, when sqld ends or stays silent for `start_timeout` seconds.
    """

    def __init__(  # noqa: PLR0913 - sqld's options, by keyword
        self,
        directory: str | Path | None = None,
        *,
        port: int = 0,
        auth_key: str | None = None,
        admin: bool = False,
        namespaces: bool = False,
        grpc: bool = False,
        primary_grpc_url: str | None = None,
        sticky: bool = False,
        log: str | Path | None = None,
        start_timeout: float = 20.0,
    ) -> None:
        if namespaces and not admin:
            raise InterfaceError("namespaces are made by the admin API", remedy="pass admin=True")
        self._removal: weakref.finalize[..., Server] | None = None
        if directory is None:
            directory = tempfile.mkdtemp(prefix="harel-schema-sqld-")
            self._removal = weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        self.directory = Path(directory).absolute()
        self.log = Path(log).absolute() if log else self.directory / "sqld.log"
        self._log_start = 0
        self._wanted_port = port
        self._auth_key = auth_key
        self._listeners = ["http", *["admin"] * admin, *["grpc"] * grpc]
        self._ports: dict[str, int] = {}
        self._options = ["--enable-namespaces"] * namespaces
        if primary_grpc_url:
            self._options += ["--primary-grpc-url", primary_grpc_url]
        self._sticky = sticky
        self._start_timeout = start_timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Address of the database, ``http://127.0.0.1:PORT``."""
        return self._address("http")

    @property
    def admin_url(self) -> str:
        """Address of the admin API; `InterfaceError` without `admin`."""
        return self._address("admin")

    @property
    def grpc_url(self) -> str:
        """Address that a replica server follows; `InterfaceError` without `grpc`."""
        return self._address("grpc")

    @property
    def pid(self) -> int:
        """Process id of the running server; `InterfaceError` when it was not started."""
        return self._running().pid

    @property
    def alive(self) -> bool:
        """Whether the process runs, be it paused."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the server and wait until it answers ``/health``."""
        if self.alive:
            raise InterfaceError("the server runs already")
        binary = find_sqld()
        self.directory.mkdir(parents=True, exist_ok=True)
        # The address of a server that was up before is known to clients: it is kept.
        keep = bool(self._wanted_port or self._ports)
        for _ in range(PORT_ATTEMPTS):
            self._choose_ports()
            if self._try_to_start(binary):
                return self
            if self._wanted_port or PORT_TAKEN not in self._logged():
                break
            if not keep:
                self._ports.clear()
        said = self._logged().partition(BACKTRACE)[0].strip()
        raise ServerNotStarted(
            f"sqld did not start; its log {self.log} ends with {said[-ERROR_TAIL:]!r}",
            remedy="choose another port, or 0 for a free one" if PORT_TAKEN in said else None,
        )

    def stop(self, *, grace: float = 5.0) -> None:
        """Stop the server: SIGTERM, and SIGKILL after `grace` seconds. Safe to call twice."""
        if self.alive:
            self.resume()
        self._end(signal.SIGTERM, grace=grace)

    def kill(self) -> None:
        """End the process with SIGKILL, as a crash would; `start` brings it back."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop the server and start it again, on the same ports and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze the process (SIGSTOP); returns once it stands still."""
        process = self._running()
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)

    def resume(self) -> None:
        """Let a paused process go on (SIGCONT)."""
        self._running().send_signal(signal.SIGCONT)

    def wait(self, timeout: float | None = None) -> int:
        """Block until the process ends; return its exit code, a signal's number negative.

        Raises `subprocess.TimeoutExpired` after `timeout` seconds.
        """
        return self._running().wait(timeout)

    def create_namespace(self, name: str) -> str:
        """Make an empty database `name` and return its address, ``http://NAME.localhost:PORT``.

        sqld reads the name from the Host header; a client must resolve ``*.localhost`` to
        loopback by itself where the system's resolver does not.
        """
        port = self._port("admin")
        status, body = request(port, "POST", f"/v1/namespaces/{name}/create", {})
        if status != http.HTTPStatus.OK:
            raise InterfaceError(f"sqld refused namespace {name}: {status} {body[:200]!r}")
        return f"http://{name}.localhost:{self._port('http')}"

    def log_tail(self, size: int = LOG_TAIL) -> str:
        """Return the last `size` characters that sqld logged since it was last started."""
        return self._logged()[-size:]

    def __enter__(self) -> Self:
        try:
            return self.start()
        except ServerNotStarted:
            # The log stays, even in a temporary directory: the error names it.
            if self._removal is not None:
                self._removal.detach()
            raise
        except BaseException:
            if self._removal is not None:
                self._removal()
            raise

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if exc is not None and not isinstance(exc, KeyboardInterrupt | SystemExit):
            exc.add_note(f"The end of sqld's log:\n{self.log_tail()}")
        if self._removal is not None:
            self._removal()

    def __repr__(self) -> str:
        return f"Server({str(self.directory)!r}, ports={self._ports}, alive={self.alive})"

    def _address(self, listener: str) -> str:
        return f"http://{HOST}:{self._port(listener)}"

    def _port(self, listener: str) -> int:
        if listener not in self._ports:
            hint = "start the server" if listener == "http" else f"pass {listener}=True"
            raise InterfaceError(f"the server has no {listener} address", remedy=hint)
        return self._ports[listener]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise InterfaceError("the server is not running", remedy="call start()")
        return self._process

    def _choose_ports(self) -> None:
        if not self._ports:
            self._ports = free_ports(self._listeners)
            self._ports["http"] = self._wanted_port or self._ports["http"]

    def _launch(self, binary: Path) -> None:
        command = [str(binary), "--db-path", str(self.directory / "data"), "--no-welcome"]
        for listener, port in self._ports.items():
            command += [f"--{listener}-listen-addr", f"{HOST}:{port}"]
        if self._sticky:
            command += ["--http-self-url", self.url]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(  # noqa: S603 - no shell
                [*command, *self._options],
                cwd=self.directory,
                env=_environment(self._auth_key),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(  # noqa: S603 - a constant script
            ["/bin/sh", "-c", GUARD, "sh", str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _logged(self) -> str:
        if not self.log.is_file():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def _try_to_start(self, binary: Path) -> bool:
        try:
            self._launch(binary)
            ready = self._wait_until_ready()
        except BaseException:
            self._end(signal.SIGKILL)
            raise
        if not ready:
            self._end(signal.SIGKILL)
        return ready

    def _wait_until_ready(self) -> bool:
        deadline = time.monotonic() + self._start_timeout
        # A stranger that took the port also answers, so sqld's own word for it is needed too.
        listening = f"{HOST}:{self._ports['http']}"
        while time.monotonic() < deadline and self.alive:
            if listening in self._logged() and healthy(self._ports["http"]):
                return True
            time.sleep(POLL_INTERVAL)
        return False

    def _end(self, how: signal.Signals, *, grace: float = 5.0) -> None:
        # The guard first: it must not outlive the process id that it would kill.
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def _environment(auth_key: str | None) -> Mapping[str, str]:
    """Return our environment without what would change sqld behind the caller's back."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SQLD_", "LIBSQL_")) and name != "RUST_LOG"
    }
    return inherited | ({"SQLD_AUTH_JWT_KEY": auth_key} if auth_key else {})
