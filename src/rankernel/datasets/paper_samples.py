"""The synthetic data on which the paper tests whether two samples of rankings differ."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from rankernel._utils.checks import check_integer
from rankernel._utils.rng import Seed, as_generator
from rankernel.datasets.around_center import mallows
from rankernel.datasets.mixtures import mixture
from rankernel.datasets.uniform import uniform
from rankernel.rankings import Rankings


class TwoSample(NamedTuple):
    """Two sets of rankings of the same items."""

    P: Rankings
    Q: Rankings


def paper_two_sample(n_rankings: int, n_items: int = 10, k: int = 3, rng: Seed = 0) -> TwoSample:
    r"""Draw the two samples of the paper's two-sample test, cut to top-k lists.

    P is an equal mixture of two Mallows models, one with Kendall's distance around the identity and one with Hamming's
    distance around its reverse, both with theta = 1; Q is uniform. The paper describes the data with 6 items and runs
    its test with 10 items and k = 3, which are the defaults here.

    Parameters
    ----------
    n_rankings : int
        How many rankings, in P and again in Q.
    n_items, k : int
        Number of items, and how many places of each ranking are kept.
    rng : int or numpy.random.Generator
        Where the randomness comes from. P and Q have a stream each.

    Returns
    -------
    TwoSample
        ``P`` and ``Q``.

    Examples
    --------
    In Q every item comes first with probability 0.1. In P item 0 does with probability 0.36: with 0.63 around the
    identity, where it is 1 / (1 + q + ... + q^9) for q = exp(-1), and with 0.08 around the reverse.

    >>> P, Q = paper_two_sample(50_000, rng=1)
    >>> [round(float((sample.ranks[:, 0] == 0).mean()), 2) for sample in (P, Q)]
    [0.36, 0.1]
    """
    size = check_integer("n_items", n_items)
    for_p, for_q = as_generator(rng).spawn(2)
    forwards = partial(mallows, center=size, theta=1.0, distance="kendall")
    backwards = partial(mallows, center=np.arange(size)[::-1], theta=1.0, distance="hamming")
    P = mixture(n_rankings, [forwards, backwards], rng=for_p).rankings
    Q = uniform(n_rankings, size, rng=for_q)
    return TwoSample(P.top(k), Q.top(k))
