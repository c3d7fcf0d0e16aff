"""Geometry of the SVG pictures of ballots: the map, the dendrogram and the Gram matrix."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankernel._utils import FloatArray, Indices, IntArray
from rankernel.plots import node_clusters, node_summaries
from rankernel.reports.clustering import Clustering
from rankernel.reports.drawings import COLOURS, Drawing, colour_index
from rankernel.reports.summary import Summary
from rankernel.reports.text import ballot_text, percent, plural, short_names, text_width, wrap_names

# ---------------------------------------------------------------------- colours


def coloured_groups(summary: Summary) -> list[int]:
    """Return the groups with a colour of their own, the largest ones; all others share one colour."""
    largest = np.argsort(-summary.ballots.by_group.sum(axis=0), kind="stable")
    return sorted(largest[: COLOURS + (len(largest) == COLOURS + 1)].tolist())


def group_colours(summary: Summary) -> Indices:
    """Return the colour of each ballot shown by its dominant group, -1 without one."""
    coloured = coloured_groups(summary)
    colours = np.full(len(summary.ballots.groups) + 1, COLOURS, dtype=np.intp)
    colours[coloured] = np.arange(len(coloured))
    colours[-1] = -1
    return colours[summary.ballots.dominant_groups()[summary.view.rows]]


def cluster_key(summary: Summary) -> list[str]:
    """Return the meaning of each cluster colour: one cluster, the last colour all remaining ones."""
    clusters = summary.grouped.clusters if summary.grouped else []
    names = list(short_names(tuple(cluster.title for cluster in clusters), 60))
    if len(clusters) <= COLOURS:
        return names
    others = ", ".join(cluster.name for cluster in clusters[COLOURS:])
    return [*names[:COLOURS], summary.wording.say("other_clusters", names=others)]


# ---------------------------------------------------------------------- map


WIDTH, HEIGHT, MARGIN, KEY_HEIGHT = 960.0, 670.0, 34.0, 78.0
MIN_RADIUS, VOTER_RADIUS, MAX_RADIUS = 2.8, 4.0, 20.0  # a single voter has at most the second


@dataclass(frozen=True)
class MapText:
    """The sizes of the texts of a map, which is drawn once and shown on large and on small screens."""

    name: str
    letters: float  # of a cluster title
    axis: float
    label_width: float  # of a cluster title; a longer one is replaced by its letter
    enlarged: float  # factor of the radii in the key
    suffix: str  # of the sentences of the axes


MAP_TEXTS = (MapText("large", 16.0, 12.0, 380.0, 1.0, ""), MapText("small", 40.0, 36.0, 0.0, 1.8, "_short"))


def ballot_map(summary: Summary) -> Drawing:
    """Return the map of the ballots."""
    view, wording = summary.view, summary.wording
    coordinates, sizes = map_coordinates(summary), radii(view.counts)
    labels, groups = summary.labels[view.rows].tolist(), group_colours(summary).tolist()
    points = []
    for row in np.argsort(-sizes, kind="stable").tolist():  # small points over large ones
        ballot = summary.ballots.rankings[view.rows[row]]
        fields = {
            "n_voters": wording.count_voters(int(ballot.counts[0])),
            "text": ballot_text(ballot, limit=8, approvals=wording.approvals),
        }
        name = "point_label"
        if summary.grouped:
            name, fields["name"] = "point_label_cluster", summary.grouped.clusters[labels[row]].name
        x, y = coordinates[row].tolist()
        colours = f"k{colour_index(labels[row])} {f'g{groups[row]}' if groups[row] >= 0 else 'gx'}"
        label = wording.say(name, **fields)
        points.append({"x": x, "y": y, "r": float(sizes[row]), "row": row, "colours": colours, "label": label})
    texts = [map_texts(summary, coordinates, text) for text in MAP_TEXTS]
    label = wording.say("map_label", n_ballots=wording.count_ballots(len(points)))
    return Drawing("map", WIDTH, HEIGHT, label, {"points": points, "texts": texts})


def map_coordinates(summary: Summary) -> FloatArray:
    """Return the position of each ballot shown in the picture, with equal scales on both axes."""
    points = summary.embedding.points[summary.view.rows] * [1, -1]
    low, high = points.min(axis=0), points.max(axis=0)
    area = np.array([WIDTH, HEIGHT - KEY_HEIGHT])
    scale: float = ((area - 2 * MARGIN) / np.maximum(high - low, 1e-9)).min()
    coordinates: FloatArray = (points - (low + high) / 2) * scale + area / 2
    return coordinates


def radii(counts: IntArray) -> FloatArray:
    """Return radii of circles with areas proportional to the counts, small ones enlarged to be visible."""
    if counts.max() < 2:
        return np.full(len(counts), VOTER_RADIUS)
    largest = min(MAX_RADIUS, VOTER_RADIUS * float(np.sqrt(counts.max())))
    return np.asarray(np.maximum(np.sqrt(counts / counts.max()) * largest, MIN_RADIUS))


def map_texts(summary: Summary, coordinates: FloatArray, text: MapText) -> dict[str, Any]:
    """Return the cluster titles, the names of the axes and the key of the sizes."""
    first, second = (percent(share) for share in summary.embedding.variance.tolist())
    axes = [
        {"x": WIDTH, "y": HEIGHT - 6, "end": True, "text": summary.wording.say(f"map_right{text.suffix}", share=first)},
        {"x": 0.0, "y": text.letters, "end": False, "text": summary.wording.say(f"map_up{text.suffix}", share=second)},
    ]
    titles = cluster_titles(summary, coordinates, text)
    return {"name": text.name, "titles": titles, "axes": axes, "sizes": size_key(summary, text)}


def cluster_titles(summary: Summary, coordinates: FloatArray, text: MapText) -> list[dict[str, Any]]:
    """Return the titles of the clusters at the means of their voters, moved down where they would overlap."""
    if summary.grouped is None:
        return []
    labels, counts = summary.labels[summary.view.rows], summary.view.counts
    wanted = []
    for number, cluster in enumerate(summary.grouped.clusters):
        members = labels == number
        if members.any():
            x, y = np.average(coordinates[members], axis=0, weights=counts[members]).tolist()
            fits = text_width(cluster.title, text.letters) <= text.label_width
            wanted.append((y, x, number, cluster.title if fits else cluster.name))
    titles: list[dict[str, Any]] = []
    gap = 1.375 * text.letters
    for y, x, number, title in sorted(wanted):
        half = text_width(title, text.letters) / 2
        x = min(max(x, half), WIDTH - half)
        y = max(y, 2.5 * text.letters)  # below the name of the axis
        while any(abs(y - other["y"]) < gap and abs(x - other["x"]) < half + other["half"] for other in titles):
            y += gap / 2
        titles.append({"x": x, "y": y, "half": half, "text": title, "colour": colour_index(number)})
    return titles


def size_key(summary: Summary, text: MapText) -> list[dict[str, Any]]:
    """Return circles that show how many voters a size stands for."""
    largest = int(summary.view.counts.max())
    if largest < 2:
        return []
    steps = sorted({1, max(round(largest / 4), 1), largest})
    x, key = 14.0, []
    for step, radius in zip(steps, (text.enlarged * radii(np.array(steps))).tolist(), strict=True):
        label = summary.wording.count_voters(step) if step == largest else f"{step:,}"
        key.append(
            {"x": x + radius, "y": HEIGHT - 6 - radius, "r": radius, "text_x": x + 2 * radius + 5, "text": label}
        )
        x += 2 * radius + 14 + text_width(label, text.axis)
    return key


# ---------------------------------------------------------------------- dendrogram


@dataclass(frozen=True)
class TreeLayout:
    """The size of a dendrogram."""

    width: float
    right: float  # x of the leaves
    head: str  # sentence above the ballots
    n_branches: int  # at most
    n_lines: int = 1  # of a ballot


WIDE_TREE = TreeLayout(960.0, 480.0, "tree_head", 30)
NARROW_TREE = TreeLayout(342.0, 100.0, "tree_head_short", 16, n_lines=2)
PAPER_TREE = TreeLayout(672.0, 270.0, "tree_head", 14)
TREE_TOP, TREE_LEFT, LINE = 30.0, 14.0, 17.0
NAME_LENGTH = 18  # characters of an item in a ballot


def dendrogram(summary: Summary, clustering: Clustering, layout: TreeLayout) -> Drawing:
    """Return the upper branches of the dendrogram of the ballots shown."""
    from scipy.cluster.hierarchy import dendrogram as scipy_dendrogram

    tree, wording, k = clustering.tree, summary.wording, len(clustering.clusters)
    n_leaves = len(tree) + 1
    n_branches = min(max(layout.n_branches, k), n_leaves)
    clusters = node_clusters(tree, clustering.shown)
    nodes: list[int] = []  # of the links, in the order of their coordinates

    def record(node: int) -> str:
        nodes.append(node)
        return ""

    drawn = scipy_dendrogram(tree, p=n_branches, truncate_mode="lastp", no_plot=True, link_color_func=record)
    row_height = 21.0 + LINE * (layout.n_lines - 1)
    scale = (layout.right - TREE_LEFT) / max(float(tree[-1, 2]), 1e-12)

    def x_of(height: float) -> float:
        return layout.right - scale * height

    def y_of(position: float) -> float:  # SciPy's leaves are at 5, 15, 25, ...
        return TREE_TOP + position / 10 * row_height

    lines = []
    for node, positions in zip(nodes, drawn["icoord"], strict=True):
        x, top, bottom = x_of(node_height(tree, node)), y_of(positions[0]), y_of(positions[3])
        for child, y in zip(tree[node - n_leaves, :2].astype(int).tolist(), (top, bottom), strict=True):
            colour = line_colour(clusters[child] if clusters[node] < 0 else clusters[node])
            lines.append({"path": f"M{x:.1f} {y:.1f}H{x_of(node_height(tree, child)):.1f}", "colour": colour})
        lines.append({"path": f"M{x:.1f} {top:.1f}V{bottom:.1f}", "colour": line_colour(clusters[node])})
    above, below = float(tree[-(k - 1), 2]), float(tree[-k, 2]) if k < n_leaves else 0.0
    cut, title = x_of((above + below) / 2), wording.say("tree_cut", k=k)
    n_ballots, n_clusters = wording.count_ballots(n_leaves), plural(k, "cluster")
    parts = {
        "lines": lines,
        "branches": tree_branches(summary, clustering, layout, drawn["leaves"], x_of, y_of),
        "right": layout.right,
        "top": TREE_TOP,
        "left": TREE_LEFT,
        "cut": {"x": cut, "text": title, "text_x": max(cut, text_width(title, 12.0) / 2)},
        "head": wording.say(layout.head),
        "voters": wording.voters,
        "far": wording.say("tree_far"),
        "near": wording.say("tree_near"),
    }
    label = wording.say("tree_label", n_ballots=n_ballots, n_clusters=n_clusters)
    return Drawing("tree", layout.width, TREE_TOP + n_branches * row_height + 34, label, parts)


def tree_branches(
    summary: Summary,
    clustering: Clustering,
    layout: TreeLayout,
    nodes: list[int],
    x_of: Callable[[float], float],
    y_of: Callable[[float], float],
) -> list[dict[str, Any]]:
    """Return the ends of the branches: a wedge, the number of voters and the most common ballot."""
    tree, view, rankings = clustering.tree, summary.view, summary.ballots.rankings
    n_leaves, right = len(tree) + 1, layout.right
    common, _, voters = node_summaries(tree, view.counts)
    ballots = [rankings[int(view.rows[common[node]])] for node in nodes]
    approvals = summary.wording.approvals
    texts = [ballot_text(ballot, rankings.n_items, NAME_LENGTH, approvals) for ballot in ballots]
    branches = []
    for index, (node, lines) in enumerate(
        zip(nodes, wrap_names(texts, layout.width - right - 62, layout.n_lines), strict=True)
    ):
        y, half = y_of(10 * index + 5), 5.0 if node >= n_leaves else 0.0
        x, first_line = x_of(node_height(tree, node)), y + 4.5 - LINE * (len(lines) - 1) / 2
        branches.append(
            {
                "y": y + 4.5,
                "wedge": f"M{x:.1f} {y:.1f}L{right:g} {y - half:.1f}V{y + half:.1f}Z",
                "colour": colour_index(int(clustering.shown[common[node]])),
                "voters": f"{int(voters[node]):,}",
                "lines": [{"y": first_line + LINE * number, "text": line} for number, line in enumerate(lines)],
            }
        )
    return branches


def node_height(tree: FloatArray, node: int) -> float:
    """Return the height of a node, 0 for a leaf."""
    return float(tree[node - len(tree) - 1, 2]) if node > len(tree) else 0.0


def line_colour(cluster: int) -> str:
    """Return the class of a line of the dendrogram; -1 stands for several clusters."""
    return f"branch k{colour_index(cluster)}" if cluster >= 0 else "branch"


# ---------------------------------------------------------------------- Gram matrix


@dataclass(frozen=True)
class GramLayout:
    """The size of the picture of a Gram matrix."""

    width: float
    side: float  # of the image
    pixels: int  # along a side, at most
    name_width: float  # of cluster titles; letters replace them if one is wider
    right: float  # width of the key


WIDE_GRAM = GramLayout(956.0, 560.0, 360, 262.0, 110.0)
NARROW_GRAM = GramLayout(342.0, 238.0, 200, 20.0, 62.0)
GRAM_TOP = 44.0


def gram_picture(summary: Summary, clustering: Clustering, layout: GramLayout) -> Drawing:
    """Return the Gram matrix of voters in the order of the dendrogram, with the clusters along its sides."""
    voters = voters_in_tree_order(summary, clustering, layout.pixels)
    levels, low, high = palette_levels(summary.embedding.gram[np.ix_(voters, voters)])
    labels = clustering.labels[summary.view.rows[voters]]
    names = [cluster.title for cluster in clustering.clusters]
    if max(map(text_width, names)) > layout.name_width:
        names = [cluster.name for cluster in clustering.clusters]
    left, side = 24 + max(map(text_width, names)), layout.side
    strips, next_y = [], 0.0
    for start, end in pairwise([0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]):
        a, b = (side * edge / len(labels) for edge in (start, end))
        number, y = int(labels[start]), max(GRAM_TOP + (a + b) / 2 + 4, next_y)
        next_y = y + 15
        strips.append(
            {
                "start": a + 1,
                "length": max(b - a - 2, 1.0),
                "y": y,
                "name": names[number],
                "colour": colour_index(number),
            }
        )
    wording = summary.wording
    right = left + side + layout.right
    parts = {
        "left": left,
        "top": GRAM_TOP,
        "side": side,
        "image": png_address(levels),
        "strips": strips,
        "scale": png_address(np.arange(255, -1, -1, dtype=np.uint8)[:, None]),
        "scale_x": left + side + 20,
        "right": right,
        "head": wording.say("kernel_value"),
        "low": f"{low:.2g}",
        "high": f"≥ {high:.2g}",
    }
    label = wording.say("gram_label", n_voters=wording.count_voters(len(voters)), low=low, high=high)
    return Drawing("gram", max(layout.width, right), GRAM_TOP + side + 6, label, parts)


def voters_in_tree_order(summary: Summary, clustering: Clustering, limit: int) -> Indices:
    """Return the ballots of at most ``limit`` voters at regular intervals in the order of the leaves."""
    from scipy.cluster.hierarchy import leaves_list

    leaves = leaves_list(clustering.tree)
    ends = np.cumsum(summary.view.counts[leaves])
    n_shown = min(int(ends[-1]), limit)
    voters = ((np.arange(n_shown) + 0.5) * int(ends[-1]) / n_shown).astype(np.intp)
    return np.asarray(leaves[np.searchsorted(ends, voters, side="right")])


def palette_levels(values: FloatArray) -> tuple[NDArray[np.uint8], float, float]:
    """Return palette entries for values, and the values of the first and the last entry."""
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    levels = (np.clip((values - low) / max(high - low, 1e-12), 0, 1) * 255).round().astype(np.uint8)
    return levels, low, high


# Stops of cividis (Nuñez, Anderton and Renslow 2018), which is perceived alike with and without colour blindness.
STOPS = np.array(
    [
        *[(0, 34, 78), (18, 53, 112), (59, 73, 108), (87, 93, 109), (112, 113, 115)],
        *[(138, 134, 120), (165, 156, 116), (195, 179, 105), (225, 204, 85), (254, 232, 56)],
    ],
    dtype=np.float64,
)


def palette() -> NDArray[np.uint8]:
    """Return 256 colours from dark blue to yellow, one in a row."""
    positions = np.linspace(0, len(STOPS) - 1, 256)
    channels = [np.interp(positions, np.arange(len(STOPS)), channel) for channel in STOPS.T]
    return np.stack(channels, axis=1).round().astype(np.uint8)


def png_address(levels: NDArray[np.uint8]) -> str:
    """Return a matrix of palette entries as a PNG image in a data address.

    Examples
    --------
    >>> png_address(np.array([[0, 255]], dtype=np.uint8))[:34]
    'data:image/png;base64,iVBORw0KGgoA'
    """
    height, width = levels.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each row begins with its filter type, 0
    rows[:, 1:] = levels
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette().tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    image = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")
