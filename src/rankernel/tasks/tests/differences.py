r"""In what groups differ: which items move, which pairs of items turn, and how much of the difference each makes.

The Kendall kernel of two rankings is the mean over pairs of items of the product of two signs. So its squared
discrepancy is the mean over pairs of items of the squared difference of two mean signs, and splits into pairs exactly;
without bias, too, as each pair is a kernel of its own. Half of the part of a pair belongs to each of its items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from rankernel.arrays import FloatArray
from rankernel.checks import known, number
from rankernel.encoding import printable
from rankernel.errors import RankingError
from rankernel.gram.exact.features import means_of_seen
from rankernel.gram.posets.poset_rows import as_rows
from rankernel.gram.tiles import stretches
from rankernel.kernels.kendall import Kendall
from rankernel.notebook import box, table
from rankernel.tasks.tests._effects import Interval
from rankernel.tasks.tests._groups import GroupedVoters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

By = Literal["auto", "pairs"]
BLOCK = 2**22  # numbers in memory at once
MOST_LINES = 5  # of a table that is printed


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
        How much of the difference between the groups the item makes.
    """

    item: str
    places: tuple[float, ...]
    intervals: tuple[Interval, ...]
    part: float

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
        How much of the difference between the groups the pair makes.
    """

    first: str
    second: str
    shares: tuple[float, ...]
    intervals: tuple[Interval, ...]
    part: float

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
        The pairs of items, those that make most of the difference first.
    total : float
        The sum of the parts of all pairs: the statistic with the Kendall kernel.
    confidence : float
        How often an interval covers the truth, each by itself.
    items_by : str
        What the part of an item is.
    """

    groups: tuple[str, ...]
    items: tuple[ItemDifference, ...]
    pairs: tuple[PairDifference, ...]
    total: float
    confidence: float
    items_by: str

    def plot(self, most: int = 12, ax: Axes | None = None) -> Axes:
        """Draw the pairs of items that make most of the difference: the share of each group, with its interval."""
        from rankernel.plots import differences

        return differences(self, most, ax)

    def tables(self) -> tuple[list[list[str]], list[list[str]]]:
        """Return items and pairs as rows of words, each with a heading."""
        level = f"{self.confidence:.0%} intervals"
        items = [["item", *(f"mean place, {group}" for group in self.groups), "part"]]
        items += [[each.item, *map(place_text, each.places, each.intervals), f"{each.part:.2g}"] for each in self.items]
        pairs = [["prefer", *self.groups, f"part ({level})"]]
        for pair in self.pairs:
            shares = map(share_text, pair.shares, pair.intervals)
            pairs.append([f"{pair.first} to {pair.second}", *shares, f"{pair.part:.2g}{' turns' * pair.turns}"])
        return items, pairs

    def __str__(self) -> str:
        items, pairs = (aligned(table[: MOST_LINES + 1]) for table in self.tables())
        return "\n".join(["Differences", *items, *pairs])

    def _repr_html_(self) -> str:
        return box("Differences", "".join(table(rows, head) for head, *rows in self.tables()))


def differences_of(
    voters: GroupedVoters, biased: bool, per_dispersion: float, confidence: float, by: By
) -> Differences:
    """Return in what groups differ; the statistic is ``per_dispersion`` times the dispersion between them."""
    number("confidence", confidence, 0, 1)
    known("by", by, get_args(By))
    if voters.data.n_items < 2:
        raise RankingError("there is only one item, so that rankings of it cannot differ")
    shares, spreads, parts = pair_shares(voters, biased)
    a, b = np.triu_indices(voters.data.n_items, 1)
    parts = parts * per_dispersion / len(parts)
    dropped = None
    if by == "auto" and voters.plan is not None and voters.kernel != Kendall():
        dropped = parts_without(voters, biased)
    if dropped is None:
        of_items = (np.bincount(a, parts, voters.data.n_items) + np.bincount(b, parts, voters.data.n_items)) / 2
        text = "half of the parts of its pairs"
    else:
        of_items, text = dropped * per_dispersion, "what the statistic loses without it"
    z = normal_quantile(confidence)
    return Differences(
        voters.names,
        item_differences(voters, of_items, z),
        pair_differences(voters, shares, spreads, parts, z),
        float(parts.sum()),
        confidence,
        text,
    )


def pair_shares(voters: GroupedVoters, biased: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return for all pairs of items the share of each group that prefers the first, its variance, and the dispersion.

    The dispersion is that of the signs: between the groups, with a kernel that is the product of two signs.
    """
    n_pairs = voters.data.n_items * (voters.data.n_items - 1) // 2
    sums, squares = (np.zeros((len(voters.names), n_pairs)) for _ in range(2))
    for part in stretches(len(voters.data), max(BLOCK // n_pairs, 1)):
        signs = means_of_seen(as_rows(voters.data[part]), "pairs")
        sums += voters.by_group[:, part] @ signs
        squares += voters.by_group[:, part] @ signs**2
    sizes = voters.sizes[:, None]
    own = 0.0 if biased else 1.0
    total = sums.sum(axis=0) ** 2 - own * squares.sum(axis=0)
    dispersion = voters.alike(biased) @ (sums**2 - own * squares) - total / sizes.sum()
    means = sums / sizes
    return (1 + means) / 2, np.maximum(squares / sizes - means**2, 0.0) / 4, dispersion


def parts_without(voters: GroupedVoters, biased: bool) -> FloatArray | None:
    """Return by how much the dispersion falls without each item; None if the kernel is for these items only."""
    if voters.data.n_items < 3:
        return None
    whole, rest = voters.dispersion(biased), []
    for item in range(voters.data.n_items):
        try:
            rest.append(voters.without(item).dispersion(biased))
        except (ValueError, RankingError):
            return None
    return whole - np.array(rest)


def item_differences(voters: GroupedVoters, parts: FloatArray, z: float) -> tuple[ItemDifference, ...]:
    """Return how each item stands in each group."""
    places = means_of_seen(as_rows(voters.data), "ranks") + (voters.data.n_items + 1) / 2
    sizes = voters.sizes[:, None]
    means = voters.by_group @ places / sizes
    spread = np.maximum(voters.by_group @ places**2 / sizes - means**2, 0.0)
    errors = z * np.sqrt(spread / np.maximum(sizes - 1, 1))
    low, high = np.maximum(means - errors, 1.0), np.minimum(means + errors, float(voters.data.n_items))
    return tuple(
        ItemDifference(voters.data.items[item], numbers(means[:, item]), pairs_of(low, high, item), float(parts[item]))
        for item in np.argsort(-parts, kind="stable").tolist()
    )


def pair_differences(
    voters: GroupedVoters, shares: FloatArray, spreads: FloatArray, parts: FloatArray, z: float
) -> tuple[PairDifference, ...]:
    """Return how each two items stand to each other in each group, named so that the first group is for the first."""
    first, second = np.triu_indices(voters.data.n_items, 1)
    low, high = share_intervals(shares, spreads, voters.sizes[:, None], z)
    items, found = voters.data.items, []
    for pair in np.argsort(-parts, kind="stable").tolist():
        a, b = items[first[pair]], items[second[pair]]
        own, ends = shares[:, pair], pairs_of(low, high, pair)
        if own[0] < own[1:].mean():
            a, b, own, ends = b, a, 1 - own, tuple((1 - up, 1 - down) for down, up in ends)
        found.append(PairDifference(a, b, numbers(own), ends, float(parts[pair])))
    return tuple(found)


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
