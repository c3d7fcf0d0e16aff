"""The commands of the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from rankernel import __version__
from rankernel.cli.compare_command import compare
from rankernel.cli.failures import CommandGroup
from rankernel.cli.file_commands import clean, info
from rankernel.cli.gram_command import gram
from rankernel.cli.options import with_options
from rankernel.cli.summary_commands import cluster, kernel_map, report

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Try **rankernel report** without a file: it writes a page about the bundled example. "
        "Files: PrefLib (.soc .soi .toc .toi .cat), .blt, .csv, cast vote records (.csv .xlsx .json .zip), plain or "
        "gzipped. "
        "Exit codes: 0 success, 1 invalid data, 2 invalid command line, 130 interrupted, 143 terminated."
    ),
)


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        typer.echo(f"rankernel {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Kernel methods for full and partial rankings: Gram matrices, tests, clusters, maps, reports."""


COMMANDS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "info": (info, ("votes.soi", "votes.csv --count n --json")),
    "clean": (clean, ("cvr.csv -o ballots.csv", "cvr.zip --contest Mayor -o mayor.blt")),
    "gram": (gram, ("votes.soi -o K.npy", "votes.soi --kernel kendall -o K.csv", "votes.soi -o K.zarr")),
    "test": (compare, ("north.soi south.soi", "votes.csv --by district --permutations 9999")),
    "cluster": (cluster, ("votes.soi --k 10", "votes.soi --k 4 -o labels.csv")),
    "map": (kernel_map, ("votes.soi", "votes.csv --by district -o map.png", "votes.soi -o map.csv")),
    "report": (report, ("", "votes.soi -o votes.html", "votes.csv --by district")),
}
for name, (command, examples) in COMMANDS.items():
    lines = "".join(f"\n\n- `{f'rankernel {name} {example}'.rstrip()}`" for example in examples)
    app.command(name, epilog=f"**Examples**{lines}")(with_options(command))
