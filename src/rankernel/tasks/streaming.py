"""What a task needs of a Gram matrix without ever holding it: products and sums, block by block.

The matrix of N distinct rankings is computed in blocks of a fixed size and thrown away as soon as it has been added up,
so memory grows with N and time with N squared. Rankings that occur often are computed once and weighted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankernel.errors import ExactnessError, RankingError
from rankernel.gram.blocks import stretches, tiles
from rankernel.gram.choose import total_completions
from rankernel.gram.estimate import diagonal, gram
from rankernel.gram.exact import Obstacle, exact_evaluator
from rankernel.gram.methods import Exact, MethodLike
from rankernel.gram.monte_carlo import MonteCarlo
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings, as_rankings, concat, first_and_inverse

__all__ = ["GramSums", "gram_sums", "gram_times", "mmd2_streamed"]

FloatArray = NDArray[np.float64]
Answer = TypeVar("Answer")

BLOCK = 2048  # rows and columns held at once: 32 MB
DIAGONAL_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class GramSums:
    """Sums over a Gram matrix, every ranking counted as often as it was given.

    Attributes
    ----------
    rows : array of shape (n_rankings,)
        The sum over all voters of Y, for each row of X.
    columns : array
        The sum over all voters of X, for each row of Y.
    total : float
        The sum over all pairs of voters.
    trace : float or None
        The sum over the voters of X of the kernel with themselves; None where Y was given.
    """

    rows: FloatArray
    columns: FloatArray
    total: float
    trace: float | None


def gram_times(
    kernel: Kernel, X: Any, weights: Any, Y: Any = None, method: MethodLike = "auto", threads: int | None = None
) -> FloatArray:
    """Return the Gram matrix times a matrix, ``kernel.gram(X, Y) @ weights``, without holding the Gram matrix.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X, Y : Rankings or integer array
        Rows and columns of the Gram matrix; ``Y`` is ``X`` if left out.
    weights : array of shape (n_columns,) or (n_columns, k)
        What to multiply with.
    method : as in :meth:`Kernel.gram`
        Settled once for all blocks.
    threads : int, optional
        How many tiles to compute at once.

    Examples
    --------
    >>> from rankernel import Kendall
    >>> gram_times(Kendall(), [[0, 1], [1, 0]], [3, 1])
    array([ 2., -2.])
    """
    rankings, others = two_sides(X, Y)
    right = np.asarray(weights, dtype=np.float64)
    if right.ndim not in (1, 2) or len(right) != len(others):
        raise ValueError(f"weights of shape {right.shape} do not fit {len(others)} columns; give one row for each")
    table = right.reshape(len(others), -1)
    resolved = kernel.resolve(rankings)
    rows, _ = settle(
        resolved, rankings, others, method, lambda fixed: products(resolved, rankings, others, table, fixed, threads)
    )
    return rows.reshape(len(rankings), *right.shape[1:])


def gram_sums(
    kernel: Kernel, X: Any, Y: Any = None, method: MethodLike = "auto", threads: int | None = None
) -> GramSums:
    """Return the row sums, the column sums and the total of a Gram matrix of voters, without holding it.

    Examples
    --------
    >>> from rankernel import Kendall, Rankings
    >>> ballots = Rankings([[0, 1], [1, 0]], counts=[3, 1])
    >>> sums = gram_sums(Kendall(), ballots)
    >>> sums.rows, sums.total, sums.trace
    (array([ 2., -2.]), 4.0, 4.0)
    """
    rankings, others = two_sides(X, Y)
    resolved = kernel.resolve(rankings)

    def add_up(fixed: MethodLike) -> GramSums:
        weights = others.counts[:, None].astype(np.float64)
        rows, columns = products(resolved, rankings, others, weights, fixed, threads)
        trace = float(rankings.counts @ long_diagonal(resolved, rankings, fixed)) if others is rankings else None
        return GramSums(rows[:, 0], columns, float(rankings.counts @ rows[:, 0]), trace)

    return settle(resolved, rankings, others, method, add_up)


def mmd2_streamed(X: Any, Y: Any, kernel: Kernel, method: MethodLike = "auto", threads: int | None = None) -> float:
    r"""Return the unbiased estimate of the squared maximum mean discrepancy, without holding a Gram matrix.

    :math:`\frac{1}{m(m-1)} \sum_{i \ne j} K(x_i, x_j) + \frac{1}{n(n-1)} \sum_{i \ne j} K(y_i, y_j)
    - \frac{2}{mn} \sum_{i, j} K(x_i, y_j)` over the m voters of X and the n voters of Y (Gretton et al. 2012). A width
    "median" is taken from both together.

    Parameters
    ----------
    X, Y : Rankings or integer array
        The two sets of voters; counts are multiplicities.
    kernel : Kernel
        The kernel.
    method, threads
        As in :func:`gram_times`.

    Examples
    --------
    >>> from rankernel import Kendall
    >>> mmd2_streamed([[0, 1], [0, 1]], [[1, 0], [1, 0]], Kendall())
    4.0
    """
    left, right = two_sides(X, Y)
    for name, side in (("X", left), ("Y", right)):
        if side.n_voters < 2:
            raise RankingError(f"{name} holds {side.n_voters} voter(s); the unbiased statistic needs at least two")
    pooled = concat([left, right])
    resolved = kernel.resolve(pooled)
    weights = np.zeros((len(pooled), 2))
    weights[: len(left), 0], weights[len(left) :, 1] = left.counts, right.counts

    def statistic(fixed: MethodLike) -> float:
        sums = weights.T @ products(resolved, pooled, pooled, weights, fixed, threads)[0]
        traces = long_diagonal(resolved, pooled, fixed) @ weights
        m, n = left.n_voters, right.n_voters
        within = (sums[0, 0] - traces[0]) / (m * (m - 1)) + (sums[1, 1] - traces[1]) / (n * (n - 1))
        return float(within - 2 * sums[0, 1] / (m * n))

    return settle(resolved, pooled, pooled, method, statistic)


# ---------------------------------------------------------------------- steps


def two_sides(X: Any, Y: Any) -> tuple[Rankings, Rankings]:
    """Return rows and columns as rankings: one object if they are the same; an array takes the other's names."""
    left = as_rankings(X)
    if Y is None or Y is X:
        return left, left
    right = as_rankings(Y)
    if left.n_items == right.n_items and not (isinstance(X, Rankings) and isinstance(Y, Rankings)):
        right = Rankings._trusted(right.ranks, left.items, right.counts)
    return left, right


def settle(kernel: Kernel, X: Rankings, Y: Rankings, method: MethodLike, run: Callable[[MethodLike], Answer]) -> Answer:
    """Return what comes out with one method for all blocks; "auto" falls back on draws where a formula gives up."""
    fixed = settled_method(kernel, X, Y, method)
    try:
        return run(fixed)
    except ExactnessError:
        if method != "auto" or isinstance(fixed, MonteCarlo):
            raise
        return run(settled_method(kernel, X, Y, MonteCarlo()))


def settled_method(kernel: Kernel, X: Rankings, Y: Rankings, method: MethodLike) -> MethodLike:
    """Return the method that is used for every block: what "auto" means must not depend on the block."""
    if isinstance(method, MonteCarlo):
        return method.settled(kernel, X[:BLOCK], Y[:BLOCK])
    if method != "auto":
        return method
    X, Y = X.unique(), Y.unique()
    if not isinstance(exact_evaluator(kernel, X, Y), Obstacle):
        return Exact()
    few = total_completions(X) * total_completions(Y) <= Exact().limit
    return Exact() if few else MonteCarlo().settled(kernel, X[:BLOCK], Y[:BLOCK])


def products(
    kernel: Kernel, X: Rankings, Y: Rankings, weights: FloatArray, method: MethodLike, threads: int | None
) -> tuple[FloatArray, FloatArray]:
    """Return the Gram matrix times weights of its columns, and its column sums over all voters of the rows."""
    own, row_of = distinct(X, method)
    others, column_of = (own, row_of) if Y is X else distinct(Y, method)
    inside, counts = gathered(weights, column_of, len(others)), gathered(X.counts, row_of, len(own))
    rows, columns = np.zeros((len(own), weights.shape[1])), np.zeros(len(others))
    for top, left, block in blocks(kernel, own, others, method, threads):
        rows[top] += block @ inside[left]
        columns[left] += counts[top] @ block
        if others is own and top != left:
            rows[left] += block.T @ inside[top]
            columns[top] += block @ counts[left]
    return rows[row_of], columns[column_of]


def distinct(X: Rankings, method: MethodLike) -> tuple[Rankings, NDArray[np.intp]]:
    """Return the rankings that are computed apart, and which of them each row is."""
    if by_row(method):
        return X, np.arange(len(X))
    first, inverse = first_and_inverse(X.ranks)
    return X[first], inverse


def by_row(method: MethodLike) -> bool:
    """Say whether draws depend on the number of the row, so that they can only be made for all rows at once."""
    return isinstance(method, MonteCarlo) and method.distinct_rows


def blocks(
    kernel: Kernel, X: Rankings, Y: Rankings, method: MethodLike, threads: int | None
) -> Iterator[tuple[slice, slice, FloatArray]]:
    """Return the Gram matrix block by block; of a symmetric one the blocks on and above the diagonal."""
    side = max(len(X), len(Y), 1) if by_row(method) else BLOCK
    for top, left in tiles(len(X), len(Y), side, symmetric=Y is X):
        rows = X[top]
        yield top, left, gram(kernel, rows, None if Y is X and top == left else Y[left], method, threads=threads)


def gathered(weights: NDArray[Any], place: NDArray[np.intp], length: int) -> FloatArray:
    """Return the weights of distinct rankings: those of equal rows added up."""
    out = np.zeros((length, *weights.shape[1:]))
    np.add.at(out, place, weights)
    return out


def long_diagonal(kernel: Kernel, X: Rankings, method: MethodLike) -> FloatArray:
    """Return the kernel of each ranking with itself, block by block."""
    if by_row(method):
        return diagonal(kernel, X, method)
    parts = [diagonal(kernel, X[rows], method) for rows in stretches(len(X), DIAGONAL_BLOCK)]
    return np.concatenate([np.empty(0), *parts])
