"""Table 2 and its figure: the variability of p-values of the two-sample test."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rankernel import Mallows, Rankings, mmd_test
from rankernel._utils import FloatArray
from rankernel.datasets import mallows, mixture, uniform
from reproduction.paper import TABLE_2
from reproduction.results import COLOURS, Entry, Interval, Table, bootstrap, ratio_of_variances, saved_axes, shown
from reproduction.study import ANTITHETIC, DRAWN, EXACT, IID, Experiment, Study, method_of

TOP, N_DRAWS = 3, 20
ITEMS = (6, 10)
METHODS = (EXACT, IID, ANTITHETIC)
DRAWS_ON_FIXED_DATA = (4, 20)
ROUNDING = 1e-12


def two_samples(n_rankings: int, n_items: int, k: int, rng: np.random.Generator) -> tuple[Rankings, Rankings]:
    """Draw the two samples of the paper's two-sample test, truncated to top-k lists.

    P is an equal mixture of two Mallows models, one with Kendall's distance around the identity and one with Hamming's
    distance around its reverse, both with theta = 1; Q is uniform. The paper describes the data with 6 items and runs
    its test with 10 items and k = 3. P and Q have a stream of random numbers each.

    Examples
    --------
    In Q every item comes first with probability 0.1. In P, item 0 comes first with probability 0.36: with 0.63 around
    the identity, where it is 1 / (1 + q + ... + q^9) for q = exp(-1), and with 0.08 around the reverse.

    >>> P, Q = two_samples(50_000, 10, 3, np.random.default_rng(1))
    >>> [round(float((sample.ranks[:, 0] == 0).mean()), 2) for sample in (P, Q)]
    [0.36, 0.1]
    """
    rng_p, rng_q = rng.spawn(2)
    forwards = partial(mallows, center=n_items, theta=1.0, distance="kendall")
    backwards = partial(mallows, center=np.arange(n_items)[::-1], theta=1.0, distance="hamming")
    P = mixture(n_rankings, [forwards, backwards], rng=rng_p).rankings
    return P.top(k), uniform(n_rankings, n_items, rng=rng_q).top(k)


class TwoSampleTable(Experiment):
    """Table 2 for both numbers of items, with new data and on fixed data."""

    name = "table2"
    title = "Table 2: two-sample test, standard deviation of p-values"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.n_datasets = study.pick(200, 8)  # of each cell with new data
        self.n_fixed, self.n_replicates = study.pick(
            (20, 8), (3, 3)
        )  # fixed data sets, replicates of the draws on each
        self.n_permutations = study.pick(500, 100)
        self.sizes: tuple[int, ...] = study.pick(tuple(range(10, 45, 5)), (10, 25, 40))  # of the samples

    def protocol(self) -> list[str]:
        """Return the protocol."""
        return [
            (
                "P: a mixture in equal parts of a Mallows distribution with Kendall distance around the identity and "
                "one with Hamming distance around its reverse, both with theta = 1; Q: uniform; samples of equal size; "
                f"top-{TOP} lists. The paper states n = 6 in one place and n = 10 in another; both are shown. Mallows "
                f"kernel, nu = 1/median of the lists; unbiased squared MMD, {self.n_permutations} permutations. The "
                f"paper states neither the number of draws nor nu; here {N_DRAWS} draws are used, as in its Table 1."
            ),
            (
                f"New data: {self.n_datasets} data sets with new draws and permutations, the same for all methods. The "
                "standard deviation includes the variation between data sets, which is the only variation of the exact "
                "p-values."
            ),
            (
                f"Fixed data: {self.n_fixed} data sets, {self.n_replicates} replicates of the draws on each with the "
                "same permutations; pooled standard deviation within data sets. Exact p-values would not vary. With "
                "new permutations in each replicate, as perhaps in the paper, a variance of p (1 - p) / "
                f"{self.n_permutations} is added to both rows, and their ratio is closer to 1."
            ),
        ]

    # ------------------------------------------------------------------ cells

    def new_pvalues(self, n_items: int, size: int) -> FloatArray:
        """Return p-values of many data sets by each of METHODS: shape (n_datasets, 3)."""
        return self.pvalues(n_items, size, self.n_datasets, 1, N_DRAWS, METHODS)[:, 0]

    def fixed_pvalues(self, n_items: int, size: int, n_draws: int) -> FloatArray:
        """Return p-values of replicates on few data sets by each of DRAWN: shape (n_datasets, n_replicates, 2)."""
        return self.pvalues(n_items, size, self.n_fixed, self.n_replicates, n_draws, DRAWN)

    def pvalues(
        self, n_items: int, size: int, n_datasets: int, n_replicates: int, n_draws: int, methods: tuple[str, ...]
    ) -> FloatArray:
        """Return p-values of shape (n_datasets, n_replicates, n_methods)."""

        def compute() -> list[list[float]]:
            tests = [(data, replicate) for data in range(n_datasets) for replicate in range(n_replicates)]
            return [self.test(n_items, size, *test, n_draws, methods) for test in tests]

        values = self.study.cell(
            self.name,
            compute,
            items=n_items,
            observations=size,
            datasets=n_datasets,
            replicates=n_replicates,
            draws=n_draws,
            permutations=self.n_permutations,
            methods=", ".join(methods),
        )
        return np.array(values).reshape(n_datasets, n_replicates, len(methods))

    def test(
        self, n_items: int, size: int, data: int, replicate: int, n_draws: int, methods: tuple[str, ...]
    ) -> list[float]:
        """Return the p-value of each method on the same data with the same permutations."""
        key = (n_items, size, data)
        P, Q = two_samples(size, n_items, TOP, self.study.generator("samples", *key))
        permutations, draws = self.study.stream("permutations", *key), self.study.stream("draws", *key, replicate)
        options: dict[str, Any] = {"n_permutations": self.n_permutations, "rng": permutations}
        methods_used = [method_of(row, n_draws, draws) for row in methods]
        return [mmd_test(P, Q, Mallows("median"), method=method, **options).pvalue for method in methods_used]

    # ------------------------------------------------------------------ tables

    def tables(self) -> list[Table]:
        """Return the table for each number of items, with new and with fixed data."""
        return [*map(self.new_data, ITEMS), *map(self.fixed_data, ITEMS)]

    def new_data(self, n_items: int) -> Table:
        """Return standard deviations of p-values over data sets."""
        values = [self.new_pvalues(n_items, size) for size in self.sizes]
        seed = self.study.stream("bootstrap", self.name, n_items)
        deviations = np.array([each.std(axis=0, ddof=1) for each in values])
        rows: list[tuple[Entry, ...]] = [
            (f"{row}, paper", *(TABLE_2[row][size] for size in self.sizes)) for row in DRAWN
        ]
        rows += [(row, *deviations[:, METHODS.index(row)].tolist()) for row in (*DRAWN, EXACT)]
        rows += [
            ("ratio, paper", *(TABLE_2[IID][size] / TABLE_2[ANTITHETIC][size] for size in self.sizes)),
            ("ratio", *(ratio_of_variances(each[:, 1:], seed, power=0.5) for each in values)),
            ("mean p-value, exact", *(float(each[:, 0].mean()) for each in values)),
        ]
        title = f"Standard deviation of p-values, n = {n_items}, new data ({self.n_datasets} data sets)"
        note = "Ratio: Monte Carlo over antithetic, above 1 favours antithetic; 95% bootstrap intervals over data sets."
        return Table(f"table2_n{n_items}_new", title, ("observations", *map(str, self.sizes)), rows, note)

    def fixed_data(self, n_items: int) -> Table:
        """Return standard deviations of p-values within data sets."""
        rows: list[tuple[Entry, ...]] = [("paper", row, *(TABLE_2[row][size] for size in self.sizes)) for row in DRAWN]
        for n_draws in DRAWS_ON_FIXED_DATA:
            values = [self.fixed_pvalues(n_items, size, n_draws) for size in self.sizes]
            deviations = np.array([pooled_deviations(each) for each in values])
            rows += [(n_draws, row, *deviations[:, DRAWN.index(row)].tolist()) for row in DRAWN]
            rows.append((n_draws, "ratio", *map(self.fixed_ratio, values)))
        title = f"Standard deviation of p-values, n = {n_items}, fixed data"
        note = (
            "Only the draws vary. Ratio: Monte Carlo over antithetic; 95% bootstrap intervals over data sets. A dash: "
            "all p-values are equal."
        )
        return Table(f"table2_n{n_items}_fixed", title, ("draws", "observations", *map(str, self.sizes)), rows, note)

    def fixed_ratio(self, values: FloatArray) -> Interval:
        """Return the ratio of the standard deviations of the two estimators within data sets."""
        seed = self.study.stream("bootstrap", self.name, "fixed")
        return bootstrap(
            lambda s: np.asarray(pooled_deviations(s)[..., 0] / pooled_deviations(s)[..., 1]), values, seed
        )

    def findings(self) -> list[str]:
        """Return the findings about the paper's claims."""
        lines = [f"n = {n}, new data: {counts_of(self.new_data(n).rows[-2][1:])}." for n in ITEMS]
        lines += [
            f"n = {n}, fixed data, {row[0]} draws: {counts_of(row[2:])}."
            for n in ITEMS
            for row in self.fixed_data(n).rows
            if row[1] == "ratio"
        ]
        shares = [shown(self.share_of_exact(n)) for n in ITEMS]
        lines.append(
            "With new data the standard deviation of the exact p-values is on average over the sample sizes "
            f"{' (n = 6) and '.join(shares)} (n = 10) of that of the Monte Carlo p-values. The difference to 1 is the "
            "contribution of the draws, and the most that a better estimator can gain."
        )
        return lines

    def share_of_exact(self, n_items: int) -> float:
        """Return the standard deviation of exact over that of Monte Carlo p-values, averaged over the sample sizes."""
        deviations = [self.new_pvalues(n_items, size).std(axis=0, ddof=1) for size in self.sizes]
        return float(np.mean([exact / iid for exact, iid, _ in deviations if iid]))

    # ------------------------------------------------------------------ figure

    def figures(self) -> list[tuple[str, str]]:
        """Draw mean p-values with one standard deviation over data sets, and standard deviations on fixed data."""
        with saved_axes(self.study, "table2", 2, 2, size=(9, 6.4)) as axes:
            for column, n_items in enumerate(ITEMS):
                self.draw_new(axes[0, column], n_items)
                self.draw_fixed(axes[1, column], n_items)
            axes[0, 0].legend(title="mean ± one standard deviation", title_fontsize=9, fontsize=9)
            axes[1, 1].legend(fontsize=9)
        caption = "Top: mean p-value by sample size. Bottom: standard deviation of p-values on fixed data."
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
            values = [pooled_deviations(self.fixed_pvalues(n_items, size, n_draws)) for size in self.sizes]
            for column, row in enumerate(DRAWN):
                deviations, label = [v[column] for v in values], f"{row}, {n_draws} draws"
                ax.plot(self.sizes, deviations, line, marker="o", ms=3, color=COLOURS[row], label=label)
        ax.set(title=f"n = {n_items}, fixed data", xlabel="observations in each sample")
        ax.set(ylabel="standard deviation of p", ylim=(0, None))


def pooled_deviations(values: FloatArray) -> FloatArray:
    """Return pooled standard deviations within data sets: from (..., n_datasets, n_replicates, n_methods)."""
    deviations = np.sqrt(values.var(axis=-2, ddof=1).mean(axis=-2))
    return np.where(deviations > ROUNDING, deviations, 0.0)


def counts_of(ratios: tuple[Entry, ...]) -> str:
    """Return the numbers of ratios significantly above one, below one, and neither."""
    known = [ratio for ratio in ratios if isinstance(ratio, Interval)]
    above, below = sum(r.low > 1 for r in known), sum(r.high < 1 for r in known)
    return (
        f"of {len(known)} sample sizes, antithetic p-values vary significantly less in {above} and more in {below} "
        "(95% intervals)"
    )
