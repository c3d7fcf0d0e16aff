"""Logarithms of q-factorials divided by factorials, which occur in the Mallows kernel and the Mallows model."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rankernel._utils.arrays import FloatArray


def log_q_factorials(n: int, nu: float) -> FloatArray:
    """Return ``T[m] = log([m]_q! / m!)`` for m = 0..n, with ``q = exp(-nu)``.

    ``exp(T[m])`` is the mean of ``exp(-nu * inversions)`` over all orders of m items. Every sum has terms of one sign,
    so the relative error is a few rounding errors for any ``nu >= 0``, 0 included.

    Examples
    --------
    Three items have 0, 1, 1, 2, 2, 3 inversions:

    >>> q = np.exp(-0.5)
    >>> bool(np.isclose(np.exp(log_q_factorials(3, 0.5)[3]), (1 + 2 * q + 2 * q**2 + q**3) / 6, rtol=1e-15))
    True
    """
    steps = np.arange(n, dtype=np.float64)
    number = steps + 1
    # [i]_q / i is 1 minus the mean of 1 - q^j over j < i, which is accurate close to 1; the mean of q^j is elsewhere.
    deficit = running_sum(-np.expm1(-nu * steps)) / number
    average = running_sum(np.exp(-nu * steps)) / number
    near_one = deficit < 0.5
    logs = np.where(near_one, np.log1p(-np.where(near_one, deficit, 0.0)), np.log(average))
    return np.concatenate([[0.0], running_sum(logs)])


def log_q_factorials_derivative(n: int, nu: float) -> FloatArray:
    """Return the derivative in nu of :func:`log_q_factorials`, for m = 0..n.

    ``-dT[m]`` is the mean number of inversions of m items where an order has weight ``exp(-nu * inversions)``.

    Examples
    --------
    >>> log_q_factorials_derivative(4, 0.0)  # half of all pairs
    array([-0. , -0. , -0.5, -1.5, -3. ])
    """
    steps = np.arange(n, dtype=np.float64)
    weights = np.exp(-nu * steps)
    inversions = running_sum(steps * weights) / running_sum(weights)
    return -np.concatenate([[0.0], running_sum(inversions)])


def running_sum(terms: FloatArray) -> FloatArray:
    """Return cumulative sums with compensation of rounding errors."""
    sums = np.cumsum(terms)
    before = np.concatenate([[0.0], sums[:-1]])
    added = sums - before
    lost = (before - (sums - added)) + (terms - added)
    corrected: FloatArray = sums + np.cumsum(lost)
    return corrected


@lru_cache(maxsize=64)
def tables(n: int, nu: float) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of the q-factorials up to n items, and their derivatives, cached."""
    logs, derivatives = log_q_factorials(n, nu), log_q_factorials_derivative(n, nu)
    logs.flags.writeable = derivatives.flags.writeable = False
    return logs, derivatives


def log_q_factorial(n: int, nu: float) -> float:
    """Return ``log [n]_q!``: the logarithm of the sum of ``exp(-nu inversions)`` over all orders of n items."""
    return float(tables(n, nu)[0][n]) + math.lgamma(n + 1)


def mean_inversions(n: int, nu: float) -> float:
    """Return the mean number of inversions of n items where an order has weight ``exp(-nu inversions)``."""
    return -float(tables(n, nu)[1][n])


def inversion_probabilities(n: int, nu: float) -> FloatArray:
    """Return the probability that two items at distance 0..n in the center are inverted, under the Mallows model.

    The probability depends only on the distance d of the two positions (Mallows 1957): it is 1 - h(d + 1) + h(d) with
    ``h(d) = d / (1 - exp(-nu d))``.

    Examples
    --------
    Neighbours are inverted with odds 1 to 2:

    >>> inversion_probabilities(2, np.log(2)).round(4)
    array([0.    , 0.3333, 0.2381])
    """
    if nu < 1e-6:  # the difference of h would lose its precision
        return np.where(np.arange(n + 1) > 0, 0.5, 0.0)
    distances = np.arange(1, n + 2)
    h = distances / -np.expm1(-nu * distances)
    return np.concatenate([[0.0], 1 - np.diff(h)])
