"""The squared maximum mean discrepancy of two large samples without storing a Gram matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel._utils import FloatArray
from rankernel.data import Data, as_data, concat
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike, unbiased_method
from rankernel.gram.plan import Plan
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.rankings import Rankings


def mmd2_streamed(
    X: Any, Y: Any, kernel: Kernel | str, *, method: MethodLike = "auto", n_jobs: int | None = None
) -> float:
    r"""Return the unbiased estimate of the squared maximum mean discrepancy without storing a Gram matrix.

    :math:`\frac{1}{m(m-1)} \sum_{i \ne j} K(x_i, x_j) + \frac{1}{n(n-1)} \sum_{i \ne j} K(y_i, y_j)
    - \frac{2}{mn} \sum_{i, j} K(x_i, y_j)` over the m voters of X and the n voters of Y (Gretton et al. 2012).
    "median" is resolved from both samples together. If kernel values are estimated, two voters with the same ballot are
    compared by different draws, which keeps the estimate unbiased.

    Parameters
    ----------
    X, Y : Rankings, Preferences or integer array
        The two samples, with multiplicities.
    kernel : Kernel or str
        The kernel.
    method, n_jobs
        As in :meth:`Kernel.gram`.

    Examples
    --------
    >>> from rankernel import Kendall
    >>> mmd2_streamed([[0, 1], [0, 1]], [[1, 0], [1, 0]], Kendall())
    4.0
    """
    plan, weights = pooled_plan(X, Y, kernel, method)
    sums = weights.T @ plan.times(weights, n_jobs=n_jobs)
    return unbiased_mmd2(sums, plan.diagonal() @ weights, weights.sum(axis=0))


def pooled_plan(X: Any, Y: Any, kernel: Kernel | str, method: MethodLike) -> tuple[Plan, FloatArray]:
    """Return the plan of two pooled samples with an unbiased diagonal, and the voters of each sample in each row."""
    left, right = as_data(X), as_data(Y, name="Y")
    arrays = not (isinstance(X, Data) and isinstance(Y, Data))
    if arrays and isinstance(right, Rankings) and left.n_items == right.n_items:  # the names of an array do not matter
        right = Rankings._trusted(right.ranks, left.items, right.counts)
    for name, side in (("X", left), ("Y", right)):
        if side.n_voters < 2:
            raise RankingError(f"{name} holds {side.n_voters} voter(s); the unbiased statistic needs at least two")
    both = concat([left, right])
    plan = as_kernel(kernel).plan(both, method=method)
    weights = np.zeros((len(both), 2))
    weights[: len(left), 0], weights[len(left) :, 1] = left.counts, right.counts
    unbiased = unbiased_method(plan.method)
    return plan if unbiased == plan.method else plan.kernel.plan(both, method=unbiased), weights


def unbiased_mmd2(sums: FloatArray, traces: FloatArray, n_voters: FloatArray) -> float:
    """Return the statistic from the sums of kernel values between the samples, and those of voters with themselves."""
    m, n = n_voters
    within = (sums[0, 0] - traces[0]) / (m * (m - 1)) + (sums[1, 1] - traces[1]) / (n * (n - 1))
    return float(within - 2 * sums[0, 1] / (m * n))
