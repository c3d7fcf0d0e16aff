"""Two-sample tests by the maximum mean discrepancy, with one kernel or with several; the statistic of large samples.

The test with several kernels is MMDAgg (Schrab, Kim, Albert, Laurent, Guedj and Gretton 2023). Each kernel ranks its
statistic among B1 permutations, and B2 other permutations give the distribution of the best rank of all kernels under
the null hypothesis. The paper fixes a level and finds by bisection how much the level of each kernel must be lowered;
here adjusted p-values express that rule for all levels: a kernel rejects at a level if its adjusted p-value is not
above it. Under the null hypothesis the data and the B2 permutations are exchangeable given the B1 others, so the level
is exact for every number of permutations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, IntArray, Mask
from rankernel._utils.checks import (
    Seed,
    as_seed,
    check_flag,
    check_integer,
    check_labels,
    check_list,
    check_number,
    is_number,
    short_repr,
)
from rankernel.comparisons import Comparisons
from rankernel.completions.draws import CompletionModel
from rankernel.data import Data, as_data, concat
from rankernel.errors import Argument, RankingError
from rankernel.gram.bandwidth import median_rate
from rankernel.gram.montecarlo import unbiased_method
from rankernel.gram.plan import MethodLike, Plan
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.rankings import Rankings
from rankernel.stats._permutations import count_exceedances
from rankernel.stats.base import (
    Sample,
    check_voters_needed,
    describe_test,
    evaluate,
    stratum_codes,
    warn_if_noisy,
)
from rankernel.stats.groups import GroupedVoters, GroupStatistic, GroupTestResult, squared_mmd

NAMES = ("X", "Y")
TASK = "a test of groups"
AUTO_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)  # bandwidths of the aggregated test, relative to the median heuristic


@dataclass(frozen=True, eq=False, kw_only=True)
class MMDResult(GroupTestResult):
    """Result of :func:`mmd_test`.

    Attributes
    ----------
    statistic : float
        The estimate of the squared maximum mean discrepancy.
    rankings : Rankings or Preferences
        The distinct rankings of both samples, with their numbers of voters.
    witness : array of shape (n_rankings,)
        The witness function at each of them: the mean kernel with the first sample minus that with the second.
    """

    witness: FloatArray = field(repr=False)

    @property
    def _dispersion_factor(self) -> float:
        return self._voters.mmd_factor


@np.errstate(under="ignore")
def mmd_test(
    X: Any,
    Y: Any,
    kernel: Kernel | str | None = None,
    *,
    n_permutations: int = 999,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    strata: tuple[Any, Any] | None = None,
    precomputed: Any = None,
    n_jobs: int | None = None,
) -> MMDResult:
    r"""Test whether two samples of rankings have the same distribution, by the maximum mean discrepancy.

    The statistic is the unbiased estimate of the squared discrepancy (Gretton et al. 2012),
    :math:`\frac{1}{m(m-1)} \sum_{i \ne j} K(X_i, X_j) + \frac{1}{n(n-1)} \sum_{i \ne j} K(Y_i, Y_j)
    - \frac{2}{mn} \sum_{i,j} K(X_i, Y_j)`. Its null distribution is that of random divisions of all voters into two
    samples of these sizes. A row of count c is c voters.

    Parameters
    ----------
    X, Y : Rankings, Preferences, Comparisons or integer arrays
        The two samples, over the same items. Comparisons are permuted within the pairs of items that are compared.
    kernel : Kernel, optional
        The kernel, ``Mallows("median")`` by default: the median heuristic uses both samples.
    n_permutations : int
        The number of permutations B. ``pvalue`` is at least 1 / (B + 1); ``moment_pvalue`` does not depend on B.
    rng : int, Generator or None
        The source of the permutations; the same call gives the same result for an integer. Monte Carlo draws have a
        separate seed: see :class:`MonteCarlo`.
    biased : bool
        Whether to use the biased estimate, which includes i = j and divides by m² and n².
    method : as in :meth:`Kernel.gram`
        How to compute kernel values. With estimated values the test has its exact level too: draws depend on the
        ranking only. Two voters with the same ranking are compared by different draws.
    strata : pair of arrays, optional
        A label for each row of X and for each row of Y: voters are permuted within strata only.
    precomputed : array, optional
        The Gram matrix of the rows of X followed by those of Y.
    n_jobs : int, optional
        The number of threads that compute the Gram matrix.

    Returns
    -------
    MMDResult
        ``statistic``, ``pvalue``, ``moment_pvalue``, ``null_distribution``, ``effect``, ``effect_interval``,
        ``witness``, ...; ``differences()`` compares the samples by items and pairs of items.

    Notes
    -----
    The p-value from moments uses the exact mean, variance and skewness over all permutations. With more than 2,000
    distinct rankings the skewness, and with strata all moments, are estimated from at least 1,000 permutations
    (``n_moment_draws``). If hardly any two voters are similar to the kernel, the approximation can be very
    conservative.

    A partial ranking is embedded as the uniform distribution on its completions, so only the distributions of
    completions are compared.

    Examples
    --------
    >>> from rankernel import Mallows, Rankings
    >>> X = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]], counts=[5, 3])
    >>> Y = Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]], items=X.items, counts=[2, 6])
    >>> result = mmd_test(X, Y, Mallows(nu=float(np.log(2))))
    >>> expected = (41 + 35) / 56 - 2 * 21.25 / 64
    >>> round(expected, 6), round(result.statistic, 6)
    (0.69308, 0.69308)
    >>> result.pvalue < 0.05
    True
    >>> print(result)
    MMDResult
      statistic  0.6931
      p-value    0.009 (999 permutations), 0.0036 (moments)
      effect     0.35 of the dispersion of the voters lies between the groups, 95% interval 0.0906 to 0.619
      kernel     Mallows(nu=0.6931471805599453)
      method     unbiased squared MMD, 999 permutations of the voters, kernel values: exact
    """
    n_permutations, seed = check_integer("n_permutations", n_permutations), as_seed(rng)
    data, count_voters = check_samples(X, Y, strata, biased)
    if precomputed is None:
        sample = Sample.planned(data, kernel, method, n_jobs, TASK)
    else:
        sample = Sample.from_gram(data, precomputed, kernel)
    return mmd_result(squared_mmd(count_voters(sample), biased, seed), n_permutations)


def mmd_result(statistic: GroupStatistic, n_permutations: int, *, warn: bool = True) -> MMDResult:
    """Return the result of the test of two groups."""
    voters, biased = statistic.voters, statistic.biased
    name = f"{'biased' if biased else 'unbiased'} squared MMD"
    first, second = voters.by_group / voters.sizes[:, None]
    return MMDResult(
        **evaluate(statistic, n_permutations, voters.sample, name, voters.scheme, warn=warn),
        witness=np.asarray(voters.gram @ (first - second)),
        _voters=voters,
        _biased=biased,
    )


def check_samples(X: Any, Y: Any, strata: Any, biased: bool) -> tuple[Data, Callable[[Sample], GroupedVoters]]:
    """Return the rows of two samples, and the function that counts their voters, after checking the arguments."""
    if isinstance(Y, CompletionModel) or callable(Y):
        raise TypeError("Y is a model, not a sample of rankings; use goodness_of_fit_test(X, model)")
    if isinstance(X, Comparisons) and isinstance(Y, Comparisons):
        if X.items != Y.items:
            raise RankingError("X and Y have different items; build both with the same ", Argument("items", ...))
        strata = (X.match_ups, Y.match_ups) if strata is None else strata
        X, Y = X.to_rankings(), Y.to_rankings()
    first, second = as_data(X), as_data(Y, name="Y")
    least = 1 if check_flag("biased", biased) else 2
    for name, data in zip(NAMES, (first, second), strict=True):
        check_voters_needed(data, least, name)
    sizes = len(first), len(second)
    if strata is not None:
        pair = check_list("strata", strata, "a pair of arrays: a label for each row of X, and one for each row of Y")
        if len(pair) != 2:
            raise RankingError(f"strata has {len(pair)} parts; give a pair of arrays, one for X and one for Y")
        strata = np.concatenate([check_labels("strata", part, size) for part, size in zip(pair, sizes, strict=True)])
    both = concat([first, second])
    codes, sample_of_row = stratum_codes(strata, len(both)), np.repeat([0, 1], sizes)
    return both, lambda sample: GroupedVoters.count(sample, NAMES, sample_of_row, codes, both.counts)


# ---------------------------------------------------------------------- several kernels


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
    """Test whether two samples of rankings have the same distribution, with several kernels at one level.

    Parameters
    ----------
    X, Y, rng, biased, method, strata, n_jobs
        As in :func:`mmd_test`.
    kernels : "auto", or a list of kernels or of decay rates nu
        Decay rates are those of Mallows kernels; "auto" is five of them around the median heuristic of both samples.
    n_permutations : int
        The number of permutations for the p-value of each kernel; as many again give the distribution of the smallest
        p-value. All kernels use the same permutations.
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
    data, count_voters = check_samples(X, Y, strata, biased)
    results, rank_rows = [], []
    for kernel in resolve_kernels(kernels, data):
        voters = count_voters(Sample.planned(data, kernel, method, n_jobs, TASK))
        statistic = squared_mmd(voters, biased, seed)
        result = mmd_result(statistic, 2 * half, warn=False)
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
    name = f"{'biased' if biased else 'unbiased'} squared MMD"
    text = describe_test(name, half, winner._voters.scheme, winner._voters.sample)
    aggregated = {
        "statistic": float(-np.log10(observed[index] / (1 + half))),
        "pvalue": float(adjusted.min()),
        "null_distribution": -np.log10(best / (1 + half)),
        "moment_pvalue": min(len(results) * min(result.moment_pvalue for result in results), 1.0),
        "n_moment_draws": max(result.n_moment_draws for result in results),
        "statistic_mcse": float(np.log10(ranks[index, 1] / ranks[index, 2])) / 2,
        "method": f"{text}; {len(results)} kernels aggregated",
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
