"""Partial orders: series-parallel decomposition and the lattice of down-sets."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, gcd, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, FullRanks, Indices, IntArray, Mask, RankArray
from rankernel.errors import ExactnessError, RankingError


def check_relation(before: ArrayLike) -> Mask:
    """Return a relation as a boolean matrix, refusing what is not a closed partial order."""
    relation = np.asarray(before, dtype=bool)
    if relation.ndim != 2 or relation.shape[0] != relation.shape[1] or not len(relation):
        raise RankingError(f"a partial order is a square matrix, before[x, y]; got shape {relation.shape}")
    both = np.argwhere(relation & relation.T)
    if len(both):
        x, y = both[0]
        raise RankingError(f"items {x} and {y} are each before the other; Preferences.from_pairs contracts cycles")
    number = relation.astype(np.float32)
    missing = np.argwhere((number @ number > 0) & ~relation)
    if len(missing):
        x, y = missing[0]
        raise RankingError(
            f"item {x} is before another item that is before item {y}, yet not before {y}; give the transitive closure"
        )
    return relation


@dataclass(frozen=True, eq=False)
class Antichain:
    """Items of which nothing is known."""

    items: Indices


@dataclass(frozen=True, eq=False)
class Prime:
    """Items whose partial order comes apart neither in series nor in parallel."""

    items: Indices
    before: Mask


@dataclass(frozen=True, eq=False)
class Series:
    """Parts of which each stands wholly before the next."""

    items: Indices
    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Parallel:
    """Parts without any relation between them."""

    items: Indices
    parts: tuple[Part, ...]


Part = Antichain | Prime | Series | Parallel


def connected(graph: Mask) -> list[Indices]:
    """Return the connected components of a symmetric relation, each as sorted indices."""
    left = np.ones(len(graph), dtype=bool)
    components = []
    while left.any():
        member = np.zeros(len(graph), dtype=bool)
        front = np.zeros(len(graph), dtype=bool)
        front[np.argmax(left)] = True
        while front.any():
            member |= front
            front = graph[front].any(axis=0) & ~member
        left &= ~member
        components.append(np.flatnonzero(member))
    return components


def in_series(before: Mask) -> list[Indices]:
    """Return the finest split into parts that stand one after the other, first part first."""
    components = connected(~(before | before.T))
    return sorted(components, key=lambda items: int(before[:, items[0]].sum()))


def decompose(before: Mask, items: Indices | None = None) -> Part:
    """Return a partial order as nested series and parallel parts."""
    items = np.arange(len(before)) if items is None else items
    if not before.any():
        return Antichain(items)

    def parts(groups: list[Indices]) -> tuple[Part, ...]:
        return tuple(decompose(before[np.ix_(group, group)], items[group]) for group in groups)

    groups = connected(before | before.T)
    if len(groups) > 1:
        alone = [group for group in groups if len(group) == 1]
        others = [group for group in groups if len(group) > 1]
        return Parallel(items, parts(others + ([np.concatenate(alone)] if alone else [])))
    groups = in_series(before)
    return Series(items, parts(groups)) if len(groups) > 1 else Prime(items, before)


def places(whole: Part, inner: Part) -> Indices:
    """Return where the items of an inner part are among those of the whole; both are sorted."""
    return np.searchsorted(whole.items, inner.items)


MAX_DOWN_SETS = 2_000_000
# Beyond this many down-sets, the lattice costs more time than a dozen draws by coupling from the past, and memory.
FEW_DOWN_SETS = 100_000


def bit_rows(relation: Mask) -> NDArray[np.uint64]:
    """Return each row of a boolean matrix as 64-bit words."""
    n_words = (relation.shape[1] + 63) // 64
    padded = np.zeros((len(relation), 64 * n_words), dtype=bool)
    padded[:, : relation.shape[1]] = relation
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


@dataclass(frozen=True, eq=False)
class DownSets:
    """The lattice of the down-sets of a partial order; its paths from bottom to top are the linear extensions."""

    sets: NDArray[np.uint64]
    start: IntArray
    target: RankArray
    item: NDArray[np.int16]

    @classmethod
    def of(cls, before: Mask, limit: int = MAX_DOWN_SETS) -> DownSets | None:
        """Build the lattice, or return None where it has more than ``limit`` down-sets."""
        predecessors = bit_rows(before.T)
        room = 256
        while True:
            lattice = cls.within(predecessors, min(room, limit))
            if lattice is not None or room >= limit:
                return lattice
            room *= 8

    @classmethod
    def within(cls, predecessors: NDArray[np.uint64], room: int) -> DownSets | None:
        """Build the lattice in arrays of fixed length, or return None where it needs more room."""
        # The lattice is part of a hypercube, so its d down-sets have at most (d / 2) log2 d steps between them.
        most_steps = (room * room.bit_length() + 1) // 2
        sets = np.zeros((room, predecessors.shape[1]), dtype=np.uint64)
        start = np.empty(room + 1, dtype=np.int64)
        target = np.empty(most_steps, dtype=np.int32)
        item = np.empty(most_steps, dtype=np.int16)
        table = np.full(1 << (2 * room).bit_length(), -1, dtype=np.int32)
        n_sets, n_steps = _loops.lattices.lattice(predecessors, sets, start, target, item, table)
        if n_sets < 0:
            return None
        return cls(sets[:n_sets].copy(), start[: n_sets + 1].copy(), target[:n_steps].copy(), item[:n_steps].copy())

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.item.max()) + 1

    def n_paths(self) -> int:
        """Return the exact number of paths, put together from its remainders (Chinese remainder theorem)."""
        number, known = 0, 1
        for modulus in coprime_moduli(factorial(self.n_items)):
            remainder = int(_loops.lattices.n_paths(self.start, self.target, np.uint64(modulus)))
            number += known * ((remainder - number) * pow(known, -1, modulus) % modulus)
            known *= modulus
        return number

    def costs(self, center: NDArray[np.integer[Any]]) -> NDArray[np.int16]:
        """Return how many discordances with the center each step adds."""
        later = bit_rows(center[None, :] > center[:, None])
        costs: NDArray[np.int16] = _loops.lattices.step_costs(self.sets, self.start, self.item, later)
        return costs

    def log_weights(self, costs: NDArray[np.int16], theta: float) -> FloatArray:
        """Return for each down-set the logarithm of the weight of all paths from it to the top."""
        above: FloatArray = _loops.lattices.log_weights_above(self.start, self.target, costs, float(theta))
        return above

    def step_probabilities(self, costs: NDArray[np.int16] | None = None, theta: float = 0.0) -> FloatArray:
        """Return the probability of each step, given where it starts; without costs all paths are equally likely."""
        costs = np.zeros(len(self.target), dtype=np.int16) if costs is None else costs
        above = self.log_weights(costs, theta)
        given: FloatArray = _loops.lattices.step_probabilities(self.start, self.target, costs, float(theta), above)
        return given

    def draw(self, given: FloatArray, n_draws: int, rng: np.random.Generator) -> FullRanks:
        """Return paths, drawn step by step, as rank vectors."""
        uniforms = rng.random((n_draws, self.n_items))
        draws: FullRanks = _loops.lattices.draws(self.start, self.target, self.item, given, uniforms)
        return draws

    def marginals(self, given: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P(item x at position p) and P(item x before item y)."""
        position, pair = _loops.lattices.marginals(self.sets, self.start, self.target, self.item, given)
        return position, pair


def coprime_moduli(bound: int) -> list[int]:
    """Return pairwise coprime numbers just below 2^62 whose product exceeds the bound."""
    moduli: list[int] = []
    candidate = 2**62 - 1
    while prod(moduli) <= bound:
        if all(gcd(candidate, modulus) == 1 for modulus in moduli):
            moduli.append(candidate)
        candidate -= 2
    return moduli


def whole_lattice(before: Mask, limit: int | None = None) -> DownSets:
    """Build the lattice for an exact answer, or say that it does not fit."""
    most = MAX_DOWN_SETS if limit is None else limit
    lattice = DownSets.of(before, most)
    if lattice is None:
        raise ExactnessError(
            f"a part of {len(before)} items has more than {most:,} down-sets, too many for an exact answer; "
            "draw from it instead (draw_extensions is exact at any size)"
        )
    return lattice
