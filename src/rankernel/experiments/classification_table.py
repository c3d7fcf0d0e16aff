"""Table 3: east or west, by Gaussian process classification of rankings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import comb
from typing import Any

import numpy as np

from rankernel.arrays import FloatArray, IntArray
from rankernel.experiments import paper_numbers
from rankernel.experiments.estimators import ANTITHETIC, DRAWN, EXACT, FULL, IID, ROWS, method_of
from rankernel.experiments.experiment import Study
from rankernel.experiments.gaussian_process import Grams, Scores, fit_gpy, fit_sklearn, has_gpy
from rankernel.experiments.intervals import spread
from rankernel.experiments.outcome import Entry, Outcome, Spread, Table
from rankernel.experiments.sushi_users import People, people_of
from rankernel.kernels import Exponential, Kendall, Kernel, Mallows
from rankernel.rankings import Rankings

NAME = "table3"
TOP, N_DRAWS, N_TEST, LABEL = 6, 4, 20, "east_west"
SCALES = (0.5, 1.0, 2.0, 5.0, 9.5, 20.0, 50.0)
PAPER_SCALE = 9.5
KERNELS: dict[str, tuple[Kernel, int]] = {
    "Mallows": (Mallows("median"), 100),
    "Gaussian": (Exponential("spearman", "median"), 50),
    "Kendall": (Kendall(), 100),
}
MEASURES = ("accuracy", "train", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test people of one split, and the kernel with the width of the training rankings."""

    kernel: Kernel
    train: Rankings
    test: Rankings
    y_train: IntArray
    y_test: IntArray

    def seen(self, row: str) -> tuple[Rankings, Rankings]:
        """Return the rankings that a method sees: full, or cut."""
        return (self.train, self.test) if row == FULL else (self.train.top(TOP), self.test.top(TOP))

    def grams(self, row: str, seed: int) -> Grams:
        """Return the kernel values by one method."""
        train, test = self.seen(row)
        method = method_of(row, N_DRAWS, seed)
        return Grams(
            self.kernel.gram(train, method=method),
            self.kernel.gram(train, test, method=method),
            self.kernel.plan(test, method=method).diagonal(),
        )


def run(study: Study) -> Outcome:
    """Return Table 3 of the paper beside ours, by its own protocol and by an honest one."""
    people = people_of(study)
    outcome = Outcome(NAME, "Table 3: Gaussian process classification, east or west", protocol=protocol(study, people))
    outcome.tables = [by_the_paper(study, people), other_splits(study, people), honest(study, people)]
    if has_gpy():
        outcome.tables[1:1] = [by_gpy(study, people), by_gpy_at_the_papers_scale(study, people)]
    outcome.findings = findings(study, people)
    return outcome


def protocol(study: Study, people: People) -> list[str]:
    """Return what was done."""
    gpy = (
        "GPy: probit likelihood, expectation propagation, its default."
        if has_gpy()
        else "GPy is not installed (pip install 'rankernel[gpy]'), so its table is missing."
    )
    return [
        (
            f"{people.name}; the class is the current east or west; top-{TOP} lists; {N_DRAWS} draws; nu = 1/median of "
            f"the training rankings; {trained(study)}. The paper does not describe its split. "
            f"Its accuracies of the full models are multiples of 0.05, as with {N_TEST} test users: so many here."
        ),
        (
            f"The paper's protocol: one split, {runs(study)} runs of the draws; of the scales "
            f"{', '.join(map(str, SCALES))} (factors of the kernel) the one with the largest mean accuracy *on the "
            f"test set*, the smaller of equals. scikit-learn: logistic likelihood, Laplace's approximation. {gpy}"
        ),
        (
            f"The honest protocol: {splits(study)} splits with {wide(study)} test users each; the scale of largest "
            "marginal likelihood of the training data; one run of the draws a split."
        ),
    ]


def trained(study: Study) -> str:
    """Return how many training users there are, in words."""
    return str(study.pick("100 training users (50 for the Gaussian kernel on ranks)", "40 training users"))


def runs(study: Study) -> int:
    """Return how often the draws are repeated."""
    return int(study.pick(10, 2))


def splits(study: Study) -> int:
    """Return how many splits the honest protocol has."""
    return int(study.pick(15, 2))


def wide(study: Study) -> int:
    """Return how many test users the honest protocol has."""
    return int(study.pick(300, 30))


# ---------------------------------------------------------------------- cells


def split_of(study: Study, people: People, kernel: str, number: int, n_test: int) -> Split:
    """Return one split of some users."""
    unresolved, n_train = KERNELS[kernel]
    n_train = study.pick(n_train, 40)
    chosen = study.generator("split", number).choice(len(people), 100 + n_test, replace=False)
    train, test = chosen[:n_train], chosen[100:]
    labels = people.labels[LABEL]
    rankings = people.rankings
    return Split(unresolved.resolve(rankings[train]), rankings[train], rankings[test], labels[train], labels[test])


def path(study: Study, people: People, kernel: str, row: str, number: int, n_test: int, run: int) -> list[Any]:
    """Return the scores of scikit-learn along the scales."""

    def compute() -> list[Any]:
        split = split_of(study, people, kernel, number, n_test)
        grams = split.grams(row, study.stream("draws", number, run))
        return [asdict(fit_sklearn(grams.scaled(scale), split.y_train, split.y_test)) for scale in SCALES]

    found: list[Any] = study.cell(
        NAME, compute, data=people.name, engine="sklearn", kernel=kernel, row=row, split=number, test=n_test, run=run
    )
    return found


def gpy_scores(study: Study, people: People, kernel: str, row: str, scale: float, run: int) -> Scores:
    """Return the scores of GPy at one scale, on the split of the paper's protocol."""

    def compute() -> dict[str, float]:
        from rankernel.frontends.gpy import RankingKern

        split = split_of(study, people, kernel, 0, N_TEST)
        train, test = (part.ranks.astype(np.float64) for part in split.seen(row))
        method = method_of(row, N_DRAWS, study.stream("draws", 0, run))
        kern = RankingKern(train.shape[1], split.kernel, scale, method)
        return asdict(fit_gpy(kern, train, test, split.y_train, split.y_test))

    parameters = {"data": people.name, "engine": "GPy", "kernel": kernel, "row": row, "scale": scale, "run": run}
    return Scores(**study.cell(NAME, compute, **parameters))


# ---------------------------------------------------------------------- the paper's protocol


def by_the_paper(study: Study, people: People) -> Table:
    """Return the table with the scale that does best on the test set, by scikit-learn."""

    def entries(kernel: str, row: str) -> tuple[Entry, ...]:
        return best_on_test(test_paths(study, people, kernel, row), SCALES)

    title = "By the paper's protocol (scale chosen on the test set), scikit-learn"
    return compared("table3_paper_protocol", title, study, people, ("scale",), entries)


def best_on_test(paths: FloatArray, scales: tuple[float, ...]) -> tuple[Entry, ...]:
    """Return the scale of largest mean accuracy, and the measures there: from (n_runs, n_scales, 3)."""
    best = int(np.argmax(paths[:, :, 0].mean(axis=0)))
    return (scales[best], *(measured(paths[:, best, column]) for column in range(3)))


def test_paths(study: Study, people: People, kernel: str, row: str) -> FloatArray:
    """Return accuracy and log likelihoods by run and scale, on the split of the paper's protocol."""
    n_runs = runs(study) if row in DRAWN else 1
    found = [path(study, people, kernel, row, 0, N_TEST, run) for run in range(n_runs)]
    return np.array([[[scores[m] for m in MEASURES] for scores in one] for one in found])


def other_splits(study: Study, people: People) -> Table:
    """Return what the paper's protocol finds on other splits: how much of its result is the choice of one."""
    rows: list[tuple[Entry, ...]] = []
    for kernel in KERNELS:
        for row in ROWS:
            found = [path(study, people, kernel, row, i, N_TEST, 0) for i in range(1, splits(study) + 1)]
            best = np.array([max(one["accuracy"] for one in scores) for scores in found])
            printed = paper_numbers.TABLE_3[kernel].get(row, (None,))[0]
            rows.append((kernel, row, printed, spread(best), float(best.min()), float(best.max())))
    columns = ("kernel", "", "accuracy, paper", "accuracy, best scale", "least", "most")
    note = "Mean and standard deviation over splits of the accuracy with the scale that does best on the test set."
    title = f"The paper's protocol on {splits(study)} other splits with {N_TEST} test users, scikit-learn"
    return Table("table3_splits", title, columns, tuple(rows), note)


def by_gpy(study: Study, people: People) -> Table:
    """Return the same by GPy."""

    def entries(kernel: str, row: str) -> tuple[Entry, ...]:
        return best_on_test(gpy_paths(study, people, kernel, row, gpy_scales(study)), gpy_scales(study))

    title = "By the paper's protocol (scale chosen on the test set), GPy"
    return compared("table3_gpy", title, study, people, ("scale",), entries)


def by_gpy_at_the_papers_scale(study: Study, people: People) -> Table:
    """Return the table at the scale that the paper names, by GPy."""

    def entries(kernel: str, row: str) -> tuple[Entry, ...]:
        paths = gpy_paths(study, people, kernel, row, (PAPER_SCALE,))
        return tuple(measured(paths[:, 0, column]) for column in range(3))

    title = f"At the scale that the paper names, {PAPER_SCALE}, GPy"
    return compared("table3_gpy_scale", title, study, people, (), entries)


def gpy_paths(study: Study, people: People, kernel: str, row: str, scales: tuple[float, ...]) -> FloatArray:
    """Return accuracy and log likelihoods by run and scale."""
    n_runs = runs(study) if row in DRAWN else 1
    found = [[gpy_scores(study, people, kernel, row, scale, run) for scale in scales] for run in range(n_runs)]
    return np.array([[[getattr(scores, m) for m in MEASURES] for scores in one] for one in found])


def gpy_scales(study: Study) -> tuple[float, ...]:
    """Return the scales that GPy tries."""
    scales: tuple[float, ...] = study.pick(SCALES, (PAPER_SCALE,))
    return scales


def measured(values: FloatArray) -> Entry:
    """Return a number, or the mean and standard deviation of several runs."""
    return spread(values) if len(values) > 1 else float(values[0])


def compared(name: str, title: str, study: Study, people: People, extra: tuple[str, ...], entries: Any) -> Table:
    """Return a table of paper and measurement side by side, with the accuracy of always saying the larger class."""
    rows: list[tuple[Entry, ...]] = []
    for kernel in KERNELS:
        share = majority(split_of(study, people, kernel, 0, N_TEST))
        for row in ROWS:
            printed = paper_numbers.TABLE_3[kernel].get(row, (None, None, None))
            rows.append((kernel, row, *printed, *entries(kernel, row), share))
    columns = tuple(f"{m}, paper" for m in MEASURES_IN_WORDS)
    columns = ("kernel", "", *columns, *extra, *MEASURES_IN_WORDS, "majority class")
    note = "In brackets the standard deviation over runs. Majority class: the accuracy of always saying the larger one."
    return Table(name, title, columns, tuple(rows), note)


MEASURES_IN_WORDS = ("accuracy", "train log lik.", "test log lik.")


def majority(split: Split) -> float:
    """Return the accuracy on the test set of always saying the larger class of the training set."""
    return float((split.y_test == (split.y_train.mean() > 0.5)).mean())


# ---------------------------------------------------------------------- the honest protocol


def honest(study: Study, people: People) -> Table:
    """Return the table with the scale of largest marginal likelihood, over many splits."""
    rows: list[tuple[Entry, ...]] = []
    for kernel in KERNELS:
        for row in ROWS:
            chosen, best = honest_scores(study, people, kernel, row)
            measured = (spread(chosen[:, column]) for column in range(3))
            rows.append((kernel, row, *measured, spread(best), baseline(study, people, kernel)))
    columns = ("kernel", "", *MEASURES_IN_WORDS, "accuracy, scale chosen on the test set", "majority class")
    note = f"Means and standard deviations over {splits(study)} splits."
    title = f"By an honest protocol (scale by marginal likelihood, {wide(study)} test users), scikit-learn"
    return Table("table3_honest", title, columns, tuple(rows), note)


def honest_scores(study: Study, people: People, kernel: str, row: str) -> tuple[FloatArray, FloatArray]:
    """Return accuracy and log likelihoods of each split, and the accuracy with the scale that does best on the test."""
    chosen, best = [], []
    for number in range(1, splits(study) + 1):
        scores = path(study, people, kernel, row, number, wide(study), 0)
        likeliest = max(scores, key=lambda one: one["evidence"])
        chosen.append([likeliest[m] for m in MEASURES])
        best.append(max(one["accuracy"] for one in scores))
    return np.array(chosen), np.array(best)


def baseline(study: Study, people: People, kernel: str) -> Spread:
    """Return the accuracy of the larger class over the splits."""
    return spread([majority(split_of(study, people, kernel, i, wide(study))) for i in range(1, splits(study) + 1)])


def findings(study: Study, people: People) -> list[str]:
    """Return what holds of the paper's claims."""
    lines = []
    for kernel in KERNELS:
        means = {row: honest_scores(study, people, kernel, row)[0][:, 0].mean() for row in ROWS}
        share = baseline(study, people, kernel).mean
        lines.append(
            f"{kernel}, honest protocol: accuracy {means[FULL]:.3f} with full rankings, {means[EXACT]:.3f} exact on "
            f"top-{TOP}, {means[IID]:.3f} Monte Carlo, {means[ANTITHETIC]:.3f} antithetic; always saying the larger "
            f"class: {share:.3f}."
        )
    share = baseline(study, people, "Mallows").mean
    lines.append(
        f"{N_TEST} test users are few: one standard error is {np.sqrt(share * (1 - share) / N_TEST):.2f}, and always "
        f"saying the larger class is right for at least 0.9 of them in {100 * lucky(share):.0f} of 100 splits and for "
        f"at least 0.75 in {100 * lucky(share, 0.75):.0f}."
    )
    if has_gpy():
        ours, printed = (
            ", ".join(f"{value:.3f}" for value in values)
            for values in (
                [gpy_scores(study, people, "Mallows", row, PAPER_SCALE, 0).train for row in (FULL, *DRAWN)],
                [number(paper_numbers.TABLE_3["Mallows"][row][1]) for row in (FULL, *DRAWN)],
            )
        )
        lines.append(
            f"GPy at scale {PAPER_SCALE}, Mallows, log likelihood of the training data, full, Monte Carlo, antithetic: "
            f"{ours} (first run); the paper: {printed}."
        )
    deviations = {row: probability_deviation(study, people, row) for row in DRAWN}
    lines.append(
        f"Lower variance: for Mallows at scale {PAPER_SCALE} the standard deviation over runs of the test log "
        f"likelihood is {deviations[IID]:.4f} with Monte Carlo and {deviations[ANTITHETIC]:.4f} with antithetic draws "
        f"(ratio {deviations[IID] / deviations[ANTITHETIC]:.1f}; the paper: {0.020 / 0.002:.0f})."
    )
    return lines


def number(entry: Entry) -> float:
    """Return an entry of the paper, or the mean of it."""
    assert isinstance(entry, Spread | float)
    return entry.mean if isinstance(entry, Spread) else entry


def lucky(share: float, accuracy: float = 0.9) -> float:
    """Return how likely at least so many of the test users are right, if each is with some probability."""
    least = round(accuracy * N_TEST)
    return sum(comb(N_TEST, r) * share**r * (1 - share) ** (N_TEST - r) for r in range(least, N_TEST + 1))


def probability_deviation(study: Study, people: People, row: str) -> float:
    """Return the standard deviation over runs of the test log likelihood of Mallows at the paper's scale."""
    values = test_paths(study, people, "Mallows", row)[:, SCALES.index(PAPER_SCALE), 2]
    return float(values.std(ddof=1))
