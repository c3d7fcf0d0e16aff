r"""What groups are compared by, feature by feature: means with their errors, and how the statistic splits.

A feature is a number that each ballot has: the mean sign of a pair of items, the mean place of an item. The Kendall
kernel of two rankings is the mean over pairs of items of the product of two signs, so that each pair is a kernel of its
own, and a statistic with the Kendall kernel is the mean over pairs of the same statistic with one sign.

Within strata, the mean of a group is that of its means in the strata, weighed by all voters of each stratum, those of
the other groups, too: groups are compared as if each had the same part of its voters in every stratum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel.data import Data
from rankernel.errors import RankingError
from rankernel.gram.blocks import slices
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.rows import as_rows
from rankernel.stats._effects import dispersions, strata_that_count, usable_groups
from rankernel.stats._groups import GroupedVoters
from rankernel.stats._voters import voter_gram

if TYPE_CHECKING:
    from rankernel.stats.paired import JudgePairs

BLOCK = 2**22  # numbers in memory at once


@dataclass(frozen=True, eq=False)
class Features:
    """Numbers that each ballot has: the signs of all pairs of items, or the places of all items."""

    data: Data
    kind: Literal["pairs", "ranks"]

    @property
    def number(self) -> int:
        """How many features there are."""
        n = self.data.n_items
        return n * (n - 1) // 2 if self.kind == "pairs" else n

    def of(self, rows: Indices) -> FloatArray:
        """Return the features of some ballots."""
        found = mean_statistics(as_rows(self.data[rows]), self.kind)
        return found + (self.data.n_items + 1) / 2 if self.kind == "ranks" else found

    def parts(self, length: int) -> Iterator[slice]:
        """Return slices of ballots whose features fit into memory."""
        return slices(length, max(BLOCK // max(self.number, 1), 1))


@dataclass(frozen=True, eq=False)
class FeatureMeans:
    """The mean of features in each group, and the statistic with a kernel that is the product of one feature.

    Attributes
    ----------
    means : array of shape (n_groups, n_features)
        The means.
    variances : array of shape (n_groups, n_features)
        The squared standard errors of the means.
    sizes : array of shape (n_groups, 1)
        The voters of each group; within strata, as many as would have as small an error without.
    statistics : array of shape (n_features,)
        The statistic with each feature.
    change : array of shape (n_features,) or None
        The squared standard error of the second mean less the first, where that is not the sum of both.
    """

    means: FloatArray
    variances: FloatArray
    sizes: FloatArray
    statistics: FloatArray
    change: FloatArray | None = None

    def halved(self) -> FeatureMeans:
        """Return shares instead of mean signs."""
        change = None if self.change is None else self.change / 4
        return replace(self, means=(1 + self.means) / 2, variances=self.variances / 4, change=change)

    def of(self, features: Indices) -> FeatureMeans:
        """Return what is known of some features."""
        change = None if self.change is None else self.change[features]
        parts = self.means[:, features], self.variances[:, features], self.sizes, self.statistics[features], change
        return FeatureMeans(*parts)


class Split(ABC):
    """Groups, compared feature by feature."""

    groups: GroupedVoters

    @abstractmethod
    def by_feature(self, features: Features) -> FeatureMeans:
        """Return the means of features of the ballots, and the statistic with each."""

    @abstractmethod
    def statistic(self) -> float:
        """Return the statistic with the kernel of the test."""

    @abstractmethod
    def without(self, item: int) -> Split:
        """Return the same groups, their ballots without one of the items."""


@dataclass(frozen=True, eq=False)
class GroupSplit(Split):
    """Groups of different voters; the statistic is ``per_dispersion`` times the dispersion between them."""

    groups: GroupedVoters
    biased: bool
    per_dispersion: float

    def by_feature(self, features: Features) -> FeatureMeans:
        """Return the means in each group, of equal strata, and the statistic with each feature."""
        table = self.groups.table
        sums, squares = (np.zeros((*table.shape[:2], features.number)) for _ in range(2))
        for part in features.parts(table.shape[2]):
            values = features.of(np.arange(part.start, part.stop))
            sums += table[:, :, part] @ values
            squares += table[:, :, part] @ values**2
        sizes, shared, weights = strata_of_all(self.groups)
        n = sizes[..., None]
        means = sums[shared] / n
        spread = np.maximum(squares[shared] / n - means**2, 0.0)
        parts = (weights**2)[:, None] / sizes
        return FeatureMeans(
            np.einsum("s,sgf->gf", weights, means),
            np.einsum("sg,sgf->gf", parts, spread),
            1 / parts.sum(axis=0)[:, None],
            self.within_strata(sums, squares) if self.stratified else self.between(sums[0], squares[0]),
        )

    def between(self, sums: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the statistic with each feature, from its sums over the voters of groups and those of its squares."""
        own = 0.0 if self.biased else 1.0
        total = sums.sum(axis=0) ** 2 - own * squares.sum(axis=0)
        found = self.groups.alike(self.biased) @ (sums**2 - own * squares) - total / self.groups.sizes.sum()
        return np.asarray(self.per_dispersion * found)

    def within_strata(self, sums: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the mean over strata of the squared discrepancy, or of the dispersion, with each feature."""
        found = np.zeros(sums.shape[2])
        usable = usable_groups(self.groups)
        for number, each in strata_that_count(self.groups).items():
            n, own, own_squares = each.sizes[:, None], sums[number, usable[number]], squares[number, usable[number]]
            means, alike = own / n, (own**2 - own_squares) / (n * (n - 1))
            found += np.einsum("gf,gh,hf->f", means, each.contrast, means)
            found += np.diagonal(each.contrast) @ (alike - means**2)
        return found * self.per_share

    def statistic(self) -> float:
        """Return the statistic with the kernel of the test."""
        if self.stratified:
            return dispersions(strata_that_count(self.groups).values())[0] * self.per_share
        return self.per_dispersion * self.groups.dispersion(self.biased)

    def without(self, item: int) -> Split:
        """Return the same groups without one of the items."""
        return replace(self, groups=self.groups.without(item))

    @property
    def stratified(self) -> bool:
        """Whether there are strata."""
        return len(self.groups.table) > 1

    @property
    def per_share(self) -> float:
        """By what the dispersion of an effect is multiplied: to a discrepancy of two groups, or to all voters."""
        return 4.0 if len(self.groups.names) == 2 else float(self.groups.sizes.sum())


def strata_of_all(voters: GroupedVoters) -> tuple[FloatArray, Indices, FloatArray]:
    """Return the sizes of the groups in those strata in which all have voters, which these are, and their shares."""
    sizes = voters.table.sum(axis=2).astype(np.float64)
    shared = (sizes > 0).all(axis=1)
    if not shared.any():
        raise RankingError(
            "no stratum has voters of all groups, so that these cannot be compared at equal strata; compare two that "
            "share one: result.pairwise().pair(first, second).differences()"
        )
    voters_of = sizes[shared].sum(axis=1)
    return sizes[shared], np.flatnonzero(shared), voters_of / voters_of.sum()


@dataclass(frozen=True, eq=False)
class JudgeSplit(Split):
    """The same judges before and after."""

    groups: GroupedVoters
    pairs: JudgePairs

    def by_feature(self, features: Features) -> FeatureMeans:
        """Return the means before and after, and the statistic with each feature, from the changes of the judges."""
        found, pairs = GroupSplit(self.groups, False, 1.0).by_feature(features), self.pairs
        sums, squares = np.zeros(features.number), np.zeros(features.number)
        for part in features.parts(len(pairs.times)):
            changes = features.of(pairs.after[part]) - features.of(pairs.before[part])
            sums += pairs.times[part] @ changes
            squares += pairs.times[part] @ changes**2
        n, own = pairs.n_judges, 0.0 if pairs.biased else 1.0
        spread = np.maximum(squares / n - (sums / n) ** 2, 0.0)
        return replace(found, statistics=(sums**2 - own * squares) / pairs.divisor, change=spread / max(n - 1, 1))

    def statistic(self) -> float:
        """Return the statistic with the kernel of the test."""
        return self.pairs.statistic

    def without(self, item: int) -> Split:
        """Return the same judges without one of the items."""
        rest = self.groups.without(item)
        assert rest.plan is not None
        rows = np.arange(len(self.groups.data)) if rest.plan._rows is None else rest.plan._rows
        return JudgeSplit(rest, self.pairs.on(voter_gram(rest.plan, rest.n_jobs), rows))
