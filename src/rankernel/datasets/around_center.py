"""Mallows models: rankings around a center, less likely the farther away; drawn exactly for three distances.

Every distance here ignores the names of the items. So each model is drawn around the identity, where item i is the
i-th best, and the center then says which item plays the part of the i-th best.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, RankArray
from rankernel._utils.checks import check_choice, check_integer, check_number
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.rng import Seed, as_generator
from rankernel.datasets.arguments import center_and_names, check_table, draw_by_weight, draw_permutations
from rankernel.rankings import Rankings


def mallows(
    n_rankings: int,
    center: Any,
    theta: float,
    distance: Literal["kendall", "hamming", "cayley"] = "kendall",
    rng: Seed = 0,
    items: Iterable[object] | None = None,
) -> Rankings:
    r"""Draw full rankings from a Mallows model, :math:`P(r) \propto \exp(-\theta\, d(r, c))`, exactly.

    Parameters
    ----------
    n_rankings : int
        How many rankings.
    center : array of shape (n_items,), Rankings of one row, or int
        The ranks of the most likely ranking, item by item; a number of items stands for the identity, 0 > 1 > 2 > ...
    theta : float
        How closely the rankings gather around the center; 0 makes all of them equally likely.
    distance : {"kendall", "hamming", "cayley"}
        Pairs of items in the other order, items of another rank, or fewest transpositions.
    rng : int or numpy.random.Generator
        Where the randomness comes from; the same number gives the same rankings.
    items : iterable of names, optional
        Names of the items; numbers from 0 if left out.

    Returns
    -------
    Rankings
        ``n_rankings`` full rankings.

    Examples
    --------
    With Kendall's distance the center of three items has the probability 1 / ((1 + q)(1 + q + q²)), q = exp(-theta):

    >>> rankings = mallows(100_000, [2, 0, 1], theta=np.log(2), rng=0)
    >>> bool(abs((rankings.ranks == [2, 0, 1]).all(axis=1).mean() - 1 / (1.5 * 1.75)) < 0.005)
    True
    """
    draw = AROUND_IDENTITY[check_choice("distance", distance, AROUND_IDENTITY)]
    ranks, names = center_and_names(center, items)
    n_wanted, spread = check_integer("n_rankings", n_rankings, 0), check_number("theta", theta, 0)
    check_table(n_wanted, len(ranks), 2)
    around = run_interruptibly(draw, n_wanted, len(ranks), spread, as_generator(rng))
    return Rankings._trusted(run_interruptibly(np.take, around, ranks, 1), names)


def kendall_around_identity(n_rankings: int, n_items: int, theta: float, rng: np.random.Generator) -> RankArray:
    """Insert the items one by one, each ahead of j earlier ones with a probability proportional to exp(-theta j)."""
    ranks = np.zeros((n_rankings, n_items), dtype=np.int32)
    weights = np.exp(-theta * np.arange(n_items))
    for item in range(1, n_items):
        place = item - draw_by_weight(weights[: item + 1], n_rankings, rng)[:, None]
        ranks[:, :item] += ranks[:, :item] >= place
        ranks[:, item] = place[:, 0]
    return ranks


def cayley_around_identity(n_rankings: int, n_items: int, theta: float, rng: np.random.Generator) -> RankArray:
    """Let each item open a cycle of its own, or join that of an earlier one by a swap, with the weight exp(-theta)."""
    ranks = np.tile(np.arange(n_items, dtype=np.int32), (n_rankings, 1))
    rows = np.arange(n_rankings)
    weights = np.full(n_items, np.exp(-theta))
    weights[0] = 1
    for item in range(1, n_items):
        partner = item - draw_by_weight(weights[: item + 1], n_rankings, rng)
        ranks[rows, item] = ranks[rows, partner]
        ranks[rows, partner] = item
    return ranks


def hamming_around_identity(n_rankings: int, n_items: int, theta: float, rng: np.random.Generator) -> RankArray:
    """Draw how many items move, then which ones, then a permutation that leaves none of these in its place."""
    n_moved = draw_by_weight(n_moved_weights(n_items, theta), n_rankings, rng)
    moved_first = draw_permutations(n_rankings, n_items, rng)
    shifted = draw_derangements(n_moved, n_items, rng)
    ranks = np.empty((n_rankings, n_items), dtype=np.int32)
    np.put_along_axis(ranks, moved_first, np.take_along_axis(moved_first, shifted, axis=1), axis=1)
    return ranks


def n_moved_weights(n_items: int, theta: float) -> FloatArray:
    r"""Return numbers proportional to :math:`\binom{n}{m} D_m e^{-\theta m}` for m = 0..n, D_m the derangements of m.

    The first two factors are n! times :math:`\frac{1}{(n-m)!} \sum_{i \le m} \frac{(-1)^i}{i!}`; factorials and
    exponentials are divided by the largest of their products, so that nothing overflows.
    """
    numbers = np.arange(1, n_items + 1)
    deranged_share = np.cumsum(np.cumprod(np.concatenate(([1.0], -1 / numbers))))
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(numbers))))
    log_weights = -log_factorial[::-1] - theta * np.arange(n_items + 1)
    return np.asarray(deranged_share * np.exp(log_weights - log_weights.max()))


def draw_derangements(sizes: Indices, n_items: int, rng: np.random.Generator) -> Indices:
    """Return uniform derangements of the first ``sizes[i]`` places of row i; the places behind them stay.

    Rows are drawn again until no place is kept, which takes e = 2.718... rounds in the mean.
    """
    places = np.arange(n_items)
    result = np.tile(places, (len(sizes), 1))
    waiting = np.flatnonzero(sizes)
    while len(waiting):
        stays = places >= sizes[waiting, None]
        # Keys above 1 sort the places that stay behind all others.
        order = np.argsort(rng.random(stays.shape) + stays, axis=1)
        order = np.where(stays, places, order)
        deranged = ((order == places) == stays).all(axis=1)
        result[waiting[deranged]] = order[deranged]
        waiting = waiting[~deranged]
    return result


AROUND_IDENTITY = {
    "kendall": kendall_around_identity,
    "hamming": hamming_around_identity,
    "cayley": cayley_around_identity,
}
