"""What stands around every command: exit codes, one line for each error and warning, an orderly end."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from rankernel import _loops
from rankernel._utils.checks import printable
from rankernel.cli.endings import DATA_ERROR, INTERRUPTED, NOTHING_KEPT, TERMINATED, is_interruption
from rankernel.cli.option_words import in_options
from rankernel.cli.stop_requests import ENDS, stop_requests


class GuardedGroup(TyperGroup):
    """A group of commands that turns whatever goes wrong into one line and an exit code."""

    debug = False  # set by --debug, which every command takes
    kept = ""  # what an interrupted command keeps, and how it goes on

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        self.debug, self.kept = False, ""
        with plain_warnings(), announced_compiling():
            sys.exit(self.outcome(*args, **{**options, "standalone_mode": False}))

    def invoke(self, ctx: Any) -> Any:
        """Run a command, remembering what it noted when it was interrupted."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, SystemExit) as stop:
            self.kept = "; ".join(getattr(stop, "__notes__", []))
            raise

    def ended(self, how: str) -> str:
        """Return how a command ended before its time, and how to go on."""
        return f"{how}; {self.kept or NOTHING_KEPT}"

    def outcome(self, *args: Any, **options: Any) -> int:
        """Run a command and return its exit code, having said what went wrong."""
        try:
            with stop_requests() as requests:
                code = super().main(*args, **options)
                sys.stdout.flush()
        except BrokenPipeError:  # whoever read our output has seen enough
            sys.stdout = None
            return DATA_ERROR
        except (KeyboardInterrupt, typer.Abort):
            return self.say(self.ended("interrupted"), INTERRUPTED)
        except SystemExit as stop:
            if stop.code != TERMINATED:  # such as completion, which has said what it had to
                raise
            return self.say(self.ended("terminated"), TERMINATED)
        except Exception as error:
            if is_interruption(error):
                return self.say(self.ended("interrupted"), INTERRUPTED)
            if self.debug:
                traceback.print_exc()
            if requests.asked:  # what was raised then may be what the request was turned into
                how, code = ENDS[requests.asked]
                return self.say(self.ended(how), code)
            if hasattr(error, "format_message"):  # of the command line itself
                said = in_options(error.format_message())
                return self.say(one_line(said), error.exit_code)  # type: ignore[attr-defined]
            return self.say(explanation(error), DATA_ERROR)
        if code == INTERRUPTED:  # typer makes this of Ctrl-C
            return self.say(self.ended("interrupted"), INTERRUPTED)
        if requests.asked:
            how, code = ENDS[requests.asked]
            return self.say(f"{how} when everything was done", code)
        return code if isinstance(code, int) else 0

    def say(self, problem: str, code: int) -> int:
        """Print one line to the standard error and return the exit code."""
        typer.echo(f"rankernel: {problem}", err=True)
        return code


def one_line(text: str) -> str:
    """Return a text of any number of lines as one."""
    return " ".join(printable(line) for line in text.split())


def explanation(error: Exception) -> str:
    """Return what went wrong, in one line."""
    text = one_line(in_options(str(error)))
    match error:
        case FileNotFoundError() if error.filename:
            return f"there is no file {printable(error.filename)}"
        case IsADirectoryError() if error.filename:
            return f"{printable(error.filename)} is a folder; name a file"
        case PermissionError() if error.filename:
            return f"{printable(error.filename)} may not be read or written"
        case OSError() if error.strerror:
            where = f"{printable(error.filename)}: " if error.filename else ""
            return one_line(f"{where}{in_options(error.strerror)}")
        case MemoryError():
            return text or "there is not enough memory for this"
        case ValueError() | ImportError() | OSError() | TypeError():  # those of the package are among them
            return text
    return f"{type(error).__name__}: {text} (this should not happen; add --debug to see where)"


class UsageProblem(typer.BadParameter):
    """A command line that makes no sense."""

    def format_message(self) -> str:
        """Return what is wrong, without the words that would go before it."""
        return self.message


def usage(problem: str) -> UsageProblem:
    """Return the error for a command line that makes no sense."""
    return UsageProblem(problem)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show each warning once, as one line on the standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = lambda message, *_, **__: typer.echo(
            f"note: {one_line(in_options(str(message)))}", err=True
        )
        yield


@contextmanager
def announced_compiling() -> Iterator[None]:
    """Say so in one line on the standard error when loops have to be compiled first: it takes some seconds."""

    def say() -> None:
        typer.echo("note: compiling for this machine, which takes some seconds the first time", err=True)

    _loops.before_compiling.append(say)
    try:
        yield
    finally:
        _loops.before_compiling.clear()
