"""The layers of docs/design.md, as the imports in the source really are."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "harel_schema"
# Not in the table: beside the layers. What they may import, and who may import them.
BESIDE = {
    "__main__": ({"cli"}, set()),
    "_version": (set(), {"", "cli"}),
    "devserver": ({"errors"}, {"cli", "testing"}),
    "testing": ({"devserver"}, set()),
}
# The only modules that meet each of these, whatever else is installed.
MEETS = {
    "alembic": {"migrate", "revisions"},
    "click": {"cli"},
    "cryptography": {"testing"},
    "harel": {"harel"},
    "httpx": {"dbapi", "hrana"},
    "libsql": {"dbapi"},
    "libsql_experimental": {"dbapi"},
    "pytest": {"pytest_plugin", "testing"},
    "rich": {"cli"},
    "socket": {"devserver"},
    "sqlalchemy": {"engine", "migrate", "revisions", "tables"},
    "sqlalchemy_libsql": {"engine"},
    "sqlite3": {"dbapi"},
}


def imported(path: Path) -> Iterator[str]:
    """Yield the dotted name of everything that a source file imports, wherever it does so."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(path: Path) -> str:
    """Return the module of the table that a file belongs to; '' is the package itself."""
    name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if name == "__init__" else name


@cache
def modules() -> dict[str, set[str]]:
    """Return each module of the package with the dotted names that its files import."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        found.setdefault(module_of(path), set()).update(imported(path))
    return found


def ours(names: set[str]) -> set[str]:
    """Return which modules of the package are among imported names."""
    known = set(modules())
    parts = [name.split(".") for name in names if name.split(".")[0] == "harel_schema"]
    return {part[1] if part[1] in known else "" for part in parts}


def layers() -> dict[str, int]:
    """Read the table in docs/design.md: the layer of each module."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", text, re.MULTILINE)
    return {name: int(layer) for layer, cell in rows for name in re.findall(r"`(\w+)`", cell)}


def test_every_module_has_its_place() -> None:
    """The table and the source name the same modules."""
    assert set(modules()) - {""} <= set(layers()) | set(BESIDE)


def test_imports_point_down() -> None:
    """No module imports one of a higher layer."""
    place = layers()
    upward = [
        f"{module} imports {other}"
        for module, names in modules().items()
        for other in ours(names)
        if module in place and other in place and place[other] > place[module]
    ]
    assert upward == []


def test_no_modules_import_each_other() -> None:
    """Within a layer too, imports form no circle."""
    graph = {module: ours(names) - {module, ""} for module, names in modules().items()}
    TopologicalSorter(graph).prepare()


def test_what_stands_beside_the_layers_stays_there() -> None:
    """The server's modules need no other part, and only the command and tests need them."""
    for beside, (may_import, may_be_imported_by) in BESIDE.items():
        found = modules()
        assert ours(found[beside]) - {beside, ""} <= may_import
        users = {module for module, names in found.items() if beside in ours(names)}
        assert users - {beside} <= may_be_imported_by


@pytest.mark.parametrize("foreign", sorted(MEETS))
def test_a_library_is_met_in_one_place(foreign: str) -> None:
    """A driver, the network and each framework stay behind the module that wraps them."""
    users = {
        module
        for module, names in modules().items()
        if any(name.split(".")[0] == foreign for name in names)
    }
    assert users <= MEETS[foreign]


def test_revisions_import_nothing_of_ours() -> None:
    """A frozen revision stands on Alembic and SQLAlchemy only."""
    revisions = list((ROOT / "migrations" / "versions").glob("*.py"))
    assert revisions
    allowed = {"__future__", "alembic", "collections", "sqlalchemy", "typing"}
    for path in revisions:
        assert {name.split(".")[0] for name in imported(path)} <= allowed, path.name


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after `code`."""
    tail = "import sys; print('\\n'.join({name.split('.')[0] for name in sys.modules}))"
    command = [sys.executable, "-c", f"{code}\n{tail}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_is_cheap() -> None:
    """`import harel_schema` brings neither a framework nor a driver nor the network."""
    assert loaded_by("import harel_schema").isdisjoint(MEETS)


def test_opening_an_existing_store_is_cheap() -> None:
    """A worker that opens a migrated file does not pay for the tools that made it."""
    loaded_by("from harel_schema import LibsqlStore; LibsqlStore('state.db').close()")
    names = loaded_by("from harel_schema import LibsqlStore; LibsqlStore('state.db').close()")
    assert names.isdisjoint({"alembic", "httpx", "sqlalchemy", "harel", "click", "rich"})
