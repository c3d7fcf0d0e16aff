"""Seeds: what people give where something is random."""

from __future__ import annotations

import numpy as np

from rankernel.checks import shown
from rankernel.errors import RankingError

Seed = int | np.integer | np.random.Generator | None


def as_seed(seed: Seed, name: str = "seed") -> int:
    """Return a seed as a whole number: a generator is drawn from once, None asks the system for fresh entropy.

    Examples
    --------
    >>> as_seed(-1)
    Traceback (most recent call last):
    rankernel.errors.RankingError: seed=-1 is not a seed; give a whole number >= 0, a numpy Generator or None
    """
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise RankingError(f"{name}={shown(seed)} is not a seed; give a whole number >= 0, a numpy Generator or None")
    return int(seed)


def as_generator(seed: Seed) -> np.random.Generator:
    """Return a generator as it is, and one that begins with a seed."""
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(as_seed(seed))
