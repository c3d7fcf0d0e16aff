"""Figure: choosing completions one by one, and all at once."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from rankernel._utils.arrays import RankArray
from rankernel.completions.draws import draw as draw_completions
from rankernel.completions.herding import herd, joint_herd
from rankernel.kernels import Mallows
from reproduction.drawing import COLOURS, drawn_as
from reproduction.study import Study

KERNEL = Mallows(0.5)
HEXAGON = (0, 0, 0)  # nothing is known of three items: six completions, each with two neighbours
LARGER = (0, 0, 0, 0)
MOST = 6
N_RANDOM = 2000


def discrepancy(chosen: Any, ranking: tuple[int, ...]) -> float:
    """Return the distance between the mean embeddings of chosen completions and of all."""
    full = everything(len(ranking))
    inner = (
        KERNEL.matrix(chosen, chosen).mean() - 2 * KERNEL.matrix(chosen, full).mean() + KERNEL.matrix(full, full).mean()
    )
    return float(np.sqrt(max(inner, 0.0)))


def everything(n_items: int) -> RankArray:
    """Return all rankings as rank vectors."""
    return np.argsort(np.array(list(permutations(range(n_items)))), axis=1).astype(np.int32)


def curves(study: Study) -> dict[str, list[float]]:
    """Return the discrepancy of 1, 2, ... completions: greedy, joint, and the mean of random ones."""
    most = study.pick(MOST, 4)

    def compute() -> dict[str, list[float]]:
        numbers = range(1, most + 1)
        return {
            "greedy": [discrepancy(herd(LARGER, KERNEL, m, rng=study.stream("herd")).ranks, LARGER) for m in numbers],
            "joint": [discrepancy(joint_herd(LARGER, KERNEL, m).ranks, LARGER) for m in numbers],
            "antithetic": [random_discrepancy(study, m, "antithetic") for m in numbers],
            "Monte Carlo": [random_discrepancy(study, m, "iid") for m in numbers],
        }

    found: dict[str, list[float]] = study.cell("figures", compute, figure="herding", most=most)
    return found


def random_discrepancy(study: Study, n_draws: int, coupling: str) -> float:
    """Return the mean discrepancy of random completions."""
    rows = np.zeros((N_RANDOM // 10, len(LARGER)), dtype=np.int32)
    drawn = draw_completions(rows, n_draws, coupling=coupling, rng=study.stream("herding", n_draws), rows=np.arange(len(rows)))
    return float(np.mean([discrepancy(one.astype(np.int32), LARGER) for one in drawn.ranks]))


def draw(study: Study) -> tuple[str, str]:
    """Draw two hexagons, and the discrepancies for four items."""
    greedy, joint = herd(HEXAGON, KERNEL, 3, rng=study.stream("herd")).ranks, joint_herd(HEXAGON, KERNEL, 3).ranks
    with drawn_as(study, "herding", 1, 3, size=(12, 4.2)) as axes:
        draw_hexagon(axes[0, 0], greedy, "one by one", numbered=True)
        draw_hexagon(axes[0, 1], joint, "all three at once", numbered=False)
        draw_curves(axes[0, 2], curves(study))
    caption = (
        "Three completions of a ranking that says nothing of three items: greedy herding takes an antithetic pair and "
        "then a third next to one of them; chosen together, the three are spread evenly and closer to the mean "
        "embedding. Right: the same for four items; random draws are means over many repetitions."
    )
    return "herding", caption


def draw_hexagon(ax: Any, chosen: RankArray, title: str, numbered: bool) -> None:
    """Draw the six rankings of three items in a ring of adjacent transpositions, the chosen ones filled."""
    ring = ["123", "213", "231", "321", "312", "132"]
    angles = np.pi / 2 - np.arange(6) * np.pi / 3
    x, y = np.cos(angles), np.sin(angles)
    ax.fill(x, y, fc="none", ec="#b0b0b0", lw=1.2)
    steps = {"".join(str(i + 1) for i in np.argsort(ranks)): step for step, ranks in enumerate(chosen, start=1)}
    for name, a, b in zip(ring, x, y, strict=True):
        taken = name in steps
        fill, ink = (COLOURS["antithetic"], "white") if taken else ("white", "black")
        box = {"boxstyle": "circle,pad=0.45", "fc": fill, "ec": COLOURS["antithetic"]}
        ax.text(a, b, name, ha="center", va="center", color=ink, fontsize=10, bbox=box)
        if taken and numbered:
            ax.text(1.42 * a, 1.42 * b, f"step {steps[name]}", ha="center", va="center", fontsize=9)
    ax.set(
        xlim=(-1.8, 1.8),
        ylim=(-1.6, 1.6),
        aspect="equal",
        title=f"{title}: distance {discrepancy(chosen, HEXAGON):.3f}",
    )
    ax.axis("off")


def draw_curves(ax: Any, found: dict[str, list[float]]) -> None:
    """Draw the discrepancies."""
    looks = {
        "Monte Carlo": (COLOURS["Monte Carlo"], "o"),
        "antithetic": (COLOURS["antithetic"], "s"),
        "greedy": (COLOURS["other"], "^"),
        "joint": (COLOURS["best"], "D"),
    }
    for name, (colour, marker) in looks.items():
        label = {"greedy": "herding, one by one", "joint": "herding, all at once"}.get(name, f"{name} draws")
        ax.plot(range(1, len(found[name]) + 1), found[name], marker=marker, color=colour, label=label, ms=5)
    ax.set(title="four items", xlabel="completions", ylabel="distance to the mean embedding", ylim=(0, None))
    ax.set_xticks(range(1, len(found["joint"]) + 1))
    ax.legend(fontsize=9)
