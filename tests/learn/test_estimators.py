"""The conventions of scikit-learn, for every estimator; what fails is listed with its reason."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

import rankernel as rk

FRACTIONS = {"check_positive_only_tag_during_fit": "feeds fractions, which are no ranks"}
CLUSTERS = FRACTIONS | {"check_clustering": "feeds points of a plane, which are no ranks"}


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (rk.MeanFeatures(rk.Kendall()), FRACTIONS),
        (rk.NystromFeatures(rk.Mallows(0.1), 3), FRACTIONS),
        (rk.MallowsSignFeatures(0.1, 5, 4), FRACTIONS),
        (rk.KernelMap(rk.Mallows(0.1), 2), FRACTIONS),
        (rk.KernelKMeans(rk.Mallows(0.1), 2), CLUSTERS),
        (rk.KernelKMedoids(rk.Mallows(0.1), 2), CLUSTERS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_conventions_of_scikit_learn(estimator, expected):
    check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
