"""One verb on several databases: jobs, a line each, a summary, the worst exit code."""

from __future__ import annotations

import os
import signal
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial, wraps
from multiprocessing import get_context, resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harel_schema.cli.interrupts import interrupts_held
from harel_schema.cli.options import complete_file, resolve_target, token_option
from harel_schema.cli.progress import fleet_bar
from harel_schema.cli.waits import tell
from harel_schema.errors import TargetError
from harel_schema.target import TARGET_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harel_schema.cli.options import Output
    from harel_schema.target import Target

__all__ = ["Answer", "Fleet", "fleet_options", "named", "run"]

_ERROR = 2
# Characters. A device has no end.
_LONGEST_LIST = 10_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb says of one database: its line without the name, and the word it is counted by.

    `code` is the exit code that it would have alone.
    """

    line: str
    word: str
    result: object
    code: int = 0


@dataclass(frozen=True, slots=True)
class Fleet:
    """The databases that a verb was given, and how to go about them."""

    targets: tuple[Target, ...]
    jobs: int
    keep_going: bool
    listed: bool

    @property
    def alone(self) -> Target | None:
        """The database of a verb that was given one, and no list."""
        return None if self.listed or len(self.targets) != 1 else self.targets[0]


@dataclass(frozen=True, slots=True)
class _Done:
    """What became of one database."""

    target: str
    outcome: str
    code: int
    result: object = None
    error: str | None = None
    line: str = ""


def fleet_options(function: Callable[..., object]) -> Callable[..., object]:
    """Add the arguments TARGET…, `--targets`, `--jobs`, `--keep-going` and `--auth-token`.

    The function is called with them as one `fleet`, None when no database is named.
    """

    @wraps(function)
    def call(
        *,
        target: tuple[str, ...],
        targets: Path | None,
        jobs: int,
        keep_going: bool,
        auth_token: str | None,
        **others: object,
    ) -> object:
        found = _resolve(target, targets, auth_token)
        fleet = Fleet(found, jobs, keep_going, targets is not None) if found else None
        return function(fleet=fleet, **others)

    decorated: Callable[..., object] = call
    for option in (
        click.option("--keep-going", is_flag=True, help="Go on with the others after an error."),
        click.option(
            "--jobs",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            metavar="N",
            help="How many databases to work on at once.",
        ),
        click.option(
            "--targets",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Read the databases from FILE, one a line; a line that begins with # is passed "
            "over. A server's token comes from the environment.",
        ),
    ):
        decorated = option(decorated)
    target = click.argument("target", nargs=-1, shell_complete=complete_file)
    return target(token_option(decorated))


def named(fleet: Fleet | None) -> Fleet:
    """Refuse to do without a database."""
    return fleet or Fleet((resolve_target(None, None),), 1, keep_going=False, listed=False)


def run(work: Callable[[Target], Answer], fleet: Fleet, output: Output) -> int:
    """Do `work`, which can be pickled, for every database; return the worst exit code.

    Prints a line for each as it ends, and a summary; as JSON one document, in the order in which
    the databases were named. After an error no further one is begun, unless told otherwise.
    """
    done: dict[Target, _Done] = {}
    with fleet_bar(output, len(fleet.targets)) as advance:
        for target, each in _ends(work, fleet, output):
            done[target] = each
            advance()
            if output.format == "text":
                click.echo(f"{each.target}: {each.line}")
    results = [done.get(each) or _Done(str(each), "not begun", 0) for each in fleet.targets]
    counts = Counter(each.outcome for each in results)
    names = ", ".join(f"{number:,} {word}" for word, number in sorted(counts.items()))
    rows = [
        {"target": r.target, "outcome": r.outcome, "code": r.code, "result": r.result,
         "error": r.error}
        for r in results
    ]  # fmt: skip
    output.result(
        {"results": rows, "summary": dict(counts)}, f"{len(results):,} databases: {names}"
    )
    return max(each.code for each in results)


def _ends(
    work: Callable[[Target], Answer], fleet: Fleet, output: Output
) -> Iterator[tuple[Target, _Done]]:
    """Yield each database as it ends."""
    one = partial(_one, work)
    if fleet.jobs == 1 or len(fleet.targets) == 1:
        for target in fleet.targets:
            done = one(target)
            yield target, done
            if done.error and not fleet.keep_going:
                return
        return
    # Not threads: Alembic keeps its state in globals. Not fork: what is open here stays here.
    with ProcessPoolExecutor(
        min(fleet.jobs, len(fleet.targets)), get_context("spawn"), _prepare, (output,)
    ) as pool:
        # Python's own helper process would let signals through again as it begins.
        resource_tracker.ensure_running()
        # Ctrl-C does not reach the processes while their modules load.
        with interrupts_held():
            futures = {pool.submit(one, target): target for target in fleet.targets}
        waiting = set(futures)
        try:
            while waiting:
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                answers = [(futures[each], _result(each, futures[each])) for each in ended]
                yield from answers
                if any(each.error for _, each in answers) and not fleet.keep_going:
                    waiting = {each for each in waiting if not each.cancel()}
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _result(future: Future[_Done], target: Target) -> _Done:
    try:
        return future.result()
    except BrokenProcessPool:
        return _failed(str(target), "a process that worked on it or on another one was killed")


def _prepare(output: Output) -> None:
    """Let a database that was begun come to its end, also when the parent is interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tell(output)


def _one(work: Callable[[Target], Answer], target: Target) -> _Done:
    from harel_schema.cli import explain  # noqa: PLC0415 - it imports the verbs

    try:
        answer = work(target)
    except Exception as error:  # noqa: BLE001 - an error is the result of its database
        return _failed(str(target), explain(error))
    return _Done(str(target), answer.word, answer.code, answer.result, line=answer.line)


def _failed(target: str, error: str) -> _Done:
    line = f"error: {error.removeprefix(f'{target}: ')}"
    return _Done(target, "failed", _ERROR, error=error, line=line)


def _resolve(texts: Sequence[str], file: Path | None, auth_token: str | None) -> tuple[Target, ...]:
    """Read all names before anything is opened; one that is named twice is worked on once."""
    found = [resolve_target(text, auth_token) for text in texts]
    if file is not None:
        found += _listed(file, auth_token)
        if not found:
            raise TargetError(f"{file} names no database", remedy="write one a line")
    elif not texts and os.environ.get(TARGET_VARIABLE):
        found.append(resolve_target(os.environ[TARGET_VARIABLE], auth_token))
    return tuple(dict.fromkeys(found))


def _listed(file: Path, auth_token: str | None) -> Iterator[Target]:
    try:
        with file.open(encoding="utf-8") as listed:
            text = listed.read(_LONGEST_LIST + 1)
    except UnicodeDecodeError as error:
        raise TargetError(f"{file} is no text", remedy="list the databases, one a line") from error
    if len(text) > _LONGEST_LIST:
        raise TargetError(
            f"{file} has more than {_LONGEST_LIST:,} characters",
            remedy="list the databases, one a line, in several files",
        )
    for number, line in enumerate(text.splitlines(), 1):
        name = line.strip()
        if name and not name.startswith("#"):
            try:
                yield resolve_target(name, auth_token)
            except TargetError as error:
                raise TargetError(f"{file}, line {number}: {error}") from error
