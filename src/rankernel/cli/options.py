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


def use_threads(context: typer.Context, n_jobs: int | None) -> int | None:
    """Let all that a command computes use so many threads, until it ends."""
    if n_jobs is not None:
        before = os.environ.get(THREADS_VARIABLE)
        os.environ[THREADS_VARIABLE] = str(n_jobs)

        def restore() -> None:
            del os.environ[THREADS_VARIABLE]
            if before is not None:
                os.environ[THREADS_VARIABLE] = before

        context.call_on_close(restore)
    return n_jobs


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


def word_option(name: str, known: tuple[str, ...], words: str) -> Any:
    """Return an option about reading that is one of some words."""
    return typer.Option(
        name,
        metavar="|".join(known),
        help=words,
        callback=one_of(*known),
        autocompletion=complete_from(known),
        rich_help_panel=READING,
    )


LAYOUTS = ("auto", "ranks", "positions", "scores", "pairs")
File: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="PrefLib, BLT, CSV, or a cast vote record; if left out, the bundled example.",
        show_default=False,
    ),
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
    typer.Option("--by", metavar="COLUMN", help="Column that says which group a row is of.", rich_help_panel=READING),
]
Only: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="GROUP",
        help="Group of --by to keep, the others are left out; may be repeated.",
        rich_help_panel=READING,
    ),
]
Count: TypeAlias = Annotated[
    str | None,
    typer.Option("--count", metavar="COLUMN", help="Column of multiplicities.", rich_help_panel=READING),
]
Ignore: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="COLUMN", help="Column to pass over; may be repeated.", rich_help_panel=READING),
]
Layout: TypeAlias = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="|".join(LAYOUTS),
        help="What the table holds: ranks or scores of items, one column each; items, one column a position; pairs.",
        callback=one_of(*LAYOUTS),
        autocompletion=complete_from(LAYOUTS),
        rich_help_panel=READING,
    ),
]
Ids: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column to keep beside the rankings, such as an id; may be repeated.",
        rich_help_panel=READING,
    ),
]
Ascending: TypeAlias = Annotated[
    bool,
    typer.Option("--ascending", help="With --layout scores: the smaller is the better.", rich_help_panel=READING),
]
Items: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--items", metavar="NAMES", help="All items there are, with commas between them.", rich_help_panel=READING
    ),
]
Contest: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--contest",
        metavar="NAME",
        help="Contest of a cast vote record; a part will do.",
        rich_help_panel=READING,
    ),
]
Blank: TypeAlias = Annotated[
    str, word_option("--blank", ("drop", "keep"), "Ballots that list nothing are left out, or stay.")
]
Skipped: TypeAlias = Annotated[
    str, word_option("--skipped", ("close", "stop"), "At a skipped position: move up what follows, or end the ballot.")
]
Repeated: TypeAlias = Annotated[
    str,
    word_option("--repeated", ("first", "stop", "error"), "Where an item is named again: the first counts, or ..."),
]
Overvotes: TypeAlias = Annotated[
    str,
    word_option(
        "--overvotes",
        ("auto", "stop", "skip", "tie", "error"),
        "Several items in one position: end the ballot, pass over, tie them, or refuse; with --tie they are tied.",
    ),
]
Nothing: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--nothing",
        metavar="WORD",
        help="One more word that means that nothing was marked; may be repeated.",
        rich_help_panel=READING,
    ),
]
FoldCase: TypeAlias = Annotated[
    bool,
    typer.Option("--fold-case", help="Names that differ only in case or blanks are one.", rich_help_panel=READING),
]
Delimiter: TypeAlias = Annotated[
    str,
    typer.Option("--delimiter", metavar="SIGN", help="Sign between cells; found if left out.", rich_help_panel=READING),
]
Encoding: TypeAlias = Annotated[
    str,
    typer.Option("--encoding", metavar="NAME", help="Of the text, such as latin-1.", rich_help_panel=READING),
]
Columns: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="With pairs: which column is what, such as user=expert; may be repeated.",
        rich_help_panel=READING,
    ),
]
Lenient: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--lenient", help="PrefLib: read counts of zero and numbers from 0, with a note.", rich_help_panel=READING
    ),
]
MaxBytes: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        min=1,
        metavar="N",
        help="What a small file may grow to, unpacked or as a table.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Separator: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tie", metavar="SIGN", help="Sign between tied items in one cell, such as |.", rich_help_panel=READING
    ),
]
KernelText: TypeAlias = Annotated[
    str,
    typer.Option(
        "--kernel",
        metavar="KERNEL",
        help="kendall, mallows:nu=0.1, hamming, spearman, polynomial:degree=3, exponential:distance=hamming,nu=median, "
        "diffusion:beta=0.2; where the top counts rbo:p=0.9, averageoverlap:depth=10, dcg:depth=10; sums such as "
        "0.5*kendall+hamming.",
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
        "--jobs",
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
        help="Number of clusters; if left out, as many as are more than chance and stable.",
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
    only: Only = None
    count: Count = None
    ignore: Ignore = None
    layout: Layout = "auto"
    separator: Separator = None
    id: Ids = None
    ascending: Ascending = False
    items: Items = None
    contest: Contest = None
    blank: Blank = "drop"
    skipped: Skipped = "close"
    repeated: Repeated = "first"
    overvotes: Overvotes = "auto"
    nothing: Nothing = None
    fold_case: FoldCase = False
    delimiter: Delimiter = "auto"
    encoding: Encoding = "utf-8"
    columns: Columns = None
    lenient: Lenient = False
    max_bytes: MaxBytes = None


@dataclass(frozen=True)
class Computing:
    """With what kernel values are computed."""

    kernel: KernelText = "mallows:nu=median"
    method: MethodText = "auto"
    seed: SeedNumber = 0
    n_jobs: Threads = None


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
