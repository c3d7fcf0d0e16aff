r"""Groups of voters: the dispersion between groups as a test statistic and as an effect size.

With equal weights for k groups, voters scatter around the mean embedding of all by :math:`V = B + W`: between groups
:math:`B = \frac{1}{k^2} \sum_{g < h} \|\mu_g - \mu_h\|^2`, and within groups the mean W of
:math:`W_g = E\|\phi(R) - \mu_g\|^2`. The effect :math:`B / V` is 0 if the groups have the same mean embedding and 1 if
all voters of a group agree and groups differ. It depends neither on group sizes nor on the scale of the kernel.

Within strata, B and W are means over strata weighted by their numbers of voters. A stratum contributes with those of
its groups that have at least two voters there, if there are two such groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankernel._utils import FloatArray, Indices, IntArray, RankArray
from rankernel._utils.resources import check_voters, run_interruptibly
from rankernel.gram.evaluator import slices
from rankernel.stats._permutations import (
    BLOCK_ROWS,
    PAIR_COST,
    RELATIVE_TOLERANCE,
    VOTER_BYTES,
    ZERO_MOMENTS,
    CentredKernel,
    Moments,
    PermutationStatistic,
    RandomDivisions,
    Shuffles,
    arrangement_probability,
    check_exchangeable,
    count_by_group,
    multilevel_splitting,
    named_generator,
    off_diagonal_forms,
    pair_sums,
    permutation_moments,
    random_state,
    sort_by_label,
    sum_by_group,
)
from rankernel.stats.base import (
    PRIOR_VOTERS,
    Effect,
    InfluenceSample,
    Interval,
    KernelTestResult,
    Sample,
    diagonal_scale,
)

if TYPE_CHECKING:
    from rankernel.stats.differences import Differences, GroupFeatures


MAX_BALANCE = 1.5  # ratio of the sizes of two groups
MAX_SPLIT_VOTERS = 5000  # splitting holds 1,000 divisions of them


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
        return {name: value for name, value in self.__dict__.items() if name not in ("centred", "strata")}

    def release(self) -> None:
        """Free the Gram matrix, which is computed again on the next access."""
        self.sample.release()
        for name in ("centred", "strata"):
            self.__dict__.pop(name, None)

    @property
    def gram(self) -> FloatArray:
        """The Gram matrix of the distinct rankings."""
        return self.sample.gram

    @cached_property
    def centred(self) -> CentredKernel:
        """The centred kernel between different voters."""
        return CentredKernel.from_gram(self.gram, self.counts, biased=False)

    @cached_property
    def by_group(self) -> FloatArray:
        """The number of voters of each group and row."""
        return np.asarray(self.table.sum(axis=0), dtype=np.float64)

    @cached_property
    def sizes(self) -> FloatArray:
        """The number of voters of each group."""
        return np.asarray(self.by_group.sum(axis=1))

    @property
    def counts(self) -> FloatArray:
        """The number of voters of each row."""
        return np.asarray(self.by_group.sum(axis=0))

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
                centred = self.centred
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

    def group_kernel(self, biased: bool) -> CentredKernel:
        """Return the kernel between groups whose sum of products with that of the voters is the dispersion."""
        return CentredKernel.from_gram(np.diag(self.pair_weights(biased)), self.sizes, biased)

    def dispersion(self, biased: bool) -> float:
        """Return the dispersion between the groups: see :func:`k_sample_test`."""
        sums = self.by_group @ self.gram @ self.by_group.T
        self_pairs = 0.0 if biased else self.by_group @ np.diagonal(self.gram)
        total = float(sums.sum() - np.sum(self_pairs))
        return float(self.pair_weights(biased) @ (np.diagonal(sums) - self_pairs)) - total / float(self.sizes.sum())

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


# ---------------------------------------------------------------------- the test statistic


class GroupStatistic(PermutationStatistic):
    """The dispersion between groups times ``factor``, with voters permuted between groups within strata.

    Divisions into two groups are drawn by the numbers of voters of each row, those into more groups by shuffles.
    """

    def __init__(self, voters: GroupedVoters, biased: bool, seed: int, factor: float = 1.0) -> None:
        self.voters, self.biased, self.seed, self.factor = voters, biased, seed, factor
        self.gram, self.counts, self.n_voters = voters.gram, voters.counts, float(voters.sizes.sum())
        self.diagonal = np.diagonal(self.gram).copy()
        self.row_sums, absolute = off_diagonal_sums(self.gram, self.counts)
        self.total = float(self.counts @ self.row_sums)
        equal_pairs = self.counts * (self.counts - (not biased))
        self.tolerance = RELATIVE_TOLERANCE * factor * (absolute + float(equal_pairs @ np.abs(self.diagonal)))
        self.tolerance /= self.n_voters
        self.shared_rows = np.flatnonzero(self.counts > 1)
        if len(voters.names) == 2:
            self.divisions = RandomDivisions(voters.table, seed)
            self.value = float(self.of_first_group(voters.by_group[:1])[0])
            return
        check_exchangeable(voters.table)
        check_voters(int(self.n_voters), VOTER_BYTES, "a test of several groups")
        strata, groups, rows = np.nonzero(voters.table)
        counts = voters.table[strata, groups, rows]
        self.groups = np.repeat(groups, counts)
        self.shuffles = Shuffles(np.repeat(rows, counts), np.repeat(strata, counts), seed, self.groups)
        self.constant = (self.total + float(equal_pairs @ self.diagonal)) / self.n_voters
        self.value = float(self.of_tables(voters.by_group[None])[0])

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for the next permutations; several groups by the way that takes fewer operations."""
        if len(self.voters.names) == 2:
            return np.concatenate([self.of_first_group(counts) for counts in self.divisions.draw(n_permutations)])
        n_rows, n_groups, sizes = len(self.gram), len(self.voters.names), self.voters.sizes
        by_table = n_rows**2 * n_groups < PAIR_COST * float(sizes @ sizes)
        evaluate, n_entries = (self.by_table, n_rows * n_groups) if by_table else (self.by_pair, n_groups)
        chunks = self.shuffles.draw(n_permutations, n_entries)
        return np.concatenate([run_interruptibly(evaluate, rows) for rows in chunks])

    def of_first_group(self, first: FloatArray) -> FloatArray:
        """Return the statistic of two groups for each row of numbers of voters of the first group."""
        m, n = (int(size) for size in self.voters.sizes)
        within, with_all = off_diagonal_forms(self.gram, first), first @ self.row_sums
        XX, YY, XY = within, self.total - 2 * with_all + within, with_all - within
        if len(self.shared_rows):  # pairs of different voters with the same ranking
            x, diagonal = first[:, self.shared_rows], self.diagonal[self.shared_rows]
            y = self.counts[self.shared_rows] - x
            XX, YY, XY = XX + (x * (x - 1)) @ diagonal, YY + (y * (y - 1)) @ diagonal, XY + (x * y) @ diagonal
        if self.biased:
            self_pairs = first @ self.diagonal
            XX, YY = XX + self_pairs, YY + self.counts @ self.diagonal - self_pairs
        less = 0 if self.biased else 1
        squared_mmd = XX / (m * (m - less)) + YY / (n * (n - less)) - 2 * XY / (m * n)
        return np.asarray(self.factor * m * n / self.n_voters * squared_mmd)

    def of_tables(self, tables: FloatArray) -> FloatArray:
        """Return the statistic for tables of numbers of voters by group and row."""
        sums = pair_sums(self.gram, tables.reshape(-1, tables.shape[2]), self.biased)
        return self.of_sums(sums.reshape(tables.shape[:2]))

    def of_sums(self, sums: FloatArray) -> FloatArray:
        """Return the statistic from sums over the pairs of voters of each group."""
        return np.asarray(self.factor * (sums @ self.voters.pair_weights(self.biased) - self.constant))

    def by_table(self, rows: RankArray) -> FloatArray:
        """Return the statistic for permutations of the rows of voters, by matrix products."""
        counts = np.zeros((len(rows), len(self.voters.names), len(self.gram)))
        count_by_group(rows, self.groups, counts)
        return self.of_tables(counts)

    def by_pair(self, rows: RankArray) -> FloatArray:
        """Return the statistic for permutations of the rows of voters, by sums over pairs of voters."""
        sums = np.empty((len(rows), len(self.voters.names)))
        sum_by_group(self.gram, rows, *sort_by_label(self.groups), float(self.biased), sums)
        return self.of_sums(sums)

    def moments(self) -> Moments | None:
        """Return the exact moments over all permutations; None with strata."""
        if self.voters.is_stratified():
            return None
        voters, biased = self.voters, self.biased
        kernel = CentredKernel.from_gram(voters.gram, voters.counts, True) if biased else voters.centred
        return permutation_moments(kernel, voters.group_kernel(biased)).scaled(self.factor)

    def min_pvalue(self) -> float:
        """Return the probability of the observed groups, where groups of equal size may exchange names."""
        from scipy.special import gammaln

        table = self.voters.table
        strata, groups, rows = np.nonzero(table)
        by_group = table.transpose(1, 0, 2)
        # np.unique(axis=0) takes minutes for rows of millions of columns.
        n_same_sizes, n_same_rows = (
            np.array(list(Counter(group.tobytes() for group in groups_of).values()))
            for groups_of in (by_group.sum(axis=2), by_group)
        )
        renamings = float(np.exp(gammaln(n_same_sizes + 1).sum() - gammaln(n_same_rows + 1).sum()))
        return renamings * arrangement_probability(strata, groups, rows, table[strata, groups, rows])

    def splitting_pvalue(self) -> float:
        """Return the p-value of two groups by multilevel splitting; 0 with strata, more groups or very many voters.

        Groups of similar sizes need none: there the Pearson type III approximation is accurate or conservative.
        """
        is_balanced = self.voters.sizes.max() < MAX_BALANCE * self.voters.sizes.min()
        if (
            len(self.voters.names) != 2
            or is_balanced
            or self.voters.is_stratified()
            or self.n_voters > MAX_SPLIT_VOTERS
        ):
            return 0.0
        smaller = int(np.argmin(self.voters.sizes))
        m, n = self.voters.sizes[[smaller, 1 - smaller]].tolist()
        mm, nn = m * (m - (not self.biased)), n * (n - (not self.biased))
        # With A the sum over pairs of a voter of the smaller group and any other, the sums XY and YY are A - XX and
        # a constant - 2 A + XX, so the squared discrepancy is linear in XX and in a sum over the voters of the group.
        scale = self.factor * m * n / self.n_voters
        equal = (self.counts - 1) * self.diagonal
        weights = -2 * (1 / nn + 1 / (m * n)) * (self.row_sums + equal)
        if self.biased:
            weights += (1 / mm - 1 / nn) * self.diagonal
        pair_weight = scale * (1 / mm + 1 / nn + 2 / (m * n))
        first = self.voters.by_group[smaller]
        pairs = float(pair_sums(self.gram, first[None], biased=False)[0])
        target = pair_weight * pairs + scale * float(first @ weights) - self.tolerance
        rows = np.repeat(np.arange(len(self.gram), dtype=np.int32), self.counts.astype(np.int64))
        state = random_state(named_generator(self.seed, "splitting", self.voters.table))
        arguments = self.gram, rows, int(m), pair_weight, scale * weights, target, state
        return float(run_interruptibly(multilevel_splitting, *arguments))

    def effect(self) -> GroupEffect:
        """Return the share of the dispersion between groups."""
        return GroupEffect(self.voters)

    def standard_errors(self) -> tuple[float, float]:
        """Return the Monte Carlo standard errors of statistic and effect."""
        voters = self.voters
        if not voters.sample.is_estimated:
            return 0.0, 0.0
        weights = self.factor * voters.group_kernel(self.biased).matrix()
        return voters.sample.standard_error(voters.by_group, weights, self.biased), GroupEffect(voters).mcse()


def squared_mmd(voters: GroupedVoters, biased: bool, seed: int) -> GroupStatistic:
    """Return the squared maximum mean discrepancy of two groups as a test statistic."""
    return GroupStatistic(voters, biased, seed, voters.mmd_factor)


def off_diagonal_sums(gram: FloatArray, counts: FloatArray) -> tuple[FloatArray, float]:
    """Return the sum of each row over the voters of other rows, and the sum of the absolute values of all entries."""
    sums, absolute = np.empty(len(gram)), 0.0
    for rows in slices(len(gram), BLOCK_ROWS):
        block = gram[rows].copy()
        np.fill_diagonal(block[:, rows], 0.0)
        sums[rows] = block @ counts
        absolute += float(counts[rows] @ np.abs(block, out=block) @ counts)
    return sums, absolute


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

    def null_moments(self, skewness: float) -> Moments:
        """Return the moments of B under permutations of voters; ``skewness`` is used if it is not known exactly."""
        moments = permutation_moments(self.centred, CentredKernel.from_gram(self.pair_weights, self.sizes, False))
        return Moments(0.0, moments.variance, skewness if np.isnan(moments.skewness) else moments.skewness)

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
        return sum((stratum.null_moments(null.skewness) for stratum in self.strata), ZERO_MOMENTS)

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

    def mcse(self) -> float:
        """Return the Monte Carlo standard error."""
        if not self.strata:
            return float("nan")
        squares = 0.0  # strata have errors of different rankings, or of the same ones with other weights
        for stratum in self.strata:
            table = np.zeros((len(stratum.table), len(self.voters.gram)))
            table[:, stratum.rows] = stratum.table
            squares += self.voters.sample.standard_error(table, stratum.pair_weights, biased=False) ** 2
        return self.standard_error(squares**0.5)


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
        from rankernel.stats.differences import compare_groups

        return compare_groups(self._features(), confidence_level)

    def _features(self) -> GroupFeatures:
        """Return the groups, to be compared feature by feature."""
        from rankernel.stats.differences import GroupFeatures

        return GroupFeatures(self._voters, self._biased, self._dispersion_factor)

    @property
    def _dispersion_factor(self) -> float:
        """The statistic over the dispersion between the groups."""
        return 1.0
