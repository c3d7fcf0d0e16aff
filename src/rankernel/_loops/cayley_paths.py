"""Cycles and paths of a permutation of positions that is random inside one bucket on either side."""

from __future__ import annotations

import numpy as np

from rankernel._loops.compiled import compiled
from rankernel._utils.arrays import IntArray, Mask


@compiled
def cycles_and_returns(target: IntArray, starts_loose: Mask, ends_loose: Mask) -> tuple[int, int]:
    """Return how many cycles are certain, and from how many loose ends the path comes to a loose end again.

    Position p goes to ``target[p]``; which loose start is taken, and where a loose end leads, is random. A path
    breaks off at a loose start; a cycle is certain if nothing on it is loose.
    """
    seen = np.zeros(len(target), dtype=np.bool_)
    n_cycles = n_returns = 0
    for first in range(len(target)):
        is_accurate = not seen[first]
        p = first
        while not seen[p]:
            seen[p] = True
            is_accurate = is_accurate and not starts_loose[p] and not ends_loose[p]
            p = target[p]
        n_cycles += is_accurate
        if ends_loose[first]:
            n_returns += comes_back(first, target, starts_loose, ends_loose)
    return n_cycles, n_returns


@compiled
def comes_back(first: int, target: IntArray, starts_loose: Mask, ends_loose: Mask) -> bool:
    """Say whether the path from a loose end meets a loose end before it meets a loose start."""
    p = first
    while not starts_loose[p]:
        p = target[p]
        if ends_loose[p]:
            return True
    return False
