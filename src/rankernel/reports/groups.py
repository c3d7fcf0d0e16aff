"""Comparison of groups of voters, or of comparisons: tests of all groups jointly and in pairs, and what differs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils import FloatArray
from rankernel._utils.checks import printable
from rankernel._utils.resources import slices
from rankernel.data import Data, concat, with_counts
from rankernel.errors import NotCharacteristicWarning, RankingError
from rankernel.reports.ballots import Ballots, Source, count_shares, sample_voters
from rankernel.reports.clusters import Settings, affordable
from rankernel.reports.text import join_names
from rankernel.stats.differences import Differences, PairDifference, share_intervals

if TYPE_CHECKING:
    from rankernel.comparisons import Comparisons
    from rankernel.stats.groups import GroupTestResult
    from rankernel.stats.pairwise import PairwiseResult

ALPHA = 0.05  # family-wise, over all pairs of groups
MAX_DISTINCT = 8000  # ballots tested, whose Gram matrix takes half a gigabyte; of more, voters are sampled
MAX_SECONDS = 60.0  # for the kernel values
FEW_PERMUTATIONS = 19  # if p-values come from exact moments, as permutations are too few for the number of pairs
MAX_NAMES = 12  # groups listed in an error message
MAX_DETAILS = 3  # pairs of groups that are described in detail
MAX_PAIRS = 4  # pairs of items in such a description
MAX_INTERVALS = 100  # pairs of groups whose effects get intervals; of more only those that are described in detail
MAX_DRAWN = 7  # groups in one picture
N_BOOTSTRAP = 999
QUANTILE = 1.959963984540054  # of the normal distribution at 97.5%; SciPy's statistics are slow to import
CHUNK = 2**22  # numbers drawn at once
NUMBERS = ("statistic", "statistic_mcse", "pvalue", "moment_pvalue", "effect", "effect_mcse")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The test of two groups and, for the first few significant pairs, in what they differ."""

    first: str
    second: str
    n_voters: tuple[int, int]  # tested
    adjusted_pvalue: float  # for the number of pairs
    statistic: float  # squared MMD
    statistic_mcse: float
    pvalue: float
    moment_pvalue: float
    effect: float  # share of the dispersion of the voters between the two groups
    effect_mcse: float
    adjusted_moment_pvalue: float  # for the number of pairs, of the p-value from moments
    effect_interval: tuple[float, float] | None = None  # 95%
    null: FloatArray | None = None  # statistics of random divisions of the voters; None without a description
    differences: Differences | None = None  # None without a significant difference, as are the others
    shares: FloatArray | None = None  # (2, n_items): shares of first choices, or of approvals, in both groups
    share_intervals: FloatArray | None = None  # (n_items, 2): 95% bootstrap intervals of their differences

    @property
    def title(self) -> str:
        """The names of the groups, which tell the pair."""
        between = " – " if " and " in f"{self.first}{self.second}" else " and "
        return f"{self.first}{between}{self.second}"

    @property
    def differs(self) -> bool:
        """Whether the difference is significant."""
        return self.adjusted_pvalue <= ALPHA


@dataclass(frozen=True, eq=False)
class GroupComparisons:
    """The joint test of all groups and the comparisons of pairs."""

    joint: GroupTestResult  # of two groups, their test
    n_groups: int  # in the joint test
    sizes: dict[str, int]  # voters of the groups compared in pairs, tested or not
    pairs: list[Comparison]  # the most significant first
    from_moments: bool = False  # whether p-values of pairs come from exact moments instead of permutations
    drawn: tuple[str, ...] = ()  # of more than two groups: the largest ones
    differences: Differences | None = None  # between all groups, if significant; between comparisons, those drawn

    @property
    def details(self) -> list[Comparison]:
        """The pairs to describe in detail."""
        return [pair for pair in self.pairs if pair.null is not None]

    @property
    def n_tested(self) -> int:
        """The number of voters of the groups compared in pairs who were tested."""
        tested = {name: n for p in self.pairs for name, n in zip((p.first, p.second), p.n_voters, strict=True)}
        return sum(tested.values())

    @property
    def n_permutations(self) -> int:
        """The number of permutations of each test."""
        return len(self.joint.null_distribution)

    def at_bound(self, pvalue: float) -> bool:
        """Return whether an unadjusted permutation p-value is as small as possible."""
        return pvalue <= (1 + 1e-9) / (1 + self.n_permutations)


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


def groups_in_pairs(n_voters: int) -> int:
    """Return how many groups are compared in pairs, which take about 0.1 ms times groups times voters."""
    return min(max(500_000 // n_voters, 20), 100)


def compare_groups(
    ballots: Ballots,
    groups: list[int],
    settings: Settings,
    max_groups: int | None = None,
    max_distinct: int = MAX_DISTINCT,
) -> GroupComparisons | None:
    """Return the comparison of groups of voters, or None if there are fewer than two."""
    from rankernel.stats.groups import k_sample_test, mmd_test

    if len(groups) < 2:
        return None
    kernel, n_permutations = settings.kernel, settings.n_permutations
    options: dict[str, Any] = {"n_permutations": n_permutations, "rng": settings.rng, "method": settings.method}
    sizes = dict(zip(ballots.groups, ballots.by_group.sum(axis=0).tolist(), strict=True))

    def tested_voters(groups: list[int]) -> dict[str, Data]:
        parts = sampled_parts([ballots.of_group(group) for group in groups], settings, max_distinct)
        return dict(zip([ballots.groups[group] for group in groups], parts, strict=True))

    def joint_test(parts: dict[str, Data]) -> Any:
        labels = np.repeat(np.array(list(parts)), [len(part) for part in parts.values()])
        return k_sample_test(concat(parts.values()), labels, kernel, **options)

    parts = tested_voters(groups)
    if len(parts) == 2:
        first, second = parts.values()
        return one_comparison(mmd_test(first, second, kernel, **options), ballots, list(parts), settings)
    joint = of_pairs = joint_test(parts)
    by_size = sorted(parts, key=lambda name: -sizes[name])
    if max_groups is None:
        max_groups = groups_in_pairs(sum(part.n_voters for part in parts.values()))
    if len(groups) > max_groups:
        largest = [group for group in groups if ballots.groups[group] in by_size[:max_groups]]
        parts = tested_voters(largest)
        of_pairs = joint_test(parts)
    too_few = len(parts) * (len(parts) - 1) / 2 > ALPHA * (1 + n_permutations)
    tests = of_pairs.pairwise(alpha=ALPHA, n_permutations=FEW_PERMUTATIONS if too_few else n_permutations)
    pairs = comparisons_of(tests, {name: part.n_voters for name, part in parts.items()})
    for number, pair in enumerate(pairs[:MAX_DETAILS]):
        if pair.differs:
            result = mmd_test(parts[pair.first], parts[pair.second], kernel, **options)
            pairs[number] = with_details(pair, result, ballots, settings.rng)
    differences = joint.differences() if joint.pvalue <= ALPHA and ballots.rankings.n_items > 1 else None
    sizes, from_moments = {name: sizes[name] for name in parts}, tests.adjusted_from == "moments"
    return GroupComparisons(joint, len(groups), sizes, pairs, from_moments, largest_groups(joint, sizes), differences)


def largest_groups(joint: GroupTestResult, sizes: dict[str, int]) -> tuple[str, ...]:
    """Return the groups that a picture shows, in the order of the test."""
    largest = sorted(sizes, key=lambda name: -sizes[name])[:MAX_DRAWN]
    return tuple(name for name in joint.groups if name in largest)


def one_comparison(
    result: GroupTestResult, ballots: Ballots, names: Sequence[str], settings: Settings
) -> GroupComparisons:
    """Return the comparison of two groups by one test."""
    numbers: dict[str, Any] = {name: getattr(result, name) for name in NUMBERS}
    numbers |= {"adjusted_pvalue": result.pvalue, "adjusted_moment_pvalue": result.moment_pvalue}
    pair = Comparison(names[0], names[1], (result.n_voters[0], result.n_voters[1]), **numbers)
    sizes = {name: int(ballots.by_group[:, ballots.groups.index(name)].sum()) for name in names}
    return GroupComparisons(result, 2, sizes, [with_details(pair, result, ballots, settings.rng)])


def comparisons_of(tests: PairwiseResult, sizes: dict[str, int]) -> list[Comparison]:
    """Return the comparisons of all pairs of groups, the most significant first."""
    from rankernel.stats.pairwise import adjust_pvalues

    intervals = tests.effect_intervals.tolist() if len(tests) <= MAX_INTERVALS else [None] * len(tests)
    columns = {name: getattr(tests, name if name.endswith("mcse") else f"{name}s") for name in NUMBERS}
    tested = np.isfinite(tests.pvalues)
    columns["adjusted_moment_pvalue"] = np.full(len(tested), np.nan)
    columns["adjusted_moment_pvalue"][tested] = adjust_pvalues(tests.moment_pvalues[tested], tests.correction)
    found = []
    for index in tests.order():
        first, second = tests.first[index], tests.second[index]
        numbers: dict[str, Any] = {name: float(column[index]) for name, column in columns.items()}
        adjusted, both = float(tests.adjusted_pvalues[index]), (sizes[first], sizes[second])
        found.append(Comparison(first, second, both, adjusted, **numbers, effect_interval=intervals[index]))
    return found


def certain_differences(differences: Differences) -> Differences:
    """Return the items and pairs of items with certain changes between two groups; all of them for several groups."""
    items, pairs = differences.items, differences.pairs
    return replace(
        differences,
        items=tuple(item for item in items if item.change_interval is None or excludes_zero(item.change_interval)),
        pairs=tuple(pair for pair in pairs if pair.change_interval is None or excludes_zero(pair.change_interval)),
    )


def excludes_zero(interval: Sequence[float], digits: int = 2) -> bool:
    """Return whether 0 is outside the interval of a change, rounded to the shown number of digits."""
    return round(interval[0], digits) > 0 or round(interval[1], digits) < 0


def pairs_in_words(differences: Differences | None) -> tuple[PairDifference, ...]:
    """Return the pairs of items that contribute most to a difference, if their changes are certain."""
    return () if differences is None else certain_differences(differences).pairs[:MAX_PAIRS]


def relative_error(result: GroupTestResult) -> float:
    """Return the standard error due to estimated kernel values, relative to the null standard deviation."""
    return result.statistic_mcse / max(float(result.null_distribution.std()), 1e-300)


def sampled_parts(parts: list[Data], settings: Settings, max_distinct: int) -> list[Data]:
    """Return the groups or, if kernel values take too much memory or time, random samples in proportion to them."""
    for _ in range(2):
        distinct = concat(parts).unique()
        limit = max_distinct if len(distinct) > max_distinct else affordable(distinct, settings, MAX_SECONDS)
        if limit == len(distinct):
            return parts
        share = limit / sum(part.n_voters for part in parts)
        samples = [
            sample_voters(part.counts, max(int(part.n_voters * share), 2), np.random.default_rng([settings.rng, group]))
            for group, part in enumerate(parts)
        ]
        parts = [with_counts(part[rows], counts) for part, (rows, counts) in zip(parts, samples, strict=True)]
    return parts


def with_details(pair: Comparison, result: GroupTestResult, ballots: Ballots, seed: int) -> Comparison:
    """Return a comparison with its null distribution and, if significant, the differences of items."""
    described = replace(pair, effect_interval=result.effect_interval, null=result.null_distribution)
    if not pair.differs:
        return described
    groups = [ballots.of_group(ballots.groups.index(name)) for name in (pair.first, pair.second)]
    values = [count_shares(group, ballots.approve_all_share) for group in groups]
    shares = np.array([group.counts @ each / group.n_voters for group, each in zip(groups, values, strict=True)])
    intervals = bootstrap_intervals(groups, values, np.random.default_rng([seed, 4]))
    differences = replace(result.differences(), groups=(pair.first, pair.second))
    return replace(described, differences=differences, shares=shares, share_intervals=intervals)


def bootstrap_intervals(groups: Sequence[Data], values: Sequence[FloatArray], rng: np.random.Generator) -> FloatArray:
    """Return 95% percentile intervals of the difference between the means of two groups, resampling their voters.

    ``values`` has a row for each row of a group and a column for each mean; the result has a row for each mean.
    """
    means = []
    for group, of_rows in zip(groups, values, strict=True):
        distinct, index = np.unique(of_rows, axis=0, return_inverse=True)  # far fewer than ballots
        counts, n_voters = np.bincount(index.ravel(), group.counts), group.n_voters
        drawn = np.empty((N_BOOTSTRAP, of_rows.shape[1]))
        for rows in slices(N_BOOTSTRAP, max(CHUNK // len(distinct), 1)):
            drawn[rows] = (
                rng.multinomial(n_voters, counts / n_voters, size=rows.stop - rows.start) @ distinct / n_voters
            )
        means.append(drawn)
    return np.asarray(np.quantile(means[0] - means[1], [0.025, 0.975], axis=0).T)


# ---------------------------------------------------------------------- groups of comparisons


def compare_battles(source: Source, groups: list[int], settings: Settings) -> GroupComparisons | None:
    """Return the tests of groups of comparisons with the Kendall kernel; None if there are fewer than two groups.

    Comparisons are permuted within the pair of items that they compare, as groups may compare different pairs.
    """
    from rankernel.kernels import Kendall
    from rankernel.stats.groups import k_sample_test

    data, (names, codes) = source.comparisons, source.named_groups
    assert data is not None
    if len(groups) < 2:
        return None
    rows = np.flatnonzero(np.isin(codes, groups))
    used, labels, n_permutations = data[rows], np.array(names)[codes[rows]], settings.n_permutations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCharacteristicWarning)  # of one pair of items, win rates are what can differ
        joint = k_sample_test(used, labels, Kendall(), n_permutations=n_permutations, rng=settings.rng)
    tests = joint.pairwise(alpha=ALPHA)
    sizes = {names[group]: int((codes == group).sum()) for group in groups}
    drawn = largest_groups(joint, sizes)
    differences = differing_pairs(drawn, [data[np.flatnonzero(codes == names.index(name))] for name in drawn])
    pairs, from_moments = comparisons_of(tests, sizes), tests.adjusted_from == "moments"
    return GroupComparisons(joint, len(groups), sizes, pairs, from_moments, drawn, differences)


def differing_pairs(names: tuple[str, ...], groups: list[Comparisons]) -> Differences:
    """Return the pairs of items whose win rates differ between groups, if significant after Bonferroni.

    The test of a pair is that of equal means of 1 for a win, 0 for a loss and one half for a tie, over the groups that
    all compared the pair. Its contribution is the dispersion between the groups, less its mean without a difference.
    """
    from scipy.special import chdtrc

    items, n_items = groups[0].items, groups[0].n_items
    wins, ties = (np.stack([getattr(part, name) for part in groups]) for name in ("wins", "ties"))
    games = wins + wins.transpose(0, 2, 1) + ties
    total = games.sum(axis=0)
    compared = np.triu((games > 0).all(axis=0), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        means, overall = (wins + ties / 2) / games, (wins + ties / 2).sum(axis=0) / total
        variances = (wins + ties / 4).sum(axis=0) / total - overall**2
        between = (games * (means - overall) ** 2).sum(axis=0)
        statistics, contributions = between / variances, between - (len(groups) - 1) * variances
    pvalues = np.where(compared & (variances > 0), chdtrc(len(groups) - 1, np.nan_to_num(statistics)), 1.0)
    found = []
    for cell in np.argsort(pvalues, axis=None)[:MAX_PAIRS].tolist():
        a, b = divmod(cell, n_items)
        if pvalues[a, b] * compared.sum() > ALPHA:
            break
        if means[0, a, b] < means[1:, a, b].mean():
            a, b = b, a
        n, both = games[:, a, b], np.stack([wins[:, a, b], wins[:, b, a]]) / games[:, a, b]
        limits = (each.tolist() for each in share_intervals(both, both * (1 - both), n, QUANTILE))
        ends, ends_against = (tuple(zip(low, high, strict=True)) for low, high in zip(*limits, strict=True))
        shares, against = map(tuple, both.tolist())
        contribution = float(contributions[a, b])
        found.append(PairDifference(items[a], items[b], shares, against, ends, ends_against, contribution, None))
    total = float(contributions[compared].sum())
    return Differences(names, (), tuple(found), total, 1 - ALPHA)
