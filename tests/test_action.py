"""The GitHub Action and the pre-commit hook, run as their runners run them."""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from harel_schema import dbapi, migrate
from harel_schema.testing import JwtKey, sqld_server
from tests.support import schemas

if TYPE_CHECKING:
    from collections.abc import Callable

EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
COMMAND = Path(sys.executable).with_name("harel-schema")


class Ended(NamedTuple):
    """How a run of the action's scripts ended."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


@pytest.fixture(scope="session")
def action(root: Path) -> dict[str, Any]:
    """Return the action as YAML reads it."""
    return yaml.safe_load((root / "action.yml").read_text(encoding="utf-8"))


def evaluate(text: str, names: dict[str, str]) -> str:
    """Fill in the expressions of a text: a name, or the first of several that is not empty."""
    return EXPRESSION.sub(
        lambda match: next(filter(None, (names[n] for n in match[1].split(" || "))), ""), text
    )


def script(step: dict[str, Any], names: dict[str, str], env: dict[str, str]) -> Any:
    """Run one step's script as a runner does with ``shell: bash``."""
    assert step["shell"] == "bash"
    own = {name: evaluate(value, names) for name, value in step.get("env", {}).items()}
    file = Path(env["RUNNER_TEMP"]) / "step.sh"
    file.write_text(step["run"], encoding="utf-8")
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", file],
        env=env | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a job, with a folder for what it writes."""
    temp = tmp_path / "runner"
    (temp / "harel-schema" / "bin").mkdir(parents=True)
    (temp / "harel-schema" / "bin" / "harel-schema").symlink_to(COMMAND)
    return os.environ | {
        "GITHUB_ACTIONS": "true",
        "GITHUB_OUTPUT": str(temp / "output"),
        "GITHUB_STEP_SUMMARY": str(temp / "summary"),
        "RUNNER_TEMP": str(temp),
    }


@pytest.fixture
def use(action: dict[str, Any], runner: dict[str, str]) -> Callable[..., Ended]:
    """Run the action's check and its last step with some inputs."""

    def use(**inputs: str) -> Ended:
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        defaults = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
        names = {f"inputs.{name}": value for name, value in (defaults | given).items()}
        steps = {step["name"]: step for step in action["runs"]["steps"] if "run" in step}
        checked = script(steps["Check the schema"], names, runner)
        assert checked.returncode == 0, checked.stdout
        lines = Path(runner["GITHUB_OUTPUT"]).read_text(encoding="utf-8").splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        names |= {f"steps.check.outputs.{name}": value for name, value in outputs.items()}
        ended = script(steps["Fail on drift"], names, runner)
        summary = Path(runner["GITHUB_STEP_SUMMARY"])
        text = summary.read_text(encoding="utf-8") if summary.exists() else ""
        return Ended(ended.returncode, checked.stdout, outputs, text)

    return use


def test_the_action_is_one_by_the_official_schema(action: dict[str, Any]) -> None:
    """The file is valid, and no script holds an expression: an input is never part of a script."""
    assert schemas.problems(action, schemas.ACTION) == []
    scripts = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert len(scripts) == 3
    assert not any("${{" in text for text in scripts)


def test_the_workflow_in_the_docs_is_one(root: Path, action: dict[str, Any]) -> None:
    """What docs/ci.md offers to copy is a valid workflow, and gives inputs that exist."""
    text = (root / "docs" / "ci.md").read_text(encoding="utf-8")
    workflow, hooks = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    # YAML 1.1 reads the key `on` as a truth value.
    workflow["on"] = workflow.pop(True)
    assert schemas.problems(workflow, schemas.WORKFLOW) == []
    (step,) = workflow["jobs"]["drift"]["steps"]
    assert set(step["with"]) <= set(action["inputs"])
    (hook,) = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hooks["repos"][0]["hooks"][0]["id"] == hook["id"]


def test_no_drift_passes(use, tmp_path: Path) -> None:
    """A database without drift: no annotation, the outputs, a summary, exit 0."""
    migrate.upgrade(tmp_path / "state.db")
    ended = use(target="state.db")
    assert ended.code == 0
    assert "::error" not in ended.log
    assert (ended.outputs["drift"], ended.outputs["exit-code"]) == ("false", "0")
    assert "### ✅ harel-schema check: no drift" in ended.summary


def test_drift_is_annotated_reported_and_fails(use, tmp_path: Path) -> None:
    """Drift: an annotation a difference, three reports, a summary, and the last step fails."""
    migrate.upgrade(tmp_path / "state.db")
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        connection.executescript("""
            DROP INDEX harel_transport_messages_by_group;
            CREATE TABLE people (id INTEGER PRIMARY KEY);
            INSERT INTO harel_timers VALUES ('a', 'p', 'soon');
        """)
    ended = use(target="state.db", strict="true", data="true")
    assert ended.code == 1
    assert ended.outputs["drift"] == "true"
    kinds = re.findall(r"^::error title=harel-schema (\S+)::", ended.log, re.MULTILINE)
    assert kinds == ["index-missing", "table-extra", "data-storage-class"]
    report = json.loads(Path(ended.outputs["json"]).read_text(encoding="utf-8"))
    assert [each["kind"] for each in report["differences"]] == kinds
    log = json.loads(Path(ended.outputs["sarif"]).read_text(encoding="utf-8"))
    assert schemas.problems(log, schemas.SARIF) == []
    assert ended.summary == Path(ended.outputs["markdown"]).read_text(encoding="utf-8")


def test_an_error_is_annotated_and_fails_with_2(use) -> None:
    """What cannot be read is an annotation too; there is no report to upload."""
    ended = use(target="missing%0A.db")
    assert ended.code == 2
    assert (
        ended.log == "::error title=harel-schema::missing%250A.db: no such file; check the path\n"
    )
    assert ended.outputs == {"exit-code": "2"}
    assert ended.summary == ""


@pytest.mark.parametrize("name", ["$(touch pwned).db", '"; touch pwned; ".db', "`touch pwned`.db"])
def test_an_input_is_data(use, tmp_path: Path, name: str) -> None:
    """An input that looks like shell is a file's name."""
    migrate.upgrade(tmp_path / name)
    assert use(target=name).code == 0
    assert not (tmp_path / "pwned").exists()


def test_a_server_is_checked_with_a_token(use) -> None:
    """A server's token comes as an input, and stands neither in the log nor in a report."""
    key = JwtKey()
    with sqld_server(auth_key=key.public) as server:
        with closing(dbapi.connect(server.url, auth_token=key.token())) as connection:
            connection.executescript(";".join(migrate.schema_sql(prefix="app")))
        token = key.token(read_only=True)
        ended = use(target=server.url, auth_token=token, prefix="app")
        assert ended.code == 0, ended.log
        reports = [Path(ended.outputs[name]).read_text("utf-8") for name in ("json", "sarif")]
        assert not any(token in text for text in (ended.log, ended.summary, *reports))
        refused = use(target=server.url, prefix="app")
        assert refused.code == 2
        assert "::error title=harel-schema::" in refused.log


def test_the_install_step_installs_this_checkout(action, runner, root: Path) -> None:
    """Without another package, the code of the action's own ref is what runs."""
    (step,) = (step for step in action["runs"]["steps"] if step.get("name", "").startswith("Inst"))
    Path(runner["RUNNER_TEMP"], "harel-schema", "bin", "harel-schema").unlink()
    here = [path for path in sys.path if path.endswith("site-packages")]
    names = {"inputs.package": "", "github.action_path": str(root)}
    # What it needs is here already. pip reads this variable as the option's value, not its flag.
    offline = {
        "PATH": f"{COMMAND.parent}{os.pathsep}{runner['PATH']}",
        "PIP_NO_BUILD_ISOLATION": "false",
        "PIP_NO_DEPS": "1",
        "PYTHONPATH": os.pathsep.join(here),
    }
    done = script(step, names, runner | offline)
    assert done.returncode == 0, done.stdout
    installed = Path(runner["RUNNER_TEMP"], "harel-schema")
    assert list(installed.glob("lib/*/site-packages/harel_schema/migrations/versions/0001_*.py"))
    version = subprocess.run(
        [installed / "bin" / "harel-schema", "--version"],
        env=runner | offline, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert version.stdout.startswith("harel-schema ")


def test_the_hook_fails_a_commit_on_drift(root: Path, tmp_path: Path) -> None:
    """pre-commit runs the entry with the args of the user's configuration."""
    (hook,) = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {"id", "name", "entry", "language"} <= set(hook)
    assert (hook["language"], hook["pass_filenames"], hook["always_run"]) == ("python", False, True)
    migrate.upgrade(tmp_path / "state.db")
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"

    def commit() -> int:
        command = [*shlex.split(hook["entry"]), "state.db"]
        return subprocess.run(
            command, env=os.environ | {"PATH": path}, capture_output=True, check=False
        ).returncode

    assert commit() == 0
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection, connection:
        connection.execute("DROP TABLE harel_trace")
    assert commit() == 1
