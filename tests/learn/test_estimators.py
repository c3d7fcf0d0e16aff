"""The conventions of scikit-learn for every estimator, with the reasons of expected failures."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

import rankernel as rk

FRACTIONS = {"check_positive_only_tag_during_fit": "passes fractions, which are not ranks"}
CLUSTERS = FRACTIONS | {"check_clustering": "passes points of a plane, which are not ranks"}


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (rk.MeanFeatures(), FRACTIONS),
        (rk.NystromFeatures(), FRACTIONS),
        (rk.KernelMap(), FRACTIONS),
        (rk.KernelKMeans(), CLUSTERS),
        (rk.KernelKMedoids(), CLUSTERS),
        (rk.MallowsMixture(), FRACTIONS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_check_estimator(estimator, expected):
    check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
