"""Matplotlib pictures: each function draws into the given axes, or into new ones, and returns them.

Notebooks show ``ax.figure``, also without pyplot.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankernel._utils import FloatArray
from rankernel._utils.checks import (
    check_integer,
    check_labels,
    check_list,
    check_numbers,
    check_path,
    check_text,
    short_repr,
)
from rankernel.data import as_data
from rankernel.errors import ArgumentValueError, missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, slightly darker where it is too light for a white page, and four more colours.
COLOURS = (
    *("#0072b2", "#d55e00", "#008a64", "#b8578d", "#b57d00", "#3f9fd6", "#7d5fb5", "#6e4b2a"),
    *("#1f1e1c", "#8f1d21", "#6b8500", "#00a6a6"),
)
GREY = "#b9b3a6"
SOFT = "#6a665e"
MIN_AREA, MAX_AREA, VOTER_AREA = 8.0, 500.0, 24.0  # of points, in square points; one voter has at most the last
LEGEND_WIDTH = 34  # characters


def axes(ax: Axes | None, width: float = 7.0, height: float = 4.5, title: str | None = None) -> Axes:
    """Return the given axes, or new ones on a figure of a size in inches, with a title."""
    if title is not None:
        ax = axes(ax, width, height)
        ax.set_title(escape_math(check_text("title", title)), fontsize=11)
    if ax is not None:
        return check_result("ax", ax, ("figure", "spines", "plot"), "Matplotlib axes, or None for new ones")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("matplotlib", "plots") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # without pyplot there is no global state and no window
    figure._repr_png_ = partial(as_png, figure)  # type: ignore[attr-defined]  # notebooks show ax.figure
    return figure.add_subplot()


def as_png(figure: Figure) -> bytes:
    """Return a figure as a PNG file."""
    content = BytesIO()
    figure.savefig(content, format="png", dpi=100)
    return content.getvalue()


def remove_frame(ax: Axes, *sides: str) -> None:
    """Remove the frame of the axes, except for the given sides."""
    for side in ("left", "right", "top", "bottom"):
        ax.spines[side].set_visible(side in sides)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Label rows 0, 1, ... from the top, with a frame at the bottom only."""
    ax.set_yticks(range(len(names)), [escape_math(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    remove_frame(ax, "bottom")


def escape_math(name: object) -> str:
    """Return a name with its dollar signs escaped, which would begin a formula."""
    return str(name).replace("$", r"\$")


def check_result(name: str, result: Any, attributes: Sequence[str], wanted: str) -> Any:
    """Return a result that has the attributes to draw."""
    if not all(hasattr(result, attribute) for attribute in attributes):
        raise TypeError(f"{name}={short_repr(result)} is not possible; give {wanted}")
    return result


def save(ax: Axes, path: str | Path) -> None:
    """Write the figure of the axes to a file; equal pictures give identical files.

    Parameters
    ----------
    ax : Axes
        Axes of Matplotlib, as returned by the functions of this module.
    path : path
        The file; its suffix is the format, such as ``.png``, ``.svg`` or ``.pdf``.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "map.svg")
    >>> save(kernel_map([[0, 0], [1, 2]]), path)
    >>> path.is_file()
    True
    """
    figure: Figure = check_result("ax", ax, ("figure", "spines", "plot"), "Matplotlib axes").figure
    path = check_path("path", path)
    types = figure.canvas.get_supported_filetypes()
    if path.suffix.lower().removeprefix(".") not in {"", *types}:
        raise ArgumentValueError("path", path, f"a name that ends with one of {', '.join(sorted(types))}")
    dates: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "rankernel", "svg.fonttype": "path"}):
        figure.savefig(path, dpi=200, metadata=dates.get(path.suffix.lower()))


# ---------------------------------------------------------------------- rankings


def kernel_map(
    points: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    variance: ArrayLike | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a map of rankings, such as the coordinates of :class:`rankernel.KernelMap`.

    Parameters
    ----------
    points : array of shape (n_rankings, 2)
        Coordinates of the rankings.
    counts : array, optional
        Number of voters of each ranking, shown as the area of its point.
    groups : array of int, optional
        Cluster or group of each ranking, from 0; -1 is grey.
    names : sequence of str, optional
        Names of the groups, for the legend. If there are more groups than colours, the smallest are grey "others".
    labels : sequence of str, optional
        Name of the group of each ranking, instead of ``groups`` and ``names``.
    variance : pair of float, optional
        Shares of the variance, for the names of the axes.
    title : str, optional
        Title of the axes.
    ax : Axes, optional
        Axes to draw into.

    Returns
    -------
    Axes
        The axes.

    See Also
    --------
    rankernel.KernelMap : Coordinates of the map.
    dendrogram : The same rankings as a tree.

    Examples
    --------
    >>> ax = kernel_map([[0, 0], [1, 2]], counts=[3, 1], labels=["north", "south"])
    >>> len(ax.collections[0].get_offsets()), [text.get_text() for text in ax.get_legend().get_texts()]
    (2, ['north', 'south'])
    """
    xy = check_numbers("points", points, (None, 2))
    if labels is not None:
        if groups is not None or names is not None:
            raise ValueError("labels is given together with groups or names; give either labels, or groups and names")
        distinct, groups = np.unique(check_labels("labels", labels, len(xy)), return_inverse=True)
        names = [str(name) for name in distinct]
    ax = axes(ax, 7.5, 5.5, title)
    weights = np.ones(len(xy)) if counts is None else check_numbers("counts", counts, (len(xy),), 0)
    numbers = np.zeros(len(xy), dtype=np.intp) if groups is None else group_numbers(groups, len(xy))
    titles = [] if names is None else check_list("names", names, "a list of names")
    order = np.argsort(-weights, kind="stable")  # small points over large ones
    colour_of = colours_by_size(numbers, weights)
    colours = [colour_of.get(group, GREY) for group in numbers[order].tolist()]
    sizes = point_areas(weights[order])
    ax.scatter(xy[order, 0], xy[order, 1], s=sizes, c=colours, alpha=0.75, edgecolors="white", linewidths=0.4)
    if titles:
        add_legend(ax, numbers, titles, colour_of)
    shares = [""] * 2
    if variance is not None:
        shares = [f", {share:.0%} of the variance" for share in check_numbers("variance", variance, (None,))[:2]]
        shares += [""] * (2 - len(shares))
    ax.set_xlabel(f"first component{shares[0]}", color=SOFT)
    ax.set_ylabel(f"second component{shares[1]}", color=SOFT)
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    remove_frame(ax)
    return ax


def colours_by_size(groups: NDArray[Any], weights: FloatArray) -> dict[int, str]:
    """Return the colours of the largest groups; no colour is used twice."""
    sizes = np.bincount(groups[groups >= 0], weights[groups >= 0])
    coloured = sorted(np.argsort(-sizes, kind="stable")[: len(COLOURS)].tolist())
    return dict(zip(coloured, COLOURS, strict=False))


def add_legend(
    ax: Axes, groups: NDArray[Any], names: Sequence[str], colour_of: dict[int, str], below: bool = False
) -> None:
    """Add the legend of the group colours beside or below the axes."""
    from textwrap import fill

    from matplotlib.lines import Line2D

    present = set(groups.tolist())
    entries = [(name, colour_of[number]) for number, name in enumerate(names) if number in present & colour_of.keys()]
    n_others = len([group for group in present if group >= 0 and group not in colour_of])
    entries += [(f"{n_others} others", GREY)] * (n_others > 0) + [("of several", GREY)] * (-1 in present)
    style: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 7, "markeredgecolor": "white"}
    handles = [Line2D([], [], color=c, label=fill(escape_math(name), LEGEND_WIDTH), **style) for name, c in entries]
    position: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.12) if below else (1.0, 1.0)}
    ax.legend(handles=handles, frameon=False, fontsize=9, ncols=2 if below else 1, **position)


def point_areas(weights: FloatArray) -> FloatArray:
    """Return areas of points proportional to weights, small ones enlarged to be visible."""
    scale = min(MAX_AREA / max(weights.max(), 1.0), VOTER_AREA)
    return np.asarray(np.maximum(weights * scale, MIN_AREA))


def group_numbers(groups: ArrayLike, length: int) -> NDArray[Any]:
    """Return the group of each row as an integer."""
    return check_numbers("groups", groups, (length,)).astype(np.intp)


def dendrogram(
    Z: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    leaves: Sequence[str] | None = None,
    counts: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    n_branches: int = 30,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the upper branches of a dendrogram, such as one of :func:`rankernel.linkage`, with the root at the left.

    Parameters
    ----------
    Z : array of shape (n_rankings - 1, 4)
        A linkage matrix.
    groups, counts, names
        As in :func:`kernel_map`; branches of one cluster have its colour.
    leaves : sequence of str, optional
        Name of each ranking, by default its index; a branch has the name of its ranking with most voters.
    n_branches : int
        Maximum number of branches.
    title, ax
        As in :func:`kernel_map`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = dendrogram([[0, 1, 0.5, 2], [2, 3, 1.0, 3]], leaves=["a > b", "b > a", "a"], n_branches=2)
    >>> len(ax.collections[0].get_segments()), [label.get_text() for label in ax.get_yticklabels()]
    (1, ['a', 'a > b and 1 more'])
    """
    from matplotlib.collections import LineCollection
    from scipy.cluster.hierarchy import dendrogram as scipy_dendrogram

    from rankernel.learn.hierarchy import node_clusters, node_summaries

    tree, limit = check_numbers("Z", Z, (None, 4)), check_integer("n_branches", n_branches)
    if not len(tree):
        raise ValueError("Z is empty; a linkage matrix has one row for each merge")
    n_leaves = len(tree) + 1
    weights = np.ones(n_leaves) if counts is None else check_numbers("counts", counts, (n_leaves,), 0)
    leaf_names = [*map(str, range(n_leaves))] if leaves is None else check_list("leaves", leaves, "a list of names")
    if len(leaf_names) != n_leaves:
        raise ValueError(f"leaves has {len(leaf_names)} names; the tree has {n_leaves} rankings")
    numbers = np.full(n_leaves, -1) if groups is None else group_numbers(groups, n_leaves)
    titles = [] if names is None else check_list("names", names, "a list of names")
    clusters, colour_of = node_clusters(tree, numbers), colours_by_size(numbers, weights)
    drawn = scipy_dendrogram(
        tree,
        p=limit,
        truncate_mode="lastp",
        no_plot=True,
        link_color_func=lambda node: colour_of.get(clusters[node], GREY),
    )
    largest, sizes, sums = node_summaries(tree, weights)
    texts = [  # the ranking with most voters, the number of others, and the number of voters
        escape_math(leaf_names[largest[node]])
        + (f" and {sizes[node] - 1:,} more" if sizes[node] > 1 else "")
        + (f" ({sums[node]:,.0f})" if counts is not None else "")
        for node in drawn["leaves"]
    ]
    ax = axes(ax, 8.5, 1.0 + 0.21 * max(len(texts), 8), title)
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
    remove_frame(ax, "bottom")
    if titles:
        add_legend(ax, numbers, titles, colour_of, below=True)
    return ax


def gram(
    matrix: ArrayLike, *, groups: ArrayLike | None = None, title: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a Gram matrix, with its rows and columns sorted by group if groups are given.

    Parameters
    ----------
    matrix : array of shape (n_rankings, n_rankings)
        The Gram matrix.
    groups : array of shape (n_rankings,), optional
        Group of each ranking.
    title, ax
        As in :func:`kernel_map`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = gram([[1.0, 0.2], [0.2, 1.0]])
    >>> ax.images[0].get_array().shape
    (2, 2)
    """
    ax = axes(ax, 5.5, 4.6, title)
    values = check_numbers("matrix", matrix, (None, None))
    if not values.size:
        raise ValueError(f"matrix has shape {values.shape}; it must have at least one entry")
    if groups is not None:
        if values.shape[0] != values.shape[1]:
            raise ValueError(f"matrix has shape {values.shape}; with groups it must be square")
        numbers = np.unique(check_labels("groups", groups, len(values)), return_inverse=True)[1].ravel()
        order = np.argsort(numbers, kind="stable")
        values = values[np.ix_(order, order)]
        for edge in np.flatnonzero(np.diff(numbers[order])) + 0.5:
            ax.axhline(edge, color="white", linewidth=0.8)
            ax.axvline(edge, color="white", linewidth=0.8)
    image = ax.imshow(values, cmap="cividis", interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="kernel value", shrink=0.8)
    ax.set(xticks=[], yticks=[])
    remove_frame(ax)
    return ax


def pairwise_preferences(X: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the percentage of voters who prefer the item of the row to that of the column, items in Borda order.

    A voter who prefers neither counts one half for each.

    Parameters
    ----------
    X : Rankings, Preferences or integer array
        The rankings.
    title, ax
        As in :func:`kernel_map`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from rankernel import Rankings
    >>> ax = pairwise_preferences(Rankings.from_orders([["a", "b"], ["b", "a"]], counts=[3, 1]))
    >>> [text.get_text() for text in ax.texts]
    ['75', '25']
    """
    from rankernel.models.consensus import borda
    from rankernel.models.consensus import pairwise_preferences as preference_shares

    rankings = as_data(X)
    order = np.argsort(borda(rankings, ties="items").ranking.ranks[0])
    shares = preference_shares(rankings)[np.ix_(order, order)]
    np.fill_diagonal(shares, np.nan)
    names = [escape_math(rankings.items[item]) for item in order.tolist()]
    ax = axes(ax, 1.5 + 0.5 * len(names), 1.2 + 0.5 * len(names), title)
    ax.imshow(shares, cmap="PuOr", vmin=0, vmax=1)
    for row, column in np.argwhere(~np.isnan(shares)).tolist():
        ax.text(column, row, f"{100 * shares[row, column]:.0f}", ha="center", va="center", fontsize=8)
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    remove_frame(ax)
    return ax


# ---------------------------------------------------------------------- results of tests


def null_distribution(result: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the null distribution of a test and its statistic.

    Parameters
    ----------
    result : KernelTestResult
        The result of a permutation test, such as that of :func:`mmd_test`.
    title, ax
        As in :func:`kernel_map`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from rankernel import mmd_test
    >>> ax = null_distribution(mmd_test([[0, 1, 2], [0, 2, 1]], [[2, 1, 0], [2, 0, 1]], "mallows", n_permutations=99))
    >>> ax.get_xlabel()
    'statistic under the null hypothesis'
    """
    check_result("result", result, ("null_distribution", "statistic", "pvalue"), "a test result, as of mmd_test(X, Y)")
    ax = axes(ax, 6.0, 3.2, title)
    ax.hist(result.null_distribution, bins=40, color=GREY)
    ax.axvline(result.statistic, color=COLOURS[1], linewidth=2)
    text = f"observed: {result.statistic:.3g}\np = {result.pvalue:.2g}"
    point, coordinates = (result.statistic, 0.97), ("data", "axes fraction")
    ax.annotate(text, point, (-6, 0), coordinates, "offset points", ha="right", va="top", color=COLOURS[1])
    ax.set_xlabel("statistic under the null hypothesis", color=SOFT)
    ax.set_yticks([])
    remove_frame(ax, "bottom")
    return ax


def evalues(test: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the e-values of a sequential test, and the value at which its null hypothesis is rejected.

    Parameters
    ----------
    test : SequentialMMDTest
        The test.
    title, ax
        As in :func:`kernel_map`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from rankernel import Mallows, SequentialMMDTest
    >>> test = SequentialMMDTest(Mallows(0.5)).update([[0, 1, 2], [0, 2, 1]], [[2, 1, 0], [2, 0, 1]])
    >>> evalues(test).get_ylabel()
    'e-value'
    """
    check_result("test", test, ("log_evalues", "alpha"), "a SequentialMMDTest")
    ax = axes(ax, 6.0, 3.2, title)
    ax.plot(np.arange(len(test.log_evalues) + 1), np.exp(np.minimum([0.0, *test.log_evalues], 700)), color=COLOURS[0])
    ax.axhline(1 / test.alpha, color=COLOURS[1], linewidth=1, linestyle="--")
    ax.set_yscale("log")
    ax.set_xlabel("observations", color=SOFT)
    ax.set_ylabel("e-value", color=SOFT)
    remove_frame(ax, "left", "bottom")
    return ax


def differences(
    result: Any,
    *,
    names: Sequence[str] | None = None,
    limit: int = 12,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of each group that ranks the first item of a pair above the second, where groups differ most.

    A dotted line is the share of undecided voters; the remainder prefers the second item.

    Parameters
    ----------
    result : Differences
        The result of ``differences()`` of a test of groups.
    names : sequence of str, optional
        Names of the groups for the legend; by default those of the result, X and Y after a two-sample test.
    limit : int
        Maximum number of pairs.
    title, ax
        As in :func:`kernel_map`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from rankernel import Rankings, mmd_test
    >>> X = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[5, 1])
    >>> Y = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], counts=[1, 5])
    >>> ax = differences(mmd_test(X, Y).differences())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['a above b', 'a above c', 'b above c']
    """
    check_result("result", result, ("pairs", "groups"), "test.differences() of a test of groups")
    groups = result.groups if names is None else check_list("names", names, "a list of names")
    if len(groups) != len(result.groups):
        raise ValueError(f"names has {len(groups)} names; the result has {len(result.groups)} groups")
    pairs = result.pairs[: check_integer("limit", limit)]
    ax = axes(ax, 7.0, 1.2 + 0.32 * len(pairs), title)
    step, middle = 0.5 / max(len(result.groups), 1), (len(result.groups) - 1) / 2
    ax.axvline(0.5, color=GREY, linewidth=1)
    for number, group in enumerate(groups):
        y = np.arange(len(pairs)) + step * (number - middle)
        shares = np.array([pair.shares[number] for pair in pairs])
        errors = np.abs(np.array([pair.intervals[number] for pair in pairs]).T - shares)
        colour = COLOURS[number % len(COLOURS)]
        ax.errorbar(shares, y, xerr=errors, fmt="o", color=colour, markersize=5, label=escape_math(group))
        undecided = [(pair.shares[number], 1 - pair.against[number]) for pair in pairs]
        ax.hlines(y, *zip(*undecided, strict=True), color=colour, linewidth=1, linestyle=":")
    name_rows(ax, [f"{pair.first} above {pair.second}" for pair in pairs])
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    dotted = "; dotted: undecided" if any(any(pair.undecided) for pair in pairs) else ""
    ax.set_xlabel(f"share that prefers the first, {result.confidence_level:.0%} intervals{dotted}", color=SOFT)
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def pairwise_effects(result: Any, *, limit: int = 20, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the effects between pairs of groups with their intervals, significant ones in colour.

    Parameters
    ----------
    result : PairwiseResult
        The result of ``pairwise()`` of a test of several groups.
    limit : int
        Maximum number of pairs, the most significant ones.
    title, ax
        As in :func:`kernel_map`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from rankernel import datasets, k_sample_test
    >>> election = datasets.load_example()
    >>> ax = pairwise_effects(k_sample_test(election.rankings, election.groups, n_permutations=99).pairwise())
    >>> len(ax.get_yticklabels())
    3
    """
    check_result("result", result, ("effect_intervals", "rejected", "order"), "test.pairwise() of several groups")
    shown = result.order()[: check_integer("limit", limit)]
    ax = axes(ax, 7.0, 1.2 + 0.28 * len(shown), title)
    intervals, rows = result.effect_intervals[shown], range(len(shown))
    colours = [COLOURS[0] if rejected else GREY for rejected in result.rejected[shown]]
    ax.hlines(rows, intervals[:, 0], intervals[:, 1], colors=colours, linewidth=2)
    ax.scatter(result.effects[shown], rows, c=colours, zorder=3)
    name_rows(ax, [f"{result.first[pair]} and {result.second[pair]}" for pair in shown])
    ax.set_xlabel("effect, 95% intervals; significant ones in colour", color=SOFT)
    return ax


def outliers(result: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the squared distance of each ranking from the others, the largest first, outliers in colour.

    Parameters
    ----------
    result : OutlierResult
        The result of :func:`rankernel.outlier_test`.
    title, ax
        As in :func:`kernel_map`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from rankernel import datasets, outlier_test
    >>> ax = outliers(outlier_test(datasets.mallows(30, 5, 1.0, rng=1)))
    >>> len(ax.collections[0].get_offsets())
    30
    """
    check_result("result", result, ("distances", "is_outlier", "order"), "the result of outlier_test")
    ax = axes(ax, 7.0, 3.5, title)
    order = result.order()
    counts = result.rankings.counts[order]
    x = np.cumsum(counts) - counts / 2 + 0.5
    colours = [COLOURS[1] if is_outlier else GREY for is_outlier in result.is_outlier[order]]
    ax.scatter(x, result.distances[order], s=point_areas(counts.astype(np.float64)), c=colours)
    ax.set_xlabel("rankings by distance; outliers in colour", color=SOFT)
    ax.set_ylabel("squared distance", color=SOFT)
    remove_frame(ax, "left", "bottom")
    return ax


def leaderboard(result: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the scores of a leaderboard with their intervals, best first, beside the intervals of ranks.

    Dashed lines divide groups: every item above a line is separated from every item below it. Items that may be the
    first are blue.

    Parameters
    ----------
    result : Leaderboard
        The result of :func:`rankernel.leaderboard`.
    title, ax
        As in :func:`kernel_map`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from rankernel import Rankings
    >>> from rankernel import leaderboard as ranked
    >>> ax = leaderboard(ranked(Rankings.from_orders([["a", "b"]] * 5 + [["b", "a"]])))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['a', 'b']
    """
    names = ("items", "scores", "intervals", "rank_intervals", "above")
    check_result("result", result, names, "the result of rankernel.leaderboard")
    n = len(result.items)
    ax = axes(ax, 7.5, 1.2 + 0.26 * n, title)
    low, high = result.intervals.T
    below_first = result.rank_intervals[:, 0] > 1
    colours = [SOFT if is_below else COLOURS[0] for is_below in below_first.tolist()]
    ax.hlines(range(n), low, high, colors=colours, lw=2)
    ax.scatter(result.scores, range(n), c=colours, s=26, zorder=3)
    above = result.above.before[0]
    for row in range(1, n):
        if above[:row, row:].all():
            ax.axhline(row - 0.5, color=SOFT, linewidth=1, linestyle="--")
    name_rows(ax, result.items)
    percent = f"{result.confidence_level:.0%}"
    ax.set_xlabel(f"{result.score.replace('_', ' ')} with {percent} intervals ({result.units} resampled)")
    ranks = ax.secondary_yaxis("right")
    texts = [f"{a}" if a == b else f"{a} to {b}" for a, b in result.rank_intervals.tolist()]
    ranks.set_yticks(range(n), texts)
    ranks.tick_params(length=0)
    ranks.set_ylabel(f"ranks, simultaneously {percent}")
    ranks.spines["right"].set_visible(False)
    ax.grid(axis="x", color=GREY, lw=0.4)
    ax.set_axisbelow(True)
    return ax
