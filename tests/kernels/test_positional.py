"""Positional kernels: members of the family, overlaps by their definitions, and features."""

import itertools
import math
import pickle
import subprocess
import sys
from functools import cache

import naive
import numpy as np
import pytest
from scipy.sparse import vstack
from sklearn.gaussian_process import GaussianProcessRegressor

import rankernel as rk
from rankernel.gram.exact.features import LinearEvaluator, PositionalEvaluator, linear_evaluator, mean_statistics
from rankernel.kernels.positional import PositionalKernel

ROWS = [
    (0, 1, 2, 3, 4),
    (3, 0, 3, 1, 2),
    (1, 0, 2, 2, 2),
    (0, 0, 1, 2, 2),
    (-1, 0, 1, -1, -1),
    (0, -1, 0, 1, -1),
    (0, 0, 0, 0, 0),
]
MIXED = rk.Rankings(ROWS)
OVERLAP = rk.RankBiasedOverlap(0.8)


def centred(n):
    positions = np.arange(n) - (n - 1) / 2
    return np.outer(positions, positions)


def smaller(n):
    return np.minimum.outer(np.arange(n), np.arange(n))


def top_lists(n_rankings, n_items, k, seed=0):
    """Return lists of k items, sampled from a Plackett-Luce model."""
    rng = np.random.default_rng(seed)
    utilities = np.log(1 / np.arange(1, n_items + 1)) + rng.gumbel(size=(n_rankings, n_items))
    ranks = np.argsort(np.argsort(-utilities, axis=1), axis=1)
    return rk.Rankings(np.minimum(ranks, k))


# ---------------------------------------------------------------------- members of the family


def test_hamming_is_the_identity():
    np.testing.assert_allclose(rk.Positional(np.eye).gram(MIXED), rk.Hamming().gram(MIXED), rtol=1e-13)


def test_spearman_is_the_product_of_centred_positions():
    norm = naive.spearman_kernel(range(5), range(5))
    found = rk.Positional(centred).gram(MIXED) / norm
    np.testing.assert_allclose(found, rk.Spearman().gram(MIXED), rtol=1e-12, atol=1e-14)


def test_footrule_is_the_smaller_position():
    """n (n - 1) / 2 minus half the distance; relative to a center it is the kernel induced by the distance."""
    kernel, center = rk.Positional(smaller), rk.Rankings([[2, 0, 1, 4, 3]])
    full = rk.Rankings(list(itertools.permutations(range(4))))
    np.testing.assert_allclose(kernel.gram(full), 4 * 3 / 2 - rk.distances.footrule(full) / 2, rtol=1e-14)
    to_center = kernel.gram(MIXED, center)
    induced = kernel.gram(MIXED) - to_center - to_center.T + kernel.gram(center)
    expected = rk.DistanceInduced("footrule", center.ranks[0]).gram(MIXED)
    np.testing.assert_allclose(induced, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", [OVERLAP, rk.RankBiasedOverlap(0.6, 3), rk.AverageOverlap(2), rk.DCG("hyperbolic")])
def test_named_kernels_are_positional(kernel):
    matrix = kernel.facts(5).form.multiply(np.eye(5))
    np.testing.assert_allclose(rk.Positional(matrix).gram(MIXED), kernel.gram(MIXED), rtol=1e-12)
    factor = kernel.facts(5).form.root(np.eye(5))
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=1e-13, atol=1e-16)


# ---------------------------------------------------------------------- overlaps


def test_overlap_of_equal_and_reversed_rankings():
    full = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    p = 0.8
    reverse = 0.5 * 0 + (1 - p) * p**2 * (2 / 3) + p**3  # depths 1 and 2 share nothing
    np.testing.assert_allclose(rk.RankBiasedOverlap(p).gram(full), [[1, reverse], [reverse, 1]], rtol=1e-14)
    np.testing.assert_allclose(np.diag(rk.RankBiasedOverlap(p, 3).gram(full)), 1 - p**3, rtol=1e-14)
    np.testing.assert_allclose(np.diag(rk.AverageOverlap(9).gram(full)), 1, rtol=1e-14)


def test_ties_are_averaged():
    """RBO^a of Corsi and Urbano: the mean over all orders within ties."""
    x, y = (0, 0, 1, 1), (1, 0, 0, 2)
    broken_x = [(0, 1, 2, 3), (0, 1, 3, 2), (1, 0, 2, 3), (1, 0, 3, 2)]
    broken_y = [(2, 0, 1, 3), (2, 1, 0, 3)]
    overlap = naive.rank_biased_overlap(0.9, 400)
    mean = sum(overlap(a, b) for a in broken_x for b in broken_y) / 8
    assert rk.RankBiasedOverlap(0.9).gram([x], [y]).item() == pytest.approx(mean, rel=1e-13)


# Values of the package rbo 0.1.3 for the pairs (0, 1), (0, 2) and (1, 2) of LISTS, by ``RankingSimilarity(S, T)``:
# "full" by .rbo(p=p, ext=True) and by .rbo_ext(p=p), "even" by .rbo(p=p) of the first five of both, "extrapolated" by
# .rbo_ext(p=p) of these, "uneven" by .rbo(p=p) of the first five of S and the first three of T.
LISTS = [[0, 1, 2, 3, 4, 5, 6, 7], [2, 0, 3, 1, 7, 4, 6, 5], [5, 3, 0, 6, 1, 2, 4, 7]]
BY_RBO = {
    0.3: {
        "full": [0.17250959999999999, 0.0359985, 0.056642099999999994],
        "even": [0.170436, 0.033852, 0.054852],
        "extrapolated": [0.17238, 0.03531, 0.05631],
        "uneven": [0.147, 0.020999999999999998, 0.041999999999999996],
    },
    0.9: {
        "full": [0.7974444857142857, 0.6834645000000001, 0.6930309857142858],
        "even": [0.22438799999999998, 0.10281599999999999, 0.129816],
        "extrapolated": [0.6967800000000001, 0.45711, 0.48411000000000004],
        "uneven": [0.09899999999999998, 0.026999999999999996, 0.05399999999999999],
    },
    0.98: {
        "full": [0.9545638131396266, 0.927790732064, 0.92864935117696],
        "even": [0.05618706389333338, 0.02688300458666669, 0.033285671253333364],
        "extrapolated": [0.7793237013333334, 0.5692354826666667, 0.5756381493333333],
        "uneven": [0.022605333333333352, 0.006402666666666672, 0.012805333333333344],
    },
}
AVERAGE_BY_RBO = [0.5933333333333334, 0.2866666666666666, 0.35333333333333333]  # .rbo(p=1.0) of the first five


@pytest.mark.parametrize("p", BY_RBO)
def test_matches_the_package_rbo(p):
    """On full lists with extrapolation, and on shorter lists up to the length of the shorter one."""
    full = rk.Rankings.from_orders(LISTS, items=range(8))
    pairs = ([0, 0, 1], [1, 2, 2])
    five, three = full.top(5), full.top(3)
    theirs = {name: np.array(values) for name, values in BY_RBO[p].items()}
    up_to_five = rk.RankBiasedOverlap(p, depth=5)
    extrapolated = up_to_five + p**5 * rk.DCG([5**-0.5] * 5, depth=5)  # constant agreement beyond the last depth
    np.testing.assert_allclose(rk.RankBiasedOverlap(p).gram(full)[pairs], theirs["full"], rtol=1e-13)
    np.testing.assert_allclose(up_to_five.gram(five)[pairs], theirs["even"], rtol=1e-13)
    np.testing.assert_allclose(extrapolated.gram(five)[pairs], theirs["extrapolated"], rtol=1e-13)
    np.testing.assert_allclose(rk.RankBiasedOverlap(p, 3).gram(five, three)[pairs], theirs["uneven"], rtol=1e-13)
    np.testing.assert_allclose(rk.AverageOverlap(5).gram(five)[pairs], AVERAGE_BY_RBO, rtol=1e-13)


def test_unlisted_items_are_not_extrapolated():
    """The mean over completions exceeds the lower bound by at most the weight of the depths beyond the lists."""
    short = rk.datasets.uniform(20, 30, rng=2).top(7)
    lower, mean = rk.RankBiasedOverlap(0.9, depth=7).gram(short), rk.RankBiasedOverlap(0.9).gram(short)
    assert (mean > lower).all()
    assert (mean <= lower + 0.9**7).all()
    extrapolated = rk.RankBiasedOverlap(0.9, depth=2) + 0.9**2 * rk.DCG([2**-0.5] * 2, depth=2)
    apart = rk.Rankings.from_orders([["a", "b"], ["c", "d"]], items=list("abcde"))
    assert extrapolated.gram(apart)[0, 1] == 0 < rk.RankBiasedOverlap(0.9).gram(apart)[0, 1]


def test_limits_of_p_and_depth():
    full = rk.datasets.uniform(5, 6, rng=0)
    np.testing.assert_allclose(rk.RankBiasedOverlap(1.0).gram(full), 1.0, rtol=1e-14)
    np.testing.assert_allclose(rk.RankBiasedOverlap(0.0).gram(full), rk.AverageOverlap(1).gram(full), rtol=1e-14)
    limit = rk.RankBiasedOverlap(0.7, depth=5000).gram(full)
    np.testing.assert_allclose(limit, rk.RankBiasedOverlap(0.7).gram(full), rtol=1e-13)


@pytest.mark.parametrize("depth", [None, 2, 4, 9])
def test_derivatives_in_p_for_partial_rankings(depth):
    kernel, step = rk.RankBiasedOverlap(0.6, depth), 1e-6
    derivative = kernel.estimate(MIXED, gradient=True).gradient["p"]
    up, down = (kernel.replace(p=0.6 + s).gram(MIXED) for s in (step, -step))
    np.testing.assert_allclose(derivative, (up - down) / (2 * step), rtol=1e-7, atol=1e-9)


def test_p_is_fitted_within_its_bounds():
    X = top_lists(40, 12, 5)
    y = rk.RankBiasedOverlap(0.5).gram(X)[:, 0]
    model = GaussianProcessRegressor(rk.SklearnKernel(rk.RankBiasedOverlap(0.9)), alpha=1e-6).fit(X.ranks, y)
    assert 0 < model.kernel_.kernel.p < 1
    start = model.log_marginal_likelihood(np.log([0.9]))
    assert model.log_marginal_likelihood_value_ > start + 1


def test_discounts_up_to_the_depth_suffice():
    few, all_positions = rk.DCG([1, 0.5], depth=2), rk.DCG([1, 0.5, 0, 0, 0])
    np.testing.assert_array_equal(few.gram(MIXED), all_positions.gram(MIXED))
    np.testing.assert_array_equal(rk.DCG([1, 0.5, 9, 9, 9], depth=2).gram(MIXED), all_positions.gram(MIXED))
    np.testing.assert_array_equal(few.gram([[0]]), [[1.0]])


# ---------------------------------------------------------------------- matrices


@pytest.mark.parametrize(
    ("G", "message"),
    [
        ([1.0, 2.0], r"G has shape \(2,\); it must be"),
        ([[1.0, 2.0]], r"shape \(1, 2\)"),
        (np.zeros((0, 0)), r"shape \(0, 0\)"),
        ([[1.0, math.nan], [math.nan, 1.0]], "finite"),
        ([[1.0, 0.5], [0.2, 1.0]], r"not symmetric: G\[0, 1\] = 0.5 but G\[1, 0\] = 0.2"),
        ([[1.0, 2.0], [2.0, 1.0]], "G is not positive semi-definite.*add at least 1 to its diagonal"),
    ],
)
def test_invalid_matrices_raise(G, message):
    with pytest.raises(ValueError, match=message):
        rk.Positional(G)


def test_callable_is_checked_on_use():
    with pytest.raises(ValueError, match="not positive semi-definite"):
        rk.Positional(lambda n: -np.eye(n)).gram(MIXED)
    with pytest.raises(ValueError, match="G has 3 positions but the data has 5 items"):
        rk.Positional(np.eye(3)).gram(MIXED)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: rk.RankBiasedOverlap(1.1), ValueError, "p=1.1 is not possible; it must be a number from 0 to 1"),
        (lambda: rk.RankBiasedOverlap("median"), TypeError, "p='median'"),
        (lambda: rk.RankBiasedOverlap(0.9, 0), ValueError, "depth=0 is not possible"),
        (lambda: rk.AverageOverlap(2.5), (TypeError, ValueError), "depth=2.5"),
        (lambda: rk.DCG("steep"), ValueError, "discount='steep' is not known"),
        (lambda: rk.DCG([1, math.inf]), ValueError, "discount holds"),
        (lambda: rk.DCG([1, 0.5]).gram(MIXED), ValueError, "discount"),
        (lambda: rk.DCG([1, 0.5], depth=3).gram(MIXED), ValueError, "discount"),
        (lambda: rk.DCG(depth=-1), ValueError, "depth=-1"),
    ],
)
def test_invalid_parameters_raise(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_kernels_compare_by_matrix():
    G = np.eye(7) + 1
    kernel = rk.Positional(G)
    G[0, 0] = 99.0
    assert kernel == rk.Positional(np.eye(7) + 1)
    assert kernel != rk.Positional(np.eye(7))
    assert rk.Positional(-0.0 * np.eye(2) + np.eye(2)) == rk.Positional(np.eye(2))
    assert rk.Positional(np.eye) == rk.Positional(np.eye) != rk.Positional(smaller)
    assert repr(kernel) == "Positional(<7 x 7 matrix>)"
    assert repr(rk.Positional(smaller)) == "Positional(smaller)"
    assert repr(rk.DCG()) == "DCG(discount='logarithmic')"
    with pytest.raises(ValueError, match="read-only"):
        kernel.G[0, 0] = 2.0


def test_pickled_kernel_has_the_hash_of_this_process():
    """Hashes of bytes differ between processes and must not be pickled."""
    code = (
        "import pickle, sys, numpy as np, rankernel as rk; kernel = rk.Positional(np.eye(3)); hash(kernel);"
        "sys.stdout.buffer.write(pickle.dumps(kernel))"
    )
    sent = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    kernel = pickle.loads(sent)
    assert kernel in {rk.Positional(np.eye(3))}
    np.testing.assert_array_equal(kernel.gram([[0, 1, 2]]), [[3.0]])


# ---------------------------------------------------------------------- two evaluators


def test_tables_and_marginals_agree():
    everything = slice(None), slice(None)
    by_table, form = linear_evaluator(OVERLAP, MIXED, MIXED), OVERLAP.facts(MIXED.n_items).form
    assert isinstance(by_table, PositionalEvaluator)
    by_marginals = LinearEvaluator(MIXED, MIXED, lambda X: mean_statistics(X, "positions"), form)
    for kernel in (OVERLAP, rk.Hamming()):
        value, other = (evaluator.values(kernel, everything) for evaluator in (by_table, by_marginals))
        np.testing.assert_allclose(value, other, rtol=1e-12)
    derivative, other = (evaluator.matrices(OVERLAP, everything, ["p"])[0] for evaluator in (by_table, by_marginals))
    np.testing.assert_allclose(derivative, other, rtol=1e-11, atol=1e-14)


def test_blocks_of_long_lists_are_bitwise_equal():
    lists = rk.concat([top_lists(60, 200, 10), top_lists(40, 200, 3, seed=1)])
    whole = OVERLAP.gram(lists)
    np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_array_equal(OVERLAP.gram(lists[50:], lists[:30]), whole[50:, :30])
    matrix = OVERLAP.facts(200).form.multiply(np.eye(200))
    pmfs = [[position_pmf(row, item) for item in range(200)] for row in lists.ranks[[3, 70]]]
    expected = sum(np.asarray(a) @ matrix @ np.asarray(b) for a, b in zip(*pmfs, strict=True))
    assert whole[3, 70] == pytest.approx(expected, rel=1e-12)


def position_pmf(row, item):
    """Return the distribution of the position of an item of a ranking without free items: uniform in its bucket."""
    before, size = np.count_nonzero(row < row[item]), np.count_nonzero(row == row[item])
    positions = np.arange(len(row))
    return ((positions >= before) & (positions < before + size)) / size


def test_partial_orders():
    pairs = [{"a": "b", "b": "c"}, {"c": "a"}, {"d": "b"}]
    users = rk.Preferences.from_pairs([list(one.items()) for one in pairs], items=["a", "b", "c", "d"])
    value = OVERLAP.gram(users, method="exact")
    extensions = [
        [
            x
            for x in itertools.permutations(range(4))
            if all(x["abcd".index(i)] < x["abcd".index(j)] for i, j in p.items())
        ]
        for p in pairs
    ]
    overlap = naive.rank_biased_overlap(0.8, 200)
    expected = [[np.mean([overlap(x, y) for x in one for y in other]) for other in extensions] for one in extensions]
    np.testing.assert_allclose(value, expected, rtol=1e-12)


# ---------------------------------------------------------------------- features

slow_overlap = cache(naive.rank_biased_overlap(0.8, 200))  # the same full rankings recur
FEATURED = [
    (OVERLAP, slow_overlap),
    (rk.AverageOverlap(2), naive.average_overlap(2)),
    (rk.DCG(), naive.positional(lambda p, q: 1 / math.log2(p + 2) / math.log2(q + 2))),
    (
        2 * OVERLAP + rk.Hamming(),
        lambda x, y: 2 * slow_overlap(x, y) + naive.hamming_kernel(x, y),
    ),
]


@pytest.mark.parametrize(("kernel", "oracle"), FEATURED, ids=[str(kernel) for kernel, _ in FEATURED])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_have_the_kernel_as_inner_products(kernel, oracle, sparse):
    for rows in (naive.every_ranking(2), naive.every_ranking(3), naive.every_ranking(4)[::9], ROWS[:4], ROWS[4:6]):
        Z = rk.MeanFeatures(kernel, sparse_output=sparse).fit_transform(np.array(rows))
        found = (Z @ Z.T).toarray() if sparse else Z @ Z.T
        np.testing.assert_allclose(found, naive.gram(oracle, rows, rows), rtol=1e-11, atol=1e-12)


def test_short_lists_have_few_features():
    lists = top_lists(300, 1000, 10)
    features = rk.MeanFeatures(OVERLAP, sparse_output=True).fit(lists)
    assert features.depth_ == 10
    Z = features.transform(lists)
    assert Z.shape == (300, 11 * 1000 + 1)
    assert Z.nnz <= 300 * (11 * 10 + 1)
    np.testing.assert_allclose((Z @ Z.T).toarray(), OVERLAP.gram(lists), rtol=1e-11)


def test_features_without_a_constant():
    """The constant would be negative, so no base value is subtracted."""
    lists, kernel = top_lists(30, 12, 4), rk.Positional(centred)
    Z = rk.MeanFeatures(kernel, sparse_output=True).fit_transform(lists)
    np.testing.assert_allclose((Z @ Z.T).toarray(), kernel.gram(lists), rtol=1e-10, atol=1e-10)


def test_features_in_chunks_are_the_same():
    lists = top_lists(50, 30, 5)
    features = rk.MeanFeatures(OVERLAP, sparse_output=True).fit(lists)
    chunks = [features.transform(lists[start : start + 7]) for start in range(0, 50, 7)]
    assert (vstack(chunks) != features.transform(lists)).nnz == 0


def test_invalid_features_raise():
    lists = top_lists(30, 12, 4)
    features = rk.MeanFeatures(OVERLAP, sparse_output=True).fit(lists)
    with pytest.raises(rk.RankingError, match=r"X\.top\(4\)"):
        features.transform(top_lists(3, 12, 6))
    with pytest.raises(ValueError, match="sparse_output"):
        rk.MeanFeatures(rk.Kendall(), sparse_output=True).fit(lists)


def test_one_item():
    assert isinstance(OVERLAP, PositionalKernel)
    for kernel in (OVERLAP, rk.AverageOverlap(), rk.DCG(), rk.Positional(np.eye)):
        np.testing.assert_allclose(kernel.gram([[0]]), 1.0, rtol=1e-14)
