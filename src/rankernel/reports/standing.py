"""Where items stand: first choices, approvals, mean places."""

from __future__ import annotations

import numpy as np

from rankernel._utils.arrays import FloatArray, Mask
from rankernel.data import Data
from rankernel.encoding import FREE
from rankernel.preferences import Preferences


def are_approvals(rankings: Data) -> bool:
    """Say whether voters only tell of which items they approve, some of several: all others share the last place."""
    if isinstance(rankings, Preferences) or rankings.n_items < 3:
        return False
    ranks = rankings.ranks
    known = (ranks.max(axis=1) <= 1) & (ranks.min(axis=1) == 0)
    divided = ranks.max(axis=1) == 1
    return bool(known.all() and ((ranks == 0).sum(axis=1) > 1)[divided].any())


def standings(rankings: Data, approving: float | None) -> FloatArray:
    """Return where each item stands, a smaller number higher: its mean place, or what percent do not approve of it."""
    if approving is None:
        return mean_places(rankings)
    return 100 * (1 - approved_counts(rankings, approving) / rankings.n_voters)


def mean_places(rankings: Data) -> FloatArray:
    """Return the mean place of each item, from 1; tied items share their places."""
    from rankernel.models.consensus import mean_of_seen

    return mean_of_seen(rankings, "ranks") + (rankings.n_items + 1) / 2


def first_shares(rankings: Data) -> FloatArray:
    """Return the share of voters who put each item first, among those who put some item before another."""
    return first_counts(rankings) / max(int(rankings.counts[says_which(rankings)].sum()), 1)


def first_counts(rankings: Data) -> FloatArray:
    """Return how many voters put each item first; a voter who puts several first is divided among them."""
    first = first_items(rankings)
    return np.asarray(rankings.counts @ (first / np.maximum(first.sum(axis=1, keepdims=True), 1)))


def approved_counts(rankings: Data, approving: float) -> FloatArray:
    """Return how many voters approve of each item.

    Who puts no item before another approves of all or of none: ``approving`` is the share of those who do of all.
    """
    silent = int(rankings.counts[~says_which(rankings)].sum())
    return np.asarray(rankings.counts @ first_items(rankings) + approving * silent)


def says_which(rankings: Data) -> Mask:
    """Return which ballots put some item before another."""
    return np.asarray(first_items(rankings).any(axis=1))


def first_items(rankings: Data) -> Mask:
    """Return which items stand first in each row, none where it puts no item before another.

    In preferences these are the items that are better than some and worse than none.
    """
    if isinstance(rankings, Preferences):
        before = rankings.before
        return np.asarray(before.any(axis=2) & ~before.any(axis=1))
    first: Mask = np.asarray(rankings.ranks == 0)
    says = (rankings.n_buckets > 1) | ((rankings.ranks == FREE).any(axis=1) & first.any(axis=1))
    return np.asarray(first & says[:, None])
