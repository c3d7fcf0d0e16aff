"""The report of comparisons: leaderboard, the judges behind it, and tests of groups among comparisons of two items."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils import IntArray
from rankernel.comparisons import Comparisons
from rankernel.data import Data, as_data
from rankernel.errors import NotCharacteristicWarning, RankingError
from rankernel.preferences import Preferences
from rankernel.reports.ballots import Source
from rankernel.reports.groups import (
    ALPHA,
    MAX_DRAWN,
    MAX_INTERVALS,
    MAX_PAIRS,
    Comparison,
    GroupComparisons,
    PairShare,
    relative_error,
    wilson_interval,
)

if TYPE_CHECKING:
    from rankernel.models.leaderboard import Leaderboard
    from rankernel.reports.summary import Settings

MAX_PARTIAL = 10  # items up to which the partial orders of judges are shown; of more, their Bradley-Terry rankings
SCORES = {"bradley_terry": "Bradley-Terry strength", "borda": "mean win rate"}


def comparison_source(data: Comparisons, by: Any = None, **fields: Any) -> Source:
    """Return a source of comparisons.

    Its rankings are those of the judges. The groups of ``by`` are groups of judges if every judge is in one of them,
    otherwise groups of comparisons.
    """
    rankings = rankings_of_judges(data)
    if by is None:
        return Source(rankings, comparisons=data, **fields)
    names, codes = data.groups(by)
    labels = np.array(names, dtype=str)
    if len(rankings) > 1:
        of_judge = np.full(data.n_judges, -1)
        of_judge[data.judge] = codes
        if (of_judge[data.judge] == codes).all():
            shown = rankings.users if isinstance(rankings, Preferences) else rankings.labels["group"].tolist()
            rows = [data.judges.index(judge) for judge in shown]
            return Source(rankings, comparisons=data, groups=labels[of_judge[rows]], **fields)
    return Source(rankings, comparisons=data, comparison_groups=labels[codes], **fields)


def rankings_of_judges(data: Comparisons) -> Data:
    """Return one row per judge: a partial order if there are few items, else a Bradley-Terry ranking.

    Judges with too few comparisons for a ranking are left out. Without judges there is one row, the ranking of all.
    """
    if data.judges and data.n_items <= MAX_PARTIAL:
        preferences = data.preferences()
        return preferences if len(preferences) == 1 or not preferences.is_ranking().all() else with_judges(preferences)
    if data.judges:
        with suppress(RankingError):  # no judge has enough comparisons
            return data.rankings()
    return data.rankings(np.zeros(len(data)), min_comparisons=1)


def with_judges(preferences: Preferences) -> Data:
    """Return preferences that are rankings as rankings, labelled by their judge."""
    rankings: Any = as_data(preferences)
    return type(rankings)._trusted(
        rankings.ranks, rankings.items, rankings.counts, {"group": np.array(preferences.users)}
    )


def find_leaderboard(data: Comparisons, seed: int) -> Leaderboard:
    """Return the leaderboard by Bradley-Terry strengths or, if these do not exist, by mean win rates."""
    from rankernel.models.leaderboard import leaderboard

    found: Leaderboard
    try:
        found = leaderboard(data, rng=seed)
    except RankingError:  # not all items are connected by wins in both directions
        found = leaderboard(data, score="borda", rng=seed)
    return found


def behind(data: Comparisons, first: str, second: str) -> dict[str, int]:
    """Return the comparisons of two items: their number, wins, losses and ties, and the number of their judges."""
    a, b = data.items.index(first), data.items.index(second)
    forward, backward = ((data.first == x) & (data.second == y) for x, y in ((a, b), (b, a)))
    rows = np.flatnonzero(forward | backward)
    won = np.where(forward, data.outcome, -data.outcome)[rows]
    n_judges = len(np.unique(data.judge[rows])) if data.judges else 0
    wins, losses = int((won > 0).sum()), int((won < 0).sum())
    return {"n": len(rows), "wins": wins, "losses": losses, "ties": len(rows) - wins - losses, "n_judges": n_judges}


def sizes_of_items(data: Comparisons) -> tuple[IntArray, IntArray]:
    """Return the number of comparisons of each item, and of the judges who made them."""
    items = np.concatenate([data.first, data.second])
    n_comparisons = np.bincount(items, minlength=data.n_items)
    if not data.judges:
        return n_comparisons, np.zeros_like(n_comparisons)
    distinct = np.unique(items * data.n_judges + np.concatenate([data.judge, data.judge]))
    return n_comparisons, np.bincount(distinct // data.n_judges, minlength=data.n_items)


def judges_of_half(data: Comparisons) -> int:
    """Return the smallest number of judges who made half of the comparisons."""
    largest = np.sort(np.bincount(data.judge))[::-1]
    return int(np.searchsorted(np.cumsum(largest), len(data) / 2) + 1)


# ---------------------------------------------------------------------- groups of comparisons


def compare_battles(source: Source, groups: list[int], settings: Settings) -> GroupComparisons | None:
    """Return the tests of groups of comparisons with the Kendall kernel; None if there are fewer than two groups.

    Comparisons are permuted within the pair of items that they compare, as groups may compare different pairs.
    """
    from rankernel.kernels import Kendall
    from rankernel.stats.k_sample import k_sample_test

    data, (names, codes) = source.comparisons, source.named_groups
    assert data is not None
    if len(groups) < 2:
        return None
    sizes = np.bincount(codes, minlength=len(names))
    rows = np.flatnonzero(np.isin(codes, groups))
    used, of_row, n_permutations = data[rows], codes[rows], settings.n_permutations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCharacteristicWarning)  # of one pair of items, win rates are what can differ
        result = k_sample_test(used, of_row, Kendall(), n_permutations=n_permutations, rng=settings.rng)
    tests = result.pairwise(alpha=ALPHA, n_permutations=n_permutations)
    bound, intervals = (1 + 1e-9) / (1 + n_permutations), tests.effect_intervals.tolist()
    pairs = [
        Comparison(
            int(tests.first[index]),
            int(tests.second[index]),
            float(tests.adjusted_pvalues[index]),
            bool(tests.pvalues[index] <= bound),
            float(tests.effects[index]),
            float(tests.statistics[index]),
            tuple(intervals[index]) if len(tests) <= MAX_INTERVALS else None,
        )
        for index in tests.order()
    ]
    drawn = sorted(sorted(groups, key=lambda group: -sizes[group])[:MAX_DRAWN])
    return GroupComparisons(
        len(groups),
        result.pvalue,
        result.effect,
        tuple(groups),
        tuple(sizes[groups].tolist()),
        pairs,
        relative_error(result),
        str(result.kernel),
        tests.adjusted_from == "moments",
        tuple(drawn),
        tuple(differing_pairs(data, codes, drawn)),
        result.effect_interval,
    )


def differing_pairs(data: Comparisons, codes: IntArray, groups: list[int]) -> list[PairShare]:
    """Return the pairs of items whose win rates differ most between groups, if significant after Bonferroni.

    The test of a pair is that of equal means of 1 for a win, 0 for a loss and one half for a tie, over the groups that
    all compared the pair.
    """
    from scipy.special import chdtrc

    parts = [data[np.flatnonzero(codes == group)] for group in groups]
    wins, ties = (np.stack([getattr(part, name) for part in parts]) for name in ("wins", "ties"))
    games = wins + wins.transpose(0, 2, 1) + ties
    total = games.sum(axis=0)
    compared = np.triu((games > 0).all(axis=0), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        means, overall = (wins + ties / 2) / games, (wins + ties / 2).sum(axis=0) / total
        variances = (wins + ties / 4).sum(axis=0) / total - overall**2
        statistics = (games * (means - overall) ** 2).sum(axis=0) / variances
    pvalues = np.where(compared & (variances > 0), chdtrc(len(groups) - 1, np.nan_to_num(statistics)), 1.0)
    found = []
    for cell in np.argsort(pvalues, axis=None)[:MAX_PAIRS].tolist():
        a, b = divmod(cell, data.n_items)
        if pvalues[a, b] * compared.sum() > ALPHA:
            break
        if means[0, a, b] < means[1:, a, b].mean():
            a, b = b, a
        n, won, lost = games[:, a, b], wins[:, a, b], wins[:, b, a]
        intervals = tuple(map(wilson_interval, won.tolist(), n.tolist()))
        shares, against = (tuple((each / n).tolist()) for each in (won, lost))
        found.append(PairShare(data.items[a], data.items[b], shares, against, intervals))
    return found
