"""From rows with counts to voters: which row of a Gram matrix each voter stands behind.

A row of count c is c voters. Equal ballots share one row of the matrix, which is never expanded: draws belong to the
ballot, so that an estimated kernel, too, is one fixed symmetric function of two ballots, and a permutation test with it
has its level exactly. For two voters with the same ballot the mean over pairs of different draws is taken, which is
unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel._utils.checks import check_labels
from rankernel.data import Data, with_counts
from rankernel.errors import NotCharacteristicWarning, SamplingWarning, warn
from rankernel.gram.methods import MethodLike, Mixed, MonteCarlo, as_method
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel

REDRAWN = 64  # rows that say how sure estimated kernel values are
Slopes = Callable[[Indices], FloatArray]  # rows of the derivative of something by the kernel values
NOISY = 0.5  # an error of the statistic, as a part of its standard deviation between permutations


@dataclass(frozen=True, eq=False)
class Ballots:
    """The distinct ballots of some data, and the voters behind them.

    Attributes
    ----------
    data : Rankings or Preferences
        One row for each row of the matrix; its counts are the numbers of voters.
    of_row : array
        The row of the matrix for each row of the data as it was given.
    counts : array
        How many voters each of these rows has.
    """

    data: Data
    of_row: Indices
    counts: IntArray

    @property
    def of_voter(self) -> Indices:
        """The row of each voter, voters in the order of the data."""
        return np.repeat(self.of_row, self.counts)

    @classmethod
    def of(cls, data: Data, plan: Plan | None = None) -> Ballots:
        """Return the ballots that a plan tells apart; without one, each row by itself."""
        row_of = np.arange(len(data)) if plan is None or plan._rows is None else plan._rows
        _, first = np.unique(row_of, return_index=True)
        return cls(with_counts(data[first], np.bincount(row_of, data.counts)), row_of, data.counts)


def plan_for_test(kernel: Kernel, data: Data, method: MethodLike) -> Plan:
    """Return the plan of the values of a test, having refused what no test can use."""
    if isinstance(as_method(method), Mixed):
        raise ValueError("a test needs one estimator for all pairs; use method='auto' instead of 'mixed'")
    plan = kernel.plan(data, method=method)
    warn_if_not_characteristic(plan.kernel, data.n_items)
    return plan


def voter_gram(plan: Plan, n_jobs: int | None = None) -> FloatArray:
    """Return the Gram matrix of the distinct ballots, on its diagonal the kernel of two voters with the same ballot."""
    distinct = plan._distinct
    matrix = np.asarray(distinct.gram(n_jobs=n_jobs), dtype=np.float64)
    if isinstance(plan.method, MonteCarlo):
        np.fill_diagonal(matrix, distinct.diagonal(unbiased=True))
    return matrix


def errors_of_draws(
    plan: Plan | None, matrix: FloatArray, rows: Indices, slopes: Sequence[Slopes]
) -> tuple[float, ...]:
    r"""Return the standard errors of functions of K that come from estimated kernel values; 0 where these are exact.

    K is the matrix of some rows of a plan, and ``slopes`` give rows of the derivatives :math:`\Lambda` of a function.
    An estimate is the inner product of embeddings with independent errors :math:`e_u`, by which a function errs, to the
    first order, by :math:`2 \sum_u \langle e_u, \sum_v \Lambda_{uv} \phi_v \rangle`. Drawing some rows again shows
    how large these terms are. What the other side errs by is in them, too: it makes the answer too large, by a factor
    of at most 1.4.
    """
    variances: list[FloatArray] = []
    n_rows, times = len(rows), 0
    while plan is not None and sum(part.shape[1] for part in variances) < REDRAWN:
        times += 1
        other = plan._distinct._redrawn(times)
        if other is None:
            break
        some = np.sort(np.random.default_rng(times).permutation(n_rows)[:REDRAWN])
        again = other.block(rows[some], rows)
        again[np.arange(len(some)), some] = other.diagonal(unbiased=True)[rows[some]]
        change = again - matrix[some]
        variances.append(np.stack([np.einsum("uv,uv->u", slope(some), change) ** 2 / 2 for slope in slopes]))
    if not variances:
        return (0.0,) * len(slopes)
    return tuple(np.sqrt(4 * n_rows * np.concatenate(variances, axis=1).mean(axis=1)).tolist())


def warn_if_not_characteristic(kernel: Kernel, n_items: int) -> None:
    """Warn where different distributions of full rankings certainly have the same mean embedding."""
    if kernel.facts(n_items).max_dimension < math.factorial(n_items):
        warn(
            f"{kernel} is not characteristic on {n_items} items: distributions that differ may look the same to it, "
            "however many rankings there are; Mallows(nu) sees every difference",
            NotCharacteristicWarning,
        )


def warn_if_noisy(error: float, noise: float) -> None:
    """Warn where the errors of estimated kernel values may be as large as what permutations do."""
    if error > NOISY * noise > 0:
        warn(
            f"kernel values are estimated, and their errors may change the statistic by {error:.2g}, beside a standard "
            f"deviation of {noise:.2g} between permutations: the level holds, but power is lost; take more draws",
            SamplingWarning,
        )


def group_codes(labels: Any, X: Data, name: str) -> IntArray:
    """Return for each row a number from 0 that stands for its label."""
    codes = np.unique(check_labels(name, labels, len(X)), return_inverse=True)[1].ravel()
    return np.asarray(codes, dtype=np.int64)
