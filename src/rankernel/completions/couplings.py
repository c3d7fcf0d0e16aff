"""Couplings: dependent uniform completions of one ranking whose mean has a smaller variance.

Every draw is made from keys. Give each item an independent uniform key, sort the keys of the listed items, assign them
to the buckets in order (inside a bucket: by the key of the item), and leave the keys of free items unchanged. The order
of all keys is a uniform completion, so a coupling of uniform keys is a coupling of completions.

Coupled draws come in independent, identically distributed blocks. Inside a block the order of each bucket is coupled
separately; with free items, the order of all items is coupled as well. To add a coupling, define a class here and list
it in :data:`COUPLINGS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar, Protocol

import numpy as np

from rankernel._loops.compiled import compiled_strictly
from rankernel._loops.random_streams import normal, seed_state, substream, uniform
from rankernel._utils.arrays import FloatArray, FullRanks, Indices, IntArray, RankArray
from rankernel._utils.checks import check_choice
from rankernel._utils.rng import Streams
from rankernel.completions.linear_extensions import check_n_items
from rankernel.encoding import FREE
from rankernel.errors import Argument, RankingError
from rankernel.rankings import unique_rows

MAX_COUNTED = 512  # items that are ranked faster by counting than by sorting
CHUNK_KEYS = 2**18
WITHIN_BUCKETS, AMONG_ALL = 0, 1  # layers of keys: the order inside buckets, and that of free items among all
LAYER, ROW, NUMBER, START, SIZE = range(5)  # columns of Parts.table


class FullKernel(Protocol):
    """An object with a matrix of kernel values between full rankings, given as positions of items."""

    def matrix(self, X: Any, Y: Any) -> Any:
        """Return the kernel of each row of X with each row of Y."""


class Coupling(ABC):
    """A joint distribution of several uniform completions of one ranking."""

    #: The value of ``coupling`` in :class:`MonteCarlo`.
    name: ClassVar[str]

    @abstractmethod
    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return the number of draws that depend on each other."""

    @abstractmethod
    def draw(self, ranks: RankArray, n_draws: int, streams: Streams) -> FullRanks:
        """Return draws of shape (n_rankings, n_draws, n_items); the last block may be incomplete."""


# ---------------------------------------------------------------------- from keys to completions


@dataclass(frozen=True, eq=False)
class Parts:
    """The random parts of rankings: buckets of several items, and all items of rankings with free items.

    Attributes
    ----------
    table : array of shape (n_parts, 5)
        For each part its layer of keys, its ranking, the number of its stream, and start and size in ``members``.
    members : array
        The items of each part in ascending order.
    positions : array of shape (n_rankings, n_items)
        One completion of each ranking: buckets in item order, free items after the listed ones.
    n_listed : array of shape (n_rankings,)
        The number of listed items.
    """

    table: IntArray
    members: Indices
    positions: FullRanks
    n_listed: Indices

    @classmethod
    def of(cls, ranks: RankArray) -> Parts:
        """Return the parts of rankings, those of free items last."""
        n_rankings, n_items = ranks.shape
        order = np.argsort(np.where(ranks < 0, n_items, ranks), axis=1, kind="stable")
        positions = np.empty((n_rankings, n_items), dtype=np.int16)
        np.put_along_axis(positions, order, np.arange(n_items, dtype=np.int16)[None], axis=1)
        in_order = np.take_along_axis(ranks, order, axis=1)
        is_start = np.ones((n_rankings, n_items), dtype=bool)
        is_start[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
        start = np.flatnonzero(is_start)
        size = np.diff(np.append(start, ranks.size))
        rank = in_order.ravel()[start]
        tied = (size > 1) & (rank >= 0)
        start, size, rank = start[tied], size[tied], rank[tied]
        with_free = np.flatnonzero((ranks < 0).any(axis=1)) if n_items > 1 else np.empty(0, dtype=np.int64)
        n_buckets = len(start)
        table = np.zeros((n_buckets + len(with_free), 5), dtype=np.int64)
        table[:n_buckets, LAYER] = WITHIN_BUCKETS
        table[:n_buckets, ROW:] = np.column_stack([start // max(n_items, 1), rank + 1, start, size])
        table[n_buckets:] = [AMONG_ALL, 0, 0, ranks.size, n_items]
        table[n_buckets:, ROW] = with_free
        n_listed = np.count_nonzero(ranks >= 0, axis=1)
        return cls(table, np.append(order.ravel(), np.arange(n_items)), positions, n_listed)

    def completions(self, keys: FloatArray) -> FullRanks:
        """Return the completions given by ``keys[layer, ranking, draw, item]``."""
        out = np.empty(keys.shape[1:], dtype=np.int16)
        out[...] = self.positions[:, None]
        free = self.table[:, LAYER] == AMONG_ALL
        rank_by_keys(self.table[~free], self.members, keys[WITHIN_BUCKETS], out)
        if free.any():
            among_all = np.empty_like(out)
            rank_by_keys(self.table[free], self.members, keys[AMONG_ALL], among_all)
            insert_free_items(self.table[free, ROW], self.n_listed, among_all, out)
        return out


def complete(ranks: RankArray, keys: FloatArray) -> FullRanks:
    """Return the completions given by keys: positions of shape (n_rankings, n_draws, n_items).

    Examples
    --------
    Item 0 is before item 1, item 2 is free. The listed keys .9 and .2 are exchanged, the free key .5 stays:

    >>> complete(np.array([[0, 1, -1]]), np.array([[[0.9, 0.2, 0.5]]]))
    array([[[0, 2, 1]]], dtype=int16)
    """
    ranks = np.ascontiguousarray(ranks, dtype=np.int32)
    keys = np.ascontiguousarray(keys, dtype=np.float64)
    if keys.ndim != 3 or keys.shape[::2] != ranks.shape:
        raise RankingError(
            f"keys has shape {keys.shape} for ranks of shape {ranks.shape}; it must be (n_rankings, n_draws, n_items)"
        )
    check_n_items(ranks.shape[1])
    return Parts.of(ranks).completions(np.broadcast_to(keys, (2, *keys.shape)))


def rank_by_keys(table: IntArray, members: Indices, keys: FloatArray, out: FullRanks) -> None:
    """Write the positions of the members of parts, by key; equal keys are ordered by item."""
    n_items, counted = keys.shape[2], table[:, SIZE] <= MAX_COUNTED
    rank_by_counting(table[counted], members, keys, out)
    for _, row, _, start, size in table[~counted].tolist():
        part = members[start : start + size]
        order = np.argsort(keys[row][:, part], axis=1, kind="stable")
        np.put_along_axis(out[row], part[order], start % n_items + np.arange(size, dtype=np.int16)[None], axis=1)


@compiled_strictly
def rank_by_counting(table: IntArray, members: Indices, keys: FloatArray, out: FullRanks) -> None:
    """Write the positions of the members of parts by counting smaller keys, without branches."""
    n_items = keys.shape[2]
    values, smaller = np.empty(n_items), np.empty(n_items, dtype=np.int64)
    for p in range(len(table)):
        row, start, size = table[p, ROW], table[p, START], table[p, SIZE]
        for d in range(keys.shape[1]):
            for j in range(size):
                values[j] = keys[row, d, members[start + j]]
            for j in range(size):
                before = np.int64(0)
                for i in range(j):
                    earlier = np.int64(values[i] <= values[j])
                    before += earlier
                    smaller[i] += 1 - earlier
                smaller[j] = before
            for j in range(size):
                out[row, d, members[start + j]] = start % n_items + smaller[j]


@compiled_strictly
def insert_free_items(rows: IntArray, n_listed: Indices, among_all: FullRanks, out: FullRanks) -> None:
    """Move free items to their positions among all items, and listed items to the other positions in order."""
    n_items = out.shape[2]
    item_at, position_of = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    for k in range(len(rows)):
        row = rows[k]
        for d in range(out.shape[1]):
            for a in range(n_items):
                item_at[among_all[row, d, a]] = a
            listed = 0
            for position in range(n_items):
                if out[row, d, item_at[position]] < n_listed[row]:
                    position_of[listed] = position
                    listed += 1
            for a in range(n_items):
                rank = out[row, d, a]
                out[row, d, a] = position_of[rank] if rank < n_listed[row] else among_all[row, d, a]


# ---------------------------------------------------------------------- couplings of keys


class KeyCoupling(Coupling):
    """A coupling defined by a joint distribution of keys.

    Each part and each block of draws has a separate random stream, so that draws do not depend on how they are chunked.
    """

    @abstractmethod
    def fill_keys(self, parts: Parts, streams: Streams, first: int, block: int, keys: FloatArray) -> None:
        """Fill ``keys[layer, ranking, draw, item]`` of consecutive blocks of draws, the first of number ``first``.

        In every single draw all orders of the members of a part must have equal probability.
        """

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams) -> FullRanks:
        """Return coupled draws, in chunks of rankings and blocks."""
        ranks = np.ascontiguousarray(ranks, dtype=np.int32)
        n_rankings, n_items = ranks.shape
        check_n_items(n_items)
        block = self.block_size(n_items, n_draws)
        out = np.empty((n_rankings, n_draws, n_items), dtype=np.int16)
        all_blocks = -(-n_draws // block)
        n_blocks = max(min(CHUNK_KEYS // max(block * n_items, 1), all_blocks), 1)
        n_rows = max(CHUNK_KEYS // max(n_blocks * block * n_items, 1), 1)
        for row in range(0, n_rankings, n_rows):
            rows = slice(row, row + n_rows)
            parts = Parts.of(ranks[rows])
            for first in range(0, all_blocks, n_blocks):
                drawn = out[rows, first * block : (first + n_blocks) * block]
                keys = np.empty((2, *drawn.shape))
                self.fill_keys(parts, streams[rows], first, block, keys)
                drawn[...] = parts.completions(keys)
        return out


@dataclass(frozen=True)
class Iid(KeyCoupling):
    """Independent draws."""

    name = "iid"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return 1: the draws are independent."""
        return 1

    def fill_keys(self, parts: Parts, streams: Streams, first: int, block: int, keys: FloatArray) -> None:
        """Fill with independent uniform keys."""
        uniform_keys(parts.table, parts.members, streams, first, block, False, keys)


@dataclass(frozen=True)
class Antithetic(KeyCoupling):
    """Pairs of draws with the keys u and 1 - u.

    Without free items the second draw reverses every bucket of the first: for top-k lists this is Algorithm 1 of the
    paper, and the second draw is the completion farthest from the first. With free items the map is an involution of
    the completions, but not always to the farthest.
    """

    name = "antithetic"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return 2."""
        return 2

    def fill_keys(self, parts: Parts, streams: Streams, first: int, block: int, keys: FloatArray) -> None:
        """Fill with antithetic pairs of uniform keys."""
        uniform_keys(parts.table, parts.members, streams, first, block, True, keys)


@compiled_strictly
def uniform_keys(
    table: IntArray, members: Indices, streams: Streams, first: int, block: int, antithetic: bool, keys: FloatArray
) -> None:
    """Fill with uniform keys u; if ``antithetic``, every second draw has the keys 1 - u."""
    state = np.empty(4, dtype=np.uint64)
    for p in range(len(table)):
        layer, row, start = table[p, LAYER], table[p, ROW], table[p, START]
        for d in range(keys.shape[2]):
            if d % block == 0:
                seed_state(state, substream(substream(streams[row], first + d // block), table[p, NUMBER]))
            for j in range(start, start + table[p, SIZE]):
                a = members[j]
                keys[layer, row, d, a] = 1.0 - keys[layer, row, d - 1, a] if antithetic and d % 2 else uniform(state)


@dataclass(frozen=True)
class Orthogonal(KeyCoupling):
    """Keys along plus and minus random orthogonal directions.

    The order of t items is that of the entries of a random vector with sum zero; t - 1 such vectors, orthogonal to each
    other, and their negatives form a block.
    """

    name = "orthogonal"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return 2 (n_items - 1), and at least 2."""
        return max(2, 2 * (n_items - 1))

    def fill_keys(self, parts: Parts, streams: Streams, first: int, block: int, keys: FloatArray) -> None:
        """Fill with orthogonal directions and their negatives."""
        orthogonal_keys(parts.table, parts.members, streams, first, block, keys)


@compiled_strictly
def orthogonal_keys(
    table: IntArray, members: Indices, streams: Streams, first: int, block: int, keys: FloatArray
) -> None:
    """Fill with plus and minus orthogonal directions, uniform on the sphere of the vectors with sum zero."""
    state = np.empty(4, dtype=np.uint64)
    n_items = keys.shape[3]
    basis = np.empty((max(min(n_items - 1, (block + 1) // 2), 1), n_items))
    for p in range(len(table)):
        layer, row, start, size = table[p, LAYER], table[p, ROW], table[p, START], table[p, SIZE]
        for d in range(keys.shape[2]):
            if d % block == 0:
                seed_state(state, substream(substream(streams[row], first + d // block), table[p, NUMBER]))
            new = (d % block // 2) % (size - 1)
            if d % block % 2 == 0:
                for j in range(size):
                    basis[new, j] = normal(state)
                # Gram-Schmidt, twice: the second pass removes the rounding error of the first.
                for _ in range(2):
                    mean, norm2 = 0.0, 0.0
                    for j in range(size):
                        mean += basis[new, j] / size
                    for j in range(size):
                        basis[new, j] -= mean
                    for i in range(new):
                        product = 0.0
                        for j in range(size):
                            product += basis[i, j] * basis[new, j]
                        for j in range(size):
                            basis[new, j] -= product * basis[i, j]
                    for j in range(size):
                        norm2 += basis[new, j] ** 2
                    for j in range(size):
                        basis[new, j] /= np.sqrt(norm2)
            sign = -1.0 if d % block % 2 else 1.0
            for j in range(size):
                keys[layer, row, d, members[start + j]] = sign * basis[new, j]


@dataclass(frozen=True)
class Latin(KeyCoupling):
    """Cyclic shifts of a random order.

    In a complete block each free item, and each item of a ranking with one bucket, takes every position once. Made for
    the Hamming distance, which compares positions item by item.
    """

    name = "latin"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return the number of items."""
        return max(1, n_items)

    def fill_keys(self, parts: Parts, streams: Streams, first: int, block: int, keys: FloatArray) -> None:
        """Fill with cyclic shifts."""
        steps = np.ones(keys.shape[3] + 1, dtype=np.int64)
        for size in np.unique(parts.table[:, SIZE]).tolist():
            steps[size] = golden_step(size)
        latin_keys(parts.table, parts.members, streams, first, block, steps, keys)


@compiled_strictly
def latin_keys(
    table: IntArray, members: Indices, streams: Streams, first: int, block: int, steps: IntArray, keys: FloatArray
) -> None:
    """Fill with cyclic shifts of a random order, all shifts before any is repeated."""
    state = np.empty(4, dtype=np.uint64)
    numbers, base = np.empty(keys.shape[3]), np.empty(keys.shape[3], dtype=np.int64)
    for p in range(len(table)):
        layer, row, start, size = table[p, LAYER], table[p, ROW], table[p, START], table[p, SIZE]
        for d in range(keys.shape[2]):
            if d % block == 0:
                seed_state(state, substream(substream(streams[row], first + d // block), table[p, NUMBER]))
            number = d % block % size
            if number == 0:
                for j in range(size):
                    numbers[j] = uniform(state)
                for j in range(size):
                    before = 0
                    for i in range(size):
                        before += numbers[i] < numbers[j] or (numbers[i] == numbers[j] and i < j)
                    base[before] = j
            shift = number * steps[size] % size
            for j in range(size):
                keys[layer, row, d, members[start + j]] = (base[j] + shift) % size


def golden_step(size: int) -> int:
    """Return the number coprime to ``size`` nearest to its golden section: the first few shifts are far apart."""
    middle = round(0.6180339887498949 * size)
    for distance in range(size):
        for step in (middle - distance, middle + distance):
            if 0 < step <= size and gcd(step, size) == 1:
                return step
    return 1


# ---------------------------------------------------------------------- herding


@dataclass(frozen=True)
class Herding(Coupling):
    """A herded design for the bucket sizes, with the items of each bucket relabelled at random.

    All draws of a ranking form one block. Relabelling makes every draw exactly uniform and does not change the quality
    of the design for kernels invariant under relabelling. Only for rankings without free items.
    """

    kernel: FullKernel
    name = "herding"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return the number of draws."""
        return max(1, n_draws)

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams) -> FullRanks:
        """Return coupled draws."""
        from rankernel.completions.herding import herd_ranks  # its pool of candidates is drawn by a coupling

        if (ranks == FREE).any():
            row = int(np.argmax((ranks == FREE).any(axis=1)))
            raise RankingError(
                f"ranking {row} has free items, for which herded draws are not uniform; use ",
                Argument("coupling", "orthogonal"),
            )
        # A random completion maps each item to a position of its bucket; the design ranks these positions.
        position = Iid().draw(ranks, 1, streams)[:, 0]
        draws = np.empty((len(ranks), n_draws, ranks.shape[1]), dtype=np.int16)
        first, shape_of = unique_rows(np.sort(ranks, axis=1))
        for shape, row in enumerate(first):
            design = herd_ranks(np.sort(ranks[row]), self.kernel, n_draws)
            for i in np.flatnonzero(shape_of == shape):
                draws[i] = design[:, position[i]]
        return draws


# ---------------------------------------------------------------------- registry

#: The couplings by name.
COUPLINGS: dict[str, type[Coupling]] = {
    coupling.name: coupling for coupling in (Iid, Antithetic, Orthogonal, Latin, Herding)
}


def coupling_named(name: str, kernel: FullKernel | None = None) -> Coupling:
    """Return the coupling of a name; herding needs a kernel."""
    check_choice("coupling", name, COUPLINGS)
    if name != Herding.name:
        return COUPLINGS[name]()
    if kernel is None:
        raise RankingError(Argument("coupling", name), " chooses draws for a kernel; give ", Argument("kernel", ...))
    return Herding(kernel)
