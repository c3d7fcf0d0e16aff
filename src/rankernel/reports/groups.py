"""Comparison of groups of voters by the maximum mean discrepancy: all groups jointly, then in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rankernel._utils import FloatArray, Mask
from rankernel._utils.checks import printable
from rankernel.data import Data, concat, with_counts
from rankernel.errors import RankingError
from rankernel.gram.evaluator import slices
from rankernel.kernels.base import Kernel
from rankernel.preferences import Preferences, relations_of_ranks
from rankernel.reports.ballots import Ballots, Source, first_items, sample_voters, standings_of_rows
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
MAX_INTERVALS = 100  # pairs of groups whose effects get intervals; of more only those that are described in detail
MAX_DRAWN = 7  # groups in one picture
N_BOOTSTRAP = 999
NORMAL_QUANTILE = 1.959963984540054  # 97.5%
CHUNK = 2**22  # numbers drawn at once


@dataclass(frozen=True)
class PairShare:
    """The shares of groups that rank one item above another."""

    first: str
    second: str
    shares: tuple[float, ...]
    against: tuple[float, ...]  # shares with the reverse preference; all others are undecided
    intervals: tuple[tuple[float, float], ...]  # 95% intervals of the shares


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of two groups."""

    first: int  # indices of the groups
    second: int
    pvalue: float  # corrected for the number of pairs
    at_bound: bool  # whether no permutation gave as large a statistic
    effect: float  # share of the dispersion of the voters between the two groups
    statistic: float  # squared MMD
    interval: tuple[float, float] | None = None  # 95% interval of the effect
    null: FloatArray | None = None  # statistics of random divisions of the voters, for pairs with details
    shift: FloatArray | None = None  # (n_items,): mean position in the first group less that in the second
    shift_intervals: FloatArray | None = None  # (n_items, 2): 95% bootstrap intervals of the shifts
    first_shares: FloatArray | None = None  # (n_items, 2): share of first choices in both groups
    first_intervals: FloatArray | None = None  # (n_items, 2): 95% bootstrap intervals of their differences
    pairs: tuple[PairShare, ...] = ()  # pairs of items that contribute most to the difference

    @property
    def differs(self) -> bool:
        """Whether the difference is significant."""
        return self.pvalue <= ALPHA


@dataclass(frozen=True, eq=False)
class GroupComparisons:
    """The joint test of all groups and the comparisons of pairs."""

    n_groups: int  # in the joint test
    pvalue: float  # of the joint test
    effect: float
    groups: tuple[int, ...]  # indices of the groups compared in pairs: all, or the largest
    n_tested: tuple[int, ...]  # voters of each of these groups who were tested
    pairs: list[Comparison]  # the most significant first
    error: float  # standard error due to estimated kernel values, relative to the null standard deviation
    kernel: str
    from_moments: bool = False  # whether p-values of pairs come from exact moments instead of permutations
    drawn: tuple[int, ...] = ()  # of more than two groups: the largest ones
    items: tuple[PairShare, ...] = ()  # pairs of items in which these differ most
    interval: tuple[float, float] | None = None  # 95% interval of the effect

    @property
    def details(self) -> list[Comparison]:
        """The pairs to describe in detail."""
        return [pair for pair in self.pairs if pair.null is not None]


def groups_to_compare(source: Source, names: tuple[str, ...] | None) -> list[int]:
    """Return the indices of the named groups (default: all), without groups of a single voter."""
    groups, group_of_row = source.named_groups
    counts = source.rankings.counts if source.comparison_groups is None else None
    voters = np.bincount(group_of_row, counts, len(groups)) if groups else np.zeros(0)
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
) -> GroupComparisons | None:
    """Return the comparison of groups, or None if there are fewer than two."""
    if len(groups) < 2:
        return None
    bound = (1 + 1e-9) / (1 + settings.n_permutations)
    if len(groups) == 2:
        parts = sampled_parts([ballots.of_group(group) for group in groups], kernel, settings, max_distinct)
        result = pair_test(parts[0], parts[1], kernel, settings)
        pvalue = result.pvalue
        pair = Comparison(groups[0], groups[1], pvalue, pvalue <= bound, result.effect, result.statistic)
        pairs = [with_details(pair, ballots, result, settings)]
        return GroupComparisons(
            2,
            pvalue,
            result.effect,
            tuple(groups),
            sizes_of(parts),
            pairs,
            relative_error(result),
            str(kernel),
            interval=result.effect_interval,
        )
    voters = ballots.by_group.sum(axis=0)[groups]
    by_size = [groups[index] for index in np.argsort(-voters, kind="stable").tolist()]
    largest, drawn = sorted(by_size[:max_groups]), tuple(sorted(by_size[:MAX_DRAWN]))
    joint, parts = joint_test(ballots, groups, kernel, settings, max_distinct)
    of_pairs = joint
    if len(largest) < len(groups):
        of_pairs, parts = joint_test(ballots, largest, kernel, settings, max_distinct)
    too_few = len(largest) * (len(largest) - 1) / 2 > ALPHA * (1 + settings.n_permutations)
    tests = of_pairs.pairwise(alpha=ALPHA, n_permutations=FEW_PERMUTATIONS if too_few else settings.n_permutations)
    intervals = tests.effect_intervals.tolist() if len(tests) <= MAX_INTERVALS else [None] * len(tests)
    pairs = []
    for index in tests.order():
        a, b = int(tests.first[index]), int(tests.second[index])
        adjusted, at_bound = float(tests.adjusted_pvalues[index]), bool(tests.pvalues[index] <= bound)
        effect, statistic = float(tests.effects[index]), float(tests.statistics[index])
        pair = Comparison(largest[a], largest[b], adjusted, at_bound, effect, statistic, intervals[index])
        if pair.differs and len(pairs) < MAX_DETAILS:
            pair = with_details(pair, ballots, pair_test(parts[a], parts[b], kernel, settings), settings)
        pairs.append(pair)
    found = item_pairs(joint) if joint.pvalue <= ALPHA and ballots.rankings.n_items > 1 else []
    return GroupComparisons(
        len(groups),
        joint.pvalue,
        joint.effect,
        tuple(largest),
        sizes_of(parts),
        pairs,
        relative_error(joint),
        str(kernel),
        tests.adjusted_from == "moments",
        drawn,
        tuple(pair_share([ballots.of_group(group) for group in drawn], *names) for names in found),
        joint.effect_interval,
    )


def sizes_of(parts: list[Data]) -> tuple[int, ...]:
    """Return the number of voters of each group."""
    return tuple(part.n_voters for part in parts)


def relative_error(result: GroupTestResult) -> float:
    """Return the standard error due to estimated kernel values, relative to the null standard deviation."""
    return result.statistic_mcse / max(float(result.null_distribution.std()), 1e-300)


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


def with_details(pair: Comparison, ballots: Ballots, result: MMDResult, settings: Settings) -> Comparison:
    """Return a comparison with its null distribution and, if significant, the items that differ most.

    A pair of items is listed if the interval of the difference between the two shares excludes 0.
    """
    pair = replace(pair, interval=result.effect_interval, null=result.null_distribution)
    if not pair.differs:
        return pair
    groups = [ballots.of_group(group) for group in (pair.first, pair.second)]
    n_items = ballots.rankings.n_items
    wanted = item_pairs(result) if n_items > 1 else []
    values: list[FloatArray] = []
    for group in groups:
        strict = [prefers(group, *names).astype(np.float64) for names in wanted]
        firsts = first_items(group) / np.maximum(first_items(group).sum(axis=1, keepdims=True), 1)
        values.append(np.column_stack([standings_of_rows(group, ballots.approve_all_share), firsts, *strict]))
    intervals = bootstrap_intervals(groups, values, np.random.default_rng([settings.rng, 4]))
    first, second = (group.counts @ of_rows / group.n_voters for group, of_rows in zip(groups, values, strict=True))
    certain = [
        names for names, (low, high) in zip(wanted, intervals[2 * n_items :], strict=True) if low > 0 or high < 0
    ]
    of_firsts = slice(n_items, 2 * n_items)
    return replace(
        pair,
        shift=(first - second)[:n_items],
        shift_intervals=intervals[:n_items],
        first_shares=np.column_stack([first[of_firsts], second[of_firsts]]),
        first_intervals=intervals[of_firsts],
        pairs=tuple(pair_share(groups, *names) for names in certain),
    )


def item_pairs(result: GroupTestResult) -> list[tuple[str, str]]:
    """Return the pairs of items that contribute most to a difference between groups."""
    return [(each.first, each.second) for each in result.differences().pairs[:MAX_PAIRS]]


def prefers(group: Data, first: str, second: str) -> Mask:
    """Return whether each row ranks one item above another."""
    a, b = group.items.index(first), group.items.index(second)
    if isinstance(group, Preferences):
        return np.asarray(group.before[:, a, b])
    return np.asarray(relations_of_ranks(group.ranks[:, [a, b]])[:, 0, 1])


def pair_share(groups: Sequence[Data], first: str, second: str) -> PairShare:
    """Return the shares of groups that rank one item above another, with their intervals."""
    ahead = [int(group.counts @ prefers(group, first, second)) for group in groups]
    behind = [int(group.counts @ prefers(group, second, first)) for group in groups]
    sizes = [group.n_voters for group in groups]
    shares, against = (tuple(k / n for k, n in zip(ks, sizes, strict=True)) for ks in (ahead, behind))
    return PairShare(first, second, shares, against, tuple(map(wilson_interval, ahead, sizes)))


def wilson_interval(successes: float, trials: float) -> tuple[float, float]:
    """Return the 95% interval of a proportion (Wilson 1927); SciPy's statistics are slow to import.

    Examples
    --------
    >>> [round(end, 4) for end in wilson_interval(6, 10)]
    [0.3127, 0.8318]
    """
    square = NORMAL_QUANTILE**2
    center = (successes + square / 2) / (trials + square)
    half = NORMAL_QUANTILE * (successes * (trials - successes) / trials + square / 4) ** 0.5 / (trials + square)
    return max(center - half, 0.0), min(center + half, 1.0)


def bootstrap_intervals(groups: Sequence[Data], values: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
    """Return 95% percentile intervals of the difference between the means of two groups, resampling their voters.

    ``values`` has a row for each row of a group and a column for each mean; the result has a row for each mean.
    """
    means = []
    for group, of_rows in zip(groups, values, strict=True):
        drawn, n_voters = np.empty((N_BOOTSTRAP, of_rows.shape[1])), group.n_voters
        for rows in slices(N_BOOTSTRAP, max(CHUNK // len(group), 1)):
            counts = rng.multinomial(n_voters, group.counts / n_voters, size=rows.stop - rows.start)
            drawn[rows] = counts @ of_rows / n_voters
        means.append(drawn)
    return np.asarray(np.quantile(means[0] - means[1], [0.025, 0.975], axis=0).T)
