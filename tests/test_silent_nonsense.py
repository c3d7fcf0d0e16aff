"""Invalid values that were once accepted and gave wrong results."""

import functools
from fractions import Fraction

import all_kernels
import all_tests
import numpy as np
import pytest
from scipy import sparse

import rankernel as rk
from rankernel import kernels

BALLOTS = rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]])


@pytest.mark.parametrize("counts", [[2**62, 2**62, 2**62, 1], [2**63, 1, 1, 1], [1e30, 1, 1, 1], [2**53, 1, 1, 1]])
def test_too_many_voters(counts):
    with pytest.raises(rk.RankingError, match=r"2\^53"):
        rk.Rankings(BALLOTS.ranks, counts=np.array(counts, dtype=np.uint64 if max(counts) == 2**63 else None))


def test_too_many_voters_together():
    many = rk.Rankings(BALLOTS.ranks, counts=[2**52, 1, 1, 1])
    assert many.n_voters == 2**52 + 3
    with pytest.raises(rk.RankingError, match=r"2\^53"):
        rk.concat([many, many])


def test_many_voters():
    many = rk.Rankings(BALLOTS.ranks, counts=[10**15, 1, 1, 1])
    assert rk.kemeny(many).ranking.ranks.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("level", [-1, 2, np.nan, "high"])
def test_level_is_a_probability(level):
    with pytest.raises((TypeError, ValueError), match="alpha="):
        rk.mmd_aggregated_test(BALLOTS, BALLOTS, n_permutations=9, alpha=level)


def test_invalid_precomputed_matrices():
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


FOUR = rk.Rankings([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]])
NUMBERS, LABELS, MATRIX = np.arange(4.0), np.array([0, 1, 0, 1]), np.eye(4)
MASKED = {  # calls with an array whose third entry is masked
    "covariate": lambda hide: rk.hsic_test(FOUR, hide(NUMBERS), n_permutations=9),
    "labels as a covariate": lambda hide: rk.hsic_test(FOUR, hide(LABELS), n_permutations=9),
    "time": lambda hide: rk.trend_test(FOUR, hide(NUMBERS), n_permutations=9),
    "precomputed": lambda hide: rk.mmd_test(FOUR[:2], FOUR[2:], precomputed=hide(MATRIX), n_permutations=9),
    "matrix": lambda hide: rk.plots.gram(hide(MATRIX)),
    "labels": lambda hide: rk.cluster_consensus(FOUR, hide(LABELS)),
    "weights": lambda hide: rk.PlackettLuce(hide(NUMBERS + 1)),
    "G": lambda hide: rk.Positional(hide(MATRIX)),
    "X": lambda hide: rk.KernelRankingRegressor().fit(hide(NUMBERS[:, None]), FOUR),
    "sample_weight": lambda hide: rk.KernelRankingRegressor().fit(MATRIX, FOUR, sample_weight=hide(NUMBERS)),
}


def third_masked(array):
    mask = np.zeros(array.shape, dtype=bool)
    mask[2] = True
    return np.ma.array(array, mask=mask)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MASKED)
def test_masked_arguments(name):
    MASKED[name](lambda array: np.ma.array(array, mask=False))
    with pytest.raises(ValueError, match=r"\w+ is masked at 2"):
        MASKED[name](third_masked)


def test_masked_ranks_of_estimators():
    with pytest.raises(rk.RankingError, match=r"row 2, item '0' is missing"):
        rk.KernelMap(1, kernel=rk.Kendall()).fit(third_masked(np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]])))


def test_masked_array_without_masked_cells():
    ranks = np.ma.array([[0, 1, 2]], mask=False)
    assert rk.Rankings.from_ranks(ranks).ranks.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("graph", ["transpositions", "adjacent"])
@pytest.mark.parametrize("n_items", [3, 7, 40])
def test_diffusion_of_zero_time(graph, n_items):
    """The kernel is the indicator of equality, so its mean is the share of common completions."""
    rows = np.zeros((3, n_items), dtype=int)
    rows[1:, 1:] = 1
    rows[2, 2:] = 2
    rankings = rk.Rankings(rows)
    sizes = [float(1 / np.prod(np.arange(1.0, n + 1))) for n in (n_items, n_items - 1, n_items - 2)]
    expected = [[sizes[max(0, 0)] for _ in range(3)] for _ in range(3)]
    for i in range(3):
        for j in range(3):
            expected[i][j] = sizes[min(i, j)]
    found = rk.Diffusion(0.0, graph).estimate(rankings)
    assert found.stderr.max() == 0
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)


@pytest.mark.parametrize("degree", [1001, 10**6, 10**30])
def test_degree_too_large(degree):
    with pytest.raises(ValueError, match="degree="):
        rk.Polynomial(degree)


def with_defaults():
    """Yield every kernel that has defaults, with its name in lower case."""
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
    named, given = (rk.mmd_test(BALLOTS, other, kernel, n_permutations=9) for kernel in ("mallows", rk.Mallows()))
    assert named.pvalue == given.pvalue
    assert rk.kernel_consensus(BALLOTS, "rbo").ranking == rk.kernel_consensus(BALLOTS, rk.RankBiasedOverlap()).ranking
    fitted = rk.KernelKMeans(2, kernel="kendall").fit(BALLOTS)
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
        (np.zeros((4, 4), dtype=int), "dtype"),
        (np.zeros((4, 4), dtype=np.float16), "dtype"),
        (np.zeros((4, 3)), "out has shape"),
        ([[0.0] * 4] * 4, "out="),
    ],
)
def test_invalid_outputs(out, message, normalize):
    before = np.array(out)
    with pytest.raises((TypeError, ValueError), match=message):
        rk.Mallows(0.1).gram(BALLOTS, out=out, normalize=normalize)
    np.testing.assert_array_equal(out, before)


def test_read_only_memory_map(tmp_path):
    np.save(tmp_path / "K.npy", np.zeros((4, 4)))
    with pytest.raises(ValueError, match="out is read-only"):
        rk.Mallows(0.1).gram(BALLOTS, out=np.load(tmp_path / "K.npy", mmap_mode="r"))


@pytest.mark.parametrize("dtype", [int, bool, "float16", complex, None, "nonsense"])
def test_invalid_dtypes(dtype):
    with pytest.raises(TypeError, match="dtype"):
        rk.Mallows(0.1).gram(BALLOTS, dtype=dtype)


def test_empty_name_of_counts(tmp_path):
    with pytest.raises(rk.RankingError, match="count: ''"):
        rk.write_csv(BALLOTS, tmp_path / "votes.csv", count="")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rows", [None, [[0, 1]], np.zeros((2, 2), dtype=int)])
def test_invalid_row_indices(rows):
    for data in (FOUR, rk.Preferences.from_rankings(FOUR)):
        with pytest.raises(TypeError, match=r"indexed by (row|user)"):
            data[rows]


def test_estimate_of_no_rankings():
    assert rk.Mallows(0.1).estimate(FOUR[:0], method=rk.MonteCarlo(4), tol=0.5).value.shape == (0, 0)


def test_unreachable_tolerance():
    ties = rk.Rankings([[0, 0, 0, 0, 0], [0, 1, 1, 1, 1]])
    with pytest.raises(rk.ExactnessError, match=r"above tol=4\.94066e-324"):
        rk.Exponential("footrule", 0.1).estimate(ties, method=rk.MonteCarlo(4, control_variates=0), tol=5e-324)


def test_groups_of_rectangular_matrix():
    with pytest.raises(ValueError, match=r"matrix has shape \(4, 3\)"):
        rk.plots.gram(np.zeros((4, 3)), groups=list("abcd"))


# ---------------------------------------------------------------------- values that raised errors of other libraries

DEEP = functools.reduce(lambda inner, _: [inner], range(3000), [])  # deeper than Python's recursion limit
MANY_ITEMS = rk.Rankings(np.arange(200_000)[None])


@pytest.mark.parametrize("kernel", [rk.RankBiasedOverlap, rk.Mallows, rk.Diffusion])
def test_parameters_of_other_number_types(kernel):
    values = [kernel(number(1) / number(4)).gram(BALLOTS.top(1)) for number in (float, Fraction, np.float32)]
    assert all(np.array_equal(value, values[0]) for value in values)


@pytest.mark.parametrize("function", [rk.Rankings, lambda deep: rk.Rankings.from_orders([deep]), rk.as_kernel])
def test_deep_lists(function):
    """The list is named, or shortened where Python can print it (from 3.13)."""
    with pytest.raises((ValueError, TypeError), match=r"<list>|\[{40}.*\.\.\."):
        function(DEEP)


@pytest.mark.parametrize("consensus", [rk.kemeny, rk.borda, rk.pairwise_preferences])
def test_consensus_of_too_many_items(consensus):
    with pytest.raises(rk.InsufficientMemoryError, match="200,000 items"):
        consensus(MANY_ITEMS)


@pytest.mark.parametrize("names", [[["a"], ["b"], ["c"]], [{"a": 1}, {"b": 1}, {"c": 1}]])
def test_item_names_that_are_no_names(names):
    with pytest.raises(rk.RankingError, match="name of item 0"):
        rk.Rankings(BALLOTS.ranks, names)


def test_unsigned_index_beyond_the_end():
    with pytest.raises(IndexError, match="out of bounds"):
        BALLOTS[np.array([2**64 - 1], dtype=np.uint64)]
    assert BALLOTS[np.array([3], dtype=np.uint64)] == BALLOTS[3]


def test_labels_that_are_no_labels():
    for labels in (sparse.csr_array(np.eye(4)[:, :1]), [{"a": 1}] * 4):
        with pytest.raises(TypeError, match="groups"):
            rk.k_sample_test(BALLOTS, labels)


SUBNORMAL = 354.0  # exp(-2 * 354) is a normal number, its square and exp(-3 * 354) underflow
UNDERFLOWING = [rk.Mallows(SUBNORMAL), rk.Mallows(1e300), rk.RankBiasedOverlap(1e-200), rk.Diffusion(1e-200)]
UNDERFLOWING += [rk.Exponential(d, SUBNORMAL) for d in ("hamming", "spearman", "footrule", "cayley", "linf")]
EIGHT = rk.Rankings.from_orders(map(list, ["abcde", "badce", "cabde", "ecbad", "dcbea", "abdce", "edcba", "bcade"]))
FORMS = {"full": EIGHT, "top": EIGHT.top(2), "free": EIGHT.top(2, unlisted="free")}
USES = {
    "exact": lambda kernel, X: kernel.gram(X),
    "estimated": lambda kernel, X: kernel.gram(X, method=rk.MonteCarlo(32)),
    "standard errors": lambda kernel, X: kernel.estimate(X, method=rk.MonteCarlo(32)).stderr,
    "normalized": lambda kernel, X: kernel.gram(X, normalize=True),
    "diagonal": lambda kernel, X: kernel.plan(X).diagonal(),
    "clusters": lambda kernel, X: rk.KernelKMeans(2, kernel=kernel).fit(X).labels_,
}


@pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning", "ignore::rankernel.IndefiniteKernelWarning")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [each for each, _ in all_kernels.on(5)] + UNDERFLOWING, ids=str)
def test_values_do_not_depend_on_the_error_state(kernel, form):
    for use in USES.values():
        value = use(kernel, FORMS[form])
        with np.errstate(all="raise"):
            assert np.array_equal(use(kernel, FORMS[form]), value, equal_nan=True)


OTHER_USES = {
    "products": lambda kernel, X: kernel.plan(X).times(np.full(len(X), 1e-10)),
    "unbiased diagonal": lambda kernel, X: kernel.plan(X, method=rk.MonteCarlo(32)).diagonal(unbiased=True),
    "map": lambda kernel, X: rk.KernelMap(2, kernel=kernel).fit_transform(X),
    "features": lambda kernel, X: rk.NystromFeatures(3, kernel=kernel).fit_transform(X),
    "gradient": lambda kernel, X: rk.SklearnKernel(kernel)(X.ranks, eval_gradient=True)[1],
    "e-values": lambda kernel, X: rk.SequentialMMDTest(kernel).update(X, X[::-1]).log_evalues,
    "pairs of groups": lambda kernel, X: rk.k_sample_test(X, all_tests.halves(X), kernel).pairwise().effect_intervals,
    "pairs of items": lambda kernel, X: rk.mmd_test(X[:5], X[5:], kernel).differences().pairs[0].intervals,
    **{
        name: lambda kernel, X, name=name: getattr(all_tests.run(name, X, kernel), "effect_interval", None)
        for name in all_tests.TESTS
    },
}


@pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning", "ignore::rankernel.MisfitWarning", "ignore:X has")
@pytest.mark.parametrize("use", OTHER_USES)
def test_results_do_not_depend_on_the_error_state(use):
    ten = rk.concat([EIGHT, EIGHT[:2]])
    for kernel, X in (rk.Mallows(100.0), ten), (rk.Exponential("footrule", SUBNORMAL), ten.top(2)):
        value = OTHER_USES[use](kernel, X)
        with np.errstate(all="raise"):
            assert np.array_equal(OTHER_USES[use](kernel, X), value, equal_nan=value is not None)


def test_regression_does_not_depend_on_the_error_state():
    model = rk.KernelRankingRegressor(gamma=1.0).fit(np.arange(8.0).reshape(4, 2), BALLOTS)
    with np.errstate(all="raise"):
        assert model.predict([[1e6, 2.0]]) == model.fit(np.arange(8.0).reshape(4, 2), BALLOTS).predict([[1e6, 2.0]])


# ---------------------------------------------------------------------- scales


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e160, 1e300])
def test_scale_of_covariates(scale):
    """Numbers whose squares overflow or underflow are scaled, or refused."""
    numbers = np.array([0.3, 0.1, 0.8, 0.5, 0.2, 0.9, 0.4, 0.7])
    for test in (rk.hsic_test, rk.trend_test):
        known, found = (test(EIGHT, factor * numbers, n_permutations=99) for factor in (1.0, scale))
        assert found.statistic == pytest.approx(known.statistic, rel=1e-12)
        assert found.pvalue == known.pvalue
    with pytest.raises(ValueError, match="X has values up to"):
        rk.KernelRankingRegressor().fit(scale * numbers[:, None], EIGHT)


@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e150, 1e300])
def test_scale_of_kernels(scale):
    """The third moment of a statistic would overflow or underflow."""
    groups = list("abababab")
    with pytest.raises(ValueError, match="the kernel has values up to"):
        rk.k_sample_test(EIGHT, groups, scale * rk.Mallows(0.1))
    with pytest.raises(ValueError, match="the kernel has values up to"):
        rk.k_sample_test(EIGHT, groups, precomputed=np.full((8, 8), scale))


def test_e_values_of_tiny_kernels():
    tests = [rk.SequentialMMDTest(scale * rk.Mallows(0.1)).update(EIGHT, EIGHT[::-1]) for scale in (1e-200, 1.0)]
    np.testing.assert_allclose(tests[0].log_evalues, tests[1].log_evalues)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern", "additive_rbf"])
def test_predictions_far_from_the_training_data(kernel):
    """The kernel is 0, so that the mean of the labels is predicted."""
    model = rk.KernelRankingRegressor(0.1, kernel=kernel).fit(np.arange(8.0)[:, None], EIGHT)
    before = EIGHT.ranks[:, :, None] < EIGHT.ranks[:, None, :]
    np.testing.assert_allclose(model.predict_scores([[1e300], [-1e300]]), [before.mean(axis=0) + np.eye(5) / 2] * 2)


def test_boolean_covariates():
    table = np.array([[i & 1, i & 2] for i in range(8)], dtype=bool)
    found, known = (rk.KernelRankingRegressor().fit(X, EIGHT).predict(X) for X in (table, table.astype(float)))
    assert found == known
