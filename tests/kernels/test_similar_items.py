"""Kernels of rankings of similar items: brute force, gradients, names of items, and groups."""

import itertools
import math
import pickle

import naive
import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from threadpoolctl import threadpool_limits

import rankernel as rk

N = 4
ROWS = [(0, 1, 2, 3), (2, 0, 1, 1), (0, 0, 1, 2), (-1, 0, 1, -1), (0, -1, 0, 1), (-1, 0, 0, -1), (0, 0, 0, 0)]
MIXED = rk.Rankings(ROWS, items=list("abcd"))
rng = np.random.default_rng(0)
ROOT = rng.normal(size=(N, 3))
S = ROOT @ ROOT.T / 3  # of rank 3, with negative entries and a diagonal that is not 1


def discount(a, b):
    return 1 / math.log2(a + 2) / math.log2(b + 2)


def overlap(a, b):
    return sum(0.3 * 0.7 ** (d - 1) / min(d, N) for d in range(max(a, b) + 1, 200))


def average(a, b):
    return sum(1 / (2 * d) for d in (1, 2) if max(a, b) < d)


def centred(a, b):
    return (a - (N - 1) / 2) * (b - (N - 1) / 2) * 12 / (N * (N * N - 1))


KERNELS = {
    "Kendall": (rk.Kendall, naive.similar_kendall),
    "RankBiasedOverlap": (lambda **s: rk.RankBiasedOverlap(0.7, **s), lambda S: naive.similar_positional(S, overlap)),
    "AverageOverlap": (lambda **s: rk.AverageOverlap(2, **s), lambda S: naive.similar_positional(S, average)),
    "DCG": (rk.DCG, lambda S: naive.similar_positional(S, discount)),
    "Hamming": (rk.Hamming, lambda S: naive.similar_positional(S, lambda a, b: float(a == b))),
    "Spearman": (rk.Spearman, lambda S: naive.similar_positional(S, centred)),
    "Positional": (
        lambda **s: rk.Positional([[1 / (1 + a + b) for b in range(N)] for a in range(N)], **s),
        lambda S: naive.similar_positional(S, lambda a, b: 1 / (1 + a + b)),
    ),
}


@pytest.fixture(params=KERNELS)
def make(request):
    return KERNELS[request.param]


def test_matches_brute_force(make):
    kernel, oracle = make[0](similarity=S), make[1](S.tolist())
    expected = naive.gram(oracle, ROWS, ROWS)
    np.testing.assert_allclose(kernel.gram(MIXED, method="exact"), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.gram(MIXED, method="enumeration"), expected, rtol=1e-12, atol=1e-13)
    full = np.array(list(itertools.permutations(range(N)))[::5], dtype=np.int32)
    values = [[oracle(x, y) for y in full.tolist()] for x in full.tolist()]
    np.testing.assert_allclose(kernel.matrix(full, full), values, rtol=1e-12, atol=1e-13)


def test_values_do_not_depend_on_threads():
    """BLAS sums in another order with several threads, from about 100 items."""
    points = rng.normal(size=(120, 4))
    similarity = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
    ballots = rk.datasets.uniform(4, 120, rng=0).top(20)
    for kernel in (rk.Kendall(similarity=similarity), rk.RankBiasedOverlap(similarity=similarity)):
        grams = []
        for n_threads in (1, 2):
            with threadpool_limits(n_threads):
                grams.append(kernel.gram(ballots))
        np.testing.assert_array_equal(*grams)


def test_identity_is_the_plain_kernel(make):
    plain, similar = make[0](), make[0](similarity=np.eye(N))
    assert similar == plain
    np.testing.assert_array_equal(similar.gram(MIXED), plain.gram(MIXED))
    np.testing.assert_array_equal(make[0](similarity=groups(0.0)).gram(MIXED), plain.gram(MIXED))
    at_zero = make[0](similarity=rk.Similarity(groups().matrix, scale=0.0))
    np.testing.assert_allclose(at_zero.gram(MIXED), plain.gram(MIXED), rtol=1e-12, atol=1e-14)


def groups(within=0.8):
    return rk.similarity_from_groups({"u": ["a", "b"], "v": ["c", "d"]}, within=within)


def test_derivative_in_the_scale(make):
    kernel, step = make[0](similarity=rk.Similarity(S, scale=0.6)), 1e-5
    derivative = kernel.estimate(MIXED, gradient=True).gradient["similarity__scale"]
    up, down = (kernel.replace(similarity__scale=0.6 + s).gram(MIXED) for s in (step, -step))
    np.testing.assert_allclose(derivative, (up - down) / (2 * step), rtol=1e-6, atol=1e-8)
    full = MIXED[:1].ranks
    found, numerical = kernel.gradient(full, full), rk.Kernel.gradient(kernel, full, full)
    assert found.keys() == numerical.keys() == kernel.params.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, numerical[name], rtol=1e-6, atol=1e-8)


def test_derivative_in_p():
    kernel, step = rk.RankBiasedOverlap(0.6, similarity=S), 1e-5
    derivative = kernel.estimate(MIXED, gradient=True).gradient["p"]
    up, down = (kernel.replace(p=0.6 + s).gram(MIXED) for s in (step, -step))
    np.testing.assert_allclose(derivative, (up - down) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", [rk.Kendall(similarity=S), rk.RankBiasedOverlap(0.7, similarity=S)], ids=str)
def test_blocks_threads_and_symmetry(kernel):
    matrix = kernel.gram(MIXED, n_jobs=1)
    np.testing.assert_array_equal(kernel.gram(MIXED, n_jobs=2), matrix)
    np.testing.assert_array_equal(kernel.gram(MIXED, MIXED[2:5]), matrix[:, 2:5])
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-13


def test_partial_orders():
    chains = rk.Preferences.from_pairs([[("a", "b"), ("c", "d")], [("a", "c"), ("a", "d")]], items=list("abcd"))
    full = rk.Rankings(list(itertools.permutations(range(4))), items=list("abcd"))
    allowed = [
        [i for i, r in enumerate(full.ranks) if all(r["abcd".index(x)] < r["abcd".index(y)] for x, y in pairs)]
        for pairs in ([("a", "b"), ("c", "d")], [("a", "c"), ("a", "d")])
    ]
    for kernel in (rk.Kendall(similarity=S), rk.Hamming(similarity=S), rk.Spearman(similarity=S)):
        between = kernel.gram(full)
        expected = [[between[np.ix_(x, y)].mean() for y in allowed] for x in allowed]
        np.testing.assert_allclose(kernel.gram(chains, method="exact"), expected, rtol=1e-12, atol=1e-13)


def test_mean_norm_of_full_rankings_is_one():
    for seed in range(3):
        root = np.random.default_rng(seed).normal(size=(5, 2 + seed))
        full = rk.Rankings(list(itertools.permutations(range(5))))
        diagonal = rk.Kendall(similarity=root @ root.T).paired(full, full)
        assert diagonal.mean() == pytest.approx(1, abs=1e-12)


# ---------------------------------------------------------------------- names of items and groups


@pytest.mark.parametrize("kernel", [rk.Kendall, rk.RankBiasedOverlap])
def test_items_by_name(kernel):
    """A frame in any order, with further items, gives the matrix in the order of the items of the data."""
    names = ["z", "d", "b", "a", "c"]
    frame = pd.DataFrame(np.eye(5), index=names, columns=names)
    for a, b in itertools.product("abcd", repeat=2):
        frame.loc[a, b] = S["abcd".index(a), "abcd".index(b)]
    frame = frame[["a", "b", "c", "d", "z"]]
    named, by_index = kernel(similarity=frame), kernel(similarity=S)
    np.testing.assert_allclose(named.gram(MIXED), by_index.gram(MIXED), rtol=1e-12, atol=1e-13)
    assert named.resolve(MIXED) == by_index
    reordered = MIXED.with_items(list("dbca"))
    np.testing.assert_allclose(named.gram(reordered), by_index.gram(MIXED), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose((2 * named).gram(MIXED), 2 * by_index.gram(MIXED), rtol=1e-12, atol=1e-13)
    with pytest.raises(ValueError, match="resolve"):
        named.matrix(MIXED[:1].ranks, MIXED[:1].ranks)


def test_groups():
    similarity = rk.similarity_from_groups({"red": ["a", "c"], "blue": ["d"]}, within=0.8, items=["b", "d"])
    expected = np.eye(4)
    expected[0, 2] = expected[2, 0] = 0.8
    np.testing.assert_array_equal(similarity.resolve(MIXED).matrix, expected)


def test_interchangeable_items_are_one():
    """With similarity 1 the order of two candidates of a party has no effect."""
    full = rk.Rankings.from_orders([list("abcd"), list("badc"), list("cdab")])
    for kernel in (rk.Kendall(similarity=groups(1.0)), rk.RankBiasedOverlap(0.5, similarity=groups(1.0))):
        matrix = kernel.gram(full)
        np.testing.assert_allclose(matrix[0], matrix[1], atol=1e-14)
        assert matrix[0, 2] < matrix[0, 0] - 0.1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "similarity matrix is not positive semi-definite"),
        ([[1.0, 0.5], [0.2, 1.0]], r"similarity matrix\[0, 1\]"),
        (np.ones((4, 4)), "all items are the same"),
        (0.5 * np.ones((3, 3)), "similarity has 3 rows but the data has 4 items"),
        (rk.similarity_from_groups({"u": ["a", "b"]}), "2 of the 4 items .* 'c'"),
        (pd.DataFrame(S, index=list("abcd"), columns=list("abce")), "the same names"),
    ],
)
def test_wrong_similarities(given, message):
    with pytest.raises(ValueError, match=message):
        rk.Kendall(similarity=given).gram(MIXED)


def test_item_in_two_groups():
    with pytest.raises(ValueError, match="'a' is listed twice"):
        rk.similarity_from_groups({"u": ["a"], "v": ["a"]})


# ---------------------------------------------------------------------- with the rest of the package


def test_value_and_copies():
    kernel = rk.Kendall(similarity=rk.Similarity(S, scale=0.5))
    assert pickle.loads(pickle.dumps(kernel)) == kernel == rk.Kendall(similarity=rk.Similarity(S.copy(), scale=0.5))
    assert hash(kernel) == hash(pickle.loads(pickle.dumps(kernel)))
    assert kernel != kernel.replace(similarity__scale=0.4)
    assert kernel.params == {"similarity__scale": 0.5}
    assert kernel.bounds == {"similarity__scale": (0.0, 1.0)}
    assert (
        str(rk.RankBiasedOverlap(0.8, similarity=groups()))
        == "RankBiasedOverlap(p=0.8, similarity=Similarity(<4 x 4 matrix>))"
    )


def test_mean_features_and_sums(make):
    kernel = make[0](similarity=S)
    features = rk.MeanFeatures(kernel).fit_transform(MIXED)
    np.testing.assert_allclose(features @ features.T, kernel.gram(MIXED), rtol=1e-11, atol=1e-12)
    total = kernel + 2 * rk.Kendall(similarity=groups())
    expected = kernel.gram(MIXED) + 2 * rk.Kendall(similarity=groups()).gram(MIXED)
    np.testing.assert_allclose(total.gram(MIXED), expected, rtol=1e-12, atol=1e-13)


def test_scale_is_fitted():
    """The outcome depends mainly on the order of two parties, which a Gaussian process finds."""
    parties = rk.similarity_from_groups({"u": range(3), "v": range(3, 6)}).matrix
    X = rk.datasets.uniform(60, 6, rng=1).ranks
    y = X[:, :3].mean(axis=1) - X[:, 3:].mean(axis=1) + 0.3 * (X[:, 0] - X[:, 2])
    start = rk.SklearnKernel(rk.Kendall(similarity=rk.Similarity(parties, scale=0.2)))
    model = GaussianProcessRegressor(start, alpha=1e-2).fit(X, y)
    assert model.log_marginal_likelihood_value_ > model.log_marginal_likelihood(np.log([0.2])) + 3
    assert model.kernel_.kernel.similarity.scale > 0.6


def test_two_sample_test_by_name():
    first, second = (rk.datasets.mallows(30, center, 1.0, rng=0) for center in ([0, 1, 2, 3], [3, 2, 1, 0]))
    similarity = rk.similarity_from_groups({"u": first.items[:2]}, within=0.5, items=first.items)
    with pytest.warns(rk.NotCharacteristicWarning):
        found = rk.mmd_test(first, second, rk.Kendall(similarity=similarity), n_permutations=99)
    assert found.pvalue < 0.05
