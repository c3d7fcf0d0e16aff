"""Null models: distributions of rankings without clusters or outliers, fitted to data.

Two families are used, Plackett-Luce (items of different strength) and Mallows (voters around one center), because
neither approximates the other; a finding must exceed the null distribution of both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankernel._utils import Indices, RankArray
from rankernel.data import Data, pairwise_wins
from rankernel.models.mallows import MallowsModel
from rankernel.models.plackett_luce import PlackettLuce
from rankernel.preferences import Preferences, closure
from rankernel.rankings import FREE, Rankings

Model = MallowsModel | PlackettLuce

MAX_SEARCHED_ITEMS = 100  # a better center of more items than by net majorities takes seconds


# ---------------------------------------------------------------------- fits


def fit_plackett_luce(data: Data) -> PlackettLuce:
    """Return the Plackett-Luce fit; each pair of items that preferences relate counts as a ranking of two items."""
    if isinstance(data, Rankings):
        return PlackettLuce.fit(data)
    wins = pairwise_wins(data)
    better, worse = np.nonzero(wins)
    ranks = np.full((len(better) + 1, data.n_items), FREE, dtype=np.int32)  # the last row states nothing
    ranks[np.arange(len(better)), better], ranks[np.arange(len(worse)), worse] = 0, 1
    return PlackettLuce.fit(Rankings._trusted(ranks, data.items, np.append(wins[better, worse], 1)))


def fit_mallows(data: Data) -> MallowsModel:
    """Return a fast Mallows fit: by pairs for incomplete rows, and with a Borda-like center of more than 100 items."""
    center = None
    if data.n_items > MAX_SEARCHED_ITEMS:
        wins = pairwise_wins(data)
        center = np.argsort(np.argsort((wins.T - wins).sum(axis=1), kind="stable"))
    return MallowsModel.fit(data, center=center, max_down_sets=0)


# ---------------------------------------------------------------------- samples of the same shape


def sample_like(data: Data, clusters: Indices, models: Sequence[Model], rng: np.random.Generator) -> Data:
    """Return for each row a sample of the same shape from the model of its cluster."""
    full = np.empty((len(data), data.n_items), dtype=np.int32)
    for number, model in enumerate(models):
        rows = clusters == number
        full[rows] = model.sample(int(rows.sum()), rng=rng).ranks
    return coarsen(full, data)


def coarsen(full: RankArray, data: Data) -> Data:
    """Return full rankings with the bucket sizes and free items, or the related pairs, of the rows of some data."""
    if isinstance(data, Preferences):
        before = data.before
        related = before | before.transpose(0, 2, 1)
        packed = closure(np.packbits(related & (full[:, :, None] < full[:, None, :]), axis=2))
        return data._replaced(packed=packed, contracted=((),) * len(data))
    free = data.ranks == FREE
    order = np.argsort(np.where(free, data.n_items + full, full), axis=1)
    buckets = sorted_buckets(data)
    ranks = np.empty_like(buckets)
    np.put_along_axis(ranks, order, buckets, axis=1)
    return data._replaced(ranks=np.where(free, FREE, ranks).astype(np.int32))


def sorted_buckets(data: Rankings) -> RankArray:
    """Return the sorted bucket indices of the items of each ranking, free items last."""
    return np.sort(np.where(data.ranks == FREE, data.n_items, data.ranks), axis=1)


def shape_codes(data: Data) -> Indices:
    """Return a number for each row that is equal for rows of equal bucket sizes and numbers of free items."""
    if isinstance(data, Preferences):
        return np.zeros(len(data), dtype=np.intp)
    return np.unique(sorted_buckets(data), axis=0, return_inverse=True)[1].ravel()
