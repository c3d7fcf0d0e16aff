"""The median heuristic: one over the median distance between two rankings of the data."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_instance
from rankernel.completions.draws import Draws, Uniform, draw
from rankernel.completions.partial_orders import FEW_DOWN_SETS
from rankernel.distances import Distance
from rankernel.errors import ExactnessError, RankingError
from rankernel.gram.exact.features import expected_distances
from rankernel.gram.poset_rows import PartialOrders, Rows, as_rows
from rankernel.kernels.base import Kernel

MOST_RANKINGS = 1000
MOST_BY_FUNCTION = 100  # a Python function is called for each pair of rankings
DRAWS = 16


def median_rate(kernel: Kernel, X: Any) -> float:
    """Return one over the median distance within the data, for the distance of which the kernel is a function."""
    data = as_rows(X)
    distance = kernel.facts(data.n_items).distance
    if distance is None:
        raise ValueError(
            f"{kernel} is not known to be a function of a distance, so 'median' cannot be resolved; give a number, use "
            "Exponential(distance, nu='median'), or define facts(n_items) with a distance"
        )
    return 1 / median_distance(distance, data)


def median_distance(distance: Distance, X: Any) -> float:
    """Return the median distance between the rankings of two different voters.

    For partial rankings the distance is its mean over the completions of both. Voters count by multiplicity. Of more
    than a thousand distinct rankings, a thousand are taken at random (always the same ones). If more than half of all
    pairs agree exactly, the mean distance is taken instead, and if all do, 1.

    Examples
    --------
    >>> from rankernel import distances
    >>> median_distance(distances.kendall, [[0, 1, 2], [0, 2, 1], [2, 1, 0]])
    2.0
    """
    check_instance("distance", distance, Distance, "one of rankernel.distances")
    most = MOST_RANKINGS if distance.function is None else MOST_BY_FUNCTION
    rankings = as_rows(X).unique()
    if not len(rankings):
        raise RankingError("X: there are no rankings to take the median distance of; give nu as a number")
    if len(rankings) > most:
        chosen = np.random.default_rng(0).choice(len(rankings), most, replace=False)
        rankings = rankings[np.sort(chosen)]
    return median_of_pairs(mean_distances(distance, rankings), rankings.counts.astype(np.float64))


def median_of_pairs(d: FloatArray, counts: FloatArray) -> float:
    """Return the median distance of two different voters; the mean if that is 0, and 1 if all agree."""
    pairs = np.multiply.outer(counts, counts)
    np.fill_diagonal(pairs, counts * (counts - 1))
    if pairs.sum() == 0:
        return 1.0
    return weighted_median(d.ravel(), pairs.ravel()) or float(np.average(d, weights=pairs)) or 1.0


def mean_distances(distance: Distance, X: Rows) -> FloatArray:
    """Return the mean distance between the completions of each pair of rankings, estimated where it has no formula."""
    if isinstance(X, PartialOrders):
        return mean_distances_of_orders(distance, X)
    if X.is_full():
        return np.asarray(distance.between(X.ranks, X.ranks), dtype=np.float64)
    expected = expected_distances(distance, X, X)
    if expected is not None:
        return expected
    return matched_distances(distance, draw(X, DRAWS))


def mean_distances_of_orders(distance: Distance, X: PartialOrders) -> FloatArray:
    """Return the same for partial orders."""
    if distance.embedding is not None:
        with suppress(ExactnessError):
            X.prepare(FEW_DOWN_SETS)
            expected = expected_distances(distance, X, X)
            assert expected is not None
            return expected
    return matched_distances(distance, X.draw(DRAWS, Uniform()))


def matched_distances(distance: Distance, draws: Draws) -> FloatArray:
    """Return the mean distance between the draws of each pair of rankings."""
    ranks = draws.ranks.astype(np.int32)
    # Each draw of the one against the next of the other, so that no draw of a ranking meets itself.
    total = np.zeros((len(ranks), len(ranks)))
    for a in range(DRAWS):
        total += distance.between(ranks[:, a], ranks[:, (a + 1) % DRAWS])
    return (total + total.T) / (2 * DRAWS)


def weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Return the middle of weighted values; between two, their mean."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    half = reached[-1] / 2
    low = order[np.searchsorted(reached, half, side="left")]
    high = order[min(np.searchsorted(reached, half, side="right"), len(order) - 1)]
    return float((values[low] + values[high]) / 2)
