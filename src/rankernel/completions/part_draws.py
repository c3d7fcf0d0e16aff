"""Uniform linear extensions, drawn part by part: series are concatenated, parallel parts shuffled.

What comes apart no further is drawn on its lattice of down-sets or, where that is too large, by coupling from the past.
"""

from __future__ import annotations

import numpy as np

from rankernel._utils.arrays import Mask
from rankernel.completions.coupling_from_the_past import draw_by_coupling
from rankernel.completions.decomposition import Antichain, Parallel, Part, Prime, Series, places
from rankernel.completions.down_sets import FEW_DOWN_SETS, DownSets, whole_lattice
from rankernel.completions.keys import FullRanks


def draw_part(part: Part, n_draws: int, rng: np.random.Generator, method: str) -> FullRanks:
    """Return draws of a part, as ranks among its own items."""
    match part:
        case Antichain(items):
            return random_permutations(n_draws, len(items), rng)
        case Series():
            return draw_series(part, n_draws, rng, method)
        case Parallel():
            return draw_parallel(part, n_draws, rng, method)
        case Prime(_, before):
            return draw_prime(before, n_draws, rng, method)


def draw_prime(before: Mask, n_draws: int, rng: np.random.Generator, method: str) -> FullRanks:
    """Return draws of a part that has to be walked: on its lattice, or by coupling from the past."""
    lattice = None
    if method == "down-sets":
        lattice = whole_lattice(before)
    elif method == "auto":
        lattice = DownSets.of(before, FEW_DOWN_SETS)
    if lattice is None:
        return draw_by_coupling(before, n_draws, rng)
    return lattice.draw(lattice.step_probabilities(), n_draws, rng)


def random_permutations(n_draws: int, n_items: int, rng: np.random.Generator) -> FullRanks:
    """Return uniform permutations, one a row."""
    return rng.permuted(np.tile(np.arange(n_items, dtype=np.int16), (n_draws, 1)), axis=1)


def draw_series(part: Series, n_draws: int, rng: np.random.Generator, method: str) -> FullRanks:
    """Return draws of the parts, one after the other."""
    ranks = np.empty((n_draws, len(part.items)), dtype=np.int16)
    n_before = 0
    for inner in part.parts:
        ranks[:, places(part, inner)] = n_before + draw_part(inner, n_draws, rng, method)
        n_before += len(inner.items)
    return ranks


def draw_parallel(part: Parallel, n_draws: int, rng: np.random.Generator, method: str) -> FullRanks:
    """Return draws of the parts, shuffled: every way to deal the positions to the parts is equally likely."""
    ranks = np.empty((n_draws, len(part.items)), dtype=np.int16)
    dealt = random_permutations(n_draws, len(part.items), rng)
    for inner in part.parts:
        hand, dealt = dealt[:, : len(inner.items)], dealt[:, len(inner.items) :]
        inside = draw_part(inner, n_draws, rng, method)
        ranks[:, places(part, inner)] = np.take_along_axis(np.sort(hand, axis=1), inside.astype(np.intp), axis=1)
    return ranks
