"""Exact means as functions of the overlap of two rankings.

Kernels ignore the labels of the items, so the mean over the completions of two rankings depends only on how many items
each bucket of one ranking shares with each bucket of the other: their *overlap*. Many rankings have few distinct
overlaps (two top-4 lists have 209, for any number of items). A formula is evaluated once for each, and the entries of a
Gram matrix are looked up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, Indices, IntArray, RankArray
from rankernel._utils.combinatorics import log_mean_exp, logs
from rankernel._utils.resources import check_interrupt
from rankernel.errors import ExactnessError
from rankernel.gram.evaluator import CACHED_NUMBERS, STEP, Block, Evaluator, Names, NoExactValue, distinct_values
from rankernel.kernels.base import Decay, Kernel, decay_rate, distance_derivatives, is_exponential
from rankernel.rankings import FREE, Rankings, unique_rows

Pairs = list[tuple["Shape", "Shape"]]
CodeArray = NDArray[np.uint64]

CACHED_VALUES = CACHED_NUMBERS // 64  # values of formulas in the cache of one evaluator, with their codes
SLOW = 2e-5  # seconds for one value, above which blocks are small, so that all threads have work (benchmarks/grid.py)
N_PRICED = 24  # pairs of rankings, at random, whose values are priced
MAX_RATE = 1e6  # above this decay rate only the nearest completions count, and logarithms are linear in the rate


# ---------------------------------------------------------------------- overlaps


@dataclass(frozen=True)
class Shape:
    """The sizes of the buckets of one ranking, best first, and the number of its free items."""

    sizes: tuple[int, ...]
    free: int = 0

    @cached_property
    def n_items(self) -> int:
        """Number of items, listed and free."""
        return sum(self.sizes) + self.free

    @cached_property
    def n_listed(self) -> int:
        """Number of items that are not free."""
        return sum(self.sizes)

    @cached_property
    def is_exhaustive(self) -> bool:
        """Whether no item is free."""
        return self.free == 0

    @cached_property
    def is_chain(self) -> bool:
        """Whether the listed items have no ties."""
        return all(size == 1 for size in self.sizes)

    @cached_property
    def is_full(self) -> bool:
        """Whether no item is free or tied."""
        return self.is_exhaustive and self.is_chain

    @cached_property
    def is_top_k(self) -> bool:
        """Whether all items before the last bucket are single and no item is free; true for full rankings."""
        return self.is_exhaustive and all(size == 1 for size in self.sizes[:-1])

    @cached_property
    def is_unordered(self) -> bool:
        """Whether at most one bucket is listed, so that every full ranking is a completion."""
        return len(self.sizes) <= 1

    @cached_property
    def n_ties(self) -> int:
        """Number of buckets with more than one item."""
        return sum(size > 1 for size in self.sizes)

    @cached_property
    def profile(self) -> tuple[int, ...]:
        """The properties that determine the cost of the formulas of the Hamming, Cayley and footrule distances."""
        largest, n_ties = max(self.sizes, default=0), min(self.n_ties, 2)
        return self.free, self.n_listed, largest, n_ties, self.is_top_k, self.is_unordered

    @cached_property
    def kind(self) -> str:
        """The kind of ranking in words."""
        if self.free:
            return "ranking with free items"
        return "full ranking" if self.is_full else "top-k list" if self.is_top_k else "ranking with ties"


def any_shapes(left: Shape, right: Shape) -> bool:
    """Return True."""
    return True


def are_exhaustive(left: Shape, right: Shape) -> bool:
    """Whether both rankings have no free items."""
    return left.is_exhaustive and right.is_exhaustive


def have_one_tie(left: Shape, right: Shape) -> bool:
    """Whether both rankings have no free items and at most one tied bucket."""
    return are_exhaustive(left, right) and max(left.n_ties, right.n_ties) <= 1


def always_in_groups(left: Shape, right: Shape) -> bool:
    """Whether two rankings have no free items, and one is full, or each has at most one tie: see ``footrule``."""
    return are_exhaustive(left, right) and (left.is_full or right.is_full or have_one_tie(left, right))


def have_one_tie_or_no_order(left: Shape, right: Shape) -> bool:
    """Whether both rankings have no free items and at most one tied bucket, or one is unordered."""
    return have_one_tie(left, right) or left.is_unordered or right.is_unordered


def are_top_k(left: Shape, right: Shape) -> bool:
    """Whether both rankings are top-k lists or full."""
    return left.is_top_k and right.is_top_k


@dataclass(frozen=True, eq=False)
class Overlap:
    """The bucket of each item in two rankings, with the items sorted by these two numbers.

    ``left[a]`` and ``right[a]`` are bucket indices, -1 for a free item. Two pairs of rankings have equal overlaps
    exactly if relabelling the items takes one pair to the other.
    """

    left: RankArray
    right: RankArray

    @classmethod
    def of(cls, left: RankArray, right: RankArray) -> Overlap:
        """Return the overlap of two rankings, given as rows of ranks."""
        order = np.lexsort((right, left))
        return cls(np.asarray(left, dtype=np.int32)[order], np.asarray(right, dtype=np.int32)[order])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.left)

    @cached_property
    def swapped(self) -> Overlap:
        """The overlap with left and right exchanged."""
        return Overlap.of(self.right, self.left)

    @cached_property
    def left_shape(self) -> Shape:
        """Bucket sizes of the left ranking."""
        return shape_of(self.left)

    @cached_property
    def right_shape(self) -> Shape:
        """Bucket sizes of the right ranking."""
        return shape_of(self.right)

    @cached_property
    def counts(self) -> IntArray:
        """``counts[i, j]`` items are in bucket i on the left and j on the right; last row and column: free items."""
        counts = np.zeros((len(self.left_shape.sizes) + 1, len(self.right_shape.sizes) + 1), dtype=np.int64)
        np.add.at(counts, (self.left, self.right), 1)
        return counts


def shape_of(ranks: RankArray) -> Shape:
    """Return the shape of one ranking."""
    listed = ranks[ranks != FREE]
    return Shape(tuple(np.bincount(listed).tolist()) if len(listed) else (), int(len(ranks) - len(listed)))


def shapes(X: Rankings) -> list[Shape]:
    """Return the distinct shapes of rankings."""
    first, _ = unique_rows(np.column_stack([X.bucket_sizes(), X.n_free]))
    rows = zip(X[first].bucket_sizes().tolist(), X[first].n_free.tolist(), strict=True)
    return [Shape(tuple(size for size in sizes if size), free) for sizes, free in rows]


def shape_pairs(X: Rankings, Y: Rankings, by_profile: bool = False) -> Iterator[tuple[Shape, Shape]]:
    """Yield all pairs of a shape of X and a shape of Y; each unordered pair once if they are the same rankings.

    With ``by_profile`` one shape stands for all shapes of the same profile.
    """
    left, right = (
        list({shape.profile: shape for shape in found}.values()) if by_profile else found
        for found in (shapes(X), shapes(X if Y is X else Y))
    )
    return ((a, b) for i, a in enumerate(left) for b in (right[i:] if Y is X else right))


# ---------------------------------------------------------------------- formulas


class LogMean(NamedTuple):
    """The mean of ``exp(-rate d)`` as ``exp(value - rate offset)``, and the derivative of ``value`` in the rate.

    ``offset`` is a part of the distance that is the same for all completions.
    """

    offset: int
    value: float
    derivative: float


class Formula(ABC):
    """The exact mean of the kernels of one family, as a function of the overlap of two rankings.

    A formula computes exponential kernels (:meth:`log_mean`), all functions of a distance (:meth:`pmf`), or its own
    kernels (:meth:`mean`); :meth:`covers` says for which kernels and shapes it does.
    """

    method = "closed form"  # shown to users
    by_profile = False  # whether shapes of one profile are treated alike; the same for all formulas of a distance
    only_exponential = False  # whether other functions of the distance have no formula
    shapes: Callable[[Shape, Shape], bool] = staticmethod(any_shapes)  # for which the formula is correct

    def covers(self, kernel: Kernel, left: Shape, right: Shape) -> bool:
        """Whether two rankings of these shapes have an exact mean here, at an affordable cost."""
        if not self.shapes(left, right) or (self.only_exponential and not is_exponential(kernel, left.n_items)):
            return False
        return self.seconds(kernel, left, right) is not None

    def is_accurate(self, kernel: Kernel, left: Shape, right: Shape) -> bool:
        """Whether all overlaps of two covered shapes have an accurate value with these parameters."""
        return True

    @abstractmethod
    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the approximate time of one value (``benchmarks/cost.py``), None if that is too long."""

    def overlap_seconds(self, kernel: Kernel, overlap: Overlap) -> float:
        """Return the approximate time of the value of one overlap; by default that of its shapes."""
        seconds = self.seconds(kernel, overlap.left_shape, overlap.right_shape)
        assert seconds is not None
        return seconds

    def coder(self, X: Rankings, Y: Rankings, pairs: Pairs) -> Coder:
        """Return codes that are equal for pairs of rankings with the same distribution of the distance."""
        return overlap_coder(X, Y)

    def solve(
        self, kernel: Kernel, rate: float | None, X: Rankings, Y: Rankings, rows: Indices, columns: Indices
    ) -> Sequence[tuple[Any, ...]]:
        """Return the log mean (or the mean if there is no rate) of several pairs of rankings."""
        out: list[tuple[Any, ...]] = []
        for i, j in zip(rows, columns, strict=True):
            overlap = Overlap.of(X.ranks[i], Y.ranks[j])
            out.append(self.mean(kernel, overlap) if rate is None else self.log_mean(overlap, rate))
            check_interrupt()
        return out

    def log_mean(self, overlap: Overlap, rate: float) -> LogMean:
        """Return the logarithm of the mean of ``exp(-rate d)``; by default from the distribution of the distance."""
        offset, pmf = self.pmf(overlap)
        distances = np.arange(float(len(pmf)))
        return LogMean(offset, *log_mean_exp(logs(pmf), -rate * distances, -distances))

    def pmf(self, overlap: Overlap) -> tuple[int, FloatArray]:
        """Return an offset and the probability of each distance offset, offset + 1, ..."""
        raise NotImplementedError

    def mean(self, kernel: Kernel, overlap: Overlap) -> tuple[float, ...]:
        """Return the mean of a kernel and its derivative in each parameter."""
        offset, pmf = self.pmf(overlap)
        table = function_table(kernel, overlap.n_items)[:, offset : offset + len(pmf)]
        return tuple((table @ pmf).tolist())


@lru_cache(maxsize=16)
def function_table(kernel: Kernel, n_items: int) -> FloatArray:
    """Return a kernel at every value of its distance, and below it the derivative in each parameter."""
    facts = kernel.facts(n_items)
    assert facts.distance is not None
    assert facts.function is not None
    d = np.arange(int(facts.distance.maximum(n_items)) + 1)
    derivatives = distance_derivatives(kernel, n_items, d)
    return np.stack([facts.function.value(d), *(derivatives[name] for name in kernel.params)])


# ---------------------------------------------------------------------- codes

# Codes are 64-bit sums of random numbers, equal for pairs of rankings with the same distribution of the distance minus
# its offset. Among a million different ones the probability that any two collide is below 1e-7. A coder returns the
# codes of a block and the offsets, or None for these if the codes include them.

Coder = Callable[[Block], tuple[CodeArray, IntArray | None]]

SALT = 20190313


def loop_coder(
    fill: Callable[..., None],
    left: Sequence[NDArray[Any]],
    right: Sequence[NDArray[Any]],
    *others: Any,
    offsets: bool = True,
) -> Coder:
    """Return codes, and offsets, that a compiled loop fills in from arrays that have one entry for each ranking."""

    def codes(block: Block) -> tuple[CodeArray, IntArray | None]:
        parts = zip((left, right), block, strict=True)
        rows, columns = ([np.array(array[part], order="C") for array in side] for side, part in parts)
        shape = len(rows[0]), len(columns[0])
        out = np.empty(shape, dtype=np.uint64), np.empty(shape, dtype=np.int64)
        fill(*rows, *columns, *others, *out[: 1 + offsets])
        return out[0], out[1] if offsets else None

    return codes


def overlap_coder(X: Rankings, Y: Rankings) -> Coder:
    """Return codes of the overlaps themselves."""
    salt = salts(int(X.n_buckets.max(initial=0)) + 1, int(Y.n_buckets.max(initial=0)) + 1)
    return loop_coder(overlap_codes, [X.ranks], [Y.ranks], salt, offsets=False)


def top_k_coder(X: Rankings, Y: Rankings, fill: Callable[..., None]) -> Coder:
    """Return codes and offsets of top-k lists."""
    items = np.argsort(X.ranks, axis=1, kind="stable")
    left, right = (np.where(side.n_buckets == X.n_items, X.n_items, side.n_buckets - 1) for side in (X, Y))
    return loop_coder(fill, [items, left], [Y.ranks, right])


def salts(*shape: int) -> CodeArray:
    """Return fixed random numbers."""
    return np.random.default_rng(SALT).integers(2**64, size=shape, dtype=np.uint64)


def unique_codes(codes: CodeArray) -> tuple[Indices, Indices]:
    """Return the flat index where each distinct code first occurs, and which distinct code each entry has.

    The same as ``numpy.unique`` with ``return_index`` and ``return_inverse``, by hashing and in order of appearance.
    """
    flat = np.ascontiguousarray(codes).ravel()
    inverse, first = np.empty(len(flat), dtype=np.intp), np.empty(len(flat), dtype=np.intp)
    bits = max((2 * len(flat) - 1).bit_length(), 1)
    n_distinct = fill_slots(flat, inverse, first, np.full(1 << bits, EMPTY), np.uint64(64 - bits))
    return first[:n_distinct].copy(), inverse.reshape(codes.shape)


MIX = np.uint64(0x9E3779B97F4A7C15)
EMPTY = np.int64(-1)


@compiled
def fill_slots(codes, inverse, first, slots, shift):
    """Number the distinct codes by open addressing in a table of slots, a power of two in number."""
    mask = len(slots) - 1
    n_distinct = 0
    for k in range(len(codes)):
        code = codes[k]
        slot = np.int64((code * MIX) >> shift)
        while True:
            number = slots[slot]
            if number == EMPTY:
                slots[slot] = n_distinct
                first[n_distinct] = k
                inverse[k] = n_distinct
                n_distinct += 1
                break
            if codes[first[number]] == code:
                inverse[k] = number
                break
            slot = (slot + 1) & mask
    return n_distinct


@compiled
def overlap_codes(X, Y, salt, out):
    """Write the sum over items of ``salt[b + 1, c + 1]``, b and c the buckets of the item, -1 for free items."""
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            total = np.uint64(0)
            for a in range(X.shape[1]):
                total += salt[X[i, a] + 1, Y[j, a] + 1]
            out[i, j] = total


@compiled
def look_up(values, factors, inverse, offsets, out):
    """Write the value of each code times the factor of each offset."""
    for i in range(inverse.shape[0]):
        for j in range(inverse.shape[1]):
            out[i, j] = values[inverse[i, j]] * factors[offsets[i, j]]


# ---------------------------------------------------------------------- evaluation


class FormulaEvaluator(Evaluator):
    """Evaluates a formula once for each distinct code, and looks the entries up."""

    def __init__(
        self,
        kernel: Kernel,
        X: Rankings,
        Y: Rankings,
        known: Sequence[Formula],
        chosen: dict[tuple[Shape, Shape], Formula],
    ) -> None:
        self.X, self.Y, self.chosen = X, Y, chosen
        self.formulas = [formula for formula in known if formula in chosen.values()]
        single = self.formulas[0] if len(self.formulas) == 1 else None
        self.codes = overlap_coder(X, Y) if single is None else single.coder(X, Y, list(chosen))
        self.details = ", ".join(dict.fromkeys(formula.method for formula in self.formulas))
        self.exponential = is_exponential(kernel, X.n_items)
        rng = np.random.default_rng(0)
        rows, columns = (rng.integers(len(side), size=N_PRICED) for side in (X, Y))
        overlaps = [Overlap.of(X.ranks[i], Y.ranks[j]) for i, j in zip(rows, columns, strict=True)]
        prices = [self.formula_for(kernel, each).overlap_seconds(kernel, each) for each in overlaps]
        self.value_seconds = float(np.mean(prices))
        if max(prices) > SLOW:
            self.block_side = min(max(len(X) // 4, 32), 64)
        self.cache: dict[int, tuple[float, ...]] = {}

    def is_accurate(self, kernel: Kernel) -> bool:
        """Whether the formulas are accurate with these parameters."""
        return all(formula.is_accurate(kernel, *pair) for pair, formula in self.chosen.items())

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time for the distinct codes, and for looking up all entries."""
        step = STEP["code"] + STEP["item"] * self.X.n_items
        return self.n_codes * self.value_seconds + n_rows * n_columns * step

    @cached_property
    def n_codes(self) -> float:
        """The approximate number of distinct codes of the matrix."""
        shape = len(self.X), len(self.Y)
        return distinct_values(lambda rows, columns: self.codes((rows, columns))[0].view(np.int64), *shape)

    def solved(
        self, key: Any, kernel: Kernel, rate: float | None, block: Block
    ) -> tuple[FloatArray, Indices, IntArray | None]:
        """Return the solution for each distinct code of a block, the index of the code of each entry, and offsets.

        ``key`` is the kernel or its rate, whichever determines the solutions.
        """
        codes, offsets = self.codes(block)
        rows, columns = np.arange(len(self.X))[block[0]], np.arange(len(self.Y))[block[1]]
        if self.Y is self.X and np.array_equal(rows, columns):  # use each pair from one side only
            below = np.tril_indices(len(rows), -1)
            codes[below] = codes.T[below]
            if offsets is not None:
                offsets[below] = offsets.T[below]
        if offsets is not None and rate is None:
            codes, offsets = codes * MIX + offsets.view(np.uint64), None
        # All kernels share one cache. The text of a rate distinguishes floats whose hashes are equal.
        codes += np.random.default_rng(abs(hash((key, str(key))))).integers(2**64, dtype=np.uint64)
        first, inverse = unique_codes(codes)
        distinct = codes.ravel()[first].tolist()
        found = [self.cache.get(code) for code in distinct]
        new = np.array([position for position, value in enumerate(found) if value is None], dtype=np.intp)
        i, j = np.divmod(first[new], len(columns))
        for position, value in zip(new.tolist(), self.solve(kernel, rate, rows[i], columns[j], offsets), strict=True):
            found[position] = value
        if len(self.cache) + len(new) > CACHED_VALUES:
            self.cache.clear()
        self.cache.update((distinct[position], found[position]) for position in new[:CACHED_VALUES].tolist())
        return np.array(found, dtype=np.float64).T, inverse, offsets

    def formula_for(self, kernel: Kernel, overlap: Overlap) -> Formula:
        """Return the first formula that covers two rankings."""
        shapes = overlap.left_shape, overlap.right_shape
        return next(each for each in self.formulas if each.covers(kernel, *shapes))

    def solve(
        self, kernel: Kernel, rate: float | None, rows: Indices, columns: Indices, offsets: IntArray | None
    ) -> Sequence[tuple[float, ...]]:
        """Return the solutions of some pairs by the formulas for their shapes, without offsets if these are given."""
        if len(self.formulas) == 1:
            result = self.formulas[0].solve(kernel, rate, self.X, self.Y, rows, columns)
        else:
            result = []
            for i, j in zip(rows, columns, strict=True):
                formula = self.formula_for(kernel, Overlap.of(self.X.ranks[i], self.Y.ranks[j]))
                result += formula.solve(kernel, rate, self.X, self.Y, i[None], j[None])
        if rate is None:
            return result
        return [(v - rate * offset, d - offset) if offsets is None else (v, d) for offset, v, d in result]

    def log_table(self, kernel: Kernel, block: Block) -> tuple[FloatArray, FloatArray, Indices, IntArray | None]:
        """Return the logarithm and its derivative in the rate for each code, codes, and offsets."""
        requested = decay_rate(kernel, self.X.n_items)
        rate = min(requested, MAX_RATE)
        (logs, derivatives), inverse, offsets = self.solved(rate, kernel, rate, block)
        return logs + derivatives * (requested - rate), derivatives, inverse, offsets

    @np.errstate(under="ignore")
    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the block, or its derivatives."""
        if not self.exponential:
            table, inverse, _ = self.solved(kernel, kernel, None, block)
            row_of = dict(zip(["", *kernel.params], table, strict=False))  # a Fraction has no derivative
            return [np.asarray(row_of[name][inverse]) for name in names]
        logs, derivatives, inverse, offsets = self.log_table(kernel, block)
        if offsets is None:
            value = np.exp(logs)[inverse]
        else:
            factors = np.exp(-decay_rate(kernel, self.X.n_items) * np.arange(offsets.max(initial=0) + 1))
            value = np.empty(inverse.shape)
            look_up(np.exp(logs), factors, inverse, offsets, value)  # releases the interpreter lock, unlike NumPy
        if not any(names):
            return [value for _ in names]
        derivative = derivatives[inverse] if offsets is None else derivatives[inverse] - offsets
        return exponential_matrices(kernel, self.X.n_items, value, derivative * value, names)

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of the block."""
        if self.exponential:
            logs, _, inverse, offsets = self.log_table(kernel, block)
            rate = decay_rate(kernel, self.X.n_items)
            return np.asarray(logs[inverse] if offsets is None else logs[inverse] - rate * offsets)
        values = self.values(kernel, block)
        if (values <= 0).any():
            raise ExactnessError(f"{kernel} is 0 in double precision, or negative, for some pair; use gram")
        return np.asarray(np.log(values))


def exponential_matrices(
    kernel: Kernel, n_items: int, value: FloatArray, derivative: FloatArray, names: Names
) -> list[FloatArray]:
    """Return an exponential kernel and its derivatives in some parameters, from the derivative in its rate."""
    decay = kernel.facts(n_items).function
    assert isinstance(decay, Decay)
    return [decay.of_parameters[name] * derivative if name else value for name in names]


def formula_evaluator(
    kernel: Kernel, X: Rankings, Y: Rankings, known: Sequence[Formula], certain: bool
) -> Evaluator | NoExactValue:
    """Return the evaluator of the first formula that covers each pair of shapes, or of profiles of shapes."""
    chosen: dict[tuple[Shape, Shape], Formula] = {}
    for left, right in shape_pairs(X, Y, by_profile=any(each.by_profile for each in known)):
        formula = next((each for each in known if each.covers(kernel, left, right)), None)
        if formula is None or (certain and not formula.is_accurate(kernel, left, right)):
            kinds = " and a ".join(dict.fromkeys((left.kind, right.kind)))
            return NoExactValue(kernel, f"a {kinds} of {left.n_items} items")
        chosen[left, right] = formula
    return FormulaEvaluator(kernel, X, Y, known, chosen)
