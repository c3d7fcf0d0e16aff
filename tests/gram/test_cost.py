"""Time and memory: bounded by sampling and chunks, predicted, and announced before a long computation."""

import inspect
import tracemalloc
from contextlib import suppress
from importlib import import_module

import numpy as np
import pytest

import rankernel as rk
from benchmarks import cost
from rankernel import Auto, CostWarning, Exact, MonteCarlo
from rankernel._utils import resources
from rankernel._utils.resources import announce_cost, n_threads
from rankernel.completions import draw
from rankernel.gram.evaluator import ConstantEvaluator, Evaluator, RowsEvaluator, SumEvaluator
from rankernel.gram.exact.formulas import Formula, FormulaEvaluator, shape_pairs


def tops(n_items, n_rankings, k, seed=0):
    rng = np.random.default_rng(seed)
    return rk.Rankings(np.minimum([rng.permutation(n_items) for _ in range(n_rankings)], k))


def sparse_ratings(n_users, n_items, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 6, (n_users, n_items)).astype(float)
    scores[rng.random(scores.shape) < 0.85] = np.nan
    return rk.Rankings.from_scores(scores, unlisted="free")


# ---------------------------------------------------------------------- median heuristic


@pytest.mark.parametrize("distance", [rk.distances.kendall, rk.distances.hamming, rk.distances.footrule])
def test_median_of_long_lists_takes_little_memory(distance):
    X = tops(1000, 60, 10)
    tracemalloc.start()
    median = rk.median_distance(X, distance)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6  # features of all pairs of items would take 240 MB
    few = rk.median_distance(X[:4], distance)
    assert median == pytest.approx(few, rel=0.02)


def test_median_of_sampled_pairs_is_close_to_that_of_all_pairs():
    rng = np.random.default_rng(1)
    ranks = np.array([rng.permutation(12) for _ in range(1500)])
    many = rk.Rankings(ranks)
    d = rk.distances.kendall(many, many)
    exact = np.median(d[~np.eye(len(d), dtype=bool)])
    assert rk.median_distance(many, rk.distances.kendall) == pytest.approx(exact, abs=1)
    assert rk.median_distance(many, rk.distances.kendall) == rk.median_distance(many, rk.distances.kendall)


def test_sampled_pairs_are_pairs_of_different_voters():
    counts = np.ones(1200, dtype=int)
    counts[0] = 5000  # most pairs of voters agree, so the mean is used
    rng = np.random.default_rng(2)
    X = rk.Rankings(np.array([rng.permutation(12) for _ in range(1200)]), counts=counts).unique()
    assert 0 < rk.median_distance(X, rk.distances.kendall) < 33


# ---------------------------------------------------------------------- Monte Carlo


def test_kendall_draws_of_many_items_are_compared_in_pairs():
    rng = np.random.default_rng(0)
    X = rk.Rankings(np.array([np.where((p := rng.permutation(150)) < 75, p, -1) for _ in range(4)]))
    method = MonteCarlo(8, coupling="iid", control_variates=0)
    found = rk.Mallows(0.001).gram(X, method=method)
    draws = draw(X, 8).ranks.astype(np.int32)
    for i in range(4):
        for j in range(4):
            d = rk.distances.kendall.between(draws[i], draws[j])
            assert found[i, j] == pytest.approx(np.exp(-0.001 * d).mean(), rel=1e-12)


def test_sparse_ratings_use_fewer_draws_if_these_are_precise():
    X = sparse_ratings(1500, 40)
    plan = rk.Mallows(0.0026).plan(X)
    assert plan.method.n_draws in (16, 32)
    assert f"standard errors with {plan.method.n_draws}" in plan.reason
    some = rk.Mallows(0.0026).estimate(X[:30], method=plan.method)
    between = some.stderr[~np.eye(30, dtype=bool)]
    assert np.sqrt(np.mean(between**2)) < 2e-3 * np.diagonal(some.value).max()
    assert rk.Mallows(0.0026).plan(X[:100]).method.n_draws == 64


def test_draws_of_large_partial_orders_are_priced():
    rng = np.random.default_rng(0)

    def users(n_items, n_users):
        pairs = [rng.choice(n_items, (n_items, 2)) for _ in range(n_users)]
        listed = [[(int(min(p)), int(max(p))) for p in each if p[0] != p[1]] for each in pairs]
        return rk.Preferences.from_pairs(listed, items=range(n_items))

    small, large = (rk.Mallows(0.01).plan(users(n, 5), method=MonteCarlo(64)).seconds for n in (12, 50))
    assert large > 20 * small


# ---------------------------------------------------------------------- decisions


def test_patience_is_that_of_the_half_that_is_computed():
    X = rk.Rankings(np.array([np.random.default_rng(seed).permutation(9) // 3 for seed in range(80)]))
    kernel = rk.Exponential("hamming", 0.3)
    full = kernel.plan(X, method="exact")._evaluator.seconds(*[len(X.unique())] * 2)
    method = Auto(max_seconds=0.75 * full, max_ratio=0)
    assert kernel.plan(X, method=method).method == Exact()
    assert isinstance(kernel.plan(X, X[:], method=method).method, MonteCarlo)


def test_each_pair_of_shapes_is_considered_once():
    X = rk.Rankings.from_scores(np.random.default_rng(0).integers(0, 4, (40, 8)))
    pairs = list(shape_pairs(X, X))
    n_shapes = len({left for left, _ in pairs})
    assert len(pairs) == n_shapes * (n_shapes + 1) // 2
    assert len(set(pairs) | {(b, a) for a, b in pairs}) == n_shapes**2


@pytest.mark.parametrize("distance", ["hamming", "cayley", "footrule"])
def test_shapes_of_one_profile_are_treated_alike(distance):
    scores = np.indices((4,) * 6).reshape(6, -1).T[::3]
    X = rk.Rankings.from_scores(np.where(scores == 3, np.nan, scores), unlisted="free")
    kernels = [rk.Exponential(distance, 0.3), rk.Exponential(distance, 0.3) ** 2 + 1]
    formulas = import_module(f"rankernel.gram.exact.{distance}").FORMULAS
    answers = {}
    for left, right in shape_pairs(X, X):
        found = [
            (formula.covers(kernel, left, right), formula.is_accurate(kernel, left, right))
            + ((formula.seconds(kernel, left, right),) if formula.covers(kernel, left, right) else ())
            for kernel in kernels
            for formula in formulas
        ]
        assert answers.setdefault((left.profile, right.profile), found) == found
    assert 1 < len(answers) < len(list(shape_pairs(X, X)))


def names_of_subclasses(base):
    """The names of all classes below a class of which there are objects."""
    own = set() if inspect.isabstract(base) else {base.__name__}
    return own.union(*map(names_of_subclasses, base.__subclasses__()))


@pytest.mark.filterwarnings("ignore")
def test_every_evaluator_and_formula_has_a_cell_of_the_sweep():
    """The time of an evaluator without a measured cell would not be known to be predicted."""
    measured = set()
    for name, kind, n_items, method in cost.cells():
        if method in cost.METHODS and n_items == 10:
            with suppress(rk.ExactnessError, ValueError):
                plan = cost.kernels(10)[name].plan(cost.rankings(kind, 4, 10), method=cost.requested(method))
                measured |= cost.models_of(plan._evaluator)
    composed = {each.__name__ for each in (ConstantEvaluator, SumEvaluator, RowsEvaluator, FormulaEvaluator)}
    priced = (names_of_subclasses(Evaluator) | names_of_subclasses(Formula)) - composed
    assert measured >= priced


def test_time_of_overlaps_that_are_cheaper_than_their_shapes():
    """The dynamic programs of most pairs of mixed lists take a fraction of the time of the most expensive overlap."""
    X = cost.rankings("mixed", 40, 10)
    evaluator = rk.Mallows(0.1).plan(X, method="exact")._evaluator
    slowest = max(formula.seconds(rk.Mallows(0.1), *pair) for pair, formula in evaluator.chosen.items())
    assert evaluator.value_seconds < 0.05 * slowest


@pytest.mark.parametrize("method", ["exact", MonteCarlo(16)])
@pytest.mark.parametrize("kernel", [rk.Mallows(0.2), rk.Kendall(), rk.Exponential("hamming", 0.3), rk.Polynomial(2)])
def test_paired_is_the_diagonal_of_the_matrix(kernel, method):
    X, Y = tops(7, 30, 3), tops(7, 30, 3, seed=1)
    np.testing.assert_array_equal(
        kernel.paired(X, Y, method=method), np.diagonal(kernel.gram(X, Y, method=method)).copy()
    )


def test_draws_of_pairs_are_held_for_some_pairs_at_a_time():
    X, Y = tops(3000, 100, 5), tops(3000, 100, 5, seed=1)
    kernel, method = rk.Exponential("footrule", 1e-4), MonteCarlo(64, control_variates=0)
    plan = kernel.plan(X, Y, method=method)
    assert plan.bytes > 300e6  # of all draws
    kernel.paired(X[:2], Y[:2], method=method)  # compiled
    tracemalloc.start()
    found = kernel.paired(X, Y, method=method)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.9 * plan.bytes
    some = [0, 40, 99]
    np.testing.assert_array_equal(found[some], np.diagonal(kernel.gram(X[some], Y[some], method=method)))


def test_plans_announce_the_memory_of_draws():
    X = tops(50, 40, 10)
    exact, estimated = (rk.Mallows(0.1).plan(X, method=method) for method in ("exact", MonteCarlo(64)))
    assert exact.bytes == 8 * 40 * 40
    assert estimated.bytes >= exact.bytes + 2 * 40 * 64 * 50


# ---------------------------------------------------------------------- announcements, threads, sizes


def test_long_computations_are_announced():
    with pytest.warns(CostWarning, match="approximately 60 s"):
        announce_cost("the test", 60.0)
    with pytest.warns(CostWarning, match="2.8 GiB of memory"):
        announce_cost("the test", 1.0, 3 * 10**9)
    announce_cost("the test", 1.0, 10**6)


def test_a_large_matrix_is_announced():
    X = tops(40, 20_000, 20)
    with pytest.warns(CostWarning, match="20,000 x 20,000 entries"):
        rk.Kendall().plan(X)._announce(None)


def test_the_number_of_threads_is_limited():
    assert n_threads(10**6) == max(64, n_threads(-1))
    X = tops(8, 40, 8)
    np.testing.assert_array_equal(rk.Mallows(0.1).gram(X, n_jobs=10**6), rk.Mallows(0.1).gram(X))


class Unused(rk.Kernel):
    """A kernel that must not be evaluated."""

    def matrix(self, X, Y):
        raise AssertionError("evaluated before the size was checked")


@pytest.mark.parametrize("name", ["trend_test", "change_point_test"])
def test_sizes_are_checked_before_anything_is_computed(name, monkeypatch):
    monkeypatch.setattr(resources, "available_memory", lambda: 2**20)
    X = tops(10, 2000, 10)
    arguments = (np.arange(2000.0),) if name == "trend_test" else ()
    with pytest.raises(MemoryError):
        getattr(rk, name)(X, *arguments, kernel=Unused())


def test_blocks_of_slow_matrices_are_short():
    X = rk.Rankings(np.array([np.random.default_rng(seed).permutation(12) // 4 for seed in range(60)]))
    evaluator = rk.Exponential("hamming", 0.3).plan(X, method="exact")._evaluator
    side = evaluator.side_for(len(X), len(X))
    assert side == 1 or evaluator.seconds(len(X), len(X)) / len(X) ** 2 * side**2 <= 1.0
