"""How commands end: exit codes, one line for each error and warning, nothing half-written."""

from __future__ import annotations

import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from rankernel import _loops
from rankernel._utils.checks import printable
from rankernel.errors import Argument, ArgumentError, PhrasedMessage

DATA_ERROR, USAGE_ERROR, INTERRUPTED, TERMINATED = 1, 2, 130, 143
NOTHING_WRITTEN = "nothing was written; the same command starts again"

# Options whose name is not that of the Python argument with dashes.
OPTIONS = {
    "label_columns": "--by or --labels",
    "columns": "--column",
    "overwrite": "--force",
    "n_clusters": "--k",
    "n_permutations": "--permutations",
    "n_draws": "--method montecarlo:draws",
    "n_jobs": "--jobs",
    "rng": "--seed",
    "out": "--output",
}
MONTE_CARLO = "--method montecarlo:draws=64"


class UsageError(typer.BadParameter):
    """An invalid command line."""

    def format_message(self) -> str:
        """Return the message without a prefix."""
        return self.message


class Interrupted(Exception):  # noqa: N818 - an interrupt is not an error
    """A KeyboardInterrupt within a command, which typer would turn into an exit code without its notes."""


class CommandGroup(TyperGroup):
    """A group of commands that turns errors into one line and an exit code."""

    debug = False  # set by --debug, which every command takes

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run a command and exit with its exit code."""
        self.debug = False
        with warnings_as_notes(), compilation_notes(), termination_as_exit():
            sys.exit(self.exit_code(*args, **{**options, "standalone_mode": False}))

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(*getattr(interrupt, "__notes__", ())) from None

    def exit_code(self, *args: Any, **options: Any) -> int:
        """Run a command and return its exit code, after printing what went wrong."""
        try:
            code = super().main(*args, **options)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the output has closed it
            sys.stdout = None
            return DATA_ERROR
        except SystemExit as stop:
            if stop.code != TERMINATED:  # such as shell completion, which has printed its output
                raise
            return fail(ended("terminated", getattr(stop, "__notes__", ())), TERMINATED)
        except (Interrupted, typer.Abort) as interrupt:
            return fail(ended("interrupted", interrupt.args), INTERRUPTED)
        except Exception as error:
            if self.debug:
                traceback.print_exc()
            if is_interrupt(error):
                return fail(ended("interrupted"), INTERRUPTED)
            if hasattr(error, "format_message"):  # of the command line
                return fail(one_line(error.format_message()), getattr(error, "exit_code", USAGE_ERROR))
            return fail(explanation(error), DATA_ERROR)
        if code == INTERRUPTED:  # typer returns this for an interrupt before the command
            return fail(ended("interrupted"), INTERRUPTED)
        return code if isinstance(code, int) else 0


def fail(problem: str, code: int) -> int:
    """Print one line to the standard error and return an exit code."""
    typer.echo(f"rankernel: {problem}", err=True)
    return code


def ended(how: str, notes: Any = ()) -> str:
    """Return how a command ended early, and how to continue."""
    return f"{how}; {'; '.join(map(str, notes)) or NOTHING_WRITTEN}"


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error was raised because of a KeyboardInterrupt, as imports and callbacks may do."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


# ---------------------------------------------------------------------- phrasing


def phrased(error: BaseException) -> str:
    """Return the message of an exception or warning, with references to arguments as options."""
    return error.phrase(option_text) if isinstance(error, PhrasedMessage) else str(error)


def option_text(argument: Argument) -> str:
    """Return a reference to an argument as an option of the command line.

    Examples
    --------
    >>> option_text(Argument("separator", "|")), option_text(Argument("overwrite", True))
    ("--separator '|'", '--force')
    >>> option_text(Argument("items", ...)), option_text(Argument("unlisted"))
    ('--items', '--unlisted')
    """
    name, value = argument
    option = OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if name == "method" and not isinstance(value, str):
        return MONTE_CARLO
    if value is Argument(name).value or value is ... or value is True:
        return option
    if isinstance(value, Mapping):
        value = [f"{key}={each}" for key, each in value.items()]
    texts = value if isinstance(value, list | tuple) else [value]
    sign = "=" if "=" in option or ":" in option else " "
    return f"{option}{sign}{','.join(shlex.quote(str(text)) for text in texts)}"


def one_line(text: str) -> str:
    """Return a text of several lines as one printable line."""
    return " ".join(printable(word) for word in text.split())


def explanation(error: Exception) -> str:
    """Return the description of an error in one line."""
    text = one_line(phrased(error))
    filename = printable(getattr(error, "filename", None) or "")
    match error:
        case FileNotFoundError() if filename:
            return f"there is no file {filename}"
        case IsADirectoryError() if filename:
            return f"{filename} is a folder; name a file"
        case PermissionError() if filename:
            return f"{filename} may not be read or written"
        case OSError() if error.strerror:
            return one_line(f"{filename}: {error.strerror}" if filename else error.strerror)
        case MemoryError():
            return text or "there is not enough memory"
        case ValueError() | ImportError() | OSError() | TypeError():
            return text
    return f"{type(error).__name__}: {text} (this is a bug; add --debug to see where)"


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors about arguments into errors about the command line."""
    try:
        yield
    except ArgumentError as error:
        raise UsageError(phrased(error)) from None


# ---------------------------------------------------------------------- warnings and signals


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print each warning once, as one line on the standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = lambda message, *_, **__: typer.echo(
            f"note: {one_line(phrased(message) if isinstance(message, Warning) else message)}", err=True
        )
        yield


@contextmanager
def compilation_notes() -> Iterator[None]:
    """Print a line on the standard error before loops are compiled, which takes some seconds."""

    def announce() -> None:
        typer.echo("note: compiling for this machine, which takes some seconds the first time", err=True)

    _loops.before_compiling.append(announce)
    try:
        yield
    finally:
        _loops.before_compiling.clear()


@contextmanager
def termination_as_exit() -> Iterator[None]:
    """Exit on SIGTERM by an exception, so that temporary files are removed."""

    def terminate(*_: object) -> None:
        raise SystemExit(TERMINATED)

    try:
        before = signal.getsignal(signal.SIGTERM)
        if before != signal.SIG_IGN:
            signal.signal(signal.SIGTERM, terminate)
    except ValueError:  # only the main thread handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
