"""The theorem's claim that antithetic draws reduce the variance: exact and measured ratios of variances."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from rankernel import Mallows
from rankernel._utils import FloatArray, RankArray
from rankernel.completions.draws import draw
from rankernel.datasets import uniform
from rankernel.gram.exact.formulas import Overlap
from reproduction.results import COLOURS, Entry, Interval, Table, ratio_of_variances, saved_axes
from reproduction.study import Experiment, Study
from reproduction.variance import mallows_variance

N_ITEMS, N_DRAWS = 10, 16
TOPS = (0, 2, 4, 6)
MEDIAN = 22.0  # of the Kendall distance between uniform full rankings of ten items
FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # nu in units of 1/median
MEASURED_FACTORS = (1.0, 4.0, 16.0)
N_PAIRS = 50


class VarianceFigure(Experiment):
    """Exact and measured ratios of the variances of the two estimators of the Mallows kernel."""

    name = "variance"
    title = "The theorem: is the variance lower with antithetic draws?"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.n_replicates = study.pick(1000, 100)

    def protocol(self) -> list[str]:
        """Return the protocol."""
        return [
            (
                f"Mallows kernel, n = {N_ITEMS}, {N_DRAWS} draws of each ranking, nu in multiples of 1/{MEDIAN:.0f} "
                f"(the median Kendall distance of uniform rankings is {MEDIAN:.0f}). Ratio: variance of Monte Carlo "
                "over variance of antithetic; above 1 favours antithetic. Exact variances by the closed form for "
                f"{N_PAIRS} random pairs of top-k lists, and for a list with itself, where the same items are unlisted "
                "in both."
            ),
            f"Measured: {self.n_replicates} independent estimates of one pair; 95% bootstrap intervals.",
        ]

    def tables(self) -> list[Table]:
        """Return exact and measured ratios."""
        return [self.exact_ratios(), self.measured_ratios()]

    def lists(self, k: int) -> RankArray:
        """Return random top-k lists, two for each pair; with k = 0 all items are tied."""
        full = uniform(2 * N_PAIRS, N_ITEMS, rng=self.study.generator("lists", k))
        return full.top(k).ranks

    # ------------------------------------------------------------------ exact

    def ratios(self, k: int, factor: float) -> tuple[FloatArray, float]:
        """Return the exact ratios of random pairs of lists, and that of a list with itself."""

        def compute() -> list[Any]:
            ranks, nu = self.lists(k), factor / MEDIAN
            pairs = zip(ranks[::2], ranks[1::2], strict=True)
            return [[exact_ratio(a, b, nu) for a, b in pairs], exact_ratio(ranks[0], ranks[0], nu)]

        random, same = self.study.cell(self.name, compute, k=k, exact=N_PAIRS, factor=factor, draws=N_DRAWS)
        return np.array(random), float(same)

    def exact_ratios(self) -> Table:
        """Return exact ratios by k and nu."""
        rows: list[tuple[Entry, ...]] = []
        for k in TOPS:
            ratios = [self.ratios(k, factor) for factor in FACTORS]
            if k:
                rows.append((k, "random lists, median", *(float(np.median(random)) for random, _ in ratios)))
                rows.append((k, "random lists, minimum", *(float(random.min()) for random, _ in ratios)))
            rows.append((k, "same list" if k else "all items tied", *(same for _, same in ratios)))
        columns = ("k", "pairs", *(f"nu = {factor:g}/{MEDIAN:.0f}" for factor in FACTORS))
        return Table("variance_exact", "Exact ratio of variances, Monte Carlo over antithetic", columns, rows)

    # ------------------------------------------------------------------ measured

    def measured_ratios(self) -> Table:
        """Return measured ratios with intervals beside the exact ones."""
        rows: list[tuple[Entry, ...]] = []
        for k in TOPS:
            for pair in ("random", "same") if k else ("same",):
                for factor in MEASURED_FACTORS:
                    exact, measured = self.both(k, pair, factor)
                    lower = "yes" if measured.low > 1 else "no, higher" if measured.high < 1 else "not significant"
                    rows.append((k, pair, f"{factor:g}/{MEDIAN:.0f}", exact, measured, lower))
        columns = ("k", "lists", "nu", "exact ratio", "measured ratio", "antithetic has the lower variance")
        return Table("variance_measured", "Measured ratio of variances with 95% intervals", columns, rows)

    def both(self, k: int, pair: str, factor: float) -> tuple[float, Interval]:
        """Return the exact and the measured ratio of one pair."""
        left, right = self.pair(k, pair)
        nu = factor / MEDIAN

        def compute() -> dict[str, Any]:
            key = (k, pair, factor)
            values = [self.estimates(left, right, nu, coupling, key) for coupling in ("iid", "antithetic")]
            measured = ratio_of_variances(np.stack(values, axis=1), self.study.stream("bootstrap", self.name, *key))
            return {"exact": exact_ratio(left, right, nu), "measured": asdict(measured)}

        sizes = {"replicates": self.n_replicates, "draws": N_DRAWS}
        values = self.study.cell(self.name, compute, k=k, lists=pair, factor=factor, **sizes)
        return values["exact"], Interval(**values["measured"])

    def pair(self, k: int, which: str) -> tuple[Any, Any]:
        """Return two random lists, or one list twice."""
        ranks = self.lists(k)
        return ranks[0], ranks[0] if which == "same" else ranks[1]

    def estimates(self, left: Any, right: Any, nu: float, coupling: str, key: tuple[Any, ...]) -> Any:
        """Return independent estimates of the kernel of one pair."""
        rows = np.arange(self.n_replicates)
        sides = []
        for side, ranks in (("left", left), ("right", right)):
            seed, repeated = self.study.stream(self.name, side, *key), np.repeat(ranks[None], len(rows), axis=0)
            sides.append(draw(repeated, N_DRAWS, coupling=coupling, rng=seed, rows=rows).ranks.astype(np.int32))
        kernel = Mallows(nu)
        return np.array([kernel.matrix(a, b).mean() for a, b in zip(*sides, strict=True)])

    # ------------------------------------------------------------------ findings

    def findings(self) -> list[str]:
        """Return the findings about the theorem."""
        measured = [(exact, interval) for *_, exact, interval, _ in self.measured_ratios().rows]
        inside = sum(i.low <= exact <= i.high for exact, i in measured)  # type: ignore[union-attr, operator]
        smallest = min(self.ratios(k, factor)[0].min() for k in TOPS if k for factor in FACTORS)
        first_below = {k: next((f for f in FACTORS if self.ratios(k, f)[1] < 1), None) for k in TOPS}
        fails = [f"k = {k} from nu = {first:g}/{MEDIAN:.0f}" for k, first in first_below.items() if first]
        return [
            (f"The closed form agrees with the measurement: it is within {inside} of {len(measured)} 95% intervals."),
            (
                f"At the median heuristic the variance is lower by factors of {self.ratios(0, 1.0)[1]:.0f} (all items "
                f"tied) to {np.median(self.ratios(6, 1.0)[0]):.0f} (top-6)."
            ),
            (
                "It is *higher* if the same items are unlisted in both rankings and nu is large: "
                f"{'; '.join(fails)}. In the limit the kernel is the indicator of equal draws; two antithetic pairs "
                "agree in both draws or in none, so there are half as many independent comparisons, and the variance "
                "is nearly twice as large."
            ),
            f"Over all random pairs and values of nu, the smallest ratio is {smallest:.2f}; {self.pairs_below_one()}.",
        ]

    def pairs_below_one(self) -> str:
        """Return the number of random pairs with a ratio below one for some nu."""
        n_below = n_same = 0
        for k in TOPS[1:]:
            ranks = self.lists(k)
            below = np.any([self.ratios(k, factor)[0] < 1 for factor in FACTORS], axis=0)
            same = ((ranks[::2] == k) == (ranks[1::2] == k)).all(axis=1)
            n_below, n_same = n_below + int(below.sum()), n_same + int((below & same).sum())
        return f"it is below 1 for some nu in {n_below} pairs, {n_same} of them with the same unlisted items"

    # ------------------------------------------------------------------ figure

    def figures(self) -> list[tuple[str, str]]:
        """Draw exact and measured ratios against nu."""
        titles = {"random": "two random lists", "same": "the same list twice"}
        with saved_axes(self.study, "variance", 1, 2, size=(9.5, 4)) as axes:
            for ax, (pair, title) in zip(axes[0], titles.items(), strict=True):
                for k in TOPS if pair == "same" else TOPS[1:]:
                    self.draw_curve(ax, k, pair)
                ax.axhspan(0.3, 1, color="#f6e3d8", zorder=0)
                ax.axhline(1, color="#555555", lw=1)
                ax.text(0.26, 0.62, "Monte Carlo is better", fontsize=9, color="#8a4b20", va="center")
                ax.set(xscale="log", yscale="log", title=title, xlabel="nu × median distance", ylim=(0.3, 1e4))
            axes[0, 0].set_ylabel("Var(Monte Carlo) / Var(antithetic)")
            axes[0, 1].legend(title="top-k, n = 10", fontsize=9)
        caption = (
            "Exact ratio of variances (lines) and measured ratios with 95% intervals (points). If the same items are "
            "unlisted in both rankings, antithetic draws have the higher variance for large nu, up to twice as high."
        )
        return [("variance", caption)]

    def draw_curve(self, ax: Any, k: int, pair: str) -> None:
        """Draw the exact ratio of one pair as a line and the measured ones with intervals."""
        colours = {0: "#000000", 2: COLOURS["antithetic"], 4: COLOURS["best"], 6: COLOURS["Monte Carlo"]}
        grid = np.geomspace(0.25, 64, 33)
        exact = [exact_ratio(*self.pair(k, pair), factor / MEDIAN) for factor in grid]
        ax.plot(grid, exact, color=colours[k], label=f"k = {k}", lw=1.6)
        for factor in MEASURED_FACTORS:
            _, ratio = self.both(k, pair, factor)
            errors = [[ratio.value - ratio.low], [ratio.high - ratio.value]]
            ax.errorbar(factor, ratio.value, errors, fmt="o", ms=4, color=colours[k], capsize=3)


def exact_ratio(left: Any, right: Any, nu: float) -> float:
    """Return the ratio of the exact variances of one pair."""
    overlap = Overlap.of(left, right)
    iid, antithetic = (mallows_variance(overlap, nu, N_DRAWS, N_DRAWS, c) for c in ("iid", "antithetic"))
    return iid / antithetic
