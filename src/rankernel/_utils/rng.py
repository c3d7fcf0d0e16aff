"""Seeds: what people give where something is random."""

from __future__ import annotations

import numpy as np

from rankernel._utils.checks import short_repr
from rankernel.errors import RankingError

Seed = int | np.integer | np.random.Generator | None


def as_seed(rng: Seed, name: str = "rng") -> int:
    """Return a seed as a whole number: a generator is drawn from once, None asks the system for fresh entropy.

    Examples
    --------
    >>> as_seed(-1)
    Traceback (most recent call last):
    rankernel.errors.RankingError: rng=-1 is not a seed; give a whole number >= 0, a numpy Generator or None
    """
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if rng is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise RankingError(
            f"{name}={short_repr(rng)} is not a seed; give a whole number >= 0, a numpy Generator or None"
        )
    return int(rng)


def as_generator(rng: Seed) -> np.random.Generator:
    """Return a generator as it is, and one that begins with a seed."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(as_seed(rng))
