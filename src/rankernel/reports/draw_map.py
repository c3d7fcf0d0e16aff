"""The map of the ballots: a point for each, its area the voters behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankernel._utils.arrays import FloatArray, Indices, IntArray
from rankernel.data import Data
from rankernel.preferences import Preferences
from rankernel.reports.clustering import Cluster
from rankernel.reports.layout import COLOURS, large_and_small, shade
from rankernel.reports.markup import Markup, tag
from rankernel.reports.phrases import ballot_text, percent
from rankernel.reports.summary import Summary
from rankernel.reports.text_width import text_width

WIDTH, HEIGHT, MARGIN, FOOT = 960.0, 670.0, 34.0, 78.0  # below the points is room for the key
SMALLEST, SINGLE, LARGEST = 2.8, 4.0, 20.0  # radii; a single voter is never larger than the second
LABEL_ROOM = 380.0  # for the name of a cluster; where it is longer, its letter stands for it
LEAST_BALLOTS = 3  # of fewer a map shows nothing
MOST_DUELS = 200  # items whose duels the page knows: the best ones
CARRIED = 500_000  # numbers that a page holds of its ballots: less than 2 MB
CLEAR = 0.6  # of the voters of a ballot: more than this share are of one group


def positions(study: Summary) -> FloatArray:
    """Return where each ballot in view stands in the picture, one unit as long in both directions."""
    points = study.placement.points[study.view.rows] * [1, -1]
    low, high = points.min(axis=0), points.max(axis=0)
    whole = np.array([WIDTH, HEIGHT - FOOT])
    scale: float = ((whole - 2 * MARGIN) / np.maximum(high - low, 1e-9)).min()
    places: FloatArray = (points - (low + high) / 2) * scale + whole / 2
    return places


def radii(counts: IntArray) -> FloatArray:
    """Return radii whose squares are as the counts, small ones enlarged so that they can be seen."""
    if counts.max() < 2:
        return np.full(len(counts), SINGLE)
    largest = min(LARGEST, SINGLE * float(np.sqrt(counts.max())))
    return np.asarray(np.maximum(np.sqrt(counts / counts.max()) * largest, SMALLEST))


def strongest_group(study: Summary) -> Indices:
    """Return the group that most voters of each ballot are of, -1 where none clearly is."""
    shares = study.ballots.by_group
    if not shares.shape[1]:
        return np.full(len(shares), -1)
    best = shares.argmax(axis=1)
    clear = shares.max(axis=1) > CLEAR * shares.sum(axis=1)
    return np.where(clear, best, -1)


def coloured_groups(study: Summary) -> list[int]:
    """Return the groups that have a colour of their own: the largest; all others share one."""
    largest = np.argsort(-study.ballots.by_group.sum(axis=0), kind="stable")
    return sorted(largest[: COLOURS + (len(largest) == COLOURS + 1)].tolist())


def group_colours(study: Summary) -> Indices:
    """Return the colour of each ballot in view by its strongest group, -1 where none clearly is."""
    strongest = strongest_group(study)[study.view.rows]
    colour = np.full(len(study.ballots.groups) + 1, COLOURS, dtype=np.intp)
    colour[coloured_groups(study)] = np.arange(len(coloured_groups(study)))
    colour[-1] = -1
    return colour[strongest]


def all_labels(study: Summary) -> Indices:
    """Return the cluster of each ballot."""
    return np.zeros(len(study.ballots.rankings), dtype=np.intp) if study.clustering is None else study.clustering.labels


def carried_rows(study: Summary) -> Indices:
    """Return the ballots that the page knows: those in view, then the most common others, if not too many, all."""
    rankings, n_items = study.ballots.rankings, study.ballots.rankings.n_items
    said = n_items * (n_items - 1) // 2 if isinstance(rankings, Preferences) else n_items
    most = CARRIED // (said + len(study.ballots.groups) + 4)  # and voters, cluster, two coordinates
    others = np.setdiff1d(np.argsort(-rankings.counts, kind="stable"), study.view.rows, assume_unique=True)
    return np.concatenate([study.view.rows, others[: max(most - len(study.view.rows), 0)]])


def map_data(study: Summary) -> dict[str, Any]:
    """Return what the page must know to show ballots, to cut the tree elsewhere, and to describe a selection.

    Ballots that are not in view come last; the page only hands them on.
    """
    rows = carried_rows(study)
    rankings, clustering, words = study.ballots.rankings[rows], study.clustering, study.words
    duels = study.order[:MOST_DUELS]
    return {
        "noun": words.item,
        "nouns": words.items,
        "voter": words.voter,
        "votersNoun": words.voters,
        "ballot": words.ballot,
        "approvals": words.approvals,
        "approving": study.ballots.approving,
        "items": list(rankings.items),
        "groups": list(study.ballots.groups),
        "clusters": [cluster_name(cluster) for cluster in study.grouped.clusters] if study.grouped else [],
        **said_by(rankings),
        "voters": rankings.counts.tolist(),
        "weights": study.view.counts.tolist(),
        "labels": all_labels(study)[rows].tolist(),
        "byGroup": study.ballots.by_group[rows].tolist(),
        "points": study.placement.points[rows].round(5).tolist(),
        "ballots": len(study.ballots.rankings),
        "mergers": clustering.tree[:, :2].astype(int).tolist() if clustering else [],
        "duels": duels.tolist(),
        "ahead": study.majorities.ahead[np.ix_(duels, duels)].tolist(),
        "all": study.majorities.n_voters,
        "shares": study.shares.round(6).tolist(),
        "places": study.places.round(4).tolist(),
        "order": study.order.tolist(),
    }


def said_by(rankings: Data) -> dict[str, Any]:
    """Return what each ballot says: the ranks of its items, or its pairs."""
    if isinstance(rankings, Preferences):
        return {"pairs": rankings.to_pairs()}
    return {"ranks": rankings.ranks.tolist()}


def map_picture(study: Summary) -> Markup:
    """Return the map; its words are written twice, as its points are the same where it is small."""
    places, sizes = positions(study), radii(study.view.counts)
    order = np.argsort(-sizes, kind="stable")  # small points over large ones
    labels, groups = all_labels(study)[study.view.rows].tolist(), group_colours(study).tolist()
    points = [point(study, row, places[row], float(sizes[row]), labels[row], groups[row]) for row in order.tolist()]
    names = [cluster_labels(study, places, size) for size in SIZES]
    return tag(
        "svg",
        tag("g", *points, class_="points"),
        *large_and_small("clusters", names, class_="names by-cluster-only"),
        *large_and_small("axes", [axes(study, size) for size in SIZES]),
        *large_and_small("sizes", [size_key(study, size) for size in SIZES]),
        class_="map by-cluster",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="group",
        aria_label=f"Map of {study.words.count_ballots(len(places))}: those that the kernel sees as similar are near "
        "each other. Arrow keys move from one to the next.",
    )


@dataclass(frozen=True)
class MapSize:
    """How the words of a map are written."""

    letters: float  # the height of those of a name
    axis: float  # of those of an axis and of the key
    room: float  # for the name of a cluster
    enlarged: float  # how many times as large points are drawn
    short: bool  # whether axes are named by their shares alone


SIZES = (MapSize(16.0, 12.0, LABEL_ROOM, 1.0, short=False), MapSize(40.0, 36.0, 0.0, 1.8, short=True))


def point(study: Summary, row: int, place: FloatArray, radius: float, cluster: int, group: int) -> Markup:
    """Return one ballot of the map."""
    ballot = study.ballots.rankings[study.view.rows[row]]
    words = study.words
    name = f"{words.count_voters(int(ballot.counts[0]))}: {ballot_text(ballot, most=8, approvals=words.approvals)}"
    if study.grouped:
        name += f"; cluster {study.grouped.clusters[cluster].name}"
    return tag(
        "circle",
        cx=float(place[0]),
        cy=float(place[1]),
        r=radius,
        class_=f"k{shade(cluster)} {f'g{group}' if group >= 0 else 'gx'}",
        data_row=row,
        tabindex=-1,
        role="img",
        aria_label=name,
    )


def cluster_name(cluster: Cluster) -> str:
    """Return the letter of a cluster and what sets it apart."""
    return f"{cluster.name} · {cluster.mark}"


def cluster_labels(study: Summary, places: FloatArray, size: MapSize) -> list[Markup]:
    """Return the names of the clusters, each where its voters are, none over another."""
    if study.grouped is None:
        return []
    labels, counts = all_labels(study)[study.view.rows], study.view.counts
    spots = []
    for number, cluster in enumerate(study.grouped.clusters):
        own = labels == number
        if own.any():
            middle = np.average(places[own], axis=0, weights=counts[own])
            name = cluster_name(cluster)
            shown = name if text_width(name, size.letters) <= size.room else cluster.name
            spots.append((float(middle[1]), float(middle[0]), number, shown))
    taken: list[tuple[float, float, float]] = []
    written, gap = [], 1.375 * size.letters
    for y, x, number, words in sorted(spots):
        half = text_width(words, size.letters) / 2
        x = min(max(x, half), WIDTH - half)
        y = max(y, 2.5 * size.letters)  # below the name of the axis
        while any(abs(y - y2) < gap and abs(x - x2) < half + half2 for y2, x2, half2 in taken):
            y += gap / 2
        taken.append((y, x, half))
        written.append(tag("text", words, x=x, y=y, class_=f"k{shade(number)}"))
    return written


def axes(study: Summary, size: MapSize) -> list[Markup]:
    """Return what the two directions are."""
    first, second = (percent(share) for share in study.placement.variance.tolist())
    right, up = f"first component, {first} of the variance →", f"↑ second, {second}"
    if size.short:
        right, up = f"{first} →", f"↑ {second}"
    return [
        tag("text", right, x=WIDTH, y=HEIGHT - 6, class_="axis end"),
        tag("text", up, x=0.0, y=size.letters, class_="axis"),
    ]


def size_key(study: Summary, size: MapSize) -> list[Markup]:
    """Return circles that say how many voters a size stands for."""
    largest = int(study.view.counts.max())
    if largest < 2:
        return []
    steps = sorted({1, max(round(largest / 4), 1), largest})
    x, parts = 14.0, []
    for step, radius in zip(steps, (size.enlarged * radii(np.array(steps))).tolist(), strict=True):
        label = study.words.count_voters(step) if step == largest else f"{step:,}"
        parts += [
            tag("circle", cx=x + radius, cy=HEIGHT - 6 - radius, r=radius, class_="key"),
            tag("text", label, x=x + 2 * radius + 5, y=HEIGHT - 6, class_="axis"),
        ]
        x += 2 * radius + 14 + text_width(label, size.axis)
    return parts
