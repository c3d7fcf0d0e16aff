"""The options that commands share, each declared once, and the groups in which commands take them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from rankernel.cli.kernel_text import METHODS, kernel_names

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
        autocompletion=lambda incomplete: complete_from(kernel_names())(incomplete),
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


# ---------------------------------------------------------------------- groups


@dataclass(frozen=True)
class Reading:
    """How a file is read."""

    unlisted: UnlistedText = "last"
    by: By = None
    count: Count = None
    ignore: Ignore = None
    layout: Layout = "auto"
    separator: Separator = None


@dataclass(frozen=True)
class Computing:
    """With what kernel values are computed."""

    kernel: KernelText = "mallows:nu=median"
    method: MethodText = "auto"
    seed: SeedNumber = 0
    threads: Threads = None


@dataclass(frozen=True)
class Showing:
    """How a command answers."""

    json: Json = False
    debug: Debug = False


@dataclass(frozen=True)
class Writing(Showing):
    """The same for a command that writes a file."""

    output: Output = None
    force: Force = False


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose groups of options are options one by one, as typer reads them off the signature."""
    hints, groups, parameters = get_type_hints(command, include_extras=True), {}, []
    for name, parameter in inspect.signature(command).parameters.items():
        if not dataclasses.is_dataclass(hints[name]):
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        groups[name] = hints[name]
        fields = get_type_hints(hints[name], include_extras=True)
        for field in dataclasses.fields(hints[name]):
            default = getattr(parameter.default, field.name, field.default)
            keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(inspect.Parameter(field.name, keyword, default=default, annotation=fields[field.name]))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
