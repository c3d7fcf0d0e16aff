"""The report of comparisons: rankings of the judges, the leaderboard, and the judges behind it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from rankernel._utils import IntArray
from rankernel.comparisons import Comparisons
from rankernel.data import Data, as_data
from rankernel.errors import RankingError
from rankernel.preferences import Preferences
from rankernel.reports.ballots import Source, guess_noun

if TYPE_CHECKING:
    from rankernel.models.leaderboard import Leaderboard

MAX_PARTIAL = 10  # items up to which the partial orders of judges are shown; of more, their Bradley-Terry rankings
SCORES = {"bradley_terry": "Bradley-Terry strength", "borda": "mean win rate"}


def comparison_source(data: Comparisons, by: Any = None, **fields: Any) -> Source:
    """Return a source of comparisons.

    Its rankings are those of the judges. The groups of ``by`` are groups of judges if every judge is in one of them,
    otherwise groups of comparisons.
    """
    rankings = rankings_of_judges(data)
    fields = {"noun": guess_noun("", data.source, ()), "about": data.source} | fields
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
