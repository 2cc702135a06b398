"""What `migrations/env.py` runs: for the command ``alembic``, or for `harel_schema.migrate`."""

from __future__ import annotations

import os
from contextlib import suppress
from logging.config import fileConfig

from alembic import context
from alembic.util import CommandError

from harel_schema.dbapi.waiting import PATIENCE
from harel_schema.errors import HarelSchemaError, TargetError
from harel_schema.migrate import runner
from harel_schema.names import DEFAULT_PREFIX, PREFIX_VARIABLE, check_prefix
from harel_schema.revisions import offline
from harel_schema.target import (
    TARGET_VARIABLE,
    TOKEN_VARIABLES,
    Target,
    flag,
    with_environment_token,
)

__all__ = ["JOB", "run"]

# The key of `Config.attributes` under which `harel_schema.migrate` hands its job over.
JOB = "harel_schema.job"

_KNOWN = ("target", "prefix", "force", "timeout")


def run() -> None:
    """Run Alembic's command, online or as SQL text.

    Without a job of `harel_schema.migrate`, the command ``alembic`` is speaking: `-x` and the
    environment name the database, and an error of ours becomes the `CommandError` that it prints
    in one line.
    """
    job = context.config.attributes.get(JOB)
    if job is not None:
        _dispatch(job)
        return
    config = context.config
    if config.config_file_name and config.file_config.has_section("loggers"):
        fileConfig(config.config_file_name, disable_existing_loggers=False)
    try:
        _dispatch(_job_of_command_line())
    except HarelSchemaError as error:
        raise CommandError(" ".join(str(error).split())) from error


def _dispatch(job: runner.Job) -> None:
    if not context.is_offline_mode():
        runner.run(job)
        return
    context.configure(dialect_name="sqlite", literal_binds=True, **runner.options(job))
    offline(context.get_context().dialect)
    with context.begin_transaction():
        context.run_migrations()


def _job_of_command_line() -> runner.Job:
    given = context.get_x_argument(as_dictionary=True)
    unknown = sorted(given.keys() - set(_KNOWN))
    if unknown:
        raise TargetError(f"unknown -x {unknown[0]}", remedy=f"known: {', '.join(_KNOWN)}")
    # An empty -x is a mistake, such as a variable of the deploy that is not set.
    target = os.environ.get(TARGET_VARIABLE) or "sqlite:///state.db"
    prefix = os.environ.get(PREFIX_VARIABLE) or DEFAULT_PREFIX
    text, prefix = given.get("target", target), given.get("prefix", prefix)
    database = with_environment_token(Target.parse(text), *TOKEN_VARIABLES)
    force = flag("-x force", given.get("force", "false"))
    timeout = _seconds("timeout", given.get("timeout", str(PATIENCE)))
    return runner.Job(database, check_prefix(prefix), timeout, force=force)


def _seconds(name: str, value: str) -> float:
    with suppress(ValueError):
        if (seconds := float(value)) > 0:
            return seconds
    raise TargetError(f"-x {name}={value} is no number of seconds", remedy=f"use {name}=30")
