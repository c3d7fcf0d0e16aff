"""The ranking nearest to the mean of many in the space of a kernel: the pre-image of a mean embedding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._utils.checks import check_integer
from rankernel._utils.rng import Seed, as_seed
from rankernel.data import voters
from rankernel.kernels import as_kernel
from rankernel.kernels.base import Kernel
from rankernel.models.aggregation import MOST_ITEMS, estimated_users, mean_of_seen
from rankernel.models.decoding import Decoder
from rankernel.rankings import Rankings


@dataclass(frozen=True, eq=False)
class KernelConsensus:
    """The full ranking nearest to the mean of many.

    Attributes
    ----------
    ranking : Rankings
        The ranking: one row.
    distance2 : float
        The square of its distance from the mean embedding of all voters.
    gap : float
        By how much another ranking could have less at most; 0 where it is proven that none has, nan where the mean
        embedding itself is an estimate.
    details : str
        How it was found, in words.
    """

    ranking: Rankings
    distance2: float
    gap: float
    details: str

    @property
    def exact(self) -> bool:
        """Whether it is proven that no ranking is nearer."""
        return self.gap == 0


def kernel_consensus(
    X: Any, kernel: Kernel | str, limit: int = 20, n_starts: int = 10, rng: Seed = 0
) -> KernelConsensus:
    r"""Return the full ranking nearest to the mean of all voters in the space of a kernel.

    It minimises :math:`\| \phi(\sigma) - \frac1N \sum_i \phi(R_i) \|^2`, where a partial ranking has the mean embedding
    :math:`\phi(R)` of its completions. With Kendall that is the Kemeny order, with Spearman the Borda order, with
    Hamming or another positional kernel an assignment of items to places: with :class:`RankBiasedOverlap` the ranking
    whose top is most like everybody's. Where several rankings are equally near, as behind the depth of an overlap,
    items stand in the order of their mean places.

    Parameters
    ----------
    X : Rankings, Preferences or array of ranks
        Rankings of any kind, each counted as often as it was given. Where the completions of a user's preferences are
        too many to be counted, the mean is that of 1,000 draws.
    kernel : Kernel or str
        A multiple of Kendall, Spearman, Hamming or any positional kernel, or a sum of positional kernels.
    limit : int
        With Kendall: the most items of a majority cycle to be solved exactly, up to 26.
    n_starts : int
        With Kendall: how many local searches on longer ones.
    rng : int, Generator or None
        Decides where these start.

    Examples
    --------
    >>> from rankernel import RankBiasedOverlap, Spearman
    >>> lists = Rankings.from_orders([["a", "b", "c", "d"], ["b", "c", "d", "a"]], counts=[5, 4])
    >>> kernel_consensus(lists, RankBiasedOverlap(0.5)).ranking.to_orders()  # most have a first
    [['a', 'b', 'c', 'd']]
    >>> kernel_consensus(lists, Spearman()).ranking.to_orders()  # b is never far behind
    [['b', 'a', 'c', 'd']]
    """
    kernel, rankings = as_kernel(kernel), voters(X)
    check_integer("limit", limit, 1, MOST_ITEMS)
    check_integer("n_starts", n_starts)
    own_seed = int(np.random.default_rng(as_seed(rng)).integers(2**32))
    decoder = Decoder(kernel, rankings.n_items, limit, n_starts, own_seed)
    mean = mean_of_seen(rankings, decoder.sees)[None]
    found = decoder.decode(mean)
    own = kernel.matrix(found.ranks, found.ranks).item()
    distance2 = own - 2 * float(found.values[0]) + float(decoder.products(mean, mean)[0])
    gap, estimated = 2 * float(found.gaps[0]), estimated_users(rankings)
    if estimated:
        gap, proven = math.nan, f"NOT proven nearest: embeddings of {estimated}"
    elif gap:
        proven = f"NOT proven nearest: local search, cycles over {limit} items"
    else:
        proven = "proven nearest"
    ranking = Rankings._trusted(found.ranks, rankings.items)
    return KernelConsensus(ranking, distance2, gap, f"{decoder.how}, {proven}")
