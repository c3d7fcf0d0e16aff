"""Logarithms of sums of exponentials, with their derivatives."""

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


def log_sum_exp(exponents: FloatArray, derivatives: FloatArray) -> tuple[float, float]:
    """Return ``log sum_i exp(e_i)`` and its derivative, given the derivatives of the e_i.

    >>> log_sum_exp(np.log([1.0, 3.0]), np.array([0.0, -4.0])) == (np.log(4), -3.0)
    True
    """
    largest = float(exponents.max())
    terms = np.exp(exponents - largest)
    total = float(terms.sum())
    return largest + math.log(total), float(terms @ derivatives) / total


def log_mean_exp(log_weights: FloatArray, exponents: FloatArray, derivatives: FloatArray) -> tuple[float, float]:
    """Return ``log sum_i w_i exp(e_i)`` and its derivative, for weights that sum to 1 and exponents of at most 0.

    The relative precision is full also if all exponents, and so the logarithm, are close to 0.

    >>> log_mean_exp(np.log([0.5, 0.5]), np.array([0.0, -2e-20]), np.array([0.0, -2.0]))
    (-1e-20, -1.0)
    """
    log_mean, derivative = log_sum_exp(log_weights + exponents, derivatives)
    deficit = float(np.exp(log_weights) @ np.expm1(exponents))
    return (math.log1p(deficit) if deficit > -0.5 else log_mean), derivative
