"""Make the files beside this one: what releases of harel wrote, to the byte.

    python tests/legacy/make.py [RELEASE ...]

Each release is installed from the package index in a virtual environment of its own, and runs
`write.py`. The files are in the repository, because a release does not change any more: make one
again only to change what is in all of them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
# 0.1: no groups. 0.2.0: the last with the old numbers of a fan-out. 0.2.2 and 0.3.1: no indexes.
# 0.6.1: the last without a prefix. 0.9.0: the newest.
RELEASES = ("0.1.4", "0.2.0", "0.2.2", "0.3.1", "0.6.1", "0.7.1", "0.9.0")
LARGEST = 110_000


def main(releases: list[str]) -> None:
    """Make the file of each release."""
    for release in releases:
        with tempfile.TemporaryDirectory() as folder:
            made = make(release, Path(folder))
        sys.stdout.write(f"{made.name}: {made.stat().st_size:,} bytes\n")


def make(release: str, folder: Path) -> Path:
    """Install a release in `folder`, run it, and return the file that it wrote."""
    written = folder / "state.db"
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", f"harel=={release}"], check=True)
    subprocess.run(
        [python, str(HERE / "write.py"), str(written)], check=True, stderr=subprocess.DEVNULL
    )
    left = [path.name for path in folder.glob("state.db-*")]
    if left or written.stat().st_size > LARGEST:
        sys.exit(f"harel {release} left {left} and {written.stat().st_size:,} bytes")
    return Path(shutil.move(written, HERE / f"harel-{release}.db"))


if __name__ == "__main__":
    main(sys.argv[1:] or list(RELEASES))
