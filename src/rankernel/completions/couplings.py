"""Couplings of uniform completions: draws of one ranking that depend on each other to reduce the variance of their mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, FullRanks, RankArray
from rankernel._utils.rng import Streams
from rankernel.completions.enumerate import check_n_items
from rankernel.completions.herding import FullKernel, herd_rows
from rankernel.encoding import FREE
from rankernel.errors import RankingError
from rankernel.rankings import unique_rows


def complete(ranks: RankArray, keys: FloatArray) -> FullRanks:
    """Return the completions that keys give: rank vectors of shape (n_rankings, n_draws, n_items).

    Examples
    --------
    Item 0 is before item 1, item 2 is free. The listed keys .9 and .2 change hands, the free .5 stays:

    >>> complete(np.array([[0, 1, -1]]), np.array([[[0.9, 0.2, 0.5]]]))
    array([[[0, 2, 1]]], dtype=int16)
    """
    ranks = np.ascontiguousarray(ranks, dtype=np.int32)
    keys = np.ascontiguousarray(keys, dtype=np.float64)
    if keys.ndim != 3 or keys.shape[::2] != ranks.shape:
        raise RankingError(
            f"keys of shape {keys.shape} do not fit rankings of shape {ranks.shape}; "
            "keys have shape (n_rankings, n_draws, n_items)"
        )
    check_n_items(ranks.shape[1])
    full: FullRanks = _loops.key_draws.complete(ranks, keys)
    return full


class Coupling(ABC):
    """A way to draw several uniform completions of a ranking together."""

    name: ClassVar[str]

    @abstractmethod
    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return how many draws are coupled with each other."""

    @abstractmethod
    def draw(self, ranks: RankArray, n_draws: int, streams: Streams) -> FullRanks:
        """Return draws of shape (n_rankings, n_draws, n_items); the last block may be cut."""


class KeyCoupling(Coupling):
    """A coupling made of keys, by one of the compiled rules."""

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams) -> FullRanks:
        """Return coupled draws."""
        ranks = np.ascontiguousarray(ranks, dtype=np.int32)
        check_n_items(ranks.shape[1])
        rule = getattr(_loops.key_draws, self.name.upper())
        block = self.block_size(ranks.shape[1], n_draws)
        draws: FullRanks = _loops.key_draws.draw(ranks, n_draws, streams, rule, block)
        return draws


@dataclass(frozen=True)
class Iid(KeyCoupling):
    """Independent draws."""

    name = "iid"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return 1: no draw depends on another."""
        return 1


@dataclass(frozen=True)
class Antithetic(KeyCoupling):
    """Pairs: the second draw has the keys 1 - u where the first has u.

    Without free items the second draw reverses every bucket of the first: for top-k lists it is Algorithm 1 of the
    paper, and of all completions the farthest from the first. Free items are mirrored, too: an involution of the
    completions, though not always to the farthest.
    """

    name = "antithetic"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return 2."""
        return 2


@dataclass(frozen=True)
class Orthogonal(KeyCoupling):
    """Keys along plus and minus random orthogonal directions.

    The order of t items is read off a random vector that sums to zero; t - 1 such vectors, orthogonal to each other,
    and their negatives are a block.
    """

    name = "orthogonal"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return 2 (n_items - 1), and at least 2."""
        return max(2, 2 * (n_items - 1))


@dataclass(frozen=True)
class Latin(KeyCoupling):
    """Cyclic shifts: in a full block, each free item and each item of a one-bucket ranking visits every position once.

    Made for the Hamming distance, which sees positions one by one.
    """

    name = "latin"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return the number of items."""
        return max(1, n_items)


@dataclass(frozen=True)
class Herding(Coupling):
    """All draws together: a herded design for the sizes of the buckets, its items renamed at random in each bucket.

    Renaming makes every single draw exactly uniform, and leaves the quality of the design as it is for every kernel to
    which names do not matter. It needs rankings without free items, where renaming reaches all completions.
    """

    kernel: FullKernel
    name = "herding"

    def block_size(self, n_items: int, n_draws: int) -> int:
        """Return the number of draws."""
        return max(1, n_draws)

    def draw(self, ranks: RankArray, n_draws: int, streams: Streams) -> FullRanks:
        """Return coupled draws."""
        if (ranks == FREE).any():
            row = int(np.argmax((ranks == FREE).any(axis=1)))
            raise RankingError(
                f"ranking {row} has free items, where herded draws are not uniform; use coupling='orthogonal'"
            )
        # A random completion sends each item to a place of its bucket; the design then speaks of places.
        places = Iid().draw(ranks, 1, streams)[:, 0]
        draws = np.empty((len(ranks), n_draws, ranks.shape[1]), dtype=np.int16)
        first, shape_of_row = unique_rows(np.sort(ranks, axis=1))
        for shape, row in enumerate(first):
            design = herd_rows(np.sort(ranks[row]), self.kernel, n_draws)
            for i in np.flatnonzero(shape_of_row == shape):
                draws[i] = design[:, places[i]]
        return draws


SIMPLE: dict[str, Coupling] = {one.name: one for one in (Iid(), Antithetic(), Orthogonal(), Latin())}
COUPLINGS = (*SIMPLE, Herding.name)


def coupling_named(name: str, kernel: FullKernel | None = None) -> Coupling:
    """Return the coupling of a name; herding needs the kernel it herds for."""
    if name == Herding.name:
        if kernel is None:
            raise RankingError("coupling='herding' chooses draws for one kernel; give it, as kernel=")
        return Herding(kernel)
    if name not in SIMPLE:
        raise RankingError(f"coupling={name!r} is not known; there are {', '.join(COUPLINGS)}")
    return SIMPLE[name]
