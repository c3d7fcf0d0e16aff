r"""The permutation engine that all tests share: statistics, permutation schemes, exact moments, and p-values.

A test is a :class:`PermutationStatistic`: the statistic of the data, a stream of its values under random permutations,
and its exact moments over all permutations where they are known, from which follow p-values. Most tests have the same
statistic, :class:`PairStatistic`: the sum over pairs of voters of the kernel between their rankings times a kernel
between their values, which are permuted: groups, labels, numbers, times, other rankings.

Random permutations depend on the seed and on the data. With permutations that depended on the seed only, the p-values
of different data sets would be compared with the same permutations, and with few of them the level would be that of
these permutations rather than the nominal one.

**Small p-values.** A Pearson type III distribution with these moments is accurate down to p-values of about 0.01, and
smaller ones can be many times too small where groups have different sizes or most voters agree. There p-values are
estimated by multilevel splitting (Guyader, Hengartner and Matzner-Lober 2011).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from rankernel._loops.compiled import compiled, compiled_strictly
from rankernel._loops.random_streams import State, uniform
from rankernel._utils import FloatArray, IntArray, Mask, RankArray
from rankernel._utils.checks import Seed, as_seed, stream_key
from rankernel._utils.resources import check_voters, run_interruptibly
from rankernel.errors import RankingError
from rankernel.gram.evaluator import slices
from rankernel.stats._moments import CentredKernel, Moments, off_diagonal_forms, off_diagonal_sums, permutation_moments

if TYPE_CHECKING:
    from rankernel.stats.base import Sample

CHUNK_ENTRIES = 2**22  # entries of an array that has one row for each permutation
VOTER_BYTES = 64  # memory for each voter of a test that shuffles voters one by one
VOTERS_PER_CELL = 16  # of a table of rankings and values, from which random tables are faster than shuffles of voters
MAX_VOTERS = 10**9  # in SciPy's random tables
PAIR_COST = 8  # cost of one term of a sum over pairs of voters, in multiplications of a matrix product
PAIRS_PER_CALL = 2**28  # pairs of voters in one call of a compiled loop, which cannot be interrupted
RELATIVE_TOLERANCE = 1e-13  # of the mean absolute kernel value: statistics that are closer differ by rounding only
SMALL_PVALUE = 0.01  # smaller p-values from moments are compared with splitting (benchmarks/calibration.py)
MIN_SPLITTING_PVALUE = 1e-6  # where splitting stops
N_PARTICLES = 1000  # of splitting
SURVIVORS = 0.25  # the part of the particles that reach the next threshold
MAX_SPLIT_VOTERS = 50_000  # each particle is an arrangement of them
MAX_SPLIT_ENTRIES = 2**25  # entries of the sums of kernel values of all particles


def named_generator(seed: Seed, purpose: str, *data: Any) -> np.random.Generator:
    """Return a generator whose stream depends on the seed, the purpose and the data only."""
    checksums = [crc32(np.ascontiguousarray(array).tobytes()) for array in data]
    return np.random.default_rng(int(stream_key(as_seed(seed), " ".join([purpose, *map(str, checksums)]))))


# ---------------------------------------------------------------------- the engine


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """The distribution of a statistic under the null hypothesis, and the p-values of the observed value."""

    values: FloatArray  # the statistic for random permutations
    pvalue: float  # by permutations
    moments: Moments  # exact over all permutations, or estimates of those that are not known
    n_moment_draws: int  # permutations behind estimated moments; 0 if all moments are exact
    moment_pvalue: float  # by the Pearson type III approximation, and by splitting if it is small


class PermutationStatistic(ABC):
    """A test statistic and its distribution under random permutations of the data.

    Attributes
    ----------
    value : float
        The statistic of the data.
    tolerance : float
        Statistics that differ by less are ties.
    min_moment_draws : int
        Least number of permutations from which moments are estimated if they are not known exactly.
    """

    value: float
    tolerance: float
    min_moment_draws: int = 1000

    @abstractmethod
    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for the next random permutations."""

    def moments(self) -> Moments | None:
        """Return the exact moments over all permutations; None if unknown, skewness nan if only that is unknown."""
        return None

    def min_pvalue(self) -> float:
        """Return a lower bound of the p-value: the probability of the observed arrangement of the data."""
        return 0.0

    def splitting_pvalue(self) -> float:
        """Return an estimate of the p-value that is accurate for small ones; 0 if it is not known."""
        return 0.0

    def standard_error(self) -> float:
        """Return the Monte Carlo standard error of the statistic; 0 if kernel values are exact."""
        return 0.0

    def null_distribution(self, n_permutations: int) -> NullDistribution:
        """Return the distribution under the null hypothesis, and p-values.

        The p-value of B permutations is (1 + #{values >= statistic}) / (1 + B), which is valid for every B.
        """
        moments, n_moment_draws = self.moments(), 0
        if moments is None or np.isnan(moments.skewness):
            n_moment_draws = max(n_permutations, self.min_moment_draws)
        draws = self.draw(n_moment_draws or n_permutations)
        values = draws[:n_permutations]
        n_exceedances = int(count_exceedances(values, np.array([self.value]), self.tolerance)[0])
        if n_moment_draws:
            estimated = Moments.from_sample(draws)
            moments = estimated if moments is None else Moments(moments.mean, moments.variance, estimated.skewness)
        assert moments is not None
        moment_pvalue = max(moments.sf(self.value - self.tolerance), self.min_pvalue())
        if moment_pvalue < SMALL_PVALUE:
            moment_pvalue = max(moment_pvalue, self.splitting_pvalue())
        pvalue = (1 + n_exceedances) / (1 + n_permutations)
        return NullDistribution(values, pvalue, moments, n_moment_draws, min(moment_pvalue, 1.0))


def count_exceedances(null: FloatArray, values: FloatArray, tolerance: float) -> IntArray:
    """Return how many entries of a null distribution are at least as large as each value, ties included."""
    n_below = np.searchsorted(np.sort(null), values - tolerance, side="left")
    return np.asarray(len(null) - n_below, dtype=np.int64)


# ---------------------------------------------------------------------- the statistic of most tests


class Cells(NamedTuple):
    """The stratum, the value and the ranking of voters, and the number of voters of each such cell."""

    strata: IntArray
    values: IntArray
    rows: IntArray  # of the Gram matrix of the rankings
    counts: IntArray

    @classmethod
    def from_rows(cls, strata: IntArray, values: IntArray, rows: IntArray, counts: IntArray) -> Cells:
        """Return the cells of rows of data, each with a number of voters."""
        cells, cell_of_row = np.unique(np.stack((strata, values, rows)), axis=1, return_inverse=True)
        return cls._make([*cells, np.bincount(cell_of_row.ravel(), counts).astype(np.int64)])


class Voters(NamedTuple):
    """The stratum, the value and the row of each voter; the rows are permuted."""

    strata: IntArray
    values: IntArray
    rows: RankArray
    order: IntArray  # voters sorted by stratum, those with its most common value last
    starts: IntArray  # where each stratum begins in ``order``
    is_common: Mask  # whether the value is the most common one of the stratum


class Features(NamedTuple):
    r"""The centred kernel between values v and w as :math:`\sum_f \lambda_f e_{vf} e_{wf} - o_v - o_w + \kappa`."""

    of_values: FloatArray  # e, of shape (n_values, n_features)
    weights: FloatArray  # lambda
    offsets: FloatArray  # y, with o_v the sum of y_f e_vf^2
    constant: float  # kappa


class PairStatistic(PermutationStatistic):
    r"""The sum over pairs of voters of the kernel of their rankings times a kernel of their values, which are permuted.

    The statistic is ``factor`` times :math:`\sum_{i \ne j} K_{ij} \tilde L_{ij}`, or the sum over all i and j if
    ``biased``, with K the kernel between rankings and :math:`\tilde L` the kernel between values (``values``), centred
    over voters. Values are permuted between the voters of each stratum. ``values`` are numbers if the kernel between
    values is their product. ``value_sample`` is given if values are rankings.

    A permutation is a random table of rankings and values with given margins, or a shuffle of voters where such tables
    are large. The sum over pairs follows from sums of features of the values over the voters with each ranking, or is
    computed by a loop over pairs, whichever takes fewer operations.
    """

    def __init__(
        self,
        sample: Sample,
        cells: Cells,
        values: FloatArray,
        seed: int,
        *,
        biased: bool = False,
        factor: float = 1.0,
        value_sample: Sample | None = None,
    ) -> None:
        self.sample, self.value_sample, self.cells = sample, value_sample, cells
        self.biased, self.factor, self.gram = biased, factor, sample.gram
        self.diagonal, self.n_voters = np.diagonal(self.gram).copy(), int(cells.counts.sum())
        n_rows, n_values = len(self.gram), len(values)
        row_counts, sizes = (
            np.bincount(labels, cells.counts, length).astype(np.float64)
            for labels, length in ((cells.rows, n_rows), (cells.values, n_values))
        )
        self.row_counts, self.values = row_counts, CentredKernel.from_gram(values, sizes, biased)
        self.are_products = self.values.is_product
        self.are_labels = not self.are_products and np.count_nonzero(values) == np.count_nonzero(np.diagonal(values))
        self.row_sums, absolute = off_diagonal_sums(self.gram, row_counts)
        others = row_counts - (not biased)
        self.row_sums += others * self.diagonal
        absolute += float(row_counts * others @ np.abs(self.diagonal))
        self.tolerance = RELATIVE_TOLERANCE * factor * absolute * self.values.mean_absolute
        self.n_features = 1 if self.are_products or n_values == 2 else n_values
        self.are_dense = self.n_features > 1 and not self.are_labels
        n_products = self.n_features * n_rows * (n_rows + n_values * self.are_dense)
        n_pairs = self.n_voters**2 if self.are_dense else sizes @ sizes
        self.by_pair = self.n_features > 1 and n_products > PAIR_COST * n_pairs
        n_sums = self.n_voters * (self.n_features if self.are_dense else 1)
        self.by_table = not self.by_pair and n_values * n_rows * VOTERS_PER_CELL < n_sums
        self.rng = named_generator(seed, "permutations of voters", *cells)
        self.generators = self.rng.spawn(int(cells.strata.max()) + 1) if self.by_table else []
        self.state: State = self.rng.integers(2**64, size=4, dtype=np.uint64)  # of compiled loops
        if self.by_table:
            if self.n_voters > MAX_VOTERS:
                raise RankingError(
                    f"there are {self.n_voters:,} voters, and at most {MAX_VOTERS:,} can be permuted; divide all "
                    "counts by the same number: with this many voters the p-value of any difference is close to 0"
                )
            table = np.zeros((1, n_rows, n_values))
            np.add.at(table[0], (cells.rows, cells.values), cells.counts)
            self.value = float(self.of_tables(table)[0])
        else:
            check_voters(self.n_voters, VOTER_BYTES, "a permutation test")
            self.value = float(self.of_voters(self.voters.rows[None].copy())[0])

    # ------------------------------------------------------------------ permutations

    @cached_property
    def voters(self) -> Voters:
        """All voters, sorted by value."""
        order = np.argsort(self.cells.values, kind="stable")
        strata, values, rows = (np.repeat(each[order], self.cells.counts[order]) for each in self.cells[:3])
        n_values = len(self.values.counts)
        codes, inverse = np.unique(self.cells.strata * n_values + self.cells.values, return_inverse=True)
        in_strata, in_values = np.divmod(codes, n_values)
        by_size = np.lexsort((-in_values, np.bincount(inverse.ravel(), self.cells.counts)))
        most_common = np.zeros(strata.max() + 1, dtype=np.int64)
        most_common[in_strata[by_size]] = in_values[by_size]  # the last one of each stratum remains
        is_common = values == most_common[strata]
        starts = np.concatenate([[0], np.cumsum(np.bincount(strata))])
        return Voters(strata, values, rows.astype(np.int32), np.lexsort((is_common, strata)), starts, is_common)

    def draw(self, n_permutations: int) -> FloatArray:
        """Return the statistic for the next permutations."""
        n_entries = len(self.gram) * (len(self.values.counts) if self.by_table else self.n_features)
        size = max(CHUNK_ENTRIES // (self.n_voters if self.by_pair else max(n_entries, self.n_voters)), 1)
        sizes = [part.stop - part.start for part in slices(n_permutations, size)]
        if self.by_table:
            return np.concatenate([self.of_tables(self.random_tables(size)) for size in sizes])
        return np.concatenate([self.of_voters(self.shuffle(size)) for size in sizes])

    def random_tables(self, n_tables: int) -> FloatArray:
        """Return random tables of the numbers of voters by row and value, with the given margins in each stratum."""
        from scipy.stats import random_table

        tables = np.zeros((n_tables, len(self.gram), len(self.values.counts)))
        for stratum, generator in enumerate(self.generators):
            of_stratum = self.cells.strata == stratum
            _, values, rows, counts = (each[of_stratum] for each in self.cells)
            (used_rows, row), (used_values, value) = (np.unique(each, return_inverse=True) for each in (rows, values))
            drawn = np.zeros((len(used_rows), len(used_values)), dtype=np.int64)
            np.add.at(drawn, (row, value), counts)
            if min(drawn.shape) > 1:  # otherwise there is one table only
                drawn = random_table.rvs(drawn.sum(axis=1), drawn.sum(axis=0), size=n_tables, random_state=generator)
            tables[:, used_rows[:, None], used_values] += drawn
        return tables

    def shuffle(self, n_permutations: int) -> RankArray:
        """Return random permutations of the rows of voters within strata."""
        shuffled = np.empty((n_permutations, self.n_voters), dtype=np.int32)
        voters = self.voters
        run_interruptibly(
            shuffle_within, voters.rows, voters.order, voters.starts, voters.is_common, self.state, shuffled
        )
        return shuffled

    # ------------------------------------------------------------------ sums over pairs

    @cached_property
    def features(self) -> Features:
        """The features of values of which sums over voters are computed."""
        gram, offsets, constant = self.values.gram, self.values.row_offsets, self.values.constant
        if self.are_products:  # the offset of a number is its own product, which is left out of the sum of its row
            of_self = np.array([0.0 if self.biased else -1 / (self.n_voters - 2)])
            return Features(gram[:, None], np.ones(1), of_self, constant)
        if len(gram) == 2:  # L_vw = c + (b - c)(e_v + e_w) + (a - 2 b + c) e_v e_w, with e the indicator of one value
            one = int(np.argmin(self.values.counts))
            a, b, c = gram[one, one], gram[0, 1], gram[1 - one, 1 - one]
            base, change = offsets[1 - one], offsets[one] - offsets[1 - one] - (b - c)
            return Features(np.eye(2)[:, [one]], np.array([a - 2 * b + c]), np.array([change]), constant + c - 2 * base)
        if self.are_labels:
            return Features(np.eye(len(gram)), np.diagonal(gram).copy(), offsets, constant)
        weights, vectors = np.linalg.eigh(self.values.matrix())
        return Features(vectors, weights, np.zeros(len(gram)), 0.0)

    def of_tables(self, tables: FloatArray) -> FloatArray:
        """Return the statistic for tables of the numbers of voters by row and value."""
        of_values = self.features.of_values
        if not (self.are_products or self.are_dense):  # features are indicators of values
            sums = tables[..., of_values.any(axis=1)]
            return self.of_sums(sums, sums)
        return self.of_sums(tables @ of_values, tables @ of_values**2)

    def of_voters(self, rows: RankArray) -> FloatArray:
        """Return the statistic for permutations of the rows of voters."""
        if self.by_pair:
            return run_interruptibly(self.of_pairs, rows)
        return self.of_sums(*run_interruptibly(self.sums_by_row, rows, self.features.of_values))

    def sums_by_row(self, rows: RankArray, of_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of features and of their squares over the voters with each ranking."""
        sums = np.zeros((len(rows), len(self.gram), of_values.shape[1]))
        squares = np.zeros_like(sums) if self.are_products or self.are_dense else sums
        used = np.array([[0], [of_values.shape[1]]]).repeat(len(of_values), axis=1)  # the first feature, and how many
        if not self.are_dense or (of_values == np.eye(len(of_values))).all():
            used = np.stack((np.abs(of_values).argmax(axis=1), (of_values != 0).any(axis=1)))
        add_by_row(rows, self.voters.values, of_values, used, squares is not sums, sums, squares)
        return sums, squares

    def of_sums(self, sums: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the statistic from sums of features, and of their squares, of shape (n, n_rows, n_features)."""
        _, weights, offsets, constant = self.features
        vectors = np.ascontiguousarray(sums.transpose(0, 2, 1)).reshape(-1, len(self.gram))
        forms = off_diagonal_forms(self.gram, vectors).reshape(len(sums), -1)
        of_pairs = sums**2 - (0.0 if self.biased else squares)  # of voters with the same ranking
        total = forms @ weights + of_pairs.reshape(len(sums), -1) @ np.outer(self.diagonal, weights).ravel()
        total -= 2 * squares.reshape(len(sums), -1) @ np.outer(self.row_sums, offsets).ravel()
        return np.asarray(self.factor * (total + constant * float(self.row_counts @ self.row_sums)))

    def of_pairs(self, rows: RankArray) -> FloatArray:
        """Return the statistic for permutations of the rows of voters, by a loop over pairs of voters."""
        values, kernel = self.voters.values, self.values
        matrix, offsets, constant = kernel.gram, kernel.row_offsets, kernel.constant
        first = np.searchsorted(values, values)  # voters are sorted by value, and paired with those of the same label
        if self.are_dense:
            matrix, offsets, constant, first = kernel.matrix(), 0 * offsets, 0.0, 0 * first
        sums = np.empty(len(rows))
        for part in slices(len(rows), max(PAIRS_PER_CALL // len(values) ** 2, 1)):
            sum_over_pairs(self.gram, rows[part], matrix, values, first, sums[part])
        if self.biased:
            sums += self.diagonal[rows] @ np.diagonal(matrix)[values]
        sums += constant * float(self.row_counts @ self.row_sums) - 2 * self.row_sums[rows] @ offsets[values]
        return np.asarray(self.factor * sums)

    # ------------------------------------------------------------------ p-values

    @cached_property
    def rankings(self) -> CentredKernel:
        """The kernel between rankings, centred over voters."""
        return CentredKernel.from_gram(self.gram, self.row_counts, True) if self.biased else self.sample.centred

    def moments(self) -> Moments | None:
        """Return the exact moments over all permutations; None with strata."""
        if self.cells.strata.max() > 0:
            return None
        return permutation_moments(self.rankings, self.values).scaled(self.factor)

    def min_pvalue(self) -> float:
        """Return the probability of the observed arrangement, where labels of equal size may exchange names."""
        from scipy.special import gammaln

        strata, values, rows, counts = self.cells

        def log_factorials(*labels: IntArray) -> float:
            groups = np.unique(np.stack((strata, *labels)), axis=1, return_inverse=True)[1]
            return float(gammaln(np.bincount(groups.ravel(), counts) + 1).sum())

        log_pvalue = log_factorials(values) + log_factorials(rows) - log_factorials() - gammaln(counts + 1).sum()
        if self.are_labels:
            order = np.lexsort((rows, strata, values))
            ends = np.cumsum(np.bincount(values, minlength=len(self.values.counts)))[:-1]
            tables = [np.split(each[order], ends) for each in (strata, rows, counts)]
            sizes = Counter(np.bincount(s, c, strata.max() + 1).tobytes() for s, _, c in zip(*tables, strict=True))
            equal = Counter(b"".join(each.tobytes() for each in table) for table in zip(*tables, strict=True))
            n_equal = [gammaln(np.array(list(counter.values())) + 1).sum() for counter in (sizes, equal)]
            log_pvalue += n_equal[0] - n_equal[1]
        return float(np.exp(log_pvalue))

    def splitting_pvalue(self) -> float:
        """Return the p-value by multilevel splitting; 0 if there are too many voters or values.

        Particles are arrangements of voters, which move by exchanging the rankings of two voters of a stratum.
        """
        n_sums = N_PARTICLES * len(self.gram) * self.n_features
        if self.n_voters > MAX_SPLIT_VOTERS or n_sums > MAX_SPLIT_ENTRIES:
            return 0.0
        voters = self.voters
        if self.are_dense:  # with one feature for each value, an exchange changes two sums
            of_values, products = np.eye(self.n_features), self.values.matrix()
            offsets = np.zeros(self.n_features)
        else:
            of_values, weights, offsets, _ = self.features
            products = of_values * weights
        own = (products * of_values).sum(axis=1) * (not self.biased)
        linear, at_rows = np.stack((own, 2 * of_values**2 @ offsets)), np.stack((self.diagonal, self.row_sums))
        rows = self.shuffle(N_PARTICLES)
        statistics = self.of_voters(rows) / self.factor
        by_feature = np.ascontiguousarray(self.sums_by_row(rows, of_values)[0].transpose(0, 2, 1))
        sums = (by_feature.reshape(-1, len(self.gram)) @ self.gram).reshape(by_feature.shape)
        movers = np.flatnonzero(~voters.is_common)  # of two random voters often both have the same value
        n_steps = min(max(len(movers), 50), 100)

        def move(threshold: float) -> None:
            labels = voters.strata, voters.values, movers, voters.order, voters.starts
            arrays = self.gram, of_values, products, linear, at_rows, *labels
            run_interruptibly(swap_rows, *arrays, n_steps, threshold, rows, sums, statistics, self.state)

        target = (self.value - self.tolerance) / self.factor
        return multilevel_splitting(statistics, (rows, sums), target, move, self.rng)

    def standard_error(self) -> float:
        """Return the Monte Carlo standard error of the statistic, from both kernels."""
        from scipy.sparse import coo_array

        _, values, rows, counts = self.cells
        table = coo_array((self.factor * counts, (rows, values)), (len(self.gram), len(self.values.counts))).tocsr()
        error = 0.0
        for sample, kernel, by_row in ((self.sample, self.values, table), (self.value_sample, self.rankings, table.T)):
            if sample is not None and sample.is_estimated:  # either kernel may be the centred one
                left, right = kernel.factors if kernel.is_product else (kernel.matrix(), np.eye(len(kernel.counts)))
                own = 0.0 * kernel.counts if self.biased else kernel.diagonal
                of_rows = sample.standard_error(by_row @ left, by_row @ right / self.factor, by_row @ own)
                error = float(np.hypot(error, of_rows))
        return error


# ---------------------------------------------------------------------- multilevel splitting


def multilevel_splitting(
    statistics: FloatArray,
    particles: tuple[Any, ...],
    target: float,
    move: Callable[[float], None],
    rng: np.random.Generator,
) -> float:
    """Return the probability that the statistic of a random arrangement is at least ``target``.

    Particles are random arrangements, in arrays whose first axis they are. Those that reach a threshold survive, the
    others become copies of survivors, and ``move`` changes all of them at random so that they stay above the threshold.
    The probability is the product of the parts that survive.
    """
    pvalue = 1.0
    while pvalue > MIN_SPLITTING_PVALUE:
        ordered = np.sort(statistics)
        threshold = ordered[int((1 - SURVIVORS) * len(ordered))]
        if threshold <= ordered[0]:  # ties: the next larger value
            larger = ordered[ordered > ordered[0]]
            if not len(larger):
                return pvalue
            threshold = larger[0]
        threshold = min(threshold, target)
        survivors = np.flatnonzero(statistics >= threshold)
        pvalue *= len(survivors) / len(statistics)
        if threshold >= target:
            return pvalue
        others = np.flatnonzero(statistics < threshold)
        copied = rng.choice(survivors, len(others))
        for array in (statistics, *particles):
            array[others] = array[copied]
        move(float(threshold))
    return MIN_SPLITTING_PVALUE


# ---------------------------------------------------------------------- compiled loops


@compiled_strictly
def shuffle_within(
    rows: RankArray, order: IntArray, starts: IntArray, is_common: Mask, state: State, shuffled: RankArray
) -> None:
    """Write random permutations of the rows of voters within strata; ``rows`` and ``state`` are changed.

    Fisher-Yates shuffles that stop at the voters with the most common value of the stratum, whose order is irrelevant.
    """
    for p in range(len(shuffled)):
        for s in range(len(starts) - 1):
            for i in range(starts[s], starts[s + 1]):
                if is_common[order[i]]:
                    break
                j = i + np.int64(uniform(state) * (starts[s + 1] - i))
                rows[order[i]], rows[order[j]] = rows[order[j]], rows[order[i]]
        for voter in range(len(rows)):
            shuffled[p, voter] = rows[voter]


@compiled_strictly
def add_by_row(
    rows: RankArray,
    values: IntArray,
    features: FloatArray,
    used: IntArray,
    with_squares: bool,
    sums: FloatArray,
    squares: FloatArray,
) -> None:
    """Add the features of the values of voters by row, for each permutation of the rows, and perhaps their squares.

    ``used`` has the first feature of each value that is not 0, and how many consecutive ones are used.
    """
    for p in range(len(rows)):
        for voter in range(len(values)):
            value, row = values[voter], rows[p, voter]
            for f in range(used[0, value], used[0, value] + used[1, value]):
                sums[p, row, f] += features[value, f]
                if with_squares:
                    squares[p, row, f] += features[value, f] ** 2


@compiled
def sum_over_pairs(
    gram: FloatArray, rows: RankArray, kernel: FloatArray, values: IntArray, first: IntArray, sums: FloatArray
) -> None:
    """Sum the products of both kernels over ordered pairs of voters, for each permutation of the rows of voters.

    Voter i is paired with the voters from ``first[i]`` to i - 1.
    """
    for p in range(len(rows)):
        total, permuted = 0.0, rows[p]
        for i in range(len(values)):
            left, right, part = gram[permuted[i]], kernel[values[i]], 0.0
            others, other_values = permuted[first[i] : i], values[first[i] : i]
            for j in range(len(others)):
                part += left[others[j]] * right[other_values[j]]
            total += 2 * part
        sums[p] = total


@compiled_strictly
def swap_rows(
    gram: FloatArray,
    features: FloatArray,
    products: FloatArray,
    linear: FloatArray,
    at_rows: FloatArray,
    strata: IntArray,
    values: IntArray,
    movers: IntArray,
    order: IntArray,
    starts: IntArray,
    n_steps: int,
    threshold: float,
    rows: RankArray,
    sums: FloatArray,
    statistics: FloatArray,
    state: State,
) -> None:
    """Exchange the rows of two random voters of a stratum, many times, if the statistic stays above a threshold.

    ``sums`` are the sums of features over voters times the kernel with each row, ``products`` the features times their
    weights. ``linear`` has the coefficients of the terms ``at_rows`` for each value.
    """
    for p in range(len(rows)):
        for _ in range(n_steps):
            i = movers[np.int64(uniform(state) * len(movers))]
            low, high = starts[strata[i]], starts[strata[i] + 1]
            j = order[low + np.int64(uniform(state) * (high - low))]
            a, b, u, v = values[i], values[j], rows[p, i], rows[p, j]
            if a == b or u == v:
                continue
            change = 0.0
            for k in range(len(linear)):
                change -= (linear[k, a] - linear[k, b]) * (at_rows[k, v] - at_rows[k, u])
            distance = gram[u, u] + gram[v, v] - 2 * gram[u, v]
            for f in range(features.shape[1]):
                product = products[a, f] - products[b, f]
                change += product * (2 * (sums[p, f, v] - sums[p, f, u]) + (features[a, f] - features[b, f]) * distance)
            if statistics[p] + change < threshold:
                continue
            rows[p, i], rows[p, j] = v, u
            statistics[p] += change
            for f in range(features.shape[1]):
                feature = features[a, f] - features[b, f]
                if feature != 0.0:
                    for row in range(len(gram)):
                        sums[p, f, row] += feature * (gram[v, row] - gram[u, row])
