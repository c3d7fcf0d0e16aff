"""The appendix table: how many full rankings agree with a few observed pairs."""

from __future__ import annotations

import numpy as np

from rankernel.rankings import Rankings
from reproduction import paper_numbers
from reproduction.experiment import Experiment
from reproduction.outcome import Table

PAIRS = range(1, 5)


class SubsetSizes(Experiment):
    """The appendix table, counted here, and whether it agrees."""

    name = "sizes"
    title = "Appendix: sizes of the sets of consistent full rankings"

    def protocol(self) -> list[str]:
        """Return what was counted."""
        pairs = "Each pair shares an item with the next: 1 > 2, 2 > 3, ...; so p pairs are a chain of p + 1 items, and"
        return [f"{pairs} the other items are free. The number of completions is n! / (p + 1)!."]

    def tables(self) -> list[Table]:
        """Return the numbers of completions."""
        rows = [(n_items, *(completions(n_items, pairs) for pairs in PAIRS)) for n_items in paper_numbers.SIZES]
        return [Table("subset_sizes", "Completions by items and observed pairs", ("n", *map(str, PAIRS)), rows)]

    def findings(self) -> list[str]:
        """Return whether the paper's numbers are the same."""
        agree = all(row[1:] == paper_numbers.SIZES[row[0]] for row in self.tables()[0].rows)  # type: ignore[index]
        return [f"All entries {'agree' if agree else 'do NOT agree'} with the paper's."]


def completions(n_items: int, n_pairs: int) -> int | None:
    """Return how many full rankings agree with a chain of pairs, where there are items enough."""
    if n_pairs >= n_items:
        return None
    ranks = np.full((1, n_items), -1, dtype=np.int32)
    ranks[0, : n_pairs + 1] = np.arange(n_pairs + 1)
    return int(Rankings(ranks).n_completions()[0])
