"""Who is ahead: what voters say of every two items, who wins, and the order that contradicts them least.

Nothing is divided: a voter who ties two items, or says nothing of one of them, is undecided between the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray, Mask
from rankernel.data import Data, pairwise_wins
from rankernel.models.kemeny_search import kemeny_order, next_best_order

LIMIT = 16  # items of a majority cycle for which the best orders are proven
STARTS = 3  # of a search for the order of longer ones
MANY = 100  # items, of which one search has to do
SHORTEST = 3  # items of a circle


@dataclass(frozen=True, eq=False)
class Majorities:
    """What the voters say of every two items."""

    n_voters: int
    ahead: IntArray  # (n_items, n_items): how many put one item before another

    @property
    def undecided(self) -> IntArray:
        """How many put neither of two items before the other."""
        return np.asarray(self.n_voters - self.ahead - self.ahead.T)

    @property
    def any_undecided(self) -> bool:
        """Whether someone is undecided between two different items."""
        return bool(np.triu(self.undecided, 1).any())

    @property
    def beats(self) -> Mask:
        """Which items beat which among those who say."""
        return np.asarray(self.ahead > self.ahead.T)

    @property
    def winner(self) -> int | None:
        """The item that beats every other one, if there is such an item (Condorcet)."""
        winners = np.flatnonzero(self.beats.sum(axis=1) == len(self.ahead) - 1)
        return int(winners[0]) if len(winners) else None

    @property
    def unbeaten(self) -> Indices:
        """The items that lose to none: those that do not beat every other one are level with some."""
        return np.flatnonzero(~self.beats.any(axis=0))

    def level_with(self, item: int) -> Indices:
        """Return the items that an item neither beats nor loses to."""
        level = ~self.beats[item] & ~self.beats[:, item]
        level[item] = False
        return np.flatnonzero(level)

    def smith_set(self) -> Indices:
        """Return the smallest set of items that each beat all items outside of it.

        Whoever wins most duels, a draw counting one half, is in it, and so is whoever one of its items does not beat.
        """
        beats = self.beats
        inside = np.zeros(len(beats), dtype=bool)
        inside[np.argmax(beats.sum(axis=1) - beats.sum(axis=0))] = True
        while (joining := ~beats[inside].all(axis=0) & ~inside).any():
            inside |= joining
        return np.flatnonzero(inside)

    def cycle(self) -> list[int]:
        """Return the shortest circle of items in the Smith set that beat one another in turn, empty if there is none.

        Where no item is unbeaten there is one: each of them loses to another.
        """
        best = self.smith_set()
        found: list[int] = []
        beats = self.beats[np.ix_(best, best)]
        for start in range(len(best)):
            circle = shortest_circle(beats, start)
            if circle and (not found or len(circle) < len(found)):
                found = circle
            if len(found) == SHORTEST:
                break
        return [int(best[place]) for place in found]


@dataclass(frozen=True, eq=False)
class BestOrder:
    """The order that contradicts voters least (Kemeny), and how close the next best comes."""

    order: Indices  # the best item first
    exact: bool  # whether it is proven that none is better
    next_order: Indices | None  # None where there is only one item
    excess: int  # how many more times the next best contradicts a voter
    contradicted: float  # the share of all that voters say of two items that the order contradicts


def shortest_circle(beats: Mask, start: int) -> list[int]:
    """Return the shortest circle through one item, empty if there is none: all items are reached step by step."""
    reached_from = np.full(len(beats), -1)
    reached = np.array([start])
    while len(reached):
        closing = reached[beats[reached, start]]
        if len(closing):
            path = [int(closing[0])]
            while path[-1] != start:
                path.append(int(reached_from[path[-1]]))
            return path[::-1]
        new = np.flatnonzero(beats[reached].any(axis=0) & (reached_from < 0))
        reached_from[new] = reached[beats[np.ix_(reached, new)].argmax(axis=0)]
        reached = new
    return []


def count_majorities(rankings: Data) -> Majorities:
    """Return what voters say of every two items."""
    return Majorities(rankings.n_voters, pairwise_wins(rankings))


def find_best_order(majorities: Majorities, seed: int) -> BestOrder:
    """Return the order that contradicts voters least, and the next best."""
    shares: FloatArray = 0.5 + (majorities.ahead - majorities.ahead.T) / (2 * majorities.n_voters)
    n_starts = STARTS if len(shares) <= MANY else 1
    found = kemeny_order(shares, LIMIT, n_starts, np.random.default_rng([seed, 3]), majorities.n_voters)
    said = int(majorities.ahead.sum())
    against = int(np.tril(majorities.ahead[np.ix_(found.order, found.order)], -1).sum())
    other = next_best_order(shares, found.order, LIMIT)
    excess = 0 if other is None else int(np.tril(majorities.ahead[np.ix_(other, other)], -1).sum()) - against
    return BestOrder(found.order, found.exact, other, excess, against / max(said, 1))
