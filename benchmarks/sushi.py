"""Sushi users, east or west: two-sample tests, and classifiers side by side by cross-validation.

``RANKERNEL_DATA=... python -m benchmarks.sushi``. Uses the users' lists of set A cut to their first six, and set B, ten
of a hundred items with the others free.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.svm import SVC

import rankernel as rk
from reproduction.sushi import load_sushi

FOLDER = Path(os.environ["RANKERNEL_DATA"]) / "sushi3-2016"
N_USERS = 1000


def tests(rankings: rk.Rankings, groups: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(0)
    for name, member in {**groups, "a random half": rng.random(len(rankings)) < 0.5}.items():
        result = rk.mmd_test(rankings[member], rankings[~member], rk.Mallows("median"), n_permutations=999, rng=0)
        print(f"  MMD test, {name:32} p = {result.pvalue:.3f}")


def classifiers(rankings: rk.Rankings, labels: np.ndarray, method: object) -> None:
    X, kernel = rankings.ranks, rk.Mallows("median").resolve(rankings)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    one = rk.SklearnKernel(kernel, method=method)
    print(f"  majority class                   {max(labels.mean(), 1 - labels.mean()):.3f}")
    svc = GridSearchCV(SVC(kernel=one), {"C": [0.3, 1.0, 3.0]}, cv=3)
    nystrom = rk.NystromFeatures(n_components=100, kernel=kernel, method=method).fit_transform(rankings)
    candidates = {
        "SVC, C by inner cross-validation": (svc, X),
        "ridge on 100 Nystrom features": (RidgeClassifierCV(alphas=np.logspace(-2, 2, 5)), nystrom),
    }
    for name, (model, data) in candidates.items():
        start = time.perf_counter()
        score = cross_val_score(model, data, labels, cv=folds).mean()
        print(f"  {name:32} {score:.3f}   {time.perf_counter() - start:.0f} s")
    start = time.perf_counter()
    model = GaussianProcessClassifier(1.0 * one, random_state=0).fit(X, labels)
    likelihood = model.log_marginal_likelihood_value_
    print(f"  GP on all {len(X)}: {model.kernel_}, log marginal likelihood {likelihood:.1f}, ", end="")
    print(f"{time.perf_counter() - start:.0f} s")
    fixed = GaussianProcessClassifier(model.kernel_, optimizer=None)
    print(f"  {'GP, these parameters':32} {cross_val_score(fixed, X, labels, cv=folds).mean():.3f}")


def main() -> None:
    for which, n_users, method in (("a", N_USERS, "auto"), ("b", 300, rk.MonteCarlo(16))):
        data = load_sushi(FOLDER, which)
        rankings = data.rankings[:n_users].top(6) if which == "a" else data.rankings[:n_users]
        users = {name: values[:n_users] for name, values in data.users.items()}
        print(f"set {which}, {n_users} users, {rankings.n_items} items")
        west = users["east_west"] == 1
        if which == "a":
            tests(rankings, {"east or west": west, "gender": users["gender"] == 1, "under thirty": users["age"] < 2})
        classifiers(rankings, west, method)


if __name__ == "__main__":
    main()
