"""Random features of the Mallows kernel: products of the signs of random sets of pairs of items."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from rankernel import _loops
from rankernel._utils.arrays import FloatArray, FullRanks, IntArray, Mask
from rankernel._utils.checks import check_integer
from rankernel._utils.rng import Seed, as_seed, stream_key
from rankernel.completions.draws import Uniform, draw
from rankernel.completions.enumerate import enumerate_completions
from rankernel.encoding import Unlisted
from rankernel.gram.blocks import run, slices
from rankernel.gram.poset_rows import PartialOrders, Rows, as_rows
from rankernel.kernels.exponential import Mallows
from rankernel.learn.transformers import RankingTransformer

Words = NDArray[np.uint64]

CHUNK = 2**24  # bits made at once


class MallowsSignFeatures(RankingTransformer):
    r"""Random features of the Mallows kernel, which need no data to be chosen.

    With q = exp(-nu), a set S that holds each pair of items independently with probability (1 - q)/2, and
    :math:`s_e(\sigma) = \pm 1` the order of pair e, :math:`q^{n_d(\sigma, \sigma')} = E_S \prod_{e \in S} s_e(\sigma)
    s_e(\sigma')`: the feature map of Mania et al. (2018), drawn instead of written down. So
    :math:`z_j(\sigma) = D^{-1/2} \prod_{e \in S_j} s_e(\sigma)` for D random sets gives an unbiased estimate
    :math:`\langle z, z' \rangle` of the kernel, with a standard error of at most :math:`D^{-1/2}` between full
    rankings.

    For a partial ranking each feature is its mean over the completions: all of them where there are at most
    ``n_draws``, else over antithetic draws, which add an error of their own. Estimates between two different rankings
    stay unbiased; with draws, that of a ranking with itself is too large by the variance of its mean.

    Parameters
    ----------
    nu : float or "median"
        The width of the kernel; "median" is taken from the training data.
    n_features : int
        The number D of random sets.
    n_draws : int
        Full rankings for each partial one.
    random_state : int or Generator
        The sets, and the draws: those of a ranking depend on this and on the ranking alone.
    unlisted : {"last", "free"}, optional
        What NaN or None in a plain array or frame means: the item is last, or free. Refused if left out.

    Attributes
    ----------
    kernel_ : Mallows
        The kernel that is approximated.
    pair_sets_ : array of shape (n_features, n_words)
        The sets, one bit for each pair.

    Examples
    --------
    >>> features = MallowsSignFeatures(nu=0.1, n_features=4000)
    >>> Z = features.fit_transform([[0, 1, 2, 3], [1, 0, 2, 3], [3, 2, 1, 0]])
    >>> np.round(Z @ Z[0], 1), np.round(np.exp([0, -0.1, -0.6]), 1)
    (array([1. , 0.9, 0.5]), array([1. , 0.9, 0.5]))
    """

    def __init__(
        self,
        nu: float | str = "median",
        n_features: int = 1000,
        n_draws: int = 64,
        random_state: Seed = 0,
        unlisted: Unlisted | None = None,
    ) -> None:
        self.nu = nu
        self.n_features = n_features
        self.n_draws = n_draws
        self.random_state = random_state
        self.unlisted = unlisted

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the sets of pairs."""
        check_integer("n_features", self.n_features)
        check_integer("n_draws", self.n_draws)
        rankings = self._learn_items(X)
        self.kernel_ = cast(Mallows, Mallows(self.nu).resolve(rankings))
        self.seed_ = as_seed(self.random_state, "random_state")
        q = np.exp(-self.kernel_.width)
        rng = np.random.default_rng(int(stream_key(self.seed_, "sets of pairs")))
        self.pair_sets_ = random_pair_sets(self.n_features, rankings.n_items, float(1 - q) / 2, rng)
        self._n_features_out = self.n_features
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the features of rankings: shape (n_rankings, n_features)."""
        data = self._same_items(X)
        first, inverse = data.unique_indices()
        means = self._mean_signs(as_rows(data[first]))
        return np.asarray(means[inverse] / np.sqrt(len(self.pair_sets_)))

    def _mean_signs(self, X: Rows) -> FloatArray:
        out = np.empty((len(X), len(self.pair_sets_)))
        side = max(CHUNK // (64 * self.pair_sets_.shape[1] * self.n_draws), 1)

        def one(rows: slice) -> None:
            full, offsets = some_completions(X[rows], self.n_draws, self.seed_)
            _loops.parities.mean_parities(packed_signs(full), offsets, self.pair_sets_, out[rows])

        run(slices(len(X), side), one, None)
        return out


def random_pair_sets(n_sets: int, n_items: int, probability: float, rng: np.random.Generator) -> Words:
    """Return random sets of pairs of items as rows of bits; every pair is in a set with the same probability."""
    n_pairs = n_items * (n_items - 1) // 2
    side = max(CHUNK // max(n_pairs, 1), 1)
    parts = [words(rng.random((min(side, n_sets - start), n_pairs)) < probability) for start in range(0, n_sets, side)]
    return np.concatenate(parts)


def packed_signs(full: FullRanks) -> Words:
    """Return for each full ranking one bit for each pair a < b of items: 1 if b is before a."""
    packed: Words = _loops.bits.pairs_in_order(-full)
    return packed


def words(bits: Mask) -> Words:
    """Return rows of bits as rows of 64-bit words."""
    n_words = max(-(-bits.shape[1] // 64), 1)
    padded = np.zeros((len(bits), 64 * n_words), dtype=np.bool_)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def some_completions(X: Rows, n_draws: int, seed: int) -> tuple[FullRanks, IntArray]:
    """Return completions of each ranking, all if they are few, and where those of each begin."""
    if isinstance(X, PartialOrders):
        sets = list(X.draw(n_draws, Uniform(), seed).ranks)
        for row in range(len(X)):
            if X[row : row + 1].has_at_most(n_draws):
                sets[row] = X[row : row + 1].all_completions(n_draws)[0]
    else:
        few = np.array([number <= n_draws for number in X.n_completions()])
        sets = [enumerate_completions(row) if is_few else row for row, is_few in zip(X.ranks, few, strict=True)]
        if not few.all():
            drawn = draw(X[~few], n_draws, coupling="antithetic", rng=seed).ranks
            for row, draws in zip(np.flatnonzero(~few).tolist(), drawn, strict=True):
                sets[row] = draws
    sizes = [len(full) for full in sets]
    return np.concatenate(sets), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
