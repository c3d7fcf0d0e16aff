"""Error and time of each Monte Carlo estimator against the exact kernel: what the paper does not have.

``python -m benchmarks.accuracy [-o FILE] [--figure FILE]``. Random lists of k among n items; nu in multiples of one
over the median distance of full rankings. Error: root of the mean squared difference to the exact value, over all pairs
of different lists and some repetitions, divided by the root of the mean square of the exact values. Monte Carlo and
antithetic are the paper's estimators. Best: what "auto" draws with, a coupling made for the kernel and the low-degree
coordinates of the embedding replaced by their exact means. A gain in error of g is worth g² as many draws; the worth
weighs that with the time of a Gram matrix, and above 1 the estimator is a better buy than plain Monte Carlo.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rankernel as rk
from benchmarks.clock import medians, save
from rankernel.gram.bandwidth import median_rate

N_RANKINGS, N_REPEATS = 40, 5
N_DRAWS = (4, 16, 64)
ESTIMATORS: dict[str, dict[str, Any]] = {
    "Monte Carlo": {"coupling": "iid", "control_variates": 0},
    "antithetic": {"coupling": "antithetic", "control_variates": 0},
    "best": {},
}
COLOURS = {"Monte Carlo": "#d55e00", "antithetic": "#0072b2", "best": "#009e73"}
KERNELS = {
    "Mallows": rk.Mallows("median"),
    "exp. Hamming": rk.Exponential("hamming", "median"),
    "exp. Spearman": rk.Exponential("spearman", "median"),
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
    def lists(self) -> str:
        """The kind of lists, in words."""
        return f"top-{self.k}" if self.unlisted == "last" else f"{self.k} listed, others free"

    def data(self) -> tuple[rk.Kernel, rk.Rankings]:
        """Return the kernel and the rankings."""
        full = rk.datasets.uniform(N_RANKINGS, self.n_items, rng=self.n_items + self.k)
        kernel = KERNELS[self.kernel]
        return kernel.replace(nu=self.width * median_rate(kernel, full)), full.top(self.k, unlisted=self.unlisted)


SIZES = ((6, 2), (10, 2), (10, 4), (10, 6), (20, 4), (20, 8), (40, 4))
CASES = (
    *(Case("Mallows", n, k, width) for n, k in SIZES for width in (0.5, 1.0, 4.0)),
    *(Case(name, 10, 4, width) for name in ("exp. Hamming", "exp. Spearman") for width in (1.0, 2.0)),
    *(Case("Mallows", 8, 3, width, "free") for width in (1.0, 4.0)),
)
DRAWN_CASES = (
    Case("Mallows", 10, 4, 1.0),
    Case("Mallows", 10, 4, 4.0),
    Case("exp. Hamming", 10, 4, 1.0),
    Case("Mallows", 8, 3, 1.0, "free"),
)


def errors(case: Case, n_draws: int, n_repeats: int = N_REPEATS) -> dict[str, float]:
    """Return the relative root-mean-square error of each estimator."""
    kernel, lists = case.data()
    apart = ~np.eye(len(lists), dtype=bool)
    exact = kernel.gram(lists, method="exact")[apart]

    def squared(how: dict[str, Any], seed: int) -> float:
        found = kernel.gram(lists, method=rk.MonteCarlo(n_draws, rng=seed, **how))[apart]
        return float(((found - exact) ** 2).mean() / (exact**2).mean())

    return {
        name: float(np.sqrt(np.mean([squared(how, seed) for seed in range(n_repeats)])))
        for name, how in ESTIMATORS.items()
    }


def seconds(case: Case, n_draws: int, n_repeats: int = N_REPEATS) -> dict[str, float]:
    """Return how long one Gram matrix takes, exactly and by each estimator."""
    kernel, lists = case.data()
    methods = {"exact": "exact", **{name: rk.MonteCarlo(n_draws, **how) for name, how in ESTIMATORS.items()}}
    calls = [lambda method=method: kernel.gram(lists, method=method) for method in methods.values()]
    return dict(zip(methods, medians(*calls, repeats=n_repeats), strict=True))


def rows(
    cases: tuple[Case, ...] = CASES, draws: tuple[int, ...] = N_DRAWS, n_repeats: int = N_REPEATS
) -> Iterator[Any]:
    """Measure case by case."""
    for case in cases:
        for n_draws in draws:
            error, time = errors(case, n_draws, n_repeats), seconds(case, n_draws, n_repeats)
            plain = error["Monte Carlo"], time["Monte Carlo"]
            row = {"kernel": case.kernel, "n": case.n_items, "lists": case.lists, "nu times median": case.width}
            row |= {"draws": n_draws} | {f"error, {name}": value for name, value in error.items()}
            row |= {f"ms, {name}": 1000 * value for name, value in time.items()}
            for name in ("antithetic", "best"):
                gain = plain[0] / error[name]
                row |= {f"gain, {name}": gain, f"worth, {name}": gain**2 * plain[1] / time[name]}
            yield row


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """Draw errors against draws for four cases."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "rankernel", "svg.fonttype": "none"})
    figure, axes = plt.subplots(1, len(DRAWN_CASES), figsize=(12, 3.4), sharey=True, layout="constrained")
    for ax, case in zip(axes, DRAWN_CASES, strict=True):
        where = (case.kernel, case.n_items, case.lists, case.width)
        its = [row for row in found if (row["kernel"], row["n"], row["lists"], row["nu times median"]) == where]
        for (name, colour), marker in zip(COLOURS.items(), "os^", strict=True):
            values = [row[f"error, {name}"] for row in its]
            ax.loglog([row["draws"] for row in its], values, marker=marker, color=colour, label=name)
        ax.set_xticks(N_DRAWS, [str(n) for n in N_DRAWS], minor=False)
        ax.set_title(f"{case.kernel}\nn = {case.n_items}, {case.lists}\nnu = {case.width:g}/median", fontsize=9)
        ax.set_xlabel("draws of each ranking")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("relative error")
    axes[0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="save the numbers here, as JSON")
    parser.add_argument("--figure", type=Path, help="a file for the picture")
    options = parser.parse_args()
    found = []
    for row in rows():
        found.append(row)
        print(
            f"{row['kernel']:14} n={row['n']:<3} {row['lists']:22} nu={row['nu times median']:g}/median "
            f"draws={row['draws']:<3} gain: antithetic {row['gain, antithetic']:.3g}, best {row['gain, best']:.3g}; "
            f"worth: {row['worth, antithetic']:.3g}, {row['worth, best']:.3g}",
            flush=True,
        )
    if options.output:
        save(options.output, found, setting={"rankings": N_RANKINGS, "repeats": N_REPEATS})
    if options.figure:
        draw(found, options.figure)


if __name__ == "__main__":
    main()
