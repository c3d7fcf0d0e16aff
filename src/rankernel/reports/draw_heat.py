"""Every ballot against every other: the Gram matrix as an image, with the clusters along its sides."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rankernel._utils.arrays import FloatArray
from rankernel.reports.clustering import Clustering
from rankernel.reports.draw_map import cluster_name
from rankernel.reports.layout import shade
from rankernel.reports.markup import Markup, tag
from rankernel.reports.png import data_address, palette, png
from rankernel.reports.summary import Summary
from rankernel.reports.text_width import text_width

TOP, STRIP = 44.0, 6.0  # what is above the image; the colours of the clusters beside it


@dataclass(frozen=True)
class HeatSize:
    """How large the picture of a matrix is."""

    width: float  # of all, so that letters are as large whatever the names
    side: float  # of the image
    pixels: int  # along a side, at most
    names: float  # room for the names of clusters; where one needs more, all are letters
    right: float  # room for the key of the colours


WIDE = HeatSize(956.0, 560.0, 360, 262.0, 110.0)
NARROW = HeatSize(342.0, 238.0, 200, 20.0, 62.0)


def gram_picture(study: Summary, clustering: Clustering, size: HeatSize) -> Markup:
    """Return the Gram matrix of voters in the order of the tree, with the clusters marked along its sides."""
    voters = voters_in_order(study, clustering, size.pixels)
    levels, low, high = shaded(study.placement.gram[np.ix_(voters, voters)])
    labels = clustering.labels[study.view.rows[voters]]
    names = row_names(clustering, size.names)
    left, side = 24 + max(map(text_width, names)), size.side
    place = {"x": left, "y": TOP, "width": side, "height": side}
    parts = [tag("image", **place, preserveAspectRatio="none", href=data_address(png(levels)))]
    free = 0.0  # below the last name
    for start, end in runs(labels):
        a, b = (TOP + side * edge / len(labels) for edge in (start, end))
        number, long = int(labels[start]), max(b - a - 2, 1.0)
        colour, y = f"k{shade(number)}", max((a + b) / 2 + 4, free)
        parts += [
            tag("rect", x=left - 10, y=a + 1, width=STRIP, height=long, class_=f"fill {colour}"),
            tag("rect", x=left + a - TOP + 1, y=TOP - 10, width=long, height=STRIP, class_=f"fill {colour}"),
            tag("text", names[number], x=left - 16, y=y, class_=f"label end strong {colour}"),
        ]
        free = y + 15
    spoken = (
        f"Gram matrix of {study.words.count_voters(len(voters))} in the order of the dendrogram: kernel values from "
        f"{low:.2g} to {high:.2g}, larger within clusters than between them."
    )
    return tag(
        "svg",
        *parts,
        *scale(left + side + 20, size, low, high),
        class_="gram",
        viewBox=f"0 0 {max(size.width, left + side + size.right):g} {TOP + side + 6:g}",
        role="img",
        aria_label=spoken,
    )


def row_names(clustering: Clustering, room: float) -> list[str]:
    """Return what stands beside the rows: the names of the clusters, or their letters where not all names fit."""
    names = [cluster_name(cluster) for cluster in clustering.clusters]
    if max(map(text_width, names)) <= room:
        return names
    return [cluster.name for cluster in clustering.clusters]


def voters_in_order(study: Summary, clustering: Clustering, most: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the ballots of evenly spaced voters in the order of the leaves: a common ballot takes more room."""
    from scipy.cluster.hierarchy import leaves_list

    leaves = leaves_list(clustering.tree)
    ends = np.cumsum(study.view.counts[leaves])  # of the voters of each leaf, who are not written out one by one
    n_shown = min(int(ends[-1]), most)
    voters = ((np.arange(n_shown) + 0.5) * int(ends[-1]) / n_shown).astype(np.intp)
    return np.asarray(leaves[np.searchsorted(ends, voters, side="right")])


def shaded(values: FloatArray) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.uint8]], float, float]:
    """Return palette entries for values, and the values of the first and the last entry."""
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    room = max(high - low, 1e-12)
    levels = (np.clip((values - low) / room, 0, 1) * 255).round().astype(np.uint8)
    return levels, low, high


def runs(labels: np.ndarray[tuple[int], np.dtype[np.intp]]) -> list[tuple[int, int]]:
    """Return where each run of equal labels begins and ends."""
    edges = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    return list(pairwise(edges))


def scale(x: float, size: HeatSize, low: float, high: float) -> list[Markup]:
    """Return the key of the colours."""
    steps, height, right = 64, size.side / 3, x - 20 + size.right
    colours = palette(steps)[::-1].tolist()
    bar = [
        tag("rect", x=x, y=TOP + number * height / steps, width=12.0, height=height / steps + 0.6, fill=rgb(colour))
        for number, colour in enumerate(colours)
    ]
    return [
        *bar,
        tag("text", "kernel value", x=right, y=18.0, class_="axis end"),
        tag("text", f"{high:.2g}", x=right, y=TOP + 10, class_="number end"),
        tag("text", f"{low:.2g}", x=right, y=TOP + height, class_="number end"),
    ]


def rgb(colour: list[int]) -> str:
    """Return a colour as SVG writes it."""
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"
