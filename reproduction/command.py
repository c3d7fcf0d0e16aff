"""The command ``python -m reproduction``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from reproduction.outcome import Outcome
    from reproduction.study import Study

# The module and the class of each experiment, in the order of the page.
EXPERIMENTS = {
    "table1": ("clustering_table", "ClusteringTable"),
    "table2": ("mmd_table", "TwoSampleTable"),
    "table3": ("classification_table", "ClassificationTable"),
    "variance": ("variance_figure", "VarianceFigure"),
    "sizes": ("subset_sizes", "SubsetSizes"),
    "figures": ("figures", "Figures"),
}
ALL = "all"


def known(names: list[str] | None) -> list[str]:
    """Return the experiments asked for, in the order of the page."""
    wanted = set(names or [ALL])
    unknown = sorted(wanted - set(EXPERIMENTS) - {ALL})
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is no experiment; there are {', '.join(EXPERIMENTS)} and {ALL}")
    return [name for name in EXPERIMENTS if ALL in wanted or name in wanted]


def complete(incomplete: str) -> list[str]:
    """Offer the names of experiments to the shell."""
    return [name for name in (*EXPERIMENTS, ALL) if name.startswith(incomplete)]


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help=f"{', '.join(EXPERIMENTS)}, or {ALL} (if left out).",
            autocompletion=complete,
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where results go, and are found again.")
    ] = Path("reproduction"),
    quick: Annotated[bool, typer.Option("--quick", help="Few repetitions: about a minute.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Where all randomness comes from.")] = 0,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FOLDER", help="The SUSHI data; else $RANKERNEL_DATA.", show_default=False),
    ] = None,
) -> None:
    """Run the paper's experiments: tables, figures, and one page that puts paper and measurement side by side.

    What was computed is kept in the folder, so that an interrupted run goes on where it stopped.
    """
    from rich.console import Console

    from rankernel.errors import require
    from reproduction.study import Study

    names = known(experiments)
    require("matplotlib", "plots")
    console, progress = Console(), Console(stderr=True)
    study = Study(output, seed, quick, data, lambda text: progress.print(text, style="dim", highlight=False))
    if data is not None:
        check_data(data)
    try:
        outcomes = run_experiments(study, names)
    except (KeyboardInterrupt, SystemExit) as stop:
        stop.add_note(f"what was computed is kept in {output}; the same command goes on")
        raise
    for outcome in outcomes:
        show(console, outcome)
    console.print(f"\nThe page: {output / 'index.html'} (and README.md); numbers: {output / 'results.json'}")
    missing = [f"{outcome.name}: {outcome.left_out}" for outcome in outcomes if outcome.left_out]
    for line in missing:
        progress.print(f"left out: {line}", markup=False, highlight=False)
    if missing:
        raise typer.Exit(1)


def check_data(folder: Path) -> None:
    """Refuse a folder in which the SUSHI data is not."""
    from rankernel.io.public_data import sushi_folder

    sushi_folder(folder, "a")


def run_experiments(study: Study, names: list[str]) -> list[Outcome]:
    """Run experiments one after the other and write everything; what lacks its data is left out."""
    from reproduction.outcome import Outcome
    from reproduction.results_page import write_all
    from reproduction.sushi_users import MissingSushiError

    outcomes = []
    for name in names:
        module, kind = EXPERIMENTS[name]
        study.say(f"{name}: begins")
        try:
            outcomes.append(getattr(import_module(f"reproduction.{module}"), kind)(study).outcome())
        except MissingSushiError as error:
            study.say(f"{name}: left out. {error}")
            outcomes.append(Outcome(name, f"{name}: left out", [str(error)], left_out=str(error)))
    write_all(study, outcomes)
    return outcomes


def show(console: Console, outcome: Outcome) -> None:
    """Print the tables and findings of one experiment."""
    from rich.table import Table as Grid

    console.rule(outcome.title)
    for table in outcome.tables:
        grid = Grid(title=table.title, caption=table.note or None, title_justify="left")
        for number, column in enumerate(table.columns):
            grid.add_column(column, justify="left" if number == 0 else "right")
        for row in table.text():
            grid.add_row(*row)
        console.print(grid, markup=False)
    for line in (*(() if outcome.tables else outcome.protocol), *outcome.findings):
        console.print(f"• {line}", markup=False, highlight=False)
