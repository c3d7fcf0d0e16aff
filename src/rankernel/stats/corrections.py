"""P-values of many tests, corrected for their number."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.checks import check_choice

Correction = Literal["holm", "benjamini-hochberg"]


def corrected_for_number(pvalues: FloatArray, correction: str) -> FloatArray:
    """Return p-values corrected by the named method."""
    check_choice("correction", correction, get_args(Correction))
    return holm(pvalues) if correction == "holm" else benjamini_hochberg(pvalues)


def holm(pvalues: FloatArray) -> FloatArray:
    """Return p-values corrected for their number by Holm's method: hardly ever is any of those below a level wrong.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(pvalues, kind="stable")
    raised = pvalues[order] * np.arange(len(pvalues), 0, -1)
    corrected = np.empty(len(pvalues))
    corrected[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return corrected


def benjamini_hochberg(pvalues: FloatArray, counts: IntArray | None = None) -> FloatArray:
    """Return p-values corrected by the method of Benjamini and Hochberg: few of those below a level are wrong.

    Each may stand for as many tests as its count says.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.04, 0.04])
    """
    order = np.argsort(-pvalues, kind="stable")
    times = np.ones(len(pvalues)) if counts is None else counts[order].astype(np.float64)
    n_tests = times.sum()
    before = np.cumsum(times) - times  # tests whose p-value is larger
    raised = pvalues[order] * n_tests / (n_tests - before)
    corrected = np.empty(len(pvalues))
    corrected[order] = np.minimum.accumulate(raised)
    return corrected
