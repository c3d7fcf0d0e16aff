"""Logarithms of sums of positive terms, with their derivatives: where every exact exponential kernel ends."""

from __future__ import annotations

import math

import numpy as np

from rankernel._utils.arrays import FloatArray


def logs(values: FloatArray) -> FloatArray:
    """Return logarithms, minus infinity for 0.

    >>> logs(np.array([1.0, 0.0]))
    array([  0., -inf])
    """
    with np.errstate(divide="ignore"):
        return np.log(values)


def log_sum_exp(exponents: FloatArray, slopes: FloatArray) -> tuple[float, float]:
    """Return ``log sum_i exp(e_i)`` and its derivative, given the derivatives of the e_i.

    >>> log_sum_exp(np.log([1.0, 3.0]), np.array([0.0, -4.0])) == (np.log(4), -3.0)
    True
    """
    largest = float(exponents.max())
    terms = np.exp(exponents - largest)
    total = float(terms.sum())
    return largest + math.log(total), float(terms @ slopes) / total


def log_mean_exp(log_weights: FloatArray, exponents: FloatArray, slopes: FloatArray) -> tuple[float, float]:
    """Return ``log sum_i w_i exp(e_i)`` and its derivative, for weights that sum to 1 and exponents of at most 0.

    Where all exponents are nearly 0 the logarithm is too, and keeps its relative precision.

    >>> log_mean_exp(np.log([0.5, 0.5]), np.array([0.0, -2e-20]), np.array([0.0, -2.0]))
    (-1e-20, -1.0)
    """
    log_mean, slope = log_sum_exp(log_weights + exponents, slopes)
    lack = float(np.exp(log_weights) @ np.expm1(exponents))
    return (math.log1p(lack) if lack > -0.5 else log_mean), slope
