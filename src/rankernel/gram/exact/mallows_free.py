"""The Mallows kernel of rankings with free items: dynamic programs over the inserted items.

Each program follows random completions item by item, and holds for each state the mean of ``q^cost``, q = exp(-nu),
where cost is the number of discordant pairs so far. A state is ``(low, mean, excess)``: the mean of ``q^cost`` is
``q^low * mean`` and the mean of ``(cost - low) q^cost`` is ``q^low * excess``, low the smallest cost that leads there.
So nothing underflows, all terms are positive, and the derivative is ``d/dnu log = -(low + excess / mean)``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import comb, log, prod
from typing import NamedTuple

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils import FloatArray, IntArray
from rankernel._utils.combinatorics import tables
from rankernel.gram.evaluator import STEP
from rankernel.gram.exact.formulas import Formula, LogMean, Overlap, Shape
from rankernel.kernels.base import Kernel
from rankernel.rankings import FREE

MAX_STEPS = 20_000_000  # elementary steps of one program: up to 1 s
MAX_STATES = 4_000_000  # of 24 bytes each
CACHED_STATES = 2**16  # beyond, states are read from the main memory, and steps take longer
MAX_ITEMS = 150  # a single completion has probability 1 / n! or more, which must not underflow


class FreeMallows(Formula):
    """Mallows kernel of two rankings of any kind, by the cheapest of three dynamic programs.

    If the lists share no item, or one ranking is unordered, ``K = [n]_q! / n!``: relabelling the listed items of one
    ranking then leaves the other side unchanged, so that their order has no effect.

    Examples
    --------
    ``a > b`` with c free against ``b > a > c``: 3, 2 or 1 discordant pairs, according to the position of c.

    >>> overlap = Overlap.of(np.array([0, 1, -1]), np.array([1, 0, 2]))
    >>> bool(np.isclose(np.exp(FreeMallows().log_mean(overlap, 0.5).value), np.exp([-1.5, -1.0, -0.5]).mean()))
    True
    """

    method = "dynamic program"
    only_exponential = True

    def seconds(self, kernel: Kernel, left: Shape, right: Shape) -> float | None:
        """Return the time of the cheapest program, if one is affordable for all overlaps of these shapes."""
        found = affordable_seconds(left, right) + [0.0] * (left.is_unordered or right.is_unordered)
        return 5e-5 + min(found) if found else None

    def overlap_seconds(self, kernel: Kernel, overlap: Overlap) -> float:
        """Return the time of the cheapest program for the overlap, which can be much shorter than for all overlaps."""
        return 5e-5 + (0.0 if is_independent(overlap) else program_seconds(*cheapest(overlap)[0]))

    def log_mean(self, overlap: Overlap, rate: float) -> LogMean:
        """Return the logarithm of the kernel."""
        if is_independent(overlap):
            logs, derivatives = tables(overlap.n_items, rate)
            return LogMean(0, float(logs[-1]), float(derivatives[-1]))
        _, program, side = cheapest(overlap)
        return LogMean(0, *program.run(side, rate))


FORMULAS: tuple[Formula, ...] = (FreeMallows(),)


def is_independent(overlap: Overlap) -> bool:
    """Whether the order of the listed items has no effect."""
    shared = (overlap.left != FREE) & (overlap.right != FREE)
    return not shared.any() or overlap.left_shape.is_unordered or overlap.right_shape.is_unordered


def cheapest(overlap: Overlap) -> tuple[tuple[int, int], Program, Overlap]:
    """Return the size of the cheapest program for an overlap, the program, and the overlap or the swapped one."""
    choices = [
        (program.size(side.left_shape, side.right_shape, side.counts), program, side)
        for program in PROGRAMS
        for side in (overlap, overlap.swapped)
        if program.applies(side.left_shape, side.right_shape)
    ]
    return min(choices, key=lambda choice: choice[0][1])


def program_seconds(states: int, steps: int) -> float:
    """Return the time of a program."""
    return steps * STEP["path" if states <= CACHED_STATES else "distant path"]


def affordable_seconds(left: Shape, right: Shape) -> list[float]:
    """Return the time of each program that is affordable for all overlaps of two shapes."""
    if left.n_items > MAX_ITEMS:
        return []
    sizes = [
        program.size(*pair, None)
        for program in PROGRAMS
        for pair in ((left, right), (right, left))
        if program.applies(*pair)
    ]
    return [program_seconds(states, steps) for states, steps in sizes if states <= MAX_STATES and steps <= MAX_STEPS]


class Program(NamedTuple):
    """A dynamic program for two rankings in a given order.

    ``applies`` tells whether it is correct for two shapes. ``size`` returns the numbers of states and of steps for one
    table of counts, or their maxima if the counts are None. ``run`` returns log K and its derivative in nu.
    """

    applies: Callable[[Shape, Shape], bool]
    size: Callable[[Shape, Shape, IntArray | None], tuple[int, int]]
    run: Callable[[Overlap, float], tuple[float, float]]


# ---------------------------------------------------------------------- left without free items: items used by class


def class_size(left: Shape, right: Shape, counts: IntArray | None) -> tuple[int, int]:
    """Return the product of the ways to have used the free items and the listed ones, and that times classes."""
    columns = (
        [even_counts(size, left.sizes) for size in (*right.sizes, right.free)]
        if counts is None
        else counts[:-1].T.tolist()
    )
    ways = [prod(count + 1 for count in column) for column in columns]
    states = ways[-1] * (1 + sum(way - 1 for way in ways[:-1]))
    return states, states * len(left.sizes)


def even_counts(n_items: int, capacities: tuple[int, ...]) -> list[int]:
    """Return the most even distribution of items over buckets: it has the largest product of (count + 1)."""
    counts = [0] * len(capacities)
    for _ in range(n_items):
        open_buckets = [i for i, capacity in enumerate(capacities) if counts[i] < capacity]
        counts[min(open_buckets, key=counts.__getitem__)] += 1
    return counts


def class_program(overlap: Overlap, nu: float) -> tuple[float, float]:
    """Return log K for a left ranking without free items, by how many items of each class are used.

    ``classes[i, j]`` items are in left bucket i and right bucket j (last column: free on the right). The right
    completion is built best item first. The index of a state is that of the listed items used (one right bucket after
    the other) times the number of ways to have used the free ones, plus the index of such a way.
    """
    classes = np.ascontiguousarray(overlap.counts[:-1])
    n_left, n_columns = classes.shape
    strides = np.ones((n_columns, n_left + 1), dtype=np.int64)  # mixed radix; the last entry is the number of ways
    strides[:, 1:] = np.cumprod(classes.T + 1, axis=1)
    n_states = (1 + int((strides[:-1, -1] - 1).sum())) * int(strides[-1, -1])
    states = np.zeros((1, n_states, 3))
    states[0, 0, MEAN] = 1.0
    use_items(classes, strides, q_numbers(overlap.n_items, nu), np.zeros((3, n_left), dtype=np.int64), states, 0)
    return within_buckets(overlap, nu, *log_of_state(states[0, -1], nu))


# ---------------------------------------------------------------------- left without free items, right a chain: gaps


def gap_size(left: Shape, right: Shape, counts: IntArray | None) -> tuple[int, int]:
    """Return the ways to have all free items in m + 1 gaps, and those to have some of them, times the gaps."""
    m = right.n_listed
    return 2 * comb(right.free + m, m), comb(right.free + m, m + 1) * (m + 1)


def gap_program(overlap: Overlap, nu: float) -> tuple[float, float]:
    """Return log K for a left ranking without free items and a right chain, by how many items each gap holds.

    Free items enter the gaps of the chain in the order of their left buckets, as if items of one bucket were ordered;
    the inversions within a bucket are independent of all others and divided out.
    """
    is_listed = overlap.right != FREE
    listed = np.empty(overlap.right_shape.n_listed, dtype=np.int64)  # the left bucket of each item of the chain
    listed[overlap.right[is_listed]] = overlap.left[is_listed]
    free = np.sort(overlap.left[~is_listed]).astype(np.int64)
    m, f = len(listed), len(free)
    binomial, q = binomials(m, f), q_numbers(overlap.n_items, nu)
    states = np.zeros((2, binomial[f + m, m], 3))
    states[0, 0] = np.count_nonzero(np.triu(listed[:, None] > listed[None, :], 1)), 1.0, 0.0
    layer = insert_free(listed, free, binomial, q, np.zeros((5, m + 1), dtype=np.int64), states, 0)
    value, derivative = log_of_state(summed(states[layer], q), nu)
    logs, derivatives = tables(overlap.n_items, nu)
    ties = overlap.counts[:-1, -1]
    return within_buckets(overlap, nu, value - float(logs[ties].sum()), derivative - float(derivatives[ties].sum()))


# ---------------------------------------------------------------------- any two rankings: insertion


def insertion_size(left: Shape, right: Shape, counts: IntArray | None) -> tuple[int, int]:
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


def insertion_program(overlap: Overlap, nu: float) -> tuple[float, float]:
    """Return log K of any two rankings.

    The left completion is built best item first, and each item is inserted into the right one: a listed item into a
    random slot of its right bucket, another at a random position between the slots. A state is the number of items in
    each gap between slots; the filled slots; for each right bucket with items both listed and free on the left, how
    many of the free ones are inserted; and the number of inserted items that are listed on the left, or free on both
    sides, whichever is smaller, as each determines the other.
    """
    classes, q = np.ascontiguousarray(overlap.counts), q_numbers(overlap.n_items, nu)
    by_listed = bool(overlap.left_shape.n_listed < classes[-1, -1])
    n_right, n_items = classes.shape[1] - 1, int(classes.sum())
    right_sizes, free = classes[:, :-1].sum(axis=0), classes[-1, :-1]
    before = np.zeros(classes.shape, dtype=np.int64)
    before[1:] = np.cumsum(classes[:-1], axis=0)  # items in left buckets before i, by right bucket
    started = before.sum(axis=1)
    bucket_of = np.repeat(np.arange(n_right), right_sizes)  # right bucket of each slot
    mixed = np.cumprod([1, *np.where(free == right_sizes, 1, free + 1)])
    n_progress = 1 + int(started[-1] if by_listed else classes[-1, -1])
    m = len(bucket_of)
    f, inner = n_items - m, int(mixed[-1]) * n_progress << m
    binomial = binomials(m, f)
    states = np.zeros((2, int(binomial[f + m, m]) * inner, 3))
    states[0, 0, MEAN] = 1.0
    work, chances = np.zeros((5, max(m, n_right) + 2), dtype=np.int64), np.zeros((2, n_right + 1))
    sizes = (classes, before, started, right_sizes, bucket_of, mixed)
    layer = insert_items(sizes, by_listed, n_progress, n_items, binomial, q, work, chances, states, 0)
    return log_of_state(summed(states[layer, inner - 1 :: inner], q), nu)


PROGRAMS = (
    Program(lambda left, _: left.is_exhaustive, class_size, class_program),
    Program(lambda left, right: left.is_exhaustive and right.is_chain, gap_size, gap_program),
    Program(lambda *_: True, insertion_size, insertion_program),
)


# ---------------------------------------------------------------------- states

LOW, MEAN, EXCESS = range(3)  # columns of a table of states
POWER, BRACKET, DERIVATIVE = range(3)  # rows of the table of q-numbers


@lru_cache(maxsize=16)
@np.errstate(under="ignore")
def q_numbers(n: int, nu: float) -> FloatArray:
    """Return powers ``q^k``, brackets ``[k]_q = 1 + q + ... + q^(k-1)``, and minus the derivatives of these in nu."""
    steps = np.arange(max(n * (n - 1) // 2, n) + 1)
    powers = np.exp(-nu * steps)
    brackets, derivatives = np.zeros_like(powers), np.zeros_like(powers)
    brackets[1:] = np.cumsum(powers[:-1])
    derivatives[1:] = np.cumsum((steps * powers)[:-1])
    return np.stack([powers, brackets, derivatives])


@lru_cache(maxsize=64)
def binomials(m: int, f: int) -> IntArray:
    """Return the binomial coefficients that index the occupancies of m + 1 gaps by up to f items; the rest are 0."""
    table = np.zeros((m + f + 1, m + 1), dtype=np.int64)
    for j in range(m + 1):
        for more in range(f + 1):
            table[j + more, j] = comb(j + more, j)
    return table


def summed(states: FloatArray, q: FloatArray) -> FloatArray:
    """Return the sum of several states as one state."""
    low, mean, excess = states[states[:, MEAN] > 0.0].T
    gap = low - low.min()
    weight = q[POWER, gap.astype(np.int64)]
    return np.array([low.min(), (weight * mean).sum(), (weight * (excess + gap * mean)).sum()])


def log_of_state(state: FloatArray, nu: float) -> tuple[float, float]:
    """Return the logarithm of the mean of a state, and its derivative in nu."""
    low, mean, excess = state.tolist()
    return log(mean) - nu * low, -(low + excess / mean)


def within_buckets(overlap: Overlap, nu: float, value: float, derivative: float) -> tuple[float, float]:
    """Add the discordant pairs inside the buckets of the left ranking, which are independent of all others."""
    logs, derivatives = tables(overlap.n_items, nu)
    sizes = list(overlap.left_shape.sizes)
    return value + float(logs[sizes].sum()), derivative + float(derivatives[sizes].sum())


# ---------------------------------------------------------------------- compiled loops

# The loops are flat and allocate nothing, as both would be compiled into each of them. ``work`` is for intermediate
# results, and ``now`` is the index of the table that holds the states (an argument, as a constant 0 would be compiled
# separately). The occupancies of m + 1 gaps are stored as prefix sums; those of one total form a layer and are indexed
# by the combinatorial number system: sum over j < m of binomial(prefix[j] + j, j + 1).

PREFIX, NUMBERS, AGAINST, FILLED, CAME = range(5)  # rows of ``work`` of a program over gaps


@compiled
def add_path(states, layer, target, cost, more, extra, q):
    """Add a path of a given cost to a state."""
    if states[layer, target, MEAN] == 0.0:
        states[layer, target, LOW] = cost
        states[layer, target, MEAN] = more
        states[layer, target, EXCESS] = extra
        return
    gap = cost - states[layer, target, LOW]
    weight = q[POWER, int(abs(gap))]
    if gap >= 0:
        states[layer, target, MEAN] += weight * more
        states[layer, target, EXCESS] += weight * (extra + gap * more)
    else:
        older = states[layer, target, EXCESS] - gap * states[layer, target, MEAN]
        states[layer, target, EXCESS] = weight * older + extra
        states[layer, target, MEAN] = weight * states[layer, target, MEAN] + more
        states[layer, target, LOW] = cost


@compiled
def use_items(classes, strides, q, work, states, now):
    """Add one item to each state, block after block: a block has used the same listed items."""
    n_left, n_right = classes.shape[0], classes.shape[1] - 1
    listed, still_open, used = 0, 1, 2  # rows of ``work``, by left bucket
    n_free_states, total_free, n_listed = strides[n_right, n_left], 0, 0
    for i in range(n_left):
        total_free += classes[i, n_right]
        for j in range(n_right):
            n_listed += classes[i, j]
    block = 0
    for j in range(n_right + 1):
        n_open = 0
        for i in range(n_left):
            work[still_open, i] = classes[i, j] if j < n_right else 0
            n_open += work[still_open, i]
        # The last way to have used a bucket, all of it, is the first of the next bucket.
        for way in range(strides[j, n_left] - 1 if j < n_right else 1):
            if way:
                for i in range(n_left):  # the next way to have used listed items of this bucket
                    if work[still_open, i] > 0:
                        work[still_open, i] -= 1
                        work[listed, i] += 1
                        n_open -= 1
                        n_listed -= 1
                        break
                    work[still_open, i] = classes[i, j]
                    work[listed, i] -= classes[i, j]
                    n_open += classes[i, j]
                    n_listed += classes[i, j]
            n_used = 0
            for i in range(n_left):
                work[used, i] = 0
            for here in range(block * n_free_states, (block + 1) * n_free_states):
                cost, mean, excess = states[now, here, LOW], states[now, here, MEAN], states[now, here, EXCESS]
                n_items = n_listed + total_free - n_used
                for i in range(n_left - 1, -1, -1):
                    if mean == 0.0:
                        break
                    for is_listed in range(2):
                        if is_listed and work[still_open, i] > 0:
                            chance = n_listed / n_items * work[still_open, i] / n_open
                            target = here + strides[j, i] * n_free_states
                        elif not is_listed and work[used, i] < classes[i, n_right]:
                            chance = (classes[i, n_right] - work[used, i]) / n_items
                            target = here + strides[n_right, i]
                        else:
                            continue
                        add_path(states, now, target, cost, chance * mean, chance * excess, q)
                    cost += work[listed, i] + work[used, i]
                for i in range(n_left):  # the next way to have used free items
                    if work[used, i] < classes[i, n_right]:
                        work[used, i] += 1
                        n_used += 1
                        break
                    n_used -= work[used, i]
                    work[used, i] = 0
            block += 1
        if j < n_right:  # the bucket is used up
            for i in range(n_left):
                n_listed -= work[still_open, i]
                work[listed, i] += work[still_open, i]


@compiled
def start_layer(work, m, total):
    """Set the first occupancy of a layer: all items in the last gap."""
    for j in range(m):
        work[PREFIX, j] = 0
    work[PREFIX, m] = total


@compiled
def advance(work, m):
    """Set the next occupancy of the same layer, if there is one."""
    for j in range(m):
        if work[PREFIX, j] < work[PREFIX, j + 1]:
            work[PREFIX, j] += 1
            for i in range(j):
                work[PREFIX, i] = 0
            return


@compiled
def fill_gaps(states, now, here, new, inner, local, chance, work, m, q):
    """Insert one item at a random position: it is discordant with the items of later gaps and with ``against[g]``.

    ``numbers[g]`` is the index in the next layer of the occupancy with one more item in gap g.
    """
    total = work[PREFIX, m]
    mean = states[now, here, MEAN] * chance / (total + m + 1)
    excess = states[now, here, EXCESS] * chance / (total + m + 1)
    for g in range(m + 1):
        positions = work[PREFIX, g] - (work[PREFIX, g - 1] if g else 0) + 1
        more = mean * q[BRACKET, positions]
        extra = excess * q[BRACKET, positions] + mean * q[DERIVATIVE, positions]
        cost = states[now, here, LOW] + work[AGAINST, g] + total - work[PREFIX, g]
        add_path(states, new, work[NUMBERS, g] * inner + local, cost, more, extra, q)


@compiled
def insert_free(listed, free, binomial, q, work, states, now):
    """Insert the free items one after the other; return the index of the table with the last states."""
    m = len(listed)
    for t in range(len(free)):
        # Items of the chain with which an item of this left bucket is discordant, for each gap.
        work[AGAINST, 0] = 0
        for u in range(m):
            work[AGAINST, 0] += 1 if listed[u] < free[t] else 0
        for u in range(m):
            change = 1 if listed[u] > free[t] else -1 if listed[u] < free[t] else 0
            work[AGAINST, u + 1] = work[AGAINST, u] + change
        new = 1 - now
        for state in range(states.shape[1]):
            states[new, state, MEAN] = 0.0
        start_layer(work, m, t)
        for number in range(binomial[t + m, m]):
            work[NUMBERS, m] = number
            for g in range(m - 1, -1, -1):
                work[NUMBERS, g] = work[NUMBERS, g + 1] + binomial[work[PREFIX, g] + g, g]
            fill_gaps(states, now, number, new, 1, 0, 1.0, work, m, q)
            advance(work, m)
        now = new
    return now


@compiled
def insert_items(sizes, by_listed, n_progress, n_items, binomial, q, work, chances, states, now):
    """Insert the items one after the other; return the index of the table with the last states.

    ``chances[0, j]`` is the probability that the next left item is in right bucket j and listed on the left, and
    ``chances[1, j]`` that it is free there; the last entries are for items that are free on the right.
    """
    classes, _, _, right_sizes, bucket_of, mixed = sizes
    m, n_right = len(bucket_of), classes.shape[1] - 1
    f, block = n_items - m, mixed[n_right] * n_progress
    inner = block << m
    for t in range(f + 1):
        new = 1 - now
        for state in range(states.shape[1]):
            states[new, state, MEAN] = 0.0
        start_layer(work, m, t)
        for number in range(binomial[t + m, m]):
            work[NUMBERS, m] = number
            for g in range(m - 1, -1, -1):
                work[NUMBERS, g] = work[NUMBERS, g + 1] + binomial[work[PREFIX, g] + g, g]
            for slots in range(1 << m):
                n_came = -1
                for local in range(slots * block, (slots + 1) * block):
                    here = number * inner + local
                    if states[now, here, MEAN] == 0.0:
                        continue
                    if n_came < 0:
                        # The filled slots of each right bucket, and of each slot and the later ones.
                        for j in range(n_right):
                            work[FILLED, j] = 0
                        work[AGAINST, m] = 0
                        for s in range(m - 1, -1, -1):
                            taken = slots >> s & 1
                            work[AGAINST, s] = work[AGAINST, s + 1] + taken
                            work[FILLED, bucket_of[s]] += taken
                        n_came = t + work[AGAINST, 0]
                    if n_came == n_items:
                        continue
                    find_chances(sizes, by_listed, n_progress, n_items, local % block, n_came, work, chances)
                    for s in range(m):
                        j = bucket_of[s]
                        if slots >> s & 1:
                            continue
                        for is_free in range(2):
                            chance = chances[is_free, j] / (right_sizes[j] - work[FILLED, j])
                            if chance > 0.0:
                                step = n_progress * mixed[j] if is_free and mixed[j + 1] > mixed[j] else 0
                                step += 1 if by_listed and not is_free else 0
                                cost = states[now, here, LOW] + work[PREFIX, m] - work[PREFIX, s] + work[AGAINST, s + 1]
                                more, extra = chance * states[now, here, MEAN], chance * states[now, here, EXCESS]
                                add_path(states, now, here + (block << s) + step, cost, more, extra, q)
                    for is_free in range(2):
                        if chances[is_free, n_right] > 0.0:
                            to = local + (1 if by_listed != (is_free == 1) else 0)
                            fill_gaps(states, now, here, new, inner, to, chances[is_free, n_right], work, m, q)
            advance(work, m)
        if t < f:
            now = new
    return now


@compiled
def find_chances(sizes, by_listed, n_progress, n_items, local, n_came, work, chances):
    """Compute the probability that the next left item is in right bucket j, and listed or free on the left."""
    classes, before, started, right_sizes, _, mixed = sizes
    n_left, n_right = classes.shape[0] - 1, classes.shape[1] - 1
    ways, progress, others = local // n_progress, local % n_progress, 0
    for j in range(n_right):
        # Inserted items of right bucket j that are free on the left.
        all_free = classes[n_left, j] == right_sizes[j]
        came = work[FILLED, j] if all_free else ways // mixed[j] % (classes[n_left, j] + 1)
        work[CAME, j] = came
        chances[1, j] = (classes[n_left, j] - came) / (n_items - n_came)
        others += came
    came_listed = progress if by_listed else n_came - progress - others
    came_both = n_came - came_listed - others
    chances[1, n_right] = (classes[n_left, n_right] - came_both) / (n_items - n_came)
    n_listed = started[n_left]
    i = 0
    while i < n_left and started[i + 1] <= came_listed:
        i += 1
    bucket_left = started[i + 1] - came_listed if i < n_left else 0
    share = (n_listed - came_listed) / (n_items - n_came) / bucket_left if i < n_left else 0.0
    for j in range(n_right):
        left_over = classes[i, j] - (work[FILLED, j] - work[CAME, j] - before[i, j]) if i < n_left else 0
        chances[0, j] = share * left_over
        bucket_left -= left_over
    chances[0, n_right] = share * bucket_left
