"""How many rows mean embeddings should be worth where labels leave pairs open: ``KernelRankingRegressor(prior=...)``.

``python -m benchmarks.prior [-o FILE] [--repeats 40]``. On data of its own, so that the default owes nothing to the
sets of ``benchmarks.label_ranking``: items have utilities that are random smooth functions of some covariates, and
voters rank them with noise. Labels miss items by chance, or end after a third of the items; penalties are chosen on a
fifth of the training data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.kernel_ridge import KernelRidge

import rankernel as rk
from benchmarks.clock import save
from benchmarks.label_ranking import Array, Method, chosen, kemeny, listed_signs, tau, without

PRIORS = (0, 3, 10, 30, 100, np.inf)
NOISES = (0.1, 0.5, 2.0)
LABELS = ("30 % missing", "60 % missing", "the first third")
ALPHAS = (0.1, 1.0, 10.0)
N_WAVES = 40


def voters(n_voters: int, n_items: int, noise: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return covariates and full rankings: utilities are sums of waves, around a mean of each item."""
    X = rng.normal(size=(n_voters, int(rng.integers(2, 8))))
    waves = np.cos(X @ rng.normal(0, 0.7, size=(X.shape[1], N_WAVES)) + rng.uniform(0, 2 * np.pi, N_WAVES))
    utilities = waves @ rng.normal(size=(N_WAVES, n_items)) / np.sqrt(N_WAVES / 2) + rng.normal(0, 0.5, n_items)
    heard = utilities + rng.normal(0, noise, utilities.shape)
    return X, np.argsort(np.argsort(-heard, axis=1), axis=1)


def partial(ranks: Array, labels: str, rng: np.random.Generator) -> Array:
    """Return labels that leave some items open."""
    if labels == "the first third":
        return np.minimum(ranks, max(ranks.shape[1] // 3, 1))
    return without(ranks, int(labels.split()[0]) / 100, rng)


def regression(prior: float) -> Method:
    """Kernel ridge regression of Kendall embeddings with a given penalty and bandwidth."""

    def method(X: Array, ranks: Array, new: Array, alpha: float, gamma: float) -> Array:
        model = rk.KernelRankingRegressor(
            alpha, kernel="rbf", output_kernel="kendall", gamma=gamma / X.shape[1], prior=prior
        )
        return np.asarray(model.fit(X, ranks).predict(new))

    return method


def dropping(X: Array, ranks: Array, new: Array, alpha: float, gamma: float) -> Array:
    """Kernel ridge regression of listed pairs only: the pairs of missing items are 0, as ties are."""
    signs = listed_signs(ranks)
    mean = signs.mean(axis=0)
    ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma / X.shape[1]).fit(X, signs - mean)
    return kemeny(mean + ridge.predict(new), ranks.shape[1])


def measure(labels: str, noise: float, repeats: int) -> dict[str, object]:
    """Return the mean tau for each prior, on voters who were not learnt from."""
    grid = [{"alpha": alpha, "gamma": 0.5} for alpha in ALPHAS]
    methods = {f"prior {prior}": regression(prior) for prior in PRIORS} | {"items dropped": dropping}
    found: dict[str, list[float]] = {}
    for repeat in range(repeats):
        rng = np.random.default_rng(repeat)
        n_train, n_items = int(rng.choice([100, 250])), int(rng.choice([4, 7]))
        X, ranks = voters(n_train + 200, n_items, noise, rng)
        own, told, new = X[:n_train], partial(ranks[:n_train], labels, rng), X[n_train:]
        for name, method in methods.items():
            predicted = method(own, told, new, **chosen(method, grid, own, told))
            found.setdefault(name, []).append(tau(predicted, ranks[n_train:]))
    return {"labels": labels, "noise": noise, **{name: round(float(np.mean(taus)), 4) for name, taus in found.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prior", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    parser.add_argument("--repeats", type=int, default=40)
    options = parser.parse_args()
    rows = []
    for labels in LABELS:
        for noise in NOISES:
            rows.append(measure(labels, noise, options.repeats))
            print(rows[-1], flush=True)
    if options.output is not None:
        save(options.output, rows, measured=f"mean Kendall tau on {options.repeats} random sets of voters")


if __name__ == "__main__":
    main()
