"""A synthetic election with three blocs of voters, two districts and eight candidates, bundled with the package."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.notebook import html_card
from rankernel.io.layouts import read_csv
from rankernel.rankings import Rankings

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


def load_example() -> Example:
    """Load the bundled example, a synthetic election of 2,400 voters and eight candidates.

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
