"""The command ``python -m reproduction``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as RichTable

from rankernel.errors import MissingExtraError, RankingError, require
from reproduction.results import Result, write_results
from reproduction.study import MissingSushiError, Study
from reproduction.sushi import sushi_folder

# The module and the class of each experiment, in the order of the page.
EXPERIMENTS = {
    "table1": ("clustering_table", "ClusteringTable"),
    "table2": ("mmd_table", "TwoSampleTable"),
    "table3": ("classification_table", "ClassificationTable"),
    "variance": ("variance_figure", "VarianceFigure"),
    "sizes": ("subset_sizes", "SubsetSizes"),
    "figures": ("figures", "Figures"),
}


def main(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...", help=f"{', '.join(EXPERIMENTS)}, or all (default).", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where results are written and cached.")
    ] = Path("reproduction_results"),
    quick: Annotated[bool, typer.Option("--quick", help="Few replicates: about a minute.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all random numbers.")] = 0,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FOLDER", help="The SUSHI data (default: $RANKERNEL_DATA).", show_default=False),
    ] = None,
) -> None:
    """Run the paper's experiments and write its tables and figures beside the measured ones.

    Finished computations are cached in the output folder, so an interrupted run can be continued.
    """
    names = selected(experiments)
    console, progress = Console(), Console(stderr=True)
    try:
        require("matplotlib", "plots")
        if data is not None:
            sushi_folder(data, "a")
        study = Study(output, seed, quick, data, lambda text: progress.print(text, style="dim", highlight=False))
        results = run_experiments(study, names)
    except KeyboardInterrupt:
        typer.echo(f"interrupted; finished computations are cached in {output}: run the same command again", err=True)
        raise typer.Exit(130) from None
    except (RankingError, MissingExtraError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    for result in results:
        show(console, result)
    console.print(f"\nPage: {output / 'index.html'} (and README.md); numbers: {output / 'results.json'}")
    missing = [f"{result.name}: {result.skipped}" for result in results if result.skipped]
    for line in missing:
        progress.print(f"skipped: {line}", markup=False, highlight=False)
    if missing:
        raise typer.Exit(1)


def selected(names: list[str] | None) -> list[str]:
    """Return the requested experiments in the order of the page."""
    requested = set(names or ["all"])
    unknown = sorted(requested - {*EXPERIMENTS, "all"})
    if unknown:
        raise typer.BadParameter(f"unknown experiment {unknown[0]!r}; choose from {', '.join(EXPERIMENTS)} and all")
    return [name for name in EXPERIMENTS if "all" in requested or name in requested]


def run_experiments(study: Study, names: list[str]) -> list[Result]:
    """Run experiments and write all results; experiments without their data are skipped."""
    results = []
    for name in names:
        module, kind = EXPERIMENTS[name]
        study.report(f"{name}: started")
        try:
            results.append(getattr(import_module(f"reproduction.{module}"), kind)(study).result())
        except MissingSushiError as error:
            study.report(f"{name}: skipped. {error}")
            results.append(Result(name, f"{name}: skipped", [str(error)], skipped=str(error)))
    write_results(study, results)
    return results


def show(console: Console, result: Result) -> None:
    """Print the tables and findings of one experiment."""
    console.rule(result.title)
    for table in result.tables:
        grid = RichTable(title=table.title, caption=table.note or None, title_justify="left")
        for number, column in enumerate(table.columns):
            grid.add_column(column, justify="left" if number == 0 else "right")
        for row in table.text():
            grid.add_row(*row)
        console.print(grid, markup=False)
    for line in (*(() if result.tables else result.protocol), *result.findings):
        console.print(f"• {line}", markup=False, highlight=False)


if __name__ == "__main__":
    typer.run(main)
