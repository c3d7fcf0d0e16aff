"""Table 1: dendrogram purity of the regions of Japan for clustered SUSHI users."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rankernel import Exponential, IndefiniteKernelWarning, Kendall, Kernel, Mallows, flat_clusters, median_distance
from rankernel._utils import FloatArray, Indices, IntArray
from rankernel.learn.hierarchy import gram_distances, weighted_linkage
from reproduction.paper import TABLE_1
from reproduction.purity import class_purities, dendrogram_purity
from reproduction.results import COLOURS, Entry, Interval, MeanSD, Table, bootstrap, mean_sd, saved_axes, shown
from reproduction.study import ANTITHETIC, DRAWN, EXACT, FULL, IID, ROWS, Study, UserExperiment, gram_by

N_USERS, TOP, N_DRAWS, N_CLUSTERS = 100, 4, 20, 10
FIRST_CLAIM_SAMPLE = 1000  # samples of users for the claims, disjoint from those of the tables
KERNELS: dict[str, Kernel] = {
    "Kendall": Kendall(),
    "Mallows": Mallows("median"),
    "Hamming": Exponential("hamming", "median"),
    "Cayley": Exponential("cayley", "median"),
    "Spearman": Exponential("spearman", "median"),
}
PURITIES = {
    "pairs": "two different leaves of one class, all such pairs equally likely",
    "classes": "the same, mean over classes (those with two leaves)",
    "classes, singletons 1": "mean over classes, a class of one leaf counts 1",
    "classes, repeated": "mean over classes, the two leaves may be the same",
    "cut, users": "cut into 10 clusters, fraction of users in the majority class of their cluster",
    "cut, clusters": "cut into 10 clusters, mean over clusters of the fraction of the majority class",
}


@dataclass(frozen=True)
class Reading:
    """One interpretation of the protocol."""

    label: str = "region"
    purity: str = "pairs"
    squared: bool = True
    nu: str = "1/median"
    users: str = "random"

    def of(self, purities: dict[str, Any]) -> FloatArray:
        """Return the purity of each tree."""
        return np.array(purities["squared" if self.squared else "plain"][self.label][self.purity])


MAIN = Reading()
READINGS = {
    "main: current region, all pairs, squared distance, nu = 1/median": MAIN,
    "label: region until age 15": Reading(label="region_until_15"),
    "label: east or west": Reading(label="east_west"),
    "distance not squared": Reading(squared=False),
    "nu = 1": Reading(nu="1"),
    "nu = median": Reading(nu="median"),
    "users: ten from each of ten regions": Reading(users="balanced"),
    **{f"purity: {text}": Reading(purity=name) for name, text in PURITIES.items() if name != "pairs"},
    "label: east or west; cut, mean over clusters": Reading(label="east_west", purity="cut, clusters"),
}


class ClusteringTable(UserExperiment):
    """Table 1, all interpretations of its protocol, and tests of its claims."""

    name = "table1"
    title = "Table 1: clustering of the SUSHI users, dendrogram purity"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.n_replicates = study.pick(30, 2)  # of the draws, on one sample of users
        self.n_samples = study.pick(30, 2)  # of users
        self.claim_sizes = study.pick((100, 8), (6, 3))  # samples of users, and replicates of the draws on each

    def protocol(self) -> list[str]:
        """Return the protocol."""
        return [
            (
                f"{self.users.name}; {N_USERS} users drawn at random without replacement; top-{TOP} lists; {N_DRAWS} "
                "draws for each user (ten antithetic pairs); average linkage of the squared kernel distances; exact "
                "dendrogram purity. In all rows nu is one over the median distance between the full rankings of the "
                f"{N_USERS} users."
            ),
            (
                f"One sample of users: {self.n_replicates} replicates of the draws. Many samples: {self.n_samples} "
                "samples of users with one replicate each, so the standard deviation includes the variation between "
                "samples and between draws."
            ),
            (
                "The paper does not state which standard deviation it reports, which region is meant (the data has the "
                "current one and that until age 15), how classes are averaged, and whether the tree is cut; all "
                "interpretations are shown below."
            ),
            (
                "At nu = 1/median the exponential Cayley kernel is not positive semi-definite on ten items; negative "
                "squared distances are set to 0."
            ),
        ]

    def tables(self) -> list[Table]:
        """Return the table on one sample and on many, all interpretations, and the claims."""
        return [self.one_sample(), self.many_samples(), self.readings(), self.claims()]

    # ------------------------------------------------------------------ cells

    def purities(self, kernel: str, row: str, **options: Any) -> dict[str, Any]:
        """Return the purities of many trees by distance, label and definition: lists over samples and replicates."""
        options = {"nu": "1/median", "users": "random", "samples": self.n_samples, "replicates": 1, **options}

        def compute() -> dict[str, Any]:
            numbers = product(range(options["samples"]), range(options["replicates"]))
            trees = [self.tree_purities(kernel, row, options["nu"], options["users"], *pair) for pair in numbers]
            return nested_lists(trees)

        result: dict[str, Any] = self.study.cell(
            self.name, compute, data=self.users.name, kernel=kernel, row=row, **options
        )
        return result

    def claim_purities(self) -> FloatArray:
        """Return purities of Mallows, shape (n_samples, 4, n_replicates): Monte Carlo, antithetic, full, exact."""
        n_samples, n_replicates = self.claim_sizes

        def purities_of(row: str) -> FloatArray:
            n = n_replicates if row in DRAWN else 1

            def compute() -> list[list[float]]:
                samples = range(FIRST_CLAIM_SAMPLE, FIRST_CLAIM_SAMPLE + n_samples)
                return [[purity(row, sample, replicate) for replicate in range(n)] for sample in samples]

            sizes = {"samples": n_samples, "replicates": n}
            values = self.study.cell(self.name, compute, data=self.users.name, claim=row, **sizes)
            return np.broadcast_to(np.array(values), (n_samples, n_replicates))

        def purity(row: str, sample: int, replicate: int) -> float:
            return float(MAIN.of(self.tree_purities("Mallows", row, MAIN.nu, MAIN.users, sample, replicate)))

        return np.stack([purities_of(row) for row in (IID, ANTITHETIC, FULL, EXACT)], axis=1)

    def tree_purities(self, kernel: str, row: str, nu: str, users: str, sample: int, replicate: int) -> dict[str, Any]:
        """Return all purities of one tree by distance, label and definition."""
        chosen = self.sampled_users(users, sample)
        full = self.users.rankings[chosen]
        resolved = with_nu(KERNELS[kernel], full, nu)
        gram = gram_by(row, resolved, full, TOP, N_DRAWS, self.study.stream("draws", sample, replicate))
        trees = {"squared": tree(gram, squared=True), "plain": tree(gram, squared=False)}
        return {
            name: {label: all_purities(Z, values[chosen], N_CLUSTERS) for label, values in self.users.labels.items()}
            for name, Z in trees.items()
        }

    def sampled_users(self, users: str, sample: int) -> Indices:
        """Return a random sample of users, or ten users from each of the ten largest regions."""
        rng, regions = self.study.generator("users", users, sample), self.users.labels["region"]
        if users == "random":
            return rng.choice(len(self.users), N_USERS, replace=False)
        largest = np.argsort(-np.bincount(regions), kind="stable")[:10]
        members = [np.flatnonzero(regions == region) for region in largest]
        return np.concatenate([rng.choice(m, N_USERS // 10, replace=len(m) < N_USERS // 10) for m in members])

    # ------------------------------------------------------------------ tables

    def one_sample(self) -> Table:
        """Return Table 1 for one sample of users, with replicates of the draws only."""
        rows: list[tuple[Entry, ...]] = []
        for row in ROWS:
            n_replicates = self.n_replicates if row in DRAWN else 1
            values = [MAIN.of(self.purities(kernel, row, samples=1, replicates=n_replicates)) for kernel in KERNELS]
            if row in TABLE_1:
                rows.append((row, "paper", *(TABLE_1[row].get(kernel) for kernel in KERNELS)))
            rows.append((row, "here", *(mean_sd(each) if row in DRAWN else float(each[0]) for each in values)))
        note = "In parentheses the standard deviation of single replicates. A dash: not in the paper."
        return Table("table1", "Dendrogram purity, one sample of 100 users", ("", "by", *KERNELS), rows, note)

    def many_samples(self) -> Table:
        """Return Table 1 over many samples of users."""
        rows: list[tuple[Entry, ...]] = [
            (row, *(mean_sd(MAIN.of(self.purities(kernel, row))) for kernel in KERNELS)) for row in ROWS
        ]
        title = f"Dendrogram purity, {self.n_samples} samples of 100 users"
        return Table("table1_samples", title, ("", *KERNELS), rows, "In parentheses the standard deviation.")

    def readings(self) -> Table:
        """Return all interpretations of the protocol: the full kernels, and the estimators for Mallows."""
        cells = [*((kernel, FULL) for kernel in KERNELS), *(("Mallows", row) for row in (*DRAWN, EXACT))]
        rows: list[tuple[Entry, ...]] = [
            (text, *(self.mean_purity(reading, *cell) for cell in cells)) for text, reading in READINGS.items()
        ]
        rows.append(("the paper", *TABLE_1[FULL].values(), 0.79, 0.77, None))
        columns = ("interpretation", *(f"{kernel}, {row}" for kernel, row in cells))
        note = f"Each line differs from the first in the stated detail. Means over {self.n_samples} samples of users."
        return Table("table1_readings", "Dendrogram purity by interpretation of the protocol", columns, rows, note)

    def mean_purity(self, reading: Reading, kernel: str, row: str) -> float:
        """Return the mean purity over samples of users."""
        nu = "1/median" if kernel == "Kendall" else reading.nu
        return float(reading.of(self.purities(kernel, row, nu=nu, users=reading.users)).mean())

    def claims(self) -> Table:
        """Return the error and the standard deviation of both estimators of Mallows, and their ratios."""
        n_samples, n_replicates = self.claim_sizes
        values, seed = self.claim_purities(), self.study.stream("bootstrap", self.name)
        rows: list[tuple[Entry, ...]] = []
        for text, statistic in STATISTICS.items():
            iid, antithetic = (float(statistic(values[None], column)[0]) for column in (0, 1))
            ratio = bootstrap(lambda s, f=statistic: np.asarray(f(s, 0) / f(s, 1)), values, seed)  # type: ignore[misc]
            rows.append((text, iid, antithetic, ratio))
        note = (
            f"Mallows, main interpretation: {n_samples} samples of users, {n_replicates} replicates of the draws on "
            "each. Ratios with 95% bootstrap intervals over the samples of users; above 1 favours antithetic draws."
        )
        columns = ("", *DRAWN, f"{IID} / {ANTITHETIC}")
        return Table("table1_claims", "Error and variability of the two estimators", columns, rows, note)

    def findings(self) -> list[str]:
        """Return the findings about the paper's claims."""
        to_full, to_exact, deviation = (row[-1] for row in self.claims().rows)
        by_label: dict[str, list[float]] = {"region": [], "east": []}
        for (_, *entries), reading in zip(self.readings().rows, READINGS.values(), strict=False):
            by_label[reading.label.partition("_")[0]] += [e for e in entries if isinstance(e, float)]
        regions, highest = by_label["region"], max(by_label["east"])
        shares = {name: np.bincount(self.users.labels[name]) / len(self.users) for name in ("region", "east_west")}
        chance = float((shares["region"] ** 3).sum() / (shares["region"] ** 2).sum())
        return [
            (
                f"The paper's purities are 0.72 to 0.83. Here all interpretations with the region as label are between "
                f"{min(regions):.2f} and {max(regions):.2f}; the largest purity with east/west is {highest:.2f}, where "
                f"the larger class alone has {shares['east_west'].max():.2f} of the users. (The largest region has "
                f"{shares['region'].max():.2f} of them, and a tree independent of the regions has purity "
                f"{chance:.2f}.) {'No' if max(regions) < 0.72 else 'One'} interpretation with regions reaches the "
                "paper's values."
            ),
            (
                f"Closer to the result of the full rankings: {verdict(to_full)} (ratio of mean absolute differences "
                f"{shown(to_full)}). The remaining error is the difference between full rankings and top-4 lists, "
                "which no estimator can reduce."
            ),
            f"Closer to the exact kernel of the same lists: {verdict(to_exact)} (ratio {shown(to_exact)}).",
            f"Less variable: {verdict(deviation)} (ratio of standard deviations {shown(deviation)}).",
            "The exact kernel needs no draws and has no Monte Carlo variance.",
        ]

    # ------------------------------------------------------------------ figure

    def figures(self) -> list[tuple[str, str]]:
        """Draw the table."""
        x = np.arange(len(KERNELS))
        with saved_axes(self.study, "table1", size=(8, 3.8)) as axes:
            ax = axes[0, 0]
            for shift, row in zip((-0.24, -0.08, 0.08, 0.24), ROWS, strict=True):
                entries = [mean_sd(MAIN.of(self.purities(kernel, row))) for kernel in KERNELS]
                style = {"color": COLOURS[row], "label": row, "capsize": 2, "lw": 1.2, "ms": 4.5}
                ax.errorbar(x + shift, [e.mean for e in entries], [e.sd for e in entries], fmt="o", **style)
            for row, marker in ((FULL, "D"), (IID, "s"), (ANTITHETIC, "^")):
                printed = [TABLE_1[row].get(kernel) for kernel in KERNELS]
                known = [(i, e.mean if isinstance(e, MeanSD) else e) for i, e in enumerate(printed) if e is not None]
                ax.plot(*zip(*known, strict=True), marker, color=COLOURS["paper"], label=f"paper, {row}", mfc="none")
            ax.set_xticks(x, list(KERNELS))
            ax.set(ylabel="dendrogram purity", ylim=(0.3, 0.9))
            if self.users.synthetic:
                ax.set_title("synthetic data")
            ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return [("table1", f"Dendrogram purity: mean and standard deviation over {self.n_samples} samples of users.")]


def nested_lists(trees: list[dict[str, Any]]) -> dict[str, Any]:
    """Return nested dictionaries of lists from a list of nested dictionaries of numbers."""
    return {
        key: nested_lists([each[key] for each in trees]) if isinstance(value, dict) else [each[key] for each in trees]
        for key, value in trees[0].items()
    }


def with_nu(kernel: Kernel, full: Any, nu: str) -> Kernel:
    """Return the kernel with nu set by one interpretation of the median heuristic on full rankings."""
    distance = kernel.facts(full.n_items).distance
    if "nu" not in kernel.params or distance is None:
        return kernel
    median = median_distance(full, distance)
    return kernel.replace(nu={"1/median": 1 / median, "1": 1.0, "median": median}[nu])


# ---------------------------------------------------------------------- purities


def tree(gram: FloatArray, *, squared: bool) -> FloatArray:
    """Return the dendrogram of average linkage."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndefiniteKernelWarning)  # negative squares are set to 0
        distances = gram_distances(gram, squared=squared)
    return weighted_linkage(distances, np.ones(len(gram), dtype=np.int64))


def all_purities(Z: FloatArray, labels: IntArray, n_clusters: int = 10) -> dict[str, float]:
    """Return the purity of a tree by every definition."""
    by_class = class_purities(Z, labels)
    _, sizes = np.unique(labels, return_counts=True)
    values = np.array(list(by_class.values()))
    filled = np.nan_to_num(values)
    clusters = flat_clusters(Z, n_clusters)
    members = np.zeros((clusters.max() + 1, labels.max() + 1))
    np.add.at(members, (clusters, labels), 1)
    majority, size = members.max(axis=1), members.sum(axis=1)
    return {
        "pairs": dendrogram_purity(Z, labels),
        "classes": float(np.nanmean(values)),
        "classes, singletons 1": float(np.where(sizes == 1, 1, filled).mean()),
        "classes, repeated": float(((1 + (sizes - 1) * filled) / sizes).mean()),
        "cut, users": float(majority.sum() / size.sum()),
        "cut, clusters": float((majority / size).mean()),
    }


# ---------------------------------------------------------------------- claims


def difference_to(column: int) -> Any:
    """Return a statistic: the mean absolute difference between a purity and that in a column."""

    def statistic(s: FloatArray, estimator: int) -> FloatArray:
        return np.asarray(np.abs(s[..., estimator, :] - s[..., column, :]).mean(axis=(1, 2)))

    return statistic


def standard_deviation(s: FloatArray, estimator: int) -> FloatArray:
    """Return the standard deviation over replicates of the draws, pooled over samples of users."""
    return np.asarray(np.sqrt(s[..., estimator, :].var(axis=-1, ddof=1).mean(axis=1)))


STATISTICS = {
    "mean absolute difference to the purity of the full rankings": difference_to(2),
    "mean absolute difference to the purity of the exact kernel of the top-4 lists": difference_to(3),
    "standard deviation over draws": standard_deviation,
}


def verdict(ratio: Entry) -> str:
    """Return whether a ratio is significantly above or below one."""
    assert isinstance(ratio, Interval)
    if ratio.low > 1:
        return "confirmed"
    return "the opposite is found" if ratio.high < 1 else "not significant"
