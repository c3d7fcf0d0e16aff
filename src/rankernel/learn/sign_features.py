"""Random features of the Mallows kernel: products of the signs of random sets of pairs of items."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from rankernel._loops.bits import pairs_in_order, popcount
from rankernel._loops.compiled import compiled
from rankernel._utils.arrays import FloatArray, FullRanks, IntArray, Mask
from rankernel._utils.checks import check_integer
from rankernel._utils.rng import Seed, as_seed, stream_key
from rankernel.completions.draws import Uniform, draw
from rankernel.completions.enumerate import enumerate_completions
from rankernel.encoding import Unlisted
from rankernel.gram.blocks import run, slices
from rankernel.gram.poset_rows import PartialOrders, Rows, as_rows
from rankernel.kernels.exponential import Mallows
from rankernel.learn.estimators import RankingTransformer

Words = NDArray[np.uint64]

BITS = 2**24  # processed at once, so that temporary arrays stay small


class MallowsSignFeatures(RankingTransformer):
    r"""Random features of the Mallows kernel that do not depend on the data.

    With q = exp(-nu), a random set S that contains each pair of items independently with probability (1 - q)/2, and
    :math:`s_e(\sigma) = \pm 1` the order of pair e, :math:`q^{n_d(\sigma, \sigma')} = E_S \prod_{e \in S} s_e(\sigma)
    s_e(\sigma')` (Mania et al. 2018). So :math:`z_j(\sigma) = D^{-1/2} \prod_{e \in S_j} s_e(\sigma)` for D random sets
    give an unbiased estimate :math:`\langle z, z' \rangle` of the kernel, with a standard error of at most
    :math:`D^{-1/2}` between full rankings.

    For a partial ranking each feature is averaged over its completions: over all of them if there are at most
    ``n_draws``, else over antithetic draws. Estimates between different rankings remain unbiased; with draws, those
    between a ranking and itself are biased upwards by the variance of the mean.

    Parameters
    ----------
    nu : float or "median"
        The decay rate of the kernel; "median" is resolved from the training data.
    n_features : int
        The number D of random sets.
    n_draws : int
        The number of completions drawn for each partial ranking.
    random_state : int, Generator or None
        Seed of the sets and of the draws. The draws of a ranking depend on nothing else.
    unlisted : {"last", "free"}, optional
        Meaning of NaN or None in a plain array or data frame: the item is last, or free. By default an error.

    Attributes
    ----------
    kernel_ : Mallows
        The approximated kernel.
    pair_sets_ : array of shape (n_features, n_words)
        The sets, one bit for each pair of items a < b, in the order of ``np.triu_indices``.

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
        *,
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
        """Draw the sets of pairs; ``y`` is ignored."""
        check_integer("n_features", self.n_features)
        check_integer("n_draws", self.n_draws)
        rankings = self._fit_items(X)
        self.kernel_ = cast(Mallows, Mallows(self.nu).resolve(rankings))
        self.seed_ = as_seed(self.random_state, "random_state")
        q = np.exp(-float(self.kernel_.nu))
        rng = np.random.default_rng(int(stream_key(self.seed_, "sets of pairs")))
        self.pair_sets_ = random_pair_sets(self.n_features, rankings.n_items, float(1 - q) / 2, rng)
        self._n_features_out = self.n_features
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the features of rankings: shape (n_rankings, n_features)."""
        data = self._match_items(X)
        first, inverse = data.unique_indices()
        rows = as_rows(data[first])
        means = np.empty((len(rows), self.n_features))

        def fill(block: slice) -> None:
            full, offsets = sample_completions(rows[block], self.n_draws, self.seed_)
            reversed_pairs = pairs_in_order(-full)
            mean_parities(reversed_pairs, offsets, self.pair_sets_, means[block])

        run(slices(len(rows), max(BITS // (64 * self.pair_sets_.shape[1] * self.n_draws), 1)), fill, None)
        return np.asarray(means[inverse] / np.sqrt(self.n_features))


def random_pair_sets(n_sets: int, n_items: int, probability: float, rng: np.random.Generator) -> Words:
    """Return random sets of pairs of items as rows of bits; each pair is in a set with the same probability."""
    n_pairs = n_items * (n_items - 1) // 2
    step = max(BITS // max(n_pairs, 1), 1)
    parts = [pack(rng.random((min(step, n_sets - start), n_pairs)) < probability) for start in range(0, n_sets, step)]
    return np.concatenate(parts)


def pack(bits: Mask) -> Words:
    """Return rows of bits as rows of 64-bit words."""
    n_words = max(-(-bits.shape[1] // 64), 1)
    padded = np.zeros((len(bits), 64 * n_words), dtype=np.bool_)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def sample_completions(X: Rows, n_draws: int, seed: int) -> tuple[FullRanks, IntArray]:
    """Return completions of each ranking, all if there are at most ``n_draws``, and the offsets of the rankings."""
    if isinstance(X, PartialOrders):
        samples = list(X.draw(n_draws, Uniform(), seed).ranks)
        for row in range(len(X)):
            if X[row : row + 1].has_at_most(n_draws):
                samples[row] = X[row : row + 1].all_completions(n_draws)[0]
    else:
        few = np.array([number <= n_draws for number in X.n_completions()])
        samples = [enumerate_completions(row) if is_few else row for row, is_few in zip(X.ranks, few, strict=True)]
        if not few.all():
            drawn = draw(X[~few], n_draws, coupling="antithetic", rng=seed).ranks
            for row, draws in zip(np.flatnonzero(~few).tolist(), drawn, strict=True):
                samples[row] = draws
    sizes = [len(full) for full in samples]
    return np.concatenate(samples), np.cumsum([0, *sizes])


@compiled
def mean_parities(signs: Words, offsets: IntArray, pair_sets: Words, out: FloatArray) -> None:
    """Fill ``out[i, j]`` with the mean over rankings ``offsets[i]:offsets[i + 1]`` of the product of signs in set j.

    Rows of ``signs`` have a bit for each pair in reversed order, rows of ``pair_sets`` for each pair in the set.
    """
    n_words = signs.shape[1]
    for i in range(out.shape[0]):
        start, stop = offsets[i], offsets[i + 1]
        for j in range(out.shape[1]):
            odd = np.int64(0)
            for k in range(start, stop):
                word = np.uint64(0)
                for w in range(n_words):
                    word ^= signs[k, w] & pair_sets[j, w]
                odd += np.int64(popcount(word) & np.uint64(1))
            out[i, j] = 1.0 - 2.0 * odd / (stop - start)
