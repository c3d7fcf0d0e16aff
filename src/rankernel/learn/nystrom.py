"""Nyström features by randomly pivoted Cholesky factorization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from rankernel._utils import FloatArray, Indices
from rankernel._utils.checks import Seed, as_seed, check_integer, check_number, stream_key
from rankernel._utils.resources import check_bytes, slices
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.models.estimators import KernelTransformer
from rankernel.rankings import Unlisted

PROPOSALS = 48  # pivots proposed at once; the distribution of the pivots does not depend on it
ROWS = 2**14  # rows processed at once, so that temporary arrays stay small
ROUNDING = 1e-12  # residuals below this fraction of the diagonal are rounding errors


@dataclass(eq=False, repr=False)
class NystromFeatures(KernelTransformer):
    r"""Features whose inner products approximate a kernel, at a cost linear in the number of rankings.

    Randomly pivoted Cholesky (Chen, Epperly, Tropp and Webber 2025) draws one pivot after the other, with probability
    proportional to the residual of its diagonal entry times its multiplicity, and computes only the columns of the
    pivots. The features of a ranking R are :math:`K(R, \text{pivots}) L^{-T}` with
    :math:`L L^T = K(\text{pivots}, \text{pivots})`. The residual :math:`K - Z Z^T` is positive semi-definite, and its
    trace is known.

    Parameters
    ----------
    n_components : int
        The number of pivots and features; fewer if fewer give the kernel exactly.
    kernel, method, random_state, unlisted
        As for :class:`KernelKMeans`. The seed is that of the pivots.
    tol : float, optional
        Stop when the trace of the residual is at most ``tol`` times the trace of K.

    Attributes
    ----------
    pivots_ : array of shape ``(n_components_,)``
        The rows of the training data chosen as pivots, in order.
    pivot_rankings_ : Rankings or Preferences
        The pivots as rankings.
    residual_ : array of shape (n_rankings,)
        The diagonal of :math:`K - Z Z^T`.
    trace_, trace_error_ : float
        The trace of K and of :math:`K - Z Z^T` over all voters.
    error_path_ : array of shape ``(n_components_ + 1,)``
        The trace of the residual after 0, 1, 2, ... pivots.
    plan_ : Plan
        How kernel values are computed, for the distinct training rankings and new rankings.
    kernel_ : Kernel
        The kernel with numeric parameters.

    Examples
    --------
    The Kendall kernel on three items has rank three, so three features are exact:

    >>> import itertools
    >>> from rankernel import Kendall
    >>> X = np.array(list(itertools.permutations(range(3))))
    >>> Z = NystromFeatures(5, kernel=Kendall()).fit_transform(X)
    >>> Z.shape, bool(np.allclose(Z @ Z.T, Kendall().gram(X)))
    ((6, 3), True)
    """

    n_components: int = 100
    _: KW_ONLY
    kernel: Kernel | str = "mallows"
    method: MethodLike = "auto"
    random_state: Seed = 0
    tol: float | None = None
    unlisted: Unlisted | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the pivots; ``y`` is ignored."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Choose the pivots and return the features of the training data."""
        rankings = self._fit_items(X)
        check_integer("n_components", self.n_components)
        if self.tol is not None and check_number("tol", self.tol, 0) >= 1:
            raise ValueError(f"tol={self.tol} is not possible; it must be a fraction of the trace, at least 0, below 1")
        first, inverse = rankings.unique_indices()
        distinct = rankings if len(first) == len(rankings) else rankings.unique()
        plan = self.plan_ = as_kernel(self.kernel).plan(distinct, method=self.method)
        self.kernel_ = plan.kernel
        n_rows, n_features = len(distinct), min(self.n_components, len(distinct))
        check_bytes(16 * n_rows * n_features, f"{n_features:,} features of {n_rows:,} rankings", "use fewer of either")
        result = randomly_pivoted_cholesky(
            lambda rows, columns: plan.block(rows, columns, n_jobs=None),
            plan.diagonal(),
            distinct.counts.astype(np.float64),
            self.n_components,
            self.tol or 0.0,
            np.random.default_rng(int(stream_key(as_seed(self.random_state, "random_state"), "pivots"))),
        )
        self.pivots_ = first[result.pivots]
        self.pivot_rankings_ = rankings[self.pivots_]
        self._pivot_plan = plan._part(result.pivots)
        self.factor_ = result.factor[result.pivots]
        self.residual_ = result.residual[inverse]
        self.error_path_ = result.error_path
        self.trace_, self.trace_error_ = float(result.error_path[0]), float(result.error_path[-1])
        self.n_components_ = self._n_features_out = len(result.pivots)
        return result.factor if distinct is rankings else result.factor[inverse]

    def transform(self, X: Any) -> FloatArray:
        """Return the features of rankings: shape ``(n_rankings, n_components_)``."""
        rankings = self._match_items(X)
        first, inverse = rankings.unique_indices()
        plan = self._pivot_plan.against(rankings[first])
        features = np.empty((len(first), self.n_components_))
        for rows in slices(len(first), ROWS):
            features[rows] = solve_lower(self.factor_, plan.block(rows, slice(None), n_jobs=None))
        return features if len(first) == len(rankings) else features[inverse]


def solve_lower(lower: FloatArray, columns: FloatArray) -> FloatArray:
    """Return Z with ``Z @ lower.T == columns``."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(lower, columns.T, lower=True, check_finite=False).T)


# ---------------------------------------------------------------------- factorization


class PivotedCholesky(NamedTuple):
    """A partial Cholesky factorization: ``factor @ factor.T`` equals the matrix in the columns of the pivots."""

    pivots: Indices
    factor: FloatArray  # (n_rows, n_pivots); its rows at the pivots are lower triangular
    residual: FloatArray  # the diagonal of the residual
    error_path: FloatArray  # (n_pivots + 1,): the weighted trace of the residual after each number of pivots


@np.errstate(under="ignore")
def randomly_pivoted_cholesky(
    entries: Callable[[Any, Any], FloatArray],
    diagonal: FloatArray,
    weights: FloatArray,
    n_pivots: int,
    tol: float,
    rng: np.random.Generator,
) -> PivotedCholesky:
    """Return a partial Cholesky factorization with pivots drawn proportional to the weighted residual diagonal.

    Pivots are proposed in blocks and thinned by rejection (Epperly, Tropp and Webber 2024), which gives the same
    distribution as drawing one after the other.
    """
    n_pivots = min(n_pivots, len(diagonal))
    residual, rounding = np.maximum(diagonal, 0.0), ROUNDING * np.abs(diagonal)
    factor, pivots = np.zeros((len(diagonal), n_pivots)), np.empty(0, dtype=np.intp)
    target = tol * float(weights @ residual)
    while len(pivots) < n_pivots and (masses := weights * residual).sum() > target:
        proposed = rng.choice(len(diagonal), size=PROPOSALS, p=masses / masses.sum())
        current = factor[:, : len(pivots)]
        block = entries(proposed, proposed) - current[proposed] @ current[proposed].T
        thresholds = np.maximum(rng.random(PROPOSALS) * residual[proposed], rounding[proposed])
        accepted, lower = thin_proposals(block, thresholds, n_pivots - len(pivots))
        if not len(accepted):  # the residual was a rounding error
            residual[proposed[0]] = 0.0
            continue
        new = proposed[accepted]
        added = factor[:, len(pivots) : len(pivots) + len(new)]
        for rows in slices(len(diagonal), ROWS):
            added[rows] = solve_lower(lower, entries(rows, new) - current[rows] @ current[new].T)
            residual[rows] -= (added[rows] ** 2).sum(axis=1)
        added[np.concatenate([pivots, new])] = np.concatenate([np.zeros((len(pivots), len(new))), lower])
        pivots = np.concatenate([pivots, new])
        residual[residual <= rounding] = 0.0
        residual[pivots] = 0.0
    explained = sum(weights[rows] @ factor[rows, : len(pivots)] ** 2 for rows in slices(len(factor), ROWS))
    path = np.maximum(weights @ diagonal - np.concatenate([[0.0], np.cumsum(explained)]), 0.0)
    # Without the pivots drawn after the target was reached.
    n_used = int(np.argmax(path <= target)) if target > 0 and path[-1] <= target else len(pivots)
    pivots, factor = pivots[:n_used], np.ascontiguousarray(factor[:, :n_used])
    for rows in slices(len(factor), ROWS):
        residual[rows] = np.maximum(diagonal[rows] - (factor[rows] ** 2).sum(axis=1), 0.0)
    residual[pivots] = 0.0
    return PivotedCholesky(pivots, factor, residual, path[: n_used + 1])


def thin_proposals(block: FloatArray, thresholds: FloatArray, n_most: int) -> tuple[Indices, FloatArray]:
    """Return the accepted proposals and the Cholesky factor of the residual between them.

    A proposal is accepted if its residual after those accepted before is above its threshold.
    """
    block = block.copy()
    accepted: list[int] = []
    columns = np.empty((len(block), min(n_most, len(block))))
    for j in range(len(block)):
        if len(accepted) == n_most:
            break
        if block[j, j] > thresholds[j]:
            column = columns[:, len(accepted)] = block[:, j] / np.sqrt(block[j, j])
            block -= np.outer(column, column)
            accepted.append(j)
    rows = np.array(accepted, dtype=np.intp)
    return rows, np.tril(columns[rows, : len(rows)])
