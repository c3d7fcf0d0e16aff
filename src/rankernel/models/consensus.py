"""Consensus rankings: Borda, Kemeny, kernel consensus, and the pairwise preferences behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from rankernel._utils.arrays import FloatArray, RankArray
from rankernel._utils.checks import check_choice, check_integer, check_labels, short_repr
from rankernel._utils.notebook import html_card
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data, as_data, as_nonempty_data
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.poset_rows import PartialOrders, as_rows
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.linear_features import Statistic, uniform_mean
from rankernel.models.decoding import Decoder
from rankernel.models.kemeny_search import ROUNDING, hidden_by_rounding, kemeny_order, least_possible_regret
from rankernel.rankings import Rankings

Ties = Literal["keep", "items"]

BLOCK = 2**20  # numbers in memory at once
MAX_EXACT_ITEMS = 26  # 2**26 numbers are half a gigabyte
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
    data = as_nonempty_data(X)
    n_items = data.n_items
    leads = mean_of_seen(data, "pairs")
    shares = np.full((n_items, n_items), 0.5)
    a, b = np.triu_indices(n_items, 1)
    shares[a, b] = (1 + leads) / 2
    shares[b, a] = (1 - leads) / 2
    return shares


def borda(X: Any, *, ties: Ties = "keep") -> Consensus:
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
    rankings = as_nonempty_data(X)
    scores = mean_of_seen(rankings, "ranks")
    ranks = ranks_by_score(scores, ROUNDING * rankings.n_items)
    if ties == "items":
        # Sorted anew: scores that differ only by rounding are in any order.
        ranks[np.argsort(ranks, kind="stable")] = np.arange(rankings.n_items)
    return judged(rankings, pairwise_preferences(rankings), ranks, "Borda: items by their mean positions")


def kemeny(X: Any, *, limit: int = 20, n_starts: int = 10, rng: Seed = 0) -> Consensus:
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
    check_integer("limit", limit, 1, MAX_EXACT_ITEMS)
    check_integer("n_starts", n_starts)
    rankings = as_nonempty_data(X)
    preferences = pairwise_preferences(rankings)
    rng = np.random.default_rng(as_seed(rng))
    found = kemeny_order(preferences, limit, n_starts, rng, rankings.n_voters)
    ranks = np.empty(rankings.n_items, dtype=np.int32)
    ranks[found.order] = np.arange(rankings.n_items)
    return judged(rankings, preferences, ranks, f"Kemeny: {found.details}", found.exact)


def cluster_consensus(X: Any, labels: Any, *, rule: Callable[[Any], Any] = borda) -> dict[Any, Any]:
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


def mean_of_seen(X: Data, sees: Statistic) -> FloatArray:
    """Return the mean over all voters and completions of what a linear kernel sees, a block of rankings at a time."""
    distinct = X.unique()
    total: FloatArray = np.zeros_like(uniform_mean(sees, X.n_items)[0])
    step = max(BLOCK // max(total.size, 1), 1)
    for start in range(0, len(distinct), step):
        block = distinct[start : start + step]
        total += np.tensordot(block.counts, mean_statistics(as_rows(block), sees, DRAWS), axes=1)
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


@dataclass(frozen=True, eq=False)
class KernelConsensus:
    """The full ranking nearest to the mean of many.

    Attributes
    ----------
    ranking : Rankings
        The ranking: one row.
    distance2 : float
        The square of its distance from the mean embedding of all voters.
    gap : float
        By how much another ranking could have less at most; 0 where it is proven that none has, nan where the mean
        embedding itself is an estimate.
    details : str
        How it was found, in words.
    """

    ranking: Rankings
    distance2: float
    gap: float
    details: str

    @property
    def exact(self) -> bool:
        """Whether it is proven that no ranking is nearer."""
        return self.gap == 0


def kernel_consensus(
    X: Any, kernel: Kernel | str, *, limit: int = 20, n_starts: int = 10, rng: Seed = 0
) -> KernelConsensus:
    r"""Return the full ranking nearest to the mean of all voters in the space of a kernel.

    It minimises :math:`\| \phi(\sigma) - \frac1N \sum_i \phi(R_i) \|^2`, where a partial ranking has the mean embedding
    :math:`\phi(R)` of its completions. With Kendall that is the Kemeny order, with Spearman the Borda order, with
    Hamming or another positional kernel an assignment of items to places: with :class:`RankBiasedOverlap` the ranking
    whose top is most like everybody's. Where several rankings are equally near, as behind the depth of an overlap,
    items stand in the order of their mean places.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        Rankings of any kind, each counted as often as it was given. Where the completions of a user's preferences are
        too many to be counted, the mean is that of 1,000 draws.
    kernel : Kernel or str
        A multiple of Kendall, Spearman, Hamming or any positional kernel, or a sum of positional kernels.
    limit : int
        With Kendall: the most items of a majority cycle to be solved exactly, up to 26.
    n_starts : int
        With Kendall: how many local searches on longer ones.
    rng : int, Generator or None
        Decides where these start.

    Examples
    --------
    >>> from rankernel import RankBiasedOverlap, Spearman
    >>> lists = Rankings.from_orders([["a", "b", "c", "d"], ["b", "c", "d", "a"]], counts=[5, 4])
    >>> kernel_consensus(lists, RankBiasedOverlap(0.5)).ranking.to_orders()  # most have a first
    [['a', 'b', 'c', 'd']]
    >>> kernel_consensus(lists, Spearman()).ranking.to_orders()  # b is never far behind
    [['b', 'a', 'c', 'd']]
    """
    kernel, rankings = as_kernel(kernel), as_nonempty_data(X)
    check_integer("limit", limit, 1, MAX_EXACT_ITEMS)
    check_integer("n_starts", n_starts)
    own_seed = int(np.random.default_rng(as_seed(rng)).integers(2**32))
    decoder = Decoder(kernel, rankings.n_items, limit, n_starts, own_seed)
    mean = mean_of_seen(rankings, decoder.sees)[None]
    found = decoder.decode(mean)
    own = kernel.matrix(found.ranks, found.ranks).item()
    distance2 = own - 2 * float(found.values[0]) + float(decoder.products(mean, mean)[0])
    gap, estimated = 2 * float(found.gaps[0]), estimated_users(rankings)
    if estimated:
        gap, proven = math.nan, f"NOT proven nearest: embeddings of {estimated}"
    elif gap:
        proven = f"NOT proven nearest: local search, cycles over {limit} items"
    else:
        proven = "proven nearest"
    ranking = Rankings._trusted(found.ranks, rankings.items)
    return KernelConsensus(ranking, distance2, gap, f"{decoder.how}, {proven}")
