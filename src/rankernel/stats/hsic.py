r"""The independence test by the Hilbert-Schmidt independence criterion (HSIC), and the trend test, a special case.

The effect is the correlation :math:`\mathrm{HSIC}(K, L) / \sqrt{\mathrm{HSIC}(K, K)\, \mathrm{HSIC}(L, L)}` of the two
kernels, with unbiased estimates of all three (Song et al. 2012). Within strata, each of them is the mean over strata
weighted by their numbers of voters; strata of fewer than four voters are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, Indices, IntArray
from rankernel._utils.checks import (
    Seed,
    as_seed,
    check_array,
    check_choice,
    check_flag,
    check_integer,
    check_labels,
    check_unmasked,
    short_repr,
)
from rankernel._utils.resources import check_task, check_voters, run_interruptibly
from rankernel.data import Data, as_data, with_counts
from rankernel.errors import RankingError
from rankernel.gram.bandwidth import MAX_RANKINGS, median_of_pairs
from rankernel.gram.evaluator import slices
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.plan import MethodLike
from rankernel.gram.rows import as_rows
from rankernel.kernels.base import Kernel
from rankernel.rankings import is_missing
from rankernel.stats._permutations import (
    BLOCK_ROWS,
    CHUNK_ENTRIES,
    PAIR_COST,
    RELATIVE_TOLERANCE,
    VOTER_BYTES,
    ZERO_MOMENTS,
    CentredKernel,
    Moments,
    PermutationStatistic,
    Shuffles,
    arrangement_probability,
    off_diagonal_forms,
    permutation_moments,
)
from rankernel.stats.base import (
    Effect,
    InfluenceSample,
    KernelTestResult,
    Sample,
    SummaryLines,
    check_kernel,
    check_voters_needed,
    evaluate,
    stratum_codes,
)

CovariateKernel = Literal["auto", "delta", "gaussian"] | Kernel
MIN_VOTERS = 4  # of the unbiased criterion
STRATUM_ROWS = 5  # rows of similar numbers in a stratum (benchmarks/calibration.py)
PAIRS_PER_CALL = 2**28  # pairs of voters in one call of a compiled loop, which cannot be interrupted


@dataclass(frozen=True, eq=False, kw_only=True)
class HSICResult(KernelTestResult):
    """Result of :func:`hsic_test`.

    Attributes
    ----------
    statistic : float
        The estimate of the Hilbert-Schmidt independence criterion.
    effect : float
        The correlation of the two kernels: 0 if rankings and covariate are independent, 1 if the kernels are the same.
    rankings : Rankings or Preferences
        The rankings as given.
    witness : array of shape (n_rankings,)
        The witness function at each ranking and its covariate: positive if they occur together more often than under
        independence. Its mean over voters is the biased statistic.
    """

    witness: FloatArray = field(repr=False)

    _effect_noun: ClassVar[str] = "is the correlation of the kernels"


@np.errstate(under="ignore")
def hsic_test(
    X: Any,
    covariate: Any,
    kernel: Kernel | str | None = None,
    *,
    n_permutations: int = 999,
    rng: Seed = 0,
    biased: bool = False,
    method: MethodLike = "auto",
    covariate_kernel: CovariateKernel = "auto",
    given: Any = None,
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
        (Gaussian kernel, whose bandwidth is the median distance between two voters).
    covariate_kernel : {"auto", "delta", "gaussian"} or Kernel
        The kernel of the covariate; a Kernel if the covariate is rankings.
    given : array of shape (n_rankings,), optional
        A third variable: rankings and covariate are tested for independence given its value. Labels are strata; numbers
        (floats) are sorted into strata of five rows, within which the variable varies little (local permutation test:
        Kim, Neykov, Balakrishnan and Wasserman 2022), so the level is approximate and better with more rows.
    strata : array of shape (n_rankings,), optional
        A label for each row: the covariate is permuted within strata only.
    kernel, n_permutations, rng, biased, method, n_jobs
        As in :func:`mmd_test`.

    Returns
    -------
    HSICResult
        ``statistic``, ``pvalue``, ``moment_pvalue``, ``null_distribution``, ``effect``, ``effect_interval``,
        ``witness``, ...

    Examples
    --------
    Four voters who rank two items, two each way, and a label that says which way: K = L, with K_ij = 1 for equal
    rankings and 0 otherwise, and the biased statistic is 1/4.

    >>> from rankernel import Hamming, Rankings
    >>> ballots = Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[2, 2])
    >>> result = hsic_test(ballots, ["left", "right"], 0.5 * Hamming(), biased=True)
    >>> result.statistic, result.witness
    (0.25, array([0.25, 0.25]))
    """
    data = as_data(X)
    n_permutations, seed = check_integer("n_permutations", n_permutations), as_seed(rng)
    check_voters_needed(data, 2 if check_flag("biased", biased) else MIN_VOTERS)
    check_voters(data.n_voters, VOTER_BYTES, "an independence test")
    is_dense = (
        isinstance(covariate, Data) or check_array("covariate", covariate, "one value for each row").dtype.kind == "f"
    )
    sample = Sample.planned(data, kernel, method, n_jobs, None if is_dense else "an independence test of labels")
    if is_dense:
        check_task("an independence test", len(data))
    if given is not None and strata is not None:
        raise ValueError("given and strata both divide the rows into strata; give one of them")
    stratum = stratum_codes(strata, len(data)) if given is None else conditional_codes(given, len(data))
    other = make_covariate(covariate, data, covariate_kernel, method)
    return HSICResult(**hsic_fields(HSIC(sample, data, other, stratum, biased, seed), n_permutations))


def conditional_codes(given: Any, n_rows: int) -> IntArray:
    """Return strata of rows with equal labels or similar numbers."""
    values = check_labels("given", given, n_rows)
    if values.dtype.kind != "f":
        return stratum_codes(values, n_rows)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        raise RankingError(f"given is {values[row]} in row {row}; give finite numbers, leave out missing ones")
    codes = np.empty(n_rows, dtype=np.int64)
    codes[np.argsort(values, kind="stable")] = np.minimum(
        np.arange(n_rows) // STRATUM_ROWS, max(n_rows // STRATUM_ROWS - 1, 0)
    )
    return codes


def hsic_fields(statistic: HSIC, n_permutations: int) -> dict[str, Any]:
    """Return the attributes of the result of an independence test."""
    name = f"{'biased' if statistic.biased else 'unbiased'} HSIC of rankings and {statistic.covariate.text}"
    scheme = f"permutations of the voters{' within strata' * bool(statistic.strata.max())}"
    fields = evaluate(statistic, n_permutations, statistic.sample, name, scheme)
    return fields | {"rankings": statistic.data, "witness": statistic.witness()}


# ---------------------------------------------------------------------- trends


@dataclass(frozen=True, eq=False, kw_only=True)
class TrendResult(HSICResult):
    """Result of :func:`trend_test`.

    Attributes
    ----------
    statistic : float
        The estimate of the Hilbert-Schmidt independence criterion with the product kernel of times.
    rank_changes : dict of str to float
        The change of the mean rank of each item per unit of time, by least squares; negative if the item rises.
    """

    rank_changes: dict[str, float] = field(repr=False)

    def _summary(self) -> SummaryLines:
        rising = sorted((change, item) for item, change in self.rank_changes.items() if change < 0)
        falling = sorted((-change, item) for item, change in self.rank_changes.items() if change > 0)
        return [*super()._summary(), ("rises", changes_text(rising)), ("falls", changes_text(falling))]


def changes_text(changes: Sequence[tuple[float, str]]) -> str:
    """Return the first three items with the size of their change."""
    shown = [f"{item} ({abs(change):.2g} ranks per unit of time)" for change, item in changes[:3]]
    more = [f"{len(changes) - 3:,} more"] if len(changes) > 3 else []
    return ", ".join([*shown, *more]) or "no item"


@np.errstate(under="ignore")
def trend_test(
    X: Any,
    time: Any,
    kernel: Kernel | str | None = None,
    *,
    n_permutations: int = 999,
    rng: Seed = 0,
    method: MethodLike = "auto",
    strata: Any = None,
    n_jobs: int | None = None,
) -> TrendResult:
    r"""Test whether rankings change linearly with time, or along ordered groups.

    The statistic is the Hilbert-Schmidt independence criterion with the kernel
    :math:`(t_i - \bar t)(t_j - \bar t)`: the squared norm of the covariance of time and embedding. It has more power
    against a linear trend than :func:`hsic_test` or :func:`k_sample_test`, which find any dependence on time.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings.
    time : array of shape (n_rankings,)
        The time of each row: numbers, or dates of any kind (NumPy, pandas, ``datetime``), which are converted to days.
        Or its group: 1, 2, 3, ... for ordered groups, or an ordered categorical of pandas.
    strata : array of shape (n_rankings,), optional
        A label for each row: times are permuted within strata only.
    kernel, n_permutations, rng, method, n_jobs
        As in :func:`mmd_test`.

    Returns
    -------
    TrendResult

    Examples
    --------
    Over three years b overtakes a:

    >>> from rankernel import Rankings
    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]] * 3, counts=[8, 1, 5, 4, 2, 8])
    >>> result = trend_test(ballots, [2019, 2019, 2020, 2020, 2021, 2021])
    >>> result.pvalue < 0.05, {item: round(change, 1) for item, change in result.rank_changes.items()}
    (True, {'a': 0.3, 'b': -0.3, 'c': 0.0})
    """
    data = as_data(X)
    n_permutations, seed = check_integer("n_permutations", n_permutations), as_seed(rng)
    check_voters_needed(data, MIN_VOTERS)
    check_voters(data.n_voters, VOTER_BYTES, "a test of a trend")
    times, stratum = check_times(time, len(data)), stratum_codes(strata, len(data))
    check_task("a test of a trend", len(np.unique(times)))
    sample = Sample.planned(data, kernel, method, n_jobs, "an independence test of labels")
    statistic = HSIC(sample, data, time_covariate(times, data), stratum, False, seed)
    changes = dict(zip(data.items, rank_changes(data, times).tolist(), strict=True))
    return TrendResult(**hsic_fields(statistic, n_permutations), rank_changes=changes)


def rank_changes(X: Data, times: FloatArray) -> FloatArray:
    """Return the regression coefficient of the rank of each item on time, by least squares over voters."""
    weights, exponent = X.counts / X.n_voters, binary_exponent(times)
    scaled = np.ldexp(times, -exponent)
    deviations = scaled - weights @ scaled
    changes = (weights * deviations) @ mean_statistics(as_rows(X), "ranks") / (weights @ deviations**2)
    return np.asarray(np.ldexp(changes, -exponent))


# ---------------------------------------------------------------------- the statistic


class HSIC(PermutationStatistic):
    """The criterion as a sum over pairs of voters, with the covariate permuted between voters within strata.

    It is enough to centre the kernel of the covariate, which permutations do not change.
    """

    def __init__(
        self, sample: Sample, data: Data, covariate: Covariate, stratum: IntArray, biased: bool, seed: int
    ) -> None:
        self.sample, self.data, self.covariate, self.biased = sample, data, covariate, biased
        self.gram, self.rows = sample.gram, np.repeat(sample.index, data.counts)
        self.values, self.strata = covariate.values, np.repeat(stratum, data.counts)
        self.row_counts = np.bincount(self.rows, minlength=len(self.gram)).astype(np.float64)
        self.centred = covariate.centred(biased).matrix()
        n = len(self.rows)
        self.divisor = float(n**2 if biased else n * (n - 3))
        self.tolerance = RELATIVE_TOLERANCE * float(np.abs(self.gram).mean() * np.abs(self.centred).mean())
        self.shuffles = Shuffles(self.values, self.strata, seed, self.rows)
        self.value = float(self.of_values(self.values[None])[0])

    @property
    def by_table(self) -> bool:
        """Whether matrix products take fewer operations than sums over pairs of voters."""
        n_rows, n_values = len(self.gram), len(self.centred)
        if self.covariate.points is not None:
            return False
        return n_rows * n_values * (n_rows + n_values) < PAIR_COST * len(self.rows) ** 2

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for the next permutations of the covariate."""
        chunks = self.shuffles.draw(n_permutations, len(self.gram) * len(self.centred) if self.by_table else 1)
        return np.concatenate([run_interruptibly(self.of_values, values) for values in chunks])

    def of_values(self, values: IntArray) -> FloatArray:
        """Return the statistic for each row of values of the voters."""
        if self.covariate.points is not None:
            return self.sums_of_products(values, self.covariate.points) / self.divisor
        sums = self.sums_by_table(values) if self.by_table else self.sums_by_pair(values)
        return np.asarray(sums / self.divisor)

    def sums_of_products(self, values: IntArray, points: FloatArray) -> FloatArray:
        r"""Return the sums over pairs of voters for the product kernel of standardised points.

        The centred kernel of voters i and j is :math:`z_i z_j + (z_i^2 + z_j^2) / (N-2) - N / ((N-1)(N-2))`, so the
        sums of z and of z² over the voters of each ranking are enough.
        """
        n, n_rows, diagonal = len(self.rows), len(self.gram), np.diagonal(self.gram)
        cells = (self.rows + n_rows * np.arange(len(values))[:, None]).ravel()
        z = points[values].ravel()
        sums: list[FloatArray] = [np.bincount(cells, each, n_rows * len(values)).astype(float) for each in (z, z**2)]
        first, second = (each.reshape(-1, n_rows) for each in sums)
        row_sums = self.gram @ self.row_counts - diagonal
        constant = n / ((n - 1) * (n - 2)) * float(self.row_counts @ row_sums)
        products = off_diagonal_forms(self.gram, first) + (first**2 - second) @ diagonal
        return np.asarray(products + 2 / (n - 2) * (second @ row_sums) - constant)

    def sums_by_pair(self, values: IntArray) -> FloatArray:
        """Return the sums over pairs of voters by a loop."""
        total = np.empty(len(values))
        for part in slices(len(values), max(PAIRS_PER_CALL // len(self.rows) ** 2, 1)):
            total[part] = sum_products(self.gram, self.rows, self.centred, values[part])
        if self.biased:
            total += (np.diagonal(self.gram)[self.rows] * np.diagonal(self.centred)[values]).sum(axis=1)
        return total

    def sums_by_table(self, values: IntArray) -> FloatArray:
        """Return the sums over pairs of voters by matrix products, from the number of voters of each row and value."""
        n_rows, n_values, n_tables = len(self.gram), len(self.centred), len(values)
        cells = (self.rows * n_tables + np.arange(n_tables)[:, None]) * n_values + values
        tables = np.bincount(cells.ravel(), minlength=n_rows * n_tables * n_values).astype(np.float64)
        left = (self.gram @ tables.reshape(n_rows, -1)).reshape(n_rows, n_tables, n_values)
        tables = tables.reshape(n_rows, n_tables, n_values)
        total: FloatArray = np.einsum("upv,upv->p", left, tables @ self.centred)
        if not self.biased:
            total -= np.einsum("u,upv,v->p", np.diagonal(self.gram), tables, np.diagonal(self.centred), optimize=True)
        return total

    def moments(self) -> Moments | None:
        """Return the exact moments over all permutations; None with strata."""
        if self.strata.max() > 0:
            return None
        left, right = self.centred_rankings(), self.covariate.centred(self.biased)
        return permutation_moments(left, right).scaled(1 / self.divisor)

    def centred_rankings(self) -> CentredKernel:
        """Return the kernel of the rankings, centred over voters."""
        return CentredKernel.from_gram(self.gram, self.row_counts, self.biased)

    def min_pvalue(self) -> float:
        """Return the probability of the observed arrangement."""
        cells = np.stack((self.strata, self.values, self.rows))
        (strata, values, rows), counts = np.unique(cells, axis=1, return_counts=True)
        return arrangement_probability(strata, values, rows, counts)

    def effect(self) -> KernelCorrelation:
        """Return the correlation of the two kernels."""
        return self.correlation

    @cached_property
    def correlation(self) -> KernelCorrelation:
        """The correlation of the two kernels."""
        return KernelCorrelation.within(self.gram, self.rows, self.covariate.gram, self.values, self.strata)

    def standard_errors(self) -> tuple[float, float]:
        """Return the Monte Carlo standard errors of statistic and effect, from both kernels."""
        table = np.zeros((len(self.centred), len(self.gram)))
        np.add.at(table, (self.values, self.rows), 1.0)
        mcse = self.sample.standard_error(table, self.centred / self.divisor, self.biased)
        if self.covariate.sample is not None:  # the criterion is the same if the other kernel is centred
            other = self.centred_rankings().matrix() / self.divisor
            mcse = float(np.hypot(mcse, self.covariate.sample.standard_error(table.T, other, self.biased)))
        return mcse, self.correlation.standard_error(mcse)

    def witness(self) -> FloatArray:
        """Return the mean of the witness function over the voters of each row of the data."""
        left = CentredKernel.from_gram(self.gram, self.row_counts, biased=True)
        right = self.covariate.centred(biased=True)
        n_values = len(right.gram)
        codes, cell, sizes = np.unique(self.rows * n_values + self.values, return_inverse=True, return_counts=True)
        rows, values = codes // n_values, codes % n_values
        at_cells = np.empty(len(codes))
        for part in slices(len(codes), BLOCK_ROWS):
            products = left.block(rows[part], rows) * right.block(values[part], values)
            at_cells[part] = products @ sizes / len(self.rows)
        row_of_voter = np.repeat(np.arange(len(self.data)), self.data.counts)
        return np.asarray(np.bincount(row_of_voter, weights=at_cells[cell.ravel()]) / self.data.counts)


# ---------------------------------------------------------------------- the effect


@dataclass(frozen=True, eq=False)
class PairedKernels:
    """The centred kernels of rankings (``left``) and covariate (``right``) over the voters of a stratum.

    Cell i has ``counts[i]`` voters with ranking ``rows[i]`` and value ``values[i]``.
    """

    left: CentredKernel
    right: CentredKernel
    rows: IntArray
    values: IntArray
    counts: FloatArray

    @classmethod
    def from_voters(cls, gram: FloatArray, rows: IntArray, other: FloatArray, values: IntArray) -> PairedKernels:
        """Return the kernels, from the row and the value of each voter."""
        cells, n_voters = np.unique(np.stack((rows, values)), axis=1, return_counts=True)
        counts = n_voters.astype(np.float64)
        left, row_codes = centre_codes(gram, cells[0], counts)
        right, value_codes = centre_codes(other, cells[1], counts)
        return cls(left, right, row_codes, value_codes, counts)

    @property
    def n_voters(self) -> float:
        """The number of voters."""
        return float(self.counts.sum())

    def criteria(self) -> FloatArray:
        """Return the unbiased HSIC(K, L), HSIC(K, K) and HSIC(L, L)."""
        n, c = self.n_voters, self.counts
        K, L = self.left.diagonal[self.rows], self.right.diagonal[self.values]
        self_pairs = np.array([c @ (K * L), c @ K**2, c @ L**2])
        return np.asarray((self.product_sums(self.left, self.right) @ c - self_pairs) / (n * (n - 3)))

    def product_sums(self, left: CentredKernel, right: CentredKernel) -> FloatArray:
        """Return the sums over voters of the products K L, K² and L² at each cell, of shape (3, n_cells)."""
        sums = np.empty((3, len(self.counts)))
        for part in slices(len(self.counts), max(CHUNK_ENTRIES // len(self.counts), 1)):
            K = left.block(self.rows[part], self.rows)
            L = right.block(self.values[part], self.values)
            for index, (first, second) in enumerate(((K, L), (K, K), (L, L))):
                sums[index, part] = (first * second) @ self.counts
        return sums

    @cached_property
    def witnesses(self) -> FloatArray:
        """The means over voters of the products K L, K² and L² at each cell, of kernels with the biased centring."""
        left, right = (CentredKernel.from_gram(side.gram, side.counts, True) for side in (self.left, self.right))
        return np.asarray(self.product_sums(left, right) / self.n_voters)

    def null_moments(self, skewness: float) -> Moments:
        """Return the moments of HSIC(K, L) if values are permuted; ``skewness`` is used if it is not known exactly."""
        n = self.n_voters
        moments = permutation_moments(self.left, self.right).scaled(1 / (n * (n - 3)))
        return Moments(0.0, moments.variance, skewness if np.isnan(moments.skewness) else moments.skewness)


def centre_codes(gram: FloatArray, codes: IntArray, counts: FloatArray) -> tuple[CentredKernel, IntArray]:
    """Return the centred kernel between the codes that occur, and the position of each code among them."""
    used, positions = np.unique(codes, return_inverse=True)
    values = gram if len(used) == len(gram) else gram[np.ix_(used, used)]
    weights = np.bincount(positions.ravel(), counts).astype(np.float64)
    return CentredKernel.from_gram(values, weights, biased=False), positions.ravel()


@dataclass(frozen=True, eq=False)
class KernelCorrelation(Effect):
    """The correlation of two kernels over the voters of the strata: B = HSIC(K, L), W the rest of the denominator."""

    strata: tuple[PairedKernels, ...]

    @classmethod
    def within(
        cls, gram: FloatArray, rows: IntArray, other: FloatArray, values: IntArray, strata: IntArray
    ) -> KernelCorrelation:
        """Return the correlation within strata, from the row, the value and the stratum of each voter."""
        members = [strata == number for number in range(int(strata.max()) + 1)]
        large = [voters for voters in members if voters.sum() >= MIN_VOTERS]
        return cls(tuple(PairedKernels.from_voters(gram, rows[voters], other, values[voters]) for voters in large))

    @property
    def weights(self) -> FloatArray:
        """The share of the voters in each stratum."""
        sizes = np.array([stratum.n_voters for stratum in self.strata])
        return np.asarray(sizes / sizes.sum())

    @cached_property
    def criteria(self) -> FloatArray:
        """The unbiased HSIC(K, L), HSIC(K, K) and HSIC(L, L)."""
        return np.asarray(self.weights @ np.array([stratum.criteria() for stratum in self.strata]))

    @cached_property
    def value(self) -> float:
        """The correlation: 0 if rankings or covariate do not vary, nan if it is undefined."""
        if not self.strata:
            return float("nan")
        cross, *norms = self.criteria
        if min(norms) > 0:
            return float(cross / np.sqrt(norms[0] * norms[1]))
        return 0.0 if min(norms) == 0 else float("nan")

    def parts(self) -> tuple[float, float]:
        """Return HSIC(K, L), and the difference between it and the denominator of the correlation."""
        denominator = float(np.sqrt(self.criteria[1] * self.criteria[2]))
        return float(self.criteria[0]), denominator - float(self.criteria[0])

    def population_parts(self) -> tuple[float, float]:
        """Return :meth:`parts` of the biased criteria."""
        means = self._population_criteria()
        return float(means[0]), float(np.sqrt(means[1] * means[2]) - means[0])

    def _population_criteria(self) -> FloatArray:
        means = [stratum.witnesses @ (stratum.counts / stratum.n_voters) for stratum in self.strata]
        return np.asarray(self.weights @ np.array(means))

    def influences(self, total: float) -> Iterator[InfluenceSample]:
        """Yield the influences of the voters of each stratum."""
        means = self._population_criteria()
        for weight, stratum in zip(self.weights, self.strata, strict=True):
            cross, first, second = 2 * weight * stratum.witnesses
            between = cross / np.sqrt(means[1] * means[2])
            within = (first / means[1] + second / means[2]) / 2 - between
            yield InfluenceSample(between, within, stratum.counts / stratum.n_voters, stratum.n_voters)

    def null_moments(self, null: Moments) -> Moments:
        """Return the moments of HSIC(K, L) under permutations within strata."""
        moments = ZERO_MOMENTS
        for weight, stratum in zip(self.weights.tolist(), self.strata, strict=True):
            moments += stratum.null_moments(null.skewness).scaled(weight)
        return moments


# ---------------------------------------------------------------------- covariates


@dataclass(frozen=True, eq=False)
class Covariate:
    """A covariate of voters."""

    values: Indices  # the number of the value of each voter
    gram: FloatArray  # the kernel between values
    text: str  # description of the values and the kernel
    sample: Sample | None = None  # the distinct values, if they are rankings
    points: FloatArray | None = None  # the standardised values, if the kernel is their product

    def centred(self, biased: bool) -> CentredKernel:
        """Return the kernel between values, centred over voters."""
        counts = np.bincount(self.values, minlength=len(self.gram)).astype(np.float64)
        return CentredKernel.from_gram(self.gram, counts, biased)


def make_covariate(values: Any, X: Data, kernel: CovariateKernel, method: MethodLike) -> Covariate:
    """Return the covariate of the voters of X, one value for each row of X."""
    if isinstance(values, Data):
        return ranking_covariate(values, X, kernel, method)
    check_unmasked("covariate", values)
    array = np.asarray(values)
    if array.ndim not in (1, 2) or len(array) != len(X):
        raise RankingError(
            f"covariate has shape {array.shape}, but there are {len(X)} rankings; give one value for each row"
        )
    if isinstance(kernel, Kernel):
        raise ValueError(f"covariate_kernel={kernel!r} is for rankings; for other values use 'delta' or 'gaussian'")
    check_choice("covariate_kernel", kernel, ("auto", "delta", "gaussian"))
    is_numeric = array.dtype.kind == "f" or array.ndim == 2
    if kernel == "gaussian" or (kernel == "auto" and is_numeric):
        return numeric_covariate(array, X)
    return label_covariate(array, X)


def label_covariate(labels: NDArray[Any], X: Data) -> Covariate:
    """Return labels with the delta kernel: 1 for equal labels, 0 otherwise."""
    if labels.ndim != 1:
        raise RankingError(f"covariate has shape {labels.shape}; the delta kernel takes one label for each row")
    for row, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise RankingError(f"the covariate of row {row} is missing; leave out rows without one")
    names, codes = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)
    text = f"labels ({len(names)} different, delta kernel)"
    return Covariate(np.repeat(codes.ravel(), X.counts), np.eye(len(names)), text)


def numeric_covariate(values: NDArray[Any], X: Data) -> Covariate:
    r"""Return numbers with the Gaussian kernel :math:`\exp(-|x - y|^2 / 2 s^2)`, s the median of ``|x - y|``."""
    from scipy.spatial.distance import cdist

    try:
        matrix = values.astype(np.float64).reshape(len(X), -1)
    except (TypeError, ValueError):
        raise RankingError(
            f"the covariate of row 0 is {short_repr(values[0])}, and the Gaussian kernel takes numbers; give numbers, "
            "or covariate_kernel='delta' for labels"
        ) from None
    if not np.isfinite(matrix).all():
        row = int(np.argmax(~np.isfinite(matrix).all(axis=1)))
        raise RankingError(f"the covariate of row {row} is {values[row]}; give finite numbers, leave out missing ones")
    points, codes = np.unique(matrix, axis=0, return_inverse=True)
    exponent = binary_exponent(points)
    points = np.ldexp(points, -exponent)
    counts = np.bincount(codes.ravel(), weights=X.counts).astype(np.float64)
    squares = cdist(points, points, "sqeuclidean")
    subset: Any = slice(None)
    if len(points) > MAX_RANKINGS:
        subset = np.sort(np.random.default_rng(0).choice(len(points), MAX_RANKINGS, replace=False))
    bandwidth = median_of_pairs(np.sqrt(squares[subset][:, subset]), counts[subset])
    text = f"numbers (Gaussian kernel, bandwidth {np.ldexp(bandwidth, exponent):.6g})"
    squares /= -2 * bandwidth**2  # in place, to hold one matrix
    return Covariate(np.repeat(codes.ravel(), X.counts), np.exp(squares, out=squares), text)


def binary_exponent(values: FloatArray) -> int:
    """Return the exponent of the power of two to divide values by, so that no square overflows, or underflows to 0."""
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])


def ranking_covariate(values: Data, X: Data, kernel: CovariateKernel, method: MethodLike) -> Covariate:
    """Return other rankings of the same voters as a covariate."""
    if len(values) != len(X):
        raise RankingError(f"covariate has {len(values)} rankings and X has {len(X)}; give one for each row of X")
    if not (np.array_equal(values.counts, X.counts) or (values.counts == 1).all()):
        raise RankingError("covariate has other counts than X; a row of X and its covariate are the same voters")
    if isinstance(kernel, str) and kernel != "auto":
        raise ValueError(f"covariate_kernel={kernel!r} is not for rankings; give a kernel such as Mallows(0.1)")
    voters = with_counts(as_data(values), X.counts)
    plan = check_kernel(None if isinstance(kernel, str) else kernel).plan(voters, method=method)
    sample = Sample.from_plan(voters, plan)
    return Covariate(np.repeat(sample.index, X.counts), sample.gram, f"rankings ({plan.kernel})", sample)


# ---------------------------------------------------------------------- times


def time_covariate(times: FloatArray, X: Data) -> Covariate:
    """Return times with the product kernel of standardised times."""
    points, codes = np.unique(times, return_inverse=True)
    if len(points) < 2:
        raise RankingError(f"time is {points[0]:g} in all rows; a trend needs at least two times")
    points = np.ldexp(points, -binary_exponent(points))
    values = np.repeat(codes.ravel(), X.counts)
    standardised = (points - points[values].mean()) / points[values].std()
    text = f"times ({len(points):,} different, product kernel)"
    return Covariate(values, np.outer(standardised, standardised), text, points=standardised)


def check_times(time: Any, n_rows: int) -> FloatArray:
    """Return times as numbers, one for each row: dates as days, ordered categories as 0, 1, 2, ..."""
    check_labels("time", time, n_rows)
    categorical = getattr(time, "cat", time)  # the accessor of a pandas Series
    if getattr(categorical, "ordered", False) and hasattr(categorical, "codes"):
        codes = np.asarray(categorical.codes, dtype=np.float64)
        values: NDArray[Any] = np.where(codes < 0, np.nan, codes)
    else:
        values = time_array(time)
    if values.dtype.kind == "M":
        numbers = (values - np.datetime64(0, "D")) / np.timedelta64(1, "D")
    elif values.dtype.kind in "iufb":
        numbers = values.astype(np.float64)
    else:
        raise RankingError(
            f"time must hold numbers or dates, and the first is {short_repr(values.tolist()[0])}; for ordered groups "
            "give 1, 2, 3 or an ordered categorical"
        )
    missing = ~np.isfinite(numbers)
    if missing.any():
        raise RankingError(f"the time of row {int(np.argmax(missing))} is missing; leave out rows without one")
    return np.asarray(numbers, dtype=np.float64)


def time_array(time: Any) -> NDArray[Any]:
    """Return times as an array of numbers or of dates if they are, and otherwise unchanged."""
    array = np.asarray(time)
    if array.dtype != object:
        return array
    values = [value.to_timestamp() if hasattr(value, "to_timestamp") else value for value in array.tolist()]  # periods
    known = [value for value in values if not is_missing(value)]
    if known and all(isinstance(value, date) for value in known):  # a datetime or a Timestamp is a date
        dates = [np.datetime64("NaT") if is_missing(value) else as_datetime64(value) for value in values]
        return np.array(dates, "M8[us]")
    if known and all(isinstance(value, Real) for value in known):
        return np.array([np.nan if is_missing(value) else float(value) for value in values])
    return array


def as_datetime64(value: date) -> np.datetime64:
    """Return a date or a time as a datetime64 in UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value.isoformat(), "us")


@compiled
def sum_products(gram: FloatArray, rows: IntArray, other: FloatArray, columns: IntArray) -> FloatArray:
    """Return for each p the sum over voters i != j of gram[rows[i], rows[j]] * other[columns[p, i], columns[p, j]]."""
    n_permutations, n_voters = columns.shape
    sums = np.zeros(n_permutations)
    for p in range(n_permutations):
        for i in range(n_voters):
            left, right = gram[rows[i]], other[columns[p, i]]
            part = 0.0
            for j in range(i):
                part += left[rows[j]] * right[columns[p, j]]
            sums[p] += 2 * part
    return sums
