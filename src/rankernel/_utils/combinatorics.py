"""Integer partitions, q-factorials, and logarithms of sums of exponentials."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rankernel._utils import FloatArray, Indices, IntArray


def descending(total: int) -> Iterator[list[int]]:
    """Yield the partitions of a number, those with the largest parts first; the list is reused."""
    parts = [total] if total else []
    while True:
        yield parts
        rest = 1
        while parts and parts[-1] == 1:
            rest += parts.pop()
        if not parts:
            return
        largest = parts.pop() - 1
        parts += [largest] * (1 + rest // largest) + ([rest % largest] if rest % largest else [])


def all_partitions(total: int, n_columns: int) -> IntArray:
    """Return all partitions of ``total`` as rows of multiplicities of the parts 0, ..., n_columns - 1."""
    cells = [row * n_columns + part for row, parts in enumerate(descending(total)) for part in parts]
    n_rows = sum(1 for _ in descending(total))
    counts = np.bincount(np.array(cells, dtype=np.intp), minlength=n_rows * n_columns)
    return np.asarray(counts.reshape(n_rows, n_columns), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PartitionIndex:
    """Partitions identified by a code: the sum of a random number for each part, modulo a power of two."""

    numbers: IntArray  # one for each part
    codes: IntArray  # one for each row
    order: Indices  # the rows in the order of their codes
    mask: int  # selects the bits of a code

    @staticmethod
    def of(rows: IntArray, bits: int = 62) -> PartitionIndex:
        """Return an index in which all rows have different codes of that many bits."""
        rng = np.random.default_rng(0)
        while True:
            numbers = rng.integers(2**bits, size=rows.shape[1])
            numbers[0] = 0
            codes = rows @ numbers & (2**bits - 1)
            order = np.argsort(codes)
            if (np.diff(codes[order]) > 0).all():
                return PartitionIndex(numbers, codes, order, 2**bits - 1)

    def rows_of(self, sums: IntArray) -> Indices:
        """Return the rows with these sums of numbers."""
        return self.order[np.searchsorted(self.codes, sums & self.mask, sorter=self.order)]

    def merged(self, rows: Indices, a: int, b: int) -> Indices:
        """Return the rows that result from merging two parts a and b of these rows into one."""
        return self.rows_of(self.codes[rows] + (self.numbers[a + b] - self.numbers[a] - self.numbers[b]))


# ---------------------------------------------------------------------- q-factorials


@np.errstate(under="ignore")  # large nu: powers of q are 0
def log_q_factorials(n: int, nu: float) -> FloatArray:
    """Return ``T[m] = log([m]_q! / m!)`` for m = 0..n, with ``q = exp(-nu)``.

    ``exp(T[m])`` is the mean of ``exp(-nu * inversions)`` over all orders of m items. Every sum has terms of one sign,
    so the relative error is a few rounding errors for any ``nu >= 0``, 0 included.
    """
    steps = np.arange(n, dtype=np.float64)
    number = steps + 1
    # [i]_q / i is 1 minus the mean of 1 - q^j over j < i, which is accurate close to 1; the mean of q^j is elsewhere.
    deficit = running_sum(-np.expm1(-nu * steps)) / number
    average = running_sum(np.exp(-nu * steps)) / number
    near_one = deficit < 0.5
    logs = np.where(near_one, np.log1p(-np.where(near_one, deficit, 0.0)), np.log(average))
    return np.concatenate([[0.0], running_sum(logs)])


@np.errstate(under="ignore")
def log_q_factorials_derivative(n: int, nu: float) -> FloatArray:
    """Return the derivative in nu of :func:`log_q_factorials`, for m = 0..n.

    ``-dT[m]`` is the mean number of inversions of m items where an order has weight ``exp(-nu * inversions)``.
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
    """
    if nu < 1e-6:  # the difference of h would lose its precision
        return np.where(np.arange(n + 1) > 0, 0.5, 0.0)
    distances = np.arange(1, n + 2)
    h = distances / -np.expm1(-nu * distances)
    return np.concatenate([[0.0], 1 - np.diff(h)])


# ---------------------------------------------------------------------- sums of exponentials


def logs(values: FloatArray) -> FloatArray:
    """Return logarithms, minus infinity for 0.

    >>> logs(np.array([1.0, 0.0]))
    array([  0., -inf])
    """
    with np.errstate(divide="ignore"):
        return np.log(values)


@np.errstate(under="ignore")
def log_sum_exp(exponents: FloatArray, derivatives: FloatArray) -> tuple[float, float]:
    """Return ``log sum_i exp(e_i)`` and its derivative, given the derivatives of the e_i.

    >>> log_sum_exp(np.log([1.0, 3.0]), np.array([0.0, -4.0])) == (np.log(4), -3.0)
    True
    """
    largest = float(exponents.max())
    terms = np.exp(exponents - largest)
    total = float(terms.sum())
    return largest + math.log(total), float(terms @ derivatives) / total


@np.errstate(under="ignore")
def log_mean_exp(log_weights: FloatArray, exponents: FloatArray, derivatives: FloatArray) -> tuple[float, float]:
    """Return ``log sum_i w_i exp(e_i)`` and its derivative, for weights that sum to 1 and exponents of at most 0.

    The relative precision is full also if all exponents, and so the logarithm, are close to 0.

    >>> log_mean_exp(np.log([0.5, 0.5]), np.array([0.0, -2e-20]), np.array([0.0, -2.0]))
    (-1e-20, -1.0)
    """
    log_mean, derivative = log_sum_exp(log_weights + exponents, derivatives)
    deficit = float(np.exp(log_weights) @ np.expm1(exponents))
    return (math.log1p(deficit) if deficit > -0.5 else log_mean), derivative
