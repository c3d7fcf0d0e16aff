"""The two-sample test: whether two sets of rankings come from one distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.checks import check_flag, check_labels, check_list, check_numbers
from rankernel._utils.rng import Seed, as_seed
from rankernel.completions.draws import CompletionModel
from rankernel.data import Data, as_data, concat
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.kernels.exponential import Mallows
from rankernel.stats._effect_law import Interval
from rankernel.stats._effects import group_effect, group_effect_interval, kernel_errors
from rankernel.stats._groups import GroupedVoters, TwoGroups, table_of
from rankernel.stats._permutations import Null, Permutations, PermutationsLike, as_permutations
from rankernel.stats._voters import Ballots, group_codes, warn_if_noisy
from rankernel.stats.results import MMDResult

NAMES = ("X", "Y")


def mmd_test(
    X: Any,
    Y: Any,
    kernel: Kernel | None = None,
    n_permutations: PermutationsLike = 1000,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    strata: tuple[Any, Any] | None = None,
    precomputed: Any = None,
    n_jobs: int | None = None,
) -> MMDResult:
    r"""Test whether two sets of rankings come from one distribution, by their maximum mean discrepancy.

    The statistic is the unbiased estimate of the squared discrepancy (Gretton et al. 2012),
    :math:`\frac{1}{m(m-1)} \sum_{i \ne j} K(X_i, X_j) + \frac{1}{n(n-1)} \sum_{i \ne j} K(Y_i, Y_j)
    - \frac{2}{mn} \sum_{i,j} K(X_i, Y_j)`, where the last sum goes over all pairs. Its null distribution is that of
    random divisions of all voters into two samples of these sizes. A row of count c is c voters, exactly as if it
    were written c times.

    Parameters
    ----------
    X, Y : Rankings, Preferences or integer arrays
        The two samples, over the same items.
    kernel : Kernel, optional
        The kernel; ``Mallows("median")`` if left out, its width taken from both samples together.
    n_permutations : int, "adaptive" or Adaptive
        How many divisions make the null distribution; "adaptive" draws many only where the p-value is near 0.05.
    rng : int or Generator
        Where the divisions come from. The draws of a Monte Carlo method have a seed of their own.
    biased : bool
        Whether to add the pairs of each voter with itself, and divide by m² and n².
    method : as in :meth:`Kernel.gram`
        How to compute kernel values. Estimated ones belong to the ballots, so that the level of the test is exact
        with them, too; two voters with the same ballot are compared by different draws.
    strata : pair of arrays, optional
        A label for each row of X and for each row of Y: voters change sides only within their stratum.
    precomputed : array, optional
        The Gram matrix of the rows of X and then those of Y, if it is known already.
    n_jobs : int, optional
        How many tiles of the Gram matrix to compute at once.

    Returns
    -------
    MMDResult
        ``statistic``, ``pvalue``, ``tail_pvalue``, ``null_distribution``, ``effect``, ``effect_interval``, ``method``,
        ``plan``, ``kernel``, ``rankings``, ``witness``; ``differences()`` says in what the samples differ.

    Notes
    -----
    The p-value is (1 + #{null >= statistic}) / (1 + n_permutations): it is valid for every number of permutations. The
    one by the tail comes from the exact first three moments of all permutations, by a Pearson III curve; where there
    are more than 2,000 different ballots the third comes from permutations that were drawn, and with strata all do:
    from 1,000 at least (``tail_draws`` says of how many). Where hardly any two voters are alike the curve can be far
    too cautious.

    A partial ranking acts as the uniform distribution on its completions. So of two distributions of partial
    rankings only the distributions of their completions are compared.

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
      p-value    0.00999 (1,000 permutations), 0.0036 (tail)
      effect     0.35 of the dispersion of the voters lies between the groups, 95% interval 0.0906 to 0.619
      kernel     Mallows(nu=0.6931471805599453)
      method     unbiased squared MMD, 1,000 permutations of the voters, kernel values: exact
    """
    wanted, start = as_permutations(n_permutations), as_seed(rng)
    samples = Samples.checked(X, Y, strata, biased)
    if precomputed is not None:
        ballots = Ballots.of(samples.data)
        table = table_of(ballots, samples.second, samples.stratum, 2)
        voters = GroupedVoters(ballots.data, NAMES, table, kernel, None, given_gram(samples.data, precomputed))
    else:
        voters = samples.planned(check_kernel(kernel), method, n_jobs)
    return two_sample_result(voters, wanted, start, biased)


def two_sample_result(voters: GroupedVoters, wanted: Permutations, seed: int, biased: bool) -> MMDResult:
    """Return what the voters of two groups say."""
    found = evidence_of(voters, wanted, seed, biased)
    warn_if_noisy(found.error, float(found.null.values.std()))
    return MMDResult(
        found.statistic,
        found.null.pvalue,
        found.null.values,
        found.tail,
        found.null.n_for_moments,
        found.effect,
        description(len(found.null.values), biased, voters),
        voters.plan,
        voters.kernel,
        voters.data,
        found.error,
        found.effect_error,
        found.interval(voters),
        voters,
        biased,
        found.witness,
    )


def check_kernel(kernel: Kernel | None) -> Kernel:
    """Return a kernel, the Mallows kernel if there is none, refusing anything else."""
    return Mallows(nu="median") if kernel is None else as_kernel(kernel)


def given_gram(X: Data, matrix: Any) -> FloatArray:
    """Return a Gram matrix that the caller has, one row for each row of the data."""
    values = check_numbers("precomputed", matrix, (len(X), len(X)))  # the rows of X, then those of Y
    if not np.allclose(values, values.T):
        raise ValueError("precomputed is not symmetric; a Gram matrix is")
    return values


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one kernel says: its statistic, a null distribution, and how close a tie may be by rounding."""

    statistic: float
    null: Null
    tolerance: float
    tail: float
    effect: float
    error: float
    effect_error: float
    witness: FloatArray

    def interval(self, voters: GroupedVoters) -> Callable[[], Interval]:
        """Return what makes the interval of the effect, when it is asked for."""
        return partial(group_effect_interval, voters, self.null.moments.skewness, self.effect_error)


def evidence_of(voters: GroupedVoters, wanted: Permutations, seed: int, biased: bool) -> Evidence:
    """Return the statistic of two groups and of random divisions of their voters."""
    form = TwoGroups(voters, biased, seed)
    null = form.null(wanted)
    tail = null.tail(form.statistic, form.tolerance, voters.least())
    first, second = voters.by_group / voters.sizes[:, None]
    error, effect_error = kernel_errors(voters, biased)
    witness = voters.gram @ (first - second)
    effect = group_effect(voters)
    return Evidence(
        form.statistic, null, form.tolerance, tail, effect, error * form.per_dispersion, effect_error, witness
    )


@dataclass(frozen=True, eq=False)
class Samples:
    """Two samples: the rows of both, and for each row whether it is of the second one, and its stratum."""

    data: Data
    second: IntArray
    stratum: IntArray

    @classmethod
    def checked(cls, X: Any, Y: Any, strata: tuple[Any, Any] | None, biased: bool) -> Samples:
        """Return the two samples, having refused those that are too small for the statistic."""
        if isinstance(Y, CompletionModel) or callable(Y):
            raise TypeError("Y is a model, not a sample of rankings; use goodness_of_fit_test(X, model)")
        first, second = as_data(X), as_data(Y, name="Y")
        check_flag("biased", biased)
        least = 1 if biased else 2
        for name, sample in zip(NAMES, (first, second), strict=True):
            if sample.n_voters < least:
                raise RankingError(f"{name} has {sample.n_voters} voter(s); this statistic needs at least {least}")
        both = concat([first, second])
        in_second = (np.arange(len(both)) >= len(first)).astype(np.int64)
        return cls(both, in_second, strata_of(strata, both, len(first)))

    def planned(self, kernel: Kernel, method: MethodLike, n_jobs: int | None) -> GroupedVoters:
        """Return the voters with the plan of a kernel."""
        return GroupedVoters.planned(self.data, self.second, NAMES, self.stratum, kernel, method, n_jobs)


def strata_of(strata: tuple[Any, Any] | None, both: Data, n_first: int) -> IntArray:
    """Return the number of the stratum of each row."""
    if strata is None:
        return np.zeros(len(both), dtype=np.int64)
    pair = check_list("strata", strata, "a pair of arrays: a label for each row of X, and one for each row of Y")
    if len(pair) != 2:
        raise RankingError(f"strata is a pair of arrays, one for the rows of X and one for those of Y; got {len(pair)}")
    given = [
        check_labels("strata", part, length) for part, length in zip(pair, (n_first, len(both) - n_first), strict=True)
    ]
    return group_codes(np.concatenate(given), both, "strata")


def description(n_permutations: int, biased: bool, voters: GroupedVoters, statistic: str = "squared MMD") -> str:
    """Return what was done, in words."""
    within = " within strata" if len(voters.table) > 1 else ""
    values = "given" if voters.plan is None else voters.plan.method
    return (
        f"{'biased' if biased else 'unbiased'} {statistic}, {n_permutations:,} permutations of the voters{within}, "
        f"kernel values: {values}"
    )
