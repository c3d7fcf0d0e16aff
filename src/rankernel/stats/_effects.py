r"""How large a difference is: the share of the dispersion of voters that lies between groups, with its interval.

With groups of equal weight, voters scatter around the mean embedding of all by :math:`V = B + W`, between the groups
:math:`B = \frac{1}{k^2} \sum_{g < h} \|\mu_g - \mu_h\|^2` and within them the mean W of
:math:`W_g = E\|\phi(R) - \mu_g\|^2`. The effect is :math:`B / V`: 0 where groups do not differ, 1 where each speaks
with one voice and all differ. It depends neither on the sizes of the groups nor on the scale of the kernel.

Within strata, B and W are the means of those of the strata, each weighed by its voters:
:math:`\sum_s n_s B_s / \sum_s n_s (B_s + W_s)`. What differs between strata is in neither. A stratum counts with those
of its groups that have two voters there; strata with fewer than two such groups say nothing.

Both B and W are estimated without bias, from pairs of different voters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, Mask
from rankernel.stats._effect_law import EXTRA_VOTER, UNKNOWN, EstimatedEffect, Influence, Interval, Sample
from rankernel.stats._groups import GroupedVoters
from rankernel.stats._moments import CentredVoters, Moments, permutation_moments
from rankernel.stats._voters import Slopes, errors_of_draws

ROUNDING = 1e-12  # of the mean kernel value of a voter with itself: less is no dispersion


def group_effect(voters: GroupedVoters) -> float:
    """Return the share of the dispersion that lies between groups; nan where groups are too small to say."""
    strata = strata_that_count(voters).values()
    if not strata:
        return float("nan")
    between, within = dispersions(strata)
    return share_of(between, within, own_size(voters.gram))


def group_effect_interval(voters: GroupedVoters, skewness: float, error: float) -> Interval:
    """Return the interval of the effect.

    ``skewness`` is that of the null distribution, where voters are too many to know it exactly, and ``error`` that of
    the effect from estimated kernel values.
    """
    effect = group_effect(voters)
    if np.isnan(effect):
        return UNKNOWN
    strata = list(strata_that_count(voters).values())
    estimate = estimated(strata, effect, skewness, error)
    low, high = estimate.interval()
    if len(strata) > 1 or len(strata[0].sizes) == 2 or len(set(strata[0].sizes.tolist())) == 1:
        return low, high
    return least_by_size(strata[0], effect, skewness, error), high


def least_by_size(groups: Stratum, effect: float, skewness: float, error: float) -> float:
    """Return the lower end of the interval of several groups, from what the test compares: groups weighed by size.

    If sizes differ, that is another weight than that of the effect. Drawing groups towards each other makes both
    smaller by the same factor.
    """
    by_size = [groups.weighed_by_size()]
    between, within = dispersions(by_size)
    if between <= 0 or effect <= 0:
        return 0.0
    value = between / (between + within)
    return min(estimated(by_size, value, skewness, error).interval()[0] / value, 1.0) * effect


def estimated(strata: list[Stratum], effect: float, skewness: float, error: float) -> EstimatedEffect:
    """Return an effect with what its law takes."""
    total = sum(dispersions(strata))
    null = sum((each.null(skewness) for each in strata), Moments(0.0, 0.0, 0.0))
    if not total > 0:
        return EstimatedEffect(effect, Moments(0.0, 0.0, 0.0), Influence(0.0, np.zeros(3), np.zeros(4)), error)
    between, within = (sum(parts) for parts in zip(*(each.of_population() for each in strata), strict=True))
    samples = (sample for each in strata for sample in each.influences(total))
    return EstimatedEffect(effect, null.times(1 / total), Influence.of(between / (between + within), samples), error)


def kernel_errors(voters: GroupedVoters, biased: bool) -> tuple[float, float]:
    """Return the standard errors of dispersion and effect that come from estimated kernel values."""
    if voters.plan is None or voters.plan._estimator is None:
        return 0.0, 0.0
    weights = voters.weights(biased).whole()
    slopes: list[Slopes] = [lambda some: voters.by_group[:, some].T @ weights @ voters.by_group]
    if np.isfinite(group_effect(voters)) and sum(dispersions(strata_that_count(voters).values())) > 0:
        slopes.append(effect_slopes(voters))
    dispersion, *effect = errors_of_draws(voters.plan, voters.gram, voters.rows, slopes)
    return dispersion, effect[0] if effect else float("nan")


def effect_slopes(voters: GroupedVoters) -> Slopes:
    """Return by how much the effect changes with each kernel value, for some rows of the matrix.

    Voters of strata that say nothing are in no cell, and change nothing.
    """
    strata = list(strata_that_count(voters).values())
    between, within = dispersions(strata)
    total = between + within
    effect = between / total
    cells = [np.zeros((len(each.sizes), len(voters.gram))) for each in strata]
    n_cells = sum(map(len, cells))
    pairs, selves, start = np.zeros((n_cells, n_cells)), np.zeros(n_cells), 0
    for each, table in zip(strata, cells, strict=True):
        table[:, each.rows] = each.table
        own = slice(start, start + len(table))
        slopes = (1 - effect) * each.contrast / np.outer(each.sizes, each.sizes)
        alike = ((1 - effect) * np.diagonal(each.contrast) + effect * each.parts) / (each.sizes * (each.sizes - 1))
        np.fill_diagonal(slopes, alike)
        pairs[own, own], selves[own] = slopes / total, -(alike + effect * each.parts / each.sizes) / total
        start = own.stop
    table = np.concatenate(cells)

    def slopes_of(some: Indices) -> FloatArray:
        found = table[:, some].T @ pairs @ table
        found[np.arange(len(some)), some] += selves @ table[:, some]
        return np.asarray(found)

    return slopes_of


# ---------------------------------------------------------------------- strata


@dataclass(frozen=True, eq=False)
class Stratum:
    """The groups of one stratum, of which each has two voters or more.

    Attributes
    ----------
    table : array of shape (n_groups, n_rows)
        How many voters of each group stand behind each row.
    centred : CentredVoters
        The kernel between the rows, centred over the voters of the stratum.
    rows : array
        Which rows of all they are.
    contrast : array of shape (n_groups, n_groups)
        B is the sum of it times the inner products of the mean embeddings of groups.
    parts : array of shape (n_groups,)
        W is the sum of it times the scatter within each group.
    """

    table: FloatArray
    centred: CentredVoters
    rows: Indices
    contrast: FloatArray
    parts: FloatArray

    @property
    def gram(self) -> FloatArray:
        """The kernel between the rows."""
        return self.centred.gram

    @property
    def sizes(self) -> FloatArray:
        """How many voters each group has."""
        return np.asarray(self.table.sum(axis=1))

    @property
    def population(self) -> FloatArray:
        """The shares of the rows in each group, with a part of a voter who is as all voters of the stratum are."""
        everybody = self.table.sum(axis=0) / self.table.sum()
        return np.asarray((self.table + EXTRA_VOTER * everybody) / (self.sizes + EXTRA_VOTER)[:, None])

    def weighed_by_size(self) -> Stratum:
        """Return the same groups weighed by their sizes between them; those of equal size stay as they are."""
        n = self.sizes
        between = np.diag(n) - np.outer(n, n) / n.sum()
        factor = (1 - 1 / len(n)) / np.trace(between)
        return replace(self, contrast=between * factor)

    def of_sample(self) -> tuple[float, float]:
        """Return B and W without bias: no voter is paired with itself."""
        n, sums = self.sizes, self.table @ self.gram @ self.table.T
        selves = self.table @ np.diagonal(self.gram)
        alike = (np.diagonal(sums) - selves) / (n * (n - 1))
        products = sums / np.outer(n, n)
        np.fill_diagonal(products, alike)
        return float((self.contrast * products).sum()), float(self.parts @ (selves / n - alike))

    def of_population(self) -> tuple[float, float]:
        """Return B and W of the population."""
        return parts_of_population(self.gram, self.population, self.contrast, self.parts)

    def null(self, skewness: float) -> Moments:
        """Return the moments of B where voters are permuted between the groups of the stratum."""
        n = self.sizes
        between = self.contrast / np.outer(n, n)
        np.fill_diagonal(between, np.diagonal(self.contrast) / (n * (n - 1)))
        found = permutation_moments(self.centred, CentredVoters.of(between, n, False))
        return Moments(0.0, found.variance, skewness if np.isnan(found.skewness) else found.skewness)

    def influences(self, total: float) -> Iterator[Sample]:
        """Yield what a voter of each group adds to B and W, in parts of the whole dispersion."""
        means, own = self.population, np.diagonal(self.gram)
        embedded = means @ self.gram
        toward = 2 * self.contrast @ embedded / total
        for group, shares in enumerate(means):
            scatter = self.parts[group] * (own - 2 * embedded[group]) / total
            yield toward[group], scatter, shares, float(self.sizes[group])


def usable_groups(voters: GroupedVoters) -> Mask:
    """Return which groups have two voters in each stratum, by stratum and group."""
    return np.asarray(voters.table.sum(axis=2) > 1)


def strata_that_count(voters: GroupedVoters) -> dict[int, Stratum]:
    """Return by number the strata in which two groups have two voters; of a single stratum all groups must have."""
    usable = usable_groups(voters)
    if len(usable) == 1 and not usable.all():
        return {}
    numbers = np.flatnonzero(usable.sum(axis=1) > 1).tolist()
    tables = {number: voters.table[number, usable[number]].astype(np.float64) for number in numbers}
    everybody, found = sum(float(table.sum()) for table in tables.values()), {}
    for number, whole in tables.items():
        rows = np.flatnonzero(whole.any(axis=0))
        table, weight = whole[:, rows], float(whole.sum()) / everybody
        if len(usable) == 1 and len(rows) == len(voters.gram):
            centred = voters.centred
        else:
            centred = CentredVoters.of(voters.gram[np.ix_(rows, rows)], table.sum(axis=0), biased=False)
        contrast, parts = equal_weights(len(table))
        found[number] = Stratum(table, centred, rows, weight * contrast, weight * parts)
    return found


def dispersions(strata: Iterable[Stratum]) -> tuple[float, float]:
    """Return B and W of all strata, without bias."""
    between, within = (sum(parts) for parts in zip(*(each.of_sample() for each in strata), strict=True))
    return float(between), float(within)


# ---------------------------------------------------------------------- shares


def equal_weights(n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Return the contrast and the parts of groups that weigh the same."""
    return np.eye(n_groups) / n_groups - 1 / n_groups**2, np.full(n_groups, 1 / n_groups)


def parts_of_population(
    gram: FloatArray, shares: FloatArray, contrast: FloatArray, parts: FloatArray
) -> tuple[float, float]:
    """Return B and W of a population: the share of each ballot, in each group."""
    products = shares @ gram @ shares.T
    spread = shares @ np.diagonal(gram) - np.diagonal(products)
    return float((contrast * products).sum()), float(parts @ spread)


def plug_in_effect(gram: FloatArray, shares: FloatArray) -> float:
    """Return the effect of a population: the share of each ballot, in each group."""
    between, within = parts_of_population(gram, shares, *equal_weights(len(shares)))
    return share_of(between, within, own_size(gram))


def own_size(gram: FloatArray) -> float:
    """Return the mean size of the kernel of a ballot with itself."""
    return float(np.abs(np.diagonal(gram)).mean())


def share_of(between: float, within: float, scale: float) -> float:
    """Return the share of what lies between: 0 where nothing differs at all, nan where errors hide all that does.

    Examples
    --------
    >>> share_of(1.0, 3.0, 1.0), share_of(0.0, 1e-16, 1.0), share_of(0.1, -0.2, 1.0)
    (0.25, 0.0, nan)
    """
    whole = between + within
    if abs(whole) <= ROUNDING * scale:
        return 0.0
    return between / whole if whole > 0 else float("nan")
