"""The command ``harel-schema``: one function a verb.

Data goes to stdout, progress and logs to stderr. Exit 0: done, or the same; 1: a difference was
found; 2: an error, in one line that says what to do next; 130: interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from typing import NoReturn

import click

from harel_schema._version import __version__
from harel_schema.errors import HarelSchemaError

__all__ = ["cli", "main"]

# A verb's module is imported when the verb is run: most of them bring Alembic along.
_VERBS = {
    "upgrade": "schema",
    "downgrade": "schema",
    "current": "schema",
    "history": "schema",
    "stamp": "schema",
    "check": "drift",
    "diff": "drift",
    "copy": "data",
    "verify": "data",
    "dev-server": "server",
}
_ERROR = 2
_INTERRUPTED = 130


class _Verbs(click.Group):
    """The verbs, each loaded from its module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        module = _VERBS.get(cmd_name)
        if module is None:
            return None
        loaded = import_module(f"harel_schema.cli.{module}")
        command: click.Command = getattr(loaded, cmd_name.replace("-", "_"))
        return command


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="harel-schema", message="%(prog)s %(version)s")
def cli() -> None:
    """Own the database of harel's executions: its schema, its data, its checks.

    A database is named as state.db, sqlite:///state.db, libsql://HOST, https://HOST or
    http://HOST:PORT; HAREL_SCHEMA_TARGET names the default. A token comes from --auth-token,
    TURSO_AUTH_TOKEN or HAREL_LIBSQL_AUTH_TOKEN.

    Exit codes: 0 done, or the same; 1 a difference was found; 2 an error.
    """


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command and exit; every error becomes one line on stderr."""
    sys.exit(_run(args))


def _run(args: list[str] | None) -> int:
    try:
        # Not standalone: click would print a usage text before each error.
        result = cli.main(args, prog_name="harel-schema", standalone_mode=False)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", _INTERRUPTED)
    except click.UsageError as error:
        help_ = f"see '{error.ctx.command_path} --help'" if error.ctx else "see --help"
        return _fail(f"{error.format_message().rstrip('.')}; {help_}")
    except click.ClickException as error:
        return _fail(error.format_message())
    except HarelSchemaError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # The reader of our output went away (`| head`); say nothing, also not at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _ERROR
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _fail(f"{name}{error.strerror or error}")
    except Exception as error:  # noqa: BLE001 - a defect of ours still ends in one line
        if os.environ.get("HAREL_SCHEMA_TRACEBACK"):
            traceback.print_exc()
        kind = type(error).__name__
        return _fail(
            f"unexpected {kind}: {error}; a defect: set HAREL_SCHEMA_TRACEBACK=1 and report it"
        )
    return result if isinstance(result, int) else 0


def _fail(message: str, code: int = _ERROR) -> int:
    line = " ".join(message.split())
    click.echo(f"{click.style('error', fg='red')}: {line}", err=True)
    return code
