"""What is tried again and again, each time with something else."""

from __future__ import annotations

import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harel_schema import dbapi
from harel_schema.move import move
from harel_schema.transfer import Limits, copy
from tests.transfer.support import make_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from harel_schema.transfer import OnProgress, Progress
    from harel_schema.transfer import Phase as Name


class Stop(BaseException):
    """Raised out of a progress callback, as Ctrl-C is."""


def stopping_in(phase: Name) -> OnProgress:
    """Return a callback that stops what reports to it in the middle of a phase."""

    def progress(report: Progress) -> None:
        if report.phase == phase and report.rows_done > 20:
            raise Stop

    return progress


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with small databases of several ages, a copy and a move half done."""
    folder = tmp_path_factory.mktemp("originals")
    for name in ("head.db", "moving.db"):
        make_source(folder / name, executions=6)
    for name in ("harel-0.3.1.db", "harel-0.9.0.db"):
        shutil.copy(Path(__file__).parents[1] / "legacy" / name, folder)
    (folder / "empty.db").touch()
    # The driver keeps the files and threads of its first connection for as long as we live.
    dbapi.connect(folder / "empty.db", driver="libsql").close()
    limits = Limits(rows=5)
    with suppress(Stop):
        copy(folder / "head.db", folder / "copied.db", limits=limits, progress=stopping_in("copy"))
    with suppress(Stop):
        move(folder / "moving.db", folder / "moved.db", limits=limits, progress=stopping_in("copy"))
    return folder


@pytest.fixture
def try_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int, Callable[[Any, Path], None]], None]:
    """Return what calls a function so many times, with what draws and a folder of its own."""
    numbers = count()

    def try_often(examples: int, once: Callable[[Any, Path], None]) -> None:
        @settings(
            max_examples=examples,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def run(data: Any) -> None:
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            monkeypatch.chdir(folder)
            once(data.draw, folder)
            monkeypatch.chdir(tmp_path)
            shutil.rmtree(folder)

        run()

    return try_often
