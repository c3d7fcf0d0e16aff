"""Label ranking on the published files: how well rankings are predicted, from complete and from incomplete labels.

``python -m benchmarks.label_ranking FOLDER [-o FILE] [--sets NAME ...]``, where FOLDER has the files of Cheng, Hühn and
Hüllermeier (2009) as used by Korba, Garcia and d'Alché-Buc (2018): covariates and a column ``ranking``. Ten folds,
repeated, the same for all methods; covariates are standardised. An item is missing from a training label with
probability 0, 0.3 or 0.6; test labels are complete. The regression chooses its parameters by default; the number of
neighbours is chosen on a fifth of the training data of each fold. Large files have fewer repetitions, see FOLDS.

Rows of FILE that were measured before are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedKFold, train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import rankernel as rk
from benchmarks.clock import save
from rankernel.models.consensus import Decoder

Array = np.ndarray
MISSING = (0.0, 0.3, 0.6)
NEIGHBOURS = (5, 10, 20)
LEVEL = 0.9  # confidence level of prediction sets
FOLDS = {  # number of folds: ten folds five times, twice or once, or the first ones of ten
    "iris": 50,
    **dict.fromkeys(("wine", "glass", "wisconsin", "bodyfat"), 20),
    **dict.fromkeys(("housing", "vowel", "authorship", "vehicle", "stock"), 5),
    "segment": 3,
    "cpu-small": 1,
}


# ---------------------------------------------------------------------- data


def load(path: Path) -> tuple[Array, Array]:
    """Return the covariates and the ranks of a published file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    orders = [row[-1].split(">") for row in rows]
    items = sorted(orders[0])
    return np.array([row[:-1] for row in rows], dtype=float), np.array(
        [[order.index(item) for item in items] for order in orders]
    )


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
    """Kernel ridge regression of embeddings with a given penalty and bandwidth."""

    def method(X: Array, ranks: Array, new: Array, alpha: float, gamma: float) -> Array:
        model = rk.KernelRankingRegressor(
            alpha, kernel="rbf", output_kernel=output_kernel, gamma=gamma / X.shape[1], **options
        )
        return np.asarray(model.fit(X, ranks).predict(new))

    return method


def dropping(X: Array, ranks: Array, new: Array, alpha: float, gamma: float) -> Array:
    """The same of listed pairs only: items that are missing are dropped, and their pairs are 0, as ties are."""
    signs = listed_signs(ranks)
    mean = signs.mean(axis=0)
    ridge = KernelRidge(alpha=alpha, kernel="rbf", gamma=gamma / X.shape[1]).fit(X, signs - mean)
    return decoded(mean + ridge.predict(new), ranks.shape[1])


def neighbours(X: Array, ranks: Array, new: Array, k: int) -> Array:
    """The majorities of pairs among the nearest rows."""
    near = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(new, return_distance=False)
    return decoded(listed_signs(ranks)[near].sum(axis=1), ranks.shape[1])


def random_forest(X: Array, ranks: Array, new: Array) -> Array:
    """A random forest of the signs of all pairs, 0 for those that are not listed."""
    forest = RandomForestRegressor(100, min_samples_leaf=1, max_features="sqrt", random_state=0)
    return decoded(forest.fit(X, listed_signs(ranks)).predict(new).reshape(len(new), -1), ranks.shape[1])


def with_rbf(X: Array, ranks: Array, new: Array) -> Array:
    """Kernel ridge regression with the Gaussian kernel whose parameters are chosen by the leave-one-out error."""
    return np.asarray(rk.KernelRankingRegressor(kernel="rbf").fit(X, ranks).predict(new))


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


def measure(folder: Path, name: str, share: float) -> dict[str, object]:
    """Return the mean tau of all methods on one file, for a share of missing items."""
    X, ranks = load(folder / f"{name}.txt")
    methods: dict[str, tuple[Method, list[dict[str, float]]]] = {
        "neighbours": (neighbours, [{"k": k} for k in NEIGHBOURS]),
        "pairwise logistic": (pairwise_logistic, [{}]),
        "random forest": (random_forest, [{}]),
    }
    if share == 0:
        methods["rbf"] = with_rbf, [{}]
    taus: dict[str, list[float]] = {}
    right, stated = [], []
    folds = RepeatedKFold(n_splits=10, n_repeats=5, random_state=0).split(X)
    for number, (train, test) in zip(range(FOLDS[name]), folds, strict=False):
        scaler = StandardScaler().fit(X[train])
        own, new = scaler.transform(X[train]), scaler.transform(X[test])
        labels = without(ranks[train], share, np.random.default_rng(number))
        model = rk.KernelRankingRegressor().fit(own, labels)
        taus.setdefault("regression", []).append(tau(np.asarray(model.predict(new)), ranks[test]))
        for method, (run, grid) in methods.items():
            predicted = run(own, labels, new, **chosen(run, grid, own, labels))
            taus.setdefault(method, []).append(tau(predicted, ranks[test]))
        if share == 0:
            before = model.predict_set(new, LEVEL).before
            wrong = before & (ranks[test][:, :, None] > ranks[test][:, None, :])
            right.extend(~wrong.any(axis=(1, 2)))
            stated.append(before.sum() / (len(test) * ranks.shape[1] * (ranks.shape[1] - 1) / 2))
    row = {
        "file": name,
        "size": f"{len(X)} x {X.shape[1]}, {ranks.shape[1]} items",
        "missing": share,
        "folds": FOLDS[name],
        **{method: round(float(np.mean(values)), 4) for method, values in taus.items()},
        "sd of regression": round(float(np.std(taus["regression"])), 4),
    }
    if right:
        row |= {"coverage": round(float(np.mean(right)), 3), "pairs stated": round(float(np.mean(stated)), 3)}
    return row


def processor_seconds(call: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def speed(n_rows: int = 10_000, n_items: int = 10) -> dict[str, object]:
    """Return the processor seconds for many rows with top-3 labels, through Nystrom features of the covariates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6))
    labels = rk.Rankings.from_scores(np.sin(X @ rng.normal(size=(6, n_items)))).top(3)
    features = Nystroem(gamma=0.1, n_components=300, random_state=0)
    model = make_pipeline(features, rk.KernelRankingRegressor(1.0, kernel="linear"))
    model.fit(X[:500], labels[:500]).predict(X[:10])
    fitted = processor_seconds(lambda: model.fit(X, labels))
    predicted = processor_seconds(lambda: model.predict(X))
    size = f"{n_rows:,} rows, top 3 of {n_items} items, 300 features"
    return {"size": size, "seconds to fit": round(fitted, 2), "seconds to predict all": round(predicted, 2)}


def done_before(path: Path | None, measured: str) -> list[dict[str, object]]:
    """Return the rows of a file that were measured in the same way."""
    if path is None or not path.exists():
        return []
    content = json.loads(path.read_text(encoding="utf-8"))
    return content["rows"] if content["measured"] == measured else []


def selection_cost(n_rows: int = 2000, n_items: int = 6) -> dict[str, object]:
    """Return the processor seconds of a fit with given and with chosen kernel and parameters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6))
    labels = rk.Rankings.from_scores(np.sin(X @ rng.normal(size=(6, n_items))))
    given = processor_seconds(lambda: rk.KernelRankingRegressor(0.1, kernel="rbf", gamma=0.1).fit(X, labels))
    chosen_by_loo = processor_seconds(lambda: rk.KernelRankingRegressor().fit(X, labels))
    size = f"{n_rows:,} rows, {n_items} items"
    return {"size": size, "seconds, given": round(given, 2), "seconds, chosen": round(chosen_by_loo, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label_ranking", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the published files")
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    parser.add_argument("--sets", nargs="*", default=list(FOLDS), choices=list(FOLDS))
    options = parser.parse_args()
    measured = "mean Kendall tau in ten folds, up to five times; coverage of prediction sets of level 0.9"
    rows = done_before(options.output, measured)
    with threadpool_limits(1):
        settings = {"measured": measured, "speed": speed(), "selection": selection_cost()}
        for name in options.sets:
            for share in MISSING:
                if (name, share) not in [(row["file"], row["missing"]) for row in rows]:
                    rows.append(measure(options.folder, name, share))
                    print(rows[-1], flush=True)
                    if options.output is not None:
                        save(options.output, rows, **settings)


if __name__ == "__main__":
    main()
