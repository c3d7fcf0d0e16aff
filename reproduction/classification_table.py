"""Table 3: Gaussian process classification of SUSHI users into east and west."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel

from rankernel import Exponential, Kendall, Kernel, Mallows, Rankings
from rankernel._utils import FloatArray, Indices, IntArray
from reproduction.paper import TABLE_3
from reproduction.results import Entry, MeanSD, Table, mean_sd
from reproduction.study import ANTITHETIC, DRAWN, EXACT, FULL, IID, ROWS, Study, UserExperiment, method_of

TOP, N_DRAWS, N_TEST, LABEL = 6, 4, 20, "east_west"
SCALES = (0.5, 1.0, 2.0, 5.0, 9.5, 20.0, 50.0)
PAPER_SCALE = 9.5
KERNELS: dict[str, tuple[Kernel, int]] = {  # with the number of training users
    "Mallows": (Mallows("median"), 100),
    "Gaussian": (Exponential("spearman", "median"), 50),
    "Kendall": (Kendall(), 100),
}
MEASURES = {"accuracy": "accuracy", "train": "train log lik.", "test": "test log lik."}
SKLEARN, GPY = "scikit-learn", "GPy"


class ClassificationTable(UserExperiment):
    """Table 3 by the protocol of the paper, and by one that does not use the test set for tuning."""

    name = "table3"
    title = "Table 3: Gaussian process classification, east or west"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.n_runs = study.pick(10, 2)  # of the draws
        self.n_splits = study.pick(15, 2)  # beside that of the paper's protocol
        self.n_test = study.pick(300, 30)  # test users of the protocol without test-set tuning
        self.scales = {SKLEARN: SCALES, GPY: study.pick(SCALES, (PAPER_SCALE,))}

    def protocol(self) -> list[str]:
        """Return the protocol."""
        trained = self.study.pick("100 training users (50 for the Gaussian kernel on ranks)", "40 training users")
        gpy = "GPy: probit likelihood, expectation propagation, its default." if has_gpy() else self.skipped()
        return [
            (
                f"{self.users.name}; the class is the current region, east or west; top-{TOP} lists; {N_DRAWS} draws; "
                f"nu = 1/median of the training rankings; {trained}. The paper does not describe its split. The "
                "published accuracies of the full models are multiples of 0.05, which would result from "
                f"{N_TEST} test users."
            ),
            (
                f"Protocol of the paper: one split, {self.n_runs} runs of the draws; among the scales "
                f"{', '.join(map(str, SCALES))} (factors of the kernel) the one with the largest mean accuracy *on the "
                "test set*, the smallest in case of ties. scikit-learn: logistic likelihood, Laplace approximation. "
                f"{gpy}"
            ),
            (
                f"Protocol without test-set tuning: {self.n_splits} splits with {self.n_test} test users each; the "
                "scale maximizes the marginal likelihood of the training data; one run of the draws for each split."
            ),
        ]

    def tables(self) -> list[Table]:
        """Return the table by the paper's protocol, on other splits, and without test-set tuning."""
        by_gpy = [self.by_the_paper(GPY), self.at_the_papers_scale()] if has_gpy() else []
        return [self.by_the_paper(SKLEARN), *by_gpy, self.other_splits(), self.untuned()]

    def skipped(self) -> str:
        """Return that the tables of GPy are missing if it is not installed."""
        return "" if has_gpy() else "GPy is not installed (pip install 'rankernel[gpy]'), so its tables are missing."

    # ------------------------------------------------------------------ cells

    def split(self, kernel: str, number: int, n_test: int) -> Split:
        """Return a random split of users, with the kernel resolved by the training rankings."""
        unresolved, n_train = KERNELS[kernel]
        chosen = self.study.generator("split", number).choice(len(self.users), 100 + n_test, replace=False)
        train, test = chosen[: self.study.pick(n_train, 40)], chosen[100:]
        rankings, labels = self.users.rankings, self.users.labels[LABEL]
        return Split(unresolved.resolve(rankings[train]), rankings[train], rankings[test], labels[train], labels[test])

    def path(
        self, engine: str, kernel: str, row: str, run: int = 0, number: int = 0, n_test: int = N_TEST
    ) -> list[Scores]:
        """Return the scores of scikit-learn or GPy along the scales, for one run of the draws on one split."""

        def compute() -> list[Any]:
            split, seed = self.split(kernel, number, n_test), self.study.stream("draws", number, run)
            fit = split.sklearn_fit(row, seed) if engine == SKLEARN else split.gpy_fit(row, seed)
            return [asdict(fit(scale)) for scale in self.scales[engine]]

        parameters = {"engine": engine, "kernel": kernel, "row": row, "split": number, "test": n_test, "run": run}
        return [Scores(**each) for each in self.study.cell(self.name, compute, data=self.users.name, **parameters)]

    def test_paths(self, engine: str, kernel: str, row: str) -> FloatArray:
        """Return accuracy and log likelihoods by run and scale, on the split of the paper's protocol."""
        runs = [self.path(engine, kernel, row, run) for run in range(self.n_runs if row in DRAWN else 1)]
        return np.array([[[getattr(scores, m) for m in MEASURES] for scores in run] for run in runs])

    # ------------------------------------------------------------------ the paper's protocol

    def by_the_paper(self, engine: str) -> Table:
        """Return the table with the scale of largest accuracy on the test set."""

        def entries(kernel: str, row: str) -> tuple[Entry, ...]:
            paths = self.test_paths(engine, kernel, row)
            best = int(np.argmax(paths[:, :, 0].mean(axis=0)))
            return (self.scales[engine][best], *(over_runs(paths[:, best, column]) for column in range(3)))

        name = "table3_paper_protocol" if engine == SKLEARN else "table3_gpy"
        return self.compared(
            name, f"Protocol of the paper (scale tuned on the test set), {engine}", ("scale",), entries
        )

    def at_the_papers_scale(self) -> Table:
        """Return the table at the scale stated in the paper, by GPy."""
        index = self.scales[GPY].index(PAPER_SCALE)

        def entries(kernel: str, row: str) -> tuple[Entry, ...]:
            paths = self.test_paths(GPY, kernel, row)
            return tuple(over_runs(paths[:, index, column]) for column in range(3))

        return self.compared("table3_gpy_scale", f"At the scale stated in the paper, {PAPER_SCALE}, GPy", (), entries)

    def compared(self, name: str, title: str, extra: tuple[str, ...], entries: Any) -> Table:
        """Return a table of the paper's and the measured values, with the accuracy of the majority class."""
        rows: list[tuple[Entry, ...]] = []
        for kernel in KERNELS:
            share = self.split(kernel, 0, N_TEST).majority
            for row in ROWS:
                printed = TABLE_3[kernel].get(row, (None, None, None))
                rows.append((kernel, row, *printed, *entries(kernel, row), share))
        measures = MEASURES.values()
        columns = ("kernel", "", *(f"{each}, paper" for each in measures), *extra, *measures, "majority class")
        note = (
            "In parentheses the standard deviation over runs. Majority class: the accuracy of always predicting the "
            "larger class of the training data."
        )
        return Table(name, title, columns, rows, note)

    def other_splits(self) -> Table:
        """Return the results of the paper's protocol on other splits."""
        rows: list[tuple[Entry, ...]] = []
        for kernel in KERNELS:
            for row in ROWS:
                paths = [self.path(SKLEARN, kernel, row, number=i) for i in range(1, self.n_splits + 1)]
                best = np.array([max(each.accuracy for each in scores) for scores in paths])
                printed = TABLE_3[kernel].get(row, (None,))[0]
                rows.append((kernel, row, printed, mean_sd(best), float(best.min()), float(best.max())))
        columns = ("kernel", "", "accuracy, paper", "accuracy, best scale", "minimum", "maximum")
        note = "Mean and standard deviation over splits of the accuracy at the best scale on the test set."
        title = f"Protocol of the paper on {self.n_splits} other splits with {N_TEST} test users, scikit-learn"
        return Table("table3_splits", title, columns, rows, note)

    # ------------------------------------------------------------------ without test-set tuning

    def untuned(self) -> Table:
        """Return the table with the scale of largest marginal likelihood, over many splits."""
        rows: list[tuple[Entry, ...]] = []
        for kernel in KERNELS:
            for row in ROWS:
                chosen, best = self.untuned_scores(kernel, row)
                measures = (mean_sd(chosen[:, column]) for column in range(3))
                rows.append((kernel, row, *measures, mean_sd(best), self.baseline(kernel)))
        columns = ("kernel", "", *MEASURES.values(), "accuracy, scale tuned on the test set", "majority class")
        note = f"Means and standard deviations over {self.n_splits} splits."
        title = f"Scale by marginal likelihood, {self.n_test} test users, scikit-learn"
        return Table("table3_honest", title, columns, rows, note)

    def untuned_scores(self, kernel: str, row: str) -> tuple[FloatArray, FloatArray]:
        """Return accuracy and log likelihoods of each split, and the accuracy at the best scale on the test set."""
        chosen, best = [], []
        for number in range(1, self.n_splits + 1):
            scores = self.path(SKLEARN, kernel, row, number=number, n_test=self.n_test)
            likeliest = max(scores, key=lambda each: each.evidence)
            chosen.append([getattr(likeliest, m) for m in MEASURES])
            best.append(max(each.accuracy for each in scores))
        return np.array(chosen), np.array(best)

    def baseline(self, kernel: str) -> MeanSD:
        """Return the accuracy of the majority class over the splits."""
        return mean_sd([self.split(kernel, i, self.n_test).majority for i in range(1, self.n_splits + 1)])

    def findings(self) -> list[str]:
        """Return the findings about the paper's claims."""
        lines = []
        for kernel in KERNELS:
            means = {row: self.untuned_scores(kernel, row)[0][:, 0].mean() for row in ROWS}
            lines.append(
                f"{kernel}, without test-set tuning: accuracy {means[FULL]:.3f} with full rankings, {means[EXACT]:.3f} "
                f"exact on top-{TOP} lists, {means[IID]:.3f} Monte Carlo, {means[ANTITHETIC]:.3f} antithetic; majority "
                f"class: {self.baseline(kernel).mean:.3f}."
            )
        share = self.baseline("Mallows").mean
        lines.append(
            f"With {N_TEST} test users the standard error of the accuracy is "
            f"{np.sqrt(share * (1 - share) / N_TEST):.2f}. The majority class is correct for at least 0.9 of them in "
            f"{100 * probability_of(share, 0.9):.0f} of 100 splits and for at least 0.75 in "
            f"{100 * probability_of(share, 0.75):.0f}."
        )
        if has_gpy():
            index, rows = self.scales[GPY].index(PAPER_SCALE), (FULL, *DRAWN)
            ours = ", ".join(f"{self.path(GPY, 'Mallows', row)[index].train:.3f}" for row in rows)
            printed = [TABLE_3["Mallows"][row][1] for row in rows]
            theirs = ", ".join(f"{e.mean if isinstance(e, MeanSD) else e:.3f}" for e in printed)
            lines.append(
                f"GPy at scale {PAPER_SCALE}, Mallows, log likelihood of the training data for full, Monte Carlo and "
                f"antithetic: {ours} (first run); in the paper: {theirs}."
            )
        likelihoods = {row: self.test_paths(SKLEARN, "Mallows", row)[:, SCALES.index(PAPER_SCALE), 2] for row in DRAWN}
        iid, antithetic = (float(likelihoods[row].std(ddof=1)) for row in DRAWN)
        lines.append(
            f"For Mallows at scale {PAPER_SCALE} the standard deviation over runs of the test log likelihood is "
            f"{iid:.4f} with Monte Carlo and {antithetic:.4f} with antithetic draws (ratio {iid / antithetic:.1f}; in "
            f"the paper: {0.020 / 0.002:.0f})."
        )
        return lines


def over_runs(values: FloatArray) -> Entry:
    """Return a number, or the mean and standard deviation of several runs."""
    return mean_sd(values) if len(values) > 1 else float(values[0])


def probability_of(share: float, accuracy: float) -> float:
    """Return the probability of at least this accuracy on the test users, if each is correct with the given share."""
    from scipy.stats import binom

    return float(binom.sf(round(accuracy * N_TEST) - 1, N_TEST, share))


def has_gpy() -> bool:
    """Return whether GPy is installed."""
    return find_spec("GPy") is not None


# ---------------------------------------------------------------------- classifiers


@dataclass(frozen=True)
class Scores:
    """Test accuracy, mean log likelihoods of the true classes, and the log marginal likelihood."""

    accuracy: float
    train: float
    test: float
    evidence: float

    @classmethod
    def of(cls, p_train: FloatArray, p_test: FloatArray, y_train: Any, y_test: Any, evidence: float) -> Scores:
        """Return the scores of probabilities of class 1."""
        train, test = (
            float(np.log(np.where(y == 1, p, 1 - p)).mean()) for p, y in ((p_train, y_train), (p_test, y_test))
        )
        return cls(float(((p_test > 0.5) == (y_test == 1)).mean()), train, test, float(evidence))


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test users, and the kernel."""

    kernel: Kernel
    train: Rankings
    test: Rankings
    y_train: IntArray
    y_test: IntArray

    @property
    def majority(self) -> float:
        """The test accuracy of always predicting the larger class of the training set."""
        return float((self.y_test == (self.y_train.mean() > 0.5)).mean())

    def data_of(self, row: str) -> tuple[Rankings, Rankings]:
        """Return the full rankings, or the top-k lists."""
        return (self.train, self.test) if row == FULL else (self.train.top(TOP), self.test.top(TOP))

    def sklearn_fit(self, row: str, seed: int) -> Callable[[float], Scores]:
        """Return a function that fits scikit-learn's classifier at a scale; all scales share the Gram matrices."""
        train, test = self.data_of(row)
        method = method_of(row, N_DRAWS, seed)
        grams = Grams(
            self.kernel.gram(train, method=method),
            self.kernel.gram(train, test, method=method),
            self.kernel.plan(test, method=method).diagonal(),
        )
        return lambda scale: fit_sklearn(grams.scaled(scale), self.y_train, self.y_test)

    def gpy_fit(self, row: str, seed: int) -> Callable[[float], Scores]:
        """Return a function that fits GPy's classifier at a scale."""
        import GPy

        from rankernel.learn.gpy import RankingKern

        train, test = (part.ranks.astype(np.float64) for part in self.data_of(row))
        method, targets = method_of(row, N_DRAWS, seed), self.y_train[:, None].astype(np.float64)

        def fit(scale: float) -> Scores:
            """Probit likelihood, expectation propagation."""
            kern = RankingKern(self.train.n_items, self.kernel, variance=scale, method=method)
            with global_seed(0):  # of the order of the updates
                model = GPy.models.GPClassification(train, targets, kernel=kern)
                p_train, p_test = (model.predict(X)[0][:, 0] for X in (train, test))
                return Scores.of(p_train, p_test, self.y_train, self.y_test, float(model.log_likelihood()))

        return fit


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Set NumPy's global random state temporarily, for libraries that use it."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


@dataclass(frozen=True, eq=False)
class Grams:
    """Kernel values of the training rankings, between training and test rankings, and on the test diagonal."""

    train: FloatArray
    cross: FloatArray  # (n_train, n_test)
    test_diagonal: FloatArray

    def scaled(self, scale: float) -> Grams:
        """Return the values of a multiple of the kernel."""
        return Grams(scale * self.train, scale * self.cross, scale * self.test_diagonal)


class PrecomputedKernel(GaussianProcessKernel):  # type: ignore[misc]
    """Kernel values by index: rows of the data are indices of rankings, training rankings first."""

    def __init__(self, grams: Grams) -> None:
        self.grams = grams

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the values for pairs of indices, of which one side is training data."""
        rows, columns = indices(X), indices(X if Y is None else Y)
        if rows.max() >= len(self.grams.train):
            return self(Y, X).T
        values = np.hstack([self.grams.train, self.grams.cross])[np.ix_(rows, columns)]
        return (values, np.empty((*values.shape, 0))) if eval_gradient else values

    def diag(self, X: Any) -> FloatArray:
        """Return the diagonal."""
        diagonal = np.concatenate([np.diagonal(self.grams.train), self.grams.test_diagonal])
        return np.asarray(diagonal[indices(X)])

    def is_stationary(self) -> bool:
        """Return False."""
        return False


def indices(X: Any) -> Indices:
    """Return the indices in the first column of the data."""
    return np.asarray(X)[:, 0].astype(np.intp)


def fit_sklearn(grams: Grams, y_train: IntArray, y_test: IntArray) -> Scores:
    """Return the scores of scikit-learn's classifier: logistic likelihood, Laplace approximation."""
    X = np.arange(len(y_train) + len(y_test), dtype=np.float64)[:, None]
    train, test = X[: len(y_train)], X[len(y_train) :]
    model = GaussianProcessClassifier(PrecomputedKernel(grams), optimizer=None, copy_X_train=False).fit(train, y_train)
    p_train, p_test = model.predict_proba(train)[:, 1], model.predict_proba(test)[:, 1]
    return Scores.of(p_train, p_test, y_train, y_test, model.log_marginal_likelihood_value_)
