r"""In which items and pairs of items groups differ.

The Kendall kernel of two rankings is the mean over pairs of items of the product of two signs. So each pair of items is
a kernel, and the statistic with the Kendall kernel is the mean over pairs of the statistic with one sign: it decomposes
exactly into contributions of pairs, also the unbiased one. Half of the contribution of a pair belongs to each item.

The intervals of all pairs hold simultaneously, and so do those of all items: the critical value is the quantile of the
largest absolute standardised mean, simulated with normal multipliers of the voters (multiplier bootstrap). Shares have
Wilson's interval with this critical value, mean ranks a t interval of the same probability. Shares count strict
preferences only: a voter who ties two items, or does not relate them, is undecided.

Within strata, the mean of a group is the mean over strata, weighted by the voters of all groups in each stratum: groups
are compared as if they had the same distribution of voters over strata.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from rankernel._utils import FloatArray, Indices
from rankernel._utils.checks import check_number, printable
from rankernel._utils.notebook import box, table
from rankernel._utils.resources import check_bytes, slices
from rankernel.data import Data
from rankernel.errors import RankingError
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.rows import as_rows
from rankernel.preferences import Preferences
from rankernel.rankings import relations_of_ranks
from rankernel.stats._permutations import CHUNK_ENTRIES, named_generator
from rankernel.stats.base import Interval
from rankernel.stats.groups import GroupedVoters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankernel.stats.paired import Judges

Kind: TypeAlias = Literal["pairs", "above", "ranks"]

MAX_PAIRS = 5000  # pairs of items in a result: all pairs of a hundred items
MAX_PRINTED = 5  # lines of a printed table
MAX_COLUMNS = 5  # groups in columns; of more groups the two extremes are shown
N_BOOTSTRAP = 500  # draws of the largest standardised mean
MAX_SIMULATED = 2**26  # standardised means that are simulated; of more, the critical value is that of Bonferroni
CONTRIBUTION = "share of the difference (Kendall kernel)"


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
        The confidence interval of each; all items and groups at once.
    contribution : float
        Half of the contributions of the pairs of items with this item.
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
    shares, against : tuple of float
        The shares of each group that rank the first item above the second, and the second above the first.
    intervals, against_intervals : tuple of pairs
        The confidence interval of each share (Wilson); all pairs, directions and groups at once.
    contribution : float
        The contribution of the pair to the statistic with the Kendall kernel.
    change_interval : pair of float or None
        The confidence interval of :attr:`change` (Newcombe); None for more than two groups.
    """

    first: str
    second: str
    shares: tuple[float, ...]
    against: tuple[float, ...]
    intervals: tuple[Interval, ...]
    against_intervals: tuple[Interval, ...]
    contribution: float
    change_interval: Interval | None

    @property
    def undecided(self) -> tuple[float, ...]:
        """The share of each group that ranks neither item above the other."""
        shares = zip(self.shares, self.against, strict=True)
        return tuple(max(round(1 - ahead - behind, 12), 0.0) for ahead, behind in shares)  # without rounding errors

    @property
    def change(self) -> float | None:
        """The share in the second of two groups minus that in the first; None for more groups."""
        return self.shares[1] - self.shares[0] if len(self.shares) == 2 else None

    @property
    def majorities_differ(self) -> bool:
        """Whether more voters prefer the first item in one group, and the second item in another."""
        margins = [ahead - behind for ahead, behind in zip(self.shares, self.against, strict=True)]
        return min(margins) < 0 < max(margins)

    @property
    def reverses(self) -> bool:
        """Whether majorities of two groups differ, and in both the intervals of the two shares do not overlap."""
        both = list(zip(self.intervals, self.against_intervals, strict=True))
        return any(a[0] > b[1] for a, b in both) and any(b[0] > a[1] for a, b in both)


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
    confidence_level : float
        The confidence level of the intervals of all pairs, and of those of all items.
    """

    groups: tuple[str, ...]
    items: tuple[ItemDifference, ...]
    pairs: tuple[PairDifference, ...]
    total: float
    confidence_level: float

    def plot(self, *, names: Sequence[str] | None = None, limit: int = 12, ax: Axes | None = None) -> Axes:
        """Draw the shares of each group for the first pairs, with their intervals; see :func:`plots.differences`."""
        from rankernel.plots import differences

        return differences(self, names=names, limit=limit, ax=ax)

    def tables(self) -> tuple[list[list[str]], list[list[str]]]:
        """Return tables of items and pairs as text, with headings; of many groups the two extremes."""
        many = len(self.groups) > MAX_COLUMNS
        rank_heads = ["best in", "worst in"] if many else [f"mean rank, {group}" for group in self.groups]
        items = [["item", *rank_heads, CONTRIBUTION]]
        for item in self.items:
            cells = self._cells(item.mean_ranks, item.intervals, "{:.2f} ({:.2f} to {:.2f})")
            items.append([item.item, *cells, self._contribution(item.contribution)])
        share_heads = ["lowest in", "highest in"] if many else self.groups
        pairs = [["prefer", *share_heads, CONTRIBUTION]]
        for pair in self.pairs:
            cells = self._cells(pair.shares, pair.intervals, "{:.0%} ({:.0%} to {:.0%})", pair.undecided)
            contribution = self._contribution(pair.contribution) + ", reverses" * pair.reverses
            pairs.append([f"{pair.first} to {pair.second}", *cells, contribution])
        return items, pairs

    def _cells(
        self, means: Sequence[float], intervals: Sequence[Interval], text: str, undecided: Sequence[float] = ()
    ) -> Iterator[str]:
        """Yield the means of all groups as text; of many groups the smallest and the largest, with their names."""
        many = len(self.groups) > MAX_COLUMNS
        for group in (int(np.argmin(means)), int(np.argmax(means))) if many else range(len(means)):
            cell = f"{self.groups[group]}: " * many + text.format(means[group], *intervals[group])
            yield cell + (f", {undecided[group]:.0%} neither" if any(undecided) else "")

    def _contribution(self, contribution: float) -> str:
        """Return a contribution in percent of a positive total, and otherwise the number."""
        return f"{contribution / self.total:.0%}" if self.total > 0 else f"{contribution:.2g}"

    def __str__(self) -> str:
        lines = [f"Differences, {self.confidence_level:.0%} simultaneous intervals"]
        for rows in self.tables():
            shown = [[printable(cell) for cell in row] for row in rows[: MAX_PRINTED + 1]]
            widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
            padded = (map(str.ljust, row, widths) for row in shown)
            lines += ["  " + "  ".join(row).rstrip() for row in padded]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return box("Differences", "".join(table(rows, head) for head, *rows in self.tables()))


# ---------------------------------------------------------------------- features of groups


@dataclass(frozen=True, eq=False)
class FeatureMeans:
    """The mean of features in each group, and the statistic with the product of one feature as the kernel."""

    means: FloatArray  # of shape (n_groups, n_features)
    variances: FloatArray  # the squared standard errors of the means
    sizes: FloatArray  # voters, of shape (n_groups, 1); with strata, as many as would have the same errors without
    statistics: FloatArray  # the statistic with each feature
    largest: FloatArray | None  # draws of the largest absolute standardised mean; None for too many means
    largest_change: FloatArray | None  # of the difference of the means of two groups
    change_variances: FloatArray | None = None  # of the second mean minus the first, if groups are not independent

    def columns(self, features: Indices) -> FeatureMeans:
        """Return the means of some features."""
        change = None if self.change_variances is None else self.change_variances[features]
        means, variances, largest = self.means[:, features], self.variances[:, features], self.largest
        return FeatureMeans(
            means, variances, self.sizes, self.statistics[features], largest, self.largest_change, change
        )


@dataclass(frozen=True, eq=False)
class GroupFeatures:
    """Groups of voters; the statistic is ``dispersion_factor`` times the dispersion between them.

    ``judges`` are given if the two groups are the same judges before and after.
    """

    voters: GroupedVoters
    biased: bool
    dispersion_factor: float
    judges: Judges | None

    def features(self, rows: Indices, kind: Kind) -> FloatArray:
        """Return the mean signs of all pairs, strict preferences in both directions, or mean ranks of all items."""
        data = self.voters.sample.data
        if kind == "above":
            return strict_preferences(data[rows])
        values = mean_statistics(as_rows(data[rows]), kind)
        return values + (data.n_items + 1) / 2 if kind == "ranks" else values

    def means(self, kind: Kind) -> FeatureMeans:
        """Return the mean of each feature in each group, and the statistic with each feature."""
        table, n_items = self.voters.table, self.voters.sample.data.n_items
        n_features = {"pairs": n_items * (n_items - 1) // 2, "above": n_items * (n_items - 1), "ranks": n_items}[kind]
        n_strata, n_groups, n_rows = table.shape
        chunk = max(CHUNK_ENTRIES // max(n_features, N_BOOTSTRAP), 1)
        sizes, shared, weights = shared_strata(self.voters)
        sums, squares = (np.zeros((n_strata, n_groups, n_features)) for _ in range(2))
        simulate = kind != "pairs" and N_BOOTSTRAP * n_groups * n_features <= MAX_SIMULATED
        noise = np.zeros((n_groups, N_BOOTSTRAP, n_features if simulate else 0))
        multiplier_sums = np.zeros((len(shared), n_groups, N_BOOTSTRAP))
        rng = named_generator(0, "multipliers of voters", table)
        for part in slices(n_rows, chunk):
            values = self.features(np.arange(part.start, part.stop), kind)
            sums += table[:, :, part] @ values
            squares += table[:, :, part] @ values**2
            for group in range(n_groups if simulate else 0):
                scales = np.sqrt(table[shared, group, part]) * (weights / sizes[:, group])[:, None]
                for number, scale in enumerate(scales):
                    multipliers = rng.standard_normal((N_BOOTSTRAP, len(scale))) * scale
                    noise[group] += multipliers @ values
                    multiplier_sums[number, group] += multipliers.sum(axis=1)
        n = sizes[..., None]
        means = sums[shared] / n
        variances = np.maximum(squares[shared] / n - means**2, 0.0)
        error_weights = (weights**2)[:, None] / sizes
        errors = np.einsum("sg,sgf->gf", error_weights, variances)
        largest = largest_change = None
        if simulate:
            noise -= np.einsum("sgb,sgf->gbf", multiplier_sums, means)
            largest = largest_ratio(noise, errors[:, None]).max(axis=0)
            largest_change = largest_ratio(noise[1] - noise[0], errors[0] + errors[1])
        if self.judges is not None:
            statistics, change_variances = self._changes(kind, chunk)
        else:
            dispersion = self._within_strata if self.voters.is_stratified() else self._dispersion
            statistics, change_variances = dispersion(sums, squares), None
        overall, n_effective = np.einsum("s,sgf->gf", weights, means), 1 / error_weights.sum(axis=0)[:, None]
        return FeatureMeans(overall, errors, n_effective, statistics, largest, largest_change, change_variances)

    def _changes(self, kind: Kind, chunk: int) -> tuple[FloatArray, FloatArray]:
        """Return the statistic with each feature from the changes of judges, and the variance of the mean change."""
        assert self.judges is not None
        judges, n, sums, squares = self.judges, self.judges.n_judges, np.zeros(1), np.zeros(1)
        for part in slices(len(judges.counts), chunk):
            changes = self.features(judges.after[part], kind) - self.features(judges.before[part], kind)
            sums, squares = sums + judges.counts[part] @ changes, squares + judges.counts[part] @ changes**2
        statistics = (sums**2 - (0.0 if self.biased else squares)) / judges.n_pairs
        return statistics, np.maximum(squares / n - (sums / n) ** 2, 0.0) / max(n - 1, 1)

    def _dispersion(self, sums: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the statistic with each feature, from sums over the voters of groups."""
        group_sums, self_pairs = sums[0], (np.zeros_like(squares) if self.biased else squares)[0]
        total = group_sums.sum(axis=0) ** 2 - self_pairs.sum(axis=0)
        within = self.voters.pair_weights(self.biased) @ (group_sums**2 - self_pairs)
        return np.asarray(self.dispersion_factor * (within - total / self.voters.sizes.sum()))

    def _within_strata(self, sums: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the mean over strata of the statistic with each feature."""
        values = np.zeros(sums.shape[2])
        for stratum in self.voters.strata:
            n, contrast = stratum.sizes[:, None], stratum.contrast
            group_sums, group_squares = (array[stratum.number, stratum.groups] for array in (sums, squares))
            means, within = group_sums / n, (group_sums**2 - group_squares) / (n * (n - 1))
            values += np.einsum("gf,gh,hf->f", means, contrast, means)
            values += np.diagonal(contrast) @ (within - means**2)
        return values * (4.0 if len(self.voters.names) == 2 else float(self.voters.sizes.sum()))


def strict_preferences(data: Data) -> FloatArray:
    """Return whether each row ranks the first item of each pair above the second, then whether the reverse."""
    above = data.before if isinstance(data, Preferences) else relations_of_ranks(data.ranks)
    first, second = np.triu_indices(data.n_items, 1)
    return np.concatenate([above[:, first, second], above[:, second, first]], axis=1).astype(np.float64)


def largest_ratio(noise: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the largest absolute ratio to a standard error over the last axis; features that do not vary are 0."""
    return np.asarray(np.abs(noise / np.sqrt(np.where(variances > 0, variances, np.inf))).max(axis=-1))


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


def compare_groups(groups: GroupFeatures, confidence_level: float) -> Differences:
    """Return in which items and pairs of items groups differ."""
    confidence_level = check_number("confidence_level", confidence_level, 0, 1)
    data, names = groups.voters.sample.data, groups.voters.names
    if data.n_items < 2:
        raise RankingError("there is only one item, and groups are compared by pairs of items; give at least two items")
    needed = 3 * 8 * (11 + 4 * len(names)) * data.n_items * (data.n_items - 1) // 2  # means, errors and statistics
    what = f"comparing {len(names)} groups by all pairs of {data.n_items:,} items"
    check_bytes(needed, what, "leave out rare items")
    signs, above, ranks = groups.means("pairs"), groups.means("above"), groups.means("ranks")
    of_pairs = signs.statistics / len(signs.statistics)
    first, second = np.triu_indices(data.n_items, 1)
    of_items = (np.bincount(first, of_pairs, data.n_items) + np.bincount(second, of_pairs, data.n_items)) / 2
    return Differences(
        names,
        item_differences(data.items, ranks, of_items, *critical_values(ranks, confidence_level)),
        pair_differences(data.items, above, of_pairs, *critical_values(above, confidence_level)),
        float(of_pairs.sum()),
        confidence_level,
    )


def critical_values(means: FeatureMeans, confidence_level: float) -> tuple[float, float]:
    """Return the standard errors on either side of simultaneous intervals of all means, and of those of all changes.

    The quantile of the largest absolute standardised mean; where it was not simulated, that of Bonferroni.
    """
    from scipy.special import ndtri

    found = []
    for largest, n_intervals in ((means.largest, means.means.size), (means.largest_change, means.means.shape[1])):
        if largest is None or n_intervals == 1:
            found.append(float(ndtri(1 - (1 - confidence_level) / 2 / n_intervals)))
        else:
            found.append(max(float(np.quantile(largest, confidence_level)), float(ndtri((1 + confidence_level) / 2))))
    return found[0], found[1]


def item_differences(
    items: tuple[str, ...], ranks: FeatureMeans, contributions: FloatArray, z: float, z_change: float
) -> tuple[ItemDifference, ...]:
    """Return the mean rank of each item in each group, sorted by contribution."""
    means, sizes = ranks.means, ranks.sizes
    errors = np.sqrt(ranks.variances * sizes / np.maximum(sizes - 1, 1))
    reach, reach_change = (t_quantiles(each, sizes - 1) * errors for each in (z, z_change))
    low, high = np.maximum(means - reach, 1.0), np.minimum(means + reach, float(len(items)))
    changes = change_intervals(ranks, means - reach_change, means + reach_change, z_change)
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


def t_quantiles(z: float, degrees: FloatArray) -> FloatArray:
    """Return the quantiles of t distributions at the level of a normal quantile.

    Examples
    --------
    >>> t_quantiles(1.959964, np.array([9.0])).round(3)
    array([2.262])
    """
    from scipy.special import ndtr, stdtrit

    return np.asarray(stdtrit(np.maximum(degrees, 1.0), ndtr(z)))


def pair_differences(
    items: tuple[str, ...], above: FeatureMeans, contributions: FloatArray, z: float, z_change: float
) -> tuple[PairDifference, ...]:
    """Return the preference between each pair of items in each group, sorted by contribution.

    A pair is named in the order that the first group prefers more than the others.
    """
    largest = np.argsort(-contributions, kind="stable")[:MAX_PAIRS]
    n_pairs = len(contributions)
    margins = above.means[:, largest] - above.means[:, largest + n_pairs]
    reverse = margins[0] < margins[1:].mean(axis=0)
    shares, against = (above.columns(largest + n_pairs * side) for side in (reverse, ~reverse))
    first, second = (side[largest] for side in np.triu_indices(len(items), 1))
    first, second = np.where(reverse, second, first), np.where(reverse, first, second)

    def intervals(each: FeatureMeans, quantile: float = z) -> tuple[FloatArray, FloatArray]:
        return share_intervals(each.means, each.variances * each.sizes, each.sizes, quantile)

    of_shares, of_against = intervals(shares), intervals(against)
    changes = change_intervals(shares, *intervals(shares, z_change), z_change)
    return tuple(
        PairDifference(
            items[first[pair]],
            items[second[pair]],
            tuple(shares.means[:, pair].tolist()),
            tuple(against.means[:, pair].tolist()),
            column_intervals(*of_shares, pair),
            column_intervals(*of_against, pair),
            float(contributions[largest[pair]]),
            changes[pair],
        )
        for pair in range(len(largest))
    )


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
        errors = t_quantiles(z, means.sizes[0] - 1) * np.sqrt(means.change_variances)
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


def column_intervals(low: FloatArray, high: FloatArray, column: int) -> tuple[Interval, ...]:
    """Return the intervals of one column, one for each group."""
    return tuple(zip(low[:, column].tolist(), high[:, column].tolist(), strict=True))
