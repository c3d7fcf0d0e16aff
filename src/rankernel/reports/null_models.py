"""Models without groups, fitted to voters.

There are two kinds: Plackett-Luce, where items differ in strength, and Mallows, where voters gather
around one order. Neither can be told as the other, so that what is more than chance must be more than in both.
"""

from __future__ import annotations

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, RankArray
from rankernel._utils.q_factorials import inversion_probabilities, log_q_factorials_derivative
from rankernel.data import Data
from rankernel.encoding import FREE
from rankernel.models.kemeny_search import kemeny_order
from rankernel.models.mallows_model import MAX_THETA, MallowsModel
from rankernel.models.null_ballots import fit_model
from rankernel.models.plackett_luce import PlackettLuce
from rankernel.preferences import Preferences
from rankernel.rankings import Rankings
from rankernel.reports.majorities import Majorities, count_majorities

Model = PlackettLuce | MallowsModel

LIMIT = 10  # items of a majority cycle for which the best center is proven
MANY = 100  # items, whose center is the order of their net majorities: to search for a better one takes long


def fit_models(data: Data) -> tuple[Model, ...]:
    """Return the models without groups that fit some voters best, one of each kind."""
    return fit_model(data), fit_mallows(data)


def fit_mallows(data: Data) -> MallowsModel:
    """Return the order that contradicts voters least as the center, and the theta with which ballots do it as often.

    A ballot without free items is cut to the sizes of its buckets, and what is expected of it is what is expected of
    all items, less of those inside a bucket: theta has the greatest likelihood. Where items are free, or only some
    pairs are related, every pair that is related counts by itself.
    """
    from scipy.optimize import brentq

    said = count_majorities(data)
    order = center_of(said)
    ranks = np.empty(data.n_items, dtype=np.int32)
    ranks[order] = np.arange(data.n_items)
    against = int(np.tril(said.ahead[np.ix_(order, order)], -1).sum())
    sizes, gaps = bucket_sizes(data), gaps_related(data, ranks)

    def excess(theta: float) -> float:
        expected = -sizes @ log_q_factorials_derivative(data.n_items, theta)
        return float(expected + gaps @ inversion_probabilities(len(gaps) - 1, theta)) - against

    if excess(0.0) <= 0:
        return MallowsModel(tuple(ranks.tolist()), 0.0)
    theta = MAX_THETA if excess(MAX_THETA) > 0 else brentq(excess, 0.0, MAX_THETA, xtol=1e-6)
    return MallowsModel(tuple(ranks.tolist()), theta)


def center_of(said: Majorities) -> Indices:
    """Return the items in the order that contradicts voters least, or nearly."""
    margins: FloatArray = (said.ahead - said.ahead.T) / (2 * said.n_voters)
    if len(margins) > MANY:
        return np.argsort(-margins.sum(axis=1), kind="stable")
    return kemeny_order(0.5 + margins, LIMIT, 1, np.random.default_rng(0)).order


def bucket_sizes(data: Data) -> FloatArray:
    """Return for ballots without free items how often all items are there, less how often so many are tied."""
    sizes = np.zeros(data.n_items + 1)
    if isinstance(data, Rankings):
        known = (data.ranks != FREE).all(axis=1)
        ranks, counts = data.ranks[known], data.counts[known]
        sizes[-1] = counts.sum()
        for bucket in range(int(ranks.max(initial=-1)) + 1):
            np.subtract.at(sizes, (ranks == bucket).sum(axis=1), counts)
    return sizes


def gaps_related(data: Data, center: RankArray) -> FloatArray:
    """Return how many pairs of items so far apart in the center are related by ballots that leave items free."""
    some = data if isinstance(data, Preferences) else data[np.flatnonzero((data.ranks == FREE).any(axis=1))]
    if not len(some):
        return np.zeros(1)
    gaps = np.abs(np.subtract.outer(center, center))
    return np.asarray(np.bincount(gaps.ravel(), count_majorities(some).ahead.ravel(), data.n_items), dtype=np.float64)
