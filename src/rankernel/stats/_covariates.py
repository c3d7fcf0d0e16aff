"""Covariates of voters: labels, numbers, rankings or times, with a kernel between their distinct values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, Indices
from rankernel._utils.checks import check_choice, check_labels, check_unmasked, short_repr
from rankernel.data import Data, as_data, with_counts
from rankernel.errors import RankingError
from rankernel.gram.bandwidth import MAX_RANKINGS, median_of_pairs
from rankernel.gram.methods import MethodLike
from rankernel.kernels.base import Kernel
from rankernel.rankings import is_missing
from rankernel.stats._moments import CentredKernel
from rankernel.stats._sample import Sample, check_kernel

CovariateKernel = Literal["auto", "delta", "gaussian"] | Kernel


@dataclass(frozen=True, eq=False)
class Covariate:
    """A covariate of voters."""

    values: Indices  # the number of the value of each voter
    gram: FloatArray  # the kernel between values
    text: str  # description of the values and the kernel
    sample: Sample | None = None  # the distinct values, if they are rankings

    def centred(self, biased: bool) -> CentredKernel:
        """Return the kernel between values, centred over voters."""
        counts = np.bincount(self.values, minlength=len(self.gram)).astype(np.float64)
        return CentredKernel.from_gram(self.gram, counts, biased)


def make_covariate(values: Any, X: Data, kernel: CovariateKernel, method: MethodLike) -> Covariate:
    """Return the covariate of the voters of X, one value for each row of X."""
    if isinstance(values, Data):
        return ranking_covariate(values, X, kernel, method)
    check_unmasked("covariate", values)
    array = np.asarray(values)
    if array.ndim not in (1, 2) or len(array) != len(X):
        raise RankingError(
            f"covariate has shape {array.shape}, but there are {len(X)} rankings; give one value for each row"
        )
    if isinstance(kernel, Kernel):
        raise ValueError(f"covariate_kernel={kernel!r} is for rankings; for other values use 'delta' or 'gaussian'")
    check_choice("covariate_kernel", kernel, ("auto", "delta", "gaussian"))
    is_numeric = array.dtype.kind == "f" or array.ndim == 2
    if kernel == "gaussian" or (kernel == "auto" and is_numeric):
        return numeric_covariate(array, X)
    return label_covariate(array, X)


def label_covariate(labels: NDArray[Any], X: Data) -> Covariate:
    """Return labels with the delta kernel: 1 for equal labels, 0 otherwise."""
    if labels.ndim != 1:
        raise RankingError(f"covariate has shape {labels.shape}; the delta kernel takes one label for each row")
    for row, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise RankingError(f"the covariate of row {row} is missing; leave out rows without one")
    names, codes = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)
    text = f"labels ({len(names)} different, delta kernel)"
    return Covariate(np.repeat(codes.ravel(), X.counts), np.eye(len(names)), text)


def numeric_covariate(values: NDArray[Any], X: Data) -> Covariate:
    r"""Return numbers with the Gaussian kernel :math:`\exp(-|x - y|^2 / 2 s^2)`, s the median of ``|x - y|``."""
    from scipy.spatial.distance import cdist

    try:
        matrix = values.astype(np.float64).reshape(len(X), -1)
    except (TypeError, ValueError):
        raise RankingError(
            f"the covariate of row 0 is {short_repr(values[0])}, and the Gaussian kernel takes numbers; give numbers, "
            "or covariate_kernel='delta' for labels"
        ) from None
    if not np.isfinite(matrix).all():
        row = int(np.argmax(~np.isfinite(matrix).all(axis=1)))
        raise RankingError(f"the covariate of row {row} is {values[row]}; give finite numbers, leave out missing ones")
    points, codes = np.unique(matrix, axis=0, return_inverse=True)
    counts = np.bincount(codes.ravel(), weights=X.counts).astype(np.float64)
    squares = cdist(points, points, "sqeuclidean")
    subset: Any = slice(None)
    if len(points) > MAX_RANKINGS:
        subset = np.sort(np.random.default_rng(0).choice(len(points), MAX_RANKINGS, replace=False))
    bandwidth = median_of_pairs(np.sqrt(squares[subset][:, subset]), counts[subset])
    text = f"numbers (Gaussian kernel, bandwidth {bandwidth:.6g})"
    squares /= -2 * bandwidth**2  # in place, to hold one matrix
    return Covariate(np.repeat(codes.ravel(), X.counts), np.exp(squares, out=squares), text)


def ranking_covariate(values: Data, X: Data, kernel: CovariateKernel, method: MethodLike) -> Covariate:
    """Return other rankings of the same voters as a covariate."""
    if len(values) != len(X):
        raise RankingError(f"covariate has {len(values)} rankings and X has {len(X)}; give one for each row of X")
    if not (np.array_equal(values.counts, X.counts) or (values.counts == 1).all()):
        raise RankingError("covariate has other counts than X; a row of X and its covariate are the same voters")
    if isinstance(kernel, str) and kernel != "auto":
        raise ValueError(f"covariate_kernel={kernel!r} is not for rankings; give a kernel such as Mallows(0.1)")
    voters = with_counts(as_data(values), X.counts)
    plan = check_kernel(None if isinstance(kernel, str) else kernel).plan(voters, method=method)
    sample = Sample.from_plan(voters, plan)
    return Covariate(np.repeat(sample.index, X.counts), sample.gram, f"rankings ({plan.kernel})", sample)


# ---------------------------------------------------------------------- times


def time_covariate(times: FloatArray, X: Data) -> Covariate:
    """Return times with the product kernel of standardised times."""
    points, codes = np.unique(times, return_inverse=True)
    if len(points) < 2:
        raise RankingError(f"time is {points[0]:g} in all rows; a trend needs at least two times")
    values = np.repeat(codes.ravel(), X.counts)
    standardised = (points - points[values].mean()) / points[values].std()
    text = f"times ({len(points):,} different, product kernel)"
    return Covariate(values, np.outer(standardised, standardised), text)


def check_times(time: Any, n_rows: int) -> FloatArray:
    """Return times as numbers, one for each row: dates as days, ordered categories as 0, 1, 2, ..."""
    check_labels("time", time, n_rows)
    categorical = getattr(time, "cat", time)  # the accessor of a pandas Series
    if getattr(categorical, "ordered", False) and hasattr(categorical, "codes"):
        codes = np.asarray(categorical.codes, dtype=np.float64)
        values: NDArray[Any] = np.where(codes < 0, np.nan, codes)
    else:
        values = time_array(time)
    if values.dtype.kind == "M":
        numbers = (values - np.datetime64(0, "D")) / np.timedelta64(1, "D")
    elif values.dtype.kind in "iufb":
        numbers = values.astype(np.float64)
    else:
        raise RankingError(
            f"time must hold numbers or dates, and the first is {short_repr(values.tolist()[0])}; for ordered groups "
            "give 1, 2, 3 or an ordered categorical"
        )
    missing = ~np.isfinite(numbers)
    if missing.any():
        raise RankingError(f"the time of row {int(np.argmax(missing))} is missing; leave out rows without one")
    return np.asarray(numbers, dtype=np.float64)


def time_array(time: Any) -> NDArray[Any]:
    """Return times as an array of numbers or of dates if they are, and otherwise unchanged."""
    array = np.asarray(time)
    if array.dtype != object:
        return array
    values = [value.to_timestamp() if hasattr(value, "to_timestamp") else value for value in array.tolist()]  # periods
    known = [value for value in values if not is_missing(value)]
    if known and all(isinstance(value, date) for value in known):  # a datetime or a Timestamp is a date
        dates = [np.datetime64("NaT") if is_missing(value) else as_datetime64(value) for value in values]
        return np.array(dates, "M8[us]")
    if known and all(isinstance(value, Real) for value in known):
        return np.array([np.nan if is_missing(value) else float(value) for value in values])
    return array


def as_datetime64(value: date) -> np.datetime64:
    """Return a date or a time as a datetime64 in UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value.isoformat(), "us")
