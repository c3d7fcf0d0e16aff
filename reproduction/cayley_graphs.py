"""Figure: the rankings of four items under adjacent and under all transpositions."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils.arrays import FloatArray, Mask
from rankernel.distances import cayley, kendall
from reproduction.drawing import drawn_as
from reproduction.study import Study

N_ITEMS = 4
SHADES = ("#440154", "#443983", "#31688e", "#21918c", "#35b779", "#90d743", "#fde725")
DARK = 4  # how many of the shades want white letters
SWEEPS = 24


def draw(study: Study) -> tuple[str, str]:
    """Draw both graphs, each ranking at the height of its distance from the identity."""
    orders = np.array(list(permutations(range(N_ITEMS))))
    ranks = np.argsort(orders, axis=1).astype(np.int32)
    with drawn_as(study, "cayley_graphs", 1, 2, size=(11, 6)) as axes:
        for ax, distance, name in zip(axes[0], (kendall, cayley), ("adjacent", "all"), strict=True):
            distances = np.asarray(distance.between(ranks, ranks))
            draw_graph(ax, orders, distances)
            ax.set_title(f"{name} transpositions: {distance.name.capitalize()} distance")
    caption = (
        "The 24 rankings of four items. An edge joins two that differ by one transposition: of neighbours (left), of "
        "any two items (right). Height and colour are the distance from 1234, the length of the shortest way there."
    )
    return "cayley_graphs", caption


def draw_graph(ax: Any, orders: NDArray[Any], distances: NDArray[Any]) -> None:
    """Draw a graph in layers."""
    level = distances[0].astype(int)
    x = places(level, distances == 1)
    for a, b in np.argwhere(np.triu(distances == 1)):
        ax.plot(x[[a, b]], level[[a, b]], color="#b0b0b0", lw=0.9, zorder=1)
    step = (len(SHADES) - 1) // level.max()
    for a, order in enumerate(orders):
        shade = SHADES[level[a] * step]
        ink = "white" if SHADES.index(shade) < DARK else "black"
        box = {"boxstyle": "round,pad=0.28", "fc": shade, "ec": "white", "lw": 1}
        ax.text(
            x[a],
            level[a],
            "".join(str(i + 1) for i in order),
            ha="center",
            va="center",
            fontsize=8,
            color=ink,
            bbox=box,
        )
    ax.set(xlim=(x.min() - 0.6, x.max() + 0.6), ylim=(level.max() + 0.5, -0.5), ylabel="distance from 1234", xticks=[])
    ax.set_yticks(range(level.max() + 1))
    ax.spines["bottom"].set_visible(False)
    ax.grid(visible=False)


def places(level: NDArray[Any], joined: Mask) -> FloatArray:
    """Return places along the layers, each ranking near the mean of those it is joined with."""
    x = np.zeros(len(level))
    for each in range(level.max() + 1):
        spread_evenly(x, np.flatnonzero(level == each))
    best = x.copy()
    for sweep in range(SWEEPS):
        layers = range(level.max() + 1) if sweep % 2 else range(level.max(), -1, -1)
        for each in layers:
            members = np.flatnonzero(level == each)
            above_or_below = joined & (level == each + (-1 if sweep % 2 else 1))
            means = np.array([x[above_or_below[a]].mean() if above_or_below[a].any() else x[a] for a in members])
            spread_evenly(x, members[np.argsort(means, kind="stable")])
        if crossings(x, level, joined) < crossings(best, level, joined):
            best = x.copy()
    return best


def crossings(x: FloatArray, level: NDArray[Any], joined: Mask) -> int:
    """Return how many pairs of edges cross."""
    upper, lower = np.nonzero(joined & (level[:, None] < level))
    a, b = x[upper], x[lower]
    crossed = ((a[:, None] < a) & (b[:, None] > b)) & (level[upper][:, None] == level[upper])
    return int(crossed.sum())


def spread_evenly(x: FloatArray, members: NDArray[Any]) -> None:
    """Set the members of a layer at equal distances around the middle, wider where they are few."""
    width = max(1.0, 1.6 - 0.06 * len(members))
    x[members] = width * (np.arange(len(members)) - (len(members) - 1) / 2)
