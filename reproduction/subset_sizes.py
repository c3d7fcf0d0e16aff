"""The appendix table: the number of full rankings consistent with a few observed pairs."""

from __future__ import annotations

import numpy as np

from rankernel import Rankings
from reproduction import paper
from reproduction.results import Table
from reproduction.study import Experiment

N_PAIRS = range(1, 5)


class SubsetSizes(Experiment):
    """The appendix table, recomputed."""

    name = "sizes"
    title = "Appendix: number of consistent full rankings"

    def protocol(self) -> list[str]:
        """Return the protocol."""
        chain = "Consecutive pairs share an item, 1 > 2, 2 > 3, ..., so p pairs are a chain of p + 1 items"
        return [f"{chain}; the other items are free. The number of completions is n! / (p + 1)!."]

    def tables(self) -> list[Table]:
        """Return the numbers of completions."""
        rows = [(n_items, *(n_completions(n_items, pairs) for pairs in N_PAIRS)) for n_items in paper.SIZES]
        return [Table("subset_sizes", "Completions by items and observed pairs", ("n", *map(str, N_PAIRS)), rows)]

    def findings(self) -> list[str]:
        """Return whether the paper has the same numbers."""
        agree = all(row[1:] == paper.SIZES[row[0]] for row in self.tables()[0].rows)  # type: ignore[index]
        return [f"All entries {'agree' if agree else 'do NOT agree'} with the paper's."]


def n_completions(n_items: int, n_pairs: int) -> int | None:
    """Return the number of full rankings consistent with a chain of pairs; None if there are too few items."""
    if n_pairs >= n_items:
        return None
    ranks = np.full((1, n_items), -1, dtype=np.int32)
    ranks[0, : n_pairs + 1] = np.arange(n_pairs + 1)
    return int(Rankings(ranks).n_completions()[0])
