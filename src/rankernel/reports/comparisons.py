"""Groups of voters compared: all together first, then two by two, corrected for the number of tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import printable
from rankernel.data import Data, concat, with_counts
from rankernel.errors import RankingError
from rankernel.kernels.base import Kernel
from rankernel.reports.distinct_ballots import Ballots, some_voters
from rankernel.reports.majorities import Majorities, count_majorities
from rankernel.reports.phrases import listing
from rankernel.reports.source import Source
from rankernel.reports.standing import standings

if TYPE_CHECKING:
    from rankernel.reports.summary import Settings
    from rankernel.stats.k_sample import KSampleResult
    from rankernel.stats.mmd import MMDResult
    from rankernel.stats.results import GroupTestResult

LEVEL = 0.05
MOST_GROUPS = 100  # to compare two by two, which makes 4,950 pairs; all together are any number
MOST_DISTINCT = 8000  # ballots to compare, whose matrix takes half a gigabyte; of more, some voters are taken
LEAST_OF_A_GROUP = 2  # voters, where some are taken
PATIENCE = 60.0  # seconds for the kernel values
FEW_PERMUTATIONS = 19  # where no number of them would do for so many pairs, and p-values come from exact moments
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
    shift: FloatArray | None = None  # (n_items,): how much lower each item stands in the first group, where they differ
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


def groups_to_compare(source: Source, wanted: tuple[str, ...] = ()) -> list[int]:
    """Return the groups to compare: those that are wanted, or all, those of a single voter left out."""
    groups, of_row = source.named_groups
    voters = np.bincount(of_row, source.rankings.counts, len(groups)) if groups else np.zeros(0)
    for name in wanted:
        if name not in groups:
            known = listing(list(groups), MOST_NAMED) if groups else "not known"
            raise RankingError(f"there is no group {printable(name)!r}; the groups are {known}")
        if voters[groups.index(name)] < 2:
            raise RankingError(f"the group {printable(name)!r} has a single voter; a test needs two")
    if len(set(wanted)) == 1:
        raise RankingError(f"{printable(wanted[0])!r} is the only group named; name two or more to compare")
    if wanted:
        return sorted({groups.index(name) for name in wanted})
    return [int(group) for group in np.flatnonzero(voters > 1)]


def compare_groups(ballots: Ballots, every: list[int], kernel: Kernel, settings: Settings) -> Comparisons | None:
    """Return what the groups differ in, or None where there are not two."""
    if len(every) < 2:
        return None
    return (
        compare_two(ballots, every, kernel, settings)
        if len(every) == 2
        else compare_many(ballots, every, kernel, settings)
    )


def compare_two(ballots: Ballots, numbers: list[int], kernel: Kernel, settings: Settings) -> Comparisons:
    """Return what two groups differ in."""
    parts = within_reach([ballots.of_group(number) for number in numbers], kernel, settings)
    result = pair_test(parts[0], parts[1], kernel, settings)
    pair = Comparison(numbers[0], numbers[1], result.pvalue, result.effect, result.statistic)
    return Comparisons(
        2,
        result.pvalue,
        result.effect,
        tuple(numbers),
        tuple(part.n_voters for part in parts),
        [in_detail(pair, ballots, result)],
        by_tail=False,
        error=relative_error(result),
    )


def compare_many(ballots: Ballots, every: list[int], kernel: Kernel, settings: Settings) -> Comparisons:
    """Return what several groups differ in: all together, then the largest two by two."""
    numbers = largest_groups(ballots, every)
    together, parts = omnibus_test(ballots, every, kernel, settings)
    of_pairs = together
    if len(numbers) < len(every):
        of_pairs, parts = omnibus_test(ballots, numbers, kernel, settings)
    coarse = len(numbers) * (len(numbers) - 1) / 2 > LEVEL * (1 + settings.n_permutations)
    found = of_pairs.pairwise(alpha=LEVEL, n_permutations=FEW_PERMUTATIONS if coarse else settings.n_permutations)
    pairs: list[Comparison] = []
    for place in found.order():
        a, b = int(found.first[place]), int(found.second[place])
        corrected, effect = float(found.adjusted_pvalues[place]), float(found.effects[place])
        pair = Comparison(numbers[a], numbers[b], corrected, effect, float(found.statistics[place]))
        if pair.differs and len(pairs) < MOST_DETAILS:
            pair = in_detail(pair, ballots, pair_test(parts[a], parts[b], kernel, settings))
        pairs.append(pair)
    return Comparisons(
        len(every),
        together.pvalue,
        together.effect,
        tuple(numbers),
        tuple(part.n_voters for part in parts),
        pairs,
        by_tail=found.adjusted_from == "moments",
        error=relative_error(together),
    )


def largest_groups(ballots: Ballots, numbers: list[int]) -> list[int]:
    """Return so many of the groups that every two of them can be compared, in the order in which they come."""
    voters = ballots.by_group.sum(axis=0)[numbers]
    return [numbers[place] for place in sorted(np.argsort(-voters, kind="stable")[:MOST_GROUPS].tolist())]


def omnibus_test(
    ballots: Ballots, numbers: list[int], kernel: Kernel, settings: Settings
) -> tuple[KSampleResult, list[Data]]:
    """Return the test of some groups, numbered as they come, and the voters of each who took part."""
    from rankernel.stats.k_sample import k_sample_test

    parts = within_reach([ballots.of_group(number) for number in numbers], kernel, settings)
    places = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    result = k_sample_test(
        concat(parts),
        places,
        kernel,
        n_permutations=settings.n_permutations,
        rng=settings.seed,
        method=settings.method,
    )
    return result, parts


def pair_test(first: Data, second: Data, kernel: Kernel, settings: Settings) -> MMDResult:
    """Return the test of two groups."""
    from rankernel.stats.mmd import mmd_test

    return mmd_test(
        first, second, kernel, n_permutations=settings.n_permutations, rng=settings.seed, method=settings.method
    )


def relative_error(result: GroupTestResult) -> float:
    """Return what estimated kernel values add to a statistic, in parts of its spread by chance."""
    return result.statistic_mcse / max(float(result.null_distribution.std()), 1e-300)


def within_reach(parts: list[Data], kernel: Kernel, settings: Settings) -> list[Data]:
    """Return all voters of the groups or, where their kernel values take too much room or time, some of each.

    They are taken in proportion, so that large groups stay large.
    """
    for _ in range(2):
        distinct = concat(parts).unique()
        most = len(distinct)
        if most > MOST_DISTINCT:
            most = MOST_DISTINCT
        elif (seconds := kernel.plan(distinct, method=settings.method).seconds) > PATIENCE:
            most = int(most * (PATIENCE / seconds) ** 0.5)
        if most == len(distinct):
            return parts
        share = most / sum(part.n_voters for part in parts)
        sizes = [max(int(part.n_voters * share), LEAST_OF_A_GROUP) for part in parts]
        taken = [
            some_voters(part.counts, n, settings.seed + g) for g, (part, n) in enumerate(zip(parts, sizes, strict=True))
        ]
        parts = [with_counts(part[rows], counts) for part, (rows, counts) in zip(parts, taken, strict=True)]
    return parts


def in_detail(pair: Comparison, ballots: Ballots, result: MMDResult) -> Comparison:
    """Return a pair of groups with all there is to say: what chance makes of it and, if it differs, in what."""
    pair = replace(pair, interval=result.effect_interval, null=result.null_distribution)
    if not pair.differs:
        return pair
    whole = [ballots.of_group(number) for number in (pair.first, pair.second)]
    first, second = (standings(own, ballots.approving) for own in whole)
    items = ballots.rankings.items
    differing = result.differences(contributions="pairs").pairs[:MOST_PAIRS] if len(items) > 1 else ()
    groups = count_majorities(whole[0]), count_majorities(whole[1])
    pairs = tuple(pair_share(each.first, each.second, items, groups) for each in differing)
    return replace(pair, shift=first - second, pairs=pairs)


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
