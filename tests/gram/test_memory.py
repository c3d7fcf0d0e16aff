"""A matrix that does not fit is refused; one that lives elsewhere is filled as if it were in memory."""

import tracemalloc

import numpy as np
import pytest
import shrunk_blocks

import rankernel as rk
from rankernel._utils import memory
from rankernel._utils.memory import GramMemoryError, available_memory
from rankernel.completions.herding import joint_herd
from rankernel.gram import plan as gram_plan
from rankernel.gram.blocks import tiles
from rankernel.gram.exact.coded import CodedEvaluator, FormulaEvaluator
from rankernel.gram.montecarlo import sampled
from rankernel.reports.source import Source
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
    pytest.param(rk.Mallows(0.3), rk.MonteCarlo(6, distinct_rows=True), id="draws of each row"),
]


@pytest.fixture(autouse=True)
def many_tiles(monkeypatch):
    shrunk_blocks.shrink(monkeypatch.setattr)


# ---------------------------------------------------------------------- how much there is


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


MACHINE = {"proc/meminfo": "MemTotal:       8000 kB\nMemFree:  1000 kB\nMemAvailable:   3000 kB\nHugePages_Total: 0\n"}


def test_memory_of_the_machine(tmp_path):
    write(tmp_path, MACHINE)
    assert available_memory(tmp_path) == 3000 * 1024


def test_nothing_known_elsewhere(tmp_path):
    assert available_memory(tmp_path) is None


def test_memory_of_a_control_group(tmp_path):
    write(tmp_path, MACHINE | {"proc/self/cgroup": "0::/jobs/mine\n"})
    group = "sys/fs/cgroup/jobs/mine/memory"
    write(tmp_path, {f"{group}.max": "max\n", f"{group}.current": "5000\n"})
    assert available_memory(tmp_path) == 3000 * 1024
    write(tmp_path, {f"{group}.max": "9000\n", f"{group}.stat": "anon 4000\ninactive_file 700\n"})
    assert available_memory(tmp_path) == 9000 - 5000 + 700
    above = "sys/fs/cgroup/jobs/memory"
    write(tmp_path, {f"{above}.max": "8000\n", f"{above}.current": "7000\n"})
    assert available_memory(tmp_path) == 1000
    write(tmp_path, {f"{above}.current": "8100\n"})
    assert available_memory(tmp_path) == 0


def test_memory_of_an_old_control_group(tmp_path):
    write(tmp_path, MACHINE | {"proc/self/cgroup": "5:cpu:/jobs\n4:cpuacct,memory:/jobs\n0::/\n"})
    folder = "sys/fs/cgroup/memory/jobs"
    write(
        tmp_path,
        {
            f"{folder}/memory.limit_in_bytes": "9000\n",
            f"{folder}/memory.usage_in_bytes": "6000\n",
            f"{folder}/memory.stat": "total_inactive_file 50\n",
        },
    )
    assert available_memory(tmp_path) == 3050


def test_this_machine_has_some():
    free = available_memory()
    assert free is None or free > 2**20


# ---------------------------------------------------------------------- whether it is enough


@pytest.fixture
def free(monkeypatch):
    for module in (memory, gram_plan):
        monkeypatch.setattr(module, "ALWAYS_FITS", -1)

    def set_free(n_bytes):
        monkeypatch.setattr(memory, "available_memory", lambda: n_bytes)

    return set_free


def test_the_error_says_what_to_do(free):
    free(20 * GIB)
    with pytest.raises(GramMemoryError) as error:
        memory.check_memory((200_000, 200_000), np.float64)
    assert str(error.value) == (
        "the Gram matrix of 200,000 x 200,000 float64 would take 298 GiB; 20 GiB are free: use dtype=float32, out= a "
        "memmap or a zarr array, kernel.plan(X).store(path) or `rankernel gram -o K.zarr`, or NystromFeatures"
    )
    assert isinstance(error.value, MemoryError)
    with pytest.raises(GramMemoryError) as error:
        memory.check_memory((200_000, 200_000), np.float32)
    assert "149 GiB" in str(error.value)
    assert "dtype=float32" not in str(error.value)


def test_a_matrix_that_just_fits(free):
    kernel, n_bytes = rk.Mallows(0.3), 8 * len(DISTINCT) ** 2
    free(n_bytes)
    assert kernel.gram(DISTINCT).nbytes == n_bytes
    free(n_bytes - 1)
    with pytest.raises(GramMemoryError, match="150 x 150 float64"):
        kernel.gram(DISTINCT)
    assert kernel.gram(DISTINCT, dtype=np.float32).dtype == np.float32
    free(None)
    assert kernel.gram(DISTINCT).shape == (150, 150)


@pytest.mark.parametrize(("kernel", "method"), KERNELS)
def test_equal_rankings_take_no_second_matrix(free, kernel, method):
    one = 8 * len(REPEATED) ** 2
    free(one)
    kernel.gram(REPEATED, method=method)
    free(one - 1)
    with pytest.raises(GramMemoryError):
        kernel.gram(REPEATED, method=method)


@pytest.mark.parametrize(("kernel", "method"), KERNELS[:4])
def test_what_is_held_at_once_is_little_more_than_the_matrix(kernel, method):
    some = rankings(700).unique()[:350]
    X = rk.concat([some, some[::-1]])
    kernel.gram(X[:20], method=method)  # compiled
    plan = kernel.plan(X, method=method)
    tracemalloc.start()
    matrix = plan.gram(n_jobs=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * matrix.nbytes


def test_a_given_matrix_takes_no_memory(free):
    free(0)
    out = np.empty((len(DISTINCT), len(DISTINCT)))
    assert rk.Mallows(0.3).gram(DISTINCT, out=out) is out


def test_errors_derivatives_and_paths_count(free):
    one = 8 * len(DISTINCT) ** 2
    free(4 * one - 1)
    rk.Mallows(0.3).estimate(DISTINCT)
    with pytest.raises(GramMemoryError, match="5 Gram matrices"):  # values and slopes, the errors of both, doubts
        rk.Mallows(0.3).estimate(DISTINCT, gradient=True)
    with pytest.raises(GramMemoryError, match="4 Gram matrices"):
        rk.Mallows().plan(DISTINCT).path(nu=[0.1, 0.2, 0.3, 0.4])
    free(one - 1)
    with pytest.raises(GramMemoryError):
        rk.Mallows(0.3).log_gram(DISTINCT)


# ---------------------------------------------------------------------- matrices elsewhere


@pytest.mark.parametrize(("kernel", "method"), KERNELS)
@pytest.mark.parametrize("X", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
def test_a_memory_map_is_filled(tmp_path, kernel, method, X):
    out = np.lib.format.open_memmap(tmp_path / "K.npy", mode="w+", dtype=np.float64, shape=(len(X), len(X)))
    kernel.gram(X, method=method, out=out, n_jobs=3)
    out.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "K.npy"), kernel.gram(X, method=method))


@pytest.mark.parametrize(("kernel", "method"), KERNELS)
@pytest.mark.parametrize("X", [DISTINCT[:90], REPEATED[:90]], ids=["distinct", "repeated"])
@pytest.mark.parametrize("chunks", [(32, 32), (37, 50)], ids=["whole tiles", "cut tiles"])
def test_a_zarr_array_is_filled(kernel, method, X, chunks):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed: pip install 'rankernel[zarr]'")
    for columns in (None, DISTINCT[:55]):
        expected = kernel.gram(X, columns, method=method)
        out = zarr.create_array(store={}, shape=expected.shape, chunks=chunks, dtype=np.float64)
        assert kernel.gram(X, columns, method=method, out=out, n_jobs=3) is out
        np.testing.assert_array_equal(out[:], expected)


def test_normalisation_reaches_the_given_matrix(tmp_path):
    for X in (DISTINCT, REPEATED):
        out = np.empty((len(X), len(X)), dtype=np.float32)
        rk.Mallows(0.3).gram(X, normalize=True, out=out)
        np.testing.assert_array_equal(out, rk.Mallows(0.3).gram(X, normalize=True, dtype=np.float32))
        np.testing.assert_allclose(np.diagonal(out), 1, rtol=1e-6)


def test_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"out has shape \(3, 3\); this Gram matrix has shape \(150, 150\)"):
        rk.Kendall().gram(DISTINCT, out=np.empty((3, 3)))


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


def test_equal_rankings_of_a_block_are_computed_once(monkeypatch):
    seen = []
    plan = rk.Exponential("hamming", 0.4).plan(rk.concat([DISTINCT[:4]] * 8))
    assert isinstance(plan.evaluator, CodedEvaluator)
    compute = FormulaEvaluator.values
    monkeypatch.setattr(
        FormulaEvaluator, "values", lambda self, kernels, tile: seen.append(tile) or compute(self, kernels, tile)
    )
    assert plan.block(slice(0, 32), slice(0, 32)).shape == (32, 32)
    assert [[part.tolist() for part in tile] for tile in seen] == [[[0, 1, 2, 3], [0, 1, 2, 3]]]


def test_the_method_is_settled_by_all_rankings():
    kernel = rk.Mallows("median")
    halves = list(kernel.plan(DISTINCT).blocks(side=80))
    nu = kernel.resolve(DISTINCT)
    assert len(halves) == len(list(tiles(150, 150, 80, symmetric=True)))
    np.testing.assert_array_equal(halves[0][2], nu.gram(DISTINCT)[:80, :80])


@pytest.mark.parametrize("side", [0, -3, 2.5])
def test_a_side_is_a_whole_number(side):
    with pytest.raises(ValueError, match=f"side={side}"):
        next(rk.Kendall().plan(DISTINCT).blocks(side=side))


# ---------------------------------------------------------------------- whole tasks


def some_free(monkeypatch, n_matrices):
    """Let so many matrices of all rankings fit."""
    monkeypatch.setattr(memory, "ALWAYS_FITS", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: int(n_matrices * 8 * len(TASK_DATA) ** 2))


TASK_DATA = rk.Rankings(rankings(1000, seed=3).unique().ranks[:600])
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
    "a search for outliers": lambda X: rk.outlier_test(halves(X)[0], K, reference=halves(X)[1]),
    "a test of fit": lambda X: rk.goodness_of_fit_test(X, rk.Uniform(), K, n_simulations=9),
    "a label ranking": lambda X: rk.KernelRankingRegressor(kernel=K).fit(X, X),
    "a map": lambda X: rk.KernelMap(kernel=K).fit(X),
    "k-medoids": lambda X: rk.KernelKMedoids(3, kernel=K, n_init=1).fit(X),
    "a dendrogram": lambda X: rk.linkage(X, K),
}

STRIPS = {  # what is taken at once on the way, made small here: it does not grow as matrices do
    "stats._moments.BLOCK_ROWS": 16,
    "stats._moments.MAX_ROWS_FOR_SKEWNESS": 100,
    "stats._covariates.MOST_RANKINGS": 50,
    "stats._permutations.CHUNK_ENTRIES": 2**16,
    "stats._permutations.BLOCK_ROWS": 16,
    "stats._groups.BLOCK_ROWS": 16,
    "stats.change_points.CHUNK_ENTRIES": 2**16,
    "stats.hsic.CHUNK_ENTRIES": 2**16,
    "stats.hsic.BLOCK_ROWS": 16,
}


def test_all_tasks_are_tried():
    assert TASKS.keys() == memory.HELD.keys()


@pytest.mark.parametrize("name", TASKS)
def test_a_task_that_does_not_fit_is_refused_before_its_first_matrix(name, monkeypatch):
    held = memory.HELD[name]
    some_free(monkeypatch, held - 0.1)
    monkeypatch.setattr(gram_plan.Plan, "gram", lambda *_, **__: pytest.fail("a matrix was computed"))
    with pytest.raises(GramMemoryError, match=rf"{name} of 600 rankings holds {held:g} matrices"):
        TASKS[name](TASK_DATA)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_holds_no_more_than_it_says(name, monkeypatch):
    for constant, value in STRIPS.items():
        monkeypatch.setattr(f"rankernel.{constant}", value)
    TASKS[name](TASK_DATA[:60])  # compiled and loaded
    tracemalloc.start()
    TASKS[name](TASK_DATA)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < (memory.HELD[name] + 0.4) * 8 * 600**2


def test_a_kernel_with_its_derivatives_says_what_it_holds(monkeypatch):
    some_free(monkeypatch, 2.9)
    monkeypatch.setattr(gram_plan.Plan, "gram", lambda *_, **__: pytest.fail("a matrix was computed"))
    with pytest.raises(GramMemoryError, match="a kernel with its derivatives of 600 rankings holds 3 matrices"):
        rk.SklearnKernel(K)(TASK_DATA.ranks, eval_gradient=True)


def test_features_that_do_not_fit(monkeypatch):
    some_free(monkeypatch, 0.99)
    with pytest.raises(GramMemoryError, match="300 features of 600 rankings takes"):
        rk.NystromFeatures(300, kernel=K).fit(TASK_DATA)


ORDERS = rk.Preferences.from_pairs(
    [[(f"i{n % 9}", f"i{n // 9}"), ("i7", "i8")] for n in range(1, 60) if n % 9 < n // 9], [f"i{n}" for n in range(9)]
)


@pytest.mark.parametrize(
    ("X", "n_bytes"),
    [(DISTINCT, 8), (ORDERS, 26)],
    ids=["ballots", "orders"],
)
def test_draws_that_do_not_fit(monkeypatch, X, n_bytes):
    for module in (memory, sampled):
        monkeypatch.setattr(module, "ALWAYS_FITS", 0)
    plan = rk.Exponential("footrule", 0.1).plan(X, method=rk.MonteCarlo(1000, control_variates=0))
    needed = n_bytes * len(X) * 1000 * 9
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    with pytest.raises(GramMemoryError, match=f"1,000 draws from each of {len(X)} rankings takes .*fewer draws"):
        plan.block([0], [1])
    monkeypatch.setattr(memory, "available_memory", lambda: needed)
    tracemalloc.start()
    plan.block([0], [1])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1.2 * needed


def test_draws_for_the_errors_count(monkeypatch):
    """Of 8 orthogonal draws, which are one block, errors are measured by 16 sets."""
    for module in (memory, sampled):
        monkeypatch.setattr(module, "ALWAYS_FITS", 0)
    plan = rk.Exponential("footrule", 0.1).plan(DISTINCT[:20], method=rk.MonteCarlo(8, "orthogonal"))
    monkeypatch.setattr(memory, "available_memory", lambda: 8 * 8 * 20 * 9)
    plan.gram(n_jobs=1)
    with pytest.raises(GramMemoryError, match=r"128 draws from each of .*fewer draws"):
        plan.estimate(n_jobs=1)


# ---------------------------------------------------------------------- many items


def wide(n_items):
    rows = np.array([np.arange(n_items), np.roll(np.arange(n_items), 1), np.arange(n_items)[::-1]])
    return rk.Rankings(rows[[0, 1, 2, 0]])


def test_every_two_of_many_items(monkeypatch):
    result = rk.mmd_test(wide(300)[:2], wide(300)[2:], rk.Mallows(0.001), n_permutations=9)
    found = result.differences(contributions="pairs")
    assert len(found.pairs) == 5000  # of 44,850
    parts = [pair.contribution for pair in found.pairs]
    assert parts == sorted(parts, reverse=True)
    assert found.total != pytest.approx(sum(parts))
    monkeypatch.setattr(memory, "ALWAYS_FITS", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 8 * 18 * 44_850)
    with pytest.raises(GramMemoryError, match=r"comparing 2 groups by all pairs of 300 items takes .*leave out"):
        result.differences(contributions="pairs")


def test_every_two_items_of_a_page():
    with pytest.raises(rk.RankingError, match=r"Wide has 3,001 items.* at most 3,000"):
        summarize(Source(wide(3001), "Wide"))


def test_what_many_users_say_of_many_items(monkeypatch):
    monkeypatch.setattr(memory, "ALWAYS_FITS", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 9 * 2 - 1)
    with pytest.raises(GramMemoryError, match="what 2 users say of 9 items takes 36 bytes; 35 bytes are free"):
        rk.Preferences.from_pairs([[("a", "b")], [("b", "c")]], items=list("abcdefghi"))


# ---------------------------------------------------------------------- voters


def test_too_many_voters_for_a_test_of_single_ones(monkeypatch):
    many = rk.Rankings(DISTINCT.ranks, counts=np.full(len(DISTINCT), 10**9))
    with pytest.raises(GramMemoryError, match="an independence test of 150,000,000,000 voters takes"):
        rk.hsic_test(many, np.arange(150) % 2)
    with pytest.raises(GramMemoryError, match="a test of fit of 150,000,000,000 voters takes"):
        rk.goodness_of_fit_test(many, rk.Uniform())
    with pytest.raises(rk.RankingError, match=r"150,000,000,000 voters, and at most 1,000,000,000 can be permuted"):
        rk.mmd_test(many[:75], many[75:], rk.Mallows(0.3))


# ---------------------------------------------------------------------- generators


LARGE = {
    "n_items=1,000,000,000 takes": lambda: rk.datasets.uniform(5, 10**9),
    "n_rankings=1,000,000,000 of 5 items takes": lambda: rk.datasets.uniform(10**9, 5),
    "n_rankings=1,000,000,000 of 60 items takes": lambda: rk.datasets.mallows(10**9, range(60), 0.1),
    "n_rankings=1,000,000,000 of 3 items takes": lambda: rk.datasets.plackett_luce(10**9, [1, 2, 3]),
    "n_draws=1,000,000,000 rankings of 3 items takes": lambda: rk.herd([0, 0, 0], K, 10**9),
    "n_draws=1,000,000 together takes": lambda: joint_herd([0, 1, 2], K, 10**6),
}


@pytest.mark.parametrize("said", LARGE)
def test_more_than_fits_is_not_drawn(monkeypatch, said):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)
    with pytest.raises(GramMemoryError, match=said):
        LARGE[said]()


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    def drawn():
        return [rk.datasets.uniform(50, 7, rng=1), rk.datasets.plackett_luce(50, range(1, 6), rng=1)]

    at_once = drawn()
    monkeypatch.setattr("rankernel.rankings.CHUNK_CELLS", 20)
    assert drawn() == at_once
