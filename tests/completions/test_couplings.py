"""Couplings: every single draw is uniform, blocks are independent, and each coupling has its stated property."""

import itertools
import math
from collections import Counter
from hashlib import blake2b

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import any_ranking, bucket_orders, sized

from rankernel import MonteCarlo, PlackettLuce, antithetic
from rankernel.completions import draw
from rankernel.completions.draws import COUPLINGS, Orthogonal, Parts, complete, coupling_named
from rankernel.errors import RankingError

EXHAUSTIVE = [(0, 1, 1, 1), (1, 0, 0, 1), (0, 0, 0, 0)]
FREE = [(0, 1, -1, -1), (-1, 0, 0, 1), (-1, -1, -1, -1)]


class MallowsMatrix:
    """The Mallows kernel between full rankings."""

    def __init__(self, nu):
        self.nu = nu

    def matrix(self, X, Y):
        return np.array([[math.exp(-self.nu * naive.kendall(x, y)) for y in Y.tolist()] for x in X.tolist()])


def tuples(array):
    return [tuple(row) for row in np.asarray(array).tolist()]


def mirrored(ranks, full):
    """The involution T: reverse the listed positions, the order of each bucket and that of the free items."""
    n = len(ranks)
    order = sorted(range(n), key=full.__getitem__)
    listed_positions = [ranks[a] >= 0 for a in reversed(order)]
    free = [a for a in reversed(order) if ranks[a] < 0]
    listed = sorted((a for a in order if ranks[a] >= 0), key=lambda a: (ranks[a], -full[a]))
    new = [listed.pop(0) if is_listed else free.pop(0) for is_listed in listed_positions]
    return tuple(new.index(a) for a in range(n))


def chi_square_excess(draws, completions):
    """Return the standardised chi-square statistic for uniform draws."""
    counts = Counter(tuples(draws))
    assert set(counts) <= set(completions)
    expected = len(draws) / len(completions)
    statistic = sum((counts[x] - expected) ** 2 / expected for x in completions)
    freedom = len(completions) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


# ---------------------------------------------------------------------- uniform single draws


def test_reversal_is_uniform():
    """Over all base orders, reversals give every completion equally often."""
    for ranks in EXHAUSTIVE + FREE:
        orders = np.array(list(itertools.permutations(range(4))), dtype=float)
        mirrored_keys = complete(np.array([ranks]), (3 - orders)[None])[0]
        everything = naive.completions(ranks)
        assert Counter(tuples(mirrored_keys)) == {x: 24 // len(everything) for x in everything}


PINNED = {
    "iid": "90300cea839e1475",
    "antithetic": "c9a1002546e62519",
    "orthogonal": "36962d1ef2432006",
}


@pytest.mark.parametrize("coupling", PINNED)
def test_draws_are_pinned(coupling):
    """Draws are the same in every version, and however many are made at once."""
    rows = [[0, 1, 1, 1, 2, 2, 2, 3], [0, -1, 1, 1, -1, -1, 0, 0], [-1] * 8, [0] * 8]
    many = np.tile(rows, (3000, 1))  # several chunks of rankings
    for ranks in (
        draw(rows, 23, coupling=coupling, rng=3).ranks,
        draw(rows, 40_000, coupling=coupling, rng=3).ranks[:, :23],  # several chunks of blocks
        draw(many, 23, coupling=coupling, rng=3).ranks[-4:],
    ):
        assert blake2b(ranks.astype("<i2").tobytes(), digest_size=8).hexdigest() == PINNED[coupling]


def one_bucket_of_keys(coupling, size, n_draws):
    """The keys of one block of draws of a ranking that ties all items."""
    keys = np.empty((2, 1, n_draws, size))
    parts = Parts.of(np.zeros((1, size), dtype=np.int32))
    coupling.fill_keys(parts, np.array([5], dtype=np.uint64), 0, n_draws, keys)
    return keys[0, 0]


CASES = [(r, c) for c in COUPLINGS for r in EXHAUSTIVE + FREE if not (c == "herding" and -1 in r)]


@pytest.mark.parametrize(("ranks", "coupling"), CASES)
def test_every_draw_is_uniform(ranks, coupling):
    kernel = MallowsMatrix(0.3)
    draws = draw([ranks] * 4000, 6, coupling=coupling, kernel=kernel, rows=range(4000)).ranks
    completions = naive.completions(ranks)
    for number in range(6):
        assert abs(chi_square_excess(draws[:, number], completions)) < 5


@pytest.mark.parametrize("coupling", ["iid", "antithetic", "orthogonal"])
def test_mean_positions_of_thirty_items(coupling):
    """Buckets and free items: the mean position of each item, by its standard error."""
    ranks = [0] * 10 + [1] * 10 + [-1] * 10
    draws = draw([ranks] * 500, 60, coupling=coupling, rows=range(500)).ranks
    # The i-th of 20 listed keys has mean i/21, the probability that a free key is smaller.
    exact = np.array([4.5 + 10 * 5.5 / 21] * 10 + [14.5 + 10 * 15.5 / 21] * 10 + [14.5] * 10)
    means = draws.mean(axis=1)
    deviation = means.std(axis=0)
    for item in range(30):
        assert abs(means[:, item].mean() - exact[item]) <= 5 * deviation[item] / math.sqrt(500) + 1e-9


# ---------------------------------------------------------------------- properties of each coupling


@settings(max_examples=30, deadline=None)
@given(sized(any_ranking))
def test_antithetic_pairs_are_reversed(rankings):
    (ranks,) = rankings
    pairs = tuples(draw([ranks], 10, coupling="antithetic").ranks[0])
    assert pairs[1::2] == [mirrored(ranks, full) for full in pairs[::2]]


@settings(max_examples=30, deadline=None)
@given(sized(any_ranking))
def test_reversal_is_an_involution(rankings):
    (ranks,) = rankings
    completions = naive.completions(ranks)
    images = [mirrored(ranks, full) for full in completions]
    assert sorted(images) == sorted(completions)
    assert [mirrored(ranks, full) for full in images] == completions


@settings(max_examples=40, deadline=None)
@given(sized(bucket_orders))
def test_antithetic_pairs_of_bucket_orders_are_farthest(rankings):
    (ranks,) = rankings
    one, two = tuples(draw([ranks], 2, coupling="antithetic").ranks[0])
    assert naive.kendall(one, two) == max(naive.kendall(one, x) for x in naive.completions(ranks))


def test_orthogonal_keys():
    keys = one_bucket_of_keys(Orthogonal(), 20, 38)
    assert np.array_equal(keys[1::2], -keys[::2])
    assert keys.sum(axis=1) == pytest.approx(np.zeros(38), abs=1e-14)
    assert keys[::2] @ keys[::2].T == pytest.approx(np.eye(19), abs=1e-14)


def test_orthogonal_blocks_are_independent():
    draws = draw([[0, 0, 0, 0]] * 2000, 12, coupling="orthogonal", rows=range(2000)).ranks.astype(float) - 1.5
    inside, across = ((draws[:, 0] * draws[:, number]).sum(axis=1) for number in (2, 6))
    assert abs(across.mean()) < 5 * across.std() / math.sqrt(2000)
    assert across.var() > 2 * inside.var()


def test_herded_draws_are_one_relabelled_design():
    ranks = [(0, 1, 1, 1, 1), (1, 1, 0, 1, 1)]
    kernel = MallowsMatrix(0.3)
    draws = draw(ranks, 6, coupling="herding", kernel=kernel)
    grams = [kernel.matrix(rows, rows) for rows in draws.ranks]
    assert np.array_equal(grams[0], grams[1])
    assert draws.block == 6


TOP_ONE, TARGET = (0, 1, 1, 1, 1), (1, 3, 0, 4, 2)


def exact_variances():
    """The variance of the mean kernel of eight draws to one ranking, independent and in antithetic pairs."""
    values = {x: math.exp(-0.2 * naive.kendall(x, TARGET)) for x in naive.completions(TOP_ONE)}
    pairs = [(value + values[mirrored(TOP_ONE, x)]) / 2 for x, value in values.items()]
    return values, np.var(list(values.values())) / 8, np.var(pairs) / 4


def squared_errors(coupling, values):
    draws = draw([TOP_ONE] * 2000, 8, coupling=coupling, kernel=MallowsMatrix(0.2), rows=range(2000)).ranks
    means = np.array([sum(values[x] for x in tuples(rows)) / 8 for rows in draws])
    return (means - np.mean(list(values.values()))) ** 2


@pytest.mark.parametrize(("coupling", "which"), [("iid", 0), ("antithetic", 1)])
def test_variance_of_iid_and_antithetic_draws(coupling, which):
    values, *exact = exact_variances()
    errors = squared_errors(coupling, values)
    assert abs(errors.mean() - exact[which]) < 5 * errors.std() / math.sqrt(len(errors))


@pytest.mark.parametrize("coupling", ["orthogonal", "herding"])
def test_orthogonal_and_herded_draws_have_less_variance(coupling):
    values, _, antithetic = exact_variances()
    errors = squared_errors(coupling, values)
    assert errors.mean() + 5 * errors.std() / math.sqrt(len(errors)) < antithetic


# ---------------------------------------------------------------------- registry and errors


def test_registry():
    for name, kind in COUPLINGS.items():
        assert kind.name == name
        assert f'"{name}"' in MonteCarlo.__doc__
    with pytest.raises(ValueError, match="coupling"):
        coupling_named("sobol")


def test_herding_needs_a_kernel_and_no_free_items():
    with pytest.raises(RankingError, match="kernel="):
        draw([[0, 0, 0]], 3, coupling="herding")
    with pytest.raises(RankingError, match="ranking 1 has free items"):
        draw([[0, 1, 1], [0, -1, 1]], 3, coupling="herding", kernel=MallowsMatrix(0.1))


@pytest.mark.parametrize("coupling", ["antithetic", "orthogonal"])
def test_couplings_need_uniform_completions(coupling):
    with pytest.raises(RankingError, match="coupling='iid'"):
        draw([[0, 0, 0]], 3, coupling=coupling, completions=PlackettLuce([1, 2, 3]))


@pytest.mark.parametrize(("nu", "lower"), [(0.1, True), (3.0, False)])
def test_antithetic_variance_is_lower_for_small_nu_only(nu, lower):
    """Exact variances of 2 x 2 draws of two tied rankings, over all completions."""
    full = naive.completions([0, 0, 0, 0])
    K = np.array([[math.exp(-nu * naive.kendall(a, b)) for b in full] for a in full])
    opposite = [full.index(tuple(3 - rank for rank in a)) for a in full]
    paired = (K + K[opposite] + K[:, opposite] + K[np.ix_(opposite, opposite)]) / 4
    of_row, of_column = K.mean(axis=1).var(), K.mean(axis=0).var()
    independent = of_row / 2 + of_column / 2 + (K.var() - of_row - of_column) / 4
    assert (paired.var() < independent) == lower
    draws = antithetic(full, [[0, 0, 0, 0]]).ranks
    assert [tuple(row) for row in draws.tolist()] == [full[other] for other in opposite]
