"""Confidence intervals by the bootstrap: resampling repetitions, with a seed of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankernel._utils.arrays import FloatArray
from reproduction.outcome import Interval, Spread

RESAMPLES = 2000
LEVEL = 0.95


def spread(values: FloatArray | list[float]) -> Spread:
    """Return the mean and the standard deviation of single results, those that there are."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    return Spread(float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else float("nan"))


def bootstrap(statistic: Callable[[FloatArray], FloatArray], samples: FloatArray, seed: int) -> Interval:
    """Return a statistic with the interval that holds 95% of its values on resampled repetitions.

    What stands in one row of the samples stays together. The statistic takes an array of shape (n_resamples,
    n_repetitions, ...) and returns one value for each resample.
    """
    rows = np.random.default_rng(seed).integers(len(samples), size=(RESAMPLES, len(samples)))
    with np.errstate(divide="ignore", invalid="ignore"):  # a ratio of two zeros says nothing, and is left out
        value, resampled = statistic(samples[None])[0], statistic(samples[rows])
        if np.isnan(resampled).all():
            return Interval(float("nan"), float("nan"), float("nan"))
        low, high = np.nanquantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
    return Interval(float(value), float(low), float(high))


def ratio_of_deviations(paired: FloatArray, seed: int) -> Interval:
    """Return the standard deviation of the first column over that of the second: shape (n_repetitions, 2)."""
    return bootstrap(lambda s: np.asarray(np.divide(*np.moveaxis(s.std(axis=1, ddof=1), -1, 0))), paired, seed)


def ratio_of_variances(paired: FloatArray, seed: int) -> Interval:
    """Return the variance of the first column over that of the second: shape (n_repetitions, 2)."""
    return bootstrap(lambda s: np.asarray(np.divide(*np.moveaxis(s.var(axis=1, ddof=1), -1, 0))), paired, seed)
