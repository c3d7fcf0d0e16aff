"""Draw the picture on the front page, for light and dark themes: ``python docs/front_picture.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram

import rankernel as rk

FOLDER = Path(__file__).parent / "_static"
INK = {"light": "#333333", "dark": "#d0d0d0"}
BLOCS = ("#d1495b", "#2e86de", "#3f9b4f")  # readable on white and on black
SHOWN = 26  # ballots in the tree


def main() -> None:
    """Draw the picture for both themes."""
    votes = rk.datasets.load_example().rankings.unique()  # of all districts together
    kernel = rk.Mallows("median").resolve(votes)
    blocs = rk.KernelKMeans(n_clusters=len(BLOCS), kernel=kernel, random_state=0).fit(votes).labels_
    points = rk.KernelMap(kernel=kernel).fit_transform(votes)
    frequent = np.argsort(-votes.counts, kind="stable")[:SHOWN]
    tree = rk.linkage(votes[frequent], kernel, linkage="average")
    for theme, ink in INK.items():
        picture = draw(votes, blocs, points, frequent, tree, ink)
        picture.savefig(FOLDER / f"front-{theme}.png", transparent=True, dpi=170, metadata={"Software": None})


def draw(votes, blocs, points, frequent, tree, ink):
    """Return the map of all ballots beside the dendrogram of the most frequent ones."""
    picture, (left, right) = plt.subplots(
        1, 2, figsize=(10, 3.5), width_ratios=[1, 1.15], layout="constrained", gridspec_kw={"wspace": 0.06}
    )
    left.scatter(*points.T, s=4 + 3 * votes.counts, c=[BLOCS[bloc] for bloc in blocs], alpha=0.6, lw=0)
    left.set_axis_off()
    left.set_title("Map of the ballots", color=ink, fontsize=10)
    leaves = dendrogram(tree, ax=right, orientation="left", color_threshold=0, above_threshold_color=ink)["leaves"]
    right.set_yticklabels([ballot(votes, frequent[leaf]) for leaf in leaves], fontsize=8)
    for tick, leaf in zip(right.get_yticklabels(), leaves, strict=True):
        tick.set_color(BLOCS[blocs[frequent[leaf]]])
    right.set_xticks([])
    right.tick_params(axis="y", length=0)
    for spine in right.spines.values():
        spine.set_visible(False)
    right.set_title(f"Dendrogram of the {SHOWN} most frequent ballots", color=ink, fontsize=10)
    return picture


def ballot(votes, row):
    """Return the text of a ballot and the number of its voters."""
    order = [item if isinstance(item, str) else "=".join(sorted(item)) for item in votes[[row]].to_orders()[0]]
    listed = [text for text in order if text.count("=") < 3]
    return f"{votes.counts[row]} × {' > '.join(listed[:3])}{' …' if len(listed) > 3 else ''}"


if __name__ == "__main__":
    main()
