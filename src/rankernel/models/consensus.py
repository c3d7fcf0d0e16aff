"""Consensus rankings: Borda, Kemeny, kernel consensus, and full rankings nearest to a mean embedding (pre-images)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from rankernel._utils import FloatArray, Indices, Mask, RankArray
from rankernel._utils.checks import Seed, as_seed, check_choice, check_integer, check_labels
from rankernel._utils.notebook import html_card
from rankernel._utils.resources import check_bytes, slices
from rankernel.data import Data, as_data, as_nonempty_data
from rankernel.distances import STATISTICS, Statistic, centred_ranks, uniform_mean
from rankernel.errors import ArgumentTypeError, ArgumentValueError
from rankernel.gram.evaluator import terms
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.rows import PartialOrders, Rows, as_rows
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.models.kemeny_search import ROUNDING, hidden_by_rounding, kemeny_order, lower_bound
from rankernel.rankings import Rankings, order_text

Ties = Literal["keep", "items"]

CHUNK_NUMBERS = 2**20
MAX_EXACT_ITEMS = 26  # 2**26 numbers take half a gigabyte
LIMIT = 16  # items of a majority cycle that is solved exactly by a decoder, in 3 ms
ALGORITHMS = {"positions": "linear assignment", "ranks": "sorted by mean rank", "pairs": "Kemeny search"}
N_DRAWS = 1000  # for preferences without exact marginals


@dataclass(frozen=True, eq=False)
class Consensus:
    """A consensus ranking.

    Attributes
    ----------
    ranking : Rankings
        The ranking: one row.
    cost : float
        The objective: the sum over all voters of the expected Kendall distance to their ranking, where a pair that is
        tied in either counts one half; for a kernel, the squared distance to the mean embedding of all voters.
    gap : float
        An upper bound on the difference to the smallest cost; 0 if the ranking is proven optimal, nan if the cost is
        estimated.
    details : str
        A description of the method and of the proof.
    resampled : Rankings, optional
        With ``n_bootstrap``, the different rankings of the resamples, the most frequent first, with their numbers as
        counts; ``pairwise_preferences(resampled)`` is the share of resamples in which a is before b.

    Examples
    --------
    >>> from rankernel import borda
    >>> result = borda(Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]]))
    >>> result.ranking.ranks, result.cost
    (array([[0, 1, 1]], dtype=int32), 1.0)
    """

    _repr_html_ = html_card

    ranking: Rankings
    cost: float
    gap: float
    details: str
    resampled: Rankings | None = None

    @property
    def exact(self) -> bool:
        """Whether the ranking is proven optimal."""
        return self.gap == 0

    def __repr__(self) -> str:
        order = order_text(self.ranking.to_orders()[0], self.ranking.items)
        text = f"Consensus: {order}\n  cost: {self.cost:.6g}\n  {self.details}"
        if self.resampled is not None:
            same = int(self.resampled.counts[(self.resampled.ranks == self.ranking.ranks[0]).all(axis=1)].sum())
            text += f"\n  the same ranking in {same:,} of {self.resampled.n_voters:,} resamples of the voters"
        return text


def pairwise_preferences(X: Any) -> FloatArray:
    """Return the share of voters who prefer item a to item b, shape (n_items, n_items).

    A tie counts one half in each direction, and a pair with a free item counts by its probability in a uniform
    completion, so that ``P[a, b] + P[b, a] = 1``, with 1/2 on the diagonal. For preferences with too many linear
    extensions the probability is the mean of 1,000 draws.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        The data; each row counts as often as its count.

    Returns
    -------
    array of shape (n_items, n_items)
        The shares ``P[a, b]``.

    Examples
    --------
    >>> pairwise_preferences(Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 1]))
    array([[0.5 , 0.75],
           [0.25, 0.5 ]])
    """
    return preference_shares(as_nonempty_data(X))


def preference_shares(X: Data | Rows) -> FloatArray:
    """Return the share of voters who prefer item x to item y: see :func:`pairwise_preferences`."""
    return (1 + pair_margins(overall_mean(X, "pairs"), X.n_items)) / 2


def borda(X: Any, *, ties: Ties = "keep") -> Consensus:
    """Return the Borda ranking: the items in the order of their mean positions.

    The position in a partial ranking is its mean over all completions. The order also minimises the sum of squared
    (Spearman) distances.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        The data; each row counts as often as its count.
    ties : {"keep", "items"}
        Items with equal mean positions are tied, or ordered by their index.

    Returns
    -------
    Consensus
        ``ranking`` is the consensus, ``cost`` its total distance to the voters.

    Examples
    --------
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["b"]], counts=[2, 1])
    >>> borda(ballots)
    Consensus: a > b > c
      cost: 1.5
      Borda: items by their mean positions
    """
    check_choice("ties", ties, get_args(Ties))
    data = as_nonempty_data(X)
    rows = as_rows(data.unique())
    preferences = preference_shares(rows)
    mean_positions = preferences.sum(axis=0)  # up to a constant: an item is preceded by the items preferred to it
    ranks = ranks_by_score(mean_positions, ROUNDING * data.n_items)
    if ties == "items":
        ranks[np.argsort(ranks, kind="stable")] = np.arange(data.n_items)
    return evaluate(data, rows, preferences, ranks, "Borda: items by their mean positions")


def kemeny(X: Any, *, limit: int = 20, n_starts: int = 10, n_bootstrap: int = 0, rng: Seed = 0) -> Consensus:
    """Return the Kemeny ranking: the full ranking with the smallest total Kendall distance to all voters.

    The distance to a partial ranking is its mean over all completions. The items are split into majority cycles
    (strongly connected components of the majority graph). Cycles of at most ``limit`` items are ordered exactly, by
    dynamic programming over subsets, larger ones by local search; then ``exact`` is False unless the ranking attains a
    lower bound.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        The data; each row counts as often as its count.
    limit : int
        The largest number of items of a cycle that is ordered exactly, up to 26; memory for ``2**limit`` numbers.
    n_starts : int
        The number of local searches.
    n_bootstrap : int
        The number of resamples of the voters, whose Kemeny rankings are ``resampled`` of the result.
    rng : int, Generator or None
        The seed of the resamples and of local searches; the default 0 gives the same result in every call.

    Returns
    -------
    Consensus
        ``ranking`` is the consensus, ``exact`` whether it is proven optimal.

    Examples
    --------
    Two of three voters prefer a to b, two b to c, and two c to a, so one majority must be violated:

    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]])
    >>> kemeny(ballots)
    Consensus: a > b > c
      cost: 4
      Kemeny: proven optimal: the longest majority cycle has 3 items
    """
    check_integer("limit", limit, 1, MAX_EXACT_ITEMS)
    check_integer("n_starts", n_starts)
    check_integer("n_bootstrap", n_bootstrap, 0)
    data, generator = as_nonempty_data(X), np.random.default_rng(as_seed(rng))
    rows = as_rows(data.unique())
    preferences = preference_shares(rows)
    result = kemeny_order(preferences, limit, n_starts, generator, data.n_voters)
    ranks = np.argsort(result.order).astype(np.int32)
    consensus = evaluate(data, rows, preferences, ranks, f"Kemeny: {result.details}", result.gap)
    if not n_bootstrap:
        return consensus
    chances = rows.counts / data.n_voters
    weights = generator.multinomial(data.n_voters, chances, size=n_bootstrap).astype(np.float64)
    resampled_ranks = np.empty((n_bootstrap, data.n_items), dtype=np.int32)
    for row, signs in zip(resampled_ranks, overall_mean(rows, "pairs", weights), strict=True):
        shares = (1 + pair_margins(signs, data.n_items)) / 2
        row[:] = np.argsort(kemeny_order(shares, limit, n_starts, generator).order)
    resampled = Rankings._trusted(resampled_ranks, data.items).unique()
    return replace(consensus, resampled=resampled[np.argsort(-resampled.counts, kind="stable")])


def kernel_consensus(X: Any, kernel: Kernel | str, *, limit: int = 20, n_starts: int = 10, rng: Seed = 0) -> Consensus:
    r"""Return the full ranking nearest to the mean embedding of all voters in the feature space of a kernel.

    The result minimises :math:`\| \phi(\sigma) - \frac1N \sum_i \phi(R_i) \|^2`, where :math:`\phi(R)` is the mean
    embedding of the completions of R. For Kendall this is the Kemeny ranking, for Spearman the Borda ranking, and for
    positional kernels such as Hamming and :class:`RankBiasedOverlap` the solution of a linear assignment problem. Among
    equally near rankings, items are ordered by their mean positions.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        The data; each row counts as often as its count. For preferences with too many linear extensions the mean is
        that of 1,000 draws.
    kernel : Kernel or str
        A multiple of Kendall, Spearman, Hamming or another positional kernel, or a sum of positional kernels.
    limit : int
        For Kendall: the largest number of items of a majority cycle that is ordered exactly, up to 26.
    n_starts : int
        For Kendall: the number of local searches on larger cycles.
    rng : int, Generator or None
        The seed of the starts of local searches; the default 0 gives the same result in every call.

    Returns
    -------
    Consensus
        ``ranking`` is the consensus, ``cost`` the squared distance to the mean embedding.

    Examples
    --------
    >>> from rankernel import RankBiasedOverlap, Spearman
    >>> lists = Rankings.from_orders([["a", "b", "c", "d"], ["b", "c", "d", "a"]], counts=[5, 4])
    >>> kernel_consensus(lists, RankBiasedOverlap(0.5)).ranking.to_orders()  # the most frequent first item
    [['a', 'b', 'c', 'd']]
    >>> kernel_consensus(lists, Spearman()).ranking.to_orders()  # the best mean rank
    [['b', 'a', 'c', 'd']]
    """
    kernel, data = as_kernel(kernel), as_nonempty_data(X)
    check_integer("limit", limit, 1, MAX_EXACT_ITEMS)
    check_integer("n_starts", n_starts)
    seed = int(np.random.default_rng(as_seed(rng)).integers(2**32))
    decoder = Decoder(kernel, data.n_items, limit, n_starts, seed)
    rows = as_rows(data.unique())
    mean = overall_mean(rows, decoder.statistic)[None]
    result = decoder.decode(mean)
    norm2 = kernel.matrix(result.ranks, result.ranks).item()
    cost = norm2 - 2 * float(result.values[0]) + float(decoder.products(mean, mean)[0])
    gap, estimated = 2 * float(result.gaps[0]), estimated_rows(rows)
    if estimated:
        gap, proof = math.nan, f"NOT proven nearest: embeddings of {estimated}"
    elif gap:
        proof = f"NOT proven nearest: local search, cycles over {limit} items"
    else:
        proof = "proven nearest"
    ranking = Rankings._trusted(result.ranks, data.items)
    return Consensus(ranking, cost, gap, f"kernel consensus: {ALGORITHMS[decoder.statistic]}, {proof}")


def cluster_consensus(X: Any, groups: Any, *, rule: Callable[[Any], Any] = borda) -> dict[Any, Any]:
    """Return the consensus of each group of rows, such as the clusters of :class:`KernelKMeans`.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        The data.
    groups : array of shape (n_rankings,)
        The group of each row.
    rule : callable
        :func:`borda`, :func:`kemeny`, or another function of data, such as
        ``lambda rows: kernel_consensus(rows, kernel)``.

    Returns
    -------
    dict
        The result of ``rule`` for each group, such as a :class:`Consensus`.

    Examples
    --------
    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"], ["b", "a"]])
    >>> cluster_consensus(ballots, [0, 1, 1])[1].ranking.to_orders()
    [['b', 'a']]
    """
    data = as_data(X)
    given = check_labels("groups", groups, len(data))
    if not callable(rule):
        raise ArgumentTypeError("rule", rule, "a function of rankings, such as borda or kemeny")
    return {group: rule(data[np.flatnonzero(given == group)]) for group in np.unique(given).tolist()}


# ---------------------------------------------------------------------- means and costs


def overall_mean(X: Data | Rows, statistic: Statistic, weights: FloatArray | None = None) -> FloatArray:
    """Return the mean of a statistic over all voters and completions, computed in chunks of rows.

    Each row of ``weights`` replaces the counts of the distinct rows, and gives a mean of its own.
    """
    if statistic == "pairs":
        check_bytes(24 * X.n_items**2, f"the matrix of pairwise preferences of {X.n_items:,} items")
    distinct, one = as_rows(X.unique()), uniform_mean(statistic, X.n_items)[0]
    counts = distinct.counts[None, :] if weights is None else weights
    total: FloatArray = np.zeros((len(counts), *one.shape))
    for rows in slices(len(distinct), CHUNK_NUMBERS // max(one.size, len(counts))):
        total += np.tensordot(counts[:, rows], mean_statistics(distinct[rows], statistic, N_DRAWS), axes=1)
    total /= distinct.n_voters
    return total[0] if weights is None else total


def pair_margins(signs: FloatArray, n_items: int) -> FloatArray:
    """Return the mean signs of all ordered pairs, shape (..., n_items, n_items), from those of the pairs a < b."""
    margins = np.zeros((*signs.shape[:-1], n_items, n_items))
    a, b = np.triu_indices(n_items, 1)
    margins[..., a, b], margins[..., b, a] = signs, -signs
    return margins


def ranks_by_score(scores: FloatArray, tolerance: float) -> RankArray:
    """Return the ranks of items, smaller scores are better; scores that differ by at most the tolerance are tied."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores), dtype=np.int32)
    ranks[order] = np.cumsum(np.diff(scores[order], prepend=scores[order[:1]]) > tolerance)
    return ranks


def evaluate(
    X: Data, rows: Rows, preferences: FloatArray, ranks: RankArray, details: str, gap: float | None = None
) -> Consensus:
    """Return a ranking with its cost and a bound on the difference to the smallest cost."""
    against = np.where(ranks[:, None] < ranks[None, :], preferences.T, 0.0)
    n_tied = int(np.count_nonzero(ranks[:, None] == ranks[None, :])) - X.n_items  # each pair of items twice
    cost = float(against.sum()) + n_tied / 4
    if gap is None:
        excess = cost - lower_bound(preferences)
        gap = (excess if excess > ROUNDING else 0.0) + hidden_by_rounding(X.n_items, X.n_voters)
    estimated = estimated_rows(rows)
    if estimated:
        gap, details = math.nan, f"{details}; shares of {estimated}"
    return Consensus(Rankings._trusted(ranks[None, :], X.items), cost * X.n_voters, gap * X.n_voters, details)


def estimated_rows(rows: Rows) -> str:
    """Return a description of the users whose means are estimated; empty if all are exact."""
    estimated = rows.n_out_of_reach() if isinstance(rows, PartialOrders) else 0
    return f"{estimated:,} of {rows.n_voters:,} users estimated by {N_DRAWS:,} draws" if estimated else ""


# ---------------------------------------------------------------------- pre-images


class Decoded(NamedTuple):
    """Full rankings near points in the feature space of a kernel."""

    #: The positions of the items, shape (n_points, n_items).
    ranks: RankArray
    #: The inner product of the features of each ranking with the point.
    values: FloatArray
    #: Upper bounds on the difference to the largest inner product; 0 if the ranking is proven optimal.
    gaps: FloatArray


class Decoder:
    """Finds the full rankings nearest to points in the feature space of a kernel (pre-images).

    All full rankings have the same norm there, so the nearest one has the largest inner product with the point. The
    statistic in which the kernel is linear determines the algorithm: linear assignment for positions, sorting for
    ranks, a Kemeny search for signs of pairs. Among equally near rankings, items are ordered by their mean positions.
    Kernels without such a statistic raise an error. ``limit`` and ``n_starts`` are those of :func:`kernel_consensus`.
    """

    def __init__(self, kernel: Kernel, n_items: int, limit: int = LIMIT, n_starts: int = 10, seed: int = 0) -> None:
        statistic = common_statistic(kernel, n_items)
        if statistic is None:
            raise ArgumentValueError(
                "kernel",
                kernel,
                "Kendall, Spearman, Hamming, RankBiasedOverlap or another positional kernel, or a sum of positional "
                "kernels, whose pre-images are known",
            )
        self.n_items, self.limit, self.n_starts, self.seed = n_items, limit, n_starts, seed
        self.statistic: Statistic = statistic
        one, unit = np.arange(n_items, dtype=np.int32)[None], np.zeros_like(uniform_mean(statistic, n_items))
        unit[:, :1] = 1.0
        self.constant = self.scale = 0.0  # the sum of the constant terms, and the squared feature of a pair or a rank
        self.position_matrix = np.zeros((n_items, n_items))  # the kernel between positions of one item
        for term in terms(kernel):
            facts = term.kernel.facts(n_items)
            if facts.max_dimension == 1:
                self.constant += term.weight * term.kernel.matrix(one, one).item()
                continue
            assert facts.form is not None
            if statistic != "positions":
                self.scale += float(term.weight * (unit * facts.form.multiply(unit)).sum())
            elif facts.form.statistic == "positions":
                self.position_matrix += term.weight * facts.form.multiply(np.eye(n_items))
            else:
                ranks = centred_ranks(one)[0]
                self.position_matrix += term.weight * np.outer(ranks, facts.form.multiply(ranks))

    def scores(self, means: FloatArray) -> FloatArray:
        """Return coefficients of the statistic whose sums are inner products with the points."""
        return np.asarray(means @ self.position_matrix if self.statistic == "positions" else self.scale * means)

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the inner products of points, row by row."""
        return np.asarray((self.scores(left) * right).reshape(len(left), -1).sum(axis=1)) + self.constant

    def decode(self, means: FloatArray) -> Decoded:
        """Return the nearest ranking of each point, given as a mean of the statistic."""
        ranks, gaps = np.empty((len(means), self.n_items), dtype=np.int32), np.zeros(len(means))
        scores = self.scores(means)
        if self.statistic == "positions":
            for row, score, positions in zip(ranks, scores, means @ np.arange(self.n_items), strict=True):
                row[:] = best_assignment(score, positions)
        elif self.statistic == "ranks":
            ranks[np.arange(len(means))[:, None], np.argsort(means, axis=1, kind="stable")] = np.arange(self.n_items)
        else:
            self._search(means, ranks, gaps)
        return Decoded(ranks, self.products(means, STATISTICS[self.statistic](ranks)), gaps)

    def _search(self, means: FloatArray, ranks: RankArray, gaps: FloatArray) -> None:
        """Write the Kemeny orders and the bounds on their distance to the optimum."""
        margins = pair_margins(means, self.n_items)
        by_position = np.argsort(-margins.sum(axis=2), axis=1, kind="stable")
        ranks[np.arange(len(means))[:, None], by_position] = np.arange(self.n_items)
        optimal = (STATISTICS["pairs"](ranks) * means >= 0).all(axis=1)  # agrees with all majorities
        rng = np.random.default_rng(self.seed)
        for row in np.flatnonzero(~optimal):
            items = by_position[row]  # the search prefers lower indices among equally good orders
            wins = np.maximum(margins[row][np.ix_(items, items)], 0.0)
            result = kemeny_order(wins, self.limit, self.n_starts, rng)
            ranks[row, items[result.order]] = np.arange(self.n_items)
            gaps[row] = 2 * self.scale * result.gap  # reversing a pair changes its sign from -1 to 1


def common_statistic(kernel: Kernel, n_items: int) -> Statistic | None:
    """Return the statistic in which all terms of a kernel are linear, if all rankings have equal norms; else None.

    Centred ranks are a function of positions, so positions serve a sum of both.
    """
    statistics: set[Statistic] = set()
    for term in terms(kernel):
        facts = term.kernel.facts(n_items)
        if facts.max_dimension == 1:
            continue
        if facts.form is None or facts.form.mixes_items or facts.form.center is not None:
            return None
        statistics.add(facts.form.statistic)
    if len(statistics) < 2:
        return statistics.pop() if statistics else "ranks"
    return None if "pairs" in statistics else "positions"


def best_assignment(scores: FloatArray, mean_positions: FloatArray) -> Indices:
    """Return the positions with the largest total of ``scores[item, position]``; ties are broken by mean positions."""
    from scipy.optimize import linear_sum_assignment

    positions = linear_sum_assignment(scores, maximize=True)[1]
    order = np.where(exchangeable(scores, positions), np.outer(mean_positions, positions), -np.inf)
    return np.asarray(positions[linear_sum_assignment(order, maximize=True)[1]])


def exchangeable(scores: FloatArray, positions: Indices) -> Mask:
    """Return whether an item has the position of another item in some optimal assignment.

    By complementary slackness these are the pairs of zero reduced cost under optimal dual prices of the positions,
    which are shortest paths in the graph of losses (Bellman-Ford).
    """
    loss = scores[np.arange(len(scores)), positions][:, None] - scores[:, positions]
    rounding = ROUNDING * float(np.abs(scores).max(initial=0.0))
    prices, before = np.zeros(len(scores)), np.full(len(scores), np.inf)
    while (before - prices > rounding / len(scores)).any():
        prices, before = np.minimum(prices, (prices[:, None] + loss).min(axis=0)), prices
    return np.asarray(prices[:, None] + loss - prices <= rounding)
