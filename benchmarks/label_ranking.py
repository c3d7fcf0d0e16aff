"""Label ranking: how well rankings are predicted, from complete labels and from labels with items missing.

``python -m benchmarks.label_ranking [-o FILE] [--repeats 5] [--sets NAME ...] [--jobs 1]``. Data is made by the recipe
of Cheng, Hühn and Hüllermeier (2009) from sets that come with scikit-learn: the classes of a classification set in the
order of the probabilities that naive Bayes gives them, or some standardised attributes of a set in the order of their
values, the other attributes being the covariates. A missing item is removed from a training label by chance; test
labels are complete. Ten folds, repeated, the same for all methods; whatever has to be chosen is chosen on a fifth of
the training data of each fold, for each method by itself.

What is in FILE already is kept: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import rankernel as rk
from benchmarks.clock import once, save
from rankernel.models.consensus import Decoder

Array = np.ndarray
MISSING = (0.0, 0.3, 0.6)
ALPHAS, GAMMAS = (0.01, 0.1, 1.0), (0.3, 1.0)  # gammas over the number of covariates
NEIGHBOURS = (5, 10, 20)
DIGITS = 300  # rows: pairwise models of ten classes are slow


# ---------------------------------------------------------------------- data


def by_classes(load: Callable[[], object], n_rows: int | None = None) -> Callable[[], tuple[Array, Array]]:
    """Rank classes by the probabilities of naive Bayes."""

    def make() -> tuple[Array, Array]:
        X, classes = load(return_X_y=True)  # type: ignore[call-arg]
        if n_rows is not None:
            X, _, classes, _ = train_test_split(X, classes, train_size=n_rows, stratify=classes, random_state=0)
        chances = GaussianNB(var_smoothing=1e-6).fit(X, classes).predict_joint_log_proba(X)
        return X, rk.Rankings.from_scores(chances).ranks

    return make


def by_attributes(load: Callable[[], object], labels: slice) -> Callable[[], tuple[Array, Array]]:
    """Rank some standardised attributes by their values; the others are the covariates."""

    def make() -> tuple[Array, Array]:
        table = StandardScaler().fit_transform(load().data)  # type: ignore[attr-defined]
        ranks = np.argsort(np.argsort(-table[:, labels], axis=1, kind="stable"), axis=1)
        return np.delete(table, labels, axis=1), ranks

    return make


SETS: dict[str, Callable[[], tuple[Array, Array]]] = {
    "iris, classes": by_classes(datasets.load_iris),
    "wine, classes": by_classes(datasets.load_wine),
    f"digits, classes ({DIGITS} rows)": by_classes(datasets.load_digits, DIGITS),
    "diabetes, attributes 5-10": by_attributes(datasets.load_diabetes, slice(4, 10)),
    "wine, attributes 9-13": by_attributes(datasets.load_wine, slice(8, 13)),
    "breast cancer, attributes 11-16": by_attributes(datasets.load_breast_cancer, slice(10, 16)),
}


def without(ranks: Array, share: float, rng: np.random.Generator) -> Array:
    """Return labels from which each item is missing by chance, but for two of them at least."""
    keys = rng.random(ranks.shape)
    gone = keys < np.minimum(share, np.sort(keys, axis=1)[:, -2:-1])
    kept = np.where(gone, ranks.shape[1], ranks)
    places = np.argsort(np.argsort(kept, axis=1, kind="stable"), axis=1)
    return np.where(gone, -1, places)


def listed_signs(ranks: Array) -> Array:
    """Return the order of each pair of listed items, and 0 for the others: what is left if items are dropped."""
    a, b = np.triu_indices(ranks.shape[1], 1)
    return np.where((ranks[:, a] >= 0) & (ranks[:, b] >= 0), np.sign(ranks[:, b] - ranks[:, a]), 0).astype(float)


# ---------------------------------------------------------------------- methods: covariates, labels, new ones -> ranks


def tau(predicted: Array, ranks: Array) -> float:
    """Return the mean of Kendall's tau, over the pairs that the given labels put in order."""
    told, signs = listed_signs(ranks), listed_signs(predicted)
    said = np.abs(told).sum(axis=1)
    return float(np.mean((told * signs).sum(axis=1)[said > 0] / said[said > 0]))


def decoded(leads: Array, n_items: int) -> Array:
    """Return the rankings that contradict leads of pairs least."""
    return Decoder(rk.Kendall(), n_items).decode(leads).ranks


Method = Callable[..., Array]


def regression(output_kernel: rk.Kernel, **options: float) -> Method:
    """Kernel ridge regression of embeddings."""

    def method(X: Array, ranks: Array, new: Array, alpha: float, gamma: float) -> Array:
        model = rk.KernelRankingRegressor(alpha, output_kernel=output_kernel, gamma=gamma / X.shape[1], **options)
        return np.asarray(model.fit(X, ranks).predict(new))

    return method


def dropping(X: Array, ranks: Array, new: Array, alpha: float, gamma: float) -> Array:
    """The same of listed pairs only: items that are missing are dropped, and their pairs are 0, as ties are."""
    signs = listed_signs(ranks)
    mean = signs.mean(axis=0)
    ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma / X.shape[1]).fit(X, signs - mean)
    return decoded(mean + ridge.predict(new), ranks.shape[1])


def rows_dropped(X: Array, ranks: Array, new: Array, alpha: float, gamma: float) -> Array:
    """The same of complete labels only; of none, no answer but the first."""
    full = (ranks >= 0).all(axis=1)
    if not full.any():
        return np.tile(np.arange(ranks.shape[1]), (len(new), 1))
    return dropping(X[full], ranks[full], new, alpha, gamma)


def neighbours(X: Array, ranks: Array, new: Array, k: int) -> Array:
    """The majorities of pairs among the nearest rows."""
    near = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(new, return_distance=False)
    return decoded(listed_signs(ranks)[near].sum(axis=1), ranks.shape[1])


def pairwise_logistic(X: Array, ranks: Array, new: Array) -> Array:
    """One logistic regression a pair, on the rows that list both; items in the order of their sums of probabilities."""
    n_items = ranks.shape[1]
    points = np.zeros((len(new), n_items))
    for a in range(n_items):
        for b in range(a + 1, n_items):
            both = (ranks[:, a] >= 0) & (ranks[:, b] >= 0)
            first = ranks[both, a] < ranks[both, b]
            if first.all() or not first.any():
                chance = np.full(len(new), float(first.mean()) if len(first) else 0.5)
            else:
                chance = LogisticRegression(max_iter=200).fit(X[both], first).predict_proba(new)[:, 1]
            points[:, a] += chance
            points[:, b] += 1 - chance
    return np.argsort(np.argsort(-points, axis=1, kind="stable"), axis=1)


def chosen(method: Method, grid: list[dict[str, float]], X: Array, ranks: Array) -> dict[str, float]:
    """Return the parameters that are best on a fifth of the training data."""
    own, other, own_ranks, other_ranks = train_test_split(X, ranks, test_size=0.2, random_state=0)
    if len(grid) == 1:
        return grid[0]
    return max(grid, key=lambda params: tau(method(own, own_ranks, other, **params), other_ranks))


# ---------------------------------------------------------------------- the study


def measure(name: str, share: float, repeats: int) -> dict[str, object]:
    """Return the mean tau of all methods on one set, for a share of missing items."""
    X, ranks = SETS[name]()
    ridge_grid = [{"alpha": alpha, "gamma": gamma} for alpha in ALPHAS for gamma in GAMMAS]
    grids: dict[str, tuple[Method, list[dict[str, float]]]] = {
        "Kendall": (regression(rk.Kendall()), ridge_grid),
        "Kendall, prior 0": (regression(rk.Kendall(), prior=0), ridge_grid),
        "Kendall, prior inf": (regression(rk.Kendall(), prior=np.inf), ridge_grid),
        "Spearman": (regression(rk.Spearman()), ridge_grid),
        "Hamming": (regression(rk.Hamming()), ridge_grid),
        "items dropped": (dropping, ridge_grid),
        "rows dropped": (rows_dropped, ridge_grid),
        "neighbours": (neighbours, [{"k": k} for k in NEIGHBOURS]),
        "pairwise logistic": (pairwise_logistic, [{}]),
    }
    found: dict[str, list[float]] = {}
    for number, (train, test) in enumerate(RepeatedKFold(n_splits=10, n_repeats=repeats, random_state=0).split(X)):
        scaler = StandardScaler().fit(X[train])
        own, new = scaler.transform(X[train]), scaler.transform(X[test])
        labels = without(ranks[train], share, np.random.default_rng(number))
        for method, (run, grid) in grids.items():
            predicted = run(own, labels, new, **chosen(run, grid, own, labels))
            found.setdefault(method, []).append(tau(predicted, ranks[test]))
    by_repeat = {method: np.reshape(taus, (repeats, 10)).mean(axis=1) for method, taus in found.items()}
    ahead = np.count_nonzero(by_repeat["Kendall"] > by_repeat["items dropped"])
    return {
        "set": name,
        "size": f"{len(X)} x {X.shape[1]}, {ranks.shape[1]} items",
        "missing": share,
        **{method: round(float(np.mean(taus)), 4) for method, taus in found.items()},
        "sd of Kendall": round(float(np.std(found["Kendall"])), 4),
        "repeats in which Kendall is ahead of items dropped": f"{ahead} of {repeats}",
    }


def measure_alone(name: str, share: float, repeats: int) -> dict[str, object]:
    """Measure with one thread: others measure at the same time."""
    with threadpool_limits(1):
        return measure(name, share, repeats)


def speed(n_rows: int = 10_000, n_items: int = 10) -> dict[str, object]:
    """Return the seconds for many rows with top-3 labels, through Nystrom features of the covariates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6))
    labels = rk.Rankings.from_scores(np.sin(X @ rng.normal(size=(6, n_items)))).top(3)
    features = Nystroem(gamma=0.1, n_components=300, random_state=0)
    model = make_pipeline(features, rk.KernelRankingRegressor(kernel="linear"))
    model.fit(X[:500], labels[:500]).predict(X[:10])
    fitted, predicted = once(lambda: model.fit(X, labels)), once(lambda: model.predict(X))
    size = f"{n_rows:,} rows, top 3 of {n_items} items, 300 features"
    return {"size": size, "seconds to fit": round(fitted, 2), "seconds to predict all": round(predicted, 2)}


def done_before(path: Path | None, measured: str) -> list[dict[str, object]]:
    """Return the rows of a file that were measured in the same way."""
    if path is None or not path.exists():
        return []
    content = json.loads(path.read_text(encoding="utf-8"))
    return content["rows"] if content["measured"] == measured else []


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label_ranking", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    options = parser.parse_args()
    measured = f"mean Kendall tau, ten folds {options.repeats} times"
    rows = done_before(options.output, measured)
    cells = [(name, share) for name in options.sets for share in MISSING]
    todo = [cell for cell in cells if cell not in [(row["set"], row["missing"]) for row in rows]]
    many = speed()
    print(many, flush=True)

    def keep() -> None:
        rows.sort(key=lambda row: (list(SETS).index(str(row["set"])), row["missing"]))
        if options.output is not None:
            save(options.output, rows, measured=measured, speed=many)

    keep()
    with ProcessPoolExecutor(options.jobs) as pool:
        for future in as_completed([pool.submit(measure_alone, *cell, options.repeats) for cell in todo]):
            rows.append(future.result())
            print(rows[-1], flush=True)
            keep()


if __name__ == "__main__":
    main()
