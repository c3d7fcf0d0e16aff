"""Sums of functions over the pairs of draws of two rankings, less their control variates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils import FloatArray, Indices, IntArray, RankArray
from rankernel.completions.draws import Draws
from rankernel.distances import Distance
from rankernel.gram.evaluator import ConstantEvaluator, Evaluator, slices, terms
from rankernel.gram.exact.features import MAX_DEGREE, LinearEvaluator, centred_products, linear_evaluator
from rankernel.gram.rows import Rows
from rankernel.kernels.base import Facts, Kernel

DRAW_PAIRS = 2**18  # pairs of draws whose distances or kernel values are held at once
MAX_BLOCKS = 64  # blocks of draws in the jackknife; more coupled sets are grouped
PACKED_BYTES = 2**28  # draws that are packed at once for all blocks
MAX_ITEMS_BYTE = 256  # items whose positions fit into one byte
MAX_ITEMS_SQUARED = 24  # beyond, the products of all pairs of items cost far more than the draws (benchmarks/cost.py)


# ---------------------------------------------------------------------- control variates


@dataclass(frozen=True)
class Power(Kernel):
    """One control variate: a power of z, where the distance is ``d = 2 (L - z)``, plus a constant if the degree is 1.

    With the constant it is the form of the distance, whose mean over completions takes the time of the listed items.
    """

    distance: Distance
    degree: int
    half_range: float  # L

    def at_distance(self, d: NDArray[np.generic]) -> FloatArray:
        """Return ``z^degree`` at given distances."""
        return np.asarray((self.half_range - np.asarray(d, dtype=np.float64) / 2) ** self.degree)

    def constant(self, n_items: int) -> float:
        """Return the form of two rankings without any information, in which z is 0."""
        form = self.distance.form
        assert form is not None
        is_zero = self.degree > 1 or form.statistic != "positions"
        return 0.0 if is_zero else float(form.multiply(np.ones((1, n_items))).sum()) / n_items

    def matrix(self, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the control variate, with the constant, between full rankings."""
        return self.at_distance(self.distance.between(X, Y)) + self.constant(X.shape[1])

    def facts(self, n_items: int) -> Facts:
        """Return the form, if the degree is 1."""
        return Facts(form=self.distance.form if self.degree == 1 else None)

    def means(self, X: Rows) -> Evaluator:
        """Return the evaluator of the mean over the completions of both rankings, with the constant."""
        if not len(X):
            return ConstantEvaluator((0, 0))
        found = linear_evaluator(self, X, X) if self.degree == 1 else None
        return found or LinearEvaluator(X, X, lambda rows: centred_products(self.distance, rows, self.degree))


@dataclass(frozen=True)
class ControlVariates:
    """The control variates of a kernel, for each term of its sum."""

    n_items: int
    of_terms: tuple[tuple[Power, ...], ...]

    @classmethod
    def of(cls, kernel: Kernel, n_items: int, degree: int) -> ControlVariates:
        """Return the control variates of a kernel up to a degree."""
        return cls(n_items, tuple(powers_of(term.kernel, n_items, degree) for term in terms(kernel)))

    @property
    def powers(self) -> list[Power]:
        """All control variates in one list."""
        return [power for of_term in self.of_terms for power in of_term]

    def __len__(self) -> int:
        return sum(map(len, self.of_terms))

    def coefficients(self, kernel: Kernel) -> FloatArray:
        """Return the coefficient of each control variate in a kernel."""
        found: list[float] = []
        for term, powers in zip(terms(kernel), self.of_terms, strict=True):
            series = term.kernel.facts(self.n_items).series(self.n_items) if powers else None
            found += [term.weight * series.coefficients[power.degree - 1] for power in powers if series]
        return np.array(found)

    def gradient_coefficients(self, kernel: Kernel) -> dict[str, FloatArray]:
        """Return the derivatives of the coefficients in each parameter of a kernel."""
        found = {name: np.zeros(len(self)) for name in kernel.params}
        index = 0
        for term, powers in zip(terms(kernel), self.of_terms, strict=True):
            series = term.kernel.facts(self.n_items).series(self.n_items) if powers else None
            for power in powers:
                assert series is not None
                for name, derivatives in series.derivatives.items():
                    found[term.prefix + name][index] = term.weight * derivatives[power.degree - 1]
                for name, scale in term.scales:
                    found[name][index] = term.weight / scale * series.coefficients[power.degree - 1]
                index += 1
        return found

    def at_distance(self, coefficients: FloatArray, d: NDArray[np.generic]) -> FloatArray:
        """Return the weighted sum of the control variates at given distances."""
        return weighted_sum(coefficients, [power.at_distance(d) for power in self.powers])

    def between(self, coefficients: FloatArray, X: RankArray, Y: RankArray) -> FloatArray:
        """Return the weighted sum of the control variates between full rankings."""
        distances = {power.distance: power.distance.between(X, Y) for power in self.powers}
        return weighted_sum(coefficients, [power.at_distance(distances[power.distance]) for power in self.powers])


def weighted_sum(coefficients: FloatArray, parts: list[FloatArray]) -> FloatArray:
    """Return the sum of arrays times their coefficients, added in a fixed order so that blocks have equal bits."""
    total = coefficients[0] * parts[0]
    for coefficient, part in zip(coefficients[1:], parts[1:], strict=True):
        total = total + coefficient * part
    return np.asarray(total)


def powers_of(kernel: Kernel, n_items: int, degree: int) -> tuple[Power, ...]:
    """Return the control variates of one term of a kernel."""
    facts = kernel.facts(n_items)
    series, distance = facts.series(n_items), facts.distance
    if series is None or distance is None or distance.form is None or distance.mean is None:
        return ()
    highest = min(degree, len(series.coefficients), MAX_DEGREE[distance.form.statistic])
    half_range = distance.mean(n_items) / 2
    return tuple(Power(distance, power, half_range) for power in range(1, highest + 1))


def highest_degree(kernel: Kernel, n_items: int) -> int:
    """Return the highest degree of control variates that is affordable for a number of items."""
    most = 2 if n_items <= MAX_ITEMS_SQUARED else 1
    return max((power.degree for power in ControlVariates.of(kernel, n_items, most).powers), default=0)


# ---------------------------------------------------------------------- draws


@dataclass(frozen=True)
class Integrand:
    """A function of two full rankings that is averaged over pairs of draws.

    ``table`` holds its values at all distances, if it is a function of one; ``coefficients`` are those of the control
    variates that are subtracted from it.
    """

    matrix: Callable[[Any, Any], FloatArray]
    table: FloatArray | None
    coefficients: FloatArray


def block_bounds(n_draws: int, size: int) -> tuple[IntArray, IntArray]:
    """Return where the independent blocks of draws start and end, given the size of a coupled set."""
    size = min(size, n_draws)
    starts = np.arange(0, n_draws, size * -(-n_draws // (size * MAX_BLOCKS)))
    return starts, np.append(starts[1:], n_draws)


class DrawSet:
    """Draws of all rankings.

    Sums over pairs of draws are taken in an order that depends on the two rankings only.
    """

    def __init__(self, draws: Draws, controls: ControlVariates, distance: Distance | None, d: IntArray) -> None:
        self.controls, self.distance, self.possible_distances = controls, distance, d
        self.ranks, self.n_draws = draws.ranks, draws.n_draws
        self.weights = np.empty((len(draws.ranks), 0)) if draws.weights is None else draws.weights
        self.starts, self.ends = block_bounds(draws.n_draws, draws.block)

    @property
    def as_bits(self) -> bool:
        """Whether draws are compared as bits of pairs of items."""
        return self.distance is not None and self.distance.name == "kendall"

    def pack(self, rankings: Any) -> NDArray[Any]:
        """Return draws as the compiled loops take them: bits of pairs of items, or positions."""
        ranks = self.ranks[rankings]
        n_rankings, n_draws, n_items = ranks.shape
        if self.as_bits:
            words = _loops.pairs.pairs_in_order(ranks.reshape(-1, n_items)).reshape(n_rankings, n_draws, -1)
            return np.ascontiguousarray(words.transpose(0, 2, 1))
        kind = np.uint8 if n_items <= MAX_ITEMS_BYTE else np.int16
        return np.ascontiguousarray(ranks.transpose(0, 2, 1), dtype=kind)

    @cached_property
    def all_packed(self) -> NDArray[Any] | None:
        """The packed draws of all rankings, if they take little memory."""
        n_items = self.ranks.shape[2]
        n_bytes = n_items * n_items // 16 if self.as_bits else 2 * n_items
        return self.pack(slice(None)) if n_bytes * self.ranks[:, :, 0].size <= PACKED_BYTES else None

    def packed(self, left: Indices, right: Indices) -> tuple[NDArray[Any], Indices, Indices]:
        """Return the packed draws of pairs of rankings, and the indices of the pairs in them."""
        if self.all_packed is not None:
            return self.all_packed, left, right
        some, index = np.unique(np.concatenate([left, right]), return_inverse=True)
        return self.pack(some), index[: len(left)], index[len(left) :]

    @property
    def is_weighted(self) -> bool:
        """Whether draws have importance weights."""
        return bool(self.weights.shape[1])

    @cached_property
    def order(self) -> Indices:
        """An order of the rankings by their draws; the first of two is on the left in every mean."""
        rows = np.ascontiguousarray(self.ranks).reshape(len(self.ranks), -1)
        as_bytes = rows.view(np.dtype((np.void, max(rows.dtype.itemsize * rows.shape[1], 1))))
        return np.unique(as_bytes, return_inverse=True)[1].ravel()

    @cached_property
    def shares(self) -> FloatArray:
        """The share of each block in the draws of each ranking, by weight."""
        if not self.is_weighted:
            return np.repeat((self.ends - self.starts)[None] / self.n_draws, len(self.ranks), axis=0)
        return np.asarray(np.add.reduceat(self.weights, self.starts, axis=1) / self.n_draws)

    # ------------------------------------------------------------------ sums over pairs of draws

    def means(self, integrands: Sequence[Integrand], one: Indices, other: Indices) -> FloatArray:
        """Return the means over all pairs of draws, for pairs of rankings: shape (n_integrands, n_pairs)."""
        swapped = self.order[one] > self.order[other]
        left, right = np.where(swapped, other, one), np.where(swapped, one, other)
        if self.distance is None or self.is_weighted:
            return np.array([self.margins(each, left, right)[0, 0].sum(axis=1) for each in integrands])
        tables = np.stack([self.table(each) for each in integrands])
        out = np.zeros((len(integrands), len(left)))
        packed, left, right = self.packed(left, right)
        for pairs in self.pair_slices(len(left)):
            if self.as_bits and packed.shape[1] == 1:
                _loops.pairs.word_means(packed, left[pairs], right[pairs], tables, out[:, pairs])
                continue
            for draws in self.draw_slices():
                _loops.pairs.add_sums(self.distances(packed, left[pairs], right[pairs], draws), tables, out[:, pairs])
            out[:, pairs] /= self.n_draws**2
        return out

    def margins(self, integrand: Integrand, left: Indices, right: Indices) -> FloatArray:
        """Return the terms that blocks of draws add to the means of pairs: shape (2, 2, n_pairs, n_blocks).

        The first index is the side, left or right; the second 0 for the function less its control variates, 1 for the
        function itself.
        """
        tables = self.both_tables(integrand)
        rows, columns = np.zeros((2, len(tables), len(left), self.n_draws))
        if self.distance is None:
            for pairs, draws, values in self.kernel_values(integrand, left, right):
                for k, each in enumerate(values):
                    by_right = each * self.weights[right[pairs]] if self.is_weighted else each
                    rows[k, pairs, draws] = by_right.sum(axis=2).T
                    by_left = each * self.weights[left[pairs[0]], draws, None, None] if self.is_weighted else each
                    columns[k, pairs] += by_left.sum(axis=0)
        else:
            packed, one, other = self.packed(left, right)
            for part in self.pair_slices(len(left)):
                for draws in self.draw_slices():
                    d = self.distances(packed, one[part], other[part], draws)
                    for k, table in enumerate(tables):
                        given = (d, draws.start, table, self.weights, left[part], right[part])
                        _loops.pairs.add_margins(*given, rows[k, part], columns[k, part])
        if self.is_weighted:
            rows, columns = rows * self.weights[left], columns * self.weights[right]
        sums = np.add.reduceat(np.stack([rows, columns]), self.starts, axis=3) / self.n_draws**2
        return sums[:, [0, -1]]

    def within_blocks(self, integrand: Integrand, rankings: Indices) -> FloatArray:
        """Return the terms of pairs of draws in one block in the means of rankings with themselves: see `margins`."""
        tables = self.both_tables(integrand)
        out = np.zeros((len(tables), len(rankings), len(self.ends)))
        if self.distance is None:
            block = np.searchsorted(self.ends, np.arange(self.n_draws), side="right")
            for pairs, draws, values in self.kernel_values(integrand, rankings, rankings):
                same = (block[draws, None] == block)[:, None, :]
                for k, each in enumerate(values):
                    if self.is_weighted:
                        own = self.weights[rankings[pairs[0]]]
                        each = each * own * own[draws, None, None]
                    sums = np.where(same, each, 0.0).sum(axis=2)
                    np.add.at(out[k], (pairs[None, :], block[draws, None]), sums)
        else:
            packed, index, _ = self.packed(rankings, rankings)
            for part in self.pair_slices(len(rankings)):
                some = rankings[part]
                for draws in self.draw_slices():
                    d = self.distances(packed, index[part], index[part], draws)
                    for k, table in enumerate(tables):
                        given = (d, draws.start, table, self.weights, some, self.starts, self.ends)
                        _loops.pairs.add_within_blocks(*given, out[k, part])
        return out[[0, -1]] / self.n_draws**2

    # ------------------------------------------------------------------ steps

    def pair_slices(self, n_pairs: int) -> Iterator[slice]:
        """Return slices of pairs of rankings whose draws are compared at once."""
        return slices(n_pairs, max(DRAW_PAIRS // self.n_draws**2, 1))

    def draw_slices(self) -> Iterator[slice]:
        """Return slices of the draws of a left ranking, each compared with all draws of the right one at once."""
        return slices(self.n_draws, 4 * max(DRAW_PAIRS // self.n_draws // 4, 1))

    def both_tables(self, integrand: Integrand) -> list[Any]:
        """Return the table of a function less its control variates, and, if that differs, of the function itself."""
        tables: list[Any] = [None if self.distance is None else self.table(integrand)]
        return tables + [integrand.table] * (len(integrand.coefficients) > 0)

    def table(self, integrand: Integrand) -> FloatArray:
        """Return the values of a function of the distance, less its control variates."""
        assert integrand.table is not None
        if not len(integrand.coefficients):
            return integrand.table
        return integrand.table - self.controls.at_distance(integrand.coefficients, self.possible_distances)

    def distances(self, packed: NDArray[Any], left: Indices, right: Indices, draws: slice) -> NDArray[np.int32]:
        """Return the distances of some draws on the left to all on the right: shape (n_pairs, n_left, n_draws)."""
        distance = self.distance
        assert distance is not None
        d = np.empty((len(left), draws.stop - draws.start, self.n_draws), dtype=np.int32)
        if self.as_bits:
            _loops.pairs.draw_bits(packed, left, right, draws.start, d)
        elif distance.cycle_weights is not None:
            _loops.pairs.draw_cycles(packed, left, right, draws.start, d, distance.cycle_weights(self.ranks.shape[2]))
        else:
            kind = getattr(_loops.pairs, distance.name.upper())
            _loops.pairs.draw_positions(packed, left, right, draws.start, d, kind)
        return d

    def kernel_values(
        self, integrand: Integrand, left: Indices, right: Indices
    ) -> Iterator[tuple[Indices, slice, list[FloatArray]]]:
        """Yield pairs of rankings with the same left one, some of its draws, and values of the function between draws.

        Values have the shape (n_left_draws, n_pairs, n_right_draws): less the control variates, and, if there are any,
        the plain ones.
        """
        order = np.argsort(left, kind="stable")
        for same_left in np.split(order, np.flatnonzero(np.diff(left[order])) + 1) if len(left) else ():
            for part in self.pair_slices(len(same_left)):
                pairs = same_left[part]
                Y = self.full_ranks(right[pairs]).reshape(-1, self.ranks.shape[2])
                for draws in self.draw_slices():
                    X = self.full_ranks(left[pairs[0]])[draws]
                    values = [integrand.matrix(X, Y)]
                    if len(integrand.coefficients):
                        values.insert(0, values[0] - self.controls.between(integrand.coefficients, X, Y))
                    shape = len(X), len(pairs), self.n_draws
                    yield pairs, draws, [np.ascontiguousarray(each).reshape(shape) for each in values]

    def full_ranks(self, rankings: Any) -> RankArray:
        """Return the draws of rankings as kernels take them."""
        return np.asarray(self.ranks[rankings], dtype=np.int32)
