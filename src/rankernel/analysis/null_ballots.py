"""Ballots as there would be without groups: drawn from fitted models, each as long and as tied as a real one.

Two kinds of models have no groups: Plackett-Luce, where items differ in strength, and Mallows, where voters gather
around one order. Neither can be told as the other, so that what is more than chance must be more than in both.
"""

from __future__ import annotations

import numpy as np

from rankernel.analysis.majorities import Majorities, count_majorities
from rankernel.arrays import FloatArray, Indices, RankArray
from rankernel.completions.mallows_model import MAX_THETA, MallowsModel
from rankernel.completions.plackett_luce import PlackettLuce
from rankernel.data import Data
from rankernel.encoding import FREE
from rankernel.kemeny_search import kemeny_order
from rankernel.preferences import Preferences, closure
from rankernel.q_factorials import inversion_probabilities, log_q_factorials_derivative
from rankernel.rankings import Rankings

Model = PlackettLuce | MallowsModel

LIMIT = 10  # items of a majority cycle for which the best center is proven
MANY = 100  # items, whose center is the order of their net majorities: to search for a better one takes long


def fit_models(data: Data) -> tuple[Model, ...]:
    """Return the models without groups that fit some voters best, one of each kind."""
    return fit_plackett_luce(data), fit_mallows(data)


def fit_plackett_luce(data: Data) -> PlackettLuce:
    """Return the strengths; of preferences every pair that a user relates is taken as a race of two."""
    if isinstance(data, Rankings):
        return PlackettLuce.fit(data)
    wins = np.tensordot(data.counts, data.before, axes=1)
    better, worse = np.nonzero(wins)
    ranks = np.full((len(better) + 1, data.n_items), FREE, dtype=np.int32)  # the last row says nothing
    ranks[np.arange(len(better)), better], ranks[np.arange(len(worse)), worse] = 0, 1
    return PlackettLuce.fit(Rankings._trusted(ranks, data.items, np.append(wins[better, worse], 1)))


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


def draw_ballots(data: Data, labels: Indices, models: list[Model], rng: np.random.Generator) -> Data:
    """Return for each row a ballot of the same shape, drawn from the model of its cluster."""
    full = np.empty((len(data), data.n_items), dtype=np.int32)
    for number, model in enumerate(models):
        own = labels == number
        full[own] = model.sample(int(own.sum()), rng).ranks
    return as_said(full, data)


def as_said(full: RankArray, data: Data) -> Data:
    """Return full rankings told as the ballots are told: the same ties, the same items left open, the same pairs."""
    if isinstance(data, Preferences):
        before = data.before
        related = before | before.transpose(0, 2, 1)
        packed = closure(np.packbits(related & (full[:, :, None] < full[:, None, :]), axis=2))
        return Preferences._trusted(packed, data.items, np.array(data.counts), data.users, ((),) * len(data))
    free = data.ranks == FREE
    order = np.argsort(np.where(free, data.n_items + full, full), axis=1)
    places = np.sort(np.where(free, data.n_items, data.ranks), axis=1)  # the buckets, one entry for each item
    ranks = np.empty_like(places)
    np.put_along_axis(ranks, order, places, axis=1)
    return Rankings._trusted(np.where(free, FREE, ranks).astype(np.int32), data.items, np.array(data.counts))
