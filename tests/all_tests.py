"""All hypothesis tests, each with data for it; contracts of the package are tested on this list."""

import inspect

import numpy as np

import rankernel as rk


def halves(X):
    """One label for each row: "a" for the first half, "b" for the second."""
    return np.repeat(["a", "b"], [len(X) // 2, len(X) - len(X) // 2])


def parts(X):
    half = len(X) // 2
    return {"X": X[:half], "Y": X[half : 2 * half]}


TESTS = {  # name: data from at least 8 rankings
    "mmd_test": parts,
    "mmd_aggregated_test": parts,
    "paired_test": parts,
    "k_sample_test": lambda X: {"X": X, "groups": halves(X)},
    "hsic_test": lambda X: {"X": X, "covariate": halves(X)},
    "trend_test": lambda X: {"X": X, "time": np.arange(len(X))},
    "change_point_test": lambda X: {"X": X},
    "outlier_test": lambda X: {"X": X, "reference": rk.concat([X] * 41)},
    "goodness_of_fit_test": lambda X: {"X": X, "model": rk.Uniform()},
}


def arguments(name, X, kernel, method="auto"):
    """Return arguments of a test, with few permutations or simulations."""
    options = {"kernel": kernel, "kernels": [kernel], "method": method, "rng": 0, "n_jobs": 1}
    options |= {"n_permutations": 9, "n_simulations": 9}
    taken = inspect.signature(getattr(rk, name)).parameters
    return TESTS[name](X) | {key: value for key, value in options.items() if key in taken}


def run(name, X, kernel, method="auto"):
    """Return the result of a test."""
    return getattr(rk, name)(**arguments(name, X, kernel, method))
