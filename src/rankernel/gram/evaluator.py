"""Evaluators compute blocks of a Gram matrix.

An evaluator is built once from the distinct rankings; parameters of the kernel come later. So a grid of decay rates,
a gradient, a matrix larger than memory and a matrix on many threads are loops over the same blocks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, Indices, IntArray, RankArray
from rankernel._utils.resources import check_interrupt, n_threads, run_in_threads, run_interruptibly, slices
from rankernel.errors import ExactnessError
from rankernel.gram.jackknife import Norms, cosines
from rankernel.kernels.algebra import Constant, Scaled, Sum, Tree
from rankernel.kernels.base import Kernel
from rankernel.kernels.kendall import WeightedKendall

Part = slice | Indices
Block = tuple[Part, Part]  # indices of distinct rankings: the rows and the columns
Names = Sequence[str]  # of parameters to differentiate by; "" is for the kernel itself

SMALL_MATRIX = 2**10  # entries of a matrix that is always one block
MAX_BLOCK_SECONDS = 1.0  # approximate time of a block
CALL_SECONDS = 1e-4  # overhead of one call of an evaluator
Slices = tuple[slice, slice]
SIDE = 256  # rows or entries of one thread at a time: larger blocks leave the cache (benchmarks/grid.py)
CACHED_NUMBERS = 2**24  # numbers that are cached for all blocks: 128 MB; what takes more is computed for each block
BLOCK_NUMBERS = 2**21  # numbers that are held at once for one block
# Nanoseconds of the steps of the loops, on a coarse scale: predictions are right within a factor of three
# (benchmarks/cost.py).
STEPS = {
    0.15: (
        "bits",  # a word of bits of two rankings compared
        "product",  # of two features
        "difference",  # of the positions of an item in two full rankings
        "sum",  # of a function of the Kendall distance of two draws whose pairs are one word of bits
    ),
    0.7: (
        "differing",  # bits of a word of one full ranking and of another counted
        "item",  # of a code: what a kernel sees of one item in two rankings
        "weighted",  # pair of items compared in two full rankings
        "packed",  # a pair of items of a draw written as a bit
        "concordance",  # two items, or sets of items that are tied twice, compared in two rankings
        "lookup",  # of a function of a distance of two draws
    ),
    3.0: (
        "entry",  # of a matrix, to write it and its mirror image
        "shared",  # items of two buckets counted, and looked up
        "listed",  # an item of a short list looked up in another list
        "cycle",  # of two full rankings followed, for each item
    ),
    10.0: (
        "counted",  # an item of a short list compared with those of another list
        "feature",  # of one ranking made
        "kernel",  # an elementary function of an array
        "positions",  # the probability of an item at a position of one ranking
        "tied",  # an item of a tie looked up in the ties of another ranking
        "path",  # added to a state of a dynamic program
    ),
    25.0: (
        "code",  # distinguished from others and looked up
        "draw",  # of a completion, for each item
        "pairs",  # the mean order of two items in one ranking
    ),
    60.0: (
        "coupling",  # of a draw from the past, for n^3 log n of the number of items
        "distant path",  # the same, of more states than the cache holds
        "inversion",  # an item of a long list inserted at its position
        "ranks",  # the mean rank of an item in one ranking
        "pair products",  # the mean product of the orders of two pairs of items in one ranking
    ),
    300.0: ("down-set",),  # of a partial order listed
    1.5e6: ("order",),  # a partial order decomposed
}
STEP = {name: nanoseconds * 1e-9 for nanoseconds, names in STEPS.items() for name in names}
CACHED_WORDS = 4000  # of bits of a ranking; beyond, these are read from main memory (benchmarks/cost.py)
PYTHON_CALL = 1e-5  # seconds for one call of a function that a user gave
SAMPLE = 96  # rows and columns from which the number of distinct values of a whole matrix is guessed


@dataclass(frozen=True)
class NoExactValue:
    """The reason for a missing exact value: the kernel, and the rankings for which it has no formula."""

    kernel: Kernel
    what: str

    def __str__(self) -> str:
        return f"there is no closed form of {self.kernel} for {self.what}"


class Evaluator(ABC):
    """Computes blocks of one Gram matrix, for any parameters of one kernel.

    Attributes
    ----------
    details : str
        How values are computed, in words.
    block_side : int
        Rows and columns of the blocks that the matrix is best computed in.
    direct : bool
        Whether recomputing an entry is as cheap as copying it.
    quick : bool
        Whether the whole matrix is short enough to run without checking for interrupts.
    """

    details: str
    block_side: int = SIDE
    direct: bool = False
    quick: bool = False
    preparation: float = 0.0  # approximate seconds on one core that do not depend on the number of entries
    held_bytes: int = 0  # approximate memory besides the matrix: of draws
    n_blocks: int = 2  # independent blocks of draws, of which an unbiased diagonal needs two; none are needed if exact

    @abstractmethod
    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return a block of the derivative in each of some parameters; for the name "" of the kernel itself."""

    def values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return a block."""
        return self.matrices(kernel, block, [""])[0]

    @abstractmethod
    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the approximate time of a matrix on one core, besides the :attr:`preparation`."""

    def side_for(self, n_rows: int, n_columns: int) -> int:
        """Return the side of blocks of a matrix: short enough that an interrupt leaves nothing running."""
        if self.quick or n_rows * n_columns <= SMALL_MATRIX:
            return self.block_side
        entry = self.seconds(n_rows, n_columns) / (n_rows * n_columns)
        return max(min(self.block_side, int((MAX_BLOCK_SECONDS / max(entry, 1e-9)) ** 0.5)), 1)

    def write(self, kernel: Kernel, block: Block, out: NDArray[Any], corner: tuple[int, int], symmetric: bool) -> None:
        """Write a block into a matrix at its corner, and its transpose if the matrix is symmetric.

        Only for evaluators with :attr:`direct` entries.
        """
        raise NotImplementedError(f"{type(self).__name__} returns its values")

    def is_accurate(self, kernel: Kernel) -> bool:
        """Whether values with the parameters of this kernel are accurate for all pairs."""
        return True

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of a block, also where the values themselves underflow."""
        raise ExactnessError(f"{kernel} can be negative, so it has no logarithm; use gram")

    # ------------------------------------------------------------------ single entries

    @np.errstate(under="ignore")
    def paired(
        self, kernel: Kernel, rows: Indices, columns: Indices, unbiased: bool = False, parameter: str = ""
    ) -> FloatArray:
        """Return single entries, or their derivatives, one for each pair of a row and a column.

        They are the diagonals of small blocks, as large as the overhead of a call allows. ``unbiased`` asks for
        estimates of the entries on the diagonal without their bias.
        """
        entry = max(self.seconds(64, 64) / 64**2, 1e-9)
        side = min(max(int((CALL_SECONDS / entry) ** 0.5), 1), 64)
        out = np.empty(len(rows))
        for part in slices(len(rows), side):
            out[part] = np.diagonal(self.matrices(kernel, (rows[part], columns[part]), [parameter])[0])
            check_interrupt()
        return out

    # ------------------------------------------------------------------ standard errors, 0 for exact values

    def estimate_block(
        self, kernel: Kernel, block: Block, norms: tuple[Norms, Norms] | None = None, parameter: str = ""
    ) -> FloatArray:
        """Return the values of a block, their standard errors, and 1 where these are unreliable, else 0.

        Values are divided by norms of the rows and columns if these are given. With the name of a parameter, they are
        the derivatives in that parameter.
        """
        value = self.matrices(kernel, block, [parameter])[0]
        if norms is None:
            return np.stack([value, np.zeros_like(value), np.zeros_like(value)])
        r, c = np.indices(value.shape).reshape(2, -1)
        left_out = value.reshape(-1, 1, 1)
        sides = norms[0][r], norms[1][c]
        scaled, square = cosines(value.ravel(), (left_out, left_out), sides)
        few = sides[0].unreliable | sides[1].unreliable
        return np.stack([scaled, np.sqrt(square), few]).reshape(3, *value.shape)


def block_shape(shape: tuple[int, int], block: Block) -> tuple[int, int]:
    """Return the number of rows and columns of a block."""
    rows, columns = (
        len(range(*part.indices(length))) if isinstance(part, slice) else len(part)
        for length, part in zip(shape, block, strict=True)
    )
    return rows, columns


class ConstantEvaluator(Evaluator):
    """A matrix whose entries are all equal, or that has no entries."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.details = "constant" if all(shape) else "no entries"

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the constant, which has no parameters, or empty matrices."""
        value = kernel.value if isinstance(kernel, Constant) else 0.0
        return [np.full(block_shape(self.shape, block), value) for _ in names]

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return 0."""
        return 0.0

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of the constant."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.values(kernel, block)))


# ---------------------------------------------------------------------- sums and groups of rows


@dataclass(frozen=True)
class Term:
    """One term of a kernel: a weight times a kernel that is neither a sum nor a multiple.

    ``prefix`` stands before the names of its parameters, and ``scales`` are the parameters in the weight.
    """

    weight: float
    kernel: Kernel
    prefix: str = ""
    scales: tuple[tuple[str, float], ...] = ()


def terms(kernel: Kernel) -> list[Term]:
    """Return a kernel as a weighted sum of kernels that are neither sums nor multiples.

    Examples
    --------
    >>> from rankernel import Kendall, Mallows
    >>> [(term.weight, term.kernel) for term in terms(0.5 * (Kendall() + 2 * Mallows(0.1)))]
    [(0.5, Kendall()), (1.0, Mallows(nu=0.1))]
    """
    if isinstance(kernel, Sum):
        return [inner_term(name, term) for name, part in kernel.parts.items() for term in terms(part)]
    if isinstance(kernel, Scaled):
        scale = ("scale", kernel.scale)
        result = [inner_term("kernel", term) for term in terms(kernel.kernel)]
        return [replace(term, weight=kernel.scale * term.weight, scales=(scale, *term.scales)) for term in result]
    return [Term(1.0, kernel)]


def inner_term(part: str, term: Term) -> Term:
    """Return a term of a part as a term of the kernel that holds the part."""
    scales = tuple((f"{part}__{name}", value) for name, value in term.scales)
    return replace(term, prefix=f"{part}__{term.prefix}", scales=scales)


class SumEvaluator(Evaluator):
    """A weighted sum of kernels: its mean over completions is the weighted sum of their means."""

    def __init__(self, parts: Sequence[Evaluator]) -> None:
        self.parts = parts
        self.details = " + ".join(dict.fromkeys(part.details for part in parts))
        self.block_side = min(part.block_side for part in parts)
        self.preparation = sum(part.preparation for part in parts)

    def terms(self, kernel: Kernel) -> list[tuple[Term, Evaluator]]:
        """Return each term of a kernel with its evaluator."""
        return list(zip(terms(kernel), self.parts, strict=True))

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the weighted sum of the terms, or of their derivatives in the weights and in their parameters."""
        found = dict.fromkeys(names, np.zeros(()))
        for term, part in self.terms(kernel):
            factors = {"": term.weight} | {name: term.weight / scale for name, scale in term.scales}
            wanted = {term.prefix + name: name for name in term.kernel.params} | dict.fromkeys(factors, "")
            given = [name for name in names if name in wanted]
            matrices = part.matrices(term.kernel, block, [wanted[name] for name in given]) if given else ()
            for name, matrix in zip(given, matrices, strict=True):
                found[name] = found[name] + factors.get(name, term.weight) * matrix
        return list(found.values())

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all terms."""
        return sum(part.seconds(n_rows, n_columns) for part in self.parts)

    def is_accurate(self, kernel: Kernel) -> bool:
        """Whether all terms are accurate."""
        return all(part.is_accurate(term.kernel) for term, part in self.terms(kernel))

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of the sum."""
        parts = [np.log(term.weight) + part.log_values(term.kernel, block) for term, part in self.terms(kernel)]
        return np.asarray(np.logaddexp.reduce(parts))


class RowsEvaluator(Evaluator):
    """Groups of rows, each with an evaluator of its own against all columns."""

    def __init__(self, shape: tuple[int, int], groups: Sequence[tuple[Indices, Evaluator]]) -> None:
        self.shape, self.groups = shape, groups
        self.group_of, self.index_in_group = np.empty((2, shape[0]), dtype=np.intp)
        for number, (rows, _) in enumerate(groups):
            self.group_of[rows], self.index_in_group[rows] = number, np.arange(len(rows))
        evaluators = [each for _, each in groups]
        self.details = "; ".join(dict.fromkeys(each.details for each in evaluators))
        self.held_bytes = sum(each.held_bytes for each in evaluators)
        self.block_side = min((each.block_side for each in evaluators), default=1)
        self.preparation = sum(each.preparation for each in evaluators)

    def pieces(self, block: Block) -> Iterator[tuple[Evaluator, Indices, Block]]:
        """Yield the pieces of a block: the evaluator, the rows in the block, and the block of the evaluator."""
        groups, indices = self.group_of[block[0]], self.index_in_group[block[0]]
        for number, (_, evaluator) in enumerate(self.groups):
            inside = np.flatnonzero(groups == number)
            if len(inside):
                yield evaluator, inside, (indices[inside], block[1])

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return a block, piece by piece."""
        out = np.zeros((len(names), *block_shape(self.shape, block)))
        for evaluator, inside, piece in self.pieces(block):
            out[:, inside] = evaluator.matrices(kernel, piece, names)
        return list(out)

    def estimate_block(
        self, kernel: Kernel, block: Block, norms: tuple[Norms, Norms] | None = None, parameter: str = ""
    ) -> FloatArray:
        """Return a block with its standard errors, piece by piece."""
        out = np.zeros((3, *block_shape(self.shape, block)))
        for evaluator, inside, piece in self.pieces(block):
            sides = None if norms is None else (norms[0][inside], norms[1])
            out[:, inside] = evaluator.estimate_block(kernel, piece, sides, parameter)
        return out

    def is_accurate(self, kernel: Kernel) -> bool:
        """Whether all evaluators are accurate."""
        return all(each.is_accurate(kernel) for _, each in self.groups)

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all groups."""
        return sum(each.seconds(len(rows), n_columns) for rows, each in self.groups)


# ---------------------------------------------------------------------- evaluation on full rankings


def full_matrix(kernel: Kernel, X: RankArray, Y: RankArray) -> FloatArray:
    """Return the kernel between full rankings; a function of a distance of few values is looked up in a table."""
    n_items, facts = X.shape[1], kernel.facts(X.shape[1])
    distance, function = facts.distance, facts.function
    if distance is None or function is None:
        return kernel.matrix(X, Y)
    d = distance.between(X, Y)
    if distance.integer and distance.maximum(n_items) < d.size:
        return np.asarray(function.value(np.arange(int(distance.maximum(n_items)) + 1))[d])
    return np.asarray(function.value(d))


def seconds_of_kernel(kernel: Kernel, n_items: int) -> float:
    """Return the approximate time of a kernel value between two full rankings."""
    distance = kernel.facts(n_items).distance
    if distance is None and isinstance(kernel, Tree):
        return sum(seconds_of_kernel(part, n_items) for part in kernel.parts.values())
    if distance is not None and distance.name == "kendall":
        n_words = -(-math.comb(n_items, 2) // 64)
        return STEP["differing"] * n_words * (1 + n_words / CACHED_WORDS) + STEP["kernel"]
    if distance is not None and distance.function is not None:
        return PYTHON_CALL
    form = kernel.facts(n_items).form
    if form is not None and form.mixes_items:
        return STEP["product"] * n_items**2 / 2
    if distance is None and form is not None and form.statistic == "positions":
        return STEP["lookup"] * n_items + STEP["kernel"]
    if isinstance(kernel, WeightedKendall):
        n_weighted = n_items if kernel.combine == "additive" else np.count_nonzero(kernel.position_weights(n_items))
        if n_weighted == n_items:
            return STEP["weighted"] * float(n_items) ** 2 / 2
        return STEP["counted"] * n_items + STEP["concordance"] * float(n_weighted) ** 2 / 2
    step = STEP["cycle"] if distance is None or distance.cycle_weights is not None else STEP["difference"]
    return step * n_items + STEP["kernel"]


@dataclass(frozen=True)
class Completions:
    """Sets of full rankings: set i is ``ranks[offsets[i]:offsets[i + 1]]``."""

    ranks: RankArray
    offsets: IntArray

    @classmethod
    def of_sets(cls, sets: Sequence[NDArray[Any]], n_items: int) -> Completions:
        """Return several sets in one array."""
        ranks = np.concatenate([*sets, np.empty((0, n_items), dtype=np.int16)], dtype=np.int32)
        return cls(ranks, np.cumsum([0, *map(len, sets)], dtype=np.int64))

    @classmethod
    def of_full(cls, ranks: RankArray) -> Completions:
        """Return full rankings, each the only element of its set."""
        return cls(ranks, np.arange(len(ranks) + 1))

    @property
    def are_single(self) -> bool:
        """Whether each set has one element."""
        return len(self.ranks) == len(self.offsets) - 1

    def part(self, rows: Part) -> Completions:
        """Return some of the sets."""
        if self.are_single:
            return self.of_full(self.ranks[rows])
        starts, sizes = self.offsets[:-1][rows], np.diff(self.offsets)[rows]
        return Completions(self.ranks[range_indices(starts, sizes)], np.append(0, np.cumsum(sizes)))


def range_indices(starts: Indices, sizes: Indices) -> Indices:
    """Return the indices start, start + 1, ... of ranges of given sizes, one range after the other."""
    return np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())


class EnumerationEvaluator(Evaluator):
    """The mean of the kernel over all completions of both rankings, which may be full."""

    def __init__(self, kernel: Kernel, left: Completions, right: Completions, details: str) -> None:
        self.kernel, self.left, self.right, self.details = kernel, left, right, details
        largest = max(int(np.diff(side.offsets).max(initial=1)) for side in (left, right))
        self.block_side = max(min(self.block_side, int(BLOCK_NUMBERS**0.5) // largest), 1)

    def sides(self, block: Block) -> tuple[Completions, Completions]:
        """Return the completions of the rows and of the columns of a block."""
        return self.left.part(block[0]), self.right.part(block[1])

    def matrices(self, kernel: Kernel, block: Block, names: Names) -> Sequence[FloatArray]:
        """Return the means over both sets."""
        left, right = self.sides(block)
        found = dict(kernel.gradient(left.ranks, right.ranks)) if any(names) else {}
        if "" in names:
            found[""] = full_matrix(kernel, left.ranks, right.ranks)
        return [set_means(found[name], left, right) for name in names]

    def log_values(self, kernel: Kernel, block: Block) -> FloatArray:
        """Return the logarithm of the means of a function of a distance."""
        left, right = self.sides(block)
        facts = kernel.facts(left.ranks.shape[1])
        if facts.distance is None or facts.function is None:
            raise ExactnessError(f"{kernel} is not a function of one distance, so its logarithm is unknown; use gram")
        exponents = facts.function.log_value(facts.distance.between(left.ranks, right.ranks))
        largest = np.maximum.reduceat(np.maximum.reduceat(exponents, left.offsets[:-1], 0), right.offsets[:-1], 1)
        if not np.isfinite(largest).all():
            raise ExactnessError(f"{kernel} is 0 for all completions of some pair; use gram")
        by_entry = np.repeat(np.repeat(largest, np.diff(left.offsets), 0), np.diff(right.offsets), 1)
        return np.asarray(largest + np.log(set_means(np.exp(exponents - by_entry), left, right)))

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time of all kernel values between completions."""
        n_pairs = float(len(self.left.ranks)) * len(self.right.ranks)
        return n_pairs * seconds_of_kernel(self.kernel, self.left.ranks.shape[1])


def set_means(matrix: FloatArray, left: Completions, right: Completions) -> FloatArray:
    """Return the mean over each pair of sets of a matrix between all full rankings of both."""
    if left.are_single and right.are_single:
        return matrix
    sizes, other_sizes = np.diff(left.offsets), np.diff(right.offsets)
    if not matrix.size:
        return np.zeros((len(sizes), len(other_sizes)))
    by_row = np.add.reduceat(matrix, left.offsets[:-1], axis=0) / sizes[:, None]
    return np.asarray(np.add.reduceat(by_row, right.offsets[:-1], axis=1) / other_sizes)


# ---------------------------------------------------------------------- filling matrices block by block


def block_slices(n_rows: int, n_columns: int, side: int, symmetric: bool) -> Iterator[Slices]:
    """Return the blocks of a matrix; of a symmetric matrix those on and above the diagonal."""
    for rows in slices(n_rows, side):
        for columns in slices(n_columns, side):
            if not symmetric or columns.start >= rows.start:
                yield rows, columns


@np.errstate(under="ignore")
def run_blocks(
    compute: Callable[[Slices], object],
    shape: tuple[int, ...],
    side: int,
    symmetric: bool,
    n_jobs: int | None,
    quick: bool = False,
) -> None:
    """Call a function for every block of a matrix, on several threads if there are several blocks."""
    n_rows, n_columns = shape
    if n_jobs is not None:
        n_threads(n_jobs)  # checked also where one thread suffices
    if max(n_rows, n_columns) > side:
        run_in_threads(compute, block_slices(n_rows, n_columns, side, symmetric), n_jobs)
    elif n_rows and n_columns:
        block = slice(0, n_rows), slice(0, n_columns)
        if quick:
            compute(block)
        else:
            run_interruptibly(compute, block)


def fill(
    outputs: Sequence[NDArray[Any]],
    compute: Callable[[Slices], Iterable[FloatArray]],
    side: int,
    symmetric: bool,
    n_jobs: int | None = None,
    quick: bool = False,
    index: tuple[Indices, Indices] | None = None,
) -> None:
    """Fill matrices of one shape block by block, or with an index only these rows and columns of them.

    If matrices are symmetric, only blocks on and above the diagonal are computed; the lower half of a block on the
    diagonal is the transpose of its upper half, to the bit.
    """

    def cells(rows: slice, columns: slice) -> Any:
        return (rows, columns) if index is None else np.ix_(index[0][rows], index[1][columns])

    def one(block: Slices) -> None:
        rows, columns = block
        for out, value in zip(outputs, compute(block), strict=True):
            if symmetric and rows == columns:
                value = np.triu(value) + np.triu(value, 1).T
            out[cells(rows, columns)] = value
            if symmetric and rows != columns:
                out[cells(columns, rows)] = value.T

    shape = outputs[0].shape if index is None else (len(index[0]), len(index[1]))
    run_blocks(one, shape, side, symmetric, n_jobs, quick)


def fill_gram(
    out: NDArray[Any], evaluator: Evaluator, kernel: Kernel, index: Block, symmetric: bool, n_jobs: int | None
) -> None:
    """Fill the Gram matrix of all rows and columns, given the index of the distinct ranking of each.

    Entries that are cheap to compute are computed again for equal rows. Otherwise each pair of distinct rankings is
    computed once, at its first position in the matrix, and copied from there: no second matrix is needed.
    """
    rows, columns = index
    side = evaluator.block_side if evaluator.direct else evaluator.side_for(*out.shape)
    if evaluator.direct:

        def write(block: Slices) -> None:
            top, left = block
            chosen: Block = (
                top if isinstance(rows, slice) else rows[top],
                left if isinstance(columns, slice) else columns[left],
            )
            evaluator.write(kernel, chosen, out, (top.start, left.start), symmetric)

        run_blocks(write, out.shape, side, symmetric, n_jobs, quick=True)
        return
    first_rows, first_columns = (
        np.arange(length) if isinstance(part, slice) else np.unique(part, return_index=True)[1]
        for part, length in zip(index, out.shape, strict=True)
    )
    are_distinct = isinstance(rows, slice) and isinstance(columns, slice)
    first = None if are_distinct else (first_rows, first_columns)
    fill([out], lambda block: [evaluator.values(kernel, block)], side, symmetric, n_jobs, evaluator.quick, first)
    if are_distinct:
        return
    source, source_column = first_rows[rows], first_columns[columns]
    repeated = np.setdiff1d(np.arange(out.shape[0]), first_rows)

    def copy_columns(part: slice) -> None:
        for row in first_rows[part]:
            out[row] = out[row].take(source_column)

    def copy_rows(part: slice) -> None:
        for row in repeated[part]:
            out[row] = out[source[row]]

    run_in_threads(copy_columns, slices(len(first_rows), SIDE), n_jobs)
    run_in_threads(copy_rows, slices(len(repeated), SIDE), n_jobs)


def single_entries(
    evaluator: Evaluator,
    kernel: Kernel,
    rows: Indices,
    columns: Indices,
    n_jobs: int | None,
    unbiased: bool = False,
    parameter: str = "",
) -> FloatArray:
    """Return single entries of a matrix of distinct rankings, or their derivatives, on several threads."""
    out = np.empty(len(rows))

    def compute(part: slice) -> None:
        out[part] = evaluator.paired(kernel, rows[part], columns[part], unbiased, parameter)

    if len(rows) <= SIDE and evaluator.quick:
        compute(slice(None))
    else:
        run_in_threads(compute, slices(len(rows), SIDE), n_jobs)
    return out


# ---------------------------------------------------------------------- costs


def distinct_values(codes: Callable[[IntArray, IntArray], IntArray], n_rows: int, n_columns: int) -> float:
    """Return about how many distinct codes a matrix has, from those of some of its rows and columns.

    The number grows with a power of the number of entries, which is read off two samples of different sizes.
    """
    rows, columns = (np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64)) for n in (n_rows, n_columns))
    if not len(rows) or not len(columns):
        return 0.0
    found = codes(rows, columns)
    n_found, n_some = len(np.unique(found)), len(np.unique(found[::2, ::2]))
    if found.size >= n_rows * n_columns:
        return float(n_found)
    growth = np.log(n_found / n_some) / np.log(found.size / found[::2, ::2].size) if found.size > 1 else 1.0
    return float(min(n_found * (n_rows * n_columns / found.size) ** growth, n_rows * n_columns))
