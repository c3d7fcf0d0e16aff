"""The test of several groups: whether any of them differ, and which."""

from __future__ import annotations

from functools import partial
from typing import Any

from rankernel._utils.arrays import IntArray
from rankernel._utils.checks import check_flag, check_labels
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data, as_data, group_codes
from rankernel.encoding import is_missing
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.stats._effects import group_effect, group_effect_interval, kernel_errors
from rankernel.stats._groups import GroupedVoters, dispersion_of, strata_codes, table_of
from rankernel.stats._permutations import Permutations, PermutationsLike, as_permutations
from rankernel.stats._voters import Ballots, warn_if_noisy
from rankernel.stats.mmd import check_kernel, description, given_gram
from rankernel.stats.pairwise import KSampleResult


def k_sample_test(
    X: Any,
    groups: Any,
    kernel: Kernel | None = None,
    n_permutations: PermutationsLike = 1000,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    strata: Any = None,
    precomputed: Any = None,
    n_jobs: int | None = None,
) -> KSampleResult:
    r"""Test whether any of several groups of rankings differ, by the dispersion between their mean embeddings.

    The biased statistic is :math:`\sum_g n_g \|\mu_g - \mu\|^2`, with :math:`\mu_g` the mean embedding of the
    :math:`n_g` voters of a group and :math:`\mu` that of all N. The unbiased one leaves out the pairs of each voter
    with itself: :math:`\frac{N-1}{N} \sum_g \frac{1}{n_g - 1} S_g - \frac{1}{N} S`, with S the sum of the kernel over
    ordered pairs of different voters, of a group or of all. For two groups it is :math:`n_1 n_2 / N` times the squared
    discrepancy of :func:`mmd_test`. The null distribution is that of voters permuted between groups. A row of count c
    is c voters.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings of all groups.
    groups : array of shape (n_rankings,)
        The group of each row: labels of any kind.
    kernel : Kernel, optional
        The kernel; ``Mallows("median")`` if left out.
    n_permutations : int, "adaptive" or Adaptive
        How many permutations make the null distribution; "adaptive" draws many only where the p-value is near 0.05.
    rng : int or Generator
        Where the permutations come from.
    biased : bool
        Which statistic.
    method : as in :meth:`Kernel.gram`
        How to compute kernel values; two voters with the same ballot are compared by different draws.
    strata : array of shape (n_rankings,), optional
        A label for each row: voters change groups only within their stratum.
    precomputed : array of shape (n_rankings, n_rankings), optional
        The Gram matrix of X, if it is known already.
    n_jobs : int, optional
        How many tiles of the Gram matrix to compute at once.

    Returns
    -------
    KSampleResult
        ``statistic``, ``pvalue``, ``tail_pvalue``, ``null_distribution``, ``effect``, ``effect_interval``, ``method``,
        ``plan``, ``kernel``, ``rankings``, ``groups``; ``pairwise()`` says which groups differ, ``differences()`` in
        what.

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders(
    ...     [["a", "b", "c"], ["a", "c", "b"], ["a", "b", "c"], ["c", "b", "a"], ["c", "b", "a"], ["c", "a", "b"]],
    ...     counts=[6, 4, 10, 1, 9, 3],
    ... )
    >>> result = k_sample_test(ballots, ["north", "north", "east", "east", "south", "south"])
    >>> result.pvalue
    0.000999000999000999
    >>> print(result.pairwise())
    PairwiseResult: 2 of 3 pairs of groups differ at 0.05 (Holm, permutations)
      north and south  p = 0.003 (corrected), effect 0.49
      east and south   p = 0.003 (corrected), effect 0.6
      east and north   p = 0.058 (corrected), effect 0.1
    """
    wanted, start = as_permutations(n_permutations), as_seed(rng)
    data, least = as_data(X), 1 if check_flag("biased", biased) else 2
    codes, names = named_groups(groups, data)
    stratum = strata_codes(strata, data)
    if precomputed is None:
        voters = GroupedVoters.planned(data, codes, names, stratum, check_kernel(kernel), method, n_jobs)
    else:
        ballots = Ballots.of(data)
        table = table_of(ballots, codes, stratum, len(names))
        voters = GroupedVoters(ballots.data, names, table, kernel, None, given_gram(data, precomputed))
    voters.check_sizes(least)
    return k_sample_result(voters, wanted, start, biased)


def k_sample_result(voters: GroupedVoters, wanted: Permutations, seed: int, biased: bool) -> KSampleResult:
    """Return what the voters of all groups say together."""
    form = dispersion_of(voters, biased, seed)
    null, scale = form.null(wanted), 1 / form.per_dispersion
    error, effect_error = kernel_errors(voters, biased)
    warn_if_noisy(error, float(null.values.std()) * scale)
    return KSampleResult(
        form.statistic * scale,
        null.pvalue,
        null.values * scale,
        null.tail(form.statistic, form.tolerance, voters.least()),
        null.n_for_moments,
        group_effect(voters),
        description(len(null.values), biased, voters, f"dispersion between {len(voters.names)} groups"),
        voters.plan,
        voters.kernel,
        voters.data,
        error,
        effect_error,
        partial(group_effect_interval, voters, null.moments.skewness, effect_error),
        voters,
        biased,
        _wanted=wanted,
        _seed=seed,
    )


def named_groups(labels: Any, X: Data) -> tuple[IntArray, tuple[str, ...]]:
    """Return the number of the group of each row, and the names of the groups."""
    given = check_labels("groups", labels, len(X))
    for row, label in enumerate(given.tolist()):
        if is_missing(label):
            raise RankingError(f"the group of row {row} is missing; leave out rows without one")
    names, codes = group_codes(given)
    if len(names) < 2:
        raise RankingError(
            f"all rows are of the group {names[0]!r}; a test needs two groups"
            if len(names)
            else "there are no rankings; a test needs two groups"
        )
    return codes, names
