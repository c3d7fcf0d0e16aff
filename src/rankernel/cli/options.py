"""The options that commands share, each declared once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from rankernel.cli.kernel_text import KERNELS, METHODS

__all__ = [
    "By",
    "Clusters",
    "Count",
    "Debug",
    "File",
    "Force",
    "Ignore",
    "Json",
    "KernelText",
    "Layout",
    "Linkage",
    "MethodText",
    "Output",
    "Permutations",
    "SeedNumber",
    "Separator",
    "Threads",
    "UnlistedText",
]

READING, COMPUTING, WRITING = "Reading the file", "Computing", "Output"
THREADS_VARIABLE = "RANKERNEL_NUM_THREADS"  # what the library asks first


def set_debug(context: typer.Context, wanted: bool) -> None:
    """Tell the guard to print where errors come from."""
    if wanted:
        context.find_root().command.debug = True  # type: ignore[attr-defined]


def use_threads(context: typer.Context, threads: int | None) -> int | None:
    """Let all that a command computes use so many threads, until it ends."""
    if threads is not None:
        before = os.environ.get(THREADS_VARIABLE)
        os.environ[THREADS_VARIABLE] = str(threads)

        def restore() -> None:
            del os.environ[THREADS_VARIABLE]
            if before is not None:
                os.environ[THREADS_VARIABLE] = before

        context.call_on_close(restore)
    return threads


def complete_from(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Return a completion that offers known words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return complete


def one_of(*known: str) -> Callable[[str], str]:
    """Return a check that an option is one of some words."""

    def check(value: str) -> str:
        if value not in known:
            raise typer.BadParameter(f"{value!r} is not known; it is one of {', '.join(known)}")
        return value

    return check


File: TypeAlias = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="PrefLib or CSV file; if left out, the bundled example.", show_default=False),
]
UnlistedText: TypeAlias = Annotated[
    str,
    typer.Option(
        "--unlisted",
        metavar="last|free",
        help="Items a row does not list share the last place, or may stand anywhere.",
        callback=one_of("last", "free"),
        autocompletion=complete_from(("last", "free")),
        rich_help_panel=READING,
    ),
]
By: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="COLUMN", help="CSV column that says which group a row is of.", rich_help_panel=READING
    ),
]
Count: TypeAlias = Annotated[
    str | None,
    typer.Option("--count", metavar="COLUMN", help="CSV column of multiplicities.", rich_help_panel=READING),
]
Ignore: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", metavar="COLUMN", help="CSV column to pass over; may be repeated.", rich_help_panel=READING
    ),
]
Layout: TypeAlias = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="auto|ranks|positions",
        help="What the CSV columns are: items (cells are ranks) or positions (cells are items).",
        callback=one_of("auto", "ranks", "positions"),
        autocompletion=complete_from(("auto", "ranks", "positions")),
        rich_help_panel=READING,
    ),
]
Separator: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tie", metavar="SIGN", help="Sign between tied items in one CSV cell, such as |.", rich_help_panel=READING
    ),
]
KernelText: TypeAlias = Annotated[
    str,
    typer.Option(
        "--kernel",
        metavar="KERNEL",
        help="kendall, mallows:nu=0.1, hamming, spearman, polynomial:degree=3, exponential:distance=hamming,nu=median, "
        "diffusion:beta=0.2; sums such as 0.5*kendall+hamming.",
        autocompletion=complete_from(KERNELS),
        rich_help_panel=COMPUTING,
    ),
]
MethodText: TypeAlias = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="METHOD",
        help="auto, exact, enumeration, or montecarlo:draws=64,coupling=antithetic,moments=0.",
        autocompletion=complete_from(METHODS),
        rich_help_panel=COMPUTING,
    ),
]
SeedNumber: TypeAlias = Annotated[
    int, typer.Option("--seed", min=0, help="Where all randomness comes from.", rich_help_panel=COMPUTING)
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        help="Threads; one a core if left out.",
        callback=use_threads,
        rich_help_panel=COMPUTING,
    ),
]
Permutations: TypeAlias = Annotated[
    int,
    typer.Option("--permutations", min=1, help="Permutations behind a p-value.", rich_help_panel=COMPUTING),
]
Clusters: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--k",
        min=1,
        help="Number of clusters; found from the tree if left out.",
        show_default=False,
        rich_help_panel=COMPUTING,
    ),
]
Linkage: TypeAlias = Annotated[
    str,
    typer.Option(
        "--linkage",
        metavar="ward|average|complete|single|weighted",
        help="How clusters are joined.",
        callback=one_of("ward", "average", "complete", "single", "weighted"),
        autocompletion=complete_from(("ward", "average", "complete", "single", "weighted")),
        rich_help_panel=COMPUTING,
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="File to write.", show_default=False, rich_help_panel=WRITING),
]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", "-f", help="Replace a file that is there already.", rich_help_panel=WRITING)
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for machines.", rich_help_panel=WRITING)]
Debug: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--debug", help="Show where an error comes from.", callback=set_debug, is_eager=True, rich_help_panel=WRITING
    ),
]
