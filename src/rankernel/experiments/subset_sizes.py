"""The appendix table: how many full rankings agree with a few observed pairs."""

from __future__ import annotations

import numpy as np

from rankernel.experiments import paper_numbers
from rankernel.experiments.experiment import Study
from rankernel.experiments.outcome import Entry, Outcome, Table
from rankernel.rankings import Rankings

PROTOCOL = (
    "Each pair shares an item with the next: 1 > 2, 2 > 3, ...; so p pairs are a chain of p + 1 items, and the other "
    "items are free. The number of completions is n! / (p + 1)!."
)


def run(_: Study) -> Outcome:
    """Return the appendix table, counted here, and whether it agrees."""
    rows: list[tuple[Entry, ...]] = []
    agree = True
    for n_items, printed in paper_numbers.SIZES.items():
        counted = [completions(n_items, pairs) for pairs in range(1, 5)]
        agree = agree and tuple(counted) == printed
        rows.append((n_items, *counted))
    table = Table("subset_sizes", "Completions by items and observed pairs", ("n", *map(str, range(1, 5))), tuple(rows))
    outcome = Outcome("sizes", "Appendix: sizes of the sets of consistent full rankings", [PROTOCOL], [table])
    outcome.findings = [f"All entries {'agree' if agree else 'do NOT agree'} with the paper's."]
    return outcome


def completions(n_items: int, n_pairs: int) -> int | None:
    """Return how many full rankings agree with a chain of pairs, where there are items enough."""
    if n_pairs >= n_items:
        return None
    ranks = np.full((1, n_items), -1, dtype=np.int32)
    ranks[0, : n_pairs + 1] = np.arange(n_pairs + 1)
    return int(Rankings(ranks).n_completions()[0])
