"""One ranking that speaks for many: Borda, Kemeny, and the pairwise preferences behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from rankernel._utils.arrays import FloatArray, RankArray
from rankernel._utils.checks import check_choice, check_integer, check_labels, short_repr
from rankernel._utils.notebook import html_card
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data, as_data, voters
from rankernel.gram.exact.features import means_of_seen
from rankernel.gram.poset_rows import PartialOrders, as_rows
from rankernel.linear_forms import Sight, seen_of_nothing
from rankernel.models.kemeny_search import ROUNDING, hidden_by_rounding, kemeny_order, least_possible_regret
from rankernel.rankings import Rankings

Ties = Literal["keep", "items"]

BLOCK = 2**20  # numbers in memory at once
MOST_ITEMS = 26  # 2**26 numbers are half a gigabyte
DRAWS = 1000  # of preferences whose linear extensions are too many to be counted


@dataclass(frozen=True, eq=False)
class Consensus:
    """A ranking that speaks for many.

    Attributes
    ----------
    ranking : Rankings
        The ranking: one row.
    cost : float
        The sum over all voters of the expected Kendall distance from their ranking; a pair that is tied, here or
        there, counts one half.
    exact : bool
        Whether it is proven that no ranking has a lower cost.
    details : str
        How it was found, in words.
    """

    _repr_html_ = html_card

    ranking: Rankings
    cost: float
    exact: bool
    details: str


def pairwise_preferences(X: Any) -> FloatArray:
    """Return for every two items the share of voters who prefer the first.

    A voter who ties both counts one half for each; of a free item nothing is known, and the share is the probability
    in a random completion. So ``P[a, b] + P[b, a] = 1``, and the diagonal is 1/2. Where the completions of a user's
    preferences are too many to be counted, the probability is the mean of 1,000 draws.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        Rankings of any kind, each counted as often as it was given.

    Returns
    -------
    array of shape (n_items, n_items)

    Examples
    --------
    >>> pairwise_preferences(Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 1]))
    array([[0.5 , 0.75],
           [0.25, 0.5 ]])
    """
    data = voters(X)
    n_items = data.n_items
    leads = mean_of_seen(data, "pairs")
    shares = np.full((n_items, n_items), 0.5)
    a, b = np.triu_indices(n_items, 1)
    shares[a, b] = (1 + leads) / 2
    shares[b, a] = (1 - leads) / 2
    return shares


def borda(X: Any, ties: Ties = "keep") -> Consensus:
    """Return the items in the order of their mean positions.

    For partial rankings the position is its mean over all completions: tied items share the mean of their places. The
    order also minimises the sum of squared (Spearman) distances.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        Rankings of any kind, each counted as often as it was given.
    ties : {"keep", "items"}
        Items with the same mean position are tied, or stand in the order of the items.

    Examples
    --------
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["b"]], counts=[2, 1])
    >>> result = borda(ballots)
    >>> result.ranking
    Rankings: 1 ranking of 3 items (1 full)
      a > b > c
    >>> result.cost, result.exact
    (1.5, True)
    """
    check_choice("ties", ties, get_args(Ties))
    rankings = voters(X)
    scores = mean_of_seen(rankings, "ranks")
    ranks = ranks_by_score(scores, ROUNDING * rankings.n_items)
    if ties == "items":
        # Sorted anew: scores that differ only by rounding are in any order.
        ranks[np.argsort(ranks, kind="stable")] = np.arange(rankings.n_items)
    return judged(rankings, pairwise_preferences(rankings), ranks, "Borda: items by their mean positions")


def kemeny(X: Any, limit: int = 20, n_starts: int = 10, rng: Seed = 0) -> Consensus:
    """Return the full ranking with the least total Kendall distance from all voters.

    For partial rankings the distance is its mean over all completions. The items are split into the cycles of the
    majority graph (a > b > c > a); each of up to ``limit`` items is solved exactly, over all its subsets. On longer
    ones a local search moves single items while that helps, and ``exact`` is False unless the ranking meets a lower
    bound: it is good, but nobody has proven that there is none better.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        Rankings of any kind, each counted as often as it was given.
    limit : int
        The most items of a cycle to be solved exactly, up to 26: it takes ``2**limit`` numbers of memory.
    n_starts : int
        How many local searches.
    rng : int, Generator or None
        Decides the starts of the local searches.

    Examples
    --------
    Two of three voters want a > b, two b > c, and two c > a. One of these must give way:

    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]])
    >>> kemeny(ballots).cost
    4.0
    """
    check_integer("limit", limit, 1, MOST_ITEMS)
    check_integer("n_starts", n_starts)
    rankings = voters(X)
    preferences = pairwise_preferences(rankings)
    rng = np.random.default_rng(as_seed(rng))
    found = kemeny_order(preferences, limit, n_starts, rng, rankings.n_voters)
    ranks = np.empty(rankings.n_items, dtype=np.int32)
    ranks[found.order] = np.arange(rankings.n_items)
    return judged(rankings, preferences, ranks, f"Kemeny: {found.details}", found.exact)


def cluster_consensus(X: Any, labels: Any, rule: Callable[[Any], Any] = borda) -> dict[Any, Any]:
    """Return the consensus of each cluster.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        Rankings of any kind.
    labels : array of shape (n_rankings,)
        The cluster of each.
    rule : callable
        :func:`borda`, :func:`kemeny`, or anything else that makes a consensus of rankings, such as
        ``lambda own: kernel_consensus(own, kernel)``.

    Examples
    --------
    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"], ["b", "a"]])
    >>> cluster_consensus(ballots, [0, 1, 1])[1].ranking.to_orders()
    [['b', 'a']]
    """
    rankings = as_data(X)
    given = check_labels("labels", labels, len(rankings))
    if not callable(rule):
        raise TypeError(f"rule={short_repr(rule)} is not possible; give borda, kemeny or another function of rankings")
    return {label: rule(rankings[np.flatnonzero(given == label)]) for label in np.unique(given).tolist()}


# ---------------------------------------------------------------------- steps


def mean_of_seen(X: Data, sees: Sight) -> FloatArray:
    """Return the mean over all voters and completions of what a linear kernel sees, a block of rankings at a time."""
    distinct = X.unique()
    total: FloatArray = np.zeros_like(seen_of_nothing(sees, X.n_items)[0])
    step = max(BLOCK // max(total.size, 1), 1)
    for start in range(0, len(distinct), step):
        block = distinct[start : start + step]
        total += np.tensordot(block.counts, means_of_seen(as_rows(block), sees, DRAWS), axes=1)
    total /= distinct.n_voters
    return total


def ranks_by_score(scores: FloatArray, rounding: float) -> RankArray:
    """Return the ranks of items, smaller scores better; those that differ by rounding only are tied."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores), dtype=np.int32)
    ranks[order] = np.cumsum(np.diff(scores[order], prepend=scores[order[:1]]) > rounding)
    return ranks


def judged(X: Data, preferences: FloatArray, ranks: RankArray, details: str, exact: bool = False) -> Consensus:
    """Return a ranking with its cost, and whether it is proven to be the least."""
    against = np.where(ranks[:, None] < ranks[None, :], preferences.T, 0.0)
    tied = np.count_nonzero(ranks[:, None] == ranks[None, :]) - X.n_items  # each pair of items twice
    regret = float(against.sum()) + int(tied) / 4
    at_bound = regret <= least_possible_regret(preferences) + ROUNDING
    exact = exact or (at_bound and not hidden_by_rounding(X.n_items, X.n_voters))
    ranking = Rankings._trusted(ranks[None, :], X.items)
    estimated = estimated_users(X)
    if estimated:
        exact, details = False, f"{details}; shares of {estimated}"
    return Consensus(ranking, regret * X.n_voters, exact, details)


def estimated_users(X: Data) -> str:
    """Say of how many users what is seen is estimated, in words; nothing if it is exact for all."""
    rows = as_rows(X)
    estimated = rows.n_out_of_reach() if isinstance(rows, PartialOrders) else 0
    return f"{estimated:,} of {len(X):,} users estimated by {DRAWS:,} draws" if estimated else ""
