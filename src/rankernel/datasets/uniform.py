"""Uniform full rankings: no order is likelier than another."""

from __future__ import annotations

from collections.abc import Iterable

from rankernel._utils.checks import check_integer
from rankernel._utils.rng import Seed, as_generator
from rankernel.datasets.arguments import draw_permutations, named
from rankernel.rankings import Rankings


def uniform(n_rankings: int, n_items: int, rng: Seed = 0, items: Iterable[object] | None = None) -> Rankings:
    r"""Draw full rankings from the uniform distribution, :math:`P(r) = 1 / n!`.

    Parameters
    ----------
    n_rankings, n_items : int
        How many rankings, of how many items.
    rng : int or numpy.random.Generator
        Where the randomness comes from; the same number gives the same rankings.
    items : iterable of names, optional
        Names of the items; numbers from 0 if left out.

    Returns
    -------
    Rankings
        ``n_rankings`` full rankings.

    Examples
    --------
    >>> rankings = uniform(60_000, 3, rng=0)
    >>> sorted(round(count / 10_000, 1) for count in rankings.unique().counts.tolist())
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    names = named(items, check_integer("n_items", n_items))
    ranks = draw_permutations(check_integer("n_rankings", n_rankings, 0), n_items, as_generator(rng))
    return Rankings._trusted(ranks, names)
