"""The test of a trend: whether rankings move in one direction over time, or along ordered groups."""

from __future__ import annotations

from datetime import UTC, date, datetime
from numbers import Real
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_labels, short_repr
from rankernel._utils.memory import check_task, check_voters
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data, as_data
from rankernel.encoding import is_missing
from rankernel.errors import RankingError
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.methods import MethodLike
from rankernel.gram.rows import as_rows
from rankernel.kernels.base import Kernel
from rankernel.stats._covariates import Covariate
from rankernel.stats._groups import strata_codes
from rankernel.stats._permutations import PermutationsLike, as_permutations
from rankernel.stats._voters import Ballots, plan_for_test, voter_gram
from rankernel.stats.hsic import VOTER_BYTES, Dependence, dependence_result
from rankernel.stats.mmd import check_kernel
from rankernel.stats.results import TrendResult

LEAST_VOTERS = 4


def trend_test(
    X: Any,
    time: Any,
    kernel: Kernel | None = None,
    n_permutations: PermutationsLike = 1000,
    rng: Seed = 0,
    method: MethodLike = "auto",
    strata: Any = None,
    n_jobs: int | None = None,
) -> TrendResult:
    r"""Test whether rankings move in one direction over time, or along ordered groups.

    The Hilbert-Schmidt independence criterion with the kernel :math:`(t_i - \bar t)(t_j - \bar t)`: the squared length
    of the covariance of time and embedding. Of all ways to depend on time it looks for a steady one, which it finds
    with fewer voters than :func:`hsic_test` or :func:`k_sample_test`.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings.
    time : array of shape (n_rankings,)
        The time of each row: numbers, or dates of any kind (NumPy, pandas, ``datetime``), which are taken as days. Or
        its group: 1, 2, 3, ... for groups in order, or an ordered categorical of pandas.
    kernel : Kernel, optional
        The kernel of the rankings; ``Mallows("median")`` if left out.
    n_permutations : int, "adaptive" or Adaptive
        How many permutations of the times make the null distribution.
    rng : int or Generator
        Where they come from.
    method : as in :meth:`Kernel.gram`
        How to compute kernel values.
    strata : array of shape (n_rankings,), optional
        A label for each row: times are permuted only within strata.
    n_jobs : int, optional
        How many tiles of the Gram matrix to compute at once.

    Returns
    -------
    TrendResult

    Examples
    --------
    Over three years b overtakes a:

    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]] * 3, counts=[8, 1, 5, 4, 2, 8])
    >>> result = trend_test(ballots, [2019, 2019, 2020, 2020, 2021, 2021])
    >>> result.pvalue < 0.05, {item: round(slope, 1) for item, slope in result.slopes.items()}
    (True, {'a': 0.3, 'b': -0.3, 'c': 0.0})
    """
    data = as_data(X)
    wanted, start = as_permutations(n_permutations), as_seed(rng)
    if data.n_voters < LEAST_VOTERS:
        raise RankingError(f"X has {data.n_voters} voter(s); this statistic needs at least {LEAST_VOTERS}")
    check_voters(data.n_voters, VOTER_BYTES, "a test of a trend")
    times, stratum = checked_times(time, data), strata_codes(strata, data)
    plan = plan_for_test(check_kernel(kernel), data, method)
    check_task("a test of a trend", len(data))
    points, codes = np.unique(times, return_inverse=True)
    if len(points) < 2:
        raise RankingError(f"time is {points[0]:g} in all rows; a trend needs two times")
    of_voter = np.repeat(codes.ravel(), data.counts)
    centred = (points - points[of_voter].mean()) / points[of_voter].std()
    order = Covariate(of_voter, np.outer(centred, centred), f"times ({len(points):,} different, product kernel)")
    form = Dependence(voter_gram(plan, n_jobs), Ballots.of(data, plan).of_voter, order, biased=False)
    found = dependence_result(form, data, plan, np.repeat(stratum, data.counts), wanted, start)
    return TrendResult(**vars(found), slopes=dict(zip(data.items, item_slopes(data, times).tolist(), strict=True)))


def checked_times(time: Any, X: Data) -> FloatArray:
    """Return times as numbers, one for each row."""
    check_labels("time", time, len(X))
    codes = ordered_codes(time)
    given: np.ndarray[Any, Any] = as_array(time) if codes is None else codes
    if given.dtype.kind == "M":
        numbers = (given - np.datetime64(0, "D")) / np.timedelta64(1, "D")
    elif given.dtype.kind in "iufb":
        numbers = given.astype(np.float64)
    else:
        raise RankingError(
            f"time holds numbers or dates, and the first is {short_repr(given.tolist()[0])}; of ordered groups give 1, 2, 3 "
            "or an ordered categorical"
        )
    missing = ~np.isfinite(numbers)
    if missing.any():
        raise RankingError(f"the time of row {int(np.argmax(missing))} is missing; leave out rows without one")
    return np.asarray(numbers, dtype=np.float64)


def ordered_codes(time: Any) -> FloatArray | None:
    """Return the places of ordered categories, nan where one is missing; None of anything that has no such order."""
    categorical = getattr(time, "cat", time)  # a Series keeps it there
    if not getattr(categorical, "ordered", False) or not hasattr(categorical, "codes"):
        return None
    codes = np.asarray(categorical.codes, dtype=np.float64)
    return np.where(codes < 0, np.nan, codes)


def as_array(time: Any) -> np.ndarray[Any, Any]:
    """Return times as an array of numbers or of dates; an array of anything else stays as it is."""
    given = np.asarray(time)
    if given.dtype != object:
        return given
    values = [value.to_timestamp() if hasattr(value, "to_timestamp") else value for value in given.tolist()]  # periods
    known = [value for value in values if not is_missing(value)]
    if known and all(isinstance(value, date) for value in known):  # a datetime is a date, and so is a Timestamp
        return np.array([np.datetime64("NaT") if is_missing(value) else as_day(value) for value in values], "M8[us]")
    if known and all(isinstance(value, Real) for value in known):
        return np.array([np.nan if is_missing(value) else float(value) for value in values])
    return given


def as_day(value: date) -> np.datetime64:
    """Return a date or a time as NumPy has it; a time zone is that of Greenwich."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value.isoformat(), "us")


def item_slopes(X: Data, times: FloatArray) -> FloatArray:
    """Return by how many places each item falls with each unit of time, by least squares over voters."""
    weights = X.counts / X.n_voters
    spread = times - weights @ times
    return np.asarray((weights * spread) @ mean_statistics(as_rows(X), "ranks") / (weights @ spread**2))
