"""Exactly uniform linear extensions at any size, by coupling from the past (Huber 2006)."""

from __future__ import annotations

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import Mask
from rankernel.completions.keys import FullRanks


def draw_by_coupling(before: Mask, n_draws: int, rng: np.random.Generator) -> FullRanks:
    """Return uniform linear extensions by coupling from the past, about n^3 log n steps for each."""
    n_items = len(before)
    if n_items == 1:
        return np.zeros((n_draws, 1), dtype=np.int16)
    along = np.argsort(before.sum(axis=0), kind="stable")
    seeds = rng.integers(0, 2**64, size=n_draws, dtype=np.uint64)
    ranks = np.empty((n_draws, n_items), dtype=np.int16)
    ranks[:, along] = _loops.extension_walks.coupled_draws(before[np.ix_(along, along)], seeds, n_items**3)
    return ranks
