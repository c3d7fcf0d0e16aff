"""A synthetic election with three blocs of voters, two districts and eight candidates, bundled with the package."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import Indices, RankArray
from rankernel._utils.notebook import html_card
from rankernel._utils.rng import Seed, as_generator
from rankernel.data import concat
from rankernel.datasets.simulate import mallows, mixture, plackett_luce, truncate
from rankernel.io.tables import read_csv
from rankernel.rankings import Rankings, unique_rows

SEED = 2024
FILE = "data/nowhere_bay.csv"
TIE = "|"  # between tied candidates in a cell of the file

CANDIDATES = ("Amberlow", "Brackmoor", "Cindervale", "Driftwell", "Eldermist", "Foxhollow", "Glimmerby", "Hazelmere")

DESCRIPTION = """\
The council election of Nowhere Bay: a synthetic example; the town, its voters and its candidates are invented.
2,400 voters of two districts rank eight candidates and leave out those they do not care about; some rank two
candidates equally. Each voter belongs to one of three blocs, which a real election would not tell: the harbour
(long ballots, Amberlow first), the orchard (short ballots, Eldermist first) and the foundry (ballots of middle length
with ties, Glimmerby first). The north has more harbour voters, the south more foundry voters. Cindervale is the first
choice of few but the second or third of many, and wins every head-to-head contest."""


class Example(NamedTuple):
    """The synthetic election: one row for each distinct ballot of a bloc in a district, with its number of voters.

    Attributes
    ----------
    rankings : Rankings
        The ballots; candidates that a voter does not list share the last bucket.
    groups : array of str
        The bloc from which the ballots of each row were drawn: "foundry", "harbour" or "orchard".
    districts : array of str
        The district of each row: "north" or "south".
    description : str
        A description in a few sentences.
    """

    rankings: Rankings
    groups: NDArray[np.str_]
    districts: NDArray[np.str_]
    description: str

    def __repr__(self) -> str:
        return f"{self.description}\n{self.rankings}"

    def _repr_html_(self) -> str:
        """Return the representation in a notebook."""
        return html_card(self)


@dataclass(frozen=True)
class Bloc:
    """A bloc of voters: the model of their full rankings, the lengths of their ballots, and the share with a tie."""

    model: Callable[..., Rankings]
    lengths: Mapping[int, float]
    tie_share: float

    def __call__(self, n_rankings: int, *, rng: np.random.Generator) -> Rankings:
        """Return the ballots of a number of voters of this bloc."""
        full = self.model(n_rankings, rng=rng, items=CANDIDATES)
        return add_ties(truncate(full, self.lengths, rng=rng), self.tie_share, rng)


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

# Number of voters of each district, and the probabilities of the blocs.
DISTRICTS = {
    "north": (1100, {"foundry": 0.2, "harbour": 0.5, "orchard": 0.3}),
    "south": (1300, {"foundry": 0.5, "harbour": 0.25, "orchard": 0.25}),
}


def make_example(*, rng: Seed = SEED) -> Example:
    """Simulate the synthetic election; the default seed gives the bundled one of :func:`load_example`.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        Random generator or its seed.

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
    samples = [
        mixture(n_voters, list(BLOCS.values()), [blocs[name] for name in names], rng=own)
        for (n_voters, blocs), own in zip(DISTRICTS.values(), as_generator(rng).spawn(2), strict=True)
    ]
    ballots = concat(sample.rankings for sample in samples)
    blocs = np.concatenate([sample.components for sample in samples])
    districts = np.repeat(np.arange(len(DISTRICTS)), [n_voters for n_voters, _ in DISTRICTS.values()])
    rows, counts = distinct_rows(np.column_stack([districts, blocs, ballots.ranks]).astype(np.int32))
    return Example(
        Rankings(rows[:, 2:], CANDIDATES, counts=counts),
        np.array(names)[rows[:, 1]],
        np.array(list(DISTRICTS))[rows[:, 0]],
        DESCRIPTION,
    )


def add_ties(ballots: Rankings, share: float, rng: np.random.Generator) -> Rankings:
    """Return the ballots, a share of them with two neighbouring listed candidates tied if they list two."""
    n_listed = ballots.n_buckets - 1
    tied = (rng.random(len(ballots)) < share) & (n_listed > 1)
    above = np.floor(rng.random(len(ballots)) * (n_listed - 1)).astype(np.int32)
    last = np.where(tied, above, ballots.n_items)[:, None]
    return Rankings(ballots.ranks - (ballots.ranks > last), ballots.items, counts=ballots.counts)


def distinct_rows(rows: RankArray) -> tuple[RankArray, Indices]:
    """Return the distinct rows and their counts, sorted by the first two columns, then by decreasing count."""
    first, inverse = unique_rows(rows)
    rows, counts = rows[first], np.bincount(inverse)
    order = np.lexsort((*rows.T[:1:-1], -counts, rows[:, 1], rows[:, 0]))
    return rows[order], counts[order]


def load_example() -> Example:
    """Load the bundled example, a synthetic election of 2,400 voters and eight candidates.

    ``make_example()`` simulates the same rankings; ``description`` describes the simulation.

    Returns
    -------
    Example
        ``rankings``, ``groups``, ``districts`` and ``description``; groups and districts have one entry for each row.

    Examples
    --------
    >>> election = load_example()
    >>> election.rankings[:2]
    Rankings: 2 rankings from 31 voters of 8 items (2 top-k)
      17 × Glimmerby > Hazelmere > {Amberlow, Brackmoor, Cindervale, Driftwell, Eldermist, Foxhollow}
      14 × Glimmerby > Hazelmere > Cindervale > {Amberlow, Brackmoor, Driftwell, Eldermist, Foxhollow}
    >>> voters = election.rankings.counts
    >>> {bloc: int(voters[election.groups == bloc].sum()) for bloc in ("foundry", "harbour", "orchard")}
    {'foundry': 869, 'harbour': 886, 'orchard': 645}
    """
    with as_file(files("rankernel.datasets").joinpath(FILE)) as path:
        ballots = read_csv(
            path,
            layout="positions",
            items=CANDIDATES,
            count="count",
            label_columns=["district", "group"],
            separator=TIE,
            overvotes="tie",
        )
    return Example(ballots[:], ballots.labels["group"], ballots.labels["district"], DESCRIPTION)


def example_csv(example: Example) -> str:
    """Return the content of the bundled file: one column per position, tied candidates in one cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    positions = [f"rank {position}" for position in range(1, len(CANDIDATES) + 1)]
    writer.writerow(["district", "group", "count", *positions])
    voters = example.rankings.counts.tolist()
    for district, group, count, order in zip(
        example.districts, example.groups, voters, example.rankings.to_orders(), strict=True
    ):
        # A last bucket of several candidates holds those that the voter did not list.
        listed = order if isinstance(order[-1], str) else order[:-1]
        cells = [bucket if isinstance(bucket, str) else TIE.join(sorted(bucket)) for bucket in listed]
        writer.writerow([district, group, count, *cells, *[""] * (len(positions) - len(cells))])
    return text.getvalue()
