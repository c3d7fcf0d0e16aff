"""``rankernel gram``: the Gram matrix of a file, into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankernel.cli.computing import Problem, pose
from rankernel.cli.guard import usage
from rankernel.cli.options import (
    COMPUTING,
    WRITING,
    By,
    Count,
    Debug,
    File,
    Force,
    Ignore,
    Json,
    KernelText,
    Layout,
    MethodText,
    Output,
    SeedNumber,
    Separator,
    Threads,
    UnlistedText,
    one_of,
)
from rankernel.cli.output import check_ending, check_free, console, print_json, show_facts, steps, whole_file
from rankernel.encoding import printable
from rankernel.errors import ExactnessError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankernel.gram.tiled import TiledGram
    from rankernel.rankings import Rankings

__all__ = ["gram"]

IN_PIECES = (".npy", ".zarr")  # written piece by piece, never wholly in memory, and gone on with after an interruption
FORMATS = (*IN_PIECES, ".npz", ".csv")
SIDE = 1024  # of the parts between which the progress bar moves
CORNER = 6

Distinct = Annotated[
    bool,
    typer.Option("--distinct", help="One row for each different ranking, not for each row.", rich_help_panel=COMPUTING),
]
NumberType = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="float64|float32",
        help="Numbers to write.",
        callback=one_of("float64", "float32"),
        rich_help_panel=WRITING,
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with a .npy or .zarr whose writing was interrupted.", rich_help_panel=WRITING),
]


def gram(
    file: File = None,
    output: Output = None,
    kernel: KernelText = "mallows:nu=median",
    method: MethodText = "auto",
    distinct: Distinct = False,
    dtype: NumberType = "float64",
    resume: Resume = False,
    seed: SeedNumber = 0,
    threads: Threads = None,
    unlisted: UnlistedText = "last",
    by: By = None,
    count: Count = None,
    ignore: Ignore = None,
    layout: Layout = "auto",
    separator: Separator = None,
    force: Force = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compute the Gram matrix of the rankings in a file.

    The ending of the output says how it is written: .npy; .zarr; .npz (with counts, ranks and items); .csv. Without
    -o, a corner of the matrix is shown. What .npy and .zarr hold need not fit into memory.
    """
    ending = output.suffix.lower() if output else ""
    if output:
        check_ending(output, FORMATS)
    if resume and ending not in IN_PIECES:
        raise usage("--resume is for -o NAME.npy and -o NAME.zarr, which are written in pieces")
    if output and not resume:
        check_free(output, force, folder=ending == ".zarr")
    problem = pose(file, kernel, method, seed, unlisted, by, count, ignore, layout, separator)
    X = problem.source.rankings.unique() if distinct else problem.source.rankings
    if output and ending in IN_PIECES:
        values, corner = stored(output, problem, X, dtype, resume, force), None
    else:
        values, corner = in_memory(output, problem, X, dtype, force)
    facts: dict[str, Any] = problem.assumptions(values) | {"shape": [len(X), len(X)]}
    if corner is not None:
        facts["corner"] = corner
    if output:
        facts["written"] = printable(output)
    finish(facts, json)


def stored(output: Path, problem: Problem, X: Rankings, dtype: str, resume: bool, force: bool) -> str:
    """Write the matrix in pieces and return how it was computed."""
    from rankernel.gram.store import store_gram
    from rankernel.gram.tiled import TiledGram

    # Of all rankings: a few of them may have exact values where all together have none.
    values = TiledGram.of(problem.kernel, X, method=problem.method).evaluator.description
    with steps(1, "Gram matrix") as step:
        store_gram(
            output,
            problem.kernel,
            X,
            method=problem.method,
            dtype=dtype,
            resume=resume,
            overwrite=force,
            progress=lambda done, total: step("Gram matrix", done, total),
        )
    return values


def in_memory(
    output: Path | None, problem: Problem, X: Rankings, dtype: str, force: bool
) -> tuple[str, NDArray[Any] | None]:
    """Compute the matrix, write it if there is a file for it, and return how it was computed and a corner of it."""
    from rankernel.gram.memory import check_memory
    from rankernel.gram.monte_carlo import MonteCarlo
    from rankernel.gram.tiled import TiledGram

    check_memory((len(X), len(X)), dtype)
    tiled = TiledGram.of(problem.kernel, X, method=problem.method)
    try:
        matrix = filled(tiled, dtype)
    except ExactnessError:
        if problem.method != "auto":
            raise
        tiled = TiledGram.of(problem.kernel, X, method=MonteCarlo())
        matrix = filled(tiled, dtype)
    if output is None:
        return tiled.evaluator.description, matrix[:CORNER, :CORNER]
    with whole_file(output, force) as temporary:
        write(temporary, matrix, X, str(problem.kernel))
    return tiled.evaluator.description, None


def filled(tiled: TiledGram, dtype: str) -> NDArray[Any]:
    """Return the matrix, computed part by part so that the progress bar can move and Ctrl-C is heard."""
    import numpy as np

    from rankernel.gram.blocks import tiles

    distinct = tiled.distinct
    value = np.empty(distinct.shape, dtype=dtype)
    parts = list(tiles(*distinct.shape, distinct.side(SIDE), symmetric=True))
    with steps(len(parts), "Gram matrix") as step:
        for rows, columns in parts:
            value[rows, columns] = distinct.block(rows, columns)
            value[columns, rows] = value[rows, columns].T
            step("Gram matrix")
    return tiled.problem.spread(value)


def write(path: Path, matrix: NDArray[Any], X: Rankings, kernel: str) -> None:
    """Write a matrix with all that belongs to it, or as text with enough digits to read it back to the bit."""
    import numpy as np

    if path.suffix.lower() == ".csv":
        np.savetxt(path, matrix, delimiter=",", fmt="%.17g" if matrix.dtype == np.float64 else "%.9g")
        return
    with path.open("wb") as file:
        np.savez(file, gram=matrix, counts=X.counts, ranks=X.ranks, items=np.array(X.items), kernel=np.array(kernel))


def finish(facts: dict[str, Any], json: bool) -> None:
    """Print what was done."""
    if json:
        print_json(facts)
        return
    corner = facts.pop("corner", None)
    facts["shape"] = " × ".join(f"{side:,}" for side in facts["shape"])
    screen = console()
    show_facts(screen, facts)
    if corner is not None:
        for row in corner:
            screen.print("  " + "  ".join(f"{value:8.5f}" for value in row))
