"""Table 1: how pure the regions of Japan are in a tree of the users' rankings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel.arrays import FloatArray, Indices
from rankernel.experiments import paper_numbers
from rankernel.experiments.drawing import COLOURS, drawn_as, has_matplotlib
from rankernel.experiments.estimators import ANTITHETIC, DRAWN, EXACT, FULL, IID, ROWS, gram_by
from rankernel.experiments.experiment import Study
from rankernel.experiments.intervals import bootstrap, spread
from rankernel.experiments.outcome import Entry, Interval, Outcome, Spread, Table, shown
from rankernel.experiments.purities import PURITIES, purities, tree
from rankernel.experiments.sushi_users import People, people_of
from rankernel.gram.bandwidth import median_distance
from rankernel.kernels import Exponential, Kendall, Kernel, Mallows

NAME = "table1"
N_USERS, TOP, N_DRAWS, N_CLUSTERS = 100, 4, 20, 10
OTHER_SAMPLES = 1000  # the number of the first sample of users on which claims are tested
KERNELS: dict[str, Kernel] = {
    "Kendall": Kendall(),
    "Mallows": Mallows("median"),
    "Hamming": Exponential("hamming", "median"),
    "Cayley": Exponential("cayley", "median"),
    "Spearman": Exponential("spearman", "median"),
}
WIDTHS = {"1/median": "nu = 1/median", "1": "nu = 1", "median": "nu = median"}


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


# ---------------------------------------------------------------------- cells


def run(study: Study) -> Outcome:
    """Return Table 1 of the paper beside ours, all readings of its protocol, and what holds of its claims."""
    people = people_of(study)
    outcome = Outcome(NAME, "Table 1: clustering the SUSHI users, tree purity", protocol=protocol(study, people))
    outcome.tables = [one_sample(study, people), many_samples(study, people), readings(study, people)]
    closeness = claims(study, people)
    outcome.tables.append(closeness)
    outcome.findings = findings(study, people, closeness)
    if has_matplotlib():
        outcome.figures = [figure(study, people)]
    return outcome


def protocol(study: Study, people: People) -> list[str]:
    """Return what was done."""
    return [
        (
            f"{people.name}; {N_USERS} users drawn at random without replacement; top-{TOP} lists; {N_DRAWS} draws of "
            "each (ten antithetic pairs), every user's own; average linkage of the squared kernel distances; purity of "
            f"the tree, exact. nu is one over the median distance between the full rankings of the {N_USERS} users, "
            "for all rows."
        ),
        (
            f"One sample of users: {repeats(study)} repetitions of the draws. Many samples: {samples(study)} samples "
            "of users, one repetition each, so that the standard deviation holds both."
        ),
        (
            "The paper does not say which of the two its brackets hold, which region is meant (the data has the "
            "current one and that until age 15), what is averaged per class, nor what is cut: all readings are below."
        ),
        (
            "At nu = 1/median the exponential Cayley kernel is not positive semi-definite on ten items; negative "
            "squared distances are set to 0."
        ),
    ]


def repeats(study: Study) -> int:
    """Return how often draws are repeated."""
    return int(study.pick(30, 2))


def samples(study: Study) -> int:
    """Return how many samples of users there are."""
    return int(study.pick(30, 2))


def results(study: Study, people: People, kernel: str, row: str, **which: Any) -> dict[str, Any]:
    """Return the purities of many trees, by distance, label and reading: of samples of users, or of repetitions."""
    which = {"width": "1/median", "users": "random", "samples": samples(study), "repeats": 1, **which}

    def compute() -> dict[str, Any]:
        return listed(
            [
                purities_of(study, people, kernel, row, which["width"], which["users"], sample, repeat)
                for sample in range(which["samples"])
                for repeat in range(which["repeats"])
            ]
        )

    found: dict[str, Any] = study.cell(NAME, compute, data=people.name, kernel=kernel, row=row, **which)
    return found


def listed(trees: list[dict[str, Any]]) -> dict[str, Any]:
    """Return nested dictionaries of lists, from a list of nested dictionaries of numbers."""
    return {
        key: listed([one[key] for one in trees]) if isinstance(value, dict) else [one[key] for one in trees]
        for key, value in trees[0].items()
    }


def main_purities(study: Study, people: People, row: str, n_samples: int, n_repeats: int) -> FloatArray:
    """Return purities of Mallows by the main reading on samples of users of their own: (n_samples, n_repeats)."""

    def compute() -> list[list[float]]:
        return [
            [
                purities_of(study, people, "Mallows", row, MAIN.width, MAIN.users, sample, repeat)["squared"]["region"][
                    "pairs"
                ]
                for repeat in range(n_repeats)
            ]
            for sample in range(OTHER_SAMPLES, OTHER_SAMPLES + n_samples)
        ]

    return np.array(study.cell(NAME, compute, data=people.name, claim=row, samples=n_samples, repeats=n_repeats))


def purities_of(
    study: Study, people: People, kernel: str, row: str, width: str, users: str, sample: int, repeat: int
) -> dict[str, Any]:
    """Return all purities of one tree: by distance, label and reading."""
    chosen = users_of(study, people, users, sample)
    full = people.rankings[chosen]
    resolved = with_width(KERNELS[kernel], full, width)
    gram = gram_by(row, resolved, full, TOP, N_DRAWS, study.stream("draws", sample, repeat))
    trees = {"squared": tree(gram, True), "plain": tree(gram, False)}
    return {
        name: {label: purities(Z, values[chosen], N_CLUSTERS) for label, values in people.labels.items()}
        for name, Z in trees.items()
    }


def users_of(study: Study, people: People, users: str, sample: int) -> Indices:
    """Return a sample of users: any, or ten from each of the ten largest regions."""
    rng = study.generator("users", users, sample)
    if users == "random":
        return rng.choice(len(people), N_USERS, replace=False)
    regions = np.argsort(-np.bincount(people.labels["region"]), kind="stable")[:10]
    members = [np.flatnonzero(people.labels["region"] == region) for region in regions]
    return np.concatenate([rng.choice(m, N_USERS // 10, replace=len(m) < N_USERS // 10) for m in members])


def with_width(kernel: Kernel, full: Any, width: str) -> Kernel:
    """Return the kernel with its width settled by the full rankings, by one reading of the median heuristic."""
    if "nu" not in kernel.params or kernel.argument is None:
        return kernel
    median = median_distance(kernel.argument, full)
    return kernel.replace(nu={"1/median": 1 / median, "1": 1.0, "median": median}[width])


# ---------------------------------------------------------------------- tables


def one_sample(study: Study, people: People) -> Table:
    """Return Table 1 for one sample of users: repetitions of the draws only, as the paper seems to have it."""

    def measured(row: str, kernel: str) -> Entry:
        found = results(study, people, kernel, row, samples=1, repeats=repeats(study) if row in DRAWN else 1)
        values = MAIN.of(found)
        return spread(values) if row in DRAWN else float(values[0])

    rows = [line for row in ROWS for line in beside(row, measured)]
    return Table("table1", "Tree purity, one sample of 100 users", ("", "by", *KERNELS), tuple(rows), BRACKETS)


BRACKETS = "In brackets the standard deviation of single repetitions. The paper has no number where there is a dash."


def beside(row: str, measured: Any) -> list[tuple[Entry, ...]]:
    """Return the line of the paper and the measured one."""
    ours = (row, "here", *(measured(row, kernel) for kernel in KERNELS))
    if row not in paper_numbers.TABLE_1:
        return [ours]
    return [(row, "paper", *(paper_numbers.TABLE_1[row].get(kernel) for kernel in KERNELS)), ours]


def many_samples(study: Study, people: People) -> Table:
    """Return the same over many samples of users."""
    rows: list[tuple[Entry, ...]] = [
        (row, *(spread(MAIN.of(results(study, people, kernel, row))) for kernel in KERNELS)) for row in ROWS
    ]
    title = f"Tree purity, {samples(study)} samples of 100 users"
    return Table("table1_samples", title, ("", *KERNELS), tuple(rows), "In brackets the standard deviation.")


def readings(study: Study, people: People) -> Table:
    """Return every reading of the protocol: the full kernels, and the estimators for Mallows."""
    rows: list[tuple[Entry, ...]] = [
        (text, *(mean_by(study, people, reading, kernel, FULL) for kernel in KERNELS), *partial(study, people, reading))
        for text, reading in READINGS.items()
    ]
    rows.append(("the paper", *paper_numbers.TABLE_1[FULL].values(), 0.79, 0.77, None))
    columns = ("reading", *(f"{kernel}, full" for kernel in KERNELS), *(f"Mallows, {r}" for r in (*DRAWN, EXACT)))
    note = f"Each line differs from the first only in what it says. Means over {samples(study)} samples of users."
    return Table("table1_readings", "Tree purity by every reading of the protocol", columns, tuple(rows), note)


def partial(study: Study, people: People, reading: Reading) -> list[float]:
    """Return the purity by the estimators and exactly, for Mallows."""
    return [mean_by(study, people, reading, "Mallows", row) for row in (*DRAWN, EXACT)]


def mean_by(study: Study, people: People, reading: Reading, kernel: str, row: str) -> float:
    """Return the mean purity over samples of users by one reading."""
    width = "1/median" if kernel == "Kendall" else reading.width
    found = results(study, people, kernel, row, width=width, users=reading.users)
    return float(reading.of(found).mean())


# ---------------------------------------------------------------------- claims


def claims(study: Study, people: People) -> Table:
    """Return how far from the full and the exact purity each estimator of Mallows is, and how much it varies."""
    rows = tuple((text, *claim(study, people, statistic)) for text, statistic in STATISTICS.items())
    n_samples, n_repeats = crossed(study)
    note = (
        f"Mallows, main reading: {n_samples} samples of users, {n_repeats} repetitions of the draws on each. Ratios "
        "with 95% bootstrap intervals over the samples of users; above 1 speaks for antithetic draws."
    )
    columns = ("", *DRAWN, f"{IID} / {ANTITHETIC}")
    return Table("table1_claims", "Is antithetic closer, and less variable?", columns, rows, note)


def crossed(study: Study) -> tuple[int, int]:
    """Return how many samples of users and repetitions of the draws on each."""
    sizes: tuple[int, int] = study.pick((100, 8), (6, 3))
    return sizes


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


def claim(study: Study, people: People, statistic: Any) -> tuple[float, float, Interval]:
    """Return a statistic of both estimators, and their ratio."""
    values = crossed_purities(study, people)
    iid, antithetic = (float(statistic(values[None], column)[0]) for column in (0, 1))
    seed = study.stream("bootstrap", NAME)
    return iid, antithetic, bootstrap(lambda s: np.asarray(statistic(s, 0) / statistic(s, 1)), values, seed)


def crossed_purities(study: Study, people: People) -> FloatArray:
    """Return purities of shape (n_samples, 4, n_repeats): Monte Carlo, antithetic, full, exact."""
    n_samples, n_repeats = crossed(study)
    by_row = [
        main_purities(study, people, row, n_samples, n_repeats if row in DRAWN else 1)
        for row in (IID, ANTITHETIC, FULL, EXACT)
    ]
    return np.stack([np.broadcast_to(values, (n_samples, n_repeats)) for values in by_row], axis=1)


def findings(study: Study, people: People, closeness: Table) -> list[str]:
    """Return what holds of the paper's claims."""
    to_full, to_exact, varies = (row[-1] for row in closeness.rows)
    everything = [entry for row in readings(study, people).rows[:-1] for entry in row[1:] if isinstance(entry, float)]
    by_region = [
        entry
        for (text, *row), reading in zip(readings(study, people).rows[:-1], READINGS.values(), strict=True)
        for entry in row
        if reading.label.startswith("region") and isinstance(entry, float)
    ]
    baseline = majority(people)
    return [
        (
            f"The paper's purities are 0.72 to 0.83. Here all readings with a region as the label lie between "
            f"{min(by_region):.2f} and {max(by_region):.2f}, and {max(everything):.2f} is the most with east/west, of "
            f"which the larger half alone has {baseline['east_west']:.2f} of the users. (The largest region has "
            f"{baseline['region']:.2f} of them, and a tree that says nothing of regions has purity "
            f"{baseline['chance']:.2f}.) {'No' if max(by_region) < 0.72 else 'Some'} reading with regions reaches the "
            "paper's level."
        ),
        (
            f"Closer to the full result: {verdict(to_full)} (ratio of mean distances {shown(to_full)}). What remains "
            "is the difference between full rankings and top-4 lists, which no estimator can take away."
        ),
        f"Closer to the exact kernel of the same lists: {verdict(to_exact)} (ratio {shown(to_exact)}).",
        f"Less variable: {verdict(varies)} (ratio of standard deviations {shown(varies)}).",
        "The exact row needs no draws, so it has no variance.",
    ]


def verdict(ratio: Entry) -> str:
    """Return whether a ratio above one is established."""
    assert isinstance(ratio, Interval)
    if ratio.low > 1:
        return "holds"
    return "the opposite holds" if ratio.high < 1 else "not shown either way"


def majority(people: People) -> dict[str, float]:
    """Return the shares of the largest classes, and the expected share of one's own region in all."""
    shares = {name: np.bincount(people.labels[name]) / len(people) for name in ("region", "east_west")}
    largest = {name: float(share.max()) for name, share in shares.items()}
    squares = shares["region"] ** 2
    return largest | {"chance": float((squares * shares["region"]).sum() / squares.sum())}


# ---------------------------------------------------------------------- figure


def figure(study: Study, people: People) -> tuple[str, str]:
    """Draw the table."""
    with drawn_as(study, "table1", size=(8, 3.8)) as axes:
        ax = axes[0, 0]
        for shift, row in zip((-0.24, -0.08, 0.08, 0.24), ROWS, strict=True):
            entries = [spread(MAIN.of(results(study, people, name, row))) for name in KERNELS]
            draw_points(ax, entries, shift, row)
        for row, marker in ((FULL, "D"), (IID, "s"), (ANTITHETIC, "^")):
            printed = [paper_numbers.TABLE_1[row].get(name) for name in KERNELS]
            known = [(x, e.mean if isinstance(e, Spread) else e) for x, e in enumerate(printed) if e is not None]
            ax.plot(*zip(*known, strict=True), marker, color=COLOURS["paper"], label=f"paper, {row}", mfc="none")
        ax.set_xticks(range(len(KERNELS)), list(KERNELS))
        ax.set_ylabel("tree purity")
        ax.set_ylim(0.3, 0.9)
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return "table1", f"Tree purity: mean and standard deviation over {samples(study)} samples of users."


def draw_points(ax: Any, entries: list[Spread], shift: float, row: str) -> None:
    """Draw means with bars of a standard deviation."""
    places = np.arange(len(entries)) + shift
    means, bars = [e.mean for e in entries], [e.sd for e in entries]
    ax.errorbar(places, means, bars, fmt="o", color=COLOURS[row], label=row, capsize=2, lw=1.2, ms=4.5)
