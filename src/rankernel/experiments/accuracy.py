"""A table that the paper does not have: error and time of each estimator against the exact kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from rankernel.datasets import uniform
from rankernel.experiments.drawing import COLOURS, drawn_as, has_matplotlib
from rankernel.experiments.estimators import ANTITHETIC, EXACT, IID
from rankernel.experiments.experiment import Study
from rankernel.experiments.outcome import Entry, Outcome, Table
from rankernel.gram.bandwidth import median_width
from rankernel.gram.methods import MonteCarlo
from rankernel.kernels import Exponential, Kernel, Mallows
from rankernel.rankings import Rankings

NAME = "accuracy"
BEST = "best"
ESTIMATORS = (IID, ANTITHETIC, BEST)
N_RANKINGS = 40
KERNELS: dict[str, Kernel] = {
    "Mallows": Mallows("median"),
    "exp. Hamming": Exponential("hamming", "median"),
    "exp. Spearman": Exponential("spearman", "median"),
}


@dataclass(frozen=True)
class Case:
    """Random lists of k among n items, and a kernel with nu in multiples of one over the median distance."""

    kernel: str
    n_items: int
    k: int
    width: float
    unlisted: str = "last"

    @property
    def text(self) -> str:
        """The kind of lists, in words."""
        return f"top-{self.k}" if self.unlisted == "last" else f"{self.k} listed, others free"

    def data(self, study: Study) -> tuple[Kernel, Rankings]:
        """Return the kernel and the rankings."""
        full = uniform(N_RANKINGS, self.n_items, seed=study.generator(NAME, self.n_items, self.k))
        kernel = KERNELS[self.kernel]
        resolved = kernel.replace(nu=self.width * median_width(kernel, full))
        return resolved, full.top(self.k, unlisted=self.unlisted)  # type: ignore[arg-type]


def cases(study: Study) -> list[Case]:
    """Return all cases: widths and lengths for Mallows, then other kernels, then free items."""
    sizes = study.pick(((6, 2), (10, 2), (10, 4), (10, 6), (20, 4), (20, 8), (40, 4)), ((10, 4),))
    widths = study.pick((0.5, 1.0, 4.0), (1.0, 4.0))
    found = [Case("Mallows", n, k, width) for n, k in sizes for width in widths]
    found += [
        Case(name, 10, 4, width)
        for name in ("exp. Hamming", "exp. Spearman")
        for width in study.pick((1.0, 2.0), (1.0,))
    ]
    return found + [Case("Mallows", 8, 3, width, "free") for width in study.pick((1.0, 4.0), (1.0,))]


def draws(study: Study) -> tuple[int, ...]:
    """Return the numbers of draws."""
    numbers: tuple[int, ...] = study.pick((4, 16, 64), (4, 16))
    return numbers


def run(study: Study) -> Outcome:
    """Return error and time of Monte Carlo, antithetic and the best coupling, against the exact kernel."""
    outcome = Outcome(NAME, "New: error and time of each estimator, against the exact kernel", protocol=protocol(study))
    outcome.tables = [errors_table(study), times_table(study)]
    outcome.findings = findings(study)
    if has_matplotlib():
        outcome.figures = [figure(study)]
    return outcome


def protocol(study: Study) -> list[str]:
    """Return what was done."""
    return [
        (
            f"{N_RANKINGS} random lists of k among n items; nu in multiples of 1/median distance of full rankings. "
            "Error: root of the mean squared difference to the exact value, over all pairs of different lists and "
            f"{repeats(study)} repetitions, divided by the root of the mean square of the exact values. Monte Carlo "
            "and antithetic are the paper's estimators. Best: what method='auto' draws with: a coupling made for the "
            "kernel, and the low-degree coordinates of the embedding replaced by their exact means."
        ),
        "Times are of one Gram matrix of these lists, on one machine, not the same twice: they stand in timings.md.",
    ]


def repeats(study: Study) -> int:
    """Return how often each estimate is repeated."""
    return int(study.pick(5, 2))


def estimator(name: str, n_draws: int, seed: int) -> MonteCarlo:
    """Return an estimator by name."""
    if name == BEST:
        return MonteCarlo(n_draws, seed=seed)
    return MonteCarlo(n_draws, "iid" if name == IID else "antithetic", moments=0, seed=seed)


# ---------------------------------------------------------------------- errors


def errors(study: Study, case: Case, n_draws: int) -> dict[str, float]:
    """Return the relative root-mean-square error of each estimator."""

    def compute() -> dict[str, float]:
        kernel, lists = case.data(study)
        apart = ~np.eye(len(lists), dtype=bool)
        exact = kernel.gram(lists, method="exact")[apart]
        scale = np.sqrt((exact**2).mean())
        return {
            name: float(
                np.sqrt(np.mean([squared(kernel, lists, e, exact) for e in repeated(study, name, n_draws)])) / scale
            )
            for name in ESTIMATORS
        }

    found: dict[str, float] = study.cell(
        NAME,
        compute,
        kernel=case.kernel,
        items=case.n_items,
        k=case.k,
        unlisted=case.unlisted,
        width=case.width,
        draws=n_draws,
        repeats=repeats(study),
    )
    return found


def repeated(study: Study, name: str, n_draws: int) -> list[MonteCarlo]:
    """Return an estimator with several seeds."""
    return [estimator(name, n_draws, study.stream(NAME, "draws", repeat)) for repeat in range(repeats(study))]


def squared(kernel: Kernel, lists: Rankings, method: MonteCarlo, exact: Any) -> float:
    """Return the mean squared error of one estimate."""
    apart = ~np.eye(len(lists), dtype=bool)
    return float(((kernel.gram(lists, method=method)[apart] - exact) ** 2).mean())


def errors_table(study: Study) -> Table:
    """Return relative errors by case and number of draws."""
    rows: list[tuple[Entry, ...]] = []
    for case in cases(study):
        for n_draws in draws(study):
            found = [errors(study, case, n_draws)[name] for name in ESTIMATORS]
            gains = (found[0] / other for other in found[1:])
            rows.append((case.kernel, case.n_items, case.text, f"{case.width:g}", n_draws, *found, *gains))
    columns = ("kernel", "n", "lists", "nu × median", "draws", *ESTIMATORS, "gain of antithetic", "gain of best")
    note = "Gain: the error of Monte Carlo over that of the other; a gain of g is worth g² as many draws."
    return Table("accuracy", "Relative root-mean-square error", columns, tuple(rows), note)


# ---------------------------------------------------------------------- times


def seconds(study: Study, case: Case, name: str, n_draws: int) -> float:
    """Return how long one Gram matrix takes: the median of three, after one that compiles."""
    key = f"{NAME} gram {case} {name} {n_draws if name != EXACT else ''}"
    if key not in study.timings:
        kernel, lists = case.data(study)
        method: Any = "exact" if name == EXACT else estimator(name, n_draws, 0)
        study.time(key, timed(lambda: kernel.gram(lists, method=method)))
    return study.timings[key]


def timed(call: Callable[[], Any]) -> float:
    """Return the median time of three calls, after one to warm up."""
    call()
    times = []
    for _ in range(3):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return median(times)


def times_table(study: Study) -> Table:
    """Return times, and what each estimator needs for the same error as Monte Carlo."""
    n_draws = 16
    rows: list[tuple[Entry, ...]] = []
    for case in cases(study):
        error = errors(study, case, n_draws)
        time = {name: seconds(study, case, name, n_draws) for name in (EXACT, *ESTIMATORS)}
        worth = [error[IID] ** 2 * time[IID] / (error[name] ** 2 * time[name]) for name in (ANTITHETIC, BEST)]
        milliseconds = (1000 * time[name] for name in (EXACT, *ESTIMATORS))
        rows.append((case.kernel, case.n_items, case.text, f"{case.width:g}", *milliseconds, *worth))
    names = (f"{name}, ms" for name in (EXACT, *ESTIMATORS))
    columns = ("kernel", "n", "lists", "nu × median", *names, "worth of antithetic", "worth of best")
    note = "Worth: squared error × time of Monte Carlo over that of the other; above 1 the other is the better buy."
    title = f"Time of one Gram matrix of {N_RANKINGS} lists, {n_draws} draws"
    return Table("accuracy_times", title, columns, tuple(rows), note, timed=True)


def findings(study: Study) -> list[str]:
    """Return when each is worth it, by errors alone: times are not the same twice."""
    lines = []
    for column, name in ((8, ANTITHETIC), (9, BEST)):
        losing = [row for row in errors_table(study).rows if float(row[column]) < 1]  # type: ignore[arg-type]
        gains = [float(row[column]) for row in errors_table(study).rows]  # type: ignore[arg-type]
        where = sorted({f"{row[0]}, n = {row[1]}, {row[2]}, nu = {row[3]}/median" for row in losing})
        lines.append(
            f"{name.capitalize()}: the error is smaller by a factor of {min(gains):.2f} to {max(gains):.0f}; "
            + (f"it is larger than that of plain Monte Carlo for {'; '.join(where)}." if where else "never larger.")
        )
    return [*lines, *gains_by_width(study), "A closed form has no error at all; timings.md says what it costs."]


def gains_by_width(study: Study) -> list[str]:
    """Return the gains for Mallows and top-k lists at each width."""
    lines = []
    for width in dict.fromkeys(case.width for case in cases(study)):
        found = [c for c in cases(study) if (c.kernel, c.unlisted, c.width) == ("Mallows", "last", width)]
        by_name: dict[str, list[float]] = {name: [] for name in ESTIMATORS[1:]}
        for case in found:
            for n_draws in draws(study):
                error = errors(study, case, n_draws)
                for name, gains in by_name.items():
                    gains.append(error[IID] / error[name])
        if found:
            text = ", ".join(f"{name} {min(gains):.1f} to {max(gains):.0f}" for name, gains in by_name.items())
            lines.append(f"Gain over Monte Carlo for Mallows, top-k lists, nu = {width:g}/median: {text}.")
    return lines


# ---------------------------------------------------------------------- figure


def figure(study: Study) -> tuple[str, str]:
    """Draw errors against draws for four cases."""
    chosen = shown_cases(study)
    lowest = min(min(errors(study, case, n_draws).values()) for case in chosen for n_draws in draws(study))
    with drawn_as(study, "accuracy", 1, len(chosen), size=(3 * len(chosen), 3.4)) as axes:
        for ax, case in zip(axes[0], chosen, strict=True):
            for name, marker in zip(ESTIMATORS, "os^", strict=True):
                values = [errors(study, case, n_draws)[name] for n_draws in draws(study)]
                ax.plot(draws(study), values, marker=marker, color=COLOURS[name], label=name)
            ax.set(xscale="log", yscale="log", xlabel="draws of each ranking")
            ax.set_xticks(draws(study), [str(n) for n in draws(study)])
            ax.minorticks_off()
            ax.set_title(f"{case.kernel}\nn = {case.n_items}, {case.text}\nnu = {case.width:g}/median", fontsize=9)
            ax.set_ylim(lowest / 2, 1)
        axes[0, 0].set_ylabel("relative error")
        axes[0, 0].legend(fontsize=9)
    return "accuracy", "Relative root-mean-square error against the number of draws."


def shown_cases(study: Study) -> list[Case]:
    """Return the cases of the figure."""
    wanted = [
        Case("Mallows", 10, 4, 1.0),
        Case("Mallows", 10, 4, 4.0),
        Case("exp. Hamming", 10, 4, 1.0),
        Case("Mallows", 8, 3, 1.0, "free"),
    ]
    return [case for case in wanted if case in cases(study)]
