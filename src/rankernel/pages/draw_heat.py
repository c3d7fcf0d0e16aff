"""Two matrices: who is preferred to whom, as a table; and every ballot against every other, as an image."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rankernel.analysis.clustering import Clustering
from rankernel.analysis.phrases import cut, plural
from rankernel.analysis.summary import Summary
from rankernel.arrays import FloatArray
from rankernel.pages.draw_map import cluster_name
from rankernel.pages.layout import shade, table
from rankernel.pages.markup import Markup, tag
from rankernel.pages.png import data_address, palette, png
from rankernel.pages.text_width import fitted

MOST_ITEMS = 20
MOST_PIXELS = 360
SHADES = 6


def preference_table(study: Summary) -> Markup:
    """Return for every two items the shares that put one before the other, and neither, best items first."""
    items, found, shown = study.ballots.rankings.items, study.majorities, study.order[:MOST_ITEMS].tolist()
    heads = [tag("td"), *[tag("th", tag("span", cut(items[item], 22)), scope="col") for item in shown]]
    ahead, undecided = found.ahead / found.n_voters, found.undecided / found.n_voters
    divided = found.any_undecided
    rows = [
        tag(
            "tr",
            tag("th", cut(items[row], 30), scope="row"),
            *[
                duel_cell(
                    float(ahead[row, column]),
                    float(ahead[column, row]),
                    float(undecided[row, column]) if divided else None,
                )
                if row != column
                else tag("td", "", class_="self")
                for column in shown
            ],
            data_item=row,
        )
        for row in shown
    ]
    label = f"Percent of voters who put the {study.source.noun} of the row before that of the column, and of undecided"
    return table("duels", label, heads, rows, class_="heat")


def duel_cell(ahead: float, behind: float, undecided: float | None) -> Markup:
    """Return one cell: blue where the row wins among those who say, orange where the column does."""
    margin = (ahead - behind) / max(ahead + behind, 1e-12)
    level = round(abs(margin) ** 0.6 * SHADES)  # small majorities shall be seen
    colour = f"{'win' if margin > 0 else 'lose'}{level}" if level else "even"
    below = None if undecided is None else tag("small", f"{100 * undecided:.0f}")
    return tag("td", f"{100 * ahead:.0f}", below, class_=colour)


def gram_picture(study: Summary, clustering: Clustering) -> Markup:
    """Return the Gram matrix of voters in the order of the tree, with the clusters marked along its sides."""
    voters = voters_in_order(study, clustering)
    levels, low, high = shaded(study.placement.gram[np.ix_(voters, voters)])
    labels = clustering.labels[study.view.rows[voters]]
    side, left, top = 560.0, 150.0, 40.0
    parts = [
        tag(
            "image",
            x=left,
            y=top,
            width=side,
            height=side,
            preserveAspectRatio="none",
            href=data_address(png(levels)),
        )
    ]
    for start, end in runs(labels):
        a, b = (top + side * edge / len(labels) for edge in (start, end))
        cluster = clustering.clusters[int(labels[start])]
        colour = f"k{shade(int(labels[start]))}"
        parts += [
            tag("rect", x=left - 10, y=a + 1, width=6.0, height=max(b - a - 2, 1.0), class_=f"fill {colour}"),
            tag(
                "rect", x=left + a - top + 1, y=top - 10, width=max(b - a - 2, 1.0), height=6.0, class_=f"fill {colour}"
            ),
        ]
        if b - a > 14:
            name = fitted(cluster_name(cluster), left - 18)
            parts.append(tag("text", name, x=left - 16, y=(a + b) / 2 + 4, class_=f"label end strong {colour}"))
    parts += scale(left + side + 28, top, low, high)
    spoken = (
        f"Gram matrix of {plural(len(voters), 'voter')} in the order of the dendrogram: kernel values from {low:.2g} "
        f"to {high:.2g}, larger within clusters than between them."
    )
    return tag("svg", *parts, class_="gram", viewBox="0 0 820 612", role="img", aria_label=spoken)


def voters_in_order(study: Summary, clustering: Clustering) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the ballots of evenly spaced voters in the order of the leaves: a common ballot takes more room."""
    from scipy.cluster.hierarchy import leaves_list

    leaves = leaves_list(clustering.tree)
    ends = np.cumsum(study.view.counts[leaves])  # of the voters of each leaf, who are not written out one by one
    n_shown = min(int(ends[-1]), MOST_PIXELS)
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


def scale(x: float, y: float, low: float, high: float) -> list[Markup]:
    """Return the key of the colours."""
    steps, height = 64, 180.0
    colours = palette(steps)[::-1].tolist()
    bar = [
        tag("rect", x=x, y=y + 22 + number * height / steps, width=14.0, height=height / steps + 0.6, fill=rgb(colour))
        for number, colour in enumerate(colours)
    ]
    return [
        tag("text", "kernel value", x=x, y=y + 8, class_="axis"),
        *bar,
        tag("text", f"{high:.2g}", x=x + 20, y=y + 32, class_="number"),
        tag("text", f"{low:.2g}", x=x + 20, y=y + 22 + height, class_="number"),
    ]


def rgb(colour: list[int]) -> str:
    """Return a colour as SVG writes it."""
    return f"#{colour[0]:02x}{colour[1]:02x}{colour[2]:02x}"
