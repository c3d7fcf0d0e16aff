"""Label ranking on the published files: how well rankings are predicted, from complete and from incomplete labels.

``python -m benchmarks.label_ranking FOLDER [-o FILE] [--sets NAME ...] [--folds 50]``, where FOLDER has the files of
Cheng, Hühn and Hüllermeier (2009) as used by Korba, Garcia and d'Alché-Buc (2018): covariates and a column ``ranking``.
The published protocol: ten folds five times, the same for all methods, with standardised covariates. An item is missing
from a training label with probability 0, 0.3 or 0.6; test labels are complete.

The regression chooses kernels and parameters by its leave-one-out error. The published methods are fitted in the same
folds: nearest neighbours with the Kemeny ranking of the neighbours (instance-based, Mallows), one logistic regression
for each pair, a tree and a forest on the signs of pairs (for a Mallows model of the leaves), and with complete labels
the kernel ridge regressions of Korba et al. with Kemeny, Hamming and Lehmer embeddings. The number of neighbours and
the size of leaves are chosen on a fifth of the training data; penalty and bandwidth of Korba et al. by
cross-validation.

Rows of FILE that were measured before are not measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RepeatedKFold, train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import rankernel as rk
from benchmarks.clock import save
from rankernel.models.consensus import Decoder

Array = np.ndarray
Method = Callable[..., Array]  # covariates, labels, new covariates, parameters -> ranks
MISSING = (0.0, 0.3, 0.6)
LEVEL = 0.9  # confidence level of prediction sets
FILES = [
    "iris",
    "wine",
    "glass",
    "wisconsin",
    "bodyfat",
    "housing",
    "vowel",
    "authorship",
    "vehicle",
    "stock",
    "segment",
    "cpu-small",
]  # by size


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
    positions = np.argsort(np.argsort(kept, axis=1, kind="stable"), axis=1)
    return np.where(gone, -1, positions)


def listed_signs(ranks: Array) -> Array:
    """Return the order of each pair of listed items, and 0 for the others: what is left if items are dropped."""
    a, b = np.triu_indices(ranks.shape[1], 1)
    return np.where((ranks[:, a] >= 0) & (ranks[:, b] >= 0), np.sign(ranks[:, b] - ranks[:, a]), 0).astype(float)


def tau(predicted: Array, ranks: Array) -> float:
    """Return the mean of Kendall's tau, over the pairs that the given labels order."""
    ordered, signs = listed_signs(ranks), listed_signs(predicted)
    number = np.abs(ordered).sum(axis=1)
    return float(np.mean((ordered * signs).sum(axis=1)[number > 0] / number[number > 0]))


def ranks_of(scores: Array) -> Array:
    """Return the ranks of items by their scores, the largest first."""
    return np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)


# ---------------------------------------------------------------------- published methods


def kemeny(margins: Array, n_items: int) -> Array:
    """Return the rankings that contradict the margins of pairs least."""
    return Decoder(rk.Kendall(), n_items).decode(margins).ranks


def neighbours(X: Array, ranks: Array, new: Array, k: int) -> Array:
    """The Kemeny ranking of the nearest rows, which is the center of their Mallows model."""
    near = NearestNeighbors(n_neighbors=min(k, len(X))).fit(X).kneighbors(new, return_distance=False)
    return kemeny(listed_signs(ranks)[near].sum(axis=1), ranks.shape[1])


def tree(X: Array, ranks: Array, new: Array, leaf: int) -> Array:
    """A regression tree of the signs of pairs, and the Kemeny ranking of each leaf."""
    model = DecisionTreeRegressor(min_samples_leaf=leaf, random_state=0).fit(X, listed_signs(ranks))
    return kemeny(model.predict(new).reshape(len(new), -1), ranks.shape[1])


def forest(X: Array, ranks: Array, new: Array, leaf: int) -> Array:
    """A random forest of such trees."""
    model = RandomForestRegressor(100, min_samples_leaf=leaf, max_features="sqrt", random_state=0)
    return kemeny(model.fit(X, listed_signs(ranks)).predict(new).reshape(len(new), -1), ranks.shape[1])


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
    return ranks_of(points)


def lehmer_code(ranks: Array) -> Array:
    """Return for each position the number of later positions with a smaller item, scaled to [0, 1]."""
    orders = np.argsort(ranks, axis=1)
    later = np.triu(np.ones((orders.shape[1],) * 2, dtype=bool), 1)
    code = ((orders[:, :, None] > orders[:, None, :]) & later).sum(axis=2)
    return code[:, :-1] / np.arange(orders.shape[1] - 1, 0, -1)


def from_lehmer_code(code: Array) -> Array:
    """Return the ranks of the nearest Lehmer codes."""
    n_items = code.shape[1] + 1
    numbers = np.rint(np.clip(code, 0, 1) * np.arange(n_items - 1, 0, -1)).astype(int)
    ranks = np.empty((len(code), n_items), dtype=int)
    for row, counts in zip(ranks, numbers, strict=True):
        left = list(range(n_items))
        for position, count in enumerate([*counts.tolist(), 0]):
            row[left.pop(count)] = position
    return ranks


def assigned(tables: Array, n_items: int) -> Array:
    """Return the rankings with the largest sums of the entries of item by position."""
    return np.stack([linear_sum_assignment(table, maximize=True)[1] for table in tables.reshape(-1, n_items, n_items)])


def ridge(X: Array, targets: Array, new: Array) -> Array:
    """Kernel ridge regression with a Gaussian kernel, whose parameters are chosen by cross-validation."""
    grid = {"alpha": 10.0 ** np.arange(-4, 2), "gamma": 10.0 ** np.arange(-3, 1.1) / X.shape[1]}
    mean, used = targets.mean(axis=0), slice(1000)
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5, refit=False, scoring="neg_mean_squared_error")
    search.fit(X[used], (targets - mean)[used])
    return mean + KernelRidge(kernel="rbf", **search.best_params_).fit(X, targets - mean).predict(new)


def korba_kemeny(X: Array, ranks: Array, new: Array) -> Array:
    """Korba et al. with the Kemeny embedding."""
    return kemeny(ridge(X, listed_signs(ranks), new), ranks.shape[1])


def korba_hamming(X: Array, ranks: Array, new: Array) -> Array:
    """Korba et al. with the Hamming embedding."""
    n_items = ranks.shape[1]
    return assigned(ridge(X, np.eye(n_items)[ranks].reshape(len(ranks), -1), new), n_items)


def korba_lehmer(X: Array, ranks: Array, new: Array) -> Array:
    """Korba et al. with Lehmer codes."""
    return from_lehmer_code(ridge(X, lehmer_code(ranks), new))


LEAVES = [{"leaf": leaf} for leaf in (1, 5)]
PUBLISHED: dict[str, tuple[Method, list[dict[str, float]]]] = {
    "neighbours": (neighbours, [{"k": k} for k in (5, 10, 20)]),
    "pairwise logistic": (pairwise_logistic, [{}]),
    "tree": (tree, LEAVES),
    "forest": (forest, LEAVES),
}
OF_COMPLETE_LABELS: dict[str, tuple[Method, list[dict[str, float]]]] = {
    "Korba, Kemeny": (korba_kemeny, [{}]),
    "Korba, Hamming": (korba_hamming, [{}]),
    "Korba, Lehmer": (korba_lehmer, [{}]),
}


def chosen(method: Method, grid: list[dict[str, float]], X: Array, ranks: Array) -> dict[str, float]:
    """Return the parameters that are best on a fifth of the training data."""
    if len(grid) == 1:
        return grid[0]
    own, other, own_ranks, other_ranks = train_test_split(X, ranks, test_size=0.2, random_state=0)
    return max(grid, key=lambda params: tau(method(own, own_ranks, other, **params), other_ranks))


# ---------------------------------------------------------------------- the study


def measure(folder: Path, name: str, share: float, n_folds: int) -> dict[str, object]:
    """Return the mean tau of all methods on one file, for a share of missing items."""
    X, ranks = load(folder / f"{name}.txt")
    methods = PUBLISHED | (OF_COMPLETE_LABELS if share == 0 else {})
    taus: dict[str, list[float]] = {"regression": []}
    right, stated, kernels = [], [], []
    folds = RepeatedKFold(n_splits=10, n_repeats=5, random_state=0).split(X)
    for number, (train, test) in zip(range(n_folds), folds, strict=False):
        scaler = StandardScaler().fit(X[train])
        own, new = scaler.transform(X[train]), scaler.transform(X[test])
        labels = without(ranks[train], share, np.random.default_rng(number))
        model = rk.KernelRankingRegressor().fit(own, labels)
        kernels.append(f"{model.kernel_}, {type(model.output_kernel_).__name__}")
        taus["regression"].append(tau(np.asarray(model.predict(new)), ranks[test]))
        for method, (run, grid) in methods.items():
            predicted = run(own, labels, new, **chosen(run, grid, own, labels))
            taus.setdefault(method, []).append(tau(predicted, ranks[test]))
        if share == 0:
            before = model.predict_set(new, confidence_level=LEVEL).before
            wrong = before & (ranks[test][:, :, None] > ranks[test][:, None, :])
            right.extend(~wrong.any(axis=(1, 2)))
            stated.append(before.sum() / (len(test) * ranks.shape[1] * (ranks.shape[1] - 1) / 2))
    row = {
        "file": name,
        "size": f"{len(X)} x {X.shape[1]}, {ranks.shape[1]} items",
        "missing": share,
        "folds": n_folds,
        **{method: round(float(np.mean(values)), 4) for method, values in taus.items()},
        "sd of regression": round(float(np.std(taus["regression"])), 4),
        "kernels": max(set(kernels), key=kernels.count),
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
    model = make_pipeline(features, rk.KernelRankingRegressor(1.0, kernel="linear", output_kernel="kendall"))
    model.fit(X[:500], labels[:500]).predict(X[:10])
    fitted = processor_seconds(lambda: model.fit(X, labels))
    predicted = processor_seconds(lambda: model.predict(X))
    size = f"{n_rows:,} rows, top 3 of {n_items} items, 300 features"
    return {"size": size, "seconds to fit": round(fitted, 2), "seconds to predict all": round(predicted, 2)}


def selection_cost(n_rows: int = 2000, n_items: int = 6) -> dict[str, object]:
    """Return the processor seconds of a fit with given and with chosen kernels and parameters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6))
    labels = rk.Rankings.from_scores(np.sin(X @ rng.normal(size=(6, n_items))))
    given = rk.KernelRankingRegressor(0.1, kernel="rbf", gamma=0.1, output_kernel="kendall")
    seconds = [
        processor_seconds(lambda model=model: model.fit(X, labels)) for model in (given, rk.KernelRankingRegressor())
    ]
    size = f"{n_rows:,} rows, {n_items} items"
    return {"size": size, "seconds, given": round(seconds[0], 2), "seconds, chosen": round(seconds[1], 2)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.label_ranking", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the published files")
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    parser.add_argument("--sets", nargs="*", default=FILES, choices=FILES)
    parser.add_argument("--folds", type=int, default=50, help="of the ten folds five times")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="Unable to find|.*Singular matrix|.*Ill-conditioned")
    measured = "mean Kendall tau in ten folds, five times; coverage of prediction sets of level 0.9"
    rows: list[dict[str, object]] = []
    if options.output is not None and options.output.exists():
        content = json.loads(options.output.read_text(encoding="utf-8"))
        rows = content["rows"] if content["measured"] == measured else []
    with threadpool_limits(1):
        settings = {"measured": measured, "speed": speed(), "selection": selection_cost()}
        for name in options.sets:
            for share in MISSING:
                if (name, share, options.folds) not in [(row["file"], row["missing"], row["folds"]) for row in rows]:
                    rows.append(measure(options.folder, name, share, options.folds))
                    print(rows[-1], flush=True)
                    if options.output is not None:
                        save(options.output, rows, **settings)


if __name__ == "__main__":
    main()
