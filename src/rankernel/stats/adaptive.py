"""As many permutations as the answer needs: many where the p-value is near the level, few where it is not.

The permutations are counted at looks that are fixed in advance. At each the test stops if so many exceedances, or so
few, would hardly come about were the p-value exactly the level (Gandy 2009). P-values of a test that stops are those of
its path (Fay, Kim and Hachey 2007): if the null hypothesis holds, the exceedances are drawn from Polya's urn, so that
the probability of every place to stop at is known, and the p-value is the probability of all places that speak at least
as much against the hypothesis. It is exact, not approximate: P(p <= a) <= a for every a.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, sqrt

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_integer, check_number

FIRST, GROWTH = 100, 1.5
RISK = 1e-3  # that the decision at the level is another than that of all permutations


@dataclass(frozen=True)
class Adaptive:
    """How many permutations a test draws, decided while it draws them: pass it as ``n_permutations``.

    Parameters
    ----------
    level : float
        The level at which the decision shall be sure: the test goes on while its p-value may be on either side.
    most : int
        The most permutations.

    Examples
    --------
    >>> from rankernel import Mallows, datasets, mmd_test
    >>> same = mmd_test(datasets.uniform(30, 4, rng=1), datasets.uniform(30, 4, rng=2), n_permutations="adaptive")
    >>> len(same.null_distribution), same.pvalue > 0.2
    (100, True)
    """

    level: float = 0.05
    most: int = 100_000

    def __post_init__(self) -> None:
        check_number("level", self.level, 0, 1)
        check_integer("most", self.most)

    def __str__(self) -> str:
        return f"at most {self.most:,} permutations, fewer where p is clearly above or below {self.level:g}"

    def boundaries(self) -> Boundaries:
        """Return where to look, and when to stop."""
        return boundaries_of(self.level, self.most)


@lru_cache(maxsize=32)
def boundaries_of(level: float, most: int) -> Boundaries:
    """Return the looks of a level, and the exceedances below or above which a test stops at each."""
    from scipy.stats import binom

    first = min(FIRST, most)
    n = np.unique(np.geomspace(first, most, 1 + ceil(log(most / first) / log(GROWTH))).round().astype(np.int64))
    risk = RISK / len(n) / 2
    # The largest number of exceedances with P(Bin <= s) <= risk, and the smallest with P(Bin >= s) <= risk.
    low = binom.ppf(risk, n, level).astype(np.int64)
    low -= binom.cdf(low, n, level) > risk
    high = binom.isf(risk, n, level).astype(np.int64) + 1
    return Boundaries(tuple(n.tolist()), tuple(low.tolist()), tuple(high.tolist()))


@dataclass(frozen=True)
class Boundaries:
    """After ``looks[k]`` permutations a test stops with at most ``low[k]`` or at least ``high[k]`` exceedances."""

    looks: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def stops(self, look: int, exceedances: int) -> bool:
        """Say whether a test is over."""
        last = look == len(self.looks) - 1
        return last or exceedances <= self.low[look] or exceedances >= self.high[look]

    def least_pvalue(self) -> float:
        """Return the smallest p-value: that of no exceedance at the first look at which it stops a test."""
        can_stop = [look for look, low in enumerate(self.low) if low >= 0]
        return self.pvalue(can_stop[0] if can_stop else len(self.looks) - 1, 0)

    def pvalue(self, look: int, exceedances: int) -> float:
        """Return the probability, if the null hypothesis holds, to stop here or where more speaks against it.

        What stops early with few exceedances speaks most against it, what stops early with many the least.
        """
        came = arrivals(self, look)
        if exceedances >= self.high[look]:
            before = sum(arrivals(self, k)[self.high[k] :].sum() for k in range(look))
            return float(1 - before - came[exceedances + 1 :].sum())
        before = sum(arrivals(self, k)[: self.low[k] + 1].sum() for k in range(look))
        return float(before + came[: exceedances + 1].sum())


@lru_cache(maxsize=256)
def arrivals(rule: Boundaries, look: int) -> FloatArray:
    """Return the probability to come to a look with so many exceedances."""
    if look == 0:
        return np.full(rule.looks[0] + 1, 1 / (rule.looks[0] + 1))  # every number is equally likely
    came, (last, here) = arrivals(rule, look - 1), rule.looks[look - 1 : look + 1]
    following = np.zeros(here + 1)
    for exceedances in range(max(rule.low[look - 1] + 1, 0), min(rule.high[look - 1], last + 1)):
        least, chances = urn(exceedances, last, here - last)
        following[exceedances + least : exceedances + least + len(chances)] += came[exceedances] * chances
    return following


def urn(before: int, n_before: int, n_more: int) -> tuple[int, FloatArray]:
    """Return how likely Polya's urn gives so many exceedances in ``n_more`` draws, after ``before`` in ``n_before``.

    From the least number on that is likely at all, up to the largest.
    """
    from scipy.special import betaln, gammaln

    a, b = before + 1, n_before - before + 1
    mean = n_more * a / (a + b)
    reach = 12 * sqrt(mean * b / (a + b) * (1 + n_more / (a + b))) + 40 * (1 + n_more / n_before)
    least, most = max(int(mean - reach), 0), min(int(mean + reach) + 1, n_more)
    more = np.arange(least, most + 1)
    ways = gammaln(n_more + 1) - gammaln(more + 1) - gammaln(n_more - more + 1)
    return least, np.asarray(np.exp(ways + betaln(more + a, n_more - more + b) - betaln(a, b)))
