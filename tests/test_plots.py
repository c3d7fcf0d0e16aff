"""Matplotlib pictures: coordinates, areas, colours and orders; equal pictures give equal files."""

import numpy as np
import pytest

from rankernel import Kendall, Mallows, Rankings, leaderboard, outlier_test, plots
from rankernel.datasets import mallows
from rankernel.learn.hierarchy import linkage
from rankernel.stats.groups import mmd_test

matplotlib = pytest.importorskip("matplotlib")

BALLOTS = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["c", "b", "a"], ["c", "a"]], counts=[4, 1, 3, 2])


def test_functions_take_and_return_axes():
    from matplotlib.figure import Figure

    result = mmd_test(BALLOTS, BALLOTS, Mallows(0.5), n_permutations=19)
    draw = [
        lambda ax: plots.kernel_map(np.eye(4)[:, :2], ax=ax),
        lambda ax: plots.dendrogram(linkage(BALLOTS, Kendall()), ax=ax),
        lambda ax: plots.gram(Kendall().gram(BALLOTS), ax=ax),
        lambda ax: plots.pairwise_preferences(BALLOTS, ax=ax),
        lambda ax: plots.null_distribution(result, ax=ax),
    ]
    for function in draw:
        ax = Figure().add_subplot()
        assert function(ax) is ax
        assert function(None).figure is not ax.figure


def test_titles():
    result = mmd_test(BALLOTS, BALLOTS, Mallows(0.5), n_permutations=19)
    axes = [
        plots.gram(Kendall().gram(BALLOTS), title="$x"),
        plots.differences(result.differences(), title="$x"),
        plots.outliers(outlier_test(mallows(30, 5, 1.0, rng=1)), title="$x"),
        plots.leaderboard(leaderboard(BALLOTS), title="$x"),
    ]
    assert [ax.get_title() for ax in axes] == [r"\$x"] * 4


def test_map_coordinates_and_areas():
    points = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    ax = plots.kernel_map(points, counts=[100, 25, 50], groups=[0, 1, -1], names=["A", "$B$"], variance=[0.5, 0.25])
    (drawn,) = ax.collections
    order = [0, 2, 1]  # the largest first, so that small points are seen
    assert np.allclose(drawn.get_offsets(), points[order])
    assert np.allclose(drawn.get_sizes() / drawn.get_sizes()[0], [1, 0.5, 0.25])
    assert [matplotlib.colors.to_hex(colour) for colour in drawn.get_facecolors()] == [
        plots.COLOURS[0],
        plots.GREY,
        plots.COLOURS[1],
    ]
    assert legend_of(ax) == {"A": plots.COLOURS[0], r"\$B\$": plots.COLOURS[1], "of several": plots.GREY}
    assert "50%" in ax.get_xlabel()
    assert "25%" in ax.get_ylabel()


def test_notebooks_show_new_figures():
    figure = plots.kernel_map([[0, 0], [1, 1]]).figure
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_map_with_labels_is_that_with_groups_and_names():
    points = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    ax = plots.kernel_map(points, labels=["south", "north", "south"], title="Districts of $town$")
    assert legend_of(ax) == {"north": plots.COLOURS[0], "south": plots.COLOURS[1]}
    colours = [matplotlib.colors.to_hex(colour) for colour in ax.collections[0].get_facecolors()]
    assert colours == [plots.COLOURS[1], plots.COLOURS[0], plots.COLOURS[1]]
    assert ax.get_title() == r"Districts of \$town\$"
    with pytest.raises(ValueError, match="labels is given together with groups or names"):
        plots.kernel_map(points, labels=list("aba"), groups=[0, 1, 0])


def test_differences_with_names_of_groups():
    found = mmd_test(BALLOTS, BALLOTS, Mallows(0.5), n_permutations=9).differences()
    for ax in (found.plot(names=["north", "south"]), plots.differences(found, names=["north", "south"])):
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["north", "south"]
    with pytest.raises(ValueError, match="names has 3 names; the result has 2 groups"):
        found.plot(names=list("abc"))


def test_area_of_one_voter_is_bounded():
    for counts in ([1, 1], [2, 1], [1000, 1]):
        sizes = plots.kernel_map([[0, 0], [1, 1]], counts=counts).collections[0].get_sizes()
        assert sizes[-1] <= plots.VOTER_AREA
        assert sizes[0] <= plots.MAX_AREA
    assert (sizes >= plots.MIN_AREA).all()


def legend_of(ax):
    """Return the colour of each name in the legend."""
    found = ax.get_legend()
    colours = [matplotlib.colors.to_hex(handle.get_color()) for handle in found.legend_handles]
    return dict(zip([text.get_text() for text in found.get_texts()], colours, strict=True))


def test_colours_are_unique():
    n = len(plots.COLOURS) + 3
    counts = [*range(1, n), 50]  # the last group is the largest, the first three are the smallest
    names = [f"group {number}" for number in range(n)]
    ax = plots.kernel_map(np.zeros((n, 2)), counts=counts, groups=range(n), names=names)
    legend = legend_of(ax)
    assert legend.pop("3 others") == plots.GREY
    assert list(legend) == [f"group {number}" for number in range(3, n)]
    assert len(set(legend.values())) == len(plots.COLOURS)
    drawn = [matplotlib.colors.to_hex(colour) for colour in ax.collections[0].get_facecolors()]
    assert drawn == [legend[f"group {number}"] for number in (n - 1, *range(n - 2, 2, -1))] + [plots.GREY] * 3


def test_branch_names():
    Z = np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 5.0, 4]])
    clusters = {"groups": [0, 0, 1, 1], "names": ["one", "two"]}
    ax = plots.dendrogram(Z, **clusters, leaves=["a", "$b", "c", "d"], counts=[1, 4, 2, 2], n_branches=3)
    written = {label.get_text(): matplotlib.colors.to_hex(label.get_color()) for label in ax.get_yticklabels()}
    first, second = plots.COLOURS[:2]
    assert written == {r"\$b and 1 more (5)": first, "c (2)": second, "d (2)": second}
    assert legend_of(ax) == {"one": first, "two": second}
    with pytest.raises(ValueError, match="leaves"):
        plots.dendrogram(Z, leaves=["a"])


def overlaps(boxes):
    """Return the pairs of boxes that overlap."""
    return [(a, b) for number, a in enumerate(boxes) for b in boxes[:number] if a.overlaps(b)]


@pytest.mark.parametrize("n_rankings", [3, 200])
def test_labels_do_not_overlap(n_rankings):
    rng = np.random.default_rng(1)
    ranks = np.argsort(rng.random((n_rankings, 6)), axis=1)
    Z, labels = linkage(ranks, Kendall()), np.arange(n_rankings) % 9
    names = [f"{number} · " + "a candidate whose name is long" * (number % 2 + 1) for number in range(9)]
    leaves = ["Jim Glennon F.F. > Michael Kennedy F.F. > …"] * n_rankings
    points = rng.normal(size=(n_rankings, 2))
    clusters = {"groups": labels, "names": names}
    for ax in (plots.dendrogram(Z, leaves=leaves, **clusters), plots.kernel_map(points, **clusters)):
        figure = ax.figure
        figure.draw_without_rendering()
        texts = [*ax.get_yticklabels(), *ax.get_legend().get_texts()]
        boxes = [text.get_window_extent() for text in texts]
        assert len(boxes) >= min(n_rankings, 9)
        assert overlaps(boxes) == []
        whole = figure.bbox.padded(1)
        assert all(whole.contains(*box.min) and whole.contains(*box.max) for box in boxes)


def test_dendrogram_heights_and_colours():
    Z = np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 5.0, 4]])
    ax = plots.dendrogram(Z, groups=[0, 0, 1, 1])
    (lines,) = ax.collections
    heights = [float(path[:, 0].max()) for path in lines.get_segments()]
    colours = [matplotlib.colors.to_hex(colour) for colour in lines.get_colors()]
    found = dict(zip(heights, colours, strict=True))
    assert found == {1.0: plots.COLOURS[0], 2.0: plots.COLOURS[1], 5.0: plots.GREY}


def test_large_dendrogram_is_truncated():
    rng = np.random.default_rng(0)
    Z = linkage(np.argsort(rng.random((60, 6)), axis=1), Kendall())
    assert len(plots.dendrogram(Z, n_branches=10).collections[0].get_segments()) == 9


def test_gram_is_sorted_by_groups():
    G = np.arange(9.0).reshape(3, 3)
    ax = plots.gram(G, groups=[1, 0, 1])
    assert np.array_equal(ax.images[0].get_array(), G[np.ix_([1, 0, 2], [1, 0, 2])])
    assert [line.get_ydata()[0] for line in ax.lines[:1]] == [0.5]


def test_null_distribution_and_statistic():
    result = mmd_test(BALLOTS[:2], BALLOTS[2:], Mallows(0.5), n_permutations=99)
    ax = plots.null_distribution(result)
    assert ax.lines[0].get_xdata()[0] == result.statistic
    assert sum(bar.get_height() for bar in ax.patches) == 99
    assert f"p = {result.pvalue:.2g}" in ax.texts[0].get_text()


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_equal_pictures_give_equal_files(tmp_path, ending):
    files = [tmp_path / f"{number}.{ending}" for number in range(2)]
    for file in files:
        plots.save(plots.kernel_map([[0, 0], [1, 1]], names=["A"]), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(files[0].read_bytes()) > 1000


def test_groups_of_a_leaderboard_are_divided():
    """Lines are between the items above and below that are all separated."""
    scores = np.random.default_rng(0).normal([4, 4, 2, 0, 0], 0.5, (80, 5))
    board = leaderboard(Rankings.from_scores(scores))
    assert board.rank_intervals.tolist() == [[1, 2], [1, 2], [3, 3], [4, 5], [4, 5]]
    lines = [line for line in board.plot().lines if line.get_linestyle() == "--"]
    assert [line.get_ydata()[0] for line in lines] == [1.5, 2.5]
