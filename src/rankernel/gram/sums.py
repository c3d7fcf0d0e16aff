"""What a task needs of a Gram matrix without ever holding it: products and sums, block by block.

The matrix of the distinct rankings is computed in blocks of a fixed size and thrown away as soon as it has been added
up, so memory grows with the number of rankings and time with its square. Rankings that occur often are computed once
and weighted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.checks import check_array, check_numbers
from rankernel._utils.notebook import html_card

if TYPE_CHECKING:
    from rankernel.gram.plan import Plan


@dataclass(frozen=True, eq=False)
class GramSums:
    """Sums over a Gram matrix, every ranking counted as often as it was given.

    Attributes
    ----------
    rows : array of shape (n_rows,)
        The sum over all voters of the columns, for each row.
    columns : array of shape (n_columns,)
        The sum over all voters of the rows, for each column.
    total : float
        The sum over all pairs of voters.
    trace : float or None
        The sum over the voters of the kernel with themselves; None where rows and columns are different rankings.
    """

    _repr_html_ = html_card

    rows: FloatArray
    columns: FloatArray
    total: float
    trace: float | None


def gram_times(plan: Plan, weights: Any, n_jobs: int | None = None) -> FloatArray:
    """Return the matrix of a plan times a matrix: see :meth:`Plan.times`."""
    shape = (
        (plan.shape[1], None) if check_array("weights", weights, "an array of numbers").ndim == 2 else (plan.shape[1],)
    )
    right = check_numbers("weights", weights, shape)
    inside = gathered(right.reshape(len(right), -1), plan.columns, len(plan.Y))
    rows, _, _ = products(plan, inside, plan.X.counts.astype(np.float64), n_jobs)
    return spread(rows, plan.rows).reshape(plan.shape[0], *right.shape[1:])


def gram_sums(plan: Plan, n_jobs: int | None = None) -> GramSums:
    """Return the sums over the matrix of a plan: see :meth:`Plan.sums`."""
    counts = plan.X.counts.astype(np.float64)
    rows, columns, diagonal = products(plan, plan.Y.counts.astype(np.float64)[:, None], counts, n_jobs)
    trace = float(counts @ diagonal) if plan.symmetric else None
    return GramSums(spread(rows[:, 0], plan.rows), spread(columns, plan.columns), float(counts @ rows[:, 0]), trace)


def products(
    plan: Plan, weights: FloatArray, counts: FloatArray, n_jobs: int | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the matrix of distinct rankings times weights, the counts of its rows times it, and its diagonal."""
    rows, columns = np.zeros((len(plan.X), weights.shape[1])), np.zeros(len(plan.Y))
    traces = []
    for top, left, block in plan.distinct.blocks(n_jobs=n_jobs):
        if plan.symmetric and top == left:
            traces.append(np.diagonal(block).copy())
        rows[top] += block @ weights[left]
        columns[left] += counts[top] @ block
        if plan.symmetric and top != left:
            rows[left] += block.T @ weights[top]
            columns[top] += block @ counts[left]
    return rows, columns, np.concatenate([np.empty(0), *traces])


def gathered(weights: FloatArray, place: Indices | None, length: int) -> FloatArray:
    """Return the weights of distinct rankings: those of equal rows added up."""
    if place is None:
        return weights
    out = np.zeros((length, *weights.shape[1:]))
    np.add.at(out, place, weights)
    return out


def spread(values: FloatArray, place: Indices | None) -> FloatArray:
    """Return the values of all rows from those of the distinct ones."""
    return values if place is None else values[place]
