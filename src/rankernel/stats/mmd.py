"""Two-sample tests by the maximum mean discrepancy, with one kernel or with several.

The test with several kernels is MMDAgg (Schrab, Kim, Albert, Laurent, Guedj and Gretton 2023). Each kernel ranks its
statistic among B1 permutations, and B2 other permutations give the distribution of the best rank of all kernels under
the null hypothesis. The paper fixes a level and finds by bisection how much the level of each kernel must be lowered;
here adjusted p-values express that rule for all levels: a kernel rejects at a level if its adjusted p-value is not
above it. Under the null hypothesis the data and the B2 permutations are exchangeable given the B1 others, so the level
is exact for every number of permutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, IntArray, Mask
from rankernel._utils.checks import (
    check_flag,
    check_integer,
    check_labels,
    check_list,
    check_number,
    is_number,
    short_repr,
)
from rankernel._utils.rng import Seed, as_seed
from rankernel.completions.draws import CompletionModel
from rankernel.data import Data, as_data, concat
from rankernel.errors import RankingError
from rankernel.gram.bandwidth import median_width
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.kernels.named import as_kernel
from rankernel.stats._groups import GroupedVoters, SquaredMMD
from rankernel.stats._permutations import (
    Adaptive,
    PermutationsLike,
    check_permutations,
    count_exceedances,
    sample_null_distribution,
)
from rankernel.stats._sample import Sample, check_voters_needed, stratum_codes, warn_if_noisy
from rankernel.stats.results import GroupTestResult, evaluate, result_fields

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
        return float(self._voters.sizes.sum() / self._voters.sizes.prod())


def mmd_test(
    X: Any,
    Y: Any,
    kernel: Kernel | str | None = None,
    *,
    n_permutations: PermutationsLike = 999,
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
    X, Y : Rankings, Preferences or integer arrays
        The two samples, over the same items.
    kernel : Kernel, optional
        The kernel, ``Mallows("median")`` by default: the median heuristic uses both samples.
    n_permutations : int, "adaptive" or Adaptive
        The number of permutations. "adaptive" draws many only if the p-value is near 0.05; see :class:`Adaptive`.
    rng : int, Generator or None
        The source of the permutations; the same call gives the same result for an integer. Monte Carlo draws have a
        seed of their own.
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
      p-value    0.01 (999 permutations), 0.0036 (moments)
      effect     0.35 of the dispersion of the voters lies between the groups, 95% interval 0.0906 to 0.619
      kernel     Mallows(nu=0.6931471805599453)
      method     unbiased squared MMD, 999 permutations of the voters, kernel values: exact
    """
    n_permutations, seed = check_permutations(n_permutations), as_seed(rng)
    samples = TwoSamples.check(X, Y, strata, biased)
    if precomputed is not None:
        return mmd_result(
            samples.grouped(Sample.from_gram(samples.data, precomputed, kernel)), n_permutations, seed, biased
        )
    return mmd_result(samples.planned(kernel, method, n_jobs), n_permutations, seed, biased)


def mmd_result(voters: GroupedVoters, n_permutations: int | Adaptive, seed: int, biased: bool) -> MMDResult:
    """Return the result of the test of two groups."""
    fields = evaluate(SquaredMMD(voters, biased, seed), n_permutations, voters.sample)
    text = describe(voters, biased, len(fields["null_distribution"]))
    return MMDResult(**fields, method=text, witness=witness(voters), _voters=voters, _biased=biased)


def witness(voters: GroupedVoters) -> FloatArray:
    """Return the witness function of two groups at each ranking."""
    first, second = voters.by_group / voters.sizes[:, None]
    return np.asarray(voters.gram @ (first - second))


def describe(voters: GroupedVoters, biased: bool, n_permutations: int, statistic: str = "squared MMD") -> str:
    """Return the description of a test of groups."""
    within = " within strata" if voters.is_stratified() else ""
    return (
        f"{'biased' if biased else 'unbiased'} {statistic}, {n_permutations:,} permutations of the voters{within}, "
        f"kernel values: {voters.sample.method}"
    )


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Two samples: the rows of both, and the sample and the stratum of each row."""

    data: Data
    sample: IntArray
    stratum: IntArray

    @classmethod
    def check(cls, X: Any, Y: Any, strata: tuple[Any, Any] | None, biased: bool) -> TwoSamples:
        """Return the two samples, after checking the arguments of a test."""
        if isinstance(Y, CompletionModel) or callable(Y):
            raise TypeError("Y is a model, not a sample of rankings; use goodness_of_fit_test(X, model)")
        first, second = as_data(X), as_data(Y, name="Y")
        least = 1 if check_flag("biased", biased) else 2
        for name, data in zip(NAMES, (first, second), strict=True):
            check_voters_needed(data, least, name)
        both = concat([first, second])
        sample = (np.arange(len(both)) >= len(first)).astype(np.int64)
        return cls(both, sample, stratum_codes(join_strata(strata, len(first), len(second)), len(both)))

    def grouped(self, sample: Sample) -> GroupedVoters:
        """Return the voters of the two samples."""
        return GroupedVoters.count(sample, NAMES, self.sample, self.stratum, self.data.counts)

    def planned(self, kernel: Any, method: MethodLike, n_jobs: int | None) -> GroupedVoters:
        """Return the voters of the two samples with the plan of a kernel."""
        return self.grouped(Sample.planned(self.data, kernel, method, n_jobs, TASK))


def join_strata(strata: tuple[Any, Any] | None, n_first: int, n_second: int) -> Any:
    """Return the labels of the strata of both samples as one array."""
    if strata is None:
        return None
    pair = check_list("strata", strata, "a pair of arrays: a label for each row of X, and one for each row of Y")
    if len(pair) != 2:
        raise RankingError(f"strata is a pair of arrays, one for the rows of X and one for those of Y; got {len(pair)}")
    return np.concatenate([check_labels("strata", part, n) for part, n in zip(pair, (n_first, n_second), strict=True)])


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
        p-value. All kernels use the same permutations, so adaptive stopping is not possible.
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
    samples = TwoSamples.check(X, Y, strata, biased)
    tests = []
    for kernel in resolve_kernels(kernels, samples.data):
        voters = samples.planned(kernel, method, n_jobs)
        tests.append(SingleKernelTest.run(voters, 2 * half, seed, biased))
        voters.release()  # one Gram matrix at a time
    ranks = np.array([test.ranks(half) for test in tests])
    observed, best = ranks[:, 0], ranks[:, 1:].min(axis=0)
    adjusted = adjusted_pvalues(observed, best)
    winner = tests[int(np.argmin(observed))]
    warn_if_noisy(winner.fields["statistic_mcse"], float(winner.fields["null_distribution"].std()))
    fields = winner.fields | {
        "statistic": float(-np.log10(observed.min() / (1 + half))),
        "pvalue": float(adjusted.min()),
        "null_distribution": -np.log10(best / (1 + half)),
        "moment_pvalue": min(len(tests) * min(test.fields["moment_pvalue"] for test in tests), 1.0),
        "n_moment_draws": max(test.fields["n_moment_draws"] for test in tests),
        "statistic_mcse": winner.log_rank_error(half),
    }
    return AggregatedMMDResult(
        **fields,
        method=f"{describe(winner.voters, biased, half)}; {len(tests)} kernels aggregated",
        witness=winner.witness,
        kernels=tuple(test.fields["kernel"] for test in tests),
        statistics=np.array([test.fields["statistic"] for test in tests]),
        pvalues=adjusted,
        rejected=adjusted <= alpha,
        alpha=alpha,
        _voters=winner.voters,
        _biased=biased,
    )


@dataclass(frozen=True, eq=False)
class SingleKernelTest:
    """The test with one of several kernels."""

    voters: GroupedVoters
    fields: dict[str, Any]  # the attributes of a result
    tolerance: float
    witness: FloatArray

    @classmethod
    def run(cls, voters: GroupedVoters, n_permutations: int, seed: int, biased: bool) -> SingleKernelTest:
        """Test two groups; no warning of Monte Carlo errors."""
        statistic = SquaredMMD(voters, biased, seed)
        null, errors = sample_null_distribution(statistic, n_permutations), statistic.standard_errors()
        fields = result_fields(statistic.value, null, statistic.effect(), errors, voters.sample)
        return cls(voters, fields, statistic.tolerance, witness(voters))

    def ranks(self, half: int) -> IntArray:
        """Return the ranks of the data and of the second half of the permutations among the first half.

        A rank is one more than the number of permutations with a statistic at least as large.
        """
        null = self.fields["null_distribution"]
        return self._ranks_among(half, np.append(self.fields["statistic"], null[half:]))

    def log_rank_error(self, half: int) -> float:
        """Return the change of the logarithm of the rank if the statistic changes by its Monte Carlo standard error."""
        mcse = self.fields["statistic_mcse"]
        ranks = self._ranks_among(half, self.fields["statistic"] + np.array([-mcse, mcse]))
        return float(np.log10(ranks[0] / ranks[1])) / 2

    def _ranks_among(self, half: int, values: FloatArray) -> IntArray:
        return 1 + count_exceedances(self.fields["null_distribution"][:half], values, self.tolerance)


def resolve_kernels(kernels: Any, data: Data) -> list[Kernel]:
    """Return the kernels of an aggregated test with all parameters resolved."""
    if isinstance(kernels, str) and kernels == "auto":
        median = median_width(Mallows(nu="median"), data)
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
