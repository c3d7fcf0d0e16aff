"""Mean features and random features against brute force and kernel methods."""

import itertools
import math

import naive
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import rankernel as rk
from rankernel import MeanFeatures, SklearnKernel
from rankernel._loops.pairs import pairs_in_order
from rankernel.learn.features import MallowsSignFeatures, mean_parities, pack, random_pair_sets

X = np.argsort(np.random.default_rng(0).random((40, 5)), axis=1)
NEW = np.argsort(np.random.default_rng(1).random((15, 5)), axis=1)
FREE = rk.Rankings(X).top(3, unlisted="free")
TARGET = X[:, 0] - 0.5 * X[:, 3]


LINEAR = [
    (rk.Kendall(), naive.kendall_kernel),
    (rk.Hamming(), naive.hamming_kernel),
    (rk.Spearman(), lambda x, y: naive.spearman_kernel(x, y) / naive.spearman_kernel(x, x)),
    (rk.Polynomial(2), naive.polynomial(2)),
    (rk.DistanceInduced("footrule", [1, 0, 2, 3]), naive.distance_induced(naive.footrule, (1, 0, 2, 3))),
    (
        2.0 * rk.Kendall() + rk.Hamming() + 3.0,
        lambda x, y: 2 * naive.kendall_kernel(x, y) + naive.hamming_kernel(x, y) + 3,
    ),
]


@pytest.mark.parametrize(
    ("kernel", "oracle"), LINEAR, ids=lambda value: str(value) if isinstance(value, rk.Kernel) else ""
)
def test_inner_products_match_brute_force(kernel, oracle):
    rows = [(0, 1, 2, 3), (0, 1, 1, 1), (1, 0, 1, 0), (-1, 0, 1, -1), (-1, -1, 0, 0), (0, 0, 0, 0)]
    features = MeanFeatures(kernel)
    Z = features.fit_transform(np.array(rows))
    np.testing.assert_allclose(Z @ Z.T, naive.gram(oracle, rows, rows), rtol=1e-12, atol=1e-12)
    assert len(features.get_feature_names_out()) == Z.shape[1]


def test_linear_model_is_the_kernel_method():
    Z = MeanFeatures(rk.Kendall()).fit(FREE)
    linear = Ridge(alpha=1.0, fit_intercept=False).fit(Z.transform(FREE), TARGET)
    kernel = KernelRidge(alpha=1.0, kernel=SklearnKernel(rk.Kendall())).fit(FREE.ranks, TARGET)
    np.testing.assert_allclose(linear.predict(Z.transform(NEW)), kernel.predict(NEW), rtol=1e-9)


def test_kernel_without_features():
    with pytest.raises(ValueError, match="NystromFeatures"):
        MeanFeatures(rk.Mallows(0.1)).fit(X)


# ---------------------------------------------------------------------- random features


def product_of_signs(full, pairs):
    return math.prod(1 if full[a] < full[b] else -1 for a, b in pairs)


def all_sets(n_items):
    """Every set of pairs of items: as lists of pairs, and as bits."""
    pairs = list(itertools.combinations(range(n_items), 2))
    inside = list(itertools.product([False, True], repeat=len(pairs)))
    return [[pair for pair, used in zip(pairs, row, strict=True) if used] for row in inside], pack(np.array(inside))


def parities(rows, sets):
    """The compiled features of sets of completions, one set for each row."""
    full = np.concatenate([np.array(row, dtype=np.int16) for row in rows])
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    out = np.empty((len(rows), len(sets)))
    mean_parities(pairs_in_order(-full), offsets, sets, out)
    return out


@pytest.mark.parametrize("n", [3, 4])
@pytest.mark.parametrize("nu", [0.0, 0.3, 2.0])
def test_expectation_over_all_sets_is_the_kernel(n, nu):
    full = list(itertools.permutations(range(n)))
    lists, bits = all_sets(n)
    q, n_pairs = math.exp(-nu), math.comb(n, 2)
    p = np.array([((1 - q) / 2) ** len(s) * ((1 + q) / 2) ** (n_pairs - len(s)) for s in lists])
    phi = parities([[x] for x in full], bits)
    expected = np.array([[naive.mallows(nu)(x, y) for y in full] for x in full])
    np.testing.assert_allclose(phi * p @ phi.T, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("row", [(0, 1, 1, 1), (0, -1, 1, -1), (1, 0, 1, 0), (0, 0, 0, 0)])
def test_partial_rankings_match_brute_force(row):
    lists, bits = all_sets(4)
    completions = naive.completions(row)
    expected = [sum(product_of_signs(x, s) for x in completions) / len(completions) for s in lists]
    np.testing.assert_allclose(parities([completions], bits)[0], expected, atol=1e-15)


def test_more_pairs_than_one_word():
    rng = np.random.default_rng(0)
    n = 17  # 136 pairs, three words
    full = np.argsort(rng.random((6, n)), axis=1)
    pairs = list(itertools.combinations(range(n), 2))
    inside = rng.random((20, len(pairs))) < 0.3
    found = parities([[row] for row in full], pack(inside))
    for x, row in zip(full.tolist(), found, strict=True):
        used = [[pair for pair, one in zip(pairs, line, strict=True) if one] for line in inside]
        assert row.tolist() == [product_of_signs(x, s) for s in used]


def test_sets_contain_each_pair_independently():
    n_sets, p = 20_000, 0.3
    sets = random_pair_sets(n_sets, 13, p, np.random.default_rng(1))  # 78 pairs, two words
    bits = np.unpackbits(sets.view(np.uint8), axis=1, bitorder="little")
    assert bits.shape == (n_sets, 128)
    assert not bits[:, 78:].any()
    error = math.sqrt(p * (1 - p) / n_sets)
    assert np.abs(bits[:, :78].mean(axis=0) - p).max() < 5 * error
    together = bits[:, :78].T.astype(float) @ bits[:, :78] / n_sets
    off = together[~np.eye(78, dtype=bool)]
    assert np.abs(off - p**2).max() < 5.5 * math.sqrt(p**2 * (1 - p**2) / n_sets)


def test_unbiased_by_its_standard_error():
    rows = [(0, 1, 2, 3, 4), (4, 2, 3, 0, 1), (0, 1, 1, 1, 1), (1, 0, 0, 1, 2), (-1, 0, -1, 1, -1)]
    exact = np.array(naive.gram(naive.mallows(0.15), rows, rows))
    runs = []
    for seed in range(100):
        Z = MallowsSignFeatures(0.15, n_features=100, n_draws=120, random_state=seed).fit_transform(np.array(rows))
        runs.append(Z @ Z.T)
    # With at most 120 completions nothing is drawn but the sets, so the diagonal is unbiased, too.
    error = np.std(runs, axis=0, ddof=1) / math.sqrt(len(runs))
    assert (np.abs(np.mean(runs, axis=0) - exact) <= 5 * error + 1e-12).all()


def test_draws_bias_only_the_diagonal():
    rows = [(0, 1, 1, 1, 1), (1, 0, 0, 1, 1), (-1, 0, -1, 1, -1)]
    exact = np.array(naive.gram(naive.mallows(0.3), rows, rows))
    runs = []
    for seed in range(150):
        Z = MallowsSignFeatures(0.3, n_features=60, n_draws=2, random_state=seed).fit_transform(np.array(rows))
        runs.append(Z @ Z.T)
    error = np.std(runs, axis=0, ddof=1) / math.sqrt(len(runs))
    deviation = (np.mean(runs, axis=0) - exact) / error
    off = ~np.eye(3, dtype=bool)
    assert np.abs(deviation[off]).max() < 5
    assert deviation[~off].min() > 5  # biased upwards


def test_features_do_not_depend_on_other_rankings():
    rng = np.random.default_rng(3)
    X = rk.Rankings(np.argsort(rng.random((30, 8)), axis=1)).top(3)
    features = MallowsSignFeatures(0.1, n_features=50, n_draws=8).fit(X)
    whole = features.transform(X)
    np.testing.assert_array_equal(features.transform(X[[4, 4, 1]]), whole[[4, 4, 1]])
    np.testing.assert_array_equal(features.transform(X.ranks.astype(float)), whole)
    full = np.argsort(rng.random((5, 8)), axis=1)
    assert set(np.abs(MallowsSignFeatures(0.1, n_features=9).fit_transform(full)).ravel()) == {1 / 3}


def test_median_is_resolved_by_training_data():
    X = np.array([[0, 1, 2], [0, 2, 1], [2, 1, 0]])
    features = MallowsSignFeatures(n_features=10).fit(X)
    assert features.kernel_ == rk.Mallows(0.5)
    assert clone(features).nu == "median"


def test_random_state():
    X = np.array([[0, 1, 2, 3], [3, 1, 2, 0]])
    a, b, c = (MallowsSignFeatures(0.5, n_features=200, random_state=seed).fit_transform(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


@pytest.mark.parametrize("wrong", [{"n_features": 0}, {"n_draws": 0}, {"nu": -1}])
def test_wrong_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MallowsSignFeatures(**wrong).fit([[0, 1]])
