"""The terminal: exit codes, one line for each error and warning, text and JSON, files written atomically, progress."""

from __future__ import annotations

import csv
import json
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from rankernel import _loops
from rankernel._utils import resources
from rankernel._utils.checks import printable
from rankernel.errors import Argument, ArgumentError, PhrasedMessage, RankingError, require
from rankernel.io.source import plain_cell

if TYPE_CHECKING:
    from rich.console import Console

DATA_ERROR, USAGE_ERROR, INTERRUPTED, TERMINATED = 1, 2, 130, 143
NOTHING_WRITTEN = "nothing was written; the same command starts again"

# Options whose name is not that of the Python argument with dashes.
OPTIONS = {
    "label_columns": "--by or --labels",
    "columns": "--column",
    "aliases": "--alias",
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


class WithoutTypes:
    """A command whose help shows no types of flags and arguments, which would be <bool> and <list[Path]>."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if param.param_type_name == "argument" or getattr(param, "is_flag", False):
                vars(param)["display_type_rich"] = lambda **_: None
        return params


class Command(WithoutTypes, TyperCommand):
    """A command."""


class CommandGroup(WithoutTypes, TyperGroup):
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
            if hasattr(error, "format_message"):  # of the command line; without any argument the help was printed
                message, code = one_line(error.format_message()), getattr(error, "exit_code", USAGE_ERROR)
                return fail(message, code) if message else code
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
    """Return a reference to an argument as an option of the command line, such as ``--separator '|'``."""
    name, value = argument
    option = OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if name == "header" and value is False:
        return "--no-header"
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

    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) == signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# ---------------------------------------------------------------------- text on the screen

PICTURES = (".png", ".svg", ".pdf")
SHOWN_GROUPS = 30  # in a message
NOTE_SECONDS = 15.0  # between progress notes where the standard error is not a terminal


def console() -> Console:
    """Return the screen, without markup, so that names cannot change its appearance."""
    from rich.console import Console

    n_columns = None if sys.stdout.isatty() else 120
    return Console(markup=False, highlight=False, emoji=False, width=n_columns)


def print_facts(screen: Console, facts: dict[str, Any]) -> None:
    """Print names and values in two columns."""
    print_table(screen, [["", ""], *([name, str(value)] for name, value in facts.items())], show_header=False)


def print_table(screen: Console, rows: list[list[str]], show_header: bool = True) -> None:
    """Print a table whose first row is its heading."""
    from rich.table import Table

    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_header=show_header)
    for number, name in enumerate(rows[0]):
        grid.add_column(printable(name), style="" if show_header or number else "dim")
    for row in rows[1:]:
        grid.add_row(*map(printable, row))
    if screen.is_terminal:
        screen.print(grid)
        return
    with screen.capture() as text:
        screen.print(grid)
    screen.out("\n".join(line.rstrip() for line in text.get().splitlines()), highlight=False)


def listed(names: Sequence[str], limit: int) -> str:
    """Return names separated by commas, or by semicolons if a name has a comma, shortened to a number of them."""
    more = f" ... and {len(names) - limit:,} more" if len(names) > limit else ""
    separator = "; " if any("," in name for name in names[:limit]) else ", "
    return separator.join(printable(name) for name in names[:limit]) + more


def show(as_json: bool, facts: dict[str, Any], **numbers: Any) -> None:
    """Print facts as text, or with further numbers as JSON."""
    if as_json:
        print_json(facts | numbers)
    else:
        print_facts(console(), facts)


def print_json(content: dict[str, Any]) -> None:
    """Print a JSON object; names of several words become identifiers, numbers that are not finite become null."""

    def plain(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)

    named = {name.replace(" ", "_"): value for name, value in content.items()}
    finite = json.loads(json.dumps(named, default=plain), parse_constant=lambda _: None)
    typer.echo(json.dumps(finite, indent=2, ensure_ascii=True))


# ---------------------------------------------------------------------- files


def check_suffix(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise an error if the suffix of a file to write is unknown, or if it needs a package that is not installed."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise UsageError(f"-o {printable(path.name)} does not end in {', '.join(suffixes)}")
    if suffix in PICTURES:
        require("matplotlib", "plots")
    if suffix == ".zarr":
        require("zarr", "zarr")


def check_target(path: Path, force: bool, source: Path | None = None, folder: bool = False) -> None:
    """Raise an error if a file cannot be written or is the file that is read, before anything is computed."""
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise UsageError(f"-o {printable(path)} is the file that is read; give another name")
    if source is not None and path.resolve() in source.resolve().parents:
        raise UsageError(f"-o {printable(path)} is the folder of the file that is read; give another name")
    if path.is_dir() and not folder:
        raise UsageError(f"{printable(path)} is a folder; name a file")
    if path.exists() and not force:
        raise RankingError(f"{printable(path)} exists; give another name with -o, or --force")
    parent = path.resolve().parent
    if not parent.is_dir():
        raise RankingError(f"there is no folder {printable(parent)}")
    try:
        resources.check_writable(path)
    except OSError as error:
        raise RankingError(f"{printable(path)} cannot be written: {(error.strerror or str(error)).lower()}") from None


@contextmanager
def atomic_file(path: Path, force: bool) -> Iterator[Path]:
    """Yield the name of a temporary file, which replaces the path if there is no error."""
    check_target(path, force)
    with resources.whole_file(path) as temporary:
        yield temporary
        check_target(path, force)


def write_rows(path: Path, header: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a .csv file whose texts are not evaluated as formulas by a spreadsheet."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(plain_cell, header))
        for row in rows:
            writer.writerow([plain_cell(cell) if isinstance(cell, str) else cell for cell in row])


# ---------------------------------------------------------------------- progress


@contextmanager
def progress(label: str) -> Iterator[Callable[..., None]]:
    """Show a progress bar, or print a line now and then if the standard error is not a terminal.

    The function that is yielded takes the label of the next step and, if they are known, how much is done of a total.
    """
    started = noted = monotonic()
    if not sys.stderr.isatty():

        def note(label: str, done: int = 0, of: int = 0) -> None:
            nonlocal noted
            if of and monotonic() - noted > NOTE_SECONDS:
                noted = monotonic()
                elapsed = timedelta(seconds=round(noted - started))
                typer.echo(f"note: {label.lower()}, {done:,} of {of:,} done, {elapsed} elapsed", err=True)

        yield note
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(label, total=None)
        yield lambda label, done=None, of=None: display.update(task, description=label, completed=done, total=of)
