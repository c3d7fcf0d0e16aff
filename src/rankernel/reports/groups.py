"""Comparison of groups of voters by the maximum mean discrepancy: all groups jointly, then in pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rankernel._utils import FloatArray
from rankernel._utils.checks import printable
from rankernel.data import Data, concat, with_counts
from rankernel.errors import RankingError
from rankernel.kernels.base import Kernel
from rankernel.reports.ballots import Ballots, Contests, Source, count_contests, sample_voters, standings
from rankernel.reports.text import join_names

if TYPE_CHECKING:
    from rankernel.reports.summary import Settings
    from rankernel.stats.groups import GroupTestResult
    from rankernel.stats.k_sample import KSampleResult
    from rankernel.stats.mmd import MMDResult

ALPHA = 0.05  # family-wise, over all pairs of groups
MAX_GROUPS = 100  # compared in pairs (4,950 of them); the joint test has no limit
MAX_DISTINCT = 8000  # ballots tested, whose Gram matrix takes half a gigabyte; of more, voters are sampled
MAX_SECONDS = 60.0  # for the kernel values
FEW_PERMUTATIONS = 19  # if p-values come from exact moments, as permutations are too few for the number of pairs
MAX_NAMES = 12  # groups listed in an error message
MAX_DETAILS = 3  # pairs of groups that are described in detail
MAX_PAIRS = 4  # pairs of items in such a description


@dataclass(frozen=True)
class PairShare:
    """The shares of two groups that rank one item above another."""

    first: str
    second: str
    shares: tuple[float, float]
    against: tuple[float, float]  # shares with the reverse preference; all others are undecided
    intervals: tuple[tuple[float, float], tuple[float, float]]  # 95% intervals of the shares


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of two groups."""

    first: int  # indices of the groups
    second: int
    pvalue: float  # corrected for the number of pairs
    effect: float  # share of the dispersion of the voters between the two groups
    statistic: float  # squared MMD
    interval: tuple[float, float] | None = None  # 95% interval of the effect, for pairs with details
    null: FloatArray | None = None  # statistics of random divisions of the voters, for pairs with details
    shift: FloatArray | None = None  # (n_items,): mean position in the first group less that in the second
    pairs: tuple[PairShare, ...] = ()  # pairs of items that contribute most to the difference

    @property
    def differs(self) -> bool:
        """Whether the difference is significant."""
        return self.pvalue <= ALPHA


@dataclass(frozen=True, eq=False)
class Comparisons:
    """The joint test of all groups and the comparisons of pairs."""

    n_groups: int  # in the joint test
    pvalue: float  # of the joint test
    effect: float
    groups: tuple[int, ...]  # indices of the groups compared in pairs: all, or the largest
    n_tested: tuple[int, ...]  # voters of each of these groups who were tested
    pairs: list[Comparison]  # the most significant first
    error: float  # standard error due to estimated kernel values, relative to the null standard deviation
    from_moments: bool = False  # whether p-values of pairs come from exact moments instead of permutations

    @classmethod
    def of(
        cls,
        joint: GroupTestResult,
        groups: list[int],
        compared: list[int],
        parts: list[Data],
        pairs: list[Comparison],
        from_moments: bool = False,
    ) -> Comparisons:
        """Return the record of a joint test and of the comparisons in pairs."""
        error = joint.statistic_mcse / max(float(joint.null_distribution.std()), 1e-300)
        sizes = tuple(part.n_voters for part in parts)
        return cls(len(groups), joint.pvalue, joint.effect, tuple(compared), sizes, pairs, error, from_moments)

    @property
    def details(self) -> list[Comparison]:
        """The pairs to describe in detail."""
        return [pair for pair in self.pairs if pair.null is not None]


def groups_to_compare(source: Source, names: tuple[str, ...] | None) -> list[int]:
    """Return the indices of the named groups (default: all), without groups of a single voter."""
    groups, group_of_row = source.named_groups
    voters = np.bincount(group_of_row, source.rankings.counts, len(groups)) if groups else np.zeros(0)
    for name in names or ():
        if name not in groups:
            known = join_names(groups, MAX_NAMES) if groups else "not known"
            raise RankingError(f"there is no group {printable(name)!r}; the groups are {known}")
        if voters[groups.index(name)] < 2:
            raise RankingError(f"the group {printable(name)!r} has a single voter; a test needs two")
    if names and len(set(names)) == 1:
        raise RankingError(f"{printable(names[0])!r} is the only group named; name two or more to compare")
    if names:
        return sorted({groups.index(name) for name in names})
    return [int(group) for group in np.flatnonzero(voters > 1)]


def compare_groups(
    ballots: Ballots,
    groups: list[int],
    kernel: Kernel,
    settings: Settings,
    max_groups: int = MAX_GROUPS,
    max_distinct: int = MAX_DISTINCT,
) -> Comparisons | None:
    """Return the comparison of groups, or None if there are fewer than two."""
    if len(groups) < 2:
        return None
    if len(groups) == 2:
        parts = sampled_parts([ballots.of_group(group) for group in groups], kernel, settings, max_distinct)
        result = pair_test(parts[0], parts[1], kernel, settings)
        pair = Comparison(groups[0], groups[1], result.pvalue, result.effect, result.statistic)
        return Comparisons.of(result, groups, groups, parts, [with_details(pair, ballots, result)])
    largest = largest_groups(ballots, groups, max_groups)
    joint, parts = joint_test(ballots, groups, kernel, settings, max_distinct)
    of_pairs = joint
    if len(largest) < len(groups):
        of_pairs, parts = joint_test(ballots, largest, kernel, settings, max_distinct)
    too_few = len(largest) * (len(largest) - 1) / 2 > ALPHA * (1 + settings.n_permutations)
    tests = of_pairs.pairwise(alpha=ALPHA, n_permutations=FEW_PERMUTATIONS if too_few else settings.n_permutations)
    pairs: list[Comparison] = []
    for index in tests.order():
        a, b = int(tests.first[index]), int(tests.second[index])
        adjusted, effect = float(tests.adjusted_pvalues[index]), float(tests.effects[index])
        pair = Comparison(largest[a], largest[b], adjusted, effect, float(tests.statistics[index]))
        if pair.differs and len(pairs) < MAX_DETAILS:
            pair = with_details(pair, ballots, pair_test(parts[a], parts[b], kernel, settings))
        pairs.append(pair)
    return Comparisons.of(joint, groups, largest, parts, pairs, tests.adjusted_from == "moments")


def largest_groups(ballots: Ballots, groups: list[int], limit: int) -> list[int]:
    """Return the largest groups, in their original order."""
    voters = ballots.by_group.sum(axis=0)[groups]
    return [groups[index] for index in sorted(np.argsort(-voters, kind="stable")[:limit].tolist())]


def joint_test(
    ballots: Ballots, groups: list[int], kernel: Kernel, settings: Settings, max_distinct: int
) -> tuple[KSampleResult, list[Data]]:
    """Return the joint test of groups, labelled by their index in the list, and the voters of each who were tested."""
    from rankernel.stats.k_sample import k_sample_test

    parts = sampled_parts([ballots.of_group(group) for group in groups], kernel, settings, max_distinct)
    labels = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    n_permutations, rng, method = settings.n_permutations, settings.rng, settings.method
    result = k_sample_test(concat(parts), labels, kernel, n_permutations=n_permutations, rng=rng, method=method)
    return result, parts


def pair_test(first: Data, second: Data, kernel: Kernel, settings: Settings) -> MMDResult:
    """Return the test of two groups."""
    from rankernel.stats.mmd import mmd_test

    n_permutations, rng, method = settings.n_permutations, settings.rng, settings.method
    return mmd_test(first, second, kernel, n_permutations=n_permutations, rng=rng, method=method)


def sampled_parts(parts: list[Data], kernel: Kernel, settings: Settings, max_distinct: int) -> list[Data]:
    """Return the groups or, if kernel values take too much memory or time, random samples in proportion to them."""
    for _ in range(2):
        distinct = concat(parts).unique()
        limit = len(distinct)
        if limit > max_distinct:
            limit = max_distinct
        elif (seconds := kernel.plan(distinct, method=settings.method).seconds) > MAX_SECONDS:
            limit = int(limit * (MAX_SECONDS / seconds) ** 0.5)
        if limit == len(distinct):
            return parts
        share = limit / sum(part.n_voters for part in parts)
        samples = [
            sample_voters(part.counts, max(int(part.n_voters * share), 2), np.random.default_rng([settings.rng, group]))
            for group, part in enumerate(parts)
        ]
        parts = [with_counts(part[rows], counts) for part, (rows, counts) in zip(parts, samples, strict=True)]
    return parts


def with_details(pair: Comparison, ballots: Ballots, result: MMDResult) -> Comparison:
    """Return a comparison with its null distribution and, if significant, the items that differ most."""
    pair = replace(pair, interval=result.effect_interval, null=result.null_distribution)
    if not pair.differs:
        return pair
    groups = [ballots.of_group(group) for group in (pair.first, pair.second)]
    first, second = (standings(group, ballots.approve_all_share) for group in groups)
    items = ballots.rankings.items
    differing = result.differences().pairs[:MAX_PAIRS] if len(items) > 1 else ()
    contests = count_contests(groups[0]), count_contests(groups[1])
    pairs = tuple(pair_share(each.first, each.second, items, contests) for each in differing)
    return replace(pair, shift=first - second, pairs=pairs)


def pair_share(first: str, second: str, items: tuple[str, ...], contests: tuple[Contests, Contests]) -> PairShare:
    """Return the shares of two groups that rank one item above another."""
    a, b = items.index(first), items.index(second)
    left, right = (
        (
            float(group.ahead[a, b] / group.n_voters),
            float(group.ahead[b, a] / group.n_voters),
            wilson_interval(int(group.ahead[a, b]), group.n_voters),
        )
        for group in contests
    )
    return PairShare(first, second, (left[0], right[0]), (left[1], right[1]), (left[2], right[2]))


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95% interval of a proportion (Wilson 1927)."""
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)
