"""What is released: two files made of one source, one version, and the names that are promised."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from importlib import import_module, metadata
from typing import TYPE_CHECKING

import pytest

import harel_schema

if TYPE_CHECKING:
    from pathlib import Path

# What a program may import; anything else may change in any release.
PUBLIC = {
    "harel_schema": "AsyncLibsqlStore LibsqlStore StoreConflict StoreMoved __version__",
    "harel_schema.harel": "AsyncLibsqlStore LibsqlStore StoreConflict",
    "harel_schema.models": (
        "ChildState DEFAULT_TRACE_MAX Definition Event Execution ExecutionPage ExecutionSummary "
        "OutboxEntry SpawnEntry Status Step TimerOp"
    ),
    "harel_schema.errors": (
        "AuthError BusyError ConnectionLost CursorError DataError DatabaseError Error "
        "HarelSchemaError IntegrityError InterfaceError InternalError MigrationError "
        "NotADatabaseError NotSupportedError OperationalError ProgrammingError RequestTimeout "
        "SchemaMismatch ServerError ServerNotFound ServerNotStarted StoreConflict StoreError "
        "StoreMoved TargetError TransactionLost TransferError UnknownRevision Warning"
    ),
    "harel_schema.dbapi": (
        "BINARY Binary Connection Cursor DATETIME DataError DatabaseError Date DateFromTicks "
        "Error IntegrityError InterfaceError InternalError NUMBER NotSupportedError "
        "OperationalError ProgrammingError ROWID STRING Time TimeFromTicks Timestamp "
        "TimestampFromTicks Warning apilevel connect paramstyle threadsafety"
    ),
    "harel_schema.migrate": (
        "Adopted Caveat Current Migrated Plan Revision Step adopt alembic_config current "
        "downgrade history plan schema_sql script_directory stamp upgrade upgrade_sql"
    ),
    "harel_schema.transfer": (
        "Action CopyReport Estimate Limits OnProgress Phase Progress TableCopy copy"
    ),
    "harel_schema.verify": "BLIND_SPOT Cell RowDifference TableVerify VerifyReport verify",
    "harel_schema.move": (
        "AbortReport MoveAction MoveReport Switched UnfenceReport abort move unfence"
    ),
    "harel_schema.testing": "JwtKey Server sqld_server",
}


def build(root: Path, out: Path, kind: str) -> Path:
    """Build the sdist or the wheel of a source tree."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(out)]
    subprocess.run([*command, str(root)], check=True, capture_output=True)
    (built,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    """Return each file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_both_files_say_the_same_and_pass_the_index(root: Path, tmp_path: Path) -> None:
    """The wheel built from the sdist is the wheel built from the checkout, and twine takes all."""
    sdist = build(root, tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    direct = build(root, tmp_path / "direct", "wheel")
    from_sdist = build(unpacked, tmp_path / "from-sdist", "wheel")
    assert contents(direct) == contents(from_sdist)
    check = [sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(direct)]
    found = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout.count("PASSED")) == (0, 2), found.stdout
    for part in ("tests", "docs", "benchmarks", "examples"):
        assert (unpacked / part).is_dir()


def test_the_version_is_written_in_one_place(root: Path) -> None:
    """The module, the metadata and the changelog know one version; nothing else names it."""
    version = harel_schema.__version__
    assert metadata.version("harel-schema") == version
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", h) for h in headings[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", changelog, re.MULTILINE)) <= kinds
    holders = {
        path.relative_to(root).as_posix()
        for path in (root / "harel_schema").rglob("*.py")
        if f'"{version}"' in path.read_text(encoding="utf-8")
    }
    assert holders == {"harel_schema/_version.py"}


@pytest.mark.parametrize("module", PUBLIC)
def test_the_promised_names(module: str) -> None:
    """Each public module promises these names, and has them."""
    found = import_module(module)
    assert sorted(found.__all__) == PUBLIC[module].split()
    assert [name for name in found.__all__ if getattr(found, name, None) is None] == []
