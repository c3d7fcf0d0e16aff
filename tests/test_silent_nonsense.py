"""Values that once were taken in silence and gave wrong answers."""

import numpy as np
import pytest

import rankernel as rk
from rankernel import kernels

BALLOTS = rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]])


@pytest.mark.parametrize("counts", [[2**62, 2**62, 2**62, 1], [2**63, 1, 1, 1], [1e30, 1, 1, 1], [2**53, 1, 1, 1]])
def test_more_voters_than_can_be_counted(counts):
    with pytest.raises(rk.RankingError, match=r"2\^53"):
        rk.Rankings(BALLOTS.ranks, counts=np.array(counts, dtype=np.uint64 if max(counts) == 2**63 else None))


def test_more_voters_together_than_can_be_counted():
    many = rk.Rankings(BALLOTS.ranks, counts=[2**52, 1, 1, 1])
    assert many.n_voters == 2**52 + 3
    with pytest.raises(rk.RankingError, match=r"2\^53"):
        rk.concat([many, many])


def test_many_voters_are_counted_right():
    many = rk.Rankings(BALLOTS.ranks, counts=[10**15, 1, 1, 1])
    assert rk.kemeny(many).ranking.ranks.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("n_draws", [-1, 0, 1.5])
def test_no_variance_of_no_draws(n_draws):
    with pytest.raises(ValueError, match="n_draws="):
        rk.monte_carlo_variance(BALLOTS, BALLOTS, rk.Mallows(0.1), n_draws)


@pytest.mark.parametrize("level", [-1, 2, np.nan, "high"])
def test_a_level_is_a_probability(level):
    with pytest.raises((TypeError, ValueError), match="level="):
        rk.mmd_aggregated_test(BALLOTS, BALLOTS, n_permutations=9, level=level)


def test_a_gram_matrix_with_gaps_tests_nothing():
    gram = rk.Mallows(0.1).gram(rk.concat([BALLOTS, BALLOTS]))
    gram[0, 1] = np.nan
    with pytest.raises(ValueError, match="precomputed holds nan"):
        rk.mmd_test(BALLOTS, BALLOTS, precomputed=gram)
    gram[0, 1] = 5.0
    with pytest.raises(ValueError, match="precomputed is not symmetric"):
        rk.mmd_test(BALLOTS, BALLOTS, precomputed=gram)


@pytest.mark.parametrize(("unlisted", "row"), [("last", [0, 1, 2]), ("free", [0, 1, -1])])
def test_masked_cells_are_missing(unlisted, row):
    ranks = np.ma.array([[0, 1, 0], [2, 1, 0]], mask=[[False, False, True], [False] * 3])
    assert rk.Rankings.from_ranks(ranks, unlisted=unlisted).ranks.tolist() == [row, [2, 1, 0]]
    assert rk.Rankings.from_scores(-ranks, unlisted=unlisted).ranks.tolist() == [row, [2, 1, 0]]


def test_an_array_without_masked_cells_is_taken_as_it_is():
    ranks = np.ma.array([[0, 1, 2]], mask=False)
    assert rk.Rankings.from_ranks(ranks).ranks.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("graph", ["transpositions", "adjacent"])
@pytest.mark.parametrize("n_items", [3, 7, 40])
def test_a_walk_of_no_time_goes_nowhere(graph, n_items):
    """It is 1 for equal rankings and 0 else, so its mean is the share of completions in common."""
    rows = np.zeros((3, n_items), dtype=int)
    rows[1:, 1:] = 1
    rows[2, 2:] = 2
    rankings = rk.Rankings(rows)
    sizes = [float(1 / np.prod(np.arange(1.0, n + 1))) for n in (n_items, n_items - 1, n_items - 2)]
    expected = [[sizes[max(0, 0)] for _ in range(3)] for _ in range(3)]
    for i in range(3):
        for j in range(3):
            expected[i][j] = sizes[min(i, j)]  # the smaller set is inside the larger one
    found = rk.Diffusion(0.0, graph).estimate(rankings)
    assert found.stderr.max() == 0
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)


@pytest.mark.parametrize("degree", [1001, 10**6, 10**30])
def test_a_power_beyond_all_floats(degree):
    with pytest.raises(ValueError, match="degree="):
        rk.Polynomial(degree)


def with_defaults():
    """Every kernel that can be made of nothing, by its name in small letters."""
    for name in set(kernels.__all__) - {"Kernel"}:
        try:
            yield name.lower(), getattr(rk, name)()
        except TypeError:
            continue


@pytest.mark.parametrize(("name", "kernel"), [*sorted(with_defaults(), key=str), ("rbo", rk.RankBiasedOverlap())])
def test_kernels_by_name(name, kernel):
    np.testing.assert_array_equal(rk.linkage(BALLOTS, name), rk.linkage(BALLOTS, kernel))


def test_kernels_by_name_everywhere():
    other = rk.Rankings([[2, 0, 1], [1, 2, 0]])
    assert rk.mmd_test(BALLOTS, other, "mallows", 9).pvalue == rk.mmd_test(BALLOTS, other, rk.Mallows(), 9).pvalue
    assert rk.kernel_consensus(BALLOTS, "rbo").ranking == rk.kernel_consensus(BALLOTS, rk.RankBiasedOverlap()).ranking
    fitted = rk.KernelKMeans("kendall", 2).fit(BALLOTS)
    assert fitted.kernel == "kendall"
    assert fitted.kernel_ == rk.Kendall()
    assert rk.SklearnKernel("kendall").kernel == rk.Kendall()


def read_only(matrix):
    matrix.flags.writeable = False
    return matrix


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    ("out", "message"),
    [
        (read_only(np.zeros((4, 4))), "out is read-only"),
        (np.zeros((4, 4), dtype=int), "cannot hold kernel values"),
        (np.zeros((4, 4), dtype=np.float16), "cannot hold kernel values"),
        (np.zeros((4, 3)), "out has shape"),
        ([[0.0] * 4] * 4, "out="),
    ],
)
def test_outputs_that_cannot_take_the_matrix(out, message, normalize):
    before = np.array(out)
    with pytest.raises((TypeError, ValueError), match=message):
        rk.Mallows(0.1).gram(BALLOTS, out=out, normalize=normalize)
    np.testing.assert_array_equal(out, before)


def test_a_memory_map_that_may_not_be_written(tmp_path):
    np.save(tmp_path / "K.npy", np.zeros((4, 4)))
    with pytest.raises(ValueError, match="out is read-only"):
        rk.Mallows(0.1).gram(BALLOTS, out=np.load(tmp_path / "K.npy", mmap_mode="r"))


@pytest.mark.parametrize("dtype", [int, bool, "float16", complex, None, "nonsense"])
def test_kinds_of_numbers_that_cannot_hold_values(dtype):
    with pytest.raises(TypeError, match="cannot hold kernel values"):
        rk.Mallows(0.1).gram(BALLOTS, dtype=dtype)


def test_a_column_of_counts_has_a_name(tmp_path):
    with pytest.raises(rk.RankingError, match="count '' is empty"):
        rk.write_csv(BALLOTS, tmp_path / "votes.csv", count="")
    assert not list(tmp_path.iterdir())
