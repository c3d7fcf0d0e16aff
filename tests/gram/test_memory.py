"""Matrices that do not fit into memory are refused, and matrices elsewhere are filled as those in memory are."""

import tracemalloc

import numpy as np
import pytest

import rankernel as rk
from rankernel._utils import resources
from rankernel._utils.resources import available_memory, cgroup_memory
from rankernel.gram.plan import Plan
from rankernel.reports.ballots import Source
from rankernel.reports.summary import summarize

GIB = 2**30


def rankings(n_rankings, n_items=9, listed=4, seed=0):
    ranks = np.argsort(np.random.default_rng(seed).random((n_rankings, n_items)), axis=1)
    return rk.Rankings(np.minimum(ranks, listed))


DISTINCT = rankings(300).unique()[:150]
REPEATED = rk.concat([DISTINCT[:60], DISTINCT[:60][::-1], DISTINCT[20:50]])  # 60 distinct in 150 rows
KERNELS = [
    pytest.param(rk.Mallows(0.3), "exact", id="mallows"),
    pytest.param(rk.Kendall(), "exact", id="kendall"),
    pytest.param(rk.Hamming(), "exact", id="hamming"),
    pytest.param(rk.Exponential("hamming", 0.4), "exact", id="exp hamming"),
    pytest.param(rk.Mallows(0.3), rk.MonteCarlo(12), id="draws"),
    pytest.param(rk.Exponential("footrule", 0.1), rk.MonteCarlo(6, control_variates=0), id="draws alone"),
]


# ---------------------------------------------------------------------- available memory


def write_group(folder, **files):
    for name, text in files.items():
        (folder / f"memory.{name}").write_text(text)


def test_limits_of_containers(tmp_path):
    assert cgroup_memory(tmp_path) is None
    write_group(tmp_path, max="max\n", current="5000\n", stat="anon 4000\ninactive_file 700\n")
    assert cgroup_memory(tmp_path) is None
    write_group(tmp_path, max="9000\n")
    assert cgroup_memory(tmp_path) == 9000 - 5000 + 700
    write_group(tmp_path, current="9900\n")
    assert cgroup_memory(tmp_path) == 0


def test_available_memory_respects_containers(tmp_path):
    assert available_memory() > 2**20
    write_group(tmp_path, max="9000\n", current="5000\n", stat="inactive_file 0\n")
    assert available_memory(cgroup=tmp_path) == 4000


# ---------------------------------------------------------------------- matrices that do not fit

MANY = rk.Rankings(rankings(2500, seed=3).unique().ranks[:1500])  # whose matrix takes 18 MB
ONE = 8 * len(MANY) ** 2


@pytest.fixture
def free(monkeypatch):
    def set_free(n_bytes):
        monkeypatch.setattr(resources, "available_memory", lambda: n_bytes)

    return set_free


def test_message(free):
    free(20 * GIB)
    with pytest.raises(MemoryError) as error:
        resources.check_memory((200_000, 200_000), np.float64)
    assert "298 GiB; 20 GiB are free" in str(error.value)
    assert "dtype='float32'" in str(error.value)
    with pytest.raises(MemoryError) as error:
        resources.check_memory((200_000, 200_000), np.float32)
    assert "149 GiB" in str(error.value)
    assert "dtype" not in str(error.value)


def test_matrix_that_just_fits(free):
    kernel = rk.Mallows(0.3)
    free(ONE)
    assert kernel.gram(MANY).nbytes == ONE
    free(ONE - 1)
    with pytest.raises(MemoryError, match="1,500 x 1,500 float64"):
        kernel.gram(MANY)
    assert kernel.gram(MANY, dtype=np.float32).dtype == np.float32
    out = np.empty(ONE // 8).reshape(len(MANY), -1)
    free(0)
    assert kernel.gram(MANY, out=out) is out


@pytest.mark.parametrize(("kernel", "method"), KERNELS[:4])
def test_equal_rankings_take_no_second_matrix(kernel, method):
    some = rankings(2500).unique()[:1500]
    X = rk.concat([some, some[::-1]])
    kernel.gram(X[:20], method=method)  # compiled
    plan = kernel.plan(X, method=method)
    tracemalloc.start()
    matrix = plan.gram(n_jobs=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.4 * matrix.nbytes


def test_estimates_and_gradients_hold_several_matrices(free):
    free(4 * ONE - 1)
    rk.Mallows(0.3).estimate(MANY)
    with pytest.raises(MemoryError, match="5 Gram matrices"):  # two values, two standard errors, one mask
        rk.Mallows(0.3).estimate(MANY, gradient=True)
    free(ONE - 1)
    with pytest.raises(MemoryError):
        rk.Mallows(0.3).log_gram(MANY)


# ---------------------------------------------------------------------- matrices elsewhere


@pytest.mark.parametrize(("kernel", "method"), KERNELS)
@pytest.mark.parametrize("X", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
def test_memory_maps(tmp_path, kernel, method, X):
    out = np.lib.format.open_memmap(tmp_path / "K.npy", mode="w+", dtype=np.float64, shape=(len(X), len(X)))
    kernel.gram(X, method=method, out=out, n_jobs=3)
    out.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "K.npy"), kernel.gram(X, method=method))


def test_normalised_output():
    for X in (DISTINCT, REPEATED):
        out = np.empty((len(X), len(X)), dtype=np.float32)
        rk.Mallows(0.3).gram(X, normalize=True, out=out)
        np.testing.assert_array_equal(out, rk.Mallows(0.3).gram(X, normalize=True, dtype=np.float32))
        np.testing.assert_allclose(np.diagonal(out), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("out", "kind"),
    [
        (np.empty((3, 3)), ValueError),
        (np.empty((150, 150), dtype=int), TypeError),
        ([[1.0]], TypeError),
        (np.broadcast_to(0.0, (150, 150)), ValueError),
    ],
    ids=["shape", "dtype", "list", "read-only"],
)
def test_invalid_outputs(out, kind):
    with pytest.raises(kind, match="out"):
        rk.Kendall().gram(DISTINCT, out=out)


# ---------------------------------------------------------------------- blocks


@pytest.mark.parametrize(("kernel", "method"), KERNELS)
@pytest.mark.parametrize("columns", [None, DISTINCT[:70]], ids=["symmetric", "rectangular"])
def test_blocks_make_the_matrix(kernel, method, columns):
    expected = kernel.gram(DISTINCT, columns, method=method)
    found, seen = np.zeros(expected.shape), np.zeros(expected.shape, dtype=int)
    for rows, part, values in kernel.plan(DISTINCT, columns, method=method).blocks(side=40):
        found[rows, part] = values
        seen[rows, part] += 1
        if columns is None and rows != part:
            found[part, rows] = values.T
            seen[part, rows] += 1
    np.testing.assert_array_equal(found, expected)
    assert (seen == 1).all()


@pytest.mark.parametrize(("kernel", "method"), KERNELS)
def test_blocks_of_equal_rankings(kernel, method):
    expected = kernel.gram(REPEATED, method=method)
    for rows, columns, values in kernel.plan(REPEATED, method=method).blocks(side=40):
        np.testing.assert_array_equal(values, expected[rows, columns])


def test_blocks_use_the_kernel_of_all_rankings():
    kernel = rk.Mallows("median")
    blocks = list(kernel.plan(DISTINCT).blocks(side=80))
    assert len(blocks) == 3
    np.testing.assert_array_equal(blocks[0][2], kernel.resolve(DISTINCT).gram(DISTINCT)[:80, :80])


@pytest.mark.parametrize("side", [0, -3, 2.5])
def test_invalid_sides(side):
    with pytest.raises(ValueError, match="side"):
        next(rk.Kendall().plan(DISTINCT).blocks(side=side))


# ---------------------------------------------------------------------- whole tasks


K = rk.Mallows(0.3)


def halves(X):
    return X[: len(X) // 2], X[len(X) // 2 :]


TASKS = {
    "an independence test": lambda X: rk.hsic_test(X, np.arange(float(len(X))), K, n_permutations=9),
    "an independence test of labels": lambda X: rk.hsic_test(X, np.arange(len(X)) % 3, K, n_permutations=9),
    "a test of a trend": lambda X: rk.trend_test(X, np.arange(float(len(X))), K, n_permutations=9),
    "a test of groups": lambda X: rk.k_sample_test(X, np.arange(len(X)) % 3, K, n_permutations=9),
    "a test of pairs": lambda X: rk.paired_test(*halves(X), K, n_permutations=9),
    "a search for changes": lambda X: rk.change_point_test(X, K, n_permutations=9),
    "a search for outliers": lambda X: rk.outlier_test(X[:1], K, reference=X[1:]),
    "a test of fit": lambda X: rk.goodness_of_fit_test(X, rk.Uniform(), K, n_simulations=9),
    "a label ranking": lambda X: rk.KernelRankingRegressor(kernel=K).fit(X, X),
    "a map": lambda X: rk.KernelMap(kernel=K).fit(X),
    "k-medoids": lambda X: rk.KernelKMedoids(3, kernel=K, n_init=1).fit(X),
    "a dendrogram": lambda X: rk.linkage(X, K),
}


def test_every_task_is_tested():
    assert TASKS.keys() == resources.MATRICES_HELD.keys()


@pytest.mark.parametrize("name", TASKS)
def test_tasks_are_refused_before_their_first_matrix(name, free, monkeypatch):
    held = resources.MATRICES_HELD[name]
    free(int((held - 0.1) * ONE))
    monkeypatch.setattr(Plan, "gram", lambda *_, **__: pytest.fail("a matrix was computed"))
    with pytest.raises(MemoryError, match=rf"{name} of 1,500 rankings holds {held:g} matrices"):
        TASKS[name](MANY)


def peak_of(call):
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("name", TASKS)
def test_tasks_hold_the_stated_number_of_matrices(name):
    """Moments of test statistics take four more matrices, of at most 2,000 rows."""
    TASKS[name](MANY[:60])  # compiled and loaded
    moments = 4 * any(word in name for word in ("independence", "trend", "groups"))
    small, large = (peak_of(lambda n=n: TASKS[name](MANY[:n])) for n in (600, 1200))
    assert large - small < (resources.MATRICES_HELD[name] + moments + 0.4) * 8 * (1200**2 - 600**2)


def test_gradients_of_sklearn_kernels_are_refused(free, monkeypatch):
    free(int(2.9 * ONE))
    monkeypatch.setattr(Plan, "gram", lambda *_, **__: pytest.fail("a matrix was computed"))
    with pytest.raises(MemoryError, match="3 matrices"):
        rk.SklearnKernel(K)(MANY.ranks, eval_gradient=True)


def test_features_that_do_not_fit(free):
    free(int(0.99 * ONE))
    with pytest.raises(MemoryError, match="features"):
        rk.NystromFeatures(750, kernel=K).fit(MANY)


ORDERS = rk.Preferences.from_pairs(
    [[(f"i{n % 9}", f"i{n // 9}"), ("i7", "i8")] for n in range(1, 60) if n % 9 < n // 9], [f"i{n}" for n in range(9)]
)


@pytest.mark.parametrize(
    ("X", "n_draws", "n_bytes"), [(DISTINCT, 2000, 8), (ORDERS, 4000, 26)], ids=["lists", "orders"]
)
def test_draws_that_do_not_fit(free, X, n_draws, n_bytes):
    plan = rk.Exponential("footrule", 0.1).plan(X, method=rk.MonteCarlo(n_draws, control_variates=0))
    needed = n_bytes * len(X) * n_draws * 9
    free(needed - 1)
    with pytest.raises(MemoryError, match="n_draws"):
        plan.block([0], [1])
    free(needed)
    assert peak_of(lambda: plan.block([0], [1])) < 1.2 * needed


# ---------------------------------------------------------------------- other large arrays


def wide(n_items):
    rows = np.array([np.arange(n_items), np.roll(np.arange(n_items), 1), np.arange(n_items)[::-1]])
    return rk.Rankings(rows[[0, 1, 2, 0]])


def test_differences_of_many_items(free):
    result = rk.mmd_test(wide(600)[:2], wide(600)[2:], rk.Mallows(0.001), n_permutations=9)
    found = result.differences()
    assert len(found.pairs) == 5000  # of 179,700
    parts = [pair.contribution for pair in found.pairs]
    assert parts == sorted(parts, reverse=True)
    assert found.total != pytest.approx(sum(parts))
    free(8 * 18 * 179_700)
    with pytest.raises(MemoryError, match="600 items"):
        result.differences()


def test_reports_of_many_items():
    with pytest.raises(rk.RankingError, match="3,001 items"):
        summarize(Source(wide(3001), "Wide"))


def test_preferences_that_do_not_fit(free):
    free(2**24)
    with pytest.raises(MemoryError, match="2 users"):
        rk.Preferences.from_pairs([[(0, 1)], [(1, 2)]], items=range(9000))


def test_too_many_voters():
    many = rk.Rankings(DISTINCT.ranks, counts=np.full(len(DISTINCT), 10**9))
    with pytest.raises(rk.RankingError, match="150,000,000,000 voters"):
        rk.hsic_test(many, np.arange(150) % 2)
    with pytest.raises(MemoryError, match="150,000,000,000 voters"):
        rk.goodness_of_fit_test(many, rk.Uniform())
    with pytest.raises(rk.RankingError, match="150,000,000,000 voters"):
        rk.mmd_test(many[:75], many[75:], rk.Mallows(0.3))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: rk.datasets.uniform(5, 10**9), "n_items"),
        (lambda: rk.datasets.uniform(10**9, 5), "n_rankings"),
        (lambda: rk.datasets.mallows(10**9, range(60), 0.1), "n_rankings"),
        (lambda: rk.datasets.plackett_luce(10**9, [1, 2, 3]), "n_rankings"),
        (lambda: rk.herd([0, 0, 0], K, 10**9), "n_draws"),
    ],
    ids=["items", "uniform", "mallows", "plackett_luce", "herd"],
)
def test_samples_that_do_not_fit(free, call, name):
    free(10**9)
    with pytest.raises(MemoryError, match=name):
        call()


def test_large_samples_continue_small_ones():
    """More rankings than are drawn at once: 3,000,000 items."""
    for sample in (lambda n: rk.datasets.uniform(n, 30, rng=1), lambda n: rk.datasets.plackett_luce(n, range(1, 31))):
        large, small = sample(100_000), sample(100)
        assert large[:100] == small


def test_estimates_of_short_lists_of_many_items_take_memory_for_the_listed_items():
    X = rankings(40, n_items=1000, listed=10)
    kernel = rk.Exponential("footrule", 1e-5)
    kernel.gram(X[:3])  # compiles
    tracemalloc.start()
    try:
        plan = kernel.plan(X)
        plan.gram()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(plan.method, rk.MonteCarlo)
    assert peak < 8 * len(X) * X.n_items**2 / 4  # a quarter of the position matrices of all rankings
