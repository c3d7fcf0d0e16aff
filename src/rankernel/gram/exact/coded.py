"""Gram matrices from what a kernel sees of two rankings: one evaluation for each distinct code, however many share it.

A kernel in a distance d = c + X sees a certain part c, and a law of X that few codes tell apart. The formula of the
family is evaluated once for each code; entries are looked up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel.errors import ExactnessError
from rankernel.gram.blocks import slices
from rankernel.gram.cost import STEP, distinct_values
from rankernel.gram.evaluator import Block, Evaluator, block_shape
from rankernel.gram.exact.answers import Answers
from rankernel.gram.exact.exp_footrule import one_tie_each
from rankernel.gram.exact.overlap import DistanceLaw, Formula, Overlap, Shape
from rankernel.kernels.base import Kernel, distance_derivatives
from rankernel.kernels.facts import DistanceFunction
from rankernel.rankings import Rankings

Pairs = list[tuple[Shape, Shape]]
Codes = NDArray[np.uint64]

SALT = 20190313
DEAR = 2e-5  # seconds for one code, from which small tiles keep all threads busy
SMALLEST_TILE, SMALL_TILE = 32, 64
AT_ONCE = 4096  # pairs whose places are laid out at once
SHARPEST = 1e6  # beyond this width only the nearest completions count, and logarithms are lines in the width


def salts(*shape: int) -> Codes:
    """Return fixed random numbers."""
    return np.random.default_rng(SALT).integers(2**64, size=shape, dtype=np.uint64)


def number_codes(codes: Codes) -> tuple[Indices, Indices]:
    """Return the places where each distinct code first occurs, and which of them each entry has."""
    flat = np.ascontiguousarray(codes).ravel()
    ids, first = np.empty(len(flat), dtype=np.intp), np.empty(len(flat), dtype=np.intp)
    n_distinct = _loops.codes.number_codes(flat, ids, first)
    return first[:n_distinct].copy(), ids.reshape(codes.shape)


class Coding(ABC):
    """Codes for the entries of a Gram matrix, and the part of the distance that is certain beside the code."""

    few = False  # whether there are always few different ones

    def __init__(self, X: Rankings, Y: Rankings) -> None:
        self.X, self.Y = X, Y

    @abstractmethod
    def of(self, tile: Block) -> tuple[Codes, IntArray | None]:
        """Return the codes of a tile, and what is certain of each distance (None: nothing, whatever the code)."""

    def rests(self, rows: Indices, columns: Indices, width: float) -> Sequence[tuple[float, float]] | None:
        """Return the logarithms of many pairs without what is certain, and their derivatives; None: one by one."""
        return None

    def room(self, tile: Block) -> tuple[Codes, IntArray]:
        """Return arrays to write the codes and distances of a tile to."""
        shape = block_shape((len(self.X), len(self.Y)), tile)
        return np.empty(shape, dtype=np.uint64), np.empty(shape, dtype=np.int64)


class OverlapCoding(Coding):
    """Codes of the overlaps themselves: all that any kernel sees."""

    @cached_property
    def salt(self) -> Codes:
        """A fixed random number for each pair of buckets."""
        return salts(int(self.X.n_buckets.max(initial=0)) + 1, int(self.Y.n_buckets.max(initial=0)) + 1)

    def of(self, tile: Block) -> tuple[Codes, None]:
        """Return the codes of a tile."""
        codes, _ = self.room(tile)
        _loops.codes.overlaps(self.X.ranks[tile[0]], self.Y.ranks[tile[1]], self.salt, codes)
        return codes, None


class TopKCoding(Coding):
    """Codes of the few numbers that the Hamming or the Cayley distance sees of two top-k lists."""

    few = True

    def __init__(self, X: Rankings, Y: Rankings, loop: str) -> None:
        super().__init__(X, Y)
        self.loop = loop

    @cached_property
    def order(self) -> Indices:
        """The items of each row, best first."""
        return np.argsort(self.X.ranks, axis=1, kind="stable")

    @cached_property
    def listed(self) -> tuple[IntArray, IntArray]:
        """The lengths of the lists: all items for a full ranking."""
        left = n_listed(self.X)
        return left, left if self.Y is self.X else n_listed(self.Y)

    def of(self, tile: Block) -> tuple[Codes, IntArray]:
        """Return the codes of a tile."""
        (rows, columns), (left, right) = tile, self.listed
        codes, apart = self.room(tile)
        loop = getattr(_loops.codes, self.loop)
        loop(self.order[rows], left[rows], self.Y.ranks[columns], right[columns], codes, apart)
        return codes, apart


def n_listed(X: Rankings) -> IntArray:
    """Return the lengths of top-k lists: all items for a full ranking."""
    return np.where(X.n_buckets == X.n_items, X.n_items, X.n_buckets - 1)


class OneTieCoding(Coding):
    """Codes of two rankings with one tie each, for a distance that adds up ``|difference of places|^power``."""

    def __init__(self, X: Rankings, Y: Rankings, power: int) -> None:
        super().__init__(X, Y)
        self.power = power

    @cached_property
    def places(self) -> tuple[tuple[IntArray, Codes], ...]:
        """The places of single items and a code of the tie, for both sides."""
        left = loose_places(self.X)
        return left, left if self.Y is self.X else loose_places(self.Y)

    def of(self, tile: Block) -> tuple[Codes, IntArray]:
        """Return the codes of a tile."""
        codes, apart = self.room(tile)
        (X, kind), (Y, kind_Y) = self.places
        rows, columns = tile
        salt = salts(3, self.X.n_items + 1)[:2]
        _loops.codes.loose_places(
            X[rows], Y[columns], kind[rows], kind_Y[columns] * np.uint64(3), salt, self.power, codes, apart
        )
        return codes, apart


class FootruleCoding(OneTieCoding):
    """The same for the footrule, whose sweep over places is compiled from the rankings to the value."""

    def __init__(self, X: Rankings, Y: Rankings) -> None:
        super().__init__(X, Y, power=1)

    @cached_property
    def ties(self) -> tuple[IntArray, IntArray]:
        """Where the tie of each ranking begins and ends, for both sides."""
        left = completed(self.X)[1]
        return left, left if self.Y is self.X else completed(self.Y)[1]

    def rests(self, rows: Indices, columns: Indices, width: float) -> Sequence[tuple[float, float]]:
        """Return the logarithms of many pairs."""
        ((X, _), (Y, _)), (tie, tie_Y) = self.places, self.ties
        out: list[tuple[float, float]] = []
        for some in slices(len(rows), AT_ONCE):
            i, j = rows[some], columns[some]
            out.extend(map(tuple, one_tie_each(X[i], Y[j], tie[i], tie_Y[j], width).tolist()))
        return out


def loose_places(X: Rankings) -> tuple[IntArray, Codes]:
    """Return the place of each single item, -1 for tied ones, and a code of where the tie stands."""
    sizes = X.bucket_sizes()
    size = np.take_along_axis(sizes, X.ranks, axis=1)
    place = np.take_along_axis(np.cumsum(sizes, axis=1) - sizes, X.ranks, axis=1)
    tied = size > 1
    begins = np.where(tied, place, X.n_items).min(axis=1, initial=X.n_items)
    number = begins * (X.n_items + 1) + tied.sum(axis=1)
    return np.where(tied, -1, place), salts((X.n_items + 1) ** 2)[number]


class PathCoding(Coding):
    """Codes of the cycles and paths between two rankings with one tie each, one inside the other."""

    @cached_property
    def places(self) -> tuple[tuple[IntArray, IntArray], ...]:
        """A completion of each ranking and where its tie begins and ends, for both sides."""
        left = completed(self.X)
        return left, left if self.Y is self.X else completed(self.Y)

    def of(self, tile: Block) -> tuple[Codes, None]:
        """Return the codes of a tile."""
        codes, _ = self.room(tile)
        (X, tie), (Y, tie_Y) = self.places
        rows, columns = tile
        salt = salts(2, self.X.n_items + 1)
        _loops.codes.cycles_and_paths(X[rows], Y[columns], tie[rows], tie_Y[columns], salt, codes)
        return codes, None


def completed(X: Rankings) -> tuple[IntArray, IntArray]:
    """Return some completion of each ranking, and the places of its one tie (none: an empty range)."""
    order = np.argsort(X.ranks, axis=1, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(X.n_items), order.shape), axis=1)
    sizes = X.bucket_sizes()
    bucket = np.argmax(sizes, axis=1)[:, None]
    size = np.take_along_axis(sizes, bucket, axis=1)
    begin = np.take_along_axis(np.cumsum(sizes, axis=1) - sizes, bucket, axis=1)
    return place.astype(np.int64), np.hstack([begin, begin + np.where(size > 1, size, 0)]).astype(np.int64)


# ---------------------------------------------------------------------- evaluators


class CodedEvaluator(Evaluator):
    """Evaluates something once for each distinct code, and looks the entries up."""

    block_side = 256

    def __init__(self, X: Rankings, Y: Rankings, coding: Coding, details: str) -> None:
        self.X, self.Y, self.coding, self.details = X, Y, coding, details
        self.known: dict[Any, Answers] = {}

    def looked_up(
        self, tile: Block, key: Any, solve: Callable[[Indices, Indices, IntArray | None], Sequence[Any]]
    ) -> tuple[list[Any], Indices, IntArray | None]:
        """Return what was solved for each distinct code, which of them each entry has, and the certain distances.

        ``solve`` is given rows and columns of pairs with codes that are new, and what is certain of their distances.
        """
        codes, apart = self.coding.of(tile)
        rows, columns = np.arange(len(self.X))[tile[0]], np.arange(len(self.Y))[tile[1]]
        if self.Y is self.X and np.array_equal(rows, columns):  # each pair from one side only
            below = np.tril_indices(len(rows), -1)
            codes[below] = codes.T[below]
            if apart is not None:
                apart[below] = apart.T[below]
        first, ids = number_codes(codes)

        def solve_new(new: Indices) -> Sequence[Any]:
            i, j = np.divmod(first[new], len(columns))
            return solve(rows[i], columns[j], None if apart is None else apart[i, j])

        return self.known.setdefault(key, Answers()).of(codes.ravel()[first].tolist(), solve_new), ids, apart

    def overlaps(self, rows: Indices, columns: Indices) -> Iterator[Overlap]:
        """Return the overlaps of some pairs."""
        return (Overlap.of(self.X.ranks[i], self.Y.ranks[j]) for i, j in zip(rows, columns, strict=True))

    def one_code(self) -> float:
        """Return about how long one code takes."""
        return 5e-5

    def seconds(self, n_rows: int, n_columns: int) -> float:
        """Return the time for the distinct codes, and for looking up all entries."""
        n_codes = distinct_values(lambda rows, columns: self.coding.of((rows, columns))[0].view(np.int64), *self.shape)
        step = STEP["code"] + STEP["item"] * self.X.n_items
        return n_codes * self.one_code() + n_rows * n_columns * step

    @property
    def shape(self) -> tuple[int, int]:
        """How many distinct rows and columns there are."""
        return len(self.X), len(self.Y)


class FormulaEvaluator(CodedEvaluator):
    """Kernels with one width, by the first formula that covers each pair of shapes."""

    def __init__(
        self,
        X: Rankings,
        Y: Rankings,
        coding: Coding,
        chosen: dict[tuple[Shape, Shape], Formula],
        width: float,
        slope_of: Callable[[Kernel], dict[str, float]],
        width_of: Callable[[Kernel], float],
    ) -> None:
        names = ", ".join(dict.fromkeys(formula.name for formula in chosen.values()))
        super().__init__(X, Y, coding, f"closed form ({names})")
        self.chosen, self.width_of, self.slope_of = chosen, width_of, slope_of
        self.logarithmic = all(formula.logarithmic for formula in chosen.values())
        self.dearest = max(formula.seconds(*pair, width) for pair, formula in chosen.items())
        if self.dearest > DEAR and not coding.few:
            self.block_side = min(max(len(X) // 4, SMALLEST_TILE), SMALL_TILE)

    def one_code(self) -> float:
        """Return about how long the dearest formula takes."""
        return self.dearest

    def is_accurate(self, kernel: Kernel) -> bool:
        """Say whether the formulas are accurate at this width."""
        width = self.width_of(kernel)
        return all(formula.is_accurate(*pair, width) for pair, formula in self.chosen.items())

    def solved(self, kernel: Kernel, tile: Block) -> tuple[FloatArray, Indices, IntArray | None]:
        """Return value and derivative for each code, without what is certain; codes; and what is certain."""
        asked = self.width_of(kernel)
        width = min(asked, SHARPEST) if self.logarithmic else asked

        def solve(rows: Indices, columns: Indices, apart: IntArray | None) -> Sequence[tuple[float, float]]:
            solved = self.coding.rests(rows, columns, width)
            if solved is not None:
                return solved
            out = []
            for overlap in self.overlaps(rows, columns):
                formula = self.chosen[overlap.left_shape, overlap.right_shape]
                out.append(formula.log_value(overlap, width) if apart is None else formula.log_rest(overlap, width))
            return out

        solved, ids, apart = self.looked_up(tile, width, solve)
        logs, slopes = np.array(solved, dtype=np.float64).reshape(-1, 2).T
        return np.stack([logs + slopes * (asked - width), slopes]), ids, apart

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the tile for each kernel."""
        return np.stack([self.value(kernel, *self.solved(kernel, tile)) for kernel in kernels])

    def value(self, kernel: Kernel, table: FloatArray, ids: Indices, apart: IntArray | None) -> FloatArray:
        """Return a tile, looked up."""
        values = np.exp(table[0]) if self.logarithmic else table[0]
        if apart is None:
            return np.asarray(values[ids])
        factors, out = np.exp(-self.width_of(kernel) * np.arange(apart.max(initial=0) + 1)), np.empty(ids.shape)
        _loops.codes.look_up(values, factors, ids, apart, out)  # while NumPy looks up, other threads wait
        return out

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the derivatives."""
        table, ids, apart = self.solved(kernel, tile)
        total = table[1][ids]
        if self.logarithmic:
            total = self.value(kernel, table, ids, apart) * (total if apart is None else total - apart)
        return {name: factor * total for name, factor in self.slope_of(kernel).items()}

    def log_values(self, kernel: Kernel, tile: Block) -> FloatArray:
        """Return the logarithm of the tile."""
        table, ids, apart = self.solved(kernel, tile)
        if not self.logarithmic:
            if (table[0] <= 0).any():
                raise ExactnessError(
                    f"{kernel} is 0 in double precision for two rankings far apart, and has no logarithm; use a "
                    "larger width"
                )
            return np.asarray(np.log(table[0])[ids])
        value = table[0][ids]
        return np.asarray(value if apart is None else value - self.width_of(kernel) * apart)


class LawEvaluator(CodedEvaluator):
    """Any function of a distance, averaged over the law of the distance."""

    def __init__(self, X: Rankings, Y: Rankings, coding: Coding, law: DistanceLaw, pairs: Pairs) -> None:
        super().__init__(X, Y, coding, f"closed form ({law.name})")
        self.law = law
        self.dearest = max(law.seconds(*pair) for pair in pairs)

    def one_code(self) -> float:
        """Return about how long a law takes."""
        return self.dearest

    def means(self, functions: FloatArray, tile: Block) -> FloatArray:
        """Return the mean of functions of the distance, given at each of its values: (functions, rows, columns)."""

        def solve(rows: Indices, columns: Indices, apart: IntArray | None) -> Sequence[FloatArray]:
            certain = np.zeros(len(rows), dtype=np.int64) if apart is None else apart
            return [self.law.pmf(overlap)[c:] for overlap, c in zip(self.overlaps(rows, columns), certain, strict=True)]

        laws, ids, apart = self.looked_up(tile, "law", solve)
        size = functions.shape[1]
        if apart is None:
            tables = np.array([functions[:, : len(law)] @ law for law in laws]).T
            return np.asarray(tables[:, ids])
        padded = np.pad(functions, ((0, 0), (0, size)))
        tables = np.stack(
            [[np.correlate(f[: size + len(law) - 1], law, "valid") for f in padded] for law in laws], axis=1
        )
        return np.asarray(tables[:, ids, apart])

    def values(self, kernels: Sequence[Kernel], tile: Block) -> FloatArray:
        """Return the tile for each kernel."""
        return self.means(np.stack([self.function(kernel).value(self.distances(kernel)) for kernel in kernels]), tile)

    def gradients(self, kernel: Kernel, tile: Block) -> dict[str, FloatArray]:
        """Return the derivatives."""
        slopes = distance_derivatives(kernel, self.X.n_items, self.distances(kernel))
        if not slopes:
            return {}
        return dict(zip(slopes, self.means(np.stack(list(slopes.values())), tile), strict=True))

    def log_values(self, kernel: Kernel, tile: Block) -> FloatArray:
        """Return the logarithm of the tile, having looked whether the kernel can be negative."""
        self.function(kernel).log_value(self.distances(kernel))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.values([kernel], tile)[0]))

    def distances(self, kernel: Kernel) -> IntArray:
        """Return all values that the distance can have."""
        distance = kernel.facts(self.X.n_items).distance
        assert distance is not None
        return np.arange(int(distance.maximum(self.X.n_items)) + 1)

    def function(self, kernel: Kernel) -> DistanceFunction:
        """Return the kernel as a function of the distance."""
        function = kernel.facts(self.X.n_items).function
        assert function is not None
        return function
