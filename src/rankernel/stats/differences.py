r"""In which items and pairs of items groups differ.

The Kendall kernel of two rankings is the mean over pairs of items of the product of two signs. So each pair of items is
a kernel, and the statistic with the Kendall kernel is the mean over pairs of the statistic with one sign: it decomposes
exactly into contributions of pairs, also the unbiased one. Half of the contribution of a pair belongs to each item.

Within strata, the mean of a group is the mean over strata, weighted by the voters of all groups in each stratum: groups
are compared as if they had the same distribution of voters over strata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from rankernel._utils import FloatArray, Indices
from rankernel._utils.checks import check_choice, check_number, printable
from rankernel._utils.notebook import box, table
from rankernel._utils.resources import check_bytes
from rankernel.data import Data
from rankernel.errors import RankingError
from rankernel.gram.evaluator import slices
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.rows import as_rows
from rankernel.kernels.kendall import Kendall
from rankernel.stats._effects import Interval
from rankernel.stats._groups import GroupedVoters, GroupEffect
from rankernel.stats._permutations import CHUNK_ENTRIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankernel.stats.paired import Judges

Contributions = Literal["auto", "pairs"]
MAX_PAIRS = 5000  # pairs of items in a result: all pairs of a hundred items
MAX_PRINTED = 5  # lines of a printed table
MAX_COLUMNS = 5  # groups in columns; of more groups the two extremes are shown


@dataclass(frozen=True)
class ItemDifference:
    """The mean rank of one item in each group.

    Attributes
    ----------
    item : str
        The item.
    mean_ranks : tuple of float
        Its mean rank in each group, from 1; tied items share the mean of their ranks.
    intervals : tuple of pairs
        The confidence interval of each.
    contribution : float
        The contribution of the item to the difference between the groups: see ``contributions`` of
        :class:`Differences`.
    change_interval : pair of float or None
        The confidence interval of :attr:`change`; None for more than two groups.
    """

    item: str
    mean_ranks: tuple[float, ...]
    intervals: tuple[Interval, ...]
    contribution: float
    change_interval: Interval | None

    @property
    def change(self) -> float | None:
        """The mean rank in the second of two groups minus that in the first; None for more groups."""
        return self.mean_ranks[1] - self.mean_ranks[0] if len(self.mean_ranks) == 2 else None

    @property
    def rank_range(self) -> float:
        """The largest difference of mean ranks between two groups."""
        return max(self.mean_ranks) - min(self.mean_ranks)


@dataclass(frozen=True)
class PairDifference:
    """The pairwise preference between two items in each group.

    Attributes
    ----------
    first, second : str
        The items; the first group prefers the first item more often than the other groups do.
    shares : tuple of float
        The share of each group that prefers the first item; a tie counts one half.
    intervals : tuple of pairs
        The confidence interval of each (Wilson).
    contribution : float
        The contribution of the pair to the statistic with the Kendall kernel.
    change_interval : pair of float or None
        The confidence interval of :attr:`change` (Newcombe); None for more than two groups.
    """

    first: str
    second: str
    shares: tuple[float, ...]
    intervals: tuple[Interval, ...]
    contribution: float
    change_interval: Interval | None

    @property
    def change(self) -> float | None:
        """The share in the second of two groups minus that in the first; None for more groups."""
        return self.shares[1] - self.shares[0] if len(self.shares) == 2 else None

    @property
    def majorities_differ(self) -> bool:
        """Whether a majority prefers the first item in one group and the second item in another."""
        return min(self.shares) < 0.5 < max(self.shares)

    @property
    def reverses(self) -> bool:
        """Whether majorities of two groups differ and the intervals of both exclude 50 %."""
        return min(high for _, high in self.intervals) < 0.5 < max(low for low, _ in self.intervals)


@dataclass(frozen=True, eq=False)
class Differences:
    """In which items and pairs of items groups differ.

    Attributes
    ----------
    groups : tuple of str
        The groups.
    items : tuple of ItemDifference
        The items, sorted by contribution.
    pairs : tuple of PairDifference
        The pairs of items, sorted by contribution; at most the first 5,000.
    total : float
        The sum of the contributions of all pairs: the statistic with the Kendall kernel. Within strata, its mean over
        strata, weighted by their voters. For change points, the dispersion between the segments.
    items_total : float
        The total that contributions of items are compared with: ``total``, or the same with the kernel of the test.
    confidence_level : float
        The confidence level of each interval.
    contributions : str
        What the contribution of an item is.
    """

    groups: tuple[str, ...]
    items: tuple[ItemDifference, ...]
    pairs: tuple[PairDifference, ...]
    total: float
    items_total: float
    confidence_level: float
    contributions: str

    def plot(self, *, limit: int = 12, ax: Axes | None = None) -> Axes:
        """Draw the shares of each group for the first pairs, with their intervals."""
        from rankernel.plots import differences

        return differences(self, limit=limit, ax=ax)

    def tables(self) -> tuple[list[list[str]], list[list[str]]]:
        """Return tables of items and pairs as text, with headings; of many groups the two extremes."""
        many = len(self.groups) > MAX_COLUMNS
        rank_heads = ["best in", "worst in"] if many else [f"mean rank, {group}" for group in self.groups]
        items = [["item", *rank_heads, self.contributions]]
        for item in self.items:
            cells = self._cells(item.mean_ranks, item.intervals, rank_text)
            items.append([item.item, *cells, contribution_text(item.contribution, self.items_total)])
        share_heads = ["lowest in", "highest in"] if many else self.groups
        intervals = f"{self.confidence_level:.0%} intervals"
        pairs = [["prefer", *share_heads, f"part of the Kendall statistic ({intervals})"]]
        for pair in self.pairs:
            cells = self._cells(pair.shares, pair.intervals, share_text)
            contribution = contribution_text(pair.contribution, self.total) + ", reverses" * pair.reverses
            pairs.append([f"{pair.first} to {pair.second}", *cells, contribution])
        return items, pairs

    def _cells(
        self, means: Sequence[float], intervals: Sequence[Interval], text: Callable[[float, Interval], str]
    ) -> Iterator[str]:
        """Yield the means of all groups as text; of many groups the smallest and the largest, with their names."""
        if len(self.groups) <= MAX_COLUMNS:
            yield from map(text, means, intervals)
            return
        for group in (int(np.argmin(means)), int(np.argmax(means))):
            yield f"{self.groups[group]}: {text(means[group], intervals[group])}"

    def __str__(self) -> str:
        items, pairs = (aligned(rows[: MAX_PRINTED + 1]) for rows in self.tables())
        return "\n".join(["Differences", *items, *pairs])

    def _repr_html_(self) -> str:
        return box("Differences", "".join(table(rows, head) for head, *rows in self.tables()))


def rank_text(rank: float, interval: Interval) -> str:
    """Return a mean rank with its interval."""
    return f"{rank:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"


def share_text(share: float, interval: Interval) -> str:
    """Return a share with its interval, in percent."""
    return f"{share:.0%} ({interval[0]:.0%} to {interval[1]:.0%})"


def contribution_text(contribution: float, total: float) -> str:
    """Return a contribution in percent of a positive total, and otherwise the number."""
    return f"{contribution / total:.0%}" if total > 0 else f"{contribution:.2g}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines with aligned columns."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        "  " + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown
    ]


# ---------------------------------------------------------------------- features of groups


@dataclass(frozen=True, eq=False)
class Features:
    """Numbers that each ranking has: the mean signs of all pairs of items, or the mean ranks of all items."""

    data: Data
    kind: Literal["pairs", "ranks"]

    @property
    def number(self) -> int:
        """The number of features."""
        n = self.data.n_items
        return n * (n - 1) // 2 if self.kind == "pairs" else n

    def at(self, rows: Indices) -> FloatArray:
        """Return the features of rankings."""
        values = mean_statistics(as_rows(self.data[rows]), self.kind)
        return values + (self.data.n_items + 1) / 2 if self.kind == "ranks" else values

    def chunks(self, n_rows: int) -> Iterator[slice]:
        """Return slices of rankings whose features fit into memory."""
        return slices(n_rows, max(CHUNK_ENTRIES // max(self.number, 1), 1))


@dataclass(frozen=True, eq=False)
class FeatureMeans:
    """The mean of features in each group, and the statistic with the product of one feature as the kernel."""

    means: FloatArray  # of shape (n_groups, n_features)
    variances: FloatArray  # the squared standard errors of the means
    sizes: FloatArray  # voters, of shape (n_groups, 1); with strata, as many as would have the same errors without
    statistics: FloatArray  # the statistic with each feature
    change_variances: FloatArray | None = None  # of the second mean minus the first, if groups are not independent

    def shares(self, pairs: Indices) -> FeatureMeans:
        """Return shares instead of mean signs, for the given pairs."""
        change = None if self.change_variances is None else self.change_variances[pairs] / 4
        means, variances = (1 + self.means[:, pairs]) / 2, self.variances[:, pairs] / 4
        return FeatureMeans(means, variances, self.sizes, self.statistics[pairs], change)


@dataclass(frozen=True, eq=False)
class GroupFeatures:
    """Groups of different voters; the statistic is ``dispersion_factor`` times the dispersion between them."""

    voters: GroupedVoters
    biased: bool
    dispersion_factor: float

    def means(self, features: Features) -> FeatureMeans:
        """Return the mean of each feature in each group, and the statistic with each feature."""
        table = self.voters.table
        sums, squares = (np.zeros((*table.shape[:2], features.number)) for _ in range(2))
        for part in features.chunks(table.shape[2]):
            values = features.at(np.arange(part.start, part.stop))
            sums += table[:, :, part] @ values
            squares += table[:, :, part] @ values**2
        sizes, shared, weights = shared_strata(self.voters)
        n = sizes[..., None]
        means = sums[shared] / n
        variances = np.maximum(squares[shared] / n - means**2, 0.0)
        error_weights = (weights**2)[:, None] / sizes
        return FeatureMeans(
            np.einsum("s,sgf->gf", weights, means),
            np.einsum("sg,sgf->gf", error_weights, variances),
            1 / error_weights.sum(axis=0)[:, None],
            self._within_strata(sums, squares)
            if self.voters.is_stratified()
            else self._dispersion(sums[0], squares[0]),
        )

    def _dispersion(self, sums: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the statistic with each feature, from sums over the voters of groups."""
        self_pairs = np.zeros_like(squares) if self.biased else squares
        total = sums.sum(axis=0) ** 2 - self_pairs.sum(axis=0)
        values = self.voters.pair_weights(self.biased) @ (sums**2 - self_pairs) - total / self.voters.sizes.sum()
        return np.asarray(self.dispersion_factor * values)

    def _within_strata(self, sums: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the mean over strata of the statistic with each feature."""
        values = np.zeros(sums.shape[2])
        for stratum in self.voters.strata:
            n, contrast = stratum.sizes[:, None], stratum.contrast
            group_sums, group_squares = (array[stratum.number, stratum.groups] for array in (sums, squares))
            means, within = group_sums / n, (group_sums**2 - group_squares) / (n * (n - 1))
            values += np.einsum("gf,gh,hf->f", means, contrast, means)
            values += np.diagonal(contrast) @ (within - means**2)
        return values * self._stratum_factor

    @property
    def _stratum_factor(self) -> float:
        """The statistic within strata over the part B of the effect: a discrepancy of two groups, or a dispersion."""
        return 4.0 if len(self.voters.names) == 2 else float(self.voters.sizes.sum())

    def statistic(self) -> float:
        """Return the statistic with the kernel of the test."""
        if self.voters.is_stratified():
            return GroupEffect(self.voters).parts()[0] * self._stratum_factor
        return self.dispersion_factor * self.voters.dispersion(self.biased)

    def without_item(self, item: int) -> GroupFeatures:
        """Return the same groups with one item removed from all rankings."""
        return replace(self, voters=self.voters.without_item(item))


@dataclass(frozen=True, eq=False)
class JudgeFeatures(GroupFeatures):
    """The same judges before and after."""

    judges: Judges

    def means(self, features: Features) -> FeatureMeans:
        """Return the means before and after, and the statistic with each feature from the changes of the judges."""
        before_after = GroupFeatures(self.voters, False, 1.0).means(features)
        judges, sums, squares = self.judges, np.zeros(features.number), np.zeros(features.number)
        for part in features.chunks(len(judges.counts)):
            changes = features.at(judges.after[part]) - features.at(judges.before[part])
            sums += judges.counts[part] @ changes
            squares += judges.counts[part] @ changes**2
        n = judges.n_judges
        statistics = (sums**2 - (0.0 if self.biased else squares)) / judges.n_pairs
        variances = np.maximum(squares / n - (sums / n) ** 2, 0.0) / max(n - 1, 1)
        return replace(before_after, statistics=statistics, change_variances=variances)

    def statistic(self) -> float:
        """Return the statistic with the kernel of the test."""
        return self.judges.statistic

    def without_item(self, item: int) -> JudgeFeatures:
        """Return the same judges with one item removed from all rankings."""
        voters = self.voters.without_item(item)
        judges = self.judges.with_gram(voters.gram, voters.sample.index)
        return JudgeFeatures(voters, self.biased, self.dispersion_factor, judges)


def shared_strata(voters: GroupedVoters) -> tuple[FloatArray, Indices, FloatArray]:
    """Return the sizes of groups in the strata that have voters of all groups, these strata, and their weights."""
    sizes = voters.table.sum(axis=2).astype(np.float64)
    shared = (sizes > 0).all(axis=1)
    if not shared.any():
        raise RankingError(
            "no stratum has voters of all groups, so groups cannot be compared at equal strata; compare two groups "
            "that share a stratum: result.pairwise().pair(first, second).differences()"
        )
    stratum_sizes = sizes[shared].sum(axis=1)
    return sizes[shared], np.flatnonzero(shared), stratum_sizes / stratum_sizes.sum()


# ---------------------------------------------------------------------- the comparison


def compare_groups(groups: GroupFeatures, confidence_level: float, contributions: Contributions) -> Differences:
    """Return in which items and pairs of items groups differ."""
    confidence_level = check_number("confidence_level", confidence_level, 0, 1)
    check_choice("contributions", contributions, get_args(Contributions))
    sample, names = groups.voters.sample, groups.voters.names
    n_items = sample.data.n_items
    if n_items < 2:
        raise RankingError("there is only one item, and groups are compared by pairs of items; give at least two items")
    check_item_pairs(n_items, len(names))
    z = normal_quantile(confidence_level)
    signs, ranks = (groups.means(Features(sample.data, kind)) for kind in ("pairs", "ranks"))
    of_pairs = signs.statistics / len(signs.statistics)
    total = float(of_pairs.sum())
    removal = None
    if contributions == "auto" and sample.plan is not None and sample.kernel != Kendall():
        removal = removal_contributions(groups)
    if removal is None:
        a, b = np.triu_indices(n_items, 1)
        of_items = (np.bincount(a, of_pairs, n_items) + np.bincount(b, of_pairs, n_items)) / 2
        items_total, text = total, "half of the contributions of its pairs"
    else:
        of_items, items_total, text = removal, groups.statistic(), "decrease of the statistic without it"
    return Differences(
        names,
        item_differences(sample.data.items, ranks, of_items, z),
        pair_differences(sample.data.items, signs, of_pairs, z),
        total,
        items_total,
        confidence_level,
        text,
    )


def check_item_pairs(n_items: int, n_groups: int) -> None:
    """Raise an error if the comparison of all pairs of items does not fit into memory."""
    needed = 8 * (11 + 4 * n_groups) * n_items * (n_items - 1) // 2  # means, errors and statistics
    check_bytes(needed, f"comparing {n_groups} groups by all pairs of {n_items:,} items", "leave out rare items")


def removal_contributions(groups: GroupFeatures) -> FloatArray | None:
    """Return the decrease of the statistic without each item; None if the kernel is not defined on fewer items."""
    n_items = groups.voters.sample.data.n_items
    if n_items < 3:
        return None
    try:
        without = [groups.without_item(item).statistic() for item in range(n_items)]
    except (ValueError, RankingError):
        return None
    return groups.statistic() - np.array(without)


def item_differences(
    items: tuple[str, ...], ranks: FeatureMeans, contributions: FloatArray, z: float
) -> tuple[ItemDifference, ...]:
    """Return the mean rank of each item in each group, sorted by contribution."""
    means, sizes = ranks.means, ranks.sizes
    errors = z * np.sqrt(ranks.variances * sizes / np.maximum(sizes - 1, 1))
    low, high = np.maximum(means - errors, 1.0), np.minimum(means + errors, float(len(items)))
    changes = change_intervals(ranks, means - errors, means + errors, z)
    return tuple(
        ItemDifference(
            items[item],
            tuple(means[:, item].tolist()),
            column_intervals(low, high, item),
            float(contributions[item]),
            changes[item],
        )
        for item in np.argsort(-contributions, kind="stable").tolist()
    )


def pair_differences(
    items: tuple[str, ...], signs: FeatureMeans, contributions: FloatArray, z: float
) -> tuple[PairDifference, ...]:
    """Return the preference between each pair of items in each group, sorted by contribution."""
    largest = np.argsort(-contributions, kind="stable")[:MAX_PAIRS]
    shares, contributions = signs.shares(largest), contributions[largest]
    first, second = (side[largest] for side in np.triu_indices(len(items), 1))
    low, high = share_intervals(shares.means, shares.variances * shares.sizes, shares.sizes, z)
    changes, pairs = change_intervals(shares, low, high, z), []
    for pair in range(len(largest)):
        a, b = items[first[pair]], items[second[pair]]
        means, intervals, change = shares.means[:, pair], column_intervals(low, high, pair), changes[pair]
        if means[0] < means[1:].mean():  # name the pair in the order that the first group prefers more than the others
            a, b, means, intervals = b, a, 1 - means, tuple((1 - up, 1 - down) for down, up in intervals)
            change = None if change is None else (-change[1], -change[0])
        pairs.append(PairDifference(a, b, tuple(means.tolist()), intervals, float(contributions[pair]), change))
    return tuple(pairs)


def change_intervals(means: FeatureMeans, low: FloatArray, high: FloatArray, z: float) -> list[Interval | None]:
    """Return the intervals of the second mean minus the first, from those of both (Newcombe 1998).

    If groups are not independent, the standard error of the change is used.
    """
    if len(means.means) != 2:
        return [None] * means.means.shape[1]
    (first, second), change = means.means, means.means[1] - means.means[0]
    if means.change_variances is None:
        down = change - np.sqrt((second - low[1]) ** 2 + (high[0] - first) ** 2)
        up = change + np.sqrt((high[1] - second) ** 2 + (first - low[0]) ** 2)
    else:
        errors = z * np.sqrt(means.change_variances)
        down, up = change - errors, change + errors
    return list(zip(down.tolist(), up.tolist(), strict=True))


def share_intervals(
    shares: FloatArray, variances: FloatArray, sizes: FloatArray, z: float
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's interval of each share; ties reduce the variance of a share, as more voters would.

    Examples
    --------
    >>> low, high = share_intervals(np.array([0.3]), np.array([0.21]), np.array([10.0]), 1.96)
    >>> round(float(low[0]), 4), round(float(high[0]), 4)
    (0.1078, 0.6032)
    """
    binary = shares * (1 - shares)
    n = sizes * np.where(variances > 0, binary / np.where(variances > 0, variances, 1.0), 1.0)
    centre = (shares + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(binary / n + z**2 / (4 * n**2))
    return np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)


def normal_quantile(confidence_level: float) -> float:
    """Return the number of standard errors on either side of a two-sided interval."""
    from scipy.special import ndtri

    return float(ndtri((1 + confidence_level) / 2))


def column_intervals(low: FloatArray, high: FloatArray, column: int) -> tuple[Interval, ...]:
    """Return the intervals of one column, one for each group."""
    return tuple(zip(low[:, column].tolist(), high[:, column].tolist(), strict=True))
