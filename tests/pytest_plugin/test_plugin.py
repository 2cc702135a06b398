"""The pytest plugin: idle unless asked, four tests when asked, and no harm to the database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from _pytest.assertion.rewrite import AssertionRewriter

import harel_schema
from harel_schema import dbapi, migrate
from harel_schema.testing import JwtKey, sqld_server

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["single_head", "upgrade_from_base", "schema_equals_models", "up_down_up"]


@pytest.fixture
def suite(pytester: pytest.Pytester):
    """Run pytest in a process of its own on a suite with one test, warnings as errors."""
    pytester.makepyfile(test_theirs="def test_theirs(): pass")

    def suite(*args: object) -> pytest.RunResult:
        return pytester.runpytest_subprocess(
            "-p", "no:asyncio", "-p", "no:cacheprovider", "-W", "error", "-v", *map(str, args)
        )

    return suite


@pytest.fixture
def state(pytester: pytest.Pytester) -> Path:
    """Return a migrated file in a folder of its own."""
    path = pytester.mkdir("data") / "state.db"
    migrate.upgrade(path)
    return path


def ran(result: pytest.RunResult) -> dict[str, str]:
    """Return the outcome of each test, by its id."""
    lines = (line.split() for line in result.outlines)
    return {words[0]: words[1] for words in lines if len(words) > 1 and "::" in words[0]}


def test_it_is_idle_and_cheap_until_it_is_asked(suite, pytester: pytest.Pytester) -> None:
    """A suite that does not ask for it has its own tests, and pays for no import."""
    pytester.makepyfile(
        test_theirs="""
            import sys
            def test_theirs():
                assert "harel_schema.pytest_plugin" in sys.modules
                names = {"alembic", "libsql", "sqlalchemy", "harel_schema.drift"}
                assert not names & set(sys.modules)
        """
    )
    result = suite()
    assert result.ret == 0
    assert ran(result) == {"test_theirs.py::test_theirs": "PASSED"}


def test_a_program_may_import_the_package_before_it_calls_pytest() -> None:
    """Pytest rewrites the packages of installed plugins, and warns when it comes too late."""
    assert AssertionRewriter.is_rewrite_disabled(harel_schema.__doc__ or "")


def test_an_option_adds_four_tests_that_only_read(suite, state: Path) -> None:
    """--harel-target adds four tests; the file is as it was, and nothing lies beside it."""
    before = state.read_bytes()
    result = suite("--harel-target", state)
    assert result.ret == 0
    assert ran(result) == {"test_theirs.py::test_theirs": "PASSED"} | {
        f"harel-schema::{name}": "PASSED" for name in NAMES
    }
    assert state.read_bytes() == before
    assert list(state.parent.iterdir()) == [state]


def test_drift_fails_one_test_with_its_line_and_its_remedy(suite, state: Path) -> None:
    """What differs is named with what mends it, without our stack; the other three pass."""
    with closing(sqlite3.connect(state)) as connection, connection:
        connection.execute("DROP INDEX harel_transport_messages_by_group")
    result = suite("--harel-target", state)
    assert result.ret == 1
    failed = [name for name, outcome in ran(result).items() if outcome == "FAILED"]
    assert failed == ["harel-schema::schema_equals_models"]
    result.stdout.fnmatch_lines(
        ["index-missing harel_transport_messages.*", "  fix: CREATE INDEX harel_transport_*"]
    )
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize("version", ["0001", "feedbeef", "9999"])
def test_a_version_row_that_is_none_of_the_chain_fails(suite, state: Path, version: str) -> None:
    """A second row, an unknown one and one that is ahead are no single head."""
    change = "INSERT INTO harel_alembic_version VALUES (?)"
    if version != "0001":
        change = "UPDATE harel_alembic_version SET version_num = ?"
    with closing(sqlite3.connect(state)) as connection, connection:
        connection.execute(change, (version,))
    result = suite("--harel-target", state, "-k", "single_head")
    assert ran(result) == {"harel-schema::single_head": "FAILED"}
    assert version in result.stdout.str()


def test_a_database_that_is_not_there_is_one_line(suite) -> None:
    """A wrong name fails the two tests that read it, each with one line."""
    result = suite("--harel-target", "missing.db")
    failed = [name for name, outcome in ran(result).items() if outcome == "FAILED"]
    assert failed == ["harel-schema::single_head", "harel-schema::schema_equals_models"]
    assert result.stdout.str().count("\nmissing.db: no such file") == 2


CONFTEST = """
import pytest

@pytest.fixture(scope="module")
def harel_target(tmp_path_factory):
    from harel_schema import migrate
    path = tmp_path_factory.mktemp("theirs") / "state.db"
    migrate.upgrade(path, prefix="app")
    return path

@pytest.fixture(scope="session")
def harel_prefix():
    return "app"
"""


def test_a_fixture_adds_the_tests_to_its_folder(suite, pytester: pytest.Pytester, state) -> None:
    """A conftest.py that names a database adds them, and a run of other tests does not get them."""
    folder = pytester.mkdir("db")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_db.py").write_text("def check_db(): pass\ndef test_db(): pass\n")
    four = {f"db/harel-schema::{name}": "PASSED" for name in NAMES}
    assert ran(suite()) == {
        "test_theirs.py::test_theirs": "PASSED", "db/test_db.py::test_db": "PASSED", **four,
    }  # fmt: skip
    assert ran(suite("db/test_db.py")) == {"db/test_db.py::test_db": "PASSED"}
    # Also where the user's tests are called otherwise.
    assert ran(suite("db", "-o", "python_functions=check_*")) == {
        "db/test_db.py::check_db": "PASSED", **four,
    }  # fmt: skip
    both = ran(suite("db", "--harel-target", state, "--harel-prefix", "harel"))
    assert len(both) == 5


def test_it_works_beside_xdist(suite, state: Path) -> None:
    """The four tests can be spread over processes."""
    result = suite("--harel-target", state, "-n", "2", "-p", "xdist")
    result.assert_outcomes(passed=5)


def test_a_server_is_read_with_a_token_of_the_environment(
    suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target may be a server that wants a token; no test writes to it."""
    key = JwtKey()
    with sqld_server(auth_key=key.public) as server:
        with closing(dbapi.connect(server.url, auth_token=key.token())) as connection:
            connection.executescript(";".join(migrate.schema_sql()))
        monkeypatch.setenv("TURSO_AUTH_TOKEN", key.token(read_only=True))
        suite("--harel-target", server.url).assert_outcomes(passed=5)


def test_a_disposable_database_keeps_its_rows_and_gets_no_table(suite, sqld_url: str) -> None:
    """--harel-disposable migrates on the server under a made-up prefix, and leaves nothing."""
    with closing(dbapi.connect(sqld_url)) as connection:
        connection.executescript(";".join(migrate.schema_sql()))
        connection.execute("INSERT INTO harel_outbox (event) VALUES ('{}')")
        connection.commit()
        everything = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"
        before = connection.execute(everything).fetchall()
        suite("--harel-target", sqld_url, "--harel-disposable").assert_outcomes(passed=5)
        assert connection.execute(everything).fetchall() == before
        assert connection.execute("SELECT count(*) FROM harel_outbox").fetchall() == [(1,)]


def test_a_disposable_database_that_cannot_be_migrated_is_tidied_up(
    suite, state: Path, pytester: pytest.Pytester
) -> None:
    """Also when a migration fails half-way, what it made under its prefix goes again."""
    pytester.makeconftest("""
        import pytest
        from harel_schema import migrate
        from harel_schema.errors import MigrationError

        @pytest.fixture(autouse=True)
        def broken(monkeypatch):
            def downgrade(*args, **options):
                raise MigrationError("the way down is blocked")
            monkeypatch.setattr(migrate, "downgrade", downgrade)
    """)
    with closing(sqlite3.connect(state)) as connection:
        before = connection.execute("SELECT name FROM sqlite_schema").fetchall()
        result = suite("--harel-target", state, "--harel-disposable", "-k", "up_down_up")
        assert ran(result) == {"harel-schema::up_down_up": "FAILED"}
        result.stdout.fnmatch_lines(["the way down is blocked"])
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == before
