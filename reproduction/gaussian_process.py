"""Gaussian process classification of rankings: by scikit-learn, and by GPy as in the paper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel

from rankernel._utils.arrays import FloatArray, Indices, IntArray


@dataclass(frozen=True, eq=False)
class Grams:
    """Kernel values of the training rankings with themselves and with the test rankings, and the test diagonal."""

    train: FloatArray
    cross: FloatArray  # (n_train, n_test)
    test_diagonal: FloatArray

    @property
    def n_train(self) -> int:
        """Number of training rankings."""
        return len(self.train)

    def scaled(self, scale: float) -> Grams:
        """Return the values of a multiple of the kernel."""
        return Grams(scale * self.train, scale * self.cross, scale * self.test_diagonal)


@dataclass(frozen=True)
class Scores:
    """How well a classifier does: the share of right answers and mean log likelihoods of the true classes."""

    accuracy: float
    train: float
    test: float
    evidence: float

    @classmethod
    def of(cls, p_train: FloatArray, p_test: FloatArray, y_train: Any, y_test: Any, evidence: float) -> Scores:
        """Return the scores of probabilities of class 1."""
        return cls(
            float(((p_test > 0.5) == (y_test == 1)).mean()),
            log_likelihood(p_train, y_train),
            log_likelihood(p_test, y_test),
            float(evidence),
        )


def log_likelihood(p: FloatArray, y: IntArray) -> float:
    """Return the mean logarithm of the probability of the true class."""
    return float(np.log(np.where(y == 1, p, 1 - p)).mean())


# ---------------------------------------------------------------------- scikit-learn


class KnownGram(GaussianProcessKernel):  # type: ignore[misc]
    """Kernel values by number: row i of the data is the number of a ranking, training ones first."""

    def __init__(self, grams: Grams) -> None:
        self.grams = grams

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the values for the rankings of some numbers; at least one side is training data."""
        rows, columns = numbers(X), numbers(X if Y is None else Y)
        if rows.max() >= self.grams.n_train:
            return self(Y, X).T
        values = np.hstack([self.grams.train, self.grams.cross])[np.ix_(rows, columns)]
        return (values, np.empty((*values.shape, 0))) if eval_gradient else values

    def diag(self, X: Any) -> FloatArray:
        """Return the diagonal."""
        diagonal = np.concatenate([np.diagonal(self.grams.train), self.grams.test_diagonal])
        return np.asarray(diagonal[numbers(X)])

    def is_stationary(self) -> bool:
        """Return False."""
        return False


def numbers(X: Any) -> Indices:
    """Return the numbers of rankings."""
    return np.asarray(X)[:, 0].astype(np.intp)


def fit_sklearn(grams: Grams, y_train: IntArray, y_test: IntArray) -> Scores:
    """Return the scores of scikit-learn's classifier: logistic likelihood, Laplace's approximation."""
    places = np.arange(len(y_train) + len(y_test), dtype=np.float64)[:, None]
    train, test = places[: len(y_train)], places[len(y_train) :]
    model = GaussianProcessClassifier(KnownGram(grams), optimizer=None, copy_X_train=False).fit(train, y_train)
    p_train, p_test = model.predict_proba(train)[:, 1], model.predict_proba(test)[:, 1]
    return Scores.of(p_train, p_test, y_train, y_test, model.log_marginal_likelihood_value_)


# ---------------------------------------------------------------------- GPy


def has_gpy() -> bool:
    """Say whether GPy is installed."""
    return find_spec("GPy") is not None


@contextmanager
def global_randomness(seed: int) -> Iterator[None]:
    """Fix what a library draws from NumPy's global random state, and put the state back."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def fit_gpy(kern: Any, X_train: FloatArray, X_test: FloatArray, y_train: IntArray, y_test: IntArray) -> Scores:
    """Return the scores of GPy's classifier: probit likelihood, expectation propagation."""
    import GPy

    with global_randomness(0):  # the order of the updates
        model = GPy.models.GPClassification(X_train, y_train[:, None].astype(np.float64), kernel=kern)
        p_train, p_test = (model.predict(X)[0][:, 0] for X in (X_train, X_test))
        return Scores.of(p_train, p_test, y_train, y_test, float(model.log_likelihood()))
