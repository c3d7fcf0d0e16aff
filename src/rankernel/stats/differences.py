r"""In what groups differ: which items move, which pairs of items turn, and how much of the difference each makes.

The Kendall kernel of two rankings is the mean over pairs of items of the product of two signs. So its squared
discrepancy is the mean over pairs of items of the squared difference of two mean signs, and splits into pairs exactly;
without bias, too, as each pair is a kernel of its own. Half of the part of a pair belongs to each of its items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_choice, check_number, printable
from rankernel._utils.memory import check_bytes
from rankernel._utils.notebook import box, table
from rankernel.errors import RankingError
from rankernel.kernels.kendall import Kendall
from rankernel.stats._effect_law import Interval
from rankernel.stats._splits import FeatureMeans, Features, Split

if TYPE_CHECKING:
    from matplotlib.axes import Axes

By = Literal["auto", "pairs"]
KINDS: tuple[Literal["pairs"], Literal["ranks"]] = ("pairs", "ranks")
MOST_PAIRS = 5000  # that are kept: all those of a hundred items
MOST_LINES = 5  # of a table that is printed
MOST_COLUMNS = 5  # groups that are shown side by side; of more, those at the two ends


@dataclass(frozen=True)
class ItemDifference:
    """How one item stands in each group.

    Attributes
    ----------
    item : str
        The item.
    places : tuple of float
        Its mean place in each group, from 1; tied items share their places.
    intervals : tuple of pairs
        The interval of each.
    part : float
        How much of the difference between the groups the item makes: see ``items_by`` of :class:`Differences`.
    change_interval : pair of float or None
        The interval of :attr:`change`; None of more than two groups.
    """

    item: str
    places: tuple[float, ...]
    intervals: tuple[Interval, ...]
    part: float
    change_interval: Interval | None

    @property
    def change(self) -> float | None:
        """By how many places it stands lower in the second of two groups than in the first; None of more groups."""
        return self.places[1] - self.places[0] if len(self.places) == 2 else None

    @property
    def moves(self) -> float:
        """By how many places it moves between the groups where it stands highest and lowest."""
        return max(self.places) - min(self.places)


@dataclass(frozen=True)
class PairDifference:
    """How two items stand to each other in each group.

    Attributes
    ----------
    first, second : str
        The items; the first group prefers the first one more than the others do.
    shares : tuple of float
        The share of each group that prefers the first item; who ties them counts one half.
    intervals : tuple of pairs
        The interval of each.
    part : float
        How much of the difference between the groups the pair makes: its part of the statistic with the Kendall kernel.
    change_interval : pair of float or None
        The interval of :attr:`change`; None of more than two groups.
    """

    first: str
    second: str
    shares: tuple[float, ...]
    intervals: tuple[Interval, ...]
    part: float
    change_interval: Interval | None

    @property
    def change(self) -> float | None:
        """The share of the second of two groups less that of the first; None of more groups."""
        return self.shares[1] - self.shares[0] if len(self.shares) == 2 else None

    @property
    def turns(self) -> bool:
        """Whether the majority is for the first item in one group and for the second in another."""
        return min(self.shares) < 0.5 < max(self.shares)

    @property
    def turns_surely(self) -> bool:
        """Whether no interval of two such groups reaches the middle."""
        return min(high for _, high in self.intervals) < 0.5 < max(low for low, _ in self.intervals)


@dataclass(frozen=True, eq=False)
class Differences:
    """In what groups differ.

    Attributes
    ----------
    groups : tuple of str
        The groups.
    items : tuple of ItemDifference
        The items, those that make most of the difference first.
    pairs : tuple of PairDifference
        The pairs of items, those that make most of the difference first; of more than a hundred items the first 5,000.
    total : float
        The sum of the parts of all pairs: the statistic with the Kendall kernel. Within strata, its mean over them,
        weighed by their voters. Of changes in a stream, the dispersion between the segments that were found.
    items_total : float
        What the parts of items are parts of: ``total``, or the same with the kernel of the test.
    confidence : float
        How often an interval covers the truth, each by itself.
    items_by : str
        What the part of an item is.
    """

    groups: tuple[str, ...]
    items: tuple[ItemDifference, ...]
    pairs: tuple[PairDifference, ...]
    total: float
    items_total: float
    confidence: float
    items_by: str

    def plot(self, most: int = 12, ax: Axes | None = None) -> Axes:
        """Draw the pairs of items that make most of the difference: the share of each group, with its interval."""
        from rankernel.plots import differences

        return differences(self, limit=most, ax=ax)

    def tables(self) -> tuple[list[list[str]], list[list[str]]]:
        """Return items and pairs as rows of words, each with a heading; of many groups only those at the two ends."""
        level = f"{self.confidence:.0%} intervals"
        many = len(self.groups) > MOST_COLUMNS
        ends = ["best in", "worst in"], ["least in", "most in"]
        items = [["item", *(ends[0] if many else (f"mean place, {group}" for group in self.groups)), self.items_by]]
        for item in self.items:
            cells = self.cells(item.places, item.intervals, place_text)
            items.append([item.item, *cells, part_text(item.part, self.items_total)])
        pairs = [["prefer", *(ends[1] if many else self.groups), f"part of the Kendall statistic ({level})"]]
        for pair in self.pairs:
            cells = self.cells(pair.shares, pair.intervals, share_text)
            turns = ", turns" * pair.turns_surely
            pairs.append([f"{pair.first} to {pair.second}", *cells, f"{part_text(pair.part, self.total)}{turns}"])
        return items, pairs

    def cells(
        self, means: Sequence[float], intervals: Sequence[Interval], text: Callable[[float, Interval], str]
    ) -> Iterator[str]:
        """Yield the means of all groups in words; of many groups the smallest and the largest, with their names."""
        if len(self.groups) <= MOST_COLUMNS:
            yield from map(text, means, intervals)
            return
        for end in (int(np.argmin(means)), int(np.argmax(means))):
            yield f"{self.groups[end]}: {text(means[end], intervals[end])}"

    def __str__(self) -> str:
        items, pairs = (aligned(table[: MOST_LINES + 1]) for table in self.tables())
        return "\n".join(["Differences", *items, *pairs])

    def _repr_html_(self) -> str:
        return box("Differences", "".join(table(rows, head) for head, *rows in self.tables()))


def differences_of(split: Split, confidence: float, by: By) -> Differences:
    """Return in what groups differ."""
    confidence = check_number("confidence", confidence, 0, 1)
    check_choice("by", by, get_args(By))
    voters = split.groups
    n_items = voters.data.n_items
    if n_items < 2:
        raise RankingError("there is only one item, so that rankings of it cannot differ")
    check_item_pairs(n_items, len(voters.names))
    z = normal_quantile(confidence)
    signs, places = (split.by_feature(Features(voters.data, kind)) for kind in KINDS)
    parts = signs.statistics / len(signs.statistics)
    total = float(parts.sum())
    dropped = None
    if by == "auto" and voters.plan is not None and voters.kernel != Kendall():
        dropped = parts_without(split)
    if dropped is None:
        a, b = np.triu_indices(n_items, 1)
        of_items = (np.bincount(a, parts, n_items) + np.bincount(b, parts, n_items)) / 2
        items_total, text = total, "half of the parts of its pairs"
    else:
        of_items, items_total, text = dropped, split.statistic(), "what the statistic loses without it"
    return Differences(
        voters.names,
        item_differences(voters.data.items, places, of_items, z),
        pair_differences(voters.data.items, signs, parts, z),
        total,
        items_total,
        confidence,
        text,
    )


def check_item_pairs(n_items: int, n_groups: int) -> None:
    """Refuse so many items that what groups say of every two of them does not fit into memory."""
    needed = 8 * (11 + 4 * n_groups) * n_items * (n_items - 1) // 2  # means, errors and statistics, as measured
    check_bytes(
        needed, f"what {n_groups} groups say of every two of {n_items:,} items", "leave out items that few name"
    )


def parts_without(split: Split) -> FloatArray | None:
    """Return by how much the statistic falls without each item; None if the kernel is for these items only."""
    n_items = split.groups.data.n_items
    if n_items < 3:
        return None
    whole, rest = split.statistic(), []
    for item in range(n_items):
        try:
            rest.append(split.without(item).statistic())
        except (ValueError, RankingError):
            return None
    return whole - np.array(rest)


def item_differences(
    items: tuple[str, ...], places: FeatureMeans, parts: FloatArray, z: float
) -> tuple[ItemDifference, ...]:
    """Return how each item stands in each group."""
    means, sizes = places.means, places.sizes
    errors = z * np.sqrt(places.variances * sizes / np.maximum(sizes - 1, 1))
    low, high = np.maximum(means - errors, 1.0), np.minimum(means + errors, float(len(items)))
    changes = change_intervals(places, means - errors, means + errors, z)
    return tuple(
        ItemDifference(
            items[item], numbers(means[:, item]), pairs_of(low, high, item), float(parts[item]), changes[item]
        )
        for item in np.argsort(-parts, kind="stable").tolist()
    )


def pair_differences(
    items: tuple[str, ...], signs: FeatureMeans, parts: FloatArray, z: float
) -> tuple[PairDifference, ...]:
    """Return how each two items stand to each other in each group, named so that the first group is for the first."""
    kept = np.argsort(-parts, kind="stable")[:MOST_PAIRS]
    shares, parts = signs.of(kept).halved(), parts[kept]
    first, second = (side[kept] for side in np.triu_indices(len(items), 1))
    low, high = share_intervals(shares.means, shares.variances * shares.sizes, shares.sizes, z)
    changes, found = change_intervals(shares, low, high, z), []
    for pair in range(len(kept)):
        a, b = items[first[pair]], items[second[pair]]
        own, ends, change = shares.means[:, pair], pairs_of(low, high, pair), changes[pair]
        if own[0] < own[1:].mean():
            a, b, own, ends = b, a, 1 - own, tuple((1 - up, 1 - down) for down, up in ends)
            change = None if change is None else (-change[1], -change[0])
        found.append(PairDifference(a, b, numbers(own), ends, float(parts[pair]), change))
    return tuple(found)


def change_intervals(found: FeatureMeans, low: FloatArray, high: FloatArray, z: float) -> list[Interval | None]:
    """Return the intervals of the second mean less the first, from those of both (Newcombe 1998).

    Of the same judges the error of the change is known by itself.
    """
    if len(found.means) != 2:
        return [None] * found.means.shape[1]
    (first, second), change = found.means, found.means[1] - found.means[0]
    if found.change is None:
        down = change - np.sqrt((second - low[1]) ** 2 + (high[0] - first) ** 2)
        up = change + np.sqrt((high[1] - second) ** 2 + (first - low[0]) ** 2)
    else:
        down, up = change - z * np.sqrt(found.change), change + z * np.sqrt(found.change)
    return list(zip(down.tolist(), up.tolist(), strict=True))


def share_intervals(
    shares: FloatArray, spreads: FloatArray, sizes: FloatArray, z: float
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's interval of each share; ties make the spread of a share smaller, as more voters would.

    Examples
    --------
    >>> low, high = share_intervals(np.array([0.3]), np.array([0.21]), np.array([10.0]), 1.96)
    >>> round(float(low[0]), 4), round(float(high[0]), 4)
    (0.1078, 0.6032)
    """
    binary = shares * (1 - shares)
    n = sizes * np.where(spreads > 0, binary / np.where(spreads > 0, spreads, 1.0), 1.0)
    centre = (shares + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(binary / n + z**2 / (4 * n**2))
    return np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)


def normal_quantile(confidence: float) -> float:
    """Return how many standard errors to either side cover the truth so often."""
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


def numbers(values: FloatArray) -> tuple[float, ...]:
    """Return an array as plain numbers."""
    return tuple(values.tolist())


def pairs_of(low: FloatArray, high: FloatArray, column: int) -> tuple[Interval, ...]:
    """Return the intervals of one column, one for each group."""
    return tuple(zip(low[:, column].tolist(), high[:, column].tolist(), strict=True))


# ---------------------------------------------------------------------- in words


def place_text(place: float, interval: Interval) -> str:
    """Return a mean place with its interval."""
    return f"{place:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"


def part_text(part: float, total: float) -> str:
    """Return a part in percent of a total; as it is, where the total is nothing that could be divided.

    Examples
    --------
    >>> part_text(0.027, 0.1), part_text(-0.004, 0.1), part_text(0.002, -0.01)
    ('27%', '-4%', '0.002')
    """
    return f"{part / total:.0%}" if total > 0 else f"{part:.2g}"


def share_text(share: float, interval: Interval) -> str:
    """Return a share with its interval, in percent."""
    return f"{share:.0%} ({interval[0]:.0%} to {interval[1]:.0%})"


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines with columns of one width."""
    shown = [[printable(cell) for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        "  " + "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown
    ]
