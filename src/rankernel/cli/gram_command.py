"""``rankernel gram``: the Gram matrix of a file, into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankernel._utils.checks import printable
from rankernel.cli.failures import usage
from rankernel.cli.job import read_job
from rankernel.cli.options import COMPUTING, WRITING, Computing, File, Reading, Writing, one_of
from rankernel.cli.output import check_ending, check_free, console, print_json, show_facts, steps, whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankernel.data import Data
    from rankernel.gram.plan import Plan

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
OnlyPlan = Annotated[
    bool, typer.Option("--plan", help="Only say what would be done, and how long it takes.", rich_help_panel=COMPUTING)
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with a .npy or .zarr whose writing was interrupted.", rich_help_panel=WRITING),
]


def gram(
    reading: Reading,
    computing: Computing,
    writing: Writing,
    file: File = None,
    distinct: Distinct = False,
    plan: OnlyPlan = False,
    dtype: NumberType = "float64",
    resume: Resume = False,
) -> None:
    """Compute the Gram matrix of the rankings in a file.

    The ending of the output says how it is written: .npy; .zarr; .npz (with counts, ranks and items); .csv. Without
    -o, a corner of the matrix is shown. What .npy and .zarr hold need not fit into memory.
    """
    output, force, json = writing.output, writing.force, writing.json
    ending = output.suffix.lower() if output else ""
    if output:
        check_ending(output, FORMATS)
    if resume and ending not in IN_PIECES:
        raise usage("--resume is for -o NAME.npy and -o NAME.zarr, which are written in pieces")
    if output and not plan:
        check_free(output, force or resume, file, folder=ending == ".zarr")
        if ending in IN_PIECES:
            check_place(output)
    job = read_job(file, reading, computing)
    with steps(None, "Planning"):
        X = job.source.rankings.unique() if distinct else job.source.rankings
        planned = job.kernel.plan(X, method=job.method)
    if plan:
        show_plan(planned, json)
        return
    corner = None
    if output and ending in IN_PIECES:
        stored(output, planned, dtype, resume, force)
    else:
        corner = in_memory(output, planned, X, dtype, force)
    facts: dict[str, Any] = job.assumptions(planned.details) | {"shape": list(planned.shape)}
    if corner is not None:
        facts["corner"] = corner
    if output:
        facts["written"] = printable(output)
    finish(facts, json)


def show_plan(plan: Plan, json: bool) -> None:
    """Print what would be done."""
    if json:
        facts = {"kernel": str(plan.kernel), "method": str(plan.method), "details": plan.details, "why": plan.reason}
        print_json(facts | {"shape": list(plan.shape), "seconds": plan.seconds, "bytes": plan.bytes})
    else:
        console().print(str(plan))


def check_place(output: Path) -> None:
    """Refuse a name beside which stands something that is not of an unfinished matrix."""
    from rankernel.gram.storage import Target

    Target(output)


def stored(output: Path, plan: Plan, dtype: str, resume: bool, force: bool) -> None:
    """Write the matrix in pieces, and say how to go on if that is interrupted."""
    from rankernel.gram.storage import Target

    try:
        with steps(1, "Gram matrix", even=True) as step:
            plan.store(
                output,
                dtype=dtype,
                resume=resume,
                overwrite=force,
                progress=lambda done, total: step("Gram matrix", done, total),
            )
    except (KeyboardInterrupt, SystemExit) as stop:
        work = Target(output).work
        if work.exists():
            stop.add_note(f"finished chunks are kept in {printable(work)}; the same command with --resume continues")
        raise


def in_memory(output: Path | None, plan: Plan, X: Data, dtype: str, force: bool) -> NDArray[Any] | None:
    """Compute the matrix, write it if there is a file for it, and return a corner of it if not."""
    import numpy as np

    from rankernel._utils.files import check_disk_space
    from rankernel._utils.memory import check_memory

    check_memory(plan.shape, dtype)
    if output is not None:
        least = {".csv": 2, ".npz": np.dtype(dtype).itemsize}[output.suffix.lower()]  # bytes of a value
        check_disk_space(output, least * plan.shape[0] * plan.shape[1])
    matrix = filled(plan, dtype)
    if output is None:
        return matrix[:CORNER, :CORNER]
    with steps(None, "Writing"), whole_file(output, force) as temporary:
        write(temporary, matrix, X, str(plan.kernel))
    return None


def filled(plan: Plan, dtype: str) -> NDArray[Any]:
    """Return the matrix, computed part by part so that the progress bar can move and Ctrl-C is heard."""
    import numpy as np

    from rankernel.gram.blocks import block_slices

    value = np.empty(plan.shape, dtype=dtype)
    parts = list(block_slices(*plan.shape, plan._side(SIDE), symmetric=True))
    with steps(len(parts), "Gram matrix", even=True) as step:
        for rows, columns in parts:
            value[rows, columns] = plan.block(rows, columns, n_jobs=None)
            value[columns, rows] = value[rows, columns].T
            step("Gram matrix")
    return value


def write(path: Path, matrix: NDArray[Any], X: Data, kernel: str) -> None:
    """Write a matrix with all that belongs to it, or as text with enough digits to read it back to the bit."""
    import numpy as np

    from rankernel.rankings import Rankings

    if path.suffix.lower() == ".csv":
        np.savetxt(path, matrix, delimiter=",", fmt="%.17g" if matrix.dtype == np.float64 else "%.9g")
        return
    with path.open("wb") as file:
        said = {"ranks": X.ranks} if isinstance(X, Rankings) else {"before": X.before}
        np.savez(file, gram=matrix, counts=X.counts, **said, items=np.array(X.items), kernel=np.array(kernel))


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
