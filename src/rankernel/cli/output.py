"""Output of commands: text and JSON on the screen, files written atomically, progress on the standard error."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

from rankernel._utils import resources
from rankernel._utils.checks import printable
from rankernel.cli.failures import UsageError
from rankernel.errors import RankingError, require
from rankernel.io.text_files import plain_cell

if TYPE_CHECKING:
    from rich.console import Console

PICTURES = (".png", ".svg", ".pdf")
SHOWN_GROUPS = 30  # in a message
NOTE_SECONDS = 15.0  # between progress notes where the standard error is not a terminal


def console() -> Console:
    """Return the screen, without markup, so that names cannot change its appearance."""
    from rich.console import Console

    n_columns = None if sys.stdout.isatty() else 120
    return Console(markup=False, highlight=False, emoji=False, width=n_columns)


def print_facts(screen: Console, facts: dict[str, str]) -> None:
    """Print names and values in two columns."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in facts.items():
        grid.add_row(name, value)
    screen.print(grid)


def print_table(screen: Console, rows: list[list[str]]) -> None:
    """Print a table whose first row is its heading."""
    from rich.table import Table

    grid = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False, header_style="dim")
    for name in rows[0]:
        grid.add_column(printable(name))
    for row in rows[1:]:
        grid.add_row(*map(printable, row))
    screen.print(grid)


def listed(names: Sequence[str], limit: int) -> str:
    """Return names separated by commas, shortened to a number of them."""
    more = f" ... and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(printable(name) for name in names[:limit]) + more


def print_json(content: dict[str, Any]) -> None:
    """Print a JSON object."""

    def plain(value: Any) -> Any:
        return value.tolist() if hasattr(value, "tolist") else str(value)

    typer.echo(json.dumps(content, indent=2, ensure_ascii=True, default=plain))


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
def progress(total: int | None, label: str, even: bool = False) -> Iterator[Callable[..., None]]:
    """Show a progress bar, or print a note now and then if the standard error is not a terminal.

    The function that is yielded advances the progress bar: by one step with the label of the next, or to a number of a
    total. Without a total the progress bar only shows activity. The remaining time is shown if all steps take equally
    long (even).
    """
    if not sys.stderr.isatty():
        with Notes(label) as notes:
            yield notes.step
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()]
    columns += [TimeRemainingColumn()] if even else []
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(label, total=total)

        def step(label: str, done: int | None = None, of: int | None = None) -> None:
            change: dict[str, Any] = {"advance": 1} if done is None else {"completed": done, "total": of}
            display.update(task, description=label, **change)

        yield step


class Notes:
    """Progress as lines on the standard error."""

    def __init__(self, label: str, seconds: float = NOTE_SECONDS) -> None:
        self.label, self.share, self.seconds, self.started, self.ended = label, "", seconds, monotonic(), Event()
        self.screen = sys.stderr
        self.thread = Thread(target=self.run, daemon=True)

    def __enter__(self) -> Notes:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()

    def step(self, label: str, done: int | None = None, of: int | None = None) -> None:
        """Set the label of the current step, and how much of it is done."""
        self.label, self.share = label, f", {done:,} of {of:,} done" if done is not None and of else ""

    def run(self) -> None:
        """Print a note at regular intervals."""
        while not self.ended.wait(self.seconds):
            elapsed = timedelta(seconds=round(monotonic() - self.started))
            with suppress(OSError, ValueError):  # the standard error is closed
                self.screen.write(f"note: {self.label.lower()}{self.share}, {elapsed} elapsed\n")
                self.screen.flush()
