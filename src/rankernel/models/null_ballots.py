"""Ballots drawn from models, each as long and as tied as a real one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankernel._utils.arrays import Indices, RankArray
from rankernel.data import Data
from rankernel.encoding import FREE
from rankernel.models.mallows_model import MallowsModel
from rankernel.models.plackett_luce import PlackettLuce
from rankernel.preferences import Preferences, closure
from rankernel.rankings import Rankings


def fit_model(data: Data) -> PlackettLuce:
    """Return the Plackett-Luce model of voters; of preferences every pair that a user relates is a race of two."""
    if isinstance(data, Rankings):
        return PlackettLuce.fit(data)
    wins = np.tensordot(data.counts, data.before, axes=1)
    better, worse = np.nonzero(wins)
    ranks = np.full((len(better) + 1, data.n_items), FREE, dtype=np.int32)  # the last row says nothing
    ranks[np.arange(len(better)), better], ranks[np.arange(len(worse)), worse] = 0, 1
    return PlackettLuce.fit(Rankings._trusted(ranks, data.items, np.append(wins[better, worse], 1)))


def draw_ballots(
    data: Data, labels: Indices, models: Sequence[PlackettLuce | MallowsModel], rng: np.random.Generator
) -> Data:
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
    places = sorted_buckets(data)
    ranks = np.empty_like(places)
    np.put_along_axis(ranks, order, places, axis=1)
    return Rankings._trusted(np.where(free, FREE, ranks).astype(np.int32), data.items, np.array(data.counts))


def sorted_buckets(data: Rankings) -> RankArray:
    """Return the buckets of each ranking, one entry for each item, the free ones last."""
    return np.sort(np.where(data.ranks == FREE, data.n_items, data.ranks), axis=1)
