"""Rankings as ballots are written: what a voter lists, and nothing behind."""

from __future__ import annotations

import numpy as np

from rankernel.errors import RankingError
from rankernel.rankings import Rankings


def listed_buckets(rankings: Rankings, where: str) -> list[list[list[int]]]:
    """Return the items that each ranking lists, best first, by their numbers from 0.

    Where no ranking has free items, a last bucket of several items is where a ballot ends: read with
    ``unlisted="last"``, it comes back. Otherwise all that is listed is there, and comes back with ``unlisted="free"``.
    A ranking that lists nobody is refused.
    """
    exhaustive = rankings.is_exhaustive()
    nothing = (rankings.n_buckets < 2) & (rankings.n_items > 1) if exhaustive else rankings.n_buckets == 0
    if nothing.any():
        row = int(np.argmax(nothing))
        raise RankingError(f"ranking {row} lists nobody, which {where} does not keep; leave it out first")
    number = {name: place for place, name in enumerate(rankings.items)}
    found = []
    for order in rankings.to_orders():
        buckets = [sorted(number[name] for name in ([b] if isinstance(b, str) else b)) for b in order]
        found.append(buckets[:-1] if exhaustive and len(buckets[-1]) > 1 else buckets)
    return found
