"""The paper's figures: Cayley graphs, the embedding of a partial ranking, and herding."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel import KernelMap, Mallows, Rankings, distances, herd
from rankernel._utils import FloatArray, Mask, RankArray
from rankernel.completions.draws import draw
from rankernel.completions.linear_extensions import enumerate_completions
from reproduction.herding import joint_herd
from reproduction.results import COLOURS, Entry, Table, saved_axes
from reproduction.study import ANTITHETIC, IID, Experiment, Study

COUPLINGS = {IID: "iid", ANTITHETIC: "antithetic"}


class Figures(Experiment):
    """The Cayley graphs, the embedding, and the comparison of greedy with joint herding."""

    name = "figures"
    title = "The paper's figures"

    def protocol(self) -> list[str]:
        """Return the protocol."""
        herding = f"Mallows kernel with nu = {HERDING_KERNEL.nu}, all of three (hexagon) or four items tied"
        return [f"The embedding is a kernel principal component analysis, not a sketch. Herding: {herding}."]

    def tables(self) -> list[Table]:
        """Return the numbers behind the curves of herding."""
        curves = herding_curves(self.study)
        numbers = map(str, range(1, len(curves["joint"]) + 1))
        rows: list[tuple[Entry, ...]] = [(name, *curves[name]) for name in (IID, ANTITHETIC, "greedy", "joint")]
        title = "Distance to the mean embedding by the number of completions"
        return [Table("herding", title, ("", *numbers), rows)]

    def figures(self) -> list[tuple[str, str]]:
        """Draw all figures."""
        return [draw_cayley_graphs(self.study), draw_embedding(self.study), draw_herding(self.study)]

    def findings(self) -> list[str]:
        """Return numbers that describe the figures."""
        curves, points = herding_curves(self.study), embedding(self.study)
        error = float(np.abs(points["completions"].mean(axis=0) - points["mean"][0]).max())
        gaps = {row: float(np.linalg.norm(points[row] - points["mean"], axis=1).mean()) for row in COUPLINGS}
        same = np.isclose(curves["greedy"][1], curves["joint"][1])
        return [
            (
                "The embedding of the partial ranking is the mean of those of its completions "
                f"({'up to rounding' if error < 1e-10 else f'with an error of {error:.1e}'})."
            ),
            (
                f"The mean distance from it in this plane is {gaps[IID]:.3f} for the mean of two independent draws and "
                f"{gaps[ANTITHETIC]:.3f} for an antithetic pair."
            ),
            (
                f"With two completions greedy and joint herding {'agree' if same else 'do not agree'}, as the paper "
                f"proves; with three the distances are {curves['greedy'][2]:.3f} (greedy) and {curves['joint'][2]:.3f} "
                "(joint), as it states."
            ),
        ]


def all_rankings(n_items: int) -> RankArray:
    """Return all full rankings, in the lexicographic order of their items."""
    return np.argsort(np.array(list(permutations(range(n_items)))), axis=1).astype(np.int32)


def item_order(ranks: Any) -> str:
    """Return the items of a full ranking, best first: "2314"."""
    return "".join(str(item + 1) for item in np.argsort(ranks))


# ---------------------------------------------------------------------- Cayley graphs

SHADES = ("#440154", "#443983", "#31688e", "#21918c", "#35b779", "#90d743", "#fde725")
N_DARK = 4  # shades that need white text
N_SWEEPS = 24


def draw_cayley_graphs(study: Study) -> tuple[str, str]:
    """Draw the rankings of four items as graphs, by distance from the identity."""
    ranks = all_rankings(4)
    with saved_axes(study, "cayley_graphs", 1, 2, size=(11, 6)) as axes:
        for ax, distance, name in zip(axes[0], (distances.kendall, distances.cayley), ("adjacent", "all"), strict=True):
            draw_graph(ax, ranks, np.asarray(distance.between(ranks, ranks)))
            ax.set_title(f"{name} transpositions: {distance.name.capitalize()} distance")
    caption = (
        "The 24 rankings of four items. Edges join rankings that differ by one transposition, of adjacent items (left) "
        "or of any two items (right). Height and colour show the distance from 1234, the length of the shortest path."
    )
    return "cayley_graphs", caption


def draw_graph(ax: Any, ranks: RankArray, d: NDArray[Any]) -> None:
    """Draw a graph in layers."""
    level = d[0].astype(int)
    x = layer_positions(level, d == 1)
    for a, b in np.argwhere(np.triu(d == 1)):
        ax.plot(x[[a, b]], level[[a, b]], color="#b0b0b0", lw=0.9, zorder=1)
    step = (len(SHADES) - 1) // level.max()
    for a, row in enumerate(ranks):
        shade = level[a] * step
        box = {"boxstyle": "round,pad=0.28", "fc": SHADES[shade], "ec": "white", "lw": 1}
        text = {"ha": "center", "va": "center", "fontsize": 8, "color": "white" if shade < N_DARK else "black"}
        ax.text(x[a], level[a], item_order(row), bbox=box, **text)
    ax.set(xlim=(x.min() - 0.6, x.max() + 0.6), ylim=(level.max() + 0.5, -0.5), ylabel="distance from 1234", xticks=[])
    ax.set_yticks(range(level.max() + 1))
    ax.spines["bottom"].set_visible(False)
    ax.grid(visible=False)


def layer_positions(level: NDArray[Any], joined: Mask) -> FloatArray:
    """Return horizontal positions with few crossings, by sweeps that sort each layer by the mean of its neighbours."""
    x = np.zeros(len(level))
    for layer in range(level.max() + 1):
        space_evenly(x, np.flatnonzero(level == layer))
    best = x.copy()
    for sweep in range(N_SWEEPS):
        layers = range(level.max() + 1) if sweep % 2 else range(level.max(), -1, -1)
        for layer in layers:
            members = np.flatnonzero(level == layer)
            neighbours = joined & (level == layer + (-1 if sweep % 2 else 1))
            means = np.array([x[neighbours[a]].mean() if neighbours[a].any() else x[a] for a in members])
            space_evenly(x, members[np.argsort(means, kind="stable")])
        if n_crossings(x, level, joined) < n_crossings(best, level, joined):
            best = x.copy()
    return best


def n_crossings(x: FloatArray, level: NDArray[Any], joined: Mask) -> int:
    """Return the number of crossing edges."""
    upper, lower = np.nonzero(joined & (level[:, None] < level))
    a, b = x[upper], x[lower]
    crossed = ((a[:, None] < a) & (b[:, None] > b)) & (level[upper][:, None] == level[upper])
    return int(crossed.sum())


def space_evenly(x: FloatArray, members: NDArray[Any]) -> None:
    """Set the positions of a layer, evenly spaced around 0, with wider gaps if there are few members."""
    gap = max(1.0, 1.6 - 0.06 * len(members))
    x[members] = gap * (np.arange(len(members)) - (len(members) - 1) / 2)


# ---------------------------------------------------------------------- embedding

PARTIAL = np.array([[0, 1, 1, 1]], dtype=np.int32)  # item 1 first, the others tied
EMBEDDING_KERNEL = Mallows(0.3)
N_DRAWS, N_ESTIMATES = 2, 60


def embedding(study: Study) -> dict[str, FloatArray]:
    """Return points of the map: all rankings, the completions, their mean embedding, and estimates of it."""
    rankings, completions = Rankings(all_rankings(4)), enumerate_completions(PARTIAL[0]).astype(np.int32)
    kernel_map = KernelMap(2, kernel=EMBEDDING_KERNEL).fit(rankings)

    def estimates(coupling: str) -> FloatArray:
        repeated, rows = np.repeat(PARTIAL, N_ESTIMATES, axis=0), np.arange(N_ESTIMATES)
        drawn = draw(repeated, N_DRAWS, coupling=coupling, rng=study.stream("embedding"), rows=rows)
        points = kernel_map.transform(Rankings(drawn.ranks.reshape(-1, 4).astype(np.int32)))
        return np.asarray(points.reshape(N_ESTIMATES, N_DRAWS, 2).mean(axis=1))  # the map is linear

    return {
        "all": kernel_map.transform(rankings),
        "completions": kernel_map.transform(Rankings(completions)),
        "mean": kernel_map.transform(Rankings(PARTIAL)),
        **{row: estimates(coupling) for row, coupling in COUPLINGS.items()},
    }


def draw_embedding(study: Study) -> tuple[str, str]:
    """Draw the map."""
    points = embedding(study)
    completions = enumerate_completions(PARTIAL[0])
    with saved_axes(study, "embedding", 1, 2, size=(10, 6)) as axes:
        for ax, row in zip(axes[0], COUPLINGS, strict=True):
            ax.plot(*points["all"].T, "o", color="#d0d0d0", ms=5, label="all 24 rankings of four items")
            label = "completions of R: 1 > {2, 3, 4}"
            ax.plot(*points["completions"].T, "o", color=COLOURS["other"], ms=9, label=label)
            for point, ranks in zip(points["completions"], completions, strict=True):
                offset = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center", "fontsize": 8}
                ax.annotate(item_order(ranks), point, **offset)
            ax.plot(*points["mean"].T, "*", mfc="#ffe9b0", mec="black", ms=20, label="mean embedding of R")
            ax.plot(*points[row].T, "x", color=COLOURS[row], ms=6, mew=1.4, label=f"{row}, {N_DRAWS} draws", zorder=5)
            ax.set(title=row, xlabel="first kernel principal component")
            ax.set_aspect("equal", adjustable="datalim")
        axes[0, 0].set_ylabel("second")
        handles = [*axes[0, 0].get_lines(), axes[0, 1].get_lines()[-1]]
        axes[0, 0].figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    caption = (
        f"Kernel principal components of all rankings of four items (Mallows, nu = {EMBEDDING_KERNEL.nu}). The "
        f"embedding of a partial ranking is the mean of its completions; {N_ESTIMATES} estimates of it, each the mean "
        f"of {N_DRAWS} draws, independent (left) or antithetic (right)."
    )
    return "embedding", caption


# ---------------------------------------------------------------------- herding

HERDING_KERNEL = Mallows(0.5)
HEXAGON, FOUR_ITEMS = (0, 0, 0), (0, 0, 0, 0)  # all items tied
N_COMPLETIONS, N_RANDOM = 6, 200


def discrepancy(chosen: Any) -> float:
    """Return the distance between the mean embeddings of chosen full rankings and of all full rankings."""
    matrix, full = HERDING_KERNEL.matrix, all_rankings(np.shape(chosen)[1])
    square = matrix(chosen, chosen).mean() - 2 * matrix(chosen, full).mean() + matrix(full, full).mean()
    return float(np.sqrt(max(square, 0.0)))


def herding_curves(study: Study, n_random: int = N_RANDOM) -> dict[str, list[float]]:
    """Return the discrepancy of 1, 2, ... completions: greedy, joint, and the mean over random ones."""
    n_most = study.pick(N_COMPLETIONS, 4)

    def random_discrepancy(n_draws: int, coupling: str) -> float:
        rows, seed = np.zeros((n_random, 4), dtype=np.int32), study.stream("herding", n_draws)
        drawn = draw(rows, n_draws, coupling=coupling, rng=seed, rows=np.arange(n_random))
        return float(np.mean([discrepancy(each.astype(np.int32)) for each in drawn.ranks]))

    def compute() -> dict[str, list[float]]:
        numbers = range(1, n_most + 1)
        seed = study.stream("herd")
        return {
            "greedy": [discrepancy(herd(FOUR_ITEMS, HERDING_KERNEL, m, rng=seed).ranks) for m in numbers],
            "joint": [discrepancy(joint_herd(FOUR_ITEMS, HERDING_KERNEL, m).ranks) for m in numbers],
            **{row: [random_discrepancy(m, coupling) for m in numbers] for row, coupling in COUPLINGS.items()},
        }

    curves: dict[str, list[float]] = study.cell("figures", compute, figure="herding", most=n_most, random=n_random)
    return curves


def draw_herding(study: Study) -> tuple[str, str]:
    """Draw two hexagons, and the discrepancies for four items."""
    greedy = herd(HEXAGON, HERDING_KERNEL, 3, rng=study.stream("herd")).ranks
    joint, curves = joint_herd(HEXAGON, HERDING_KERNEL, 3).ranks, herding_curves(study)
    styles = {IID: (COLOURS[IID], "o"), ANTITHETIC: (COLOURS[ANTITHETIC], "s")}
    styles |= {"greedy": (COLOURS["other"], "^"), "joint": (COLOURS["best"], "D")}
    with saved_axes(study, "herding", 1, 3, size=(12, 4.2)) as axes:
        draw_hexagon(axes[0, 0], greedy, "greedy", numbered=True)
        draw_hexagon(axes[0, 1], joint, "joint", numbered=False)
        ax = axes[0, 2]
        for name, (colour, marker) in styles.items():
            label = f"{name} {'draws' if name in COUPLINGS else 'herding'}"
            ax.plot(range(1, len(curves[name]) + 1), curves[name], marker=marker, color=colour, label=label, ms=5)
        ax.set(title="four items", xlabel="completions", ylabel="distance to the mean embedding", ylim=(0, None))
        ax.set_xticks(range(1, len(curves["joint"]) + 1))
        ax.legend(fontsize=9)
    caption = (
        "Three completions of a ranking with all of three items tied: greedy herding selects an antithetic pair and "
        "then a neighbour of one of them; selected jointly, the three are evenly spaced and closer to the mean "
        "embedding. Right: four items; values of random draws are means over many replicates."
    )
    return "herding", caption


def draw_hexagon(ax: Any, chosen: RankArray, title: str, numbered: bool) -> None:
    """Draw the six rankings of three items in a ring of adjacent transpositions, with the chosen ones filled."""
    angles = np.pi / 2 - np.arange(6) * np.pi / 3
    x, y = np.cos(angles), np.sin(angles)
    ax.fill(x, y, fc="none", ec="#b0b0b0", lw=1.2)
    steps = {item_order(ranks): step for step, ranks in enumerate(chosen, start=1)}
    for name, a, b in zip(("123", "213", "231", "321", "312", "132"), x, y, strict=True):
        colour = COLOURS[ANTITHETIC]
        box = {"boxstyle": "circle,pad=0.45", "fc": colour if name in steps else "white", "ec": colour}
        text = {"ha": "center", "va": "center"}
        ax.text(a, b, name, color="white" if name in steps else "black", fontsize=10, bbox=box, **text)
        if name in steps and numbered:
            ax.text(1.42 * a, 1.42 * b, f"step {steps[name]}", fontsize=9, **text)
    ax.set(xlim=(-1.8, 1.8), ylim=(-1.6, 1.6), aspect="equal", title=f"{title}: distance {discrepancy(chosen):.3f}")
    ax.axis("off")
