"""What a command leaves behind: text on the screen, JSON, files that are whole or not there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

from rankernel._utils import files as whole_files
from rankernel._utils.checks import printable
from rankernel.cli.failures import usage
from rankernel.errors import RankingError, require

if TYPE_CHECKING:
    from rich.console import Console

PICTURES = (".png", ".svg", ".pdf")
SHOWN_GROUPS = 30  # in a message
SILENCE = 15.0  # seconds after which a command that no one watches says what it does


def console() -> Console:
    """Return the screen: no markup, so that no name can change how it looks."""
    from rich.console import Console

    wide = None if sys.stdout.isatty() else 120  # nothing is cut where no one looks
    return Console(markup=False, highlight=False, emoji=False, width=wide)


def show_facts(screen: Console, facts: dict[str, str]) -> None:
    """Print names and what they stand for, in two columns."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in facts.items():
        grid.add_row(name, value)
    screen.print(grid)


def listed(items: Sequence[str], most: int) -> str:
    """Return the names of items, the first ones if there are many."""
    more = f" ... and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(printable(item) for item in items[:most]) + more


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=True, default=plain))


def plain(value: Any) -> Any:
    """Return an array or a number of NumPy as JSON knows it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


# ---------------------------------------------------------------------- files


def check_ending(path: Path, endings: tuple[str, ...]) -> None:
    """Refuse a name whose ending does not say how to write it, or says a way for which a package is missing."""
    ending = path.suffix.lower()
    if ending not in endings:
        raise usage(f"-o {printable(path.name)} ends in none of {', '.join(endings)}")
    if ending in PICTURES:
        require("matplotlib", "plots")
    if ending == ".zarr":
        require("zarr", "zarr")


def check_free(path: Path, force: bool, read: Path | None = None, folder: bool = False) -> None:
    """Refuse a name that is taken, cannot be written or is what is read, before any work is done; some are folders."""
    if read is not None and path.exists() and read.exists() and path.samefile(read):
        raise usage(f"-o {printable(path)} is the file that is read; give another name")
    if read is not None and path.resolve() in read.resolve().parents:
        raise usage(f"-o {printable(path)} is the folder of the file that is read; give another name")
    if path.is_dir() and not folder:
        raise usage(f"{printable(path)} is a folder; name a file")
    if path.exists() and not force:
        raise RankingError(f"{printable(path)} is there already; give another name with -o, or --force")
    parent = path.resolve().parent
    if not parent.is_dir():
        raise RankingError(f"there is no folder {printable(parent)}")
    try:
        whole_files.check_writable(path)
    except OSError as error:
        raise RankingError(f"{printable(path)} cannot be written: {(error.strerror or str(error)).lower()}") from None


@contextmanager
def whole_file(path: Path, force: bool) -> Iterator[Path]:
    """Give the name of a temporary file beside the path, which takes its place if all goes well, else disappears."""
    check_free(path, force)
    with whole_files.whole_file(path) as temporary:
        yield temporary
        check_free(path, force)


# ---------------------------------------------------------------------- progress


@contextmanager
def steps(total: int | None, label: str, even: bool = False) -> Iterator[Callable[..., None]]:
    """Give a function that moves a progress bar on and names what comes; where no one watches, a line now and then.

    It is called with a name, which moves it one step on, or with a name, how much is done, and of how much. Without
    a total the bar only shows that something is going on. What time is left is told where all steps are alike (even):
    of others it is not known.
    """
    if not sys.stderr.isatty():
        with Lines(label) as lines:
            yield lines.step
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()]
    columns += [TimeRemainingColumn()] if even else []
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)

        def step(label: str, done: int | None = None, of: int | None = None) -> None:
            progress.update(
                task, description=label, **({"advance": 1} if done is None else {"completed": done, "total": of})
            )

        yield step


class Lines:
    """What is going on, as a line on the standard error whenever nothing was said for a while."""

    def __init__(self, label: str) -> None:
        self.label, self.share, self.started, self.ended = label, "", monotonic(), Event()
        self.screen = sys.stderr
        self.speaker = Thread(target=self.speak, daemon=True)

    def __enter__(self) -> Lines:
        self.speaker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()

    def step(self, label: str, done: int | None = None, of: int | None = None) -> None:
        """Take down what comes, and how much of it is done."""
        self.label, self.share = label, f", {done:,} of {of:,} done" if done is not None and of else ""

    def speak(self) -> None:
        """Say what is going on, again and again."""
        while not self.ended.wait(SILENCE):
            lasted = timedelta(seconds=round(monotonic() - self.started))
            with suppress(OSError, ValueError):  # whoever read it is gone
                self.screen.write(f"note: {self.label.lower()}{self.share}, for {lasted} so far\n")
                self.screen.flush()
