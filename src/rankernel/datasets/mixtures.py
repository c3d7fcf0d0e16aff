"""Mixtures: each ranking comes from one of several sources, and the record keeps from which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rankernel._utils.arrays import Indices
from rankernel._utils.checks import check_integer, check_list, short_repr
from rankernel._utils.notebook import html_card
from rankernel._utils.rng import Seed, as_generator
from rankernel.data import concat
from rankernel.datasets.arguments import draw_by_weight, shares
from rankernel.errors import RankingError
from rankernel.rankings import Rankings


class Component(Protocol):
    """A source of rankings, such as ``functools.partial(mallows, center=10, theta=1)``."""

    def __call__(self, n_rankings: int, /, *, rng: np.random.Generator) -> Rankings:
        """Return as many rankings as asked for."""
        ...


class Mixture(NamedTuple):
    """Rankings, and for each the number of the component that it came from."""

    rankings: Rankings
    labels: Indices

    def __repr__(self) -> str:
        return f"from {len(np.unique(self.labels))} components: {self.rankings}"

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        return html_card(self)


def mixture(
    n_rankings: int, components: Sequence[Component], weights: ArrayLike | None = None, rng: Seed = 0
) -> Mixture:
    r"""Draw rankings from a mixture, :math:`P(r) = \sum_j w_j P_j(r)` with weights that sum to 1.

    Parameters
    ----------
    n_rankings : int
        How many rankings.
    components : sequence of callables
        Each is called as ``component(n_rankings, rng=generator)`` and returns rankings of the same items.
    weights : array of shape (n_components,), optional
        How likely each component is; equally likely if left out. They need not sum to 1.
    rng : int or numpy.random.Generator
        Where the randomness comes from. Each component has a stream of its own.

    Returns
    -------
    Mixture
        ``rankings``, and ``labels``: the number of the component of each ranking.

    Examples
    --------
    >>> from functools import partial
    >>> from rankernel.datasets import mallows
    >>> up, down = (partial(mallows, center=center, theta=50) for center in ([0, 1, 2], [2, 1, 0]))
    >>> rankings, labels = mixture(4, [up, down], weights=[1, 1], rng=3)
    >>> labels
    array([0, 0, 1, 1])
    >>> rankings.ranks
    array([[0, 1, 2],
           [0, 1, 2],
           [2, 1, 0],
           [2, 1, 0]], dtype=int32)
    """
    components = check_list("components", components, "a list of functions that draw rankings")
    if not components or not all(map(callable, components)):
        raise TypeError(
            f"components={short_repr(components)} is not possible; give a list of functions that draw rankings"
        )
    probabilities = shares(np.ones(len(components)) if weights is None else weights, "weights")
    if len(probabilities) != len(components):
        raise RankingError(f"there are {len(components)} components but {len(probabilities)} weights; give one each")
    rng = as_generator(rng)
    labels = draw_by_weight(probabilities, check_integer("n_rankings", n_rankings, 0), rng)
    sizes = np.bincount(labels, minlength=len(components)).tolist()
    streams = rng.spawn(len(components))
    parts = [component(size, rng=own) for component, size, own in zip(components, sizes, streams, strict=True)]
    for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        if len(part) != size:
            raise RankingError(f"component {number} was asked for {size} rankings and returned {len(part)}")
    # The parts stand one behind the other; each row goes to where its label is.
    place = np.argsort(np.argsort(labels, kind="stable"))
    return Mixture(concat(parts)[place], labels)
