"""A synthetic election: three blocs of voters, two districts, eight candidates; nobody in it exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import Indices, RankArray
from rankernel._utils.notebook import html_card
from rankernel._utils.rng import Seed, as_generator
from rankernel.data import concat
from rankernel.datasets.around_center import mallows
from rankernel.datasets.by_strength import plackett_luce
from rankernel.datasets.mixtures import mixture
from rankernel.datasets.truncation import truncate
from rankernel.rankings import Rankings, unique_rows

SEED = 2024

CANDIDATES = ("Amberlow", "Brackmoor", "Cindervale", "Driftwell", "Eldermist", "Foxhollow", "Glimmerby", "Hazelmere")

DESCRIPTION = """\
The council election of Nowhere Bay: a synthetic example; the town, its voters and its candidates are invented.
2,400 voters of two districts rank eight candidates and leave out those they do not care about; some rank two
candidates equally. Each voter belongs to one of three blocs, which a real election would not tell: the harbour
(long ballots, Amberlow first), the orchard (short ballots, Eldermist first) and the foundry (ballots of middle length
with ties, Glimmerby first). The north has more harbour voters, the south more foundry voters. Cindervale is the first
choice of few but the second or third of many, and in the bundled draw preferred to each of the others by most."""


class Example(NamedTuple):
    """A synthetic election: one row for each different ballot of a bloc in a district, with its number of voters.

    Attributes
    ----------
    rankings : Rankings
        The ballots; candidates that a voter leaves out share the last place.
    groups : array of str
        The bloc of each row, which the voters' ballots were drawn for: "foundry", "harbour" or "orchard".
    districts : array of str
        The district of each row: "north" or "south".
    description : str
        What this is, in a few sentences.
    """

    rankings: Rankings
    groups: NDArray[np.str_]
    districts: NDArray[np.str_]
    description: str

    def __repr__(self) -> str:
        return f"{self.description}\n{self.rankings}"

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        return html_card(self)


@dataclass(frozen=True)
class Bloc:
    """Voters who think alike: what they would rank, how much of it they write down, how often they tie two."""

    preferences: Callable[..., Rankings]
    lengths: Mapping[int, float]
    tie_share: float

    def __call__(self, n_rankings: int, *, rng: np.random.Generator) -> Rankings:
        """Return the ballots of so many voters of this bloc."""
        full = self.preferences(n_rankings, rng=rng, items=CANDIDATES)
        return tie_some(truncate(full, self.lengths, rng=rng), self.tie_share, rng)


BLOCS = {
    "foundry": Bloc(
        partial(mallows, center=[5, 7, 2, 3, 6, 4, 0, 1], theta=1.0), lengths={2: 0.2, 3: 0.4, 4: 0.4}, tie_share=0.4
    ),
    "harbour": Bloc(
        partial(mallows, center=[0, 1, 2, 3, 5, 4, 7, 6], theta=1.1), lengths={3: 0.3, 5: 0.4, 8: 0.3}, tie_share=0.05
    ),
    "orchard": Bloc(
        partial(plackett_luce, weights=[2, 1, 16, 1, 90, 40, 1, 6]), lengths={1: 0.3, 2: 0.4, 3: 0.3}, tie_share=0.05
    ),
}

# Voters of each district, and how likely they are to be of each bloc.
DISTRICTS = {
    "north": (1100, {"foundry": 0.2, "harbour": 0.5, "orchard": 0.3}),
    "south": (1300, {"foundry": 0.5, "harbour": 0.25, "orchard": 0.25}),
}


def make_example(rng: Seed = SEED) -> Example:
    """Draw the synthetic election again; with the default seed it is the bundled one, of :func:`load_example`.

    Parameters
    ----------
    rng : int or numpy.random.Generator
        Where the randomness comes from.

    Returns
    -------
    Example
        ``rankings``, ``groups``, ``districts`` and ``description``.

    Examples
    --------
    >>> election = make_example(rng=1)
    >>> election.rankings.n_voters
    2400
    >>> voters = election.rankings.counts
    >>> {district: int(voters[election.districts == district].sum()) for district in ("north", "south")}
    {'north': 1100, 'south': 1300}
    """
    names = list(BLOCS)
    polls = [
        mixture(n_voters, list(BLOCS.values()), [blocs[name] for name in names], own)
        for (n_voters, blocs), own in zip(DISTRICTS.values(), as_generator(rng).spawn(2), strict=True)
    ]
    ballots = concat(poll.rankings for poll in polls)
    groups = np.concatenate([poll.labels for poll in polls])
    districts = np.repeat(np.arange(len(DISTRICTS)), [n_voters for n_voters, _ in DISTRICTS.values()])
    rows, counts = counted(np.column_stack([districts, groups, ballots.ranks]).astype(np.int32))
    return Example(
        Rankings(rows[:, 2:], CANDIDATES, counts),
        np.array(names)[rows[:, 1]],
        np.array(list(DISTRICTS))[rows[:, 0]],
        DESCRIPTION,
    )


def tie_some(ballots: Rankings, share: float, rng: np.random.Generator) -> Rankings:
    """Put two neighbouring listed places of some ballots level; a ballot that lists one only has none to tie."""
    n_listed = ballots.n_buckets - 1
    ties = (rng.random(len(ballots)) < share) & (n_listed > 1)
    above = np.floor(rng.random(len(ballots)) * (n_listed - 1)).astype(np.int32)
    last = np.where(ties, above, ballots.n_items)[:, None]
    return Rankings(ballots.ranks - (ballots.ranks > last), ballots.items, ballots.counts)


def counted(rows: RankArray) -> tuple[RankArray, Indices]:
    """Return the different rows and how often each occurs: by the first two columns, then the frequent ones first."""
    first, inverse = unique_rows(rows)
    rows, counts = rows[first], np.bincount(inverse)
    order = np.lexsort((*rows.T[:1:-1], -counts, rows[:, 1], rows[:, 0]))
    return rows[order], counts[order]
