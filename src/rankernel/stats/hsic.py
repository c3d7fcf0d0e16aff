"""The independence test: whether rankings tell anything about something else that is known of the voters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel._utils.checks import check_array, check_flag
from rankernel._utils.interrupts import run_interruptibly
from rankernel._utils.memory import check_task, check_voters
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import Data, as_data
from rankernel.errors import RankingError
from rankernel.gram.blocks import slices
from rankernel.gram.methods import MethodLike
from rankernel.gram.plan import Plan
from rankernel.kernels.base import Kernel
from rankernel.stats._correlations import Correlation, correlation_slopes
from rankernel.stats._covariates import Covariate, CovariateKernel, covariate_of
from rankernel.stats._groups import strata_codes
from rankernel.stats._moments import CentredVoters, Moments, permutation_moments
from rankernel.stats._permutations import (
    ENTRIES,
    TERM,
    TIED,
    Null,
    Permutations,
    PermutationsLike,
    PermutedValues,
    as_permutations,
    probability_of,
)
from rankernel.stats._voters import (
    Ballots,
    Slopes,
    errors_of_draws,
    plan_for_test,
    voter_gram,
    warn_if_noisy,
)
from rankernel.stats.mmd import check_kernel
from rankernel.stats.results import HSICResult

WITNESS_ROWS = 256
VOTER_BYTES = 64
PAIRS_AT_ONCE = 2**28  # of voters, in one call of compiled code


def hsic_test(
    X: Any,
    covariate: Any,
    kernel: Kernel | None = None,
    n_permutations: PermutationsLike = 1000,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    covariate_kernel: CovariateKernel = "auto",
    strata: Any = None,
    n_jobs: int | None = None,
) -> HSICResult:
    r"""Test whether rankings are independent of a covariate, by the Hilbert-Schmidt independence criterion.

    The unbiased statistic (Song et al. 2012) is :math:`\frac{1}{N(N-3)} \sum_{i \ne j} K_{ij} \tilde L_{ij}`, where
    :math:`\tilde L_{ij} = L_{ij} - \frac{l_i + l_j}{N-2} + \frac{l}{(N-1)(N-2)}`, with :math:`l_i` the sum of row i of
    L without its diagonal and l that of all rows. The biased one is :math:`\frac{1}{N^2} \mathrm{tr}(K H L H)`, H the
    centring matrix. The null distribution is that of the covariate permuted between voters. A row of count c is c
    voters with the same covariate.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings.
    covariate : array of shape (n_rankings,) or (n_rankings, n_features), Rankings or Preferences
        One value for each row of X. Integers, strings and booleans are labels (delta kernel), floats are numbers
        (Gaussian kernel, its width the median distance between two voters).
    kernel : Kernel, optional
        The kernel of the rankings; ``Mallows("median")`` if left out.
    n_permutations : int, "adaptive" or Adaptive
        How many permutations make the null distribution; "adaptive" draws many only where the p-value is near 0.05.
    rng : int or Generator
        Where the permutations come from.
    biased : bool
        Which statistic.
    method : as in :meth:`Kernel.gram`
        How to compute kernel values; two voters with the same ballot are compared by different draws.
    covariate_kernel : {"auto", "delta", "gaussian"} or Kernel
        The kernel of the covariate, if not the one above; a Kernel for a covariate that is rankings.
    strata : array of shape (n_rankings,), optional
        A label for each row: the covariate is permuted only within strata.
    n_jobs : int, optional
        How many tiles of the Gram matrix to compute at once.

    Returns
    -------
    HSICResult
        ``statistic``, ``pvalue``, ``tail_pvalue``, ``null_distribution``, ``effect``, ``effect_interval``, ``method``,
        ``plan``, ``kernel``, ``rankings``, ``witness``.

    Examples
    --------
    Four voters who rank two items, two each way, and a label that says which way: K = L, and with K_ij = L_ij = 1 for
    equal ones and 0 else, the biased statistic is 1/4.

    >>> from rankernel import Hamming, Rankings
    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[2, 2])
    >>> result = hsic_test(ballots, ["left", "right"], 0.5 * Hamming(), biased=True)
    >>> result.statistic, result.witness
    (0.25, array([0.25, 0.25]))
    """
    data = as_data(X)
    wanted, start = as_permutations(n_permutations), as_seed(rng)
    least = 2 if check_flag("biased", biased) else 4
    if data.n_voters < least:
        raise RankingError(f"X has {data.n_voters} voter(s); this statistic needs at least {least}")
    check_voters(data.n_voters, VOTER_BYTES, "an independence test")
    plan = plan_for_test(check_kernel(kernel), data, method)
    if (
        isinstance(covariate, Data) or check_array("covariate", covariate, "one value for each row").dtype.kind == "f"
    ):  # a value for each row
        check_task("an independence test", len(data))
    else:
        check_task("an independence test of labels", len(plan._X))
    stratum = strata_codes(strata, data)
    other = covariate_of(covariate, data, covariate_kernel, method)
    form = Dependence(voter_gram(plan, n_jobs), Ballots.of(data, plan).of_voter, other, biased)
    return dependence_result(form, data, plan, np.repeat(stratum, data.counts), wanted, start)


def dependence_result(
    form: Dependence, data: Data, plan: Plan, strata: IntArray, wanted: Permutations, seed: int
) -> HSICResult:
    """Return what the kernels of rankings and covariate say; ``strata`` is a number for each voter."""
    statistic, tolerance = float(form.sums(form.values[None])[0]), TIED * form.scale
    exact = form.moments() if strata.max() == 0 else None
    null = Null.drawn(form.permuted(strata, seed).draw, statistic, tolerance, wanted, exact)
    correlation = Correlation.within(form.gram, form.rows, form.covariate.gram, form.values, strata)
    error, effect_error = form.kernel_errors(plan, correlation)
    warn_if_noisy(error, float(null.values.std()))
    within = " within strata" if strata.max() else ""
    text = (
        f"{'biased' if form.biased else 'unbiased'} HSIC of rankings and {form.covariate.text}, {len(null.values):,} "
        f"permutations of the voters{within}, kernel values: {plan.method}"
    )
    return HSICResult(
        statistic,
        null.pvalue,
        null.values,
        null.tail(statistic, tolerance, form.least(strata)),
        null.n_for_moments,
        correlation.value(),
        text,
        plan,
        plan.kernel,
        data,
        error,
        effect_error,
        partial(correlation.interval, null.moments.skewness, effect_error),
        by_row(form.witness(), data),
    )


def by_row(values: FloatArray, X: Data) -> FloatArray:
    """Return the mean over the voters of each row."""
    row_of_voter = np.repeat(np.arange(len(X)), X.counts)
    return np.asarray(np.bincount(row_of_voter, weights=values) / X.counts)


@dataclass(frozen=True, eq=False)
class Dependence:
    """The statistic as a function of the value of each voter: a sum over pairs of voters, divided by ``divisor``.

    Only the covariate is centred, and only once: permuting it changes no mean.
    """

    gram: FloatArray
    rows: IntArray
    covariate: Covariate
    biased: bool

    @property
    def values(self) -> IntArray:
        """The number of the value of each voter."""
        return self.covariate.of_voter

    @cached_property
    def centred(self) -> FloatArray:
        """The centred kernel of the covariate."""
        return self.centred_values(self.biased).whole()

    def centred_values(self, biased: bool) -> CentredVoters:
        """Return the kernel of the covariate, centred over voters."""
        gram = self.covariate.gram
        return CentredVoters.of(gram, np.bincount(self.values, minlength=len(gram)).astype(np.float64), biased)

    @property
    def row_counts(self) -> FloatArray:
        """How many voters stand behind each row."""
        return np.bincount(self.rows, minlength=len(self.gram)).astype(np.float64)

    @property
    def divisor(self) -> float:
        """N² or N (N - 3)."""
        n = len(self.rows)
        return float(n**2 if self.biased else n * (n - 3))

    @property
    def scale(self) -> float:
        """The mean size of a term."""
        return float(np.abs(self.gram).mean() * np.abs(self.centred).mean())

    @property
    def few_values(self) -> bool:
        """Whether tables of rows and values are quicker than sums over pairs of voters."""
        n_rows, n_values = len(self.gram), len(self.centred)
        return n_rows * n_values * (n_rows + n_values) < TERM * len(self.rows) ** 2

    def permuted(self, strata: IntArray, seed: int) -> PermutedDependence:
        """Return the statistic for random permutations of the values."""
        return PermutedDependence(self, PermutedValues(self.values, strata, seed))

    def moments(self) -> Moments:
        """Return the exact moments of the statistic, where voters are permuted freely."""
        rankings = CentredVoters.of(self.gram, self.row_counts, self.biased)
        return permutation_moments(rankings, self.centred_values(self.biased)).times(1 / self.divisor)

    def least(self, strata: IntArray) -> float:
        """Return how likely permutations leave everything as it is."""
        cells, times = np.unique(np.stack((strata, self.values, self.rows)), axis=1, return_counts=True)
        return probability_of(cells[0], cells[1], cells[2], times)

    def kernel_errors(self, plan: Plan, correlation: Correlation) -> tuple[float, float]:
        """Return the standard errors of statistic and effect from estimated values of rankings and covariate."""
        sides = [(plan, self.gram, False), (self.covariate.plan, self.covariate.gram, True)]
        found = np.zeros(2)
        for own, gram, covariate in sides:
            if own is None or own._estimator is None:
                continue
            slopes = [self.slopes(covariate)]
            if np.isfinite(correlation.value()) and correlation.criteria()[1:].min() > 0:
                slopes.append(correlation_slopes(correlation, len(gram), covariate))
            errors = errors_of_draws(own, gram, np.arange(len(gram)), slopes)
            found = np.hypot(found, errors if len(errors) == 2 else (*errors, float("nan")))
        return float(found[0]), float(found[1])

    def slopes(self, covariate: bool) -> Slopes:
        """Return by how much the statistic changes with the kernel of the rankings, or of the covariate."""
        table = np.zeros((len(self.gram), len(self.centred)))
        np.add.at(table, (self.rows, self.values), 1.0)
        other = self.centred
        if covariate:  # either side may be centred
            table, other = table.T, CentredVoters.of(self.gram, self.row_counts, self.biased).whole()
        own = np.zeros(len(table)) if self.biased else table @ np.diagonal(other)

        def slopes_of(some: Indices) -> FloatArray:
            found = table[some] @ other @ table.T
            found[np.arange(len(some)), some] -= own[some]
            return np.asarray(found / self.divisor)

        return slopes_of

    def sums(self, values: IntArray) -> FloatArray:
        """Return the statistic for each row of values."""
        total = self.by_table(values) if self.few_values else self.by_pairs(values)
        return np.asarray(total / self.divisor)

    def by_pairs(self, values: IntArray) -> FloatArray:
        """Return the sums over pairs of voters, one by one."""
        total = np.empty(len(values))
        for part in slices(len(values), max(PAIRS_AT_ONCE // len(self.rows) ** 2, 1)):
            total[part] = _loops.permuted_sums.paired_sums(self.gram, self.rows, self.centred, values[part])
        if self.biased:
            total += (np.diagonal(self.gram)[self.rows] * np.diagonal(self.centred)[values]).sum(axis=1)
        return total

    def by_table(self, values: IntArray) -> FloatArray:
        """Return the same sums by matrix products, from how many voters stand behind each row with each value."""
        n_rows, n_values, n_tables = len(self.gram), len(self.centred), len(values)
        cells = (self.rows * n_tables + np.arange(n_tables)[:, None]) * n_values + values
        tables = np.bincount(cells.ravel(), minlength=n_rows * n_tables * n_values).astype(np.float64)
        left = (self.gram @ tables.reshape(n_rows, -1)).reshape(n_rows, n_tables, n_values)
        tables = tables.reshape(n_rows, n_tables, n_values)
        total: FloatArray = np.einsum("upv,upv->p", left, tables @ self.centred)
        if not self.biased:
            total -= np.einsum("u,upv,v->p", np.diagonal(self.gram), tables, np.diagonal(self.centred), optimize=True)
        return total

    def witness(self) -> FloatArray:
        """Return the witness function at each voter, from the kernels centred over voters."""
        other = self.covariate.gram
        counts = np.bincount(self.values, minlength=len(other)).astype(np.float64)
        other_means = other @ counts / counts.sum()
        # Voters of the same row with the same value are one cell.
        codes, cell, sizes = np.unique(self.rows * len(other) + self.values, return_inverse=True, return_counts=True)
        rows, values = codes // len(other), codes % len(other)
        means = self.gram @ self.row_counts / len(self.rows)
        out = np.empty(len(rows))
        for part in slices(len(rows), WITNESS_ROWS):
            left = self.gram[np.ix_(rows[part], rows)] - means[rows]
            right = other[np.ix_(values[part], values)] - other_means[values[part], None] - other_means[values]
            right += counts @ other_means / counts.sum()
            out[part] = (left * right) @ sizes / len(self.rows)
        return np.asarray(out[cell.ravel()])


@dataclass(frozen=True, eq=False)
class PermutedDependence:
    """The statistic for one permutation of the values after another."""

    form: Dependence
    values: PermutedValues

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic of the next permutations."""
        form = self.form
        width = len(form.gram) * len(form.centred) if form.few_values else len(form.rows)
        n_at_once = max(ENTRIES // max(width, len(form.rows)), 1)
        return np.concatenate(
            [run_interruptibly(form.sums, values) for values in self.values.draw(n_permutations, n_at_once)]
        )
