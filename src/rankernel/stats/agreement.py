r"""Chance-corrected agreement between judges who rank the same items.

The agreement :math:`1 - D_o / D_e` compares the mean squared kernel distance :math:`D_o` of two judges with its mean
:math:`D_e` if the items of each ranking were relabelled at random, as Krippendorff's alpha does for other data. A
relabelled ranking is uniform given its ties and free items, so its mean embedding is that of a ranking of which
nothing is known: with c the mean kernel between that ranking and the judges',

.. math:: 1 - \frac{D_o}{D_e}
    = \frac{\frac{1}{m (m - 1)} \sum_{i \ne j} k(R_i, R_j) - c}{\frac{1}{m} \sum_i k(R_i, R_i) - c} .
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._utils import FloatArray
from rankernel._utils.checks import check_number
from rankernel._utils.resources import check_task
from rankernel.data import as_data
from rankernel.errors import RankingError
from rankernel.gram.plan import MethodLike
from rankernel.kernels.base import Kernel, as_kernel
from rankernel.kernels.kendall import Kendall
from rankernel.rankings import Rankings
from rankernel.stats.base import PrintedResult, Sample, SummaryLines

MIN_JUDGES = 3  # a jackknife of two would leave no pair


@dataclass(frozen=True, eq=False, kw_only=True)
class AgreementResult(PrintedResult):
    """Result of :func:`agreement`.

    Attributes
    ----------
    agreement : float
        The agreement: 1 if all judges give the same ranking, 0 on average if they rank at random.
    standard_error : float
        Its standard error, by the jackknife over judges.
    interval : tuple of float
        Its confidence interval, by the t distribution.
    confidence_level : float
        The confidence level of the interval.
    observed, expected : float
        The mean squared kernel distance of two judges, observed and for rankings with items relabelled at random.
    n_judges : int
        The number of judges.
    kernel : Kernel
        The kernel with all parameters resolved.
    method : str
        How kernel values were computed.
    """

    agreement: float
    standard_error: float
    interval: tuple[float, float]
    confidence_level: float
    observed: float
    expected: float
    n_judges: int
    kernel: Kernel | None
    method: str

    def _summary(self) -> SummaryLines:
        low, high = self.interval
        return [
            ("agreement", f"{self.agreement:.3g}, {self.confidence_level:.0%} interval {low:.3g} to {high:.3g}"),
            ("distance", f"{self.observed:.3g} between two judges, {self.expected:.3g} by chance (squared, mean)"),
            ("judges", f"{self.n_judges:,}"),
            ("kernel", str(self.kernel)),
            ("method", f"kernel values: {self.method}"),
        ]


@np.errstate(under="ignore")
def agreement(
    X: Any,
    kernel: Kernel | str | None = None,
    *,
    confidence_level: float = 0.95,
    method: MethodLike = "auto",
    n_jobs: int | None = None,
) -> AgreementResult:
    r"""Return the chance-corrected agreement between judges, with a jackknife interval.

    The agreement is :math:`1 - D_o / D_e`, with :math:`D_o` the mean squared kernel distance of two judges and
    :math:`D_e` its expectation if the items of one of the two rankings are permuted at random. With the Kendall kernel
    and full rankings it is the mean of Kendall's tau over all pairs of judges. With :class:`Spearman` and full rankings
    it is the mean of Spearman's rho. If a is the agreement with :class:`Spearman`, Kendall's W of m judges is
    :math:`(1 + (m - 1) a) / m`, also with ties.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings, one for each judge; a row of count c is c judges.
    kernel : Kernel or str, optional
        The kernel; by default :class:`Kendall`.
    confidence_level : float
        The confidence level of the interval.
    method, n_jobs
        As in :func:`mmd_test`.

    Returns
    -------
    AgreementResult

    Examples
    --------
    Three judges, two of whom agree: the mean of tau = 1, -1/3 and -1/3.

    >>> result = agreement([[0, 1, 2], [0, 1, 2], [2, 0, 1]])
    >>> round(result.agreement, 3)
    0.111
    """
    from scipy.special import stdtrit

    data = as_data(X)
    confidence_level = check_number("confidence_level", confidence_level, 0, 1)
    if data.n_voters < MIN_JUDGES:
        raise RankingError(f"X has {data.n_voters} judges; a standard error needs at least {MIN_JUDGES}")
    plan = (Kendall() if kernel is None else as_kernel(kernel)).plan(data, method=method)
    check_task("a test of groups", len(plan._X))
    sample = Sample.from_plan(data, plan, n_jobs)
    gram, counts, n = sample.gram, sample.data.counts.astype(np.float64), float(data.n_voters)
    diagonal = np.diagonal(gram)
    tied = Rankings(np.zeros((1, data.n_items), dtype=np.int32), data.items)  # any order is one of its completions
    chance = plan.kernel.gram(tied, sample.data, method=plan.method)[0]
    row_sums = gram @ counts - diagonal  # over the other judges
    pairs, own, random = float(counts @ row_sums), float(counts @ diagonal), float(counts @ chance)
    value = float(corrected(pairs, own, random, n))
    without = corrected(pairs - 2 * row_sums, own - diagonal, random - chance, n - 1)  # each judge in turn
    error = float(np.sqrt((n - 1) / n * (counts @ (without - counts @ without / n) ** 2)))
    margin = float(stdtrit(n - 1, (1 + confidence_level) / 2)) * error
    return AgreementResult(
        agreement=value,
        standard_error=error,
        interval=(value - margin, min(value + margin, 1.0)),
        confidence_level=confidence_level,
        observed=2 * own / n - 2 * pairs / (n * (n - 1)),
        expected=2 * (own - random) / n,
        n_judges=data.n_voters,
        kernel=sample.kernel,
        method=sample.method,
    )


def corrected(pairs: Any, own: Any, random: Any, n_judges: float) -> FloatArray:
    """Return the agreement from sums of the kernel: over pairs of judges, of judges with themselves, and by chance."""
    largest = np.asarray((own - random) / n_judges)
    agreed = np.asarray(pairs / (n_judges * (n_judges - 1)) - random / n_judges)
    return np.divide(agreed, largest, out=np.full(largest.shape, np.nan), where=largest > 0)
