"""Figure: full rankings in the space of a kernel, the mean embedding of a partial one, and estimates of it."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from rankernel._utils.arrays import FloatArray, RankArray
from rankernel.completions.draws import draw as draw_completions
from rankernel.completions.enumerate import enumerate_completions
from rankernel.kernels import Mallows
from rankernel.learn.maps import KernelMap
from rankernel.rankings import Rankings
from reproduction.drawing import COLOURS, drawn_as
from reproduction.study import Study

PARTIAL = (0, 1, 1, 1)  # item 1 first, nothing known of the others
KERNEL = Mallows(0.3)
N_DRAWS, N_ESTIMATES = 2, 60


def embedded(study: Study) -> dict[str, FloatArray]:
    """Return points of the map: all rankings, the completions, their barycentre, and estimates of it."""
    everything = np.argsort(np.array(list(permutations(range(len(PARTIAL))))), axis=1).astype(np.int32)
    space = KernelMap(KERNEL, n_components=2).fit(Rankings(everything))
    partial = np.array([PARTIAL], dtype=np.int32)
    completions = enumerate_completions(partial[0]).astype(np.int32)
    return {
        "all": space.transform(Rankings(everything)),
        "completions": space.transform(Rankings(completions)),
        "barycentre": space.transform(Rankings(partial)),
        "Monte Carlo": estimates(study, space, partial, "iid"),
        "antithetic": estimates(study, space, partial, "antithetic"),
    }


def estimates(study: Study, space: KernelMap, partial: RankArray, coupling: str) -> FloatArray:
    """Return estimates of the mean embedding: the means of a few draws. The map is linear, so it may act first."""
    drawn = draw_completions(
        np.repeat(partial, N_ESTIMATES, axis=0),
        N_DRAWS,
        coupling=coupling,
        rng=study.stream("embedding"),
        rows=np.arange(N_ESTIMATES),
    )
    points = space.transform(Rankings(drawn.ranks.reshape(-1, partial.shape[1]).astype(np.int32)))
    return np.asarray(points.reshape(N_ESTIMATES, N_DRAWS, 2).mean(axis=1))


def draw(study: Study) -> tuple[str, str]:
    """Draw the map."""
    points = embedded(study)
    completions = enumerate_completions(np.array(PARTIAL, dtype=np.int32))
    with drawn_as(study, "embedding", 1, 2, size=(10, 6)) as axes:
        for ax, row in zip(axes[0], ("Monte Carlo", "antithetic"), strict=True):
            ax.plot(*points["all"].T, "o", color="#d0d0d0", ms=5, label="all 24 rankings of four items")
            ax.plot(
                *points["completions"].T, "o", color=COLOURS["other"], ms=9, label="completions of R: 1 > {2, 3, 4}"
            )
            for place, ranks in zip(points["completions"], completions, strict=True):
                name = "".join(str(i + 1) for i in np.argsort(ranks))
                ax.annotate(name, place, xytext=(0, 8), textcoords="offset points", ha="center", fontsize=8)
            ax.plot(*points["barycentre"].T, "*", mfc="#ffe9b0", mec="black", ms=20, label="mean embedding of R")
            ax.plot(*points[row].T, "x", color=COLOURS[row], ms=6, mew=1.4, label=f"{row}, {N_DRAWS} draws", zorder=5)
            ax.set(title=row, xlabel="first kernel principal component")
            ax.set_aspect("equal", adjustable="datalim")
        axes[0, 0].set_ylabel("second")
        handles = [*axes[0, 0].get_lines(), axes[0, 1].get_lines()[-1]]
        axes[0, 0].figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    caption = (
        f"Kernel principal components of all rankings of four items (Mallows, nu = {KERNEL.nu}). The embedding of a "
        f"partial ranking is the barycentre of its completions; {N_ESTIMATES} estimates of it, each the mean of "
        f"{N_DRAWS} draws, independent (left) or antithetic (right)."
    )
    return "embedding", caption
