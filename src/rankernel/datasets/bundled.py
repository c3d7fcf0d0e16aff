"""The synthetic election as a file of the package: one line for each different ballot of a bloc in a district."""

from __future__ import annotations

import csv
import io
from importlib.resources import as_file, files

from rankernel.datasets.example import CANDIDATES, DESCRIPTION, Example
from rankernel.io.table import read_csv

FILE = "data/nowhere_bay.csv"
TIE = "|"
POSITIONS = tuple(f"rank {place}" for place in range(1, len(CANDIDATES) + 1))


def load_example() -> Example:
    """Load the bundled example, a synthetic election of 2,400 voters and eight candidates.

    The same rankings come from ``make_example()``, which draws them; ``description`` says how they were made up.

    Returns
    -------
    Example
        ``rankings``, ``groups``, ``districts`` and ``description``; groups and districts have one label for each row.

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
            path, items=CANDIDATES, count="count", labels=["district", "group"], separator=TIE, overvotes="tie"
        )
    return Example(ballots[:], ballots.labels["group"], ballots.labels["district"], DESCRIPTION)


def bundled_text(example: Example) -> str:
    """Return the content of the bundled file: what is left out of a ballot is left empty, a tie is one cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["district", "group", "count", *POSITIONS])
    voters = example.rankings.counts.tolist()
    for district, group, count, order in zip(
        example.districts, example.groups, voters, example.rankings.to_orders(), strict=True
    ):
        # A last bucket of several candidates holds those whom the voter left out.
        listed = order if isinstance(order[-1], str) else order[:-1]
        cells = [place if isinstance(place, str) else TIE.join(sorted(place)) for place in listed]
        writer.writerow([district, group, count, *cells, *[""] * (len(POSITIONS) - len(cells))])
    return text.getvalue()
