r"""How large a difference is: the share of the dispersion of voters that lies between groups, with its interval.

With groups of equal weight, voters scatter around the mean embedding of all by :math:`V = B + W`, between the groups
:math:`B = \frac{1}{k^2} \sum_{g < h} \|\mu_g - \mu_h\|^2` and within them the mean W of
:math:`W_g = E\|\phi(R) - \mu_g\|^2`. The effect is :math:`B / V`: 0 where groups do not differ, 1 where each speaks
with one voice and all differ. It depends neither on the sizes of the groups nor on the scale of the kernel.

Both B and W are estimated without bias. The interval is a bootstrap of the voters of each group. In the world of the
bootstrap the data are the population, and its effect is the plug-in one; by how much the unbiased estimate misses that,
from sample to sample, is by how much it misses the truth here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankernel.arrays import FloatArray
from rankernel.gram.tiles import stretches
from rankernel.tasks.tests._groups import GroupedVoters
from rankernel.tasks.tests._permutations import ENTRIES, generator, off_diagonal_forms, voter_forms

N_BOOTSTRAP = 999
CONFIDENCE = 0.95

Interval = tuple[float, float]


def group_effect(voters: GroupedVoters) -> float:
    """Return the share of the dispersion that lies between groups; nan where a group is a single voter."""
    sums, traces = voters.group_sums()
    if (voters.sizes < 2).any():
        return float("nan")
    within = (np.diagonal(sums) - traces)[None]
    return float(unbiased_share(within, traces[None], np.array([weighed_sum(sums, voters.sizes)]), voters.sizes)[0])


def pair_effects(voters: GroupedVoters) -> FloatArray:
    """Return the effect of each two groups: shape (n_groups, n_groups); nan where one is a single voter."""
    sums, traces = voters.group_sums()
    n = voters.sizes
    alike = np.full(len(n), np.nan)
    np.divide(np.diagonal(sums) - traces, n * (n - 1), where=n > 1, out=alike)
    apart = alike[:, None] + alike[None, :] - 2 * sums / np.outer(n, n)
    spread = traces / n - alike
    return share(apart / 4, (spread[:, None] + spread[None, :]) / 2)


def group_effect_interval(voters: GroupedVoters, seed: int) -> Interval:
    """Return the interval of the effect: voters of each group drawn anew, with replacement."""
    if (voters.sizes < 2).any():
        return float("nan"), float("nan")
    rng = generator(seed, "bootstrap of the voters")
    gram, n_rows, diagonal = voters.gram, len(voters.gram), np.diagonal(voters.gram)
    present = [np.flatnonzero(own) for own in voters.by_group]
    parts = []
    for stretch in stretches(N_BOOTSTRAP, max(ENTRIES // n_rows, 1)):
        n_drawn = stretch.stop - stretch.start
        weights = np.zeros((n_drawn, n_rows))
        within, traces = np.empty((2, n_drawn, len(present)))
        for group, rows in enumerate(present):
            own, size = voters.by_group[group, rows], voters.sizes[group]
            drawn = rng.multinomial(int(size), own / size, size=n_drawn).astype(np.float64)
            within[:, group] = voter_forms(gram[np.ix_(rows, rows)], drawn)
            traces[:, group] = drawn @ diagonal[rows]
            weights[:, rows] += drawn / size
        total = off_diagonal_forms(gram, weights) + weights**2 @ diagonal
        parts.append(unbiased_share(within, traces, total, voters.sizes))
    sums, traces = voters.group_sums()
    return reflected(group_effect(voters), plug_in_share(sums, traces, voters.sizes), np.concatenate(parts))


def unbiased_share(within: FloatArray, traces: FloatArray, total: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the effect from sums over pairs of different voters of each group, over voters, and over all groups.

    ``total`` is the squared length of the sum of the mean embeddings of all groups.
    """
    k = len(sizes)
    alike = within / (sizes * (sizes - 1))
    apart = total - ((within + traces) / sizes**2).sum(axis=1)  # over ordered pairs of different groups
    between = ((k - 1) * alike.sum(axis=1) - apart) / k**2
    return share(between, (traces / sizes - alike).mean(axis=1))


def plug_in_share(sums: FloatArray, traces: FloatArray, sizes: FloatArray) -> float:
    """Return the effect of a population that consists of these voters."""
    k = len(sizes)
    lengths = np.diagonal(sums) / sizes**2
    between = (k * lengths.sum() - weighed_sum(sums, sizes)) / k**2
    return float(share(np.array([between]), np.array([(traces / sizes - lengths).mean()]))[0])


def plug_in_effect(gram: FloatArray, shares: FloatArray) -> float:
    """Return the effect of a population: the share of each ballot, in each group."""
    return plug_in_share(shares @ gram @ shares.T, shares @ np.diagonal(gram), np.ones(len(shares)))


def weighed_sum(sums: FloatArray, sizes: FloatArray) -> float:
    """Return the squared length of the sum of the mean embeddings of all groups."""
    return float((sums / np.outer(sizes, sizes)).sum())


def share(between: FloatArray, within: FloatArray) -> FloatArray:
    """Return the share of what lies between; 0 where nothing differs at all."""
    whole = between + within
    return np.where(whole <= 0, 0.0, between / np.where(whole <= 0, 1.0, whole))


def reflected(estimate: float, truth: float, drawn: FloatArray) -> Interval:
    """Return the interval of an estimate: its errors around the truth of the bootstrap, turned round."""
    low, high = np.quantile(drawn - truth, [(1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2])
    return float(estimate - low), float(estimate - high)


Bootstrap = Callable[[], Interval]
