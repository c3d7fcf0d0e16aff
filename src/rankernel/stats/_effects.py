r"""Effect sizes and their confidence intervals, by inversion of the test.

An effect is a share :math:`e = B / (B + W)` of the dispersion. The distribution of its estimate is approximated for
every true effect. If e = 0, the estimate follows the null distribution of the test, whose moments are known. If e > 0,
the dispersion within is smaller, which scales the null distribution by :math:`1 - e` for the smaller dispersion and by
:math:`1 - e` again because the estimate is a share; and the sampled voters shift the estimate, to first order by their
influences a on B and b on W,

.. math:: \hat e - e \approx (1 - e) \, \sum_i a_i / n - e \, \sum_i b_i / n .

Influences are computed in a population with the observed effect; a is proportional to the root of :math:`e (1 - e)`, b
to :math:`1 - e`. Variances and third cumulants of the two parts add, and a Pearson type III distribution has them.

The 95 % interval inverts two one-sided 2.5 % tests. At e = 0 the distribution is the null distribution, so the interval
excludes 0 exactly if the p-value from moments is below 0.025.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rankernel._utils import FloatArray, Indices
from rankernel.stats._moments import Moments

ROUNDING = 1e-12  # dispersions below this part of the mean diagonal of the Gram matrix are rounding errors
PRIOR_VOTERS = 0.5  # pooled voters added to each group, so that a group of identical rankings has some variance

Interval = tuple[float, float]
Gradient = Callable[[Indices], FloatArray]  # the given rows of the derivative of a number by the kernel matrix
UNDEFINED: Interval = (float("nan"), float("nan"))


class InfluenceSample(NamedTuple):
    """First-order influences of the voters of one independent sample, as shares of B + W."""

    between: FloatArray  # a: the influence on B of a voter with each ranking
    within: FloatArray  # b: the influence on W
    shares: FloatArray  # the share of each ranking in the population
    n_voters: float


class Effect(ABC):
    """An effect size B / (B + W), estimated without bias from pairs of different voters."""

    @abstractmethod
    def parts(self) -> tuple[float, float]:
        """Return unbiased estimates of B and W."""

    @abstractmethod
    def population_parts(self) -> tuple[float, float]:
        """Return B and W of the population in which influences are computed."""

    @abstractmethod
    def influences(self, total: float) -> Iterable[InfluenceSample]:
        """Return the influences of voters, as shares of ``total``, the estimate of B + W."""

    @abstractmethod
    def null_moments(self, null: Moments) -> Moments:
        """Return the moments of the estimate of B under the null hypothesis.

        ``null`` has the moments of the test statistic, for use where those of B are not known exactly.
        """

    def explained(self, total: float) -> float:
        """Return how much of the permuted dispersion one unit of the effect explains: 1 if voters are permuted."""
        return 1.0

    @property
    def scale(self) -> float:
        """The scale of rounding errors of B + W: the mean absolute kernel value of a ranking with itself."""
        return 0.0

    @cached_property
    def value(self) -> float:
        """The estimate: 0 if nothing differs at all, nan if it is undefined."""
        return share(*self.parts(), self.scale)

    @property
    def is_defined(self) -> bool:
        """Whether there is an estimate, and a positive dispersion."""
        return bool(np.isfinite(self.value) and sum(self.parts()) > 0)

    def interval(self, null: Moments, mcse: float, confidence_level: float = 0.95) -> Interval:
        """Return the confidence interval, between 0 and 1; ``mcse`` is the Monte Carlo standard error of the effect."""
        if np.isnan(self.value):
            return UNDEFINED
        total = sum(self.parts())
        if not total > 0:
            return 0.0, 1.0  # the effect is a share of the dispersion, which is 0
        estimate = EffectEstimate(
            self.value,
            self.null_moments(null).scaled(1 / total),
            share(*self.population_parts(), 0.0),
            *influence_cumulants(self.influences(total)),
            mcse,
            self.explained(total),
        )
        return estimate.interval((1 - confidence_level) / 2)


def share(between: float, within: float, scale: float) -> float:
    """Return B / (B + W): 0 if nothing differs, nan if Monte Carlo errors make the sum negative.

    Examples
    --------
    >>> share(1.0, 3.0, 1.0), share(0.0, 1e-16, 1.0), share(0.1, -0.2, 1.0)
    (0.25, 0.0, nan)
    """
    total = between + within
    if abs(total) <= ROUNDING * scale:
        return 0.0
    return between / total if total > 0 else float("nan")


def diagonal_scale(gram: FloatArray) -> float:
    """Return the mean absolute value of the diagonal."""
    return float(np.abs(np.diagonal(gram)).mean())


def influence_cumulants(samples: Iterable[InfluenceSample]) -> tuple[FloatArray, FloatArray]:
    """Return the second (aa, ab, bb) and third (aaa, aab, abb, bbb) cumulants of the mean influences of all samples."""
    second, third = np.zeros(3), np.zeros(4)
    for sample in samples:
        p, n = sample.shares, sample.n_voters
        a, b = sample.between - p @ sample.between, sample.within - p @ sample.within
        second += np.array([p @ a**2, p @ (a * b), p @ b**2]) / (n - 1)
        third += np.array([p @ (a ** (3 - k) * b**k) for k in range(4)]) / n**2
    return second, third


@dataclass(frozen=True, eq=False)
class EffectEstimate:
    """An estimated effect, and what determines the distribution of the estimate for every true effect."""

    value: float
    null: Moments  # of the estimate if there is no effect
    population: float  # the effect of the population in which influences were computed
    second: FloatArray  # cumulants of the influences: see influence_cumulants
    third: FloatArray
    mcse: float  # the Monte Carlo standard error that comes from estimated kernel values
    explained: float  # see Effect.explained

    def unexplained(self, effect: float) -> float:
        """Return the part of the permuted dispersion that is left at an effect."""
        return max(1 - self.explained * effect, 0.0)

    @property
    def inflation(self) -> float:
        """The variance of B along the true difference, relative to that along the observed difference.

        The observed difference is partly chance, which adds twice the variance of the null distribution. Without it the
        variance is larger, as true differences lie where voters differ most.
        """
        variance = float(self.second[0])
        if not (variance > 0 and self.value > 0 and self.null.variance > 0):
            return 1.0
        by_chance = 2 * self.null.variance * self.unexplained(self.population) ** 2
        difference = max(self.value, float(self.null.variance**0.5))
        return max((variance - by_chance) / difference * self.population / variance, 1.0)

    def moments(self, effect: float) -> Moments:
        """Return the moments of the estimate if the true effect is as given."""
        rest, base = 1 - effect, self.population
        noise = rest * self.unexplained(effect)
        moments = Moments.from_cumulants(effect, noise**2 * self.null.variance, noise**3 * self.null.third_cumulant)
        if 0 < base < 1 and self.unexplained(base) > 0:
            ratio = effect * self.unexplained(effect) / (base * self.unexplained(base)) * self.inflation
            a, b = rest * np.sqrt(ratio), -effect * rest / (1 - base)
            second = np.array([a**2, 2 * a * b, b**2]) @ self.second
            third = np.array([a**3, 3 * a**2 * b, 3 * a * b**2, b**3]) @ self.third
            moments += Moments.from_cumulants(0.0, float(second), float(third))
        return moments + Moments(0.0, self.mcse**2, 0.0)

    def interval(self, alpha: float) -> Interval:
        """Return the effects that neither of two one-sided tests at level ``alpha`` rejects."""
        if not (self.null.variance > 0 or self.mcse > 0):
            return 0.0, 1.0
        value = self.value
        low = first_true(lambda effect: self.moments(effect).sf(value) >= alpha, 0.0, min(value, 1.0))
        high = first_true(lambda effect: 1 - self.moments(effect).sf(value) < alpha, max(value, 0.0), 1.0)
        return low, high


def first_true(predicate: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a monotone predicate becomes true, by bisection; ``high`` if it is false before.

    Examples
    --------
    >>> round(first_true(lambda x: x**2 >= 0.25, 0.0, 1.0), 6)
    0.5
    """
    if high <= low or predicate(low):
        return max(low, 0.0)
    for _ in range(50):
        middle = (low + high) / 2
        if predicate(middle):
            high = middle
        else:
            low = middle
    return high
