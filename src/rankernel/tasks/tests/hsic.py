"""The independence test: whether rankings tell anything about something else that is known of the voters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel import _loops
from rankernel.arrays import FloatArray, IntArray
from rankernel.checks import flag, whole
from rankernel.data import Data, as_data
from rankernel.errors import RankingError
from rankernel.gram.methods import MethodLike
from rankernel.gram.tiles import stretches
from rankernel.interrupts import heard
from rankernel.kernels.base import Kernel
from rankernel.memory import check_memory, check_voters
from rankernel.seeds import Seed, as_seed
from rankernel.tasks.tests._covariates import Covariate, CovariateKernel, covariate_of
from rankernel.tasks.tests._permutations import ENTRIES, TIED, permuted, pvalue
from rankernel.tasks.tests._voters import Ballots, group_codes, plan_for_test, voter_gram
from rankernel.tasks.tests.mmd import check_kernel
from rankernel.tasks.tests.results import HSICResult

WITNESS_ROWS = 256
VOTER_BYTES = 64
PAIRS_AT_ONCE = 2**28  # of voters, in one call of compiled code
# A term of the sum over pairs of voters takes about as long as this many multiplications in a matrix product.
TERM = 8


def hsic_test(
    X: Any,
    covariate: Any,
    kernel: Kernel | None = None,
    n_permutations: int = 1000,
    seed: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    covariate_kernel: CovariateKernel = "auto",
    strata: Any = None,
    threads: int | None = None,
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
    n_permutations : int
        How many permutations make the null distribution.
    seed : int or Generator
        Where the permutations come from.
    biased : bool
        Which statistic.
    method : as in :meth:`Kernel.gram`
        How to compute kernel values; two voters with the same ballot are compared by different draws.
    covariate_kernel : {"auto", "delta", "gaussian"} or Kernel
        The kernel of the covariate, if not the one above; a Kernel for a covariate that is rankings.
    strata : array of shape (n_rankings,), optional
        A label for each row: the covariate is permuted only within strata.
    threads : int, optional
        How many tiles of the Gram matrix to compute at once.

    Returns
    -------
    HSICResult
        ``statistic``, ``pvalue``, ``null_distribution``, ``method``, ``kernel``, ``rankings``, ``witness``.

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
    n_permutations, start = whole("n_permutations", n_permutations), as_seed(seed)
    least = 2 if flag("biased", biased) else 4
    if data.n_voters < least:
        raise RankingError(f"X has {data.n_voters} voter(s); this statistic needs at least {least}")
    check_voters(data.n_voters, VOTER_BYTES, "an independence test")
    plan = plan_for_test(check_kernel(kernel), data, method)
    if not isinstance(covariate, Data) and np.asarray(covariate).dtype.kind == "f":  # a value for each row
        check_memory((len(data), len(data)), np.float64, 3, "an independence test with numbers")
    else:
        check_memory(plan.distinct.shape, np.float64, 1.5, "an independence test")
    of_row = np.zeros(len(data), dtype=np.int64) if strata is None else group_codes(strata, data, "strata")
    other = covariate_of(covariate, data, covariate_kernel, method)
    form = Dependence.of(voter_gram(plan, threads), Ballots.of(data, plan).of_voter, other, biased)
    null = form.null(np.repeat(of_row, data.counts), n_permutations, start)
    statistic = float(form.sums(form.values[None])[0])
    within = " within strata" if strata is not None else ""
    text = (
        f"{'biased' if biased else 'unbiased'} HSIC of rankings and {other.text}, {n_permutations:,} permutations "
        f"of the voters{within}, kernel values: {plan.method}"
    )
    p = pvalue(null, statistic, TIED * form.scale)
    return HSICResult(statistic, p, null, text, plan.kernel, data, by_row(form.witness(other), data))


def by_row(values: FloatArray, X: Data) -> FloatArray:
    """Return the mean over the voters of each row."""
    row_of_voter = np.repeat(np.arange(len(X)), X.counts)
    return np.asarray(np.bincount(row_of_voter, weights=values) / X.counts)


def centred(gram: FloatArray, counts: FloatArray, biased: bool) -> FloatArray:
    """Return the centred kernel between values that occur ``counts`` times, for two different voters if unbiased."""
    n, out = counts.sum(), np.empty(gram.shape)
    means, sums = gram @ counts / n, gram @ counts - np.diagonal(gram)
    for rows in stretches(len(gram), WITNESS_ROWS):
        if biased:
            out[rows] = gram[rows] - means[rows, None] - means[None, :] + counts @ means / n
        else:
            parts = (sums[rows, None] + sums[None, :]) / (n - 2)
            out[rows] = gram[rows] - parts + counts @ sums / ((n - 1) * (n - 2))
    return out


@dataclass(frozen=True, eq=False)
class Dependence:
    """The statistic as a function of the value of each voter: a sum over pairs of voters, divided by ``divisor``."""

    gram: FloatArray
    rows: IntArray
    centred: FloatArray
    values: IntArray
    biased: bool

    @classmethod
    def of(cls, gram: FloatArray, rows: IntArray, covariate: Covariate, biased: bool) -> Dependence:
        """Centre the covariate, which need be done only once: permuting it changes no mean."""
        counts = np.bincount(covariate.of_voter, minlength=len(covariate.gram)).astype(np.float64)
        return cls(gram, rows, centred(covariate.gram, counts, biased), covariate.of_voter, biased)

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

    def null(self, strata: IntArray, n_permutations: int, seed: int) -> FloatArray:
        """Return the statistic for random permutations of the values."""
        width = len(self.gram) * len(self.centred) if self.few_values else len(self.rows)
        parts = permuted(self.values, strata, n_permutations, max(ENTRIES // max(width, len(self.rows)), 1), seed)
        return np.concatenate([heard(self.sums, values) for values in parts])

    def sums(self, values: IntArray) -> FloatArray:
        """Return the statistic for each row of values."""
        total = self.by_table(values) if self.few_values else self.by_pairs(values)
        return np.asarray(total / self.divisor)

    def by_pairs(self, values: IntArray) -> FloatArray:
        """Return the sums over pairs of voters, one by one."""
        total = np.empty(len(values))
        for part in stretches(len(values), max(PAIRS_AT_ONCE // len(self.rows) ** 2, 1)):
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

    def witness(self, covariate: Covariate) -> FloatArray:
        """Return the witness function at each voter, from the kernels centred over voters."""
        other = covariate.gram
        counts = np.bincount(self.values, minlength=len(other)).astype(np.float64)
        other_means = other @ counts / counts.sum()
        # Voters of the same row with the same value are one cell.
        codes, cell, sizes = np.unique(self.rows * len(other) + self.values, return_inverse=True, return_counts=True)
        rows, values = codes // len(other), codes % len(other)
        means = self.gram @ np.bincount(self.rows, minlength=len(self.gram)) / len(self.rows)
        out = np.empty(len(rows))
        for part in stretches(len(rows), WITNESS_ROWS):
            left = self.gram[np.ix_(rows[part], rows)] - means[rows]
            right = other[np.ix_(values[part], values)] - other_means[values[part], None] - other_means[values]
            right += counts @ other_means / counts.sum()
            out[part] = (left * right) @ sizes / len(self.rows)
        return np.asarray(out[cell.ravel()])
