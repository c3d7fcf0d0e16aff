"""The map of the ballots: a point for each, its area the voters behind it."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankernel.analysis.clustering import Cluster
from rankernel.analysis.phrases import ballot_text, percent, plural
from rankernel.analysis.summary import Summary
from rankernel.arrays import FloatArray, Indices, IntArray
from rankernel.data import Data
from rankernel.pages.layout import COLOURS, shade
from rankernel.pages.markup import Markup, join, tag
from rankernel.pages.text_width import fitted, text_width
from rankernel.preferences import Preferences

WIDTH, HEIGHT, MARGIN, FOOT = 960.0, 640.0, 30.0, 50.0  # below the points is room for the key
SMALLEST, SINGLE, LARGEST = 2.6, 4.0, 20.0  # radii; a single voter is never larger than the second
LABEL_GAP, LABEL_SIZE, LABEL_ROOM = 22.0, 16.0, 300.0
MOST_DUELS = 200  # items whose duels the page knows
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
    rankings, clustering = study.ballots.rankings[rows], study.clustering
    return {
        "noun": study.source.noun,
        "nouns": study.source.nouns,
        "approvals": study.source.approvals,
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
        "ahead": study.majorities.ahead.tolist() if rankings.n_items <= MOST_DUELS else [],
        "all": study.majorities.n_voters,
        "order": study.order.tolist(),
    }


def said_by(rankings: Data) -> dict[str, Any]:
    """Return what each ballot says: the ranks of its items, or its pairs."""
    if isinstance(rankings, Preferences):
        return {"pairs": rankings.to_pairs()}
    return {"ranks": rankings.ranks.tolist()}


def map_picture(study: Summary) -> Markup:
    """Return the map."""
    places, sizes = positions(study), radii(study.view.counts)
    order = np.argsort(-sizes, kind="stable")  # small points over large ones
    labels, groups = all_labels(study)[study.view.rows].tolist(), group_colours(study).tolist()
    points = [point(study, row, places[row], float(sizes[row]), labels[row], groups[row]) for row in order.tolist()]
    return tag(
        "svg",
        tag("g", *points, class_="points"),
        tag("g", *cluster_labels(study, places), class_="names by-cluster-only", aria_hidden="true"),
        *axes(study),
        class_="map by-cluster",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="group",
        aria_label=f"Map of {plural(len(places), 'ballot')}: ballots that the kernel sees as similar are near each "
        "other. Arrow keys move from ballot to ballot.",
    )


def point(study: Summary, row: int, place: FloatArray, radius: float, cluster: int, group: int) -> Markup:
    """Return one ballot of the map."""
    ballot = study.ballots.rankings[study.view.rows[row]]
    name = f"{plural(int(ballot.counts[0]), 'voter')}: {ballot_text(ballot, most=8, approvals=study.source.approvals)}"
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


def cluster_labels(study: Summary, places: FloatArray) -> list[Markup]:
    """Return the names of the clusters, each where its voters are, none over another."""
    if study.grouped is None:
        return []
    labels, counts = all_labels(study)[study.view.rows], study.view.counts
    spots = []
    for number, cluster in enumerate(study.grouped.clusters):
        own = labels == number
        if own.any():
            middle = np.average(places[own], axis=0, weights=counts[own])
            spots.append((float(middle[1]), float(middle[0]), number, cluster_name(cluster)))
    taken: list[tuple[float, float, float]] = []
    written = []
    for y, x, number, name in sorted(spots):
        words = fitted(name, LABEL_ROOM, LABEL_SIZE)
        half = text_width(words, LABEL_SIZE) / 2
        x = min(max(x, half), WIDTH - half)
        while any(abs(y - y2) < LABEL_GAP and abs(x - x2) < half + half2 for y2, x2, half2 in taken):
            y += LABEL_GAP / 2
        taken.append((y, x, half))
        written.append(tag("text", words, x=x, y=y, class_=f"k{shade(number)}"))
    return written


def axes(study: Summary) -> list[Markup]:
    """Return what the two directions are, and how large points are."""
    first, second = study.placement.variance.tolist()
    texts = [
        tag("text", f"first component, {percent(first)} of the variance →", x=WIDTH, y=HEIGHT - 6, class_="axis end"),
        tag("text", f"↑ second, {percent(second)}", x=0.0, y=16.0, class_="axis"),
    ]
    return [tag("g", *texts, aria_hidden="true"), size_key(study)]


def size_key(study: Summary) -> Markup:
    """Return circles that say how many voters a size stands for."""
    counts = study.view.counts
    largest = int(counts.max())
    if largest < 2:
        return join([])
    steps = sorted({1, max(round(largest / 4), 1), largest})
    sizes = radii(np.array(steps)).tolist()
    x, parts = 14.0, []
    for step, size in zip(steps, sizes, strict=True):
        parts.append(tag("circle", cx=x + size, cy=HEIGHT - 6 - size, r=size, class_="key"))
        label = plural(step, "voter") if step == largest else f"{step:,}"
        parts.append(tag("text", label, x=x + 2 * size + 5, y=HEIGHT - 6, class_="axis"))
        x += 2 * size + 34
    return tag("g", *parts, aria_hidden="true")
