"""Nyström features by randomly pivoted Cholesky: a few columns of the Gram matrix stand for all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel._utils.checks import check_integer, check_number
from rankernel._utils.memory import check_bytes
from rankernel._utils.rng import Seed, as_seed, stream_key
from rankernel.encoding import Unlisted
from rankernel.gram.blocks import slices
from rankernel.gram.methods import MethodLike, MonteCarlo
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.kernels.named import as_kernel
from rankernel.learn.transformers import KernelTransformer

PROPOSALS = 48  # pivots proposed at once
ROWS = 2**14  # of a tall matrix at once: what is made on the way stays small
NOISE = 1e-12  # a residual below this part of the diagonal is rounding


class NystromFeatures(KernelTransformer):
    r"""Features whose inner products approximate a kernel, at a cost that is linear in the number of rankings.

    Randomly pivoted Cholesky (Chen, Epperly, Tropp and Webber 2025) chooses pivots one after the other, each with
    probability proportional to what the ones before leave unexplained of its diagonal entry, times its count. Only the
    columns of the pivots are computed. The features of any ranking R are :math:`K(R, \text{pivots}) L^{-T}` with
    :math:`L L^T = K(\text{pivots}, \text{pivots})`, so :math:`Z Z^T` is the best approximation from these columns: it
    never overshoots (:math:`K - Z Z^T` is positive semi-definite), and what is missing of the trace is known.

    Parameters
    ----------
    kernel : Kernel
        The kernel; a width "median" is taken from the training data.
    n_components : int
        The number of pivots and features; fewer where fewer are exact.
    method : as in :meth:`Kernel.gram`
        How entries of the Gram matrix are computed. What "auto" means is settled by the training data, and draws
        depend on the seed of the method and the ranking alone, so new rankings fit to the old ones.
    random_state : int or Generator
        The choice of the pivots.
    tol : float, optional
        Stop as soon as the missing part of the trace is at most ``tol`` times the trace.
    unlisted : {"last", "free"}, optional
        What NaN or None in a plain array or frame means: the item is last, or free. Refused if left out.

    Attributes
    ----------
    pivots_ : array of shape ``(n_components_,)``
        The rows of the training data that were chosen, in order.
    pivot_rankings_ : Rankings or Preferences
        The same as rankings.
    residual_ : array of shape (n_rankings,)
        The diagonal of :math:`K - Z Z^T`.
    trace_, trace_error_ : float
        The trace of K and of :math:`K - Z Z^T`, every voter counted.
    error_path_ : array of shape ``(n_components_ + 1,)``
        The trace that is missing after each number of pivots, from 0 on.
    plan_ : Plan
        How kernel values are computed, here and for new rankings; nothing is left open in ``kernel_``, its kernel.

    Examples
    --------
    The Kendall kernel of three items has three coordinates, so three features give it exactly:

    >>> import itertools
    >>> from rankernel import Kendall
    >>> X = np.array(list(itertools.permutations(range(3))))
    >>> features = NystromFeatures(Kendall(), n_components=5)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, bool(np.allclose(Z @ Z.T, Kendall().gram(X)))
    ((6, 3), True)
    """

    def __init__(
        self,
        kernel: Kernel,
        n_components: int = 200,
        method: MethodLike = "auto",
        random_state: Seed = 0,
        tol: float | None = None,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.method = method
        self.random_state = random_state
        self.tol = tol
        self.unlisted = unlisted

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the pivots."""
        self._fitted_features(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Choose the pivots and return the features of the training data."""
        return self._fitted_features(X)

    def transform(self, X: Any) -> FloatArray:
        """Return the features of rankings: shape ``(n_rankings, n_components_)``."""
        new = self._pivot_plan.against(self._same_items(X))
        features = np.empty((len(new.X), self.n_components_))
        for rows in slices(len(new.X), ROWS):
            features[rows] = solved(self.factor_, new.distinct.block(rows, slice(None), n_jobs=None))
        return features if new.rows is None else features[new.rows]

    def _fitted_features(self, X: Any) -> FloatArray:
        rankings = self._learn_items(X)
        check_integer("n_components", self.n_components)
        if self.tol is not None and check_number("tol", self.tol, 0) >= 1:
            raise ValueError(f"tol={self.tol} is not possible; it is a part of the trace, from 0 to below 1")
        if isinstance(self.method, MonteCarlo) and self.method.distinct_rows:
            raise ValueError("features belong to a ranking, not to a row; use MonteCarlo(distinct_rows=False)")
        self.plan_ = as_kernel(self.kernel).plan(rankings, method=self.method)
        self.kernel_ = self.plan_.kernel
        n_rows = len(self.plan_.X)
        n_features = min(self.n_components, n_rows)
        check_bytes(16 * n_rows * n_features, f"{n_features:,} features of {n_rows:,} rankings", "take fewer of them")
        found = self._pivoted(self.plan_.distinct)
        inverse = np.arange(len(rankings)) if self.plan_.rows is None else self.plan_.rows
        self.pivots_ = np.unique(inverse, return_index=True)[1][found.pivots]
        self.pivot_rankings_ = rankings[self.pivots_]
        self._pivot_plan = self.plan_.part(self.pivots_)
        self.factor_ = found.factor[found.pivots]
        self.residual_ = found.residual[inverse]
        self.error_path_ = found.error_path
        self.trace_, self.trace_error_ = float(found.error_path[0]), float(found.error_path[-1])
        self.n_components_ = self._n_features_out = len(found.pivots)
        return found.factor if self.plan_.rows is None else found.factor[inverse]

    def _pivoted(self, plan: Plan) -> PivotedCholesky:
        return randomly_pivoted_cholesky(
            lambda rows, columns: plan.block(rows, columns, n_jobs=None),
            plan.diagonal(),
            plan.X.counts.astype(np.float64),
            self.n_components,
            self.tol or 0.0,
            np.random.default_rng(int(stream_key(as_seed(self.random_state, "random_state"), "pivots"))),
        )


def solved(lower: FloatArray, columns: FloatArray) -> FloatArray:
    """Return Z with ``Z @ lower.T == columns``."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(lower, columns.T, lower=True, check_finite=False).T)


# ---------------------------------------------------------------------- the factorisation


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    """A partial Cholesky factorisation: ``factor @ factor.T`` agrees with the matrix in the columns of the pivots."""

    pivots: Indices  # the chosen rows
    factor: FloatArray  # (n_rows, n_pivots): the factor; its rows at the pivots are lower triangular
    residual: FloatArray  # the diagonal of what is left
    error_path: FloatArray  # (n_pivots + 1,): the weighted trace of what is left after each number of pivots


def randomly_pivoted_cholesky(
    entries: Callable[[Any, Any], FloatArray],
    diagonal: FloatArray,
    weights: FloatArray,
    n_pivots: int,
    tol: float,
    rng: np.random.Generator,
) -> PivotedCholesky:
    """Factorise a positive semi-definite matrix from few of its columns, pivots drawn by weighted residual diagonal.

    Several pivots are proposed at once and thinned out by rejection (Epperly, Tropp and Webber 2024): those that are
    accepted have the same distribution as if they were drawn one by one.

    Examples
    --------
    >>> A = np.array([[4.0, 2.0], [2.0, 1.0]])
    >>> found = randomly_pivoted_cholesky(
    ...     lambda i, j: A[i][:, j], A.diagonal(), np.ones(2), 2, 0.0, np.random.default_rng(0)
    ... )
    >>> len(found.pivots), found.factor @ found.factor.T
    (1, array([[4., 2.], [2., 1.]]))
    """
    n_pivots = min(n_pivots, len(diagonal))
    residual, floor = np.maximum(diagonal, 0.0), NOISE * np.abs(diagonal)
    factor, pivots = np.zeros((len(diagonal), n_pivots)), np.empty(0, dtype=np.intp)
    goal = tol * float(weights @ residual)
    while len(pivots) < n_pivots and (masses := weights * residual).sum() > goal:
        proposed = rng.choice(len(diagonal), size=PROPOSALS, p=masses / masses.sum())
        known = factor[:, : len(pivots)]
        left = entries(proposed, proposed) - known[proposed] @ known[proposed].T
        heights = np.maximum(rng.random(PROPOSALS) * residual[proposed], floor[proposed])
        chosen, lower = thinned(left, heights, n_pivots - len(pivots))
        if not len(chosen):  # its residual was rounding after all
            residual[proposed[0]] = 0.0
            continue
        new = proposed[chosen]
        added = factor[:, len(pivots) : len(pivots) + len(new)]
        for rows in slices(len(diagonal), ROWS):
            added[rows] = solved(lower, entries(rows, new) - known[rows] @ known[new].T)
            residual[rows] -= (added[rows] ** 2).sum(axis=1)
        added[np.concatenate([pivots, new])] = np.concatenate([np.zeros((len(pivots), len(new))), lower])
        pivots = np.concatenate([pivots, new])
        residual[residual <= floor] = 0.0
        residual[pivots] = 0.0
    return finished(pivots, factor[:, : len(pivots)], diagonal, weights, goal)


def thinned(left: FloatArray, heights: FloatArray, room: int) -> tuple[Indices, FloatArray]:
    """Return which proposals are accepted, and the Cholesky factor of what is left of the matrix between them.

    A proposal is accepted if what those before it leave of its diagonal entry still is above its height.
    """
    left = left.copy()
    chosen: list[int] = []
    columns = np.empty((len(left), min(room, len(left))))
    for j in range(len(left)):
        if len(chosen) == room:
            break
        if left[j, j] > heights[j]:
            column = columns[:, len(chosen)] = left[:, j] / np.sqrt(left[j, j])
            left -= np.outer(column, column)
            chosen.append(j)
    rows = np.array(chosen, dtype=np.intp)
    return rows, np.tril(columns[rows, : len(rows)])


def finished(
    pivots: Indices, factor: FloatArray, diagonal: FloatArray, weights: FloatArray, goal: float
) -> PivotedCholesky:
    """Return the factorisation with its error, without pivots that were chosen after the goal was reached."""
    explained = np.zeros(len(pivots))
    for rows in slices(len(factor), ROWS):
        explained += weights[rows] @ factor[rows] ** 2
    path = np.maximum(weights @ diagonal - np.concatenate([[0.0], np.cumsum(explained)]), 0.0)
    size = int(np.argmax(path <= goal)) if goal > 0 and path[-1] <= goal else len(pivots)
    pivots, factor = pivots[:size], np.ascontiguousarray(factor[:, :size])
    residual = np.empty(len(diagonal))
    for rows in slices(len(factor), ROWS):
        residual[rows] = np.maximum(diagonal[rows] - (factor[rows] ** 2).sum(axis=1), 0.0)
    residual[pivots] = 0.0
    return PivotedCholesky(pivots, factor, residual, path[: size + 1])
