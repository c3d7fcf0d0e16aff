"""Groups of voters compared: all together first, then two by two, corrected for the number of tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankernel.analysis.clustering import mean_places
from rankernel.analysis.distinct_ballots import Ballots, some_voters
from rankernel.analysis.majorities import Majorities, count_majorities
from rankernel.analysis.phrases import listing
from rankernel.arrays import FloatArray
from rankernel.data import Data, concat, with_counts
from rankernel.encoding import printable
from rankernel.errors import RankingError
from rankernel.kernels.base import Kernel

if TYPE_CHECKING:
    from rankernel.analysis.summary import Settings
    from rankernel.tasks.tests.pairwise import KSampleResult, PairwiseResult

LEVEL = 0.05
MOST_GROUPS = 100  # to compare two by two, which makes 4,950 pairs; all together are any number
MOST_DISTINCT = 3000  # ballots to compare; of more, some voters of each group are taken
MOST_NAMED = 12  # groups in a message
MOST_DETAILS = 3  # pairs of groups that differ, shown with all there is to say
MOST_PAIRS = 4  # of items that make most of a difference


@dataclass(frozen=True)
class PairShare:
    """How two items stand to each other in two groups: the shares that put the first before the second."""

    first: str
    second: str
    shares: tuple[float, float]
    against: tuple[float, float]  # the shares that put the second before the first; the others are undecided
    intervals: tuple[tuple[float, float], tuple[float, float]]  # of the shares, at 95%


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two groups compared."""

    first: int  # the numbers of the groups
    second: int
    pvalue: float  # corrected for the number of pairs
    effect: float  # the share of the dispersion of the voters that lies between the two groups
    statistic: float  # the squared discrepancy
    interval: tuple[float, float] | None = None  # of the effect, at 95%, where details are shown
    null: FloatArray | None = None  # the statistic for random divisions of the voters, where details are shown
    shift: FloatArray | None = None  # (n_items,): places that each item stands lower in the first group
    pairs: tuple[PairShare, ...] = ()  # the pairs of items that make most of the difference

    @property
    def differs(self) -> bool:
        """Whether the groups differ by more than chance explains."""
        return self.pvalue <= LEVEL


@dataclass(frozen=True, eq=False)
class Comparisons:
    """What a comparison of groups found."""

    n_groups: int  # how many were tested all together
    pvalue: float  # of all together
    effect: float
    groups: tuple[int, ...]  # the numbers of the groups that were compared two by two: all, or the largest of many
    n_compared: tuple[int, ...]  # how many voters of each
    pairs: list[Comparison]  # every two of them, the clearest first
    by_tail: bool  # whether p-values of pairs come from a curve, permutations being too few for so many pairs
    error: float = 0.0  # of the statistic, where kernel values are estimates, in parts of the spread by chance

    @property
    def details(self) -> list[Comparison]:
        """The pairs to show with all there is to say."""
        return [pair for pair in self.pairs if pair.null is not None]


def groups_to_compare(ballots: Ballots, wanted: tuple[str, ...] = ()) -> list[int]:
    """Return the groups to compare: those that are wanted, or all, those of a single voter left out."""
    voters = ballots.by_group.sum(axis=0)
    for name in wanted:
        if name not in ballots.groups:
            known = listing(list(ballots.groups), MOST_NAMED) if ballots.groups else "not known"
            raise RankingError(f"there is no group {printable(name)!r}; the groups are {known}")
        if voters[ballots.groups.index(name)] < 2:
            raise RankingError(f"the group {printable(name)!r} has a single voter; a test needs two")
    if wanted:
        return sorted({ballots.groups.index(name) for name in wanted})
    return [int(group) for group in np.flatnonzero(voters > 1)]


def compare_groups(ballots: Ballots, kernel: Kernel, settings: Settings) -> Comparisons | None:
    """Return what the groups differ in, or None where there are not two."""
    every = groups_to_compare(ballots, settings.groups)
    if len(every) < 2:
        return None
    numbers = largest_groups(ballots, every)
    together, parts = tested(ballots, every, kernel, settings)
    of_pairs = together
    if len(numbers) < len(every):
        of_pairs, parts = tested(ballots, numbers, kernel, settings)
    found = of_pairs.pairwise(level=LEVEL)
    shown = found.rejected
    majorities = [count_majorities(ballots.of_group(number)) for number in numbers]
    pairs = [
        compared(found, place, numbers, ballots, majorities, rank < MOST_DETAILS and (shown[place] or len(found) == 1))
        for rank, place in enumerate(found.order())
    ]
    error = together.statistic_error / max(float(together.null_distribution.std()), 1e-300)
    return Comparisons(
        len(every),
        together.pvalue,
        together.effect,
        tuple(numbers),
        tuple(part.n_voters for part in parts),
        pairs,
        found.corrected_from == "tail",
        error,
    )


def largest_groups(ballots: Ballots, numbers: list[int]) -> list[int]:
    """Return so many of the groups that every two of them can be compared, in the order in which they come."""
    voters = ballots.by_group.sum(axis=0)[numbers]
    return [numbers[place] for place in sorted(np.argsort(-voters, kind="stable")[:MOST_GROUPS].tolist())]


def tested(
    ballots: Ballots, numbers: list[int], kernel: Kernel, settings: Settings
) -> tuple[KSampleResult, list[Data]]:
    """Return the test of some groups, numbered as they come, and the voters of each who took part."""
    from rankernel.tasks.tests.k_sample import k_sample_test

    parts = [ballots.of_group(number) for number in numbers]
    if sum(map(len, parts)) > MOST_DISTINCT:
        of_each = max(MOST_DISTINCT // len(parts), 2)
        chosen = [some_voters(part.counts, of_each, settings.seed + n) for n, part in enumerate(parts)]
        parts = [with_counts(part[rows], counts) for part, (rows, counts) in zip(parts, chosen, strict=True)]
    places = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    result = k_sample_test(
        concat(parts), places, kernel, settings.n_permutations, settings.seed, method=settings.method
    )
    return result, parts


def compared(
    found: PairwiseResult,
    place: int,
    numbers: list[int],
    ballots: Ballots,
    majorities: list[Majorities],
    detailed: bool,
) -> Comparison:
    """Return what was found of one pair of groups."""
    a, b = int(found.first[place]), int(found.second[place])
    first, second = numbers[a], numbers[b]
    corrected, effect = float(found.corrected[place]), float(found.effects[place])
    if not detailed:
        return Comparison(first, second, corrected, effect, float(found.statistics[place]))
    result = found.pair(found.first[place], found.second[place])
    shift = mean_places(ballots.of_group(first)) - mean_places(ballots.of_group(second))
    items = ballots.rankings.items
    differing = result.differences(by="pairs").pairs[:MOST_PAIRS] if len(items) > 1 else ()
    pairs = tuple(pair_share(pair.first, pair.second, items, (majorities[a], majorities[b])) for pair in differing)
    interval = result.effect_interval
    return Comparison(
        first, second, corrected, effect, result.statistic, interval, result.null_distribution, shift, pairs
    )


def pair_share(first: str, second: str, items: tuple[str, ...], groups: tuple[Majorities, Majorities]) -> PairShare:
    """Return the shares of two groups that put one item before another."""
    a, b = items.index(first), items.index(second)
    left, right = (
        (
            group.ahead[a, b] / group.n_voters,
            group.ahead[b, a] / group.n_voters,
            wilson(int(group.ahead[a, b]), group.n_voters),
        )
        for group in groups
    )
    return PairShare(
        first, second, (float(left[0]), float(right[0])), (float(left[1]), float(right[1])), (left[2], right[2])
    )


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95% interval of a share (Wilson, 1927).

    Examples
    --------
    >>> [round(end, 3) for end in wilson(5, 10)]
    [0.237, 0.763]
    """
    z, share = 1.959964, successes / trials
    middle, half = share + z**2 / (2 * trials), z * (share * (1 - share) / trials + z**2 / (4 * trials**2)) ** 0.5
    return (middle - half) / (1 + z**2 / trials), (middle + half) / (1 + z**2 / trials)
