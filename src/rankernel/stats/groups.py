r"""Tests of groups of voters: the dispersion between groups as a test statistic and as an effect size.

With equal weights for k groups, voters scatter around the mean embedding of all by :math:`V = B + W`: between groups
:math:`B = \frac{1}{k^2} \sum_{g < h} \|\mu_g - \mu_h\|^2`, and within groups the mean W of
:math:`W_g = E\|\phi(R) - \mu_g\|^2`. The effect :math:`B / V` is 0 if the groups have the same mean embedding and 1 if
all voters of a group agree and groups differ. It depends neither on group sizes nor on the scale of the kernel.

Within strata, B and W are means over strata weighted by their numbers of voters. A stratum contributes with those of
its groups that have at least two voters there, if there are two such groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankernel._utils import FloatArray, Indices, IntArray
from rankernel._utils.checks import Seed, as_seed, check_flag, check_integer, check_labels, check_list, printable
from rankernel.comparisons import Comparisons, check_judges_are_mixed
from rankernel.completions.draws import CompletionModel
from rankernel.data import Data, as_data, concat, group_codes
from rankernel.errors import Argument, RankingError
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.rankings import is_missing
from rankernel.stats._permutations import Cells, CentredKernel, Moments, PairStatistic, permutation_moments
from rankernel.stats.base import (
    PRIOR_VOTERS,
    Effect,
    InfluenceSample,
    Interval,
    KernelTestResult,
    Sample,
    check_voters_needed,
    diagonal_scale,
    evaluate,
    stratum_codes,
)

if TYPE_CHECKING:
    from rankernel.stats.differences import Differences
    from rankernel.stats.paired import Judges
    from rankernel.stats.pairwise import Correction, PairwiseResult

NAMES = ("X", "Y")


@dataclass(frozen=True, eq=False)
class GroupedVoters:
    """Voters by stratum, group and ranking."""

    sample: Sample  # the distinct rankings of all groups, and the kernel between them
    names: tuple[str, ...]  # of the groups
    table: IntArray  # the number of voters, of shape (n_strata, n_groups, n_rows)

    @classmethod
    def count(
        cls, sample: Sample, names: tuple[str, ...], groups: IntArray, strata: IntArray, counts: IntArray
    ) -> GroupedVoters:
        """Return the voters of groups, from the group, the stratum and the count of each row of the original data."""
        table = np.zeros((int(strata.max()) + 1, len(names), len(sample.data)), dtype=np.int64)
        np.add.at(table, (strata, groups, sample.index), counts)
        return cls(sample, names, table)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out matrices that can be computed again."""
        return {name: value for name, value in self.__dict__.items() if name != "strata"}

    def release(self) -> None:
        """Free the Gram matrix, which is computed again on the next access."""
        self.sample.release()
        self.__dict__.pop("strata", None)

    @property
    def gram(self) -> FloatArray:
        """The Gram matrix of the distinct rankings."""
        return self.sample.gram

    @cached_property
    def sizes(self) -> FloatArray:
        """The number of voters of each group."""
        return np.asarray(self.table.sum(axis=(0, 2)), dtype=np.float64)

    @cached_property
    def strata(self) -> list[Stratum]:
        """The strata that contribute to the effect; a single stratum needs two voters of each group."""
        usable = self.table.sum(axis=2) > 1
        if len(usable) == 1 and not usable.all():
            return []
        numbers = np.flatnonzero(usable.sum(axis=1) > 1).tolist()
        n_voters = float(sum(self.table[number, usable[number]].sum() for number in numbers))
        strata = []
        for number in numbers:
            groups = np.flatnonzero(usable[number])
            table = self.table[number, groups].astype(np.float64)
            rows = np.flatnonzero(table.any(axis=0))
            table, weight = table[:, rows], float(table.sum()) / n_voters
            if len(usable) == 1 and len(rows) == len(self.gram):
                centred = self.sample.centred
            else:
                centred = CentredKernel.from_gram(self.gram[np.ix_(rows, rows)], table.sum(axis=0), biased=False)
            contrast, group_weights = equal_weights(len(groups))
            strata.append(Stratum(number, groups, rows, table, centred, weight * contrast, weight * group_weights))
        return strata

    def pair(self, first: int, second: int) -> GroupedVoters:
        """Return two of the groups, with the same kernel values."""
        pair_table = self.table[:, [first, second]]
        rows = np.flatnonzero(pair_table.any(axis=(0, 1)))
        table = pair_table[:, :, rows]
        sample = self.sample.subset(rows, table.sum(axis=(0, 1)))
        return GroupedVoters(sample, (self.names[first], self.names[second]), table[table.any(axis=(1, 2))])

    def pair_weights(self, biased: bool) -> FloatArray:
        """Return the weight of pairs of voters of each group in the dispersion."""
        n = self.sizes.sum()
        return np.asarray(1 / self.sizes if biased else (n - 1) / (n * (self.sizes - 1)))

    def statistic(self, biased: bool, seed: int, factor: float = 1.0) -> PairStatistic:
        """Return ``factor`` times the dispersion between the groups as a test statistic."""
        labels = np.nonzero(self.table)
        cells, kernel = Cells._make([*labels, self.table[labels]]), np.diag(self.pair_weights(biased))
        return PairStatistic(self.sample, cells, kernel, seed, biased=biased, factor=factor)

    def squared_mmd(self, biased: bool, seed: int) -> PairStatistic:
        """Return the squared maximum mean discrepancy of two groups as a test statistic."""
        return self.statistic(biased, seed, self.mmd_factor)

    def is_exchangeable(self) -> bool:
        """Return whether any stratum has voters of two groups."""
        return bool(((self.table.sum(axis=2) > 0).sum(axis=1) > 1).any())

    def check_exchangeable(self) -> None:
        """Raise an error if no stratum has voters of two groups."""
        if not self.is_exchangeable():
            raise RankingError(
                "no stratum has voters of two groups, so there is nothing to permute; use coarser strata"
            )

    @property
    def mmd_factor(self) -> float:
        """The squared maximum mean discrepancy of two groups over the dispersion between them."""
        return float(self.sizes.sum() / self.sizes.prod())

    def is_stratified(self) -> bool:
        """Return whether there are several strata."""
        return len(self.table) > 1

    @property
    def scheme(self) -> str:
        """Description of the permutations."""
        return f"permutations of the voters{' within strata' * self.is_stratified()}"


# ---------------------------------------------------------------------- the effect


@dataclass(frozen=True, eq=False)
class Stratum:
    """The groups of one stratum, each with at least two voters."""

    number: int  # of the stratum
    groups: Indices  # the numbers of its groups
    rows: Indices  # its rows of the Gram matrix of all voters
    table: FloatArray  # the number of voters, of shape (n_groups, n_rows)
    centred: CentredKernel  # the kernel between the rows, centred over the voters of the stratum
    contrast: FloatArray  # B is the sum of its products with the inner products of the mean embeddings of groups
    group_weights: FloatArray  # W is the sum of the dispersions within groups with these weights

    @property
    def sizes(self) -> FloatArray:
        """The number of voters of each group."""
        return np.asarray(self.table.sum(axis=1))

    @property
    def pair_weights(self) -> FloatArray:
        """The weight of pairs of different voters of two groups in the unbiased estimate of B."""
        n = self.sizes
        weights = self.contrast / np.outer(n, n)
        np.fill_diagonal(weights, np.diagonal(self.contrast) / (n * (n - 1)))
        return np.asarray(weights)

    @property
    def population(self) -> FloatArray:
        """The shares of the rows in each group, after adding pooled voters: see ``PRIOR_VOTERS``."""
        pooled = self.table.sum(axis=0) / self.table.sum()
        return np.asarray((self.table + PRIOR_VOTERS * pooled) / (self.sizes + PRIOR_VOTERS)[:, None])

    def weighted_by_size(self) -> Stratum:
        """Return the same groups with the contrast of the test statistic, which weights groups by size."""
        n = self.sizes
        contrast = np.diag(n) - np.outer(n, n) / n.sum()
        return replace(self, contrast=contrast * (1 - 1 / len(n)) / np.trace(contrast))

    def parts(self) -> tuple[float, float]:
        """Return unbiased estimates of B and W."""
        n, sums = self.sizes, self.table @ self.centred.gram @ self.table.T
        self_pairs = self.table @ np.diagonal(self.centred.gram)
        within = (np.diagonal(sums) - self_pairs) / (n * (n - 1))
        products = sums / np.outer(n, n)
        np.fill_diagonal(products, within)
        return float((self.contrast * products).sum()), float(self.group_weights @ (self_pairs / n - within))

    def null_moments(self) -> Moments:
        """Return the moments of B under permutations of voters."""
        return permutation_moments(self.centred, CentredKernel.from_gram(self.pair_weights, self.sizes, False))

    def influences(self, total: float) -> Iterator[InfluenceSample]:
        """Yield the influences of the voters of each group."""
        means, diagonal = self.population, np.diagonal(self.centred.gram)
        embedded = means @ self.centred.gram
        between = 2 * self.contrast @ embedded / total
        for group, shares in enumerate(means):
            within = self.group_weights[group] * (diagonal - 2 * embedded[group]) / total
            yield InfluenceSample(between[group], within, shares, float(self.sizes[group]))


@dataclass(frozen=True, eq=False)
class GroupEffect(Effect):
    """The share of the dispersion of voters that lies between groups, within strata."""

    voters: GroupedVoters
    by_size: bool = False  # weight groups by size, as the test statistic does

    @property
    def strata(self) -> list[Stratum]:
        """The strata that contribute."""
        strata = self.voters.strata
        return [stratum.weighted_by_size() for stratum in strata] if self.by_size else strata

    @property
    def scale(self) -> float:
        """The mean absolute kernel value of a ranking with itself."""
        return diagonal_scale(self.voters.gram)

    def parts(self) -> tuple[float, float]:
        """Return unbiased estimates of B and W; nan if groups are too small."""
        if not self.strata:
            return float("nan"), float("nan")
        between, within = (sum(parts) for parts in zip(*(each.parts() for each in self.strata), strict=True))
        return float(between), float(within)

    def population_parts(self) -> tuple[float, float]:
        """Return B and W of the population in which influences are computed."""
        parts = [dispersion_parts(s.centred.gram, s.population, s.contrast, s.group_weights) for s in self.strata]
        return sum(between for between, _ in parts), sum(within for _, within in parts)

    def null_moments(self, null: Moments) -> Moments:
        """Return the moments of B under permutations within strata."""
        return sum((each.null_moments().with_skewness(null.skewness) for each in self.strata), Moments())

    def influences(self, total: float) -> Iterator[InfluenceSample]:
        """Yield the influences of the voters of each stratum and group."""
        for stratum in self.strata:
            yield from stratum.influences(total)

    def interval(self, null: Moments, mcse: float, confidence_level: float = 0.95) -> Interval:
        """Return the confidence interval.

        For several groups of unequal sizes, the test weights groups by size and the effect does not. The lower limit is
        that of the effect weighted by size, rescaled: moving groups towards each other reduces both by the same factor.
        """
        low, high = super().interval(null, mcse, confidence_level)
        sizes = [stratum.sizes for stratum in self.strata]
        if self.by_size or len(sizes) != 1 or len(sizes[0]) == 2 or len(set(sizes[0].tolist())) == 1:
            return low, high
        weighted = GroupEffect(self.voters, by_size=True)
        if not (self.value > 0 and weighted.value > 0):
            return (low, high) if np.isnan(self.value) else (0.0, high)
        weighted_low = weighted.interval(null, mcse, confidence_level)[0]
        return min(weighted_low / weighted.value, 1.0) * self.value, high

    def mcse(self, error: float) -> float:
        """Return the Monte Carlo standard error, from redrawn kernel values of each stratum."""
        if not error or not self.strata:
            return error and float("nan")
        squares = 0.0  # strata have errors of different rankings, or of the same ones with other weights
        for stratum in self.strata:
            table = np.zeros((len(stratum.table), len(self.voters.gram)))
            table[:, stratum.rows] = stratum.table
            weighted, own = stratum.pair_weights @ table, np.diagonal(stratum.pair_weights) @ table
            squares += self.voters.sample.standard_error(weighted.T, table.T, own) ** 2
        return super().mcse(squares**0.5)


def equal_weights(n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Return the contrast and the weights of groups that count equally."""
    return np.eye(n_groups) / n_groups - 1 / n_groups**2, np.full(n_groups, 1 / n_groups)


def dispersion_parts(
    gram: FloatArray, shares: FloatArray, contrast: FloatArray, group_weights: FloatArray
) -> tuple[float, float]:
    """Return B and W of a population, from the share of each ranking in each group."""
    products = shares @ gram @ shares.T
    within = shares @ np.diagonal(gram) - np.diagonal(products)
    return float((contrast * products).sum()), float(group_weights @ within)


# ---------------------------------------------------------------------- the result


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupTestResult(KernelTestResult):
    """Result of a test that compares groups.

    Attributes
    ----------
    groups : tuple of str
        The names of the groups.
    n_voters : tuple of int
        The number of voters of each group.
    """

    _voters: GroupedVoters = field(repr=False)
    _biased: bool = field(repr=False)
    _judges: Judges | None = field(repr=False, default=None)  # of both groups, if these are before and after

    _effect_noun: ClassVar[str] = "of the dispersion of the voters lies between the groups"

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return self._voters.names

    @property
    def n_voters(self) -> tuple[int, ...]:
        """The number of voters of each group."""
        return tuple(int(size) for size in self._voters.sizes)

    @np.errstate(under="ignore")
    def differences(self, confidence_level: float = 0.95) -> Differences:
        """Return in which items and pairs of items the groups differ.

        With the Kendall kernel the statistic is the sum of contributions of pairs of items, and half of the
        contribution of a pair belongs to each of its items; this decomposition is used for tests with any kernel. With
        strata, groups are compared within strata: shares and mean ranks are those of groups with the same distribution
        of voters over strata.

        Parameters
        ----------
        confidence_level : float
            The confidence level of the interval of each share and mean rank.

        Examples
        --------
        >>> from rankernel import Rankings, mmd_test
        >>> X = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[5, 1])
        >>> Y = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[1, 5])
        >>> first = mmd_test(X, Y).differences().pairs[0]
        >>> first.first, first.second, [round(share, 2) for share in first.shares], first.majorities_differ
        ('a', 'b', [0.83, 0.17], True)
        """
        from rankernel.stats.differences import GroupFeatures, compare_groups

        groups = GroupFeatures(self._voters, self._biased, self._dispersion_factor, self._judges)
        return compare_groups(groups, confidence_level)

    @property
    def _dispersion_factor(self) -> float:
        """The statistic over the dispersion between the groups."""
        return 1.0


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


@dataclass(frozen=True, eq=False, kw_only=True)
class KSampleResult(GroupTestResult):
    """Result of :func:`k_sample_test`.

    Attributes
    ----------
    statistic : float
        The dispersion between the groups.
    rankings : Rankings or Preferences
        The distinct rankings, with their numbers of voters.
    """

    _n_permutations: int = field(repr=False)
    _seed: int = field(repr=False)

    def pairwise(
        self, *, correction: Correction = "holm", alpha: float = 0.05, n_permutations: int | None = None
    ) -> PairwiseResult:
        """Return two-sample tests of all pairs of groups, adjusted for multiple comparisons.

        Parameters
        ----------
        correction : {"holm", "benjamini-hochberg"}
            Holm controls the family-wise error rate, Benjamini and Hochberg the false discovery rate.
        alpha : float
            The significance level.
        n_permutations : int, optional
            The number of permutations for each pair; as in the test of all groups by default.

        Notes
        -----
        The Gram matrix of the test is used again. With many pairs no permutation p-value of few permutations survives
        the correction: 999 permutations of 1,770 pairs give nothing below 1.77. If the smallest adjusted permutation
        p-value is not well below ``alpha``, p-values from moments are adjusted instead, and ``adjusted_from`` says so.

        Examples
        --------
        >>> from rankernel import datasets, k_sample_test
        >>> election = datasets.load_example()
        >>> pairs = k_sample_test(election.rankings, election.groups).pairwise()
        >>> len(pairs.groups), len(pairs), int(pairs.rejected.sum())
        (3, 3, 3)
        """
        from rankernel.stats.pairwise import compare_pairs

        return compare_pairs(self, correction, alpha, n_permutations)


# ---------------------------------------------------------------------- tests


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
    (``n_moment_draws``). If the kernel value of almost all pairs of voters is near 0, the approximation can be very
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
      p-value    0.01 (999 permutations), 0.0092 (moments)
      effect     0.35 of the dispersion of the voters lies between the groups, 95% interval 0.0906 to 0.619
      kernel     Mallows(nu=0.6931471805599453)
      method     unbiased squared MMD, 999 permutations of the voters, kernel values: exact
    """
    n_permutations, seed = check_integer("n_permutations", n_permutations), as_seed(rng)
    rows = two_samples(X, Y, strata, biased)
    voters = rows.voters(kernel, method, n_jobs, precomputed)
    return mmd_result(voters, voters.squared_mmd(biased, seed), n_permutations)


def mmd_result(voters: GroupedVoters, statistic: PairStatistic, n_permutations: int, *, warn: bool = True) -> MMDResult:
    """Return the result of the test of two groups."""
    voters.check_exchangeable()
    name = f"{'biased' if statistic.biased else 'unbiased'} squared MMD"
    null, effect = statistic.null_distribution(n_permutations), GroupEffect(voters)
    fields = evaluate(statistic, effect, null, voters.sample, name, voters.scheme, warn=warn)
    first, second = voters.table.sum(axis=0) / voters.sizes[:, None]
    witness = np.asarray(voters.gram @ (first - second))
    return MMDResult(**fields, witness=witness, _voters=voters, _biased=statistic.biased)


@np.errstate(under="ignore")
def k_sample_test(
    X: Any,
    groups: Any,
    kernel: Kernel | str | None = None,
    *,
    n_permutations: int = 999,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    strata: Any = None,
    precomputed: Any = None,
    n_jobs: int | None = None,
) -> KSampleResult:
    r"""Test whether several groups of rankings have the same distribution, by the dispersion of their mean embeddings.

    The biased statistic is :math:`\sum_g n_g \|\mu_g - \mu\|^2`, with :math:`\mu_g` the mean embedding of the
    :math:`n_g` voters of a group and :math:`\mu` that of all N. The unbiased one leaves out the pairs of each voter
    with itself: :math:`\frac{N-1}{N} \sum_g \frac{1}{n_g - 1} S_g - \frac{1}{N} S`, with S the sum of the kernel over
    ordered pairs of different voters, of a group or of all. For two groups it is :math:`n_1 n_2 / N` times the squared
    discrepancy of :func:`mmd_test`. The null distribution is that of voters permuted between groups.

    Parameters
    ----------
    X : Rankings, Preferences, Comparisons or integer array
        The rankings of all groups. Of :class:`Comparisons`, each one counts as a voter.
    groups : array of shape (n_rankings,)
        The group of each row: labels of any type; for comparisons also the name of a label.
    strata : array of shape (n_rankings,), optional
        A label for each row: voters are permuted within strata only. The test looks for one shift of the mean ranking
        that all strata have in common; for search queries with different documents see :func:`compare_systems`. The
        default strata of comparisons are the pairs of compared items, because which items a group compared is not a
        preference. Comparisons of one judge are dependent: if the groups divide the judges, a warning says so, and
        rankings of the judges should be tested.
    precomputed : array of shape (n_rankings, n_rankings), optional
        The Gram matrix of X.
    kernel, n_permutations, rng, biased, method, n_jobs
        As in :func:`mmd_test`.

    Returns
    -------
    KSampleResult
        ``statistic``, ``pvalue``, ``moment_pvalue``, ``null_distribution``, ``effect``, ``effect_interval``,
        ``groups``, ...; ``pairwise()`` tests all pairs of groups, ``differences()`` compares groups by items and pairs
        of items.

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders(
    ...     [["a", "b", "c"], ["a", "c", "b"], ["a", "b", "c"], ["c", "b", "a"], ["c", "b", "a"], ["c", "a", "b"]],
    ...     counts=[6, 4, 10, 1, 9, 3],
    ... )
    >>> result = k_sample_test(ballots, ["north", "north", "east", "east", "south", "south"])
    >>> result.pvalue
    0.001
    >>> print(result.pairwise())
    PairwiseResult: 3 of 3 pairs of groups differ at 0.05 (Holm, permutations)
      north and south  adjusted p = 0.003, effect 0.49
      east and south   adjusted p = 0.003, effect 0.6
      east and north   adjusted p = 0.048, effect 0.1
    """
    n_permutations, seed = check_integer("n_permutations", n_permutations), as_seed(rng)
    if isinstance(X, Comparisons):
        groups = np.array(X.groups(groups)[0])[X.groups(groups)[1]] if isinstance(groups, str) else groups
        if X.judges:
            check_judges_are_mixed(X.judge, X.groups(groups)[1])
        X, strata = X.to_rankings(), X.match_ups if strata is None else strata
    data, least = as_data(X), 1 if check_flag("biased", biased) else 2
    codes, names = check_groups(groups, len(data))
    rows = GroupedRows(data, names, codes, stratum_codes(strata, len(data)))
    voters = rows.voters(kernel, method, n_jobs, precomputed)
    small = np.flatnonzero(voters.sizes < least)
    if len(small):
        raise RankingError(
            f"group {printable(names[small[0]])!r} has {int(voters.sizes[small[0]])} voter(s); this statistic needs at "
            f"least {least}: leave out the group, or merge it with another"
        )
    voters.check_exchangeable()
    name = f"{'biased' if biased else 'unbiased'} dispersion between {len(names)} groups"
    statistic, effect = voters.statistic(biased, seed), GroupEffect(voters)
    fields = evaluate(
        statistic, effect, statistic.null_distribution(n_permutations), voters.sample, name, voters.scheme
    )
    return KSampleResult(**fields, _voters=voters, _biased=biased, _n_permutations=n_permutations, _seed=seed)


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows of data with their groups and strata, before their kernel values are planned."""

    data: Data
    names: tuple[str, ...]  # of the groups
    groups: IntArray
    strata: IntArray

    def voters(self, kernel: Any, method: MethodLike, n_jobs: int | None, precomputed: Any = None) -> GroupedVoters:
        """Return the voters by group, with a kernel or a given Gram matrix between their rankings."""
        if precomputed is None:
            sample = Sample.planned(self.data, kernel, method, n_jobs, "a test of groups")
        else:
            sample = Sample.from_gram(self.data, precomputed, kernel)
        return GroupedVoters.count(sample, self.names, self.groups, self.strata, self.data.counts)


def two_samples(X: Any, Y: Any, strata: Any, biased: bool) -> GroupedRows:
    """Return the rows of two samples after checking them."""
    if isinstance(Y, CompletionModel) or callable(Y):
        raise TypeError("Y is a model, not a sample of rankings; use goodness_of_fit_test(X, model)")
    if isinstance(X, Comparisons) and isinstance(Y, Comparisons):
        if X.items != Y.items:
            raise RankingError("X and Y have different items; build both with the same ", Argument("items", ...))
        strata = (X.match_ups, Y.match_ups) if strata is None else strata
        if X.judges and Y.judges:
            names = {name: number for number, name in enumerate(dict.fromkeys((*X.judges, *Y.judges)))}
            judge = [np.array([names[name] for name in each.judges])[each.judge] for each in (X, Y)]
            check_judges_are_mixed(np.concatenate(judge), np.repeat([0, 1], [len(X), len(Y)]))
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
    return GroupedRows(both, NAMES, np.repeat([0, 1], sizes), stratum_codes(strata, len(both)))


def check_groups(groups: Any, n_rows: int) -> tuple[IntArray, tuple[str, ...]]:
    """Return the number of the group of each row, and the names of the groups."""
    labels = check_labels("groups", groups, n_rows)
    for row, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise RankingError(f"the group of row {row} is missing; leave out rows without one")
    names, codes = group_codes(labels)
    if len(names) < 2:
        problem = f"all rows are of the group {names[0]!r}" if names else "there are no rankings"
        raise RankingError(f"{problem}; groups must name at least two groups")
    return codes, names
