"""The Mallows kernel of two rankings of any kind: a closed form without free items, else dynamic programmes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from math import comb, log, prod

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray
from rankernel._utils.q_factorials import tables
from rankernel.encoding import FREE
from rankernel.gram.exact.overlap import Formula, Overlap, Shape

MAX_STEPS = 20_000_000  # elementary steps for one overlap: some tenths of a second
MAX_STATES = 4_000_000  # of 24 bytes each
STEP = 4e-9  # seconds
MAX_ITEMS = 150  # a single completion has a probability of 1 / n! or more, which has to be a number


class ExhaustiveMallows(Formula):
    """Mallows kernel ``E exp(-nu d)`` of any two rankings without free items, d the number of discordant pairs.

    With buckets of sizes n_i and n'_j that share C_ij items, and c pairs in opposite order in the two rankings,
    ``K = exp(-nu c) prod_i [n_i]_q!/n_i! prod_j [n'_j]_q!/n'_j! / prod_ij [C_ij]_q!/C_ij!`` with ``q = exp(-nu)``.

    Examples
    --------
    One tied pair against the same pair in order: discordant half of the time.

    >>> overlap = Overlap.of(np.array([0, 0]), np.array([0, 1]))
    >>> log_value, _ = ExhaustiveMallows().log_value(overlap, 0.5)
    >>> bool(np.isclose(np.exp(log_value), (1 + np.exp(-0.5)) / 2))
    True
    """

    name = "closed form (q-factorials)"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether neither ranking has a free item."""
        return left.is_exhaustive and right.is_exhaustive

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return log K and the derivative of log K in nu."""
        logs, slopes = tables(overlap.n_items, nu)
        buckets = [*overlap.left_shape.sizes, *overlap.right_shape.sizes]
        value, slope = (float(t[buckets].sum() - t[overlap.cell_sizes].sum()) for t in (logs, slopes))
        return value - nu * overlap.n_discordant, slope - overlap.n_discordant


class UnorderedMallows(Formula):
    """Mallows kernel where one of the rankings says nothing: ``K = [n]_q! / n!``, whatever the other one is.

    A ranking with fewer than two buckets of listed items leaves every order of the items open.

    Examples
    --------
    >>> overlap = Overlap.of(np.array([0, -1]), np.array([0, 1]))
    >>> log_value, _ = UnorderedMallows().log_value(overlap, 0.5)
    >>> bool(np.isclose(np.exp(log_value), (1 + np.exp(-0.5)) / 2))
    True
    """

    name = "closed form (one ranking is unordered)"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether one of the rankings has fewer than two buckets."""
        return min(len(left.sizes), len(right.sizes)) < 2

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return log K and the derivative of log K in nu."""
        logs, slopes = tables(overlap.n_items, nu)
        return float(logs[-1]), float(slopes[-1])


class FreeMallows(Formula):
    """Mallows kernel of two rankings of any kind, by the cheapest of three dynamic programmes.

    Where the lists share no item, or one of them is unordered, ``K = [n]_q! / n!``. A programme may look at the two
    rankings from either side. It is offered up to :data:`MAX_STEPS` elementary steps for one overlap.

    Examples
    --------
    ``a > b`` with c free against ``b > a > c``: 3, 2 or 1 discordant pairs, according to where c falls.

    >>> overlap = Overlap.of(np.array([0, 1, -1]), np.array([1, 0, 2]))
    >>> log_value, _ = FreeMallows().log_value(overlap, 0.5)
    >>> bool(np.isclose(np.exp(log_value), np.exp([-1.5, -1.0, -0.5]).mean()))
    True
    """

    name = "dynamic programme"

    def covers(self, left: Shape, right: Shape) -> bool:
        """Say whether some programme is cheap enough for all overlaps of these shapes."""
        pairs = ((left, right), (right, left))
        return any(programme.is_cheap(*pair) for programme in PROGRAMMES for pair in pairs)

    def seconds(self, left: Shape, right: Shape, width: float) -> float:
        """Return the time of the cheapest programme."""
        steps = [
            programme.states_and_steps(*pair, None)[1]
            for programme in PROGRAMMES
            for pair in ((left, right), (right, left))
            if programme.is_cheap(*pair)
        ]
        return super().seconds(left, right, width) + STEP * min(steps)

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return log K and the derivative of log K in nu."""
        if says_nothing(overlap):
            return UnorderedMallows().log_value(overlap, nu)
        _, _, programme, side = min(
            (programme.steps(side), number, programme, side)
            for number, (programme, side) in enumerate(
                (programme, side)
                for programme in PROGRAMMES
                for side in (overlap, overlap.swapped)
                if programme.applies(side.left_shape, side.right_shape)
            )
        )
        return programme.log_value(side, nu)


EXP_KENDALL: tuple[Formula, ...] = (ExhaustiveMallows(), UnorderedMallows(), FreeMallows())


def says_nothing(overlap: Overlap) -> bool:
    """Say whether the lists share no item, or one of the rankings has fewer than two buckets.

    Renaming the listed items of one ranking then changes nothing on the other side, so that their order is lost.
    """
    shared = (overlap.left != FREE) & (overlap.right != FREE)
    return not shared.any() or min(len(overlap.left_shape.sizes), len(overlap.right_shape.sizes)) < 2


class Programme(ABC):
    """A dynamic programme that sees two rankings in a given order, and what it costs."""

    @abstractmethod
    def applies(self, left: Shape, right: Shape) -> bool:
        """Say whether the programme is right for these shapes, at whatever cost."""

    @abstractmethod
    def states_and_steps(self, left: Shape, right: Shape, counts: IntArray | None) -> tuple[int, int]:
        """Return how many states are kept and steps made for one table of counts (None: at most for any)."""

    @abstractmethod
    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return log K and the derivative of log K in nu."""

    def is_cheap(self, left: Shape, right: Shape) -> bool:
        """Say whether the programme applies to two shapes within the bounds of this module."""
        if left.n_items > MAX_ITEMS or not self.applies(left, right):
            return False
        states, steps = self.states_and_steps(left, right, None)
        return states <= MAX_STATES and steps <= MAX_STEPS

    def steps(self, overlap: Overlap) -> int:
        """Return the number of elementary steps for one overlap."""
        return self.states_and_steps(overlap.left_shape, overlap.right_shape, overlap.counts)[1]


class ByClass(Programme):
    """Left without free items, right any: how many items of each pair of buckets the right completion has used."""

    def applies(self, left: Shape, right: Shape) -> bool:
        """Say whether the left ranking has no free items."""
        return left.is_exhaustive

    def states_and_steps(self, left: Shape, right: Shape, counts: IntArray | None) -> tuple[int, int]:
        """Return the product of the ways to have used the free items and the listed ones, and that times classes."""
        columns = (
            [spread(size, left.sizes) for size in (*right.sizes, right.free)]
            if counts is None
            else counts[:-1].T.tolist()
        )
        ways = [prod(count + 1 for count in column) for column in columns]
        states = ways[-1] * (1 + sum(way - 1 for way in ways[:-1]))
        return states, states * len(left.sizes)

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return log K and the derivative of log K in nu."""
        found = _loops.free_programmes.class_programme(overlap.counts[:-1], q_numbers(overlap.n_items, nu))
        return within_buckets(overlap, nu, *finished(found, nu))


class ByGap(Programme):
    """Left without free items, right a chain: how many free items each gap of the chain holds."""

    def applies(self, left: Shape, right: Shape) -> bool:
        """Say whether the left ranking has no free items and the right one no ties."""
        return left.is_exhaustive and right.is_chain

    def states_and_steps(self, left: Shape, right: Shape, counts: IntArray | None) -> tuple[int, int]:
        """Return the ways to have all free items in m + 1 gaps, and those to have some of them, times the gaps."""
        m = right.n_listed
        return 2 * comb(right.free + m, m), comb(right.free + m, m + 1) * (m + 1)

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return log K and the derivative of log K in nu."""
        listed = np.empty(overlap.right_shape.n_listed, dtype=np.int64)
        shown = overlap.right != FREE
        listed[overlap.right[shown]] = overlap.left[shown]
        free = np.sort(overlap.left[~shown]).astype(np.int64)
        found = _loops.free_programmes.gap_programme(listed, free, q_numbers(overlap.n_items, nu))
        logs, slopes = tables(overlap.n_items, nu)
        # The programme orders the free items of one left bucket, too; their inversions are independent of the rest.
        ties = overlap.counts[:-1, -1]
        value, slope = finished(found, nu)
        return within_buckets(overlap, nu, value - float(logs[ties].sum()), slope - float(slopes[ties].sum()))


class ByInsertion(Programme):
    """Any two rankings: gaps and slots of the right one as the items of the left one come in, best first."""

    def applies(self, left: Shape, right: Shape) -> bool:
        """Say yes."""
        return True

    def states_and_steps(self, left: Shape, right: Shape, counts: IntArray | None) -> tuple[int, int]:
        """Return gap occupancies times filled slots times progress, in two layers and in all."""
        m = right.n_listed
        if counts is None:
            progress = min(left.n_listed, left.n_items - max(left.n_listed, m)) + 1
            mixed = prod(min(size - 1, left.free) + 1 for size in right.sizes)
        else:
            progress = min(left.n_listed, int(counts[-1, -1])) + 1
            mixed = prod(c + 1 for c, size in zip(counts[-1].tolist(), right.sizes, strict=False) if c < size)
        inner = 2**m * mixed * progress
        return 2 * comb(right.free + m, m) * inner, comb(right.free + m + 1, m + 1) * inner * (2 * m + 1)

    def log_value(self, overlap: Overlap, nu: float) -> tuple[float, float]:
        """Return log K and the derivative of log K in nu."""
        by_listed = overlap.left_shape.n_listed < overlap.counts[-1, -1]
        q = q_numbers(overlap.n_items, nu)
        return finished(_loops.free_programmes.insertion_programme(overlap.counts, by_listed, q), nu)


PROGRAMMES: tuple[Programme, ...] = (ByClass(), ByGap(), ByInsertion())


def spread(items: int, capacities: tuple[int, ...]) -> list[int]:
    """Return the most even distribution of items over buckets: it has the largest product of (count + 1)."""
    counts = [0] * len(capacities)
    for _ in range(items):
        room = [i for i, capacity in enumerate(capacities) if counts[i] < capacity]
        counts[min(room, key=counts.__getitem__)] += 1
    return counts


def finished(found: FloatArray, nu: float) -> tuple[float, float]:
    """Return the logarithm and its derivative from what a programme ends with."""
    low, mean, excess = found.tolist()
    return log(mean) - nu * low, -(low + excess / mean)


def within_buckets(overlap: Overlap, nu: float, value: float, slope: float) -> tuple[float, float]:
    """Add the discordant pairs inside the buckets of the left ranking, which are independent of all others."""
    logs, slopes = tables(overlap.n_items, nu)
    sizes = list(overlap.left_shape.sizes)
    return value + float(logs[sizes].sum()), slope + float(slopes[sizes].sum())


@lru_cache(maxsize=16)
def q_numbers(n: int, nu: float) -> FloatArray:
    """Return powers of q, the numbers ``[k]_q = 1 + q + ... + q^(k-1)`` and minus their slopes, for all k in need."""
    steps = np.arange(max(n * (n - 1) // 2, n) + 1)
    powers = np.exp(-nu * steps)
    brackets, slopes = np.zeros_like(powers), np.zeros_like(powers)
    brackets[1:] = np.cumsum(powers[:-1])
    slopes[1:] = np.cumsum((steps * powers)[:-1])
    return np.stack([powers, brackets, slopes])
