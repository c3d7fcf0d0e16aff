"""The median heuristic for the decay rate of a kernel: one over the median distance between two rankings."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from rankernel._utils import FloatArray, FullRanks
from rankernel._utils.checks import check_instance
from rankernel.completions.draws import Uniform, draw
from rankernel.completions.linear_extensions import FEW_DOWN_SETS
from rankernel.distances import Distance
from rankernel.errors import ExactnessError, RankingError
from rankernel.gram.exact.features import expected_distances
from rankernel.gram.rows import PartialOrders, Rows, as_rows
from rankernel.kernels.base import Kernel

MAX_RANKINGS = 1000
MAX_RANKINGS_CALLABLE = 100  # a Python function is called for each pair of rankings
N_DRAWS = 16


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


def median_distance(X: Any, distance: Distance) -> float:
    """Return the median distance between the rankings of two different voters.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings; counts are multiplicities. Of more than 1,000 distinct rankings, a fixed random sample of 1,000 is
        used.
    distance : Distance
        One of ``rankernel.distances``. The distance of partial rankings is the mean over their completions.

    Returns
    -------
    float
        The median; the mean if more than half of all pairs agree exactly, and 1 if all do.

    Examples
    --------
    >>> from rankernel import distances
    >>> median_distance([[0, 1, 2], [0, 2, 1], [2, 1, 0]], distances.kendall)
    2.0
    """
    check_instance("distance", distance, Distance, "one of rankernel.distances")
    largest = MAX_RANKINGS if distance.function is None else MAX_RANKINGS_CALLABLE
    rankings = as_rows(X).unique()
    if not len(rankings):
        raise RankingError("X has no rankings, so there is no median distance; give nu as a number")
    if len(rankings) > largest:
        chosen = np.random.default_rng(0).choice(len(rankings), largest, replace=False)
        rankings = rankings[np.sort(chosen)]
    return median_of_pairs(mean_distances(distance, rankings), rankings.counts.astype(np.float64))


def median_of_pairs(d: FloatArray, counts: FloatArray) -> float:
    """Return the median distance of two different voters; the mean if it is 0, and 1 if all agree."""
    pairs = np.multiply.outer(counts, counts)
    np.fill_diagonal(pairs, counts * (counts - 1))
    if pairs.sum() == 0:
        return 1.0
    return weighted_median(d.ravel(), pairs.ravel()) or float(np.average(d, weights=pairs)) or 1.0


def mean_distances(distance: Distance, X: Rows) -> FloatArray:
    """Return the mean distance between the completions of each pair of rankings, estimated if there is no formula."""
    if isinstance(X, PartialOrders):
        with suppress(ExactnessError):
            if distance.embedding is not None:
                X.prepare(FEW_DOWN_SETS)
                expected = expected_distances(distance, X, X)
                assert expected is not None
                return expected
        return mean_draw_distances(distance, X.draw(N_DRAWS, Uniform())[0])
    if X.is_full():
        return np.asarray(distance.between(X.ranks, X.ranks), dtype=np.float64)
    expected = expected_distances(distance, X, X)
    return mean_draw_distances(distance, draw(X, N_DRAWS).ranks) if expected is None else expected


def mean_draw_distances(distance: Distance, draws: FullRanks) -> FloatArray:
    """Return the mean distance between draws of each pair of rankings, no draw compared with itself."""
    ranks = draws.astype(np.int32)
    total = np.zeros((len(ranks), len(ranks)))
    for a in range(N_DRAWS):
        total += distance.between(ranks[:, a], ranks[:, (a + 1) % N_DRAWS])
    return (total + total.T) / (2 * N_DRAWS)


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the median of weighted values; between two values, their mean."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    half = cumulative[-1] / 2
    low = order[np.searchsorted(cumulative, half, side="left")]
    high = order[min(np.searchsorted(cumulative, half, side="right"), len(order) - 1)]
    return float((values[low] + values[high]) / 2)
