"""Truncation: what is left of rankings when each voter lists only the first few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankernel._utils.arrays import IntArray
from rankernel._utils.checks import check_array, check_integer, check_numbers, short_repr
from rankernel._utils.rng import Seed, as_generator
from rankernel.datasets.arguments import draw_by_weight, shares
from rankernel.encoding import Unlisted
from rankernel.errors import RankingError
from rankernel.rankings import Rankings, as_rankings


def truncate(
    rankings: Any, lengths: int | ArrayLike | Mapping[int, float], rng: Seed = 0, unlisted: Unlisted = "last"
) -> Rankings:
    """Cut each ranking to its own first k places, as :meth:`Rankings.top` does for one k.

    Parameters
    ----------
    rankings : Rankings or array of ranks
        What to cut. A row that stands for several voters is cut once, for all of them.
    lengths : int, array of shape (n_rankings,), or mapping
        One length for all rows, one for each, or the probability of each length, such as ``{1: 0.2, 3: 0.8}``,
        from which every row draws its own.
    rng : int or numpy.random.Generator
        Where the randomness comes from, if lengths are drawn.
    unlisted : {"last", "free"}
        Whether the items behind the cut share one last bucket, or nothing is known of them.

    Returns
    -------
    Rankings
        As many rankings, with the same counts.

    Examples
    --------
    >>> truncate([[0, 1, 2, 3], [3, 2, 1, 0]], lengths=[1, 2])
    Rankings: 2 rankings of 4 items (2 top-k)
      0 > {1, 2, 3}
      3 > 2 > {0, 1}
    """
    given = as_rankings(rankings)
    places = lengths_of(lengths, len(given), as_generator(rng))
    ranks = np.array(given.ranks)
    # Few lengths occur; one call for each leaves the meaning of a cut (ties, free items) to Rankings.top.
    for k in np.unique(places).tolist():
        rows = places == k
        ranks[rows] = given[rows].top(k, unlisted).ranks
    return Rankings._trusted(ranks, given.items, given.counts)


def lengths_of(lengths: Any, n_rankings: int, rng: np.random.Generator) -> IntArray:
    """Return one length for each ranking."""
    if isinstance(lengths, Mapping):
        choices = np.array([check_integer("lengths", k, 0) for k in lengths], dtype=np.int64)
        return choices[draw_by_weight(shares(list(lengths.values()), "lengths"), n_rankings, rng)]
    given = check_array("lengths", lengths, "one length for all rankings, or one for each")
    if given.ndim == 0:
        return np.full(n_rankings, check_integer("lengths", given.item(), 0), dtype=np.int64)
    if given.shape != (n_rankings,):
        raise RankingError(
            f"lengths has shape {given.shape} but there are {n_rankings} rankings; give one length for each, one for "
            "all, or a mapping from lengths to probabilities"
        )
    places = check_numbers("lengths", given, (n_rankings,), 0)
    if (places != np.floor(places)).any():
        raise RankingError(f"lengths={short_repr(lengths)} is not possible; a length is a whole number")
    return places.astype(np.int64)
