"""Table 1: how pure the regions of Japan are in a tree of the users' rankings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices
from rankernel.gram.bandwidth import median_distance
from rankernel.kernels import Exponential, Kendall, Kernel, Mallows
from reproduction.drawing import COLOURS, drawn_as
from reproduction.estimators import ANTITHETIC, DRAWN, EXACT, FULL, IID, ROWS, gram_by
from reproduction.experiment import ExperimentOnPeople
from reproduction.intervals import bootstrap, spread
from reproduction.outcome import Entry, Interval, Spread, Table, shown
from reproduction.paper_numbers import TABLE_1
from reproduction.purities import PURITIES, purities, tree
from reproduction.study import Study

N_USERS, TOP, N_DRAWS, N_CLUSTERS = 100, 4, 20, 10
OTHER_SAMPLES = 1000  # the number of the first sample of users on which claims are tested
KERNELS: dict[str, Kernel] = {
    "Kendall": Kendall(),
    "Mallows": Mallows("median"),
    "Hamming": Exponential("hamming", "median"),
    "Cayley": Exponential("cayley", "median"),
    "Spearman": Exponential("spearman", "median"),
}


@dataclass(frozen=True)
class Reading:
    """One way to read the protocol."""

    label: str = "region"
    purity: str = "pairs"
    squared: bool = True
    width: str = "1/median"
    users: str = "random"

    def of(self, found: dict[str, Any]) -> FloatArray:
        """Return what each tree has by this reading."""
        return np.array(found["squared" if self.squared else "plain"][self.label][self.purity])


MAIN = Reading()
READINGS = {
    "the main reading: current region, all pairs, squared distance, nu = 1/median": MAIN,
    "label: region until age 15": Reading(label="region_until_15"),
    "label: east or west": Reading(label="east_west"),
    "distance not squared": Reading(squared=False),
    "width: nu = 1": Reading(width="1"),
    "width: nu = median": Reading(width="median"),
    "users: ten from each of ten regions": Reading(users="balanced"),
    **{f"purity: {text}": Reading(purity=name) for name, text in PURITIES.items() if name != "pairs"},
    "label: east or west; cut, mean over clusters": Reading(label="east_west", purity="cut, clusters"),
}


class ClusteringTable(ExperimentOnPeople):
    """Table 1 of the paper beside ours, all readings of its protocol, and what holds of its claims."""

    name = "table1"
    title = "Table 1: clustering the SUSHI users, tree purity"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.n_repeats = study.pick(30, 2)  # of the draws, on one sample of users
        self.n_samples = study.pick(30, 2)  # of users
        self.crossed = study.pick((100, 8), (6, 3))  # samples of users to test claims on, repetitions of draws on each

    def protocol(self) -> list[str]:
        """Return what was done."""
        return [
            (
                f"{self.people.name}; {N_USERS} users drawn at random without replacement; top-{TOP} lists; {N_DRAWS} "
                "draws of each (ten antithetic pairs), every user's own; average linkage of the squared kernel "
                "distances; purity of the tree, exact. nu is one over the median distance between the full rankings of "
                f"the {N_USERS} users, for all rows."
            ),
            (
                f"One sample of users: {self.n_repeats} repetitions of the draws. Many samples: {self.n_samples} "
                "samples of users, one repetition each, so that the standard deviation holds both."
            ),
            (
                "The paper does not say which of the two its brackets hold, which region is meant (the data has the "
                "current one and that until age 15), what is averaged per class, nor what is cut: all readings are "
                "below."
            ),
            (
                "At nu = 1/median the exponential Cayley kernel is not positive semi-definite on ten items; negative "
                "squared distances are set to 0."
            ),
        ]

    def tables(self) -> list[Table]:
        """Return the table of the paper on one sample and on many, all readings, and the claims."""
        return [self.one_sample(), self.many_samples(), self.readings(), self.claims()]

    # ------------------------------------------------------------------ cells

    def results(self, kernel: str, row: str, **which: Any) -> dict[str, Any]:
        """Return the purities of many trees, by distance, label and reading: of samples of users, or of repetitions."""
        which = {"width": "1/median", "users": "random", "samples": self.n_samples, "repeats": 1, **which}

        def compute() -> dict[str, Any]:
            numbers = product(range(which["samples"]), range(which["repeats"]))
            return listed([self.purities(kernel, row, which["width"], which["users"], *pair) for pair in numbers])

        found: dict[str, Any] = self.study.cell(
            self.name, compute, data=self.people.name, kernel=kernel, row=row, **which
        )
        return found

    def main_purities(self, row: str, n_samples: int, n_repeats: int) -> FloatArray:
        """Return purities of Mallows by the main reading on samples of users of their own: (n_samples, n_repeats)."""

        def compute() -> list[list[float]]:
            samples = range(OTHER_SAMPLES, OTHER_SAMPLES + n_samples)
            return [[self.main_purity(row, sample, repeat) for repeat in range(n_repeats)] for sample in samples]

        sizes = {"samples": n_samples, "repeats": n_repeats}
        return np.array(self.study.cell(self.name, compute, data=self.people.name, claim=row, **sizes))

    def main_purity(self, row: str, sample: int, repeat: int) -> float:
        """Return the purity of one tree of Mallows by the main reading."""
        return float(MAIN.of(self.purities("Mallows", row, MAIN.width, MAIN.users, sample, repeat)))

    def purities(self, kernel: str, row: str, width: str, users: str, sample: int, repeat: int) -> dict[str, Any]:
        """Return all purities of one tree: by distance, label and reading."""
        chosen = self.users(users, sample)
        full = self.people.rankings[chosen]
        resolved = with_width(KERNELS[kernel], full, width)
        gram = gram_by(row, resolved, full, TOP, N_DRAWS, self.study.stream("draws", sample, repeat))
        trees = {"squared": tree(gram, True), "plain": tree(gram, False)}
        return {
            name: {label: purities(Z, values[chosen], N_CLUSTERS) for label, values in self.people.labels.items()}
            for name, Z in trees.items()
        }

    def users(self, users: str, sample: int) -> Indices:
        """Return a sample of users: any, or ten from each of the ten largest regions."""
        rng, regions = self.study.generator("users", users, sample), self.people.labels["region"]
        if users == "random":
            return rng.choice(len(self.people), N_USERS, replace=False)
        largest = np.argsort(-np.bincount(regions), kind="stable")[:10]
        members = [np.flatnonzero(regions == region) for region in largest]
        return np.concatenate([rng.choice(m, N_USERS // 10, replace=len(m) < N_USERS // 10) for m in members])

    # ------------------------------------------------------------------ tables

    def one_sample(self) -> Table:
        """Return Table 1 for one sample of users: repetitions of the draws only, as the paper seems to have it."""
        rows: list[tuple[Entry, ...]] = []
        for row in ROWS:
            n_repeats = self.n_repeats if row in DRAWN else 1
            found = [MAIN.of(self.results(kernel, row, samples=1, repeats=n_repeats)) for kernel in KERNELS]
            if row in TABLE_1:
                rows.append((row, "paper", *(TABLE_1[row].get(kernel) for kernel in KERNELS)))
            rows.append((row, "here", *(spread(values) if row in DRAWN else float(values[0]) for values in found)))
        note = "In brackets the standard deviation of single repetitions. A dash: the paper has no number."
        return Table("table1", "Tree purity, one sample of 100 users", ("", "by", *KERNELS), rows, note)

    def many_samples(self) -> Table:
        """Return the same over many samples of users."""
        rows: list[tuple[Entry, ...]] = [
            (row, *(spread(MAIN.of(self.results(kernel, row))) for kernel in KERNELS)) for row in ROWS
        ]
        title = f"Tree purity, {self.n_samples} samples of 100 users"
        return Table("table1_samples", title, ("", *KERNELS), rows, "In brackets the standard deviation.")

    def readings(self) -> Table:
        """Return every reading of the protocol: the full kernels, and the estimators for Mallows."""
        cells = [*((kernel, FULL) for kernel in KERNELS), *(("Mallows", row) for row in (*DRAWN, EXACT))]
        rows: list[tuple[Entry, ...]] = [
            (text, *(self.mean_by(reading, *cell) for cell in cells)) for text, reading in READINGS.items()
        ]
        rows.append(("the paper", *TABLE_1[FULL].values(), 0.79, 0.77, None))
        columns = ("reading", *(f"{kernel}, {row}" for kernel, row in cells))
        note = f"Each line differs from the first only in what it says. Means over {self.n_samples} samples of users."
        return Table("table1_readings", "Tree purity by every reading of the protocol", columns, rows, note)

    def mean_by(self, reading: Reading, kernel: str, row: str) -> float:
        """Return the mean purity over samples of users by one reading."""
        width = "1/median" if kernel == "Kendall" else reading.width
        return float(reading.of(self.results(kernel, row, width=width, users=reading.users)).mean())

    # ------------------------------------------------------------------ claims

    def claims(self) -> Table:
        """Return how far from the full and the exact purity each estimator of Mallows is, and how much it varies."""
        n_samples, n_repeats = self.crossed
        values = self.crossed_purities()
        rows = [(text, *self.claim(values, statistic)) for text, statistic in STATISTICS.items()]
        note = (
            f"Mallows, main reading: {n_samples} samples of users, {n_repeats} repetitions of the draws on each. "
            "Ratios with 95% bootstrap intervals over the samples of users; above 1 speaks for antithetic draws."
        )
        columns = ("", *DRAWN, f"{IID} / {ANTITHETIC}")
        return Table("table1_claims", "Is antithetic closer, and less variable?", columns, rows, note)

    def claim(self, values: FloatArray, statistic: Any) -> tuple[float, float, Interval]:
        """Return a statistic of both estimators, and their ratio."""
        iid, antithetic = (float(statistic(values[None], column)[0]) for column in (0, 1))
        seed = self.study.stream("bootstrap", self.name)
        return iid, antithetic, bootstrap(lambda s: np.asarray(statistic(s, 0) / statistic(s, 1)), values, seed)

    def crossed_purities(self) -> FloatArray:
        """Return purities of shape (n_samples, 4, n_repeats): Monte Carlo, antithetic, full, exact."""
        n_samples, n_repeats = self.crossed
        by_row = [
            self.main_purities(row, n_samples, n_repeats if row in DRAWN else 1)
            for row in (IID, ANTITHETIC, FULL, EXACT)
        ]
        return np.stack([np.broadcast_to(values, (n_samples, n_repeats)) for values in by_row], axis=1)

    def findings(self) -> list[str]:
        """Return what holds of the paper's claims."""
        to_full, to_exact, varies = (row[-1] for row in self.claims().rows)
        by_label: dict[str, list[float]] = {"region": [], "east": []}
        for (_, *entries), reading in zip(self.readings().rows, READINGS.values(), strict=False):
            by_label[reading.label.partition("_")[0]] += [e for e in entries if isinstance(e, float)]
        regions, highest = by_label["region"], max(by_label["region"] + by_label["east"])
        baseline = self.majority()
        return [
            (
                f"The paper's purities are 0.72 to 0.83. Here all readings with a region as the label lie between "
                f"{min(regions):.2f} and {max(regions):.2f}, and {highest:.2f} is the most with east/west, of which "
                f"the larger half alone has {baseline['east_west']:.2f} of the users. (The largest region has "
                f"{baseline['region']:.2f} of them, and a tree that says nothing of regions has purity "
                f"{baseline['chance']:.2f}.) {'No' if max(regions) < 0.72 else 'Some'} reading with regions reaches "
                "the paper's level."
            ),
            (
                f"Closer to the full result: {verdict(to_full)} (ratio of mean distances {shown(to_full)}). What "
                "remains is the difference between full rankings and top-4 lists, which no estimator can take away."
            ),
            f"Closer to the exact kernel of the same lists: {verdict(to_exact)} (ratio {shown(to_exact)}).",
            f"Less variable: {verdict(varies)} (ratio of standard deviations {shown(varies)}).",
            "The exact row needs no draws, so it has no variance.",
        ]

    def majority(self) -> dict[str, float]:
        """Return the shares of the largest classes, and the expected share of one's own region in all."""
        labels = self.people.labels
        shares = {name: np.bincount(labels[name]) / len(self.people) for name in ("region", "east_west")}
        largest = {name: float(share.max()) for name, share in shares.items()}
        squares = shares["region"] ** 2
        return largest | {"chance": float((squares * shares["region"]).sum() / squares.sum())}

    # ------------------------------------------------------------------ figure

    def figures(self) -> list[tuple[str, str]]:
        """Draw the table."""
        places = np.arange(len(KERNELS))
        with drawn_as(self.study, "table1", size=(8, 3.8)) as axes:
            ax = axes[0, 0]
            for shift, row in zip((-0.24, -0.08, 0.08, 0.24), ROWS, strict=True):
                entries = [spread(MAIN.of(self.results(kernel, row))) for kernel in KERNELS]
                means, bars = [e.mean for e in entries], [e.sd for e in entries]
                look = {"color": COLOURS[row], "label": row, "capsize": 2, "lw": 1.2, "ms": 4.5}
                ax.errorbar(places + shift, means, bars, fmt="o", **look)
            for row, marker in ((FULL, "D"), (IID, "s"), (ANTITHETIC, "^")):
                printed = [TABLE_1[row].get(kernel) for kernel in KERNELS]
                known = [(x, e.mean if isinstance(e, Spread) else e) for x, e in enumerate(printed) if e is not None]
                ax.plot(*zip(*known, strict=True), marker, color=COLOURS["paper"], label=f"paper, {row}", mfc="none")
            ax.set_xticks(places, list(KERNELS))
            ax.set(ylabel="tree purity", ylim=(0.3, 0.9))
            if self.people.synthetic:
                ax.set_title("synthetic data")
            ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return [("table1", f"Tree purity: mean and standard deviation over {self.n_samples} samples of users.")]


def listed(trees: list[dict[str, Any]]) -> dict[str, Any]:
    """Return nested dictionaries of lists, from a list of nested dictionaries of numbers."""
    return {
        key: listed([one[key] for one in trees]) if isinstance(value, dict) else [one[key] for one in trees]
        for key, value in trees[0].items()
    }


def with_width(kernel: Kernel, full: Any, width: str) -> Kernel:
    """Return the kernel with its width settled by the full rankings, by one reading of the median heuristic."""
    distance = kernel.facts(full.n_items).distance
    if "nu" not in kernel.params or distance is None:
        return kernel
    median = median_distance(distance, full)
    return kernel.replace(nu={"1/median": 1 / median, "1": 1.0, "median": median}[width])


def distance_to(column: int) -> Any:
    """Return a statistic: the mean distance of a purity to the one in a column."""

    def statistic(s: FloatArray, estimator: int) -> FloatArray:
        return np.asarray(np.abs(s[..., estimator, :] - s[..., column, :]).mean(axis=(1, 2)))

    return statistic


def deviation(s: FloatArray, estimator: int) -> FloatArray:
    """Return the standard deviation over repetitions of the draws, pooled over samples of users."""
    return np.asarray(np.sqrt(s[..., estimator, :].var(axis=-1, ddof=1).mean(axis=1)))


STATISTICS = {
    "mean distance to the purity of the full rankings": distance_to(2),
    "mean distance to the purity of the exact kernel of the top-4 lists": distance_to(3),
    "standard deviation over draws": deviation,
}


def verdict(ratio: Entry) -> str:
    """Return whether a ratio above one is established."""
    assert isinstance(ratio, Interval)
    if ratio.low > 1:
        return "holds"
    return "the opposite holds" if ratio.high < 1 else "not shown either way"
