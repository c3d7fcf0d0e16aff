r"""How sure an effect is: the law of its estimate for every true effect, and the interval that follows from it.

An effect is a share :math:`e = B / (B + W)`. Where it is 0, its estimate follows the null distribution of the test, of
which the moments are known. Where it is e, two things happen. Less dispersion is left within, which makes this part
smaller: by the factor :math:`1 - e` for what is left, and once more as the estimate is a share. And the voters who
happened to come move the estimate along the difference: to the first order each by its influence, a on B and b on W,

.. math:: \hat e - e \approx (1 - e) \, \sum_i a_i / n - e \, \sum_i b_i / n .

The influences were taken in a population with the effect that the data have; a is proportional to the root of
:math:`e (1 - e)`, b to :math:`1 - e`. Variances and third cumulants of both parts add up, and a Pearson III curve has
them.

The 95 % interval holds the effects for which neither so large an estimate nor so small a one is rarer than 2.5 %. At 0
the law is the null distribution: the interval begins above 0 exactly if the p-value by the tail is below 0.025.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.stats._moments import Moments

CONFIDENCE = 0.95
RARE = (1 - CONFIDENCE) / 2
HALVINGS = 50  # of a range
EXTRA_VOTER = 0.5  # of each group, who is as all voters are: a group that speaks with one voice may have others, too

Interval = tuple[float, float]
Sample = tuple[FloatArray, FloatArray, FloatArray, float]  # a and b of each row, the shares of the rows, the voters
UNKNOWN: Interval = (float("nan"), float("nan"))


@dataclass(frozen=True, eq=False)
class Influence:
    """What the voters of independent samples add to B and W, as sums over the samples.

    Attributes
    ----------
    effect : float
        The effect of the population.
    second : array of shape (3,)
        The variances and the covariance of the means of a and b: aa, ab, bb.
    third : array of shape (4,)
        Their third cumulants: aaa, aab, abb, bbb.
    """

    effect: float
    second: FloatArray
    third: FloatArray

    @classmethod
    def of(cls, effect: float, samples: Iterable[Sample]) -> Influence:
        """Return the influence of the voters of some samples."""
        second, third = np.zeros(3), np.zeros(4)
        for toward, away, shares, n_voters in samples:
            a, b = toward - shares @ toward, away - shares @ away
            second += np.array([shares @ a**2, shares @ (a * b), shares @ b**2]) / (n_voters - 1)
            third += np.array([shares @ (a ** (3 - k) * b**k) for k in range(4)]) / n_voters**2
        return cls(effect, second, third)


@dataclass(frozen=True, eq=False)
class EstimatedEffect:
    """An effect that was estimated, and all that its law takes.

    Attributes
    ----------
    value : float
        The estimate, without bias.
    null : Moments
        The moments of the estimate where there is no effect.
    influence : Influence
        What single voters do to it.
    error : float
        The standard error that comes from estimated kernel values.
    explained : float
        How much of what permutations exchange the effect explains, for each unit of it: of groups 1, as they exchange
        voters; of judges more, as these differ less from themselves than from others; of a model 0.
    """

    value: float
    null: Moments
    influence: Influence
    error: float = 0.0
    explained: float = 1.0

    def left(self, effect: float) -> float:
        """Return how much of what permutations exchange is left at an effect."""
        return max(1 - self.explained * effect, 0.0)

    @property
    def along(self) -> float:
        """The variance of an estimate along the difference, over that along the difference of the data.

        The difference of the data is partly chance, and has twice the variance of the null distribution from that.
        Without it the variance is larger, as true differences are where voters differ most.
        """
        base = self.influence.effect
        found = float(self.influence.second[0])
        if not (found > 0 and self.value > 0 and self.null.variance > 0):
            return 1.0
        by_chance = 2 * self.null.variance * self.left(base) ** 2
        return max((found - by_chance) / max(self.value, float(self.null.variance**0.5)) * base / found, 1.0)

    def law(self, effect: float) -> Moments:
        """Return the moments of the estimate where the effect is as given."""
        rest, base = 1 - effect, self.influence.effect
        noise = rest * self.left(effect)
        found = Moments.of_cumulants(effect, noise**2 * self.null.variance, noise**3 * self.null.third)
        if 0 < base < 1 and self.left(base) > 0:
            stretched = effect * self.left(effect) / (base * self.left(base)) * self.along
            a, b = rest * np.sqrt(stretched), -effect * rest / (1 - base)
            second = np.array([a**2, 2 * a * b, b**2]) @ self.influence.second
            third = np.array([a**3, 3 * a**2 * b, 3 * a * b**2, b**3]) @ self.influence.third
            found += Moments.of_cumulants(0.0, float(second), float(third))
        return found + Moments(0.0, self.error**2, 0.0)

    def interval(self) -> Interval:
        """Return the 95 % interval, within 0 and 1."""
        if np.isnan(self.value):
            return UNKNOWN
        if not (self.null.variance > 0 or self.error > 0):
            return 0.0, 1.0  # all voters are alike: there is nothing of which the effect would be a share
        return self.least(), self.most()

    def least(self) -> float:
        """Return the smallest effect under which so large an estimate is not rare."""
        return where_it_begins(lambda effect: self.law(effect).tail(self.value) >= RARE, 0.0, min(self.value, 1.0))

    def most(self) -> float:
        """Return the largest effect under which so small an estimate is not rare."""
        return where_it_begins(lambda effect: 1 - self.law(effect).tail(self.value) < RARE, max(self.value, 0.0), 1.0)


def where_it_begins(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return where something begins to hold, by halving; ``low`` if it does there, ``high`` if nowhere before."""
    if high <= low or holds(low):
        return max(low, 0.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
