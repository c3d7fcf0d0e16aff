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
from rankernel._utils.resources import check_task, slices
from rankernel.data import Data, as_data, with_counts
from rankernel.errors import RankingError
from rankernel.gram.bandwidth import MAX_RANKINGS, median_of_pairs
from rankernel.gram.exact.features import mean_statistics
from rankernel.gram.plan import MethodLike
from rankernel.gram.rows import as_rows
from rankernel.kernels.base import Kernel
from rankernel.rankings import is_missing
from rankernel.stats._permutations import (
    CHUNK_ENTRIES,
    Cells,
    CentredKernel,
    Moments,
    PairStatistic,
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
        A third variable: rankings and covariate are tested for independence given its value. Labels are strata. Numbers
        (floats) are sorted into strata of five rows, within which the variable varies little (local permutation test:
        Kim, Neykov, Balakrishnan and Wasserman 2022); the type I error is then controlled approximately, and more
        accurately with more rows.
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
    return HSICResult(**hsic_fields(sample, data, other, stratum, biased, seed, n_permutations))


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


def hsic_statistic(
    sample: Sample, data: Data, covariate: Covariate, strata: IntArray, biased: bool, seed: int
) -> PairStatistic:
    """Return the criterion as a test statistic."""
    n = data.n_voters
    return PairStatistic(
        sample,
        Cells.from_rows(strata, covariate.codes, sample.index, data.counts),
        covariate.kernel,
        seed,
        biased=biased,
        factor=1 / (n**2 if biased else n * (n - 3)),
        value_sample=covariate.sample,
    )


def hsic_fields(
    sample: Sample, data: Data, covariate: Covariate, strata: IntArray, biased: bool, seed: int, n_permutations: int
) -> dict[str, Any]:
    """Return the attributes of the result of an independence test."""
    statistic = hsic_statistic(sample, data, covariate, strata, biased, seed)
    name = f"{'biased' if biased else 'unbiased'} HSIC of rankings and {covariate.text}"
    scheme = f"permutations of the voters{' within strata' * bool(strata.max())}"
    effect = KernelCorrelation.within(sample.gram, covariate.kernel, statistic.cells)
    fields = evaluate(statistic, effect, statistic.null_distribution(n_permutations), sample, name, scheme)
    return fields | {"rankings": data, "witness": witness(sample, data, covariate)}


def witness(sample: Sample, data: Data, covariate: Covariate) -> FloatArray:
    """Return the witness function at each row of the data and its covariate."""
    (rows, values), cell_of_row = np.unique(np.stack((sample.index, covariate.codes)), axis=1, return_inverse=True)
    cells = Cells(0 * rows, values, rows, np.bincount(cell_of_row.ravel(), data.counts).astype(np.int64))
    return PairedKernels(sample.gram, covariate.kernel, cells).witnesses[0, cell_of_row.ravel()]


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
    times, stratum = check_times(time, len(data)), stratum_codes(strata, len(data))
    check_task("a test of a trend", len(data.unique()))
    sample = Sample.planned(data, kernel, method, n_jobs)
    fields = hsic_fields(sample, data, time_covariate(times, data), stratum, False, seed, n_permutations)
    changes = dict(zip(data.items, rank_changes(data, times).tolist(), strict=True))
    return TrendResult(**fields, rank_changes=changes)


def rank_changes(X: Data, times: FloatArray) -> FloatArray:
    """Return the regression coefficient of the rank of each item on time, by least squares over voters."""
    weights, exponent = X.counts / X.n_voters, binary_exponent(times)
    scaled = np.ldexp(times, -exponent)
    deviations = scaled - weights @ scaled
    changes = (weights * deviations) @ mean_statistics(as_rows(X), "ranks") / (weights @ deviations**2)
    return np.asarray(np.ldexp(changes, -exponent))


# ---------------------------------------------------------------------- the effect


class PairedKernels:
    """The kernels of rankings and covariate over the voters of a stratum.

    Cell i has ``counts[i]`` voters with ranking ``rows[i]`` and value ``values[i]``.
    """

    def __init__(self, gram: FloatArray, other: FloatArray, cells: Cells) -> None:
        self.counts = cells.counts.astype(np.float64)
        self.n_voters = float(self.counts.sum())
        self.gram, self.rows = used_entries(gram, cells.rows)
        self.other, self.values = used_entries(other, cells.values)

    def centred(self, biased: bool) -> tuple[CentredKernel, CentredKernel]:
        """Return both kernels, centred over the voters."""
        left, right = (np.bincount(each, self.counts).astype(np.float64) for each in (self.rows, self.values))
        return CentredKernel.from_gram(self.gram, left, biased), CentredKernel.from_gram(self.other, right, biased)

    def products(self, left: CentredKernel, right: CentredKernel) -> FloatArray:
        """Return the sums over voters of the products K L, K² and L² at each cell, of shape (3, n_cells)."""
        rows, values, counts, sums = self.rows, self.values, self.counts, np.empty((3, len(self.counts)))
        sums[1:] = left.sums_of_powers(2)[rows], right.sums_of_powers(2)[values]
        if right.is_product:
            factor, other = right.factors
            by_row = np.zeros((len(left.counts), other.shape[1]))
            np.add.at(by_row, rows, counts[:, None] * other[values])
            sums[0] = (left.times(by_row)[rows] * factor[values]).sum(axis=1)
        else:
            for part in slices(len(counts), max(CHUNK_ENTRIES // len(counts), 1)):
                sums[0, part] = (left.block(rows[part], rows) * right.block(values[part], values)) @ counts
        return sums

    def criteria(self) -> FloatArray:
        """Return the unbiased HSIC(K, L), HSIC(K, K) and HSIC(L, L)."""
        (left, right), n, c = self.centred(biased=False), self.n_voters, self.counts
        K, L = left.diagonal[self.rows], right.diagonal[self.values]
        self_pairs = np.array([c @ (K * L), c @ K**2, c @ L**2])
        return np.asarray((self.products(left, right) @ c - self_pairs) / (n * (n - 3)))

    @cached_property
    def witnesses(self) -> FloatArray:
        """The means over voters of the products K L, K² and L² at each cell, of kernels with the biased centring."""
        return self.products(*self.centred(biased=True)) / self.n_voters


def used_entries(gram: FloatArray, codes: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the kernel between the codes that occur, and the position of each code among them."""
    used, positions = np.unique(codes, return_inverse=True)
    if len(used) < len(gram):
        gram = gram[used] if gram.ndim == 1 else gram[np.ix_(used, used)]
    return gram, positions.ravel()


@dataclass(frozen=True, eq=False)
class KernelCorrelation(Effect):
    """The correlation of two kernels over the voters of the strata: B = HSIC(K, L), W the rest of the denominator."""

    strata: tuple[PairedKernels, ...]

    @classmethod
    def within(cls, gram: FloatArray, other: FloatArray, cells: Cells) -> KernelCorrelation:
        """Return the correlation within strata."""
        sizes = np.bincount(cells.strata, cells.counts)
        members = [cells.strata == number for number in np.flatnonzero(sizes >= MIN_VOTERS)]
        strata = [Cells._make([each[of_stratum] for each in cells]) for of_stratum in members]
        return cls(tuple(PairedKernels(gram, other, stratum) for stratum in strata))

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
        moments = Moments()
        for weight, stratum in zip(self.weights.tolist(), self.strata, strict=True):
            factor = weight / (stratum.n_voters * (stratum.n_voters - 3))
            moments += permutation_moments(*stratum.centred(biased=False), factor).with_skewness(null.skewness)
        return moments


# ---------------------------------------------------------------------- covariates


@dataclass(frozen=True, eq=False)
class Covariate:
    """A covariate of rankings."""

    codes: Indices  # the number of the value of each row
    kernel: FloatArray  # between values; the values themselves if the kernel is their product
    text: str  # description of the values and the kernel
    sample: Sample | None = None  # the distinct values, if they are rankings


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
    return label_covariate(array)


def label_covariate(labels: NDArray[Any]) -> Covariate:
    """Return labels with the delta kernel: 1 for equal labels, 0 otherwise."""
    if labels.ndim != 1:
        raise RankingError(f"covariate has shape {labels.shape}; the delta kernel takes one label for each row")
    for row, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise RankingError(f"the covariate of row {row} is missing; leave out rows without one")
    names, codes = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)
    text = f"labels ({len(names)} different, delta kernel)"
    return Covariate(codes.ravel(), np.eye(len(names)), text)


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
    return Covariate(codes.ravel(), np.exp(squares, out=squares), text)


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
    return Covariate(sample.index, sample.gram, f"rankings ({plan.kernel})", sample)


# ---------------------------------------------------------------------- times


def time_covariate(times: FloatArray, X: Data) -> Covariate:
    """Return times with the product kernel of standardised times."""
    points, codes = np.unique(times, return_inverse=True)
    if len(points) < 2:
        raise RankingError(f"time is {points[0]:g} in all rows; a trend needs at least two times")
    points = np.ldexp(points, -binary_exponent(points))
    shares = np.bincount(codes.ravel(), X.counts) / X.n_voters
    points -= shares @ points
    points /= np.sqrt(shares @ points**2)
    text = f"times ({len(points):,} different, product kernel)"
    return Covariate(codes.ravel(), points, text)


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
