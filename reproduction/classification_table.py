"""Table 3: east or west, by Gaussian process classification of rankings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, IntArray
from rankernel.kernels import Exponential, Kendall, Kernel, Mallows
from rankernel.rankings import Rankings
from reproduction.estimators import ANTITHETIC, DRAWN, EXACT, FULL, IID, ROWS, method_of
from reproduction.experiment import ExperimentOnPeople
from reproduction.gaussian_process import Grams, Scores, fit_gpy, fit_sklearn, has_gpy
from reproduction.intervals import spread
from reproduction.outcome import Entry, Spread, Table
from reproduction.paper_numbers import TABLE_3
from reproduction.study import Study

TOP, N_DRAWS, N_TEST, LABEL = 6, 4, 20, "east_west"
SCALES = (0.5, 1.0, 2.0, 5.0, 9.5, 20.0, 50.0)
PAPER_SCALE = 9.5
KERNELS: dict[str, tuple[Kernel, int]] = {
    "Mallows": (Mallows("median"), 100),
    "Gaussian": (Exponential("spearman", "median"), 50),
    "Kendall": (Kendall(), 100),
}
MEASURES = {"accuracy": "accuracy", "train": "train log lik.", "test": "test log lik."}
SKLEARN, GPY = "scikit-learn", "GPy"


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test people of one split, and the kernel with the width of the training rankings."""

    kernel: Kernel
    train: Rankings
    test: Rankings
    y_train: IntArray
    y_test: IntArray

    @property
    def majority(self) -> float:
        """The accuracy on the test set of always saying the larger class of the training set."""
        return float((self.y_test == (self.y_train.mean() > 0.5)).mean())

    def seen(self, row: str) -> tuple[Rankings, Rankings]:
        """Return the rankings that a method sees: full, or cut."""
        return (self.train, self.test) if row == FULL else (self.train.top(TOP), self.test.top(TOP))

    def sklearn_fit(self, row: str, seed: int) -> Callable[[float], Scores]:
        """Return what fits scikit-learn's classifier at a scale; all scales share the kernel values."""
        train, test = self.seen(row)
        method = method_of(row, N_DRAWS, seed)
        grams = Grams(
            self.kernel.gram(train, method=method),
            self.kernel.gram(train, test, method=method),
            self.kernel.plan(test, method=method).diagonal(),
        )
        return lambda scale: fit_sklearn(grams.scaled(scale), self.y_train, self.y_test)

    def gpy_fit(self, row: str, seed: int) -> Callable[[float], Scores]:
        """Return what fits GPy's classifier at a scale."""
        from rankernel.learn.gpy import RankingKern

        train, test = (part.ranks.astype(np.float64) for part in self.seen(row))
        method, n_items = method_of(row, N_DRAWS, seed), self.train.n_items

        def fit(scale: float) -> Scores:
            return fit_gpy(RankingKern(n_items, self.kernel, scale, method), train, test, self.y_train, self.y_test)

        return fit


class ClassificationTable(ExperimentOnPeople):
    """Table 3 of the paper beside ours, by its own protocol and by an honest one."""

    name = "table3"
    title = "Table 3: Gaussian process classification, east or west"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.n_runs = study.pick(10, 2)  # of the draws
        self.n_splits = study.pick(15, 2)  # beside that of the paper's protocol
        self.n_test = study.pick(300, 30)  # users, by the honest protocol
        self.scales = {SKLEARN: SCALES, GPY: study.pick(SCALES, (PAPER_SCALE,))}

    def protocol(self) -> list[str]:
        """Return what was done."""
        trained = self.study.pick("100 training users (50 for the Gaussian kernel on ranks)", "40 training users")
        gpy = "GPy: probit likelihood, expectation propagation, its default." if has_gpy() else self.left_out()
        return [
            (
                f"{self.people.name}; the class is the current east or west; top-{TOP} lists; {N_DRAWS} draws; nu = "
                f"1/median of the training rankings; {trained}. The paper does not describe its split. Its accuracies "
                f"of the full models are multiples of 0.05, as with {N_TEST} test users: so many here."
            ),
            (
                f"The paper's protocol: one split, {self.n_runs} runs of the draws; of the scales "
                f"{', '.join(map(str, SCALES))} (factors of the kernel) the one with the largest mean accuracy *on the "
                f"test set*, the smaller of equals. scikit-learn: logistic likelihood, Laplace's approximation. {gpy}"
            ),
            (
                f"The honest protocol: {self.n_splits} splits with {self.n_test} test users each; the scale of largest "
                "marginal likelihood of the training data; one run of the draws a split."
            ),
        ]

    def tables(self) -> list[Table]:
        """Return the table by the paper's protocol, on other splits, and by an honest one."""
        by_gpy = [self.by_the_paper(GPY), self.at_the_papers_scale()] if has_gpy() else []
        return [self.by_the_paper(SKLEARN), *by_gpy, self.other_splits(), self.honest()]

    def left_out(self) -> str:
        """Return that the tables by GPy are missing, where it is not installed."""
        return "" if has_gpy() else "GPy is not installed (pip install 'rankernel[gpy]'), so its tables are missing."

    # ------------------------------------------------------------------ cells

    def split(self, kernel: str, number: int, n_test: int) -> Split:
        """Return one split of some users."""
        unresolved, n_train = KERNELS[kernel]
        chosen = self.study.generator("split", number).choice(len(self.people), 100 + n_test, replace=False)
        train, test = chosen[: self.study.pick(n_train, 40)], chosen[100:]
        rankings, labels = self.people.rankings, self.people.labels[LABEL]
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
        return [Scores(**each) for each in self.study.cell(self.name, compute, data=self.people.name, **parameters)]

    def test_paths(self, engine: str, kernel: str, row: str) -> FloatArray:
        """Return accuracy and log likelihoods by run and scale, on the split of the paper's protocol."""
        found = [self.path(engine, kernel, row, run) for run in range(self.n_runs if row in DRAWN else 1)]
        return np.array([[[getattr(scores, m) for m in MEASURES] for scores in one] for one in found])

    # ------------------------------------------------------------------ the paper's protocol

    def by_the_paper(self, engine: str) -> Table:
        """Return the table with the scale that does best on the test set."""

        def entries(kernel: str, row: str) -> tuple[Entry, ...]:
            return best_on_test(self.test_paths(engine, kernel, row), self.scales[engine])

        name = "table3_paper_protocol" if engine == SKLEARN else "table3_gpy"
        return self.compared(
            name, f"By the paper's protocol (scale chosen on the test set), {engine}", ("scale",), entries
        )

    def at_the_papers_scale(self) -> Table:
        """Return the table at the scale that the paper names, by GPy."""
        place = self.scales[GPY].index(PAPER_SCALE)

        def entries(kernel: str, row: str) -> tuple[Entry, ...]:
            paths = self.test_paths(GPY, kernel, row)
            return tuple(measured(paths[:, place, column]) for column in range(3))

        return self.compared("table3_gpy_scale", f"At the scale that the paper names, {PAPER_SCALE}, GPy", (), entries)

    def compared(self, name: str, title: str, extra: tuple[str, ...], entries: Any) -> Table:
        """Return a table of paper and measurement side by side, with the accuracy of always saying the larger class."""
        rows: list[tuple[Entry, ...]] = []
        for kernel in KERNELS:
            share = self.split(kernel, 0, N_TEST).majority
            for row in ROWS:
                printed = TABLE_3[kernel].get(row, (None, None, None))
                rows.append((kernel, row, *printed, *entries(kernel, row), share))
        words = MEASURES.values()
        columns = ("kernel", "", *(f"{each}, paper" for each in words), *extra, *words, "majority class")
        note = (
            "In brackets the standard deviation over runs. Majority class: the accuracy of always saying the larger "
            "one."
        )
        return Table(name, title, columns, rows, note)

    def other_splits(self) -> Table:
        """Return what the paper's protocol finds on other splits: how much of its result is the choice of one."""
        rows: list[tuple[Entry, ...]] = []
        for kernel in KERNELS:
            for row in ROWS:
                found = [self.path(SKLEARN, kernel, row, number=i) for i in range(1, self.n_splits + 1)]
                best = np.array([max(one.accuracy for one in scores) for scores in found])
                printed = TABLE_3[kernel].get(row, (None,))[0]
                rows.append((kernel, row, printed, spread(best), float(best.min()), float(best.max())))
        columns = ("kernel", "", "accuracy, paper", "accuracy, best scale", "least", "most")
        note = "Mean and standard deviation over splits of the accuracy with the scale that does best on the test set."
        title = f"The paper's protocol on {self.n_splits} other splits with {N_TEST} test users, scikit-learn"
        return Table("table3_splits", title, columns, rows, note)

    # ------------------------------------------------------------------ the honest protocol

    def honest(self) -> Table:
        """Return the table with the scale of largest marginal likelihood, over many splits."""
        rows: list[tuple[Entry, ...]] = []
        for kernel in KERNELS:
            for row in ROWS:
                chosen, best = self.honest_scores(kernel, row)
                measures = (spread(chosen[:, column]) for column in range(3))
                rows.append((kernel, row, *measures, spread(best), self.baseline(kernel)))
        columns = ("kernel", "", *MEASURES.values(), "accuracy, scale chosen on the test set", "majority class")
        note = f"Means and standard deviations over {self.n_splits} splits."
        title = f"By an honest protocol (scale by marginal likelihood, {self.n_test} test users), scikit-learn"
        return Table("table3_honest", title, columns, rows, note)

    def honest_scores(self, kernel: str, row: str) -> tuple[FloatArray, FloatArray]:
        """Return accuracy and log likelihoods of each split, and the accuracy with the best scale for the test set."""
        chosen, best = [], []
        for number in range(1, self.n_splits + 1):
            scores = self.path(SKLEARN, kernel, row, number=number, n_test=self.n_test)
            likeliest = max(scores, key=lambda one: one.evidence)
            chosen.append([getattr(likeliest, m) for m in MEASURES])
            best.append(max(one.accuracy for one in scores))
        return np.array(chosen), np.array(best)

    def baseline(self, kernel: str) -> Spread:
        """Return the accuracy of the larger class over the splits."""
        return spread([self.split(kernel, i, self.n_test).majority for i in range(1, self.n_splits + 1)])

    def findings(self) -> list[str]:
        """Return what holds of the paper's claims."""
        lines = []
        for kernel in KERNELS:
            means = {row: self.honest_scores(kernel, row)[0][:, 0].mean() for row in ROWS}
            lines.append(
                f"{kernel}, honest protocol: accuracy {means[FULL]:.3f} with full rankings, {means[EXACT]:.3f} exact "
                f"on top-{TOP}, {means[IID]:.3f} Monte Carlo, {means[ANTITHETIC]:.3f} antithetic; always saying the "
                f"larger class: {self.baseline(kernel).mean:.3f}."
            )
        share = self.baseline("Mallows").mean
        lines.append(
            f"{N_TEST} test users are few: one standard error is {np.sqrt(share * (1 - share) / N_TEST):.2f}, and "
            f"always saying the larger class is right for at least 0.9 of them in {100 * lucky(share):.0f} of 100 "
            f"splits and for at least 0.75 in {100 * lucky(share, 0.75):.0f}."
        )
        if has_gpy():
            place = self.scales[GPY].index(PAPER_SCALE)
            rows = (FULL, *DRAWN)
            ours = ", ".join(f"{self.path(GPY, 'Mallows', row)[place].train:.3f}" for row in rows)
            printed = ", ".join(f"{number(TABLE_3['Mallows'][row][1]):.3f}" for row in rows)
            lines.append(
                f"GPy at scale {PAPER_SCALE}, Mallows, log likelihood of the training data, full, Monte Carlo, "
                f"antithetic: {ours} (first run); the paper: {printed}."
            )
        likelihoods = {row: self.test_paths(SKLEARN, "Mallows", row)[:, SCALES.index(PAPER_SCALE), 2] for row in DRAWN}
        iid, antithetic = (float(likelihoods[row].std(ddof=1)) for row in DRAWN)
        lines.append(
            f"Lower variance: for Mallows at scale {PAPER_SCALE} the standard deviation over runs of the test log "
            f"likelihood is {iid:.4f} with Monte Carlo and {antithetic:.4f} with antithetic draws (ratio "
            f"{iid / antithetic:.1f}; the paper: {0.020 / 0.002:.0f})."
        )
        return lines


def best_on_test(paths: FloatArray, scales: tuple[float, ...]) -> tuple[Entry, ...]:
    """Return the scale of largest mean accuracy, and the measures there: from (n_runs, n_scales, 3)."""
    best = int(np.argmax(paths[:, :, 0].mean(axis=0)))
    return (scales[best], *(measured(paths[:, best, column]) for column in range(3)))


def measured(values: FloatArray) -> Entry:
    """Return a number, or the mean and standard deviation of several runs."""
    return spread(values) if len(values) > 1 else float(values[0])


def number(entry: Entry) -> float:
    """Return an entry of the paper, or the mean of it."""
    assert isinstance(entry, Spread | float)
    return entry.mean if isinstance(entry, Spread) else entry


def lucky(share: float, accuracy: float = 0.9) -> float:
    """Return how likely at least so many of the test users are right, if each is with some probability."""
    from scipy.stats import binom

    return float(binom.sf(round(accuracy * N_TEST) - 1, N_TEST, share))
