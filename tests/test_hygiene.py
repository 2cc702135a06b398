"""Rules for the tests themselves."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parent
BINDING = {"bind", "create_server", "start_server", "HTTPServer", "ThreadingHTTPServer"}
SLEEPING = {"asyncio.sleep", "time.sleep"}
SKIPPING = {"skip", "skipif", "importorskip", "skipTest", "SkipTest", "expectedFailure"}


def sources() -> list[Path]:
    """Return every source file under tests/, without the run of SQLAlchemy's own suite."""
    return [path for path in sorted(TESTS.rglob("*.py")) if path.parent.name != "suite"]


def nodes(path: Path) -> Iterator[ast.AST]:
    """Yield every node of a file."""
    yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield each function of a file."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def calls(inside: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call with the name of what is called, without its owner."""
    for node in ast.walk(inside):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2], node


def positive(node: ast.AST | None) -> bool:
    """Tell whether an expression is an integer literal other than 0."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and bool(node.value)


def found(rule: ast.AST, path: Path) -> str:
    """Return where a rule was broken."""
    return f"{path.relative_to(TESTS)}:{getattr(rule, 'lineno', 0)}"


def test_no_test_sleeps() -> None:
    """A test waits for an event, never for a time; `sleep(0)` hands over to the loop.

    Where a server's own clock is the point, the test is one of `make soak`.
    """
    assert [
        found(call, path)
        for path in sources()
        for function in functions(path)
        if not any("soak" in ast.unparse(mark) for mark in function.decorator_list)
        for _, call in calls(function)
        if ast.unparse(call.func) in SLEEPING and ast.unparse(call.args[0]) != "0"
    ] == []


def test_no_test_listens_on_a_fixed_port() -> None:
    """Ports are chosen by the kernel, so that runs side by side do not meet."""
    broken = []
    for path in sources():
        for name, call in calls(ast.parse(path.read_text(encoding="utf-8"))):
            addresses = [arg for arg in call.args if isinstance(arg, ast.Tuple)]
            ports = [k.value for k in call.keywords if k.arg and k.arg.endswith("port")]
            if name in BINDING:
                ports += [element for address in addresses for element in address.elts]
            broken += [found(call, path) for port in ports if positive(port)]
    assert broken == []


def test_no_test_is_skipped() -> None:
    """A test that does not run proves nothing: what it needs is installed, or it is not here."""
    assert [
        found(node, path)
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in SKIPPING
    ] == []


def test_a_file_left_in_the_checkout_fails_the_run(pytester: pytest.Pytester, root: Path) -> None:
    """The gate of this suite sees a stray file, and names it."""
    (pytester.path / "tests").mkdir()
    conftest = (root / "tests" / "conftest.py").read_text(encoding="utf-8")
    (pytester.path / "tests" / "conftest.py").write_text(conftest, encoding="utf-8")
    (pytester.path / "tests" / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_tidy(tmp_path): (tmp_path / 'state.db').touch()\n"
        "def test_untidy(root): (root / 'stray.db').touch()\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "tests")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*files written outside tmp_path*", "*stray.db"])
