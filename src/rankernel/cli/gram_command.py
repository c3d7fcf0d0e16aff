"""``rankernel gram``: the Gram matrix of the rankings in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankernel._utils.checks import printable
from rankernel.cli.failures import UsageError
from rankernel.cli.options import COMPUTING, OUTPUT, Computing, File, Reading, Writing, choice
from rankernel.cli.output import atomic_file, check_suffix, check_target, console, print_facts, print_json, progress
from rankernel.cli.reading import read_job

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankernel.data import Data
    from rankernel.gram.plan import Plan

CHUNKED = (".npy", ".zarr")  # written in chunks, never wholly in memory, and resumed after an interruption
SUFFIXES = (*CHUNKED, ".npz", ".csv")
SIDE = 1024  # of the blocks after which the progress bar advances
CORNER = 6

Distinct = Annotated[
    bool,
    typer.Option("--distinct", help="One row for each distinct ranking.", rich_help_panel=COMPUTING),
]
DType = Annotated[str, choice("--dtype", ("float64", "float32"), "Precision of the matrix.", OUTPUT)]
OnlyPlan = Annotated[
    bool, typer.Option("--plan", help="Only print the plan: the method and its time.", rich_help_panel=COMPUTING)
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted .npy or .zarr.", rich_help_panel=OUTPUT)
]


def gram(
    reading: Reading,
    computing: Computing,
    writing: Writing,
    file: File = None,
    distinct: Distinct = False,
    plan: OnlyPlan = False,
    dtype: DType = "float64",
    resume: Resume = False,
) -> None:
    """Compute the Gram matrix of the rankings in a file.

    The suffix of the output selects the format: .npy; .zarr; .npz (with counts, ranks and items); .csv. Without -o, a
    corner of the matrix is printed. A matrix in .npy or .zarr may be larger than memory.
    """
    output, force, json = writing.output, writing.force, writing.json
    suffix = output.suffix.lower() if output else ""
    if output:
        check_suffix(output, SUFFIXES)
    if resume and suffix not in CHUNKED:
        raise UsageError("--resume is for -o NAME.npy and -o NAME.zarr, which are written in chunks")
    if output and not plan:
        check_target(output, force or resume, file, folder=suffix == ".zarr")
        if suffix in CHUNKED:
            check_unfinished(output)
    job = read_job(file, reading, computing)
    with progress(None, "Planning"):
        X = job.source.rankings.unique() if distinct else job.source.rankings
        planned = job.kernel.plan(X, method=job.method)
    if plan:
        print_plan(planned, json)
        return
    corner = None
    if output and suffix in CHUNKED:
        store(output, planned, dtype, resume, force)
    else:
        corner = compute(output, planned, X, dtype, force)
    facts: dict[str, Any] = job.facts(planned.details) | {"shape": list(planned.shape)}
    if corner is not None:
        facts["corner"] = corner
    if output:
        facts["written"] = printable(output)
    print_result(facts, json)


def print_plan(plan: Plan, json: bool) -> None:
    """Print the plan."""
    if json:
        facts = {"kernel": str(plan.kernel), "method": str(plan.method), "details": plan.details, "reason": plan.reason}
        print_json(facts | {"shape": list(plan.shape), "seconds": plan.seconds, "bytes": plan.bytes})
    else:
        console().print(str(plan))


def check_unfinished(output: Path) -> None:
    """Raise an error if other files have the names that an unfinished matrix would have."""
    from rankernel.gram.storage import Target

    Target(output)


def store(output: Path, plan: Plan, dtype: str, resume: bool, force: bool) -> None:
    """Write the matrix in chunks; an interruption notes how to continue."""
    from rankernel.gram.storage import Target

    try:
        with progress(1, "Gram matrix", even=True) as step:

            def advance(done: int, total: int) -> None:
                step("Gram matrix", done, total)

            plan.store(output, dtype=dtype, resume=resume, overwrite=force, progress=advance)
    except (KeyboardInterrupt, SystemExit) as stop:
        work = Target(output).work
        if work.exists():
            stop.add_note(f"finished chunks are stored in {printable(work)}; the same command with --resume continues")
        raise


def compute(output: Path | None, plan: Plan, X: Data, dtype: str, force: bool) -> NDArray[Any] | None:
    """Compute the matrix in memory, and write it or return its corner."""
    import numpy as np

    from rankernel._utils.resources import check_disk_space, check_memory

    check_memory(plan.shape, dtype)
    if output is not None:
        bytes_per_value = {".csv": 2, ".npz": np.dtype(dtype).itemsize}[output.suffix.lower()]  # at least
        check_disk_space(output, bytes_per_value * plan.shape[0] * plan.shape[1])
    matrix = np.empty(plan.shape, dtype=dtype)
    n_rows = -(-plan.shape[0] // SIDE)
    with progress(n_rows * (n_rows + 1) // 2, "Gram matrix", even=True) as step:
        for rows, columns, values in plan.blocks(side=SIDE):
            matrix[rows, columns] = values
            matrix[columns, rows] = values.T
            step("Gram matrix")
    if output is None:
        return matrix[:CORNER, :CORNER]
    with progress(None, "Writing"), atomic_file(output, force) as temporary:
        write(temporary, matrix, X, str(plan.kernel))
    return None


def write(path: Path, matrix: NDArray[Any], X: Data, kernel: str) -> None:
    """Write a matrix with its data, or as text with all digits."""
    import numpy as np

    from rankernel.rankings import Rankings

    if path.suffix.lower() == ".csv":
        np.savetxt(path, matrix, delimiter=",", fmt="%.17g" if matrix.dtype == np.float64 else "%.9g")
        return
    with path.open("wb") as file:
        data = {"ranks": X.ranks} if isinstance(X, Rankings) else {"before": X.before}
        np.savez(file, gram=matrix, counts=X.counts, **data, items=np.array(X.items), kernel=np.array(kernel))


def print_result(facts: dict[str, Any], json: bool) -> None:
    """Print how the matrix was computed, and its corner."""
    if json:
        print_json(facts)
        return
    corner = facts.pop("corner", None)
    facts["shape"] = " × ".join(f"{side:,}" for side in facts["shape"])
    screen = console()
    print_facts(screen, facts)
    if corner is not None:
        for row in corner:
            screen.print("  " + "  ".join(f"{value:8.5f}" for value in row))
