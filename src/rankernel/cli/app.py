"""All commands together, and what they have in common: exit codes, errors in one line, nothing half-written."""

from __future__ import annotations

from typing import Annotated

import typer

from rankernel import __version__
from rankernel.cli.clean_command import clean
from rankernel.cli.cluster_command import cluster
from rankernel.cli.failures import GuardedGroup
from rankernel.cli.gram_command import gram
from rankernel.cli.info_command import info
from rankernel.cli.map_command import kernel_map
from rankernel.cli.options import spelled_out
from rankernel.cli.report_command import report
from rankernel.cli.test_command import compare_sets

app = typer.Typer(
    cls=GuardedGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Try **rankernel report** with no file: it writes a page about the bundled example. "
        "Files: PrefLib (.soc .soi .toc .toi .cat), .blt, .csv, cast vote records (.csv .xlsx .json .zip), plain or "
        "gzipped. "
        "Exit codes: 0 done, 1 something is wrong with the data, 2 with the command line, 130 interrupted."
    ),
)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"rankernel {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Kernel methods for full and partial rankings: Gram matrices, tests, clusters, maps, reports."""


def example(*lines: str) -> str:
    """Return examples for the end of a help page."""
    return "**Examples**" + "".join(f"\n\n- `rankernel {line}`" for line in lines)


app.command("info", epilog=example("info votes.soi", "info votes.csv --count n --json"))(spelled_out(info))
app.command("clean", epilog=example("clean cvr.csv -o ballots.csv", "clean cvr.zip --contest Mayor -o mayor.blt"))(
    spelled_out(clean)
)
app.command(
    "gram",
    epilog=example("gram votes.soi -o K.npy", "gram votes.soi --kernel kendall -o K.csv", "gram votes.soi -o K.zarr"),
)(spelled_out(gram))
app.command("test", epilog=example("test north.soi south.soi", "test votes.csv --by district --permutations 9999"))(
    spelled_out(compare_sets)
)
app.command("cluster", epilog=example("cluster votes.soi --k 10", "cluster votes.soi --k 4 -o labels.csv"))(
    spelled_out(cluster)
)
app.command(
    "map", epilog=example("map votes.soi", "map votes.csv --by district -o map.png", "map votes.soi -o map.csv")
)(spelled_out(kernel_map))
app.command("report", epilog=example("report", "report votes.soi -o votes.html", "report votes.csv --by district"))(
    spelled_out(report)
)
