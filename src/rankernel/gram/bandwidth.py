"""The median heuristic for the decay rate of a kernel: one over the median distance between two rankings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, RankArray
from rankernel.completions.draws import Uniform, draw
from rankernel.completions.linear_extensions import FEW_DOWN_SETS
from rankernel.distances import Distance, as_distance
from rankernel.errors import ExactnessError, RankingError
from rankernel.gram.evaluator import CACHED_NUMBERS
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.rows import PartialOrders, Rows, as_rows
from rankernel.kernels.base import Kernel

MAX_RANKINGS = 1000  # distinct rankings of which all pairs are compared
MAX_STEPS = 2**28  # items compared between all pairs of full rankings: less than a second
MAX_CALLS = 10_000  # calls of a user's function
N_PAIRS = 1000  # sampled pairs of voters
N_DRAWS = 2  # completions of each ranking of a sampled pair: an antithetic pair
N_DRAWS_ALL = 16  # completions of each ranking where all pairs are compared


def median_rate(kernel: Kernel, X: Any) -> float:
    """Return one over the median distance within the data, for the distance that the kernel is a function of."""
    data = as_rows(X)
    distance = kernel.facts(data.n_items).distance
    if distance is None:
        raise ValueError(
            f"{kernel} is not known to be a function of a distance, so 'median' cannot be resolved; give a number, use "
            "Exponential(distance, nu='median'), or define facts(n_items) with a distance"
        )
    return 1 / median_distance(data, distance)


def median_distance(X: Any, distance: Distance | str | Callable[[RankArray, RankArray], float]) -> float:
    """Return the median distance between the rankings of two different voters.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings; counts are multiplicities. If there are more than 1,000 distinct rankings, or many items, a fixed
        random sample of 1,000 pairs of voters is compared, partial rankings by two completions each.
    distance : Distance, str or function
        One of ``rankernel.distances``, its name, or a function of two rank vectors, as for :class:`Exponential`. The
        distance of partial rankings is the mean over their completions.

    Returns
    -------
    float
        The median; the mean if more than half of all pairs agree exactly, and 1 if all do.

    Examples
    --------
    >>> median_distance([[0, 1, 2], [0, 2, 1], [2, 1, 0]], "kendall")
    2.0
    """
    distance = as_distance(distance)
    rankings = as_rows(X).unique()
    if not len(rankings):
        raise RankingError("X has no rankings, so there is no median distance; give nu as a number")
    if rankings.n_voters == 1:
        return 1.0
    d = all_distances(distance, rankings)
    if d is None:
        values = sampled_distances(distance, rankings)
        return float(np.median(values)) or float(values.mean()) or 1.0
    return median_of_pairs(d, rankings.counts.astype(np.float64))


def median_of_pairs(d: FloatArray, counts: FloatArray) -> float:
    """Return the median distance of two different voters; the mean if it is 0, and 1 if all agree."""
    pairs = np.multiply.outer(counts, counts)
    np.fill_diagonal(pairs, counts * (counts - 1))
    if pairs.sum() == 0:
        return 1.0
    values = d.ravel()
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(pairs.ravel()[order])
    low, high = (np.searchsorted(cumulative, cumulative[-1] / 2, side=side) for side in ("left", "right"))
    median = float(values[order[[low, min(high, len(order) - 1)]]].mean())  # of two values at the half, their mean
    return median or float(np.average(d, weights=pairs)) or 1.0


def all_distances(distance: Distance, X: Rows) -> FloatArray | None:
    """Return the mean distance between the completions of each pair of rankings; None if that takes long."""
    n, n_items = len(X), X.n_items
    if n > MAX_RANKINGS:
        return None
    is_full = not isinstance(X, PartialOrders) and X.is_full()
    if distance.form is not None and not is_full:
        n_features = n_items if distance.form.statistic == "ranks" else n_items**2
        if n * n_features > CACHED_NUMBERS // 2:
            return None
        with suppress(ExactnessError):
            if isinstance(X, PartialOrders):
                X.prepare(FEW_DOWN_SETS)
            means = mean_statistics(X, distance.form.statistic)
            return distance.from_mean_statistics(means, means, n_items)
    n_draws = 1 if is_full else N_DRAWS_ALL
    if n * n * n_draws * n_items > MAX_STEPS or (distance.function is not None and n * n * n_draws > MAX_CALLS):
        return None
    ranks = completions_of(X, n_draws)
    total = np.zeros((n, n))
    for a in range(n_draws):  # no draw is compared with itself
        total += distance.between(ranks[:, a], ranks[:, (a + 1) % n_draws])
    return (total + total.T) / (2 * n_draws)


def sampled_distances(distance: Distance, X: Rows) -> FloatArray:
    """Return the mean distances of pairs of voters, drawn with a fixed seed."""
    rng, ends = np.random.default_rng(0), np.cumsum(X.counts)
    first, second = rng.integers(ends[-1], size=N_PAIRS), rng.integers(ends[-1] - 1, size=N_PAIRS)
    second += second >= first  # two different voters
    left, right = (np.searchsorted(ends, voters, side="right") for voters in (first, second))
    some, index = np.unique(np.concatenate([left, right]), return_inverse=True)
    is_full = not isinstance(X, PartialOrders) and X.is_full()
    ranks = completions_of(X[some], 1 if is_full else N_DRAWS)
    pairs = zip(index[:N_PAIRS], index[N_PAIRS:], strict=True)
    return np.array([distance.between(ranks[i], ranks[j]).mean() for i, j in pairs])


def completions_of(X: Rows, n_draws: int) -> RankArray:
    """Return completions of each ranking: shape (n_rankings, n_draws, n_items)."""
    if n_draws == 1:
        return X.ranks[:, None]
    drawn = (
        X.draw(n_draws, Uniform())[0] if isinstance(X, PartialOrders) else draw(X, n_draws, coupling="antithetic").ranks
    )
    return drawn.astype(np.int32)
