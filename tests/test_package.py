"""The wheel: what is in it, and that it works where nothing else is."""

from __future__ import annotations

import ast
import re
import sqlite3
import subprocess
import sys
import tomllib
import venv
import zipfile
from contextlib import closing
from importlib import metadata
from pathlib import Path

import pytest

# What a module asks for on behalf of its user, who has it anyway or gets told.
ON_DEMAND = {"pytest_plugin": {"pytest"}, "testing": {"cryptography", "pytest"}}
# Published apart, but documented as part of a distribution that pins it.
PARTS = {"pydantic-core": "pydantic"}


@pytest.fixture
def wheel(root: Path, tmp_path: Path) -> Path:
    """Build the wheel from the checkout."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    subprocess.run([*command, str(tmp_path / "dist"), str(root)], check=True, capture_output=True)
    (built,) = (tmp_path / "dist").glob("*.whl")
    return built


def declared(root: Path) -> set[str]:
    """Return the distributions that pyproject.toml asks for, extras included."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return {normal(re.split(r"[<>=\[ ]", wanted)[0]) for wanteds in lists for wanted in wanteds}


def normal(distribution: str) -> str:
    """Return the name under which an index files a distribution."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_the_wheel_holds_what_the_package_needs(wheel: Path, root: Path) -> None:
    """Every source file, the type marker, the migrations and the licence; no test, no cache."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = {
        path.relative_to(root).as_posix()
        for path in (root / "harel_schema").rglob("*")
        if path.suffix in {".py", ".typed"}
    } | {
        f"harel_schema/{path.relative_to(root).as_posix()}"
        for path in (root / "migrations").rglob("*")
        if path.suffix in {".json", ".mako", ".py"}
    }
    about = {name for name in names if ".dist-info/" in name}
    shared = {name for name in names if ".data/" in name}
    assert names - about - shared == expected
    assert [name.partition("/")[2] for name in shared] == ["data/share/man/man1/harel-schema.1"]
    assert any(name.endswith("/licenses/LICENSE") for name in about)


def test_the_package_imports_only_what_it_declares(root: Path) -> None:
    """Nothing that merely happens to be installed here is needed."""
    providers = metadata.packages_distributions()
    wanted = declared(root)
    undeclared = set()
    for path in (root / "harel_schema").rglob("*.py"):
        part = path.relative_to(root / "harel_schema").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {str(node.module).split(".")[0]}
            else:
                continue
            for name in names - set(sys.stdlib_module_names) - {"harel_schema"}:
                provided_by = {normal(provider) for provider in providers[name]}
                provided_by |= {PARTS.get(provider, provider) for provider in provided_by}
                if wanted.isdisjoint(provided_by) and name not in ON_DEMAND.get(part, ()):
                    undeclared.add(f"{path.relative_to(root)}: {name}")
    assert undeclared == set()


def test_the_wheel_works_in_an_empty_environment(
    wheel: Path, tmp_path: Path, outside: dict[str, str]
) -> None:
    """Installed alone, away from the checkout, it migrates a new file to the head."""
    venv.create(tmp_path / "venv", symlinks=True)
    bin_ = tmp_path / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(bin_ / "python"), "install", "--quiet"]
    subprocess.run([*pip, str(wheel)], check=True, env=outside)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(bin_ / command[0]), *command[1:]],
            cwd=tmp_path,
            env={"PATH": str(bin_), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    where = run("python", "-c", "import harel_schema; print(harel_schema.__file__)").stdout.strip()
    assert Path(where).is_relative_to(tmp_path / "venv")
    upgrade = run("harel-schema", "upgrade", "sqlite:///x.db")
    assert upgrade.returncode == 0, upgrade.stderr
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        tables = {name for (name,) in rows if name.startswith("harel_")}
    assert tables >= {"harel_executions", "harel_definitions", "harel_alembic_version"}
    assert run("harel-schema", "check", "x.db").returncode == 0
    server = run("harel-schema", "dev-server", "--port", "0")
    assert server.returncode == 2
    assert "pip install 'harel-schema[server]'" in server.stderr
    for code, remedy in {
        "import harel_schema.harel": "pip install 'harel-schema[harel]'",
        "from harel_schema.testing import JwtKey; JwtKey()": "pip install cryptography",
    }.items():
        assert f"run `{remedy}`" in run("python", "-c", code).stderr
