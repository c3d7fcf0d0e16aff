"""Mean features against brute force and kernel methods."""

import naive
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import rankernel as rk
from rankernel import MeanFeatures, SklearnKernel

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
