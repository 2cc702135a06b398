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
from click.shell_completion import CompletionItem

from harel_schema._version import __version__
from harel_schema.cli.interrupts import interruptible
from harel_schema.cli.options import wants_color
from harel_schema.errors import HarelSchemaError, RequestTimeout
from harel_schema.names import one_line

__all__ = ["cli", "explain", "main"]

# A verb's module is imported when the verb is run: most of them bring Alembic along.
_VERBS = {
    "upgrade": "schema",
    "downgrade": "schema",
    "current": "schema",
    "history": "schema",
    "stamp": "schema",
    "adopt": "adopt",
    "check": "drift",
    "diff": "drift",
    "diagram": "diagram",
    "copy": "data",
    "verify": "data",
    "move": "moving",
    "unfence": "moving",
    "doctor": "doctor",
    "dev-server": "server",
    "completion": "completion",
}
# Every verb can be run again, whatever became of a request.
_SILENT = "check that it is well, or give it more time with --timeout"
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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415 - a typing error is rare

            close = get_close_matches(args[0], _VERBS, 1)
            if not close:
                raise
            said = f"{error.message.rstrip('.')}, but there is {close[0]!r}"
            raise click.UsageError(said, ctx) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # click's own way loads every verb, which takes longer than a Tab key may.
        verbs = [CompletionItem(verb) for verb in _VERBS if verb.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]


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
        with interruptible():
            # Not standalone: click would print a usage text before each error.
            result = cli.main(args, prog_name="harel-schema", standalone_mode=False)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return _ERROR
    except (BrokenPipeError, SystemExit):
        # The reader of our output went away (`| head`): say nothing, also not at shutdown. click
        # ends with 1 then, which here would mean that a difference was found.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _ERROR
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - every error ends in one line
        if sys.stderr is not None:
            label = click.style("error", fg="red") if wants_color(sys.stderr) else "error"
            click.echo(f"{label}: {explain(error)}", err=True)
        return _INTERRUPTED if isinstance(error, click.Abort | KeyboardInterrupt) else _ERROR
    return result if isinstance(result, int) else 0


def explain(error: BaseException) -> str:
    """Return what an error says to a user, in one line, whatever it quotes."""
    return one_line(" ".join(_words(error).split()))


def _words(error: BaseException) -> str:
    match error:
        case click.Abort() | KeyboardInterrupt():
            # click raises its own error from the one that may say what to do.
            cause = error.__cause__ or error
            return "; ".join(["interrupted", *map(str, cause.args)])
        case click.UsageError(ctx=ctx):
            path = ctx.command_path if ctx else "harel-schema"
            return f"{error.format_message().rstrip('.')}; see '{path} --help'"
        case click.ClickException():
            return error.format_message()
        case HarelSchemaError(message=message):
            return f"{message}; {_SILENT}" if isinstance(error, RequestTimeout) else str(error)
        case OSError(filename=name, strerror=reason):
            return f"{name}: {reason}" if name else str(reason or error)
    if os.environ.get("HAREL_SCHEMA_TRACEBACK"):
        traceback.print_exception(error)
    return (
        f"unexpected {type(error).__name__}: {error}; "
        "a defect: set HAREL_SCHEMA_TRACEBACK=1 and report what it prints"
    )
