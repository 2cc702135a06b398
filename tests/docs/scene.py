"""The world in which a page's commands are run: a shell, a folder, and servers for the names."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from harel_schema.testing import JwtKey, sqld_server

if TYPE_CHECKING:
    from types import TracebackType

BIN = Path(sys.executable).parent
SERVER = re.compile(r"(?:libsql|https?)://(?:[a-z0-9-]+\.)+[a-z0-9]+(?::\d+)?")
DEV_SERVER = "harel-schema dev-server"
# Reads commands from 3, each ended by a NUL, and ends what each prints with one.
LOOP = r"""
status=0
while IFS= read -r -d '' -u 3 command; do
  (exit $status); eval "$command" 3<&-; status=$?
  printf '\0'
done
"""


class Scene:
    """A page's folder, its shell, and the addresses that stand for those that it shows."""

    def __init__(self, folder: Path, checkout: Path) -> None:
        self.folder = folder
        self.addresses: dict[str, str] = {}
        self._stack = ExitStack()
        self._read, write = os.pipe()
        environment = {
            **{name: os.environ[name] for name in os.environ if name != "PYTEST_ADDOPTS"},
            "CHECKOUT": str(checkout),
            "LC_ALL": "C.UTF-8",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        commands, self._commands = os.pipe()
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", f"exec 3<&{commands}; {LOOP}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=write,
            pass_fds=[commands],
            start_new_session=True,
        )
        os.close(write)
        os.close(commands)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._commands)
        os.killpg(self._shell.pid, signal.SIGTERM)
        self._shell.wait(timeout=30)
        # Its end is read when everything that the shell started has ended too.
        while os.read(self._read, 4096):
            pass
        os.close(self._read)
        self._stack.close()

    def run(self, command: str, lines: int = 0) -> str:
        """Run a command of the page; return what it prints, in the page's names.

        A server of `dev-server` goes on in the background; its first `lines` are waited for.
        """
        serves = command.startswith(DEV_SERVER)
        typed = f"{command} --port 0 &" if serves else self.real(command)
        os.write(self._commands, typed.encode() + b"\0")
        printed = b""
        while b"\0" not in printed or (serves and printed.count(b"\n") < lines):
            piece = os.read(self._read, 4096)
            if not piece:
                raise EOFError(f"the shell ended at {command!r} after {printed!r}")
            printed += piece
        text = printed.replace(b"\0", b"").decode()
        if serves:
            (port,) = re.findall(r"--port (\d+)", command) or ["8080"]
            self.addresses[f"http://127.0.0.1:{port}"] = text.split("\n", 1)[0]
        return self.shown(text)

    def real(self, text: str) -> str:
        """Put the addresses of real servers in the place of those that the page shows."""
        return SERVER.sub(lambda found: self._address(found[0]), text).replace("…", "xyz")

    def shown(self, text: str) -> str:
        """Put the names of the page in the place of real addresses and folders."""
        for name, address in self.addresses.items():
            text = text.replace(address, name.replace("libsql://", "https://"))
        return text.replace(f"{self.folder}/", "/srv/").replace(str(self.folder), "/srv")

    def _address(self, name: str) -> str:
        if name not in self.addresses:
            same = [a for known, a in self.addresses.items() if _host(known) == _host(name)]
            self.addresses[name] = same[0] if same else self._serve(name)
        return self.addresses[name]

    def _serve(self, name: str) -> str:
        """Start a server for a name; one that is called locked lets nobody in."""
        key = JwtKey().public if _host(name).startswith("locked.") else None
        return self._stack.enter_context(sqld_server(auth_key=key)).url


def _host(address: str) -> str:
    return address.partition("://")[2]
