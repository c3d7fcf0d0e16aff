"""Table 2 and its figure: how much p-values of the two-sample test vary."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel.arrays import FloatArray
from rankernel.datasets import paper_two_sample
from rankernel.experiments import paper_numbers
from rankernel.experiments.drawing import COLOURS, drawn_as, has_matplotlib
from rankernel.experiments.estimators import ANTITHETIC, DRAWN, EXACT, IID, method_of
from rankernel.experiments.experiment import Study
from rankernel.experiments.intervals import bootstrap, ratio_of_deviations
from rankernel.experiments.outcome import Entry, Interval, Outcome, Table, shown
from rankernel.kernels import Mallows
from rankernel.tasks.tests.mmd import mmd_test

NAME = "table2"
TOP, N_DRAWS = 3, 20
ITEMS = (6, 10)
METHODS = (EXACT, IID, ANTITHETIC)
DRAWS_ON_FIXED_DATA = (4, 20)
ROUNDING = 1e-12


def run(study: Study) -> Outcome:
    """Return Table 2 of the paper beside ours, for both numbers of items, with new data and on fixed data."""
    outcome = Outcome(NAME, "Table 2: the two-sample test, standard deviation of p-values", protocol=protocol(study))
    outcome.tables = [new_data(study, n_items) for n_items in ITEMS] + [fixed_data(study, n_items) for n_items in ITEMS]
    outcome.findings = findings(study)
    if has_matplotlib():
        outcome.figures = [figure(study)]
    return outcome


def protocol(study: Study) -> list[str]:
    """Return what was done."""
    n_datasets, n_repeats = fixed_sizes(study)
    return [
        (
            "P: half Mallows with Kendall's distance around the identity, half Mallows with Hamming's distance around "
            f"its reverse, both with theta = 1; Q: uniform; top-{TOP} lists; as many observations of Q as of P. The "
            "paper says n = 6 in one place and n = 10 in another: both. Mallows kernel, nu = 1/median of the lists; "
            f"unbiased squared MMD, {permutations(study)} permutations. The paper gives no number of draws, kernel or "
            f"width; here {N_DRAWS} draws (as in its Table 1)."
        ),
        (
            f"New data: {datasets(study)} data sets, each with its own draws and permutations, the same for all "
            "methods. The standard deviation then holds what differs between data sets, too, which is all there is in "
            "the exact row."
        ),
        (
            f"Fixed data: {n_datasets} data sets, {n_repeats} repetitions of the draws on each, with the permutations "
            "of the data set; the standard deviation within data sets, pooled. An exact p-value would not vary at all: "
            "this isolates the estimator. A test with new permutations each time, as the paper's may have been, adds "
            f"their noise, the root of p (1 - p) / {permutations(study)}, to both rows, and its ratios are nearer to 1."
        ),
    ]


def datasets(study: Study) -> int:
    """Return how many data sets there are for each cell."""
    return int(study.pick(200, 8))


def fixed_sizes(study: Study) -> tuple[int, int]:
    """Return how many data sets are fixed, and how often draws are repeated on each."""
    sizes: tuple[int, int] = study.pick((20, 8), (3, 3))
    return sizes


def permutations(study: Study) -> int:
    """Return how many permutations a test makes."""
    return int(study.pick(500, 100))


def observations(study: Study) -> tuple[int, ...]:
    """Return the sizes of the samples."""
    sizes: tuple[int, ...] = study.pick(tuple(range(10, 45, 5)), (10, 25, 40))
    return sizes


# ---------------------------------------------------------------------- cells


def new_pvalues(study: Study, n_items: int, n_observations: int) -> FloatArray:
    """Return p-values of many data sets by each of METHODS: shape (n_datasets, 3)."""
    return pvalues(study, n_items, n_observations, datasets(study), 1, N_DRAWS, METHODS)[:, 0]


def fixed_pvalues(study: Study, n_items: int, n_observations: int, n_draws: int) -> FloatArray:
    """Return p-values of repeated draws on a few data sets by each of DRAWN: shape (n_datasets, n_repeats, 2)."""
    return pvalues(study, n_items, n_observations, *fixed_sizes(study), n_draws, DRAWN)


def pvalues(
    study: Study,
    n_items: int,
    n_observations: int,
    n_datasets: int,
    n_repeats: int,
    n_draws: int,
    methods: tuple[str, ...],
) -> FloatArray:
    """Return p-values of shape (n_datasets, n_repeats, n_methods)."""

    def compute() -> list[list[float]]:
        tests = [(data, repeat) for data in range(n_datasets) for repeat in range(n_repeats)]
        return [tested(study, n_items, n_observations, *test, n_draws, methods) for test in tests]

    found = study.cell(
        NAME,
        compute,
        items=n_items,
        observations=n_observations,
        datasets=n_datasets,
        repeats=n_repeats,
        draws=n_draws,
        permutations=permutations(study),
        methods=", ".join(methods),
    )
    return np.array(found).reshape(n_datasets, n_repeats, len(methods))


def tested(
    study: Study, n_items: int, n_observations: int, data: int, repeat: int, n_draws: int, methods: tuple[str, ...]
) -> list[float]:
    """Return the p-value by each method, on the same data with the same permutations."""
    where = (n_items, n_observations, data)
    P, Q = paper_two_sample(n_observations, n_items, TOP, seed=study.generator("samples", *where))
    shuffles, draws = study.stream("permutations", *where), study.stream("draws", *where, repeat)
    return [
        mmd_test(P, Q, Mallows("median"), permutations(study), shuffles, method=method_of(row, n_draws, draws)).pvalue
        for row in methods
    ]


# ---------------------------------------------------------------------- tables


def new_data(study: Study, n_items: int) -> Table:
    """Return standard deviations of p-values over data sets."""
    sizes = observations(study)
    by_size = {m: new_pvalues(study, n_items, m) for m in sizes}
    seed = study.stream("bootstrap", NAME, n_items)
    rows: list[tuple[Entry, ...]] = [
        (f"{row}, paper", *(paper_numbers.TABLE_2[row][m] for m in sizes)) for row in DRAWN
    ]
    rows += [(row, *(float(by_size[m][:, METHODS.index(row)].std(ddof=1)) for m in sizes)) for row in (*DRAWN, EXACT)]
    rows.append(
        ("ratio, paper", *(paper_numbers.TABLE_2[IID][m] / paper_numbers.TABLE_2[ANTITHETIC][m] for m in sizes))
    )
    rows.append(("ratio", *(ratio_of_deviations(by_size[m][:, 1:], seed) for m in sizes)))
    rows.append(("mean p-value, exact", *(float(by_size[m][:, 0].mean()) for m in sizes)))
    title = f"Standard deviation of p-values, n = {n_items}, new data ({datasets(study)} data sets)"
    note = "Ratio: Monte Carlo over antithetic, above 1 speaks for antithetic; 95% bootstrap intervals over data sets."
    return Table(f"table2_n{n_items}_new", title, ("observations", *map(str, sizes)), tuple(rows), note)


def fixed_data(study: Study, n_items: int) -> Table:
    """Return standard deviations of p-values within data sets."""
    sizes = observations(study)
    rows: list[tuple[Entry, ...]] = [("paper", row, *(paper_numbers.TABLE_2[row][m] for m in sizes)) for row in DRAWN]
    rows += [line for n_draws in DRAWS_ON_FIXED_DATA for line in fixed_lines(study, n_items, n_draws)]
    title = f"Standard deviation of p-values, n = {n_items}, fixed data"
    note = (
        "Draws vary, data and permutations do not. Ratio: Monte Carlo over antithetic; 95% bootstrap intervals over "
        "data sets. A dash: all p-values are equal."
    )
    columns = ("draws", "observations", *map(str, sizes))
    return Table(f"table2_n{n_items}_fixed", title, columns, tuple(rows), note)


def fixed_lines(study: Study, n_items: int, n_draws: int) -> list[tuple[Entry, ...]]:
    """Return the lines of one number of draws."""
    values = {m: fixed_pvalues(study, n_items, m, n_draws) for m in observations(study)}
    lines: list[tuple[Entry, ...]] = [
        (n_draws, row, *(float(pooled(v)[DRAWN.index(row)]) for v in values.values())) for row in DRAWN
    ]
    return [*lines, (n_draws, "ratio", *(fixed_ratio(study, v) for v in values.values()))]


def pooled(values: FloatArray) -> FloatArray:
    """Return standard deviations within data sets: from (..., n_datasets, n_repeats, n_methods)."""
    deviations = np.sqrt(values.var(axis=-2, ddof=1).mean(axis=-2))
    return np.where(deviations > ROUNDING, deviations, 0.0)


def fixed_ratio(study: Study, values: FloatArray) -> Interval:
    """Return the ratio of the two estimators' standard deviations within data sets."""
    seed = study.stream("bootstrap", NAME, "fixed")
    return bootstrap(lambda s: np.asarray(pooled(s)[..., 0] / pooled(s)[..., 1]), values, seed)


def findings(study: Study) -> list[str]:
    """Return what holds of the paper's claims."""
    lines = [f"n = {n}, new data: {counted(new_data(study, n).rows[-2][1:])}." for n in ITEMS]
    lines += [
        f"n = {n}, fixed data, {row[0]} draws: {counted(row[2:])}."
        for n in ITEMS
        for row in fixed_data(study, n).rows
        if row[1] == "ratio"
    ]
    shares = [shown(share_of_exact(study, n)) for n in ITEMS]
    lines.append(
        "With new data the standard deviation of exact p-values, where nothing is estimated, is on average over the "
        f"sizes {' (n = 6) and '.join(shares)} (n = 10) of that of the Monte Carlo ones: what is missing to 1 is all "
        "that the draws add to the variation between data sets, and all that a better estimator can take away."
    )
    return lines


def counted(ratios: tuple[Entry, ...]) -> str:
    """Return how many ratios are above one, below one, or neither."""
    known = [ratio for ratio in ratios if isinstance(ratio, Interval)]
    above, below = sum(r.low > 1 for r in known), sum(r.high < 1 for r in known)
    return (
        f"antithetic varies less in {above} of {len(known)} sizes, more in {below}, and {len(known) - above - below} "
        "are not decided at 95%"
    )


def share_of_exact(study: Study, n_items: int) -> float:
    """Return the standard deviation of exact p-values over that of Monte Carlo ones, mean over the sizes."""
    values = [new_pvalues(study, n_items, m).std(axis=0, ddof=1) for m in observations(study)]
    return float(np.mean([exact / iid for exact, iid, _ in values if iid]))


# ---------------------------------------------------------------------- figure


def figure(study: Study) -> tuple[str, str]:
    """Draw mean p-values with bands of a standard deviation: over data sets, and over draws on one data set."""
    with drawn_as(study, "table2", 2, 2, size=(9, 6.4)) as axes:
        for column, n_items in enumerate(ITEMS):
            draw_new(axes[0, column], study, n_items)
            draw_fixed(axes[1, column], study, n_items)
        axes[0, 0].legend(title="mean ± one standard deviation", title_fontsize=9, fontsize=9)
        axes[1, 1].legend(fontsize=9)
    return "table2", "Above: mean p-value against the size of the samples. Below: how much p-values vary on fixed data."


def draw_new(ax: Any, study: Study, n_items: int) -> None:
    """Draw mean p-values over data sets."""
    sizes = observations(study)
    values = np.stack([new_pvalues(study, n_items, m) for m in sizes])
    for column, (row, line) in enumerate(zip(METHODS, ("-", "--", ":"), strict=True)):
        mean, sd = values[..., column].mean(axis=1), values[..., column].std(axis=1, ddof=1)
        ax.plot(sizes, mean, line, color=COLOURS[row], label=row, lw=2, zorder=3)
        for edge in (np.maximum(mean - sd, 0), mean + sd):
            ax.plot(sizes, edge, line, color=COLOURS[row], lw=0.9, alpha=0.7)
        if row == EXACT:
            ax.fill_between(sizes, np.maximum(mean - sd, 0), mean + sd, color="#000000", alpha=0.06, lw=0)
    ax.set(title=f"n = {n_items}, new data", xlabel="observations in each sample", ylabel="p-value", ylim=(0, None))


def draw_fixed(ax: Any, study: Study, n_items: int) -> None:
    """Draw standard deviations within data sets."""
    sizes = observations(study)
    for n_draws, line in zip(DRAWS_ON_FIXED_DATA, ("--", "-"), strict=True):
        values = [pooled(fixed_pvalues(study, n_items, m, n_draws)) for m in sizes]
        for column, row in enumerate(DRAWN):
            deviations, label = [v[column] for v in values], f"{row}, {n_draws} draws"
            ax.plot(sizes, deviations, line, marker="o", ms=3, color=COLOURS[row], label=label)
    ax.set(title=f"n = {n_items}, fixed data", xlabel="observations in each sample")
    ax.set(ylabel="standard deviation of p", ylim=(0, None))
