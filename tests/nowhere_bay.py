"""The simulation that drew the bundled example, and its file."""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from rankernel import Rankings, concat
from rankernel.datasets import CANDIDATES, DESCRIPTION, TIE, Example, mallows, mixture, plackett_luce, truncate

SEED = 2024


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


def make_example(seed=SEED):
    """Draw the election; the default seed gives the bundled one."""
    names = list(BLOCS)
    samples = [
        mixture(n_voters, list(BLOCS.values()), [blocs[name] for name in names], rng=own)
        for (n_voters, blocs), own in zip(DISTRICTS.values(), np.random.default_rng(seed).spawn(2), strict=True)
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


def add_ties(ballots, share, rng):
    """Return the ballots, a share of them with two neighbouring listed candidates tied if they list two."""
    n_listed = ballots.n_buckets - 1
    tied = (rng.random(len(ballots)) < share) & (n_listed > 1)
    above = np.floor(rng.random(len(ballots)) * (n_listed - 1)).astype(np.int32)
    last = np.where(tied, above, ballots.n_items)[:, None]
    return Rankings(ballots.ranks - (ballots.ranks > last), ballots.items, counts=ballots.counts)


def distinct_rows(rows):
    """Return the distinct rows and their counts, sorted by the first two columns, then by decreasing count."""
    rows, counts = np.unique(rows, axis=0, return_counts=True)
    order = np.lexsort((*rows.T[:1:-1], -counts, rows[:, 1], rows[:, 0]))
    return rows[order], counts[order]


def example_csv(example):
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
