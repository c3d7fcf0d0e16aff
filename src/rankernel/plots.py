"""Pictures with Matplotlib: each function draws into the axes it is given, or new ones, and returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel._utils.arrays import FloatArray
from rankernel._utils.checks import check_instance, check_integer, check_labels, check_list, check_numbers, short_repr
from rankernel.data import as_data
from rankernel.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, a little darker where they are too light for a white page: told apart by all eyes. Then four
# more for pictures of many groups.
COLOURS = (
    *("#0072b2", "#d55e00", "#008a64", "#b8578d", "#b57d00", "#3f9fd6", "#7d5fb5", "#6e4b2a"),
    *("#1f1e1c", "#8f1d21", "#6b8500", "#00a6a6"),
)
GREY = "#b9b3a6"
SOFT = "#6a665e"
SMALLEST, LARGEST, ONE_VOTER = 8.0, 500.0, 24.0  # areas of points, in square points; one voter has at most the last
MOST_BRANCHES = 30
LEGEND_WIDTH = 34  # letters in a line


def axes(ax: Axes | None, width: float = 7.0, height: float = 4.5) -> Axes:
    """Return the axes that were given, or new ones on a figure of that size."""
    if ax is not None:
        return ax
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("matplotlib", "plots") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # without pyplot there is no global state, and no window
    return figure.add_subplot()


def bare(ax: Axes, *sides: str) -> None:
    """Remove the frame of a picture but for some of its sides."""
    for side in ("left", "right", "top", "bottom"):
        ax.spines[side].set_visible(side in sides)


def save(ax: Axes, path: str | Path) -> None:
    """Write the figure of some axes to a file; equal pictures give equal files."""
    figure: Figure = ax.figure  # type: ignore[assignment]
    ending = Path(path).suffix.lower()
    stamps: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "rankernel", "svg.fonttype": "path"}):
        figure.savefig(path, dpi=200, metadata=stamps.get(ending))


# ---------------------------------------------------------------------- pictures


def kernel_map(
    points: ArrayLike,
    counts: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    variance: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a map of rankings, such as :class:`rankernel.KernelMap` makes.

    Parameters
    ----------
    points : array of shape (n_rankings, 2)
        Where each ranking stands.
    counts : array, optional
        How many voters gave each: the area of its point.
    labels : array of int, optional
        The cluster or group of each, from 0; -1 is drawn grey.
    names : sequence of str, optional
        What labels stand for, for the legend. If there are more of them than colours, the smallest are grey "others".
    variance : pair of float, optional
        The shares of the variance, for the axes.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> ax = kernel_map([[0, 0], [1, 2]], counts=[3, 1])
    >>> len(ax.collections[0].get_offsets())
    2
    """
    ax = axes(ax, 7.5, 5.5)
    xy = check_numbers("points", points, (None, 2))
    weights = np.ones(len(xy)) if counts is None else check_numbers("counts", counts, (len(xy),), 0)
    groups = np.zeros(len(xy), dtype=np.intp) if labels is None else cluster_numbers(labels, len(xy))
    titles = [] if names is None else check_list("names", names, "a list of names")
    order = np.argsort(-weights, kind="stable")  # small points over large ones
    colour_of = colours_of(groups, weights)
    colours = [colour_of.get(group, GREY) for group in groups[order].tolist()]
    ax.scatter(
        xy[order, 0], xy[order, 1], s=areas(weights[order]), c=colours, alpha=0.75, edgecolors="white", linewidths=0.4
    )
    if titles:
        add_legend(ax, groups, titles, colour_of)
    shares = [""] * 2
    if variance is not None:
        shares = [f", {share:.0%} of the variance" for share in check_numbers("variance", variance, (None,))[:2]]
        shares += [""] * (2 - len(shares))
    ax.set_xlabel(f"first component{shares[0]}", color=SOFT)
    ax.set_ylabel(f"second component{shares[1]}", color=SOFT)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal", adjustable="datalim")
    bare(ax)
    return ax


def colours_of(groups: NDArray[Any], weights: FloatArray) -> dict[int, str]:
    """Return the colour of each group: none is used twice, and if there are too few, the smallest groups have none."""
    sizes = np.bincount(groups[groups >= 0], weights[groups >= 0])
    with_colour = sorted(np.argsort(-sizes, kind="stable")[: len(COLOURS)].tolist())
    return dict(zip(with_colour, COLOURS, strict=False))


def add_legend(
    ax: Axes, groups: NDArray[Any], names: Sequence[str], colour_of: dict[int, str], below: bool = False
) -> None:
    """Say beside or below a picture what its colours stand for."""
    from textwrap import fill

    from matplotlib.lines import Line2D

    present = set(groups.tolist())
    shown = [(name, colour_of[number]) for number, name in enumerate(names) if number in present & colour_of.keys()]
    others = len([group for group in present if group >= 0 and group not in colour_of])
    if others:
        shown.append((f"{others} others", GREY))
    if -1 in present:
        shown.append(("of several", GREY))
    look: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 7, "markeredgecolor": "white"}
    handles = [Line2D([], [], color=colour, label=fill(plain(name), LEGEND_WIDTH), **look) for name, colour in shown]
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.12) if below else (1.0, 1.0)}
    ax.legend(handles=handles, frameon=False, fontsize=9, ncols=2 if below else 1, **place)


def areas(weights: FloatArray) -> FloatArray:
    """Return the areas of points that stand for so many voters, small ones enlarged so that they can be seen."""
    of_one_voter = min(LARGEST / max(weights.max(), 1.0), ONE_VOTER)
    return np.asarray(np.maximum(weights * of_one_voter, SMALLEST))


def cluster_numbers(labels: ArrayLike, length: int) -> NDArray[Any]:
    """Return the cluster of each row as whole numbers."""
    return check_numbers("labels", labels, (length,)).astype(np.intp)


def plain(name: object) -> str:
    """Return a name as Matplotlib shows it: a dollar sign begins no formula."""
    return str(name).replace("$", r"\$")


def dendrogram(
    Z: ArrayLike,
    labels: ArrayLike | None = None,
    n_branches: int = MOST_BRANCHES,
    ax: Axes | None = None,
    leaves: Sequence[str] | None = None,
    counts: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw a dendrogram, such as :func:`rankernel.linkage` makes, root to the left; of a large one the upper branches.

    Parameters
    ----------
    Z : array of shape (n_rankings - 1, 4)
        A linkage matrix.
    labels : array of int, optional
        The cluster of each leaf: branches of one cluster have its colour.
    n_branches : int
        The most branches to draw.
    ax : Axes, optional
        Where to draw.
    leaves : sequence of str, optional
        What each ranking is called, else its number; a branch of several is called by the one with most voters.
    counts : array, optional
        How many voters gave each ranking.
    names : sequence of str, optional
        What labels stand for, for the legend.

    Examples
    --------
    >>> ax = dendrogram([[0, 1, 0.5, 2], [2, 3, 1.0, 3]], leaves=["a > b", "b > a", "a"], n_branches=2)
    >>> len(ax.collections[0].get_segments()), [label.get_text() for label in ax.get_yticklabels()]
    (1, ['a', 'a > b and 1 more'])
    """
    from matplotlib.collections import LineCollection
    from scipy.cluster.hierarchy import dendrogram as scipy_dendrogram

    tree, most = check_numbers("Z", Z, (None, 4)), check_integer("n_branches", n_branches)
    if not len(tree):
        raise ValueError("Z is empty; a linkage matrix has one row a merger")
    n_leaves = len(tree) + 1
    weights = np.ones(n_leaves) if counts is None else check_numbers("counts", counts, (n_leaves,), 0)
    called = [*map(str, range(n_leaves))] if leaves is None else check_list("leaves", leaves, "a list of names")
    if len(called) != n_leaves:
        raise ValueError(f"leaves has {len(called)} names; the tree has {n_leaves} rankings")
    groups = np.full(n_leaves, -1) if labels is None else cluster_numbers(labels, n_leaves)
    titles = [] if names is None else check_list("names", names, "a list of names")
    clusters, colour_of = node_clusters(tree, groups), colours_of(groups, weights)
    drawn = scipy_dendrogram(
        tree,
        p=most,
        truncate_mode="lastp",
        no_plot=True,
        link_color_func=lambda node: colour_of.get(clusters[node], GREY),
    )
    texts = branch_texts(tree, drawn["leaves"], called, weights, counts is not None)
    ax = axes(ax, 8.5, 1.0 + 0.21 * max(len(texts), 8))
    paths = [np.column_stack([y, x]) for x, y in zip(drawn["icoord"], drawn["dcoord"], strict=True)]
    ax.add_collection(LineCollection(paths, colors=drawn["color_list"], linewidths=1.3))
    ax.set_xlim(1.04 * tree[-1, 2], 0)
    ax.set_ylim(10 * len(texts), 0)
    ax.set_yticks(5 + 10 * np.arange(len(texts)), texts, fontsize=8)
    ax.yaxis.tick_right()
    ax.tick_params(axis="y", length=0)
    for label, node in zip(ax.get_yticklabels(), drawn["leaves"], strict=True):
        label.set_color(colour_of.get(clusters[node], SOFT))
    ax.set_xlabel("distance", color=SOFT)
    bare(ax, "bottom")
    if titles:
        add_legend(ax, groups, titles, colour_of, below=True)
    return ax


def branch_texts(
    tree: FloatArray, nodes: Sequence[int], called: Sequence[str], weights: FloatArray, voters: bool
) -> list[str]:
    """Return what to write beside branches: the ranking with most voters, how many more there are, and the voters."""
    largest, sizes, sums = list(range(len(called))), [1] * len(called), weights.tolist()
    for left, right in tree[:, :2].astype(np.intp).tolist():
        largest.append(max(largest[left], largest[right], key=lambda leaf: (weights[leaf], -leaf)))
        sizes.append(sizes[left] + sizes[right])
        sums.append(sums[left] + sums[right])
    return [
        plain(called[largest[node]])
        + (f" and {sizes[node] - 1:,} more" if sizes[node] > 1 else "")
        + (f" ({sums[node]:,.0f})" if voters else "")
        for node in nodes
    ]


def node_clusters(tree: FloatArray, labels: NDArray[Any]) -> list[int]:
    """Return the cluster of all leaves below each node, -1 if they are of several."""
    clusters: list[int] = labels.tolist()
    for left, right in tree[:, :2].astype(np.intp).tolist():
        clusters.append(clusters[left] if clusters[left] == clusters[right] else -1)
    return clusters


def gram(matrix: ArrayLike, labels: ArrayLike | None = None, ax: Axes | None = None) -> Axes:
    """Draw a Gram matrix, its rows ordered by cluster if labels are given.

    Examples
    --------
    >>> ax = gram([[1.0, 0.2], [0.2, 1.0]])
    >>> ax.images[0].get_array().shape
    (2, 2)
    """
    ax = axes(ax, 5.5, 4.6)
    values = check_numbers("matrix", matrix, (None, None))
    if not values.size:
        raise ValueError(f"matrix has shape {values.shape}; there is nothing to draw")
    if labels is not None:
        if values.shape[0] != values.shape[1]:
            raise ValueError(f"matrix has shape {values.shape}, and labels are for one of rankings with themselves")
        groups = np.unique(check_labels("labels", labels, len(values)), return_inverse=True)[1].ravel()
        order = np.argsort(groups, kind="stable")
        values = values[np.ix_(order, order)]
        for edge in np.flatnonzero(np.diff(groups[order])) + 0.5:
            ax.axhline(edge, color="white", linewidth=0.8)
            ax.axvline(edge, color="white", linewidth=0.8)
    image = ax.imshow(values, cmap="cividis", interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="kernel value", shrink=0.8)
    ax.set_xticks([])
    ax.set_yticks([])
    bare(ax)
    return ax


def preferences(X: Any, ax: Axes | None = None) -> Axes:
    """Draw the share of voters who prefer the item of a row to that of a column, the items in Borda's order.

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ax = preferences(Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 1]))
    >>> [text.get_text() for text in ax.texts]
    ['75', '25']
    """
    from rankernel.models.consensus import borda, pairwise_preferences

    rankings = as_data(X)
    order = np.argsort(borda(rankings, ties="items").ranking.ranks[0])
    shares = pairwise_preferences(rankings)[np.ix_(order, order)]
    np.fill_diagonal(shares, np.nan)
    names = [plain(rankings.items[item]) for item in order.tolist()]
    ax = axes(ax, 1.5 + 0.5 * len(names), 1.2 + 0.5 * len(names))
    ax.imshow(shares, cmap="PuOr", vmin=0, vmax=1)
    for row, column in np.argwhere(~np.isnan(shares)).tolist():
        ax.text(column, row, f"{100 * shares[row, column]:.0f}", ha="center", va="center", fontsize=8)
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    bare(ax)
    return ax


def null_distribution(result: Any, ax: Axes | None = None) -> Axes:
    """Draw the null distribution of a test, and where its statistic stands.

    Parameters
    ----------
    result : MMDResult, HSICResult or the like
        What a test found.
    ax : Axes, optional
        Where to draw.
    """
    if not all(hasattr(result, name) for name in ("null_distribution", "statistic", "pvalue")):
        raise TypeError(f"result={short_repr(result)} is not possible; give what a test found, such as mmd_test(X, Y)")
    ax = axes(ax, 6.0, 3.2)
    ax.hist(result.null_distribution, bins=40, color=GREY)
    ax.axvline(result.statistic, color=COLOURS[1], linewidth=2)
    ax.annotate(
        f"found: {result.statistic:.3g}\np = {result.pvalue:.2g}",
        (result.statistic, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(-6, 0),
        textcoords="offset points",
        ha="right",
        va="top",
        color=COLOURS[1],
    )
    ax.set_xlabel("statistic for random divisions of the voters", color=SOFT)
    ax.set_yticks([])
    bare(ax, "bottom")
    return ax


def differences(found: Any, most: int = 12, ax: Axes | None = None) -> Axes:
    """Draw in what groups differ: for pairs of items the share of each group that prefers the first to the second.

    Parameters
    ----------
    found : Differences
        What ``result.differences()`` gives.
    most : int
        How many pairs to draw, those that make most of the difference.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from rankernel import Rankings, mmd_test
    >>> X = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[5, 1])
    >>> Y = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[1, 5])
    >>> ax = differences(mmd_test(X, Y).differences())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['a to b', 'a to c', 'b to c']
    """
    if not all(hasattr(found, name) for name in ("pairs", "groups")):
        raise TypeError(f"found={short_repr(found)} is not possible; give result.differences() of a test of groups")
    pairs = found.pairs[: check_integer("most", most)]
    ax = axes(ax, 7.0, 1.2 + 0.32 * len(pairs))
    step = 0.5 / max(len(found.groups), 1)
    ax.axvline(0.5, color=GREY, linewidth=1)
    for number, group in enumerate(found.groups):
        colour, y = (
            COLOURS[number % len(COLOURS)],
            np.arange(len(pairs)) + step * (number - (len(found.groups) - 1) / 2),
        )
        shares = np.array([pair.shares[number] for pair in pairs])
        ends = np.array([pair.intervals[number] for pair in pairs]).T
        ax.errorbar(shares, y, xerr=np.abs(ends - shares), fmt="o", color=colour, markersize=5, label=plain(group))
    ax.set_yticks(range(len(pairs)), [plain(f"{pair.first} to {pair.second}") for pair in pairs])
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_xlabel(f"share that prefers the first, {found.confidence_level:.0%} intervals", color=SOFT)
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.tick_params(left=False)
    bare(ax, "bottom")
    return ax


def pairs_of_groups(found: Any, most: int = 20, ax: Axes | None = None) -> Axes:
    """Draw how much pairs of groups differ: the effect of each with its interval, those that differ in colour.

    Parameters
    ----------
    found : PairwiseResult
        What ``result.pairwise()`` gives.
    most : int
        How many pairs to draw, those that differ most clearly.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from rankernel import datasets, k_sample_test
    >>> election = datasets.load_example()
    >>> ax = pairs_of_groups(k_sample_test(election.rankings, election.groups, n_permutations=99).pairwise())
    >>> len(ax.get_yticklabels())
    3
    """
    if not all(hasattr(found, name) for name in ("effect_intervals", "rejected", "order")):
        raise TypeError(
            f"found={short_repr(found)} is not possible; give result.pairwise() of a test of several groups"
        )
    places = found.order()[: check_integer("most", most)]
    ax = axes(ax, 7.0, 1.2 + 0.28 * len(places))
    effects, ends = found.effects[places], found.effect_intervals[places]
    colours = [COLOURS[0] if differs else GREY for differs in found.rejected[places]]
    ax.hlines(range(len(places)), ends[:, 0], ends[:, 1], colors=colours, linewidth=2)
    ax.scatter(effects, range(len(places)), c=colours, zorder=3)
    ax.set_yticks(range(len(places)), [plain(f"{found.first[p]} and {found.second[p]}") for p in places])
    ax.invert_yaxis()
    ax.set_xlabel("effect, 95% intervals; in colour where groups differ", color=SOFT)
    ax.tick_params(left=False)
    bare(ax, "bottom")
    return ax


def outlying_ballots(found: Any, ax: Axes | None = None) -> Axes:
    """Draw how far each ballot is from the rest, the farthest first, those that are outlying in colour.

    Parameters
    ----------
    found : OutlierResult
        What :func:`rankernel.outlier_test` gives.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from rankernel import datasets, outlier_test
    >>> ax = outlying_ballots(outlier_test(datasets.mallows(30, 5, 1.0, rng=1)))
    >>> len(ax.collections[0].get_offsets())
    30
    """
    if not all(hasattr(found, name) for name in ("distances", "is_outlier", "order")):
        raise TypeError(f"found={short_repr(found)} is not possible; give what outlier_test found")
    ax = axes(ax, 7.0, 3.5)
    order = found.order()
    counts = found.rankings.counts[order]
    last = np.cumsum(counts)
    colours = [COLOURS[1] if named else GREY for named in found.is_outlier[order]]
    ax.scatter(last - counts / 2 + 0.5, found.distances[order], s=areas(counts.astype(np.float64)), c=colours)
    ax.set_xlabel("ballots, the farthest first; outlying ones in colour", color=SOFT)
    ax.set_ylabel("squared distance", color=SOFT)
    bare(ax, "left", "bottom")
    return ax


def variance_curves(
    n_draws: ArrayLike,
    curves: Mapping[str, ArrayLike],
    spread: Mapping[str, ArrayLike] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the variance of estimators goes down with the number of draws, each curve named at its end.

    Parameters
    ----------
    n_draws : array
        Numbers of draws.
    curves : mapping of name to array
        The variance of each estimator at these numbers.
    spread : mapping of name to array, optional
        The standard error of these variances, drawn as a band.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> ax = variance_curves([1, 2, 4], {"iid": [1, 0.5, 0.25], "antithetic": [0.2, 0.1, 0.05]})
    >>> [text.get_text() for text in ax.texts]
    ['iid', 'antithetic']
    """
    ax = axes(ax, 6.5, 4.0)
    x = check_numbers("n_draws", n_draws, (None,), 0)
    if not x.size:
        raise ValueError("n_draws is empty; there is nothing to draw")
    check_instance("curves", curves, Mapping, "a mapping from names to arrays")
    bands = (
        {} if spread is None else check_instance("spread", spread, Mapping, "a mapping from names to arrays, or None")
    )
    for number, (name, values) in enumerate(curves.items()):
        colour, y = COLOURS[number % len(COLOURS)], check_numbers("curves", values, (len(x),))
        ax.plot(x, y, color=colour, marker="o", markersize=3.5, linewidth=1.6)
        if name in bands:
            error = check_numbers("spread", bands[name], (len(x),))
            ax.fill_between(x, np.maximum(y - error, y * 1e-3), y + error, color=colour, alpha=0.18, linewidth=0)
        ax.annotate(plain(name), (x[-1], y[-1]), (6, 0), textcoords="offset points", va="center", color=colour)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("draws of each ranking", color=SOFT)
    ax.set_ylabel("variance", color=SOFT)
    bare(ax, "left", "bottom")
    return ax
