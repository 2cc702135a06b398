"""What the code says of its errors: the tree, the classes, and each message with its remedy."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import harel_schema.errors as module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ErrorClass", "classes", "tree"]


@dataclass(frozen=True)
class ErrorClass:
    """An error: its name and bases, its docstring, and the messages that name a next step."""

    name: str
    bases: list[str]
    text: str
    messages: list[tuple[str, str]]


def tree() -> str:
    """Return the drawing of the tree."""
    text = inspect.getdoc(module) or ""
    return inspect.cleandoc(text.split("::\n", 1)[1].split("\n\nAn error says")[0])


def classes(checkout: Path) -> list[ErrorClass]:
    """Return the error classes in the order of their definition, with what the package raises."""
    said: dict[str, set[tuple[str, str]]] = {}
    paths = sorted((checkout / "harel_schema").rglob("*.py"))
    names = (".".join(path.relative_to(checkout).with_suffix("").parts) for path in paths)
    texts = (path.read_text(encoding="utf-8") for path in paths)
    trees = dict(zip(names, map(ast.parse, texts), strict=True))
    for tree in trees.values():
        for name, pair in _raised(tree, _imported(tree, trees) | _constants(tree)):
            said.setdefault(name, set()).add(pair)
    found = [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == module.__name__
    ]
    return [
        ErrorClass(
            name=each.__name__,
            bases=[base.__name__ for base in each.__bases__],
            text=inspect.getdoc(each) or "",
            messages=sorted(said.get(each.__name__, ())),
        )
        for each in found
    ]


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values that a module gives to names of its own."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
    return found


def _imported(tree: ast.Module, trees: dict[str, ast.Module]) -> dict[str, ast.expr]:
    """Return those of the other modules' constants that a module imports."""
    return {
        alias.asname or alias.name: value
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module in trees
        for alias in node.names
        if (value := _constants(trees[node.module]).get(alias.name)) is not None
    }


def _raised(
    tree: ast.Module, constants: dict[str, ast.expr]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the class, the message and the remedy of each error made with both."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        remedy = next((word.value for word in node.keywords if word.arg == "remedy"), None)
        if name in module.__all__ and remedy is not None:
            pair = (_text(node.args[0], constants), _text(remedy, constants))
            if all(map(_says, pair)):
                yield name, pair


def _says(text: str) -> bool:
    """Tell whether a text has words of its own, beside what is filled in."""
    return re.search(r"\w{3}", text) is not None


def _text(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    """Return a string literal with ``…`` for what is put into it; '' for what is no literal."""
    match node:
        case ast.Name(id=name) if name in constants:
            return _text(constants[name], {})
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            literals = (part.value if isinstance(part, ast.Constant) else "…" for part in parts)
            return "".join(map(str, literals))
    return ""
