"""Table 2 and its figure: how much p-values of the two-sample test vary."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.datasets import paper_two_sample
from rankernel.kernels import Mallows
from rankernel.stats.mmd import mmd_test
from reproduction.drawing import COLOURS, drawn_as
from reproduction.estimators import ANTITHETIC, DRAWN, EXACT, IID, method_of
from reproduction.experiment import Experiment
from reproduction.intervals import bootstrap, ratio_of_deviations
from reproduction.outcome import Entry, Interval, Table, shown
from reproduction.paper_numbers import TABLE_2
from reproduction.study import Study

TOP, N_DRAWS = 3, 20
ITEMS = (6, 10)
METHODS = (EXACT, IID, ANTITHETIC)
DRAWS_ON_FIXED_DATA = (4, 20)
ROUNDING = 1e-12


class TwoSampleTable(Experiment):
    """Table 2 of the paper beside ours, for both numbers of items, with new data and on fixed data."""

    name = "table2"
    title = "Table 2: the two-sample test, standard deviation of p-values"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.n_datasets = study.pick(200, 8)  # of each cell with new data
        self.n_fixed, self.n_repeats = study.pick((20, 8), (3, 3))  # fixed data sets, repetitions of the draws on each
        self.n_permutations = study.pick(500, 100)
        self.sizes: tuple[int, ...] = study.pick(tuple(range(10, 45, 5)), (10, 25, 40))  # of the samples

    def protocol(self) -> list[str]:
        """Return what was done."""
        return [
            (
                "P: half Mallows with Kendall's distance around the identity, half Mallows with Hamming's distance "
                f"around its reverse, both with theta = 1; Q: uniform; top-{TOP} lists; as many observations of Q as "
                "of P. The paper says n = 6 in one place and n = 10 in another: both. Mallows kernel, nu = 1/median of "
                f"the lists; unbiased squared MMD, {self.n_permutations} permutations. The paper gives no number of "
                f"draws, kernel or width; here {N_DRAWS} draws (as in its Table 1)."
            ),
            (
                f"New data: {self.n_datasets} data sets, each with its own draws and permutations, the same for all "
                "methods. The standard deviation then holds what differs between data sets, too, which is all there is "
                "in the exact row."
            ),
            (
                f"Fixed data: {self.n_fixed} data sets, {self.n_repeats} repetitions of the draws on each, with the "
                "permutations of the data set; the standard deviation within data sets, pooled. An exact p-value would "
                "not vary at all: this isolates the estimator. A test with new permutations each time, as the paper's "
                f"may have been, adds their noise, the root of p (1 - p) / {self.n_permutations}, to both rows, and "
                "its ratios are nearer to 1."
            ),
        ]

    # ------------------------------------------------------------------ cells

    def new_pvalues(self, n_items: int, n_observations: int) -> FloatArray:
        """Return p-values of many data sets by each of METHODS: shape (n_datasets, 3)."""
        return self.pvalues(n_items, n_observations, self.n_datasets, 1, N_DRAWS, METHODS)[:, 0]

    def fixed_pvalues(self, n_items: int, n_observations: int, n_draws: int) -> FloatArray:
        """Return p-values of repeated draws on a few data sets by each of DRAWN: shape (n_datasets, n_repeats, 2)."""
        return self.pvalues(n_items, n_observations, self.n_fixed, self.n_repeats, n_draws, DRAWN)

    def pvalues(
        self, n_items: int, size: int, n_datasets: int, n_repeats: int, n_draws: int, methods: tuple[str, ...]
    ) -> FloatArray:
        """Return p-values of shape (n_datasets, n_repeats, n_methods)."""

        def compute() -> list[list[float]]:
            tests = [(data, repeat) for data in range(n_datasets) for repeat in range(n_repeats)]
            return [self.tested(n_items, size, *test, n_draws, methods) for test in tests]

        found = self.study.cell(
            self.name,
            compute,
            items=n_items,
            observations=size,
            datasets=n_datasets,
            repeats=n_repeats,
            draws=n_draws,
            permutations=self.n_permutations,
            methods=", ".join(methods),
        )
        return np.array(found).reshape(n_datasets, n_repeats, len(methods))

    def tested(
        self, n_items: int, size: int, data: int, repeat: int, n_draws: int, methods: tuple[str, ...]
    ) -> list[float]:
        """Return the p-value by each method, on the same data with the same permutations."""
        where = (n_items, size, data)
        P, Q = paper_two_sample(size, n_items=n_items, k=TOP, rng=self.study.generator("samples", *where))
        shuffles, draws = self.study.stream("permutations", *where), self.study.stream("draws", *where, repeat)
        settings = {"n_permutations": self.n_permutations, "rng": shuffles}
        kernel = Mallows("median")
        return [mmd_test(P, Q, kernel, method=method_of(row, n_draws, draws), **settings).pvalue for row in methods]

    # ------------------------------------------------------------------ tables

    def tables(self) -> list[Table]:
        """Return the table of the paper by each reading of it."""
        return [*map(self.new_data, ITEMS), *map(self.fixed_data, ITEMS)]

    def new_data(self, n_items: int) -> Table:
        """Return standard deviations of p-values over data sets."""
        found = [self.new_pvalues(n_items, size) for size in self.sizes]
        seed = self.study.stream("bootstrap", self.name, n_items)
        deviations = np.array([values.std(axis=0, ddof=1) for values in found])
        rows: list[tuple[Entry, ...]] = [
            (f"{row}, paper", *(TABLE_2[row][size] for size in self.sizes)) for row in DRAWN
        ]
        rows += [(row, *deviations[:, METHODS.index(row)].tolist()) for row in (*DRAWN, EXACT)]
        rows += [
            ("ratio, paper", *(TABLE_2[IID][size] / TABLE_2[ANTITHETIC][size] for size in self.sizes)),
            ("ratio", *(ratio_of_deviations(values[:, 1:], seed) for values in found)),
            ("mean p-value, exact", *(float(values[:, 0].mean()) for values in found)),
        ]
        title = f"Standard deviation of p-values, n = {n_items}, new data ({self.n_datasets} data sets)"
        note = (
            "Ratio: Monte Carlo over antithetic, above 1 speaks for antithetic; 95% bootstrap intervals over data sets."
        )
        return Table(f"table2_n{n_items}_new", title, ("observations", *map(str, self.sizes)), rows, note)

    def fixed_data(self, n_items: int) -> Table:
        """Return standard deviations of p-values within data sets."""
        rows: list[tuple[Entry, ...]] = [("paper", row, *(TABLE_2[row][size] for size in self.sizes)) for row in DRAWN]
        for n_draws in DRAWS_ON_FIXED_DATA:
            found = [self.fixed_pvalues(n_items, size, n_draws) for size in self.sizes]
            deviations = np.array([pooled(values) for values in found])
            rows += [(n_draws, row, *deviations[:, DRAWN.index(row)].tolist()) for row in DRAWN]
            rows.append((n_draws, "ratio", *map(self.fixed_ratio, found)))
        title = f"Standard deviation of p-values, n = {n_items}, fixed data"
        note = (
            "Draws vary, data and permutations do not. Ratio: Monte Carlo over antithetic; 95% bootstrap intervals "
            "over data sets. A dash: all p-values are equal."
        )
        return Table(f"table2_n{n_items}_fixed", title, ("draws", "observations", *map(str, self.sizes)), rows, note)

    def fixed_ratio(self, values: FloatArray) -> Interval:
        """Return the ratio of the two estimators' standard deviations within data sets."""
        seed = self.study.stream("bootstrap", self.name, "fixed")
        return bootstrap(lambda s: np.asarray(pooled(s)[..., 0] / pooled(s)[..., 1]), values, seed)

    def findings(self) -> list[str]:
        """Return what holds of the paper's claims."""
        lines = [f"n = {n}, new data: {counted(self.new_data(n).rows[-2][1:])}." for n in ITEMS]
        lines += [
            f"n = {n}, fixed data, {row[0]} draws: {counted(row[2:])}."
            for n in ITEMS
            for row in self.fixed_data(n).rows
            if row[1] == "ratio"
        ]
        shares = [shown(self.share_of_exact(n)) for n in ITEMS]
        lines.append(
            "With new data the standard deviation of exact p-values, where nothing is estimated, is on average over "
            f"the sizes {' (n = 6) and '.join(shares)} (n = 10) of that of the Monte Carlo ones: what is missing to 1 "
            "is all that the draws add to the variation between data sets, and all that a better estimator can take "
            "away."
        )
        return lines

    def share_of_exact(self, n_items: int) -> float:
        """Return the standard deviation of exact p-values over that of Monte Carlo ones, mean over the sizes."""
        values = [self.new_pvalues(n_items, size).std(axis=0, ddof=1) for size in self.sizes]
        return float(np.mean([exact / iid for exact, iid, _ in values if iid]))

    # ------------------------------------------------------------------ figure

    def figures(self) -> list[tuple[str, str]]:
        """Draw mean p-values with bands of a standard deviation: over data sets, and over draws on one data set."""
        with drawn_as(self.study, "table2", 2, 2, size=(9, 6.4)) as axes:
            for column, n_items in enumerate(ITEMS):
                self.draw_new(axes[0, column], n_items)
                self.draw_fixed(axes[1, column], n_items)
            axes[0, 0].legend(title="mean ± one standard deviation", title_fontsize=9, fontsize=9)
            axes[1, 1].legend(fontsize=9)
        caption = "Above: mean p-value against the size of the samples. Below: how much p-values vary on fixed data."
        return [("table2", caption)]

    def draw_new(self, ax: Any, n_items: int) -> None:
        """Draw mean p-values over data sets."""
        values = np.stack([self.new_pvalues(n_items, size) for size in self.sizes])
        for column, (row, line) in enumerate(zip(METHODS, ("-", "--", ":"), strict=True)):
            mean, sd = values[..., column].mean(axis=1), values[..., column].std(axis=1, ddof=1)
            ax.plot(self.sizes, mean, line, color=COLOURS[row], label=row, lw=2, zorder=3)
            for edge in (np.maximum(mean - sd, 0), mean + sd):
                ax.plot(self.sizes, edge, line, color=COLOURS[row], lw=0.9, alpha=0.7)
            if row == EXACT:
                ax.fill_between(self.sizes, np.maximum(mean - sd, 0), mean + sd, color="#000000", alpha=0.06, lw=0)
        ax.set(title=f"n = {n_items}, new data", xlabel="observations in each sample", ylabel="p-value", ylim=(0, None))

    def draw_fixed(self, ax: Any, n_items: int) -> None:
        """Draw standard deviations within data sets."""
        for n_draws, line in zip(DRAWS_ON_FIXED_DATA, ("--", "-"), strict=True):
            values = [pooled(self.fixed_pvalues(n_items, size, n_draws)) for size in self.sizes]
            for column, row in enumerate(DRAWN):
                deviations, label = [v[column] for v in values], f"{row}, {n_draws} draws"
                ax.plot(self.sizes, deviations, line, marker="o", ms=3, color=COLOURS[row], label=label)
        ax.set(title=f"n = {n_items}, fixed data", xlabel="observations in each sample")
        ax.set(ylabel="standard deviation of p", ylim=(0, None))


def pooled(values: FloatArray) -> FloatArray:
    """Return standard deviations within data sets: from (..., n_datasets, n_repeats, n_methods)."""
    deviations = np.sqrt(values.var(axis=-2, ddof=1).mean(axis=-2))
    return np.where(deviations > ROUNDING, deviations, 0.0)


def counted(ratios: tuple[Entry, ...]) -> str:
    """Return how many ratios are above one, below one, or neither."""
    known = [ratio for ratio in ratios if isinstance(ratio, Interval)]
    above, below = sum(r.low > 1 for r in known), sum(r.high < 1 for r in known)
    return (
        f"antithetic varies less in {above} of {len(known)} sizes, more in {below}, and {len(known) - above - below} "
        "are not decided at 95%"
    )
