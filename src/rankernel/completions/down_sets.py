"""The lattice of the down-sets of a partial order, on which linear extensions are counted, drawn and averaged over."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, IntArray, Mask, RankArray
from rankernel.completions.keys import FullRanks
from rankernel.errors import ExactnessError

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
