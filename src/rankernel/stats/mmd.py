"""Two-sample tests by the maximum mean discrepancy, with one kernel or with several; the statistic of large samples.

The test with several kernels is MMDAgg (Schrab, Kim, Albert, Laurent, Guedj and Gretton 2023). Each kernel ranks its
statistic among B1 permutations, and B2 other permutations give the distribution of the best rank of all kernels under
the null hypothesis. The paper fixes a level and finds by bisection how much the level of each kernel must be lowered;
here adjusted p-values express that rule for all levels: a kernel rejects at a level if its adjusted p-value is not
above it. Under the null hypothesis the data and the B2 permutations are exchangeable given the B1 others, so the level
is exact for every number of permutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, IntArray, Mask
from rankernel._utils.checks import Seed, as_seed, check_integer, check_number, is_number, short_repr
from rankernel.data import Data, as_data, concat
from rankernel.errors import RankingError
from rankernel.gram.bandwidth import median_rate
from rankernel.gram.montecarlo import unbiased_method
from rankernel.gram.plan import MethodLike, Plan
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.kernels.exponential import Mallows
from rankernel.rankings import Rankings
from rankernel.stats._permutations import count_exceedances
from rankernel.stats.base import warn_if_noisy
from rankernel.stats.groups import MMDResult, mmd_result, two_samples

AUTO_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)  # bandwidths of the aggregated test, relative to the median heuristic


@dataclass(frozen=True, eq=False, kw_only=True)
class AggregatedMMDResult(MMDResult):
    """Result of :func:`mmd_aggregated_test`.

    ``statistic`` is -log10 of the smallest p-value of a kernel, ``null_distribution`` the same for random divisions of
    the voters, and ``pvalue`` compares the two. ``kernel``, ``effect``, ``witness`` and ``differences()`` are those of
    the kernel with the smallest p-value. ``moment_pvalue`` is the smallest of all kernels times their number
    (Bonferroni).

    Attributes
    ----------
    kernels : tuple of Kernel
        The kernels with all parameters resolved.
    statistics : array of shape (n_kernels,)
        The squared discrepancy with each kernel.
    pvalues : array of shape (n_kernels,)
        Adjusted p-values: the smallest level at which the aggregated test rejects because of each kernel.
    rejected : array of shape (n_kernels,)
        Whether each kernel rejects at ``alpha``; the aggregated test rejects if any does.
    alpha : float
        The significance level.
    """

    kernels: tuple[Kernel, ...]
    statistics: FloatArray
    pvalues: FloatArray
    rejected: Mask
    alpha: float


@np.errstate(under="ignore")
def mmd_aggregated_test(
    X: Any,
    Y: Any,
    kernels: Any = "auto",
    *,
    n_permutations: int = 999,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    strata: tuple[Any, Any] | None = None,
    alpha: float = 0.05,
    n_jobs: int | None = None,
) -> AggregatedMMDResult:
    """Test whether two samples of rankings have the same distribution, with several kernels.

    Parameters
    ----------
    X, Y, rng, biased, method, strata, n_jobs
        As in :func:`mmd_test`.
    kernels : "auto", or a list of kernels or of decay rates nu
        Decay rates are those of Mallows kernels; "auto" is five of them around the median heuristic of both samples.
    n_permutations : int
        The number of permutations for the p-value of each kernel. The same number of further permutations gives the
        null distribution of the smallest p-value. All kernels use the same permutations.
    alpha : float
        The significance level of ``rejected``.

    Returns
    -------
    AggregatedMMDResult

    Examples
    --------
    >>> from rankernel import Rankings
    >>> X = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[9, 7])
    >>> Y = Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]], items=X.items, counts=[4, 12])
    >>> result = mmd_aggregated_test(X, Y)
    >>> len(result.kernels), bool(result.rejected.any())
    (5, True)
    """
    half, seed = check_integer("n_permutations", n_permutations), as_seed(rng)
    alpha = check_number("alpha", alpha, 0, 1)
    rows = two_samples(X, Y, strata, biased)
    results, rank_rows = [], []
    for kernel in resolve_kernels(kernels, rows.data):
        voters = rows.voters(kernel, method, n_jobs)
        statistic = voters.squared_mmd(biased, seed)
        result = mmd_result(voters, statistic, 2 * half, warn=False)
        null, mcse = result.null_distribution, result.statistic_mcse
        values = np.concatenate([result.statistic + np.array([0.0, -mcse, mcse]), null[half:]])
        rank_rows.append(1 + count_exceedances(null[:half], values, statistic.tolerance))
        results.append(result)
        voters.release()  # one Gram matrix at a time
    ranks = np.array(rank_rows)  # of the data, of the data plus and minus an error, and of the second half
    observed, best = ranks[:, 0], ranks[:, 3:].min(axis=0)
    adjusted, index = adjusted_pvalues(observed, best), int(np.argmin(observed))
    winner = results[index]
    warn_if_noisy(winner.statistic_mcse, float(winner.null_distribution.std()))
    aggregated = {
        "statistic": float(-np.log10(observed[index] / (1 + half))),
        "pvalue": float(adjusted.min()),
        "null_distribution": -np.log10(best / (1 + half)),
        "moment_pvalue": min(len(results) * min(result.moment_pvalue for result in results), 1.0),
        "n_moment_draws": max(result.n_moment_draws for result in results),
        "statistic_mcse": float(np.log10(ranks[index, 1] / ranks[index, 2])) / 2,
        "method": f"{winner.method}; {len(results)} kernels aggregated",
    }
    return AggregatedMMDResult(
        **vars(winner) | aggregated,
        kernels=tuple(result.kernel for result in results if result.kernel is not None),
        statistics=np.array([result.statistic for result in results]),
        pvalues=adjusted,
        rejected=adjusted <= alpha,
        alpha=alpha,
    )


def resolve_kernels(kernels: Any, data: Data) -> list[Kernel]:
    """Return the kernels of an aggregated test with all parameters resolved."""
    if isinstance(kernels, str) and kernels == "auto":
        median = median_rate(Mallows(nu="median"), data)
        return [Mallows(nu=scale * median) for scale in AUTO_SCALES]
    is_list = isinstance(kernels, Sequence | np.ndarray) and not isinstance(kernels, str | bytes)
    if not is_list or getattr(kernels, "ndim", 1) == 0 or not len(kernels):
        raise TypeError(
            f"kernels={short_repr(kernels)} is not a list of kernels; give one such as [Mallows(0.1), Kendall()], or "
            "'auto'"
        )
    checked = [
        Mallows(nu=check_number("one of kernels", each, 0)) if is_number(each) else as_kernel(each, "one of kernels")
        for each in kernels
    ]
    return [kernel.resolve(data) for kernel in checked]


def adjusted_pvalues(ranks: IntArray, best: IntArray) -> FloatArray:
    """Return for each rank the null probability that the best rank of all kernels is not larger.

    Examples
    --------
    >>> adjusted_pvalues(np.array([1, 4]), best=np.array([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    array([0.2, 0.5])
    """
    return np.asarray((1 + np.searchsorted(np.sort(best), ranks, side="right")) / (1 + len(best)))


# ---------------------------------------------------------------------- large samples


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

    Returns
    -------
    float

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
