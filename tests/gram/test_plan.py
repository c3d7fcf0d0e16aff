"""Plans: the same kernel, method and seed for every public way to kernel values, and each computation done once."""

import inspect
import json
import pickle
import warnings
from dataclasses import FrozenInstanceError, dataclass, replace
from functools import partial

import all_tests
import numpy as np
import pytest
from sklearn.svm import SVC
from typer.testing import CliRunner

import rankernel as rk
from rankernel._utils.checks import stream_key
from rankernel.cli.app import app
from rankernel.gram import plan as gram_plan
from rankernel.gram.montecarlo import MonteCarloEvaluator
from rankernel.kernels import Facts
from rankernel.reports.ballots import Source
from rankernel.reports.clusters import Settings
from rankernel.reports.summary import summarize
from rankernel.stats.mmd import mmd2_streamed

sampling_allowed = pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")

LISTS = rk.datasets.uniform(14, 12, rng=0).top(4)
FREE = rk.datasets.uniform(14, 12, rng=0).top(4, unlisted="free")
EXACT = rk.Mallows("median"), LISTS  # a closed form
DRAWN = rk.Exponential("footrule", "median"), FREE  # none, and too many completions
BOTH = pytest.mark.parametrize(("kernel", "X"), [EXACT, DRAWN], ids=["exact", "drawn"])
LABELS = np.arange(14) % 2


# ---------------------------------------------------------------------- every way to kernel values


def ways(tmp_path):
    """Every public way to kernel values of some rankings by a method."""
    return {
        "gram": lambda k, X, m: k.gram(X, method=m),
        "normalised": lambda k, X, m: k.gram(X, method=m, normalize=True),
        "estimate": lambda k, X, m: k.estimate(X, method=m),
        "diagonal": lambda k, X, m: k.plan(X, method=m).diagonal(),
        "paired": lambda k, X, m: k.paired(X, X, method=m),
        "block": lambda k, X, m: k.plan(X, method=m).block(slice(0, 3), slice(4, 9)),
        "blocks": lambda k, X, m: list(k.plan(X, method=m).blocks()),
        "times": lambda k, X, m: k.plan(X, method=m).times(LABELS),
        "store": lambda k, X, m: k.plan(X, method=m).store(tmp_path / "K.npy"),
        "SklearnKernel": lambda k, X, m: rk.SklearnKernel(k.resolve(X), method=m)(X.ranks),
        "SVC": lambda k, X, m: (
            SVC(kernel=rk.SklearnKernel(k.resolve(X), method=m)).fit(X.ranks, LABELS).predict(X.ranks)
        ),
        "kernel_distances": lambda k, X, m: rk.kernel_distances(X, k, method=m),
        "linkage": lambda k, X, m: rk.linkage(X, k, method=m),
        "KernelKMeans": lambda k, X, m: rk.KernelKMeans(2, kernel=k, method=m).fit(X).predict(X),
        "KernelKMedoids": lambda k, X, m: rk.KernelKMedoids(2, kernel=k, method=m).fit(X).predict(X),
        "KernelMap": lambda k, X, m: rk.KernelMap(kernel=k, method=m).fit(X).transform(X),
        "NystromFeatures": lambda k, X, m: rk.NystromFeatures(3, kernel=k, method=m).fit(X).transform(X),
        "mmd2_streamed": lambda k, X, m: mmd2_streamed(X[:6], X[6:], k, method=m),
        **{name: partial(hypothesis_test, name) for name in all_tests.TESTS},
        "SequentialMMDTest": lambda k, X, m: rk.SequentialMMDTest(k.resolve(X), method=m).update(X[:7], X[7:]),
        "agreement": lambda k, X, m: rk.agreement(X, k, method=m),
        "KernelRankingRegressor": lambda k, X, m: rk.KernelRankingRegressor(kernel=k, method=m).fit(X, X).predict(X),
        "report": lambda k, X, m: summarize(Source(X), Settings(kernel=k, method=m, n_clusters=2, compare=())),
        "Dask gram": lambda k, X, m: on_dask().gram(k.plan(X, method=m)).compute(scheduler="synchronous"),
        "Dask mmd2": lambda k, X, m: on_dask().mmd2(X[:6], X[6:], k, method=m),
        "Dask Nyström": lambda k, X, m: (
            on_dask().transform(X, rk.NystromFeatures(3, kernel=k, method=m).fit(X)).compute(scheduler="synchronous")
        ),
        "GPy": with_gpy,
        "GPyTorch": with_gpytorch,
    }


def hypothesis_test(name, kernel, X, method):
    if name == "goodness_of_fit_test" and not X.is_exhaustive():
        pytest.skip("not defined for free items")
    all_tests.run(name, X, kernel.resolve(X) if name == "outlier_test" else kernel, method)


def on_dask():
    pytest.importorskip("dask", reason="dask is not installed")
    from rankernel.learn import dask

    return dask


def with_gpy(kernel, X, method):
    pytest.importorskip("GPy", reason="GPy is not installed")
    from rankernel.learn import gpy

    kern = gpy.RankingKern(X.n_items, kernel, method=method, data=X)
    kern.K(X.ranks.astype(float)), kern.Kdiag(X.ranks.astype(float)), kern.K(X.ranks[:2].astype(float), X.ranks * 1.0)


def with_gpytorch(kernel, X, method):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("gpytorch", reason="GPyTorch is not installed")
    from rankernel.learn.gpytorch import RankingKernel

    module, ranks = RankingKernel(kernel, method=method, data=X).double(), torch.as_tensor(X.ranks * 1.0)
    module(ranks).to_dense(), module(ranks, diag=True), module(ranks[:2], ranks).to_dense()


EVERY_WAY = pytest.mark.parametrize("way", ways(None))


def test_every_public_name_with_a_method_is_a_way():
    names = {name for name in rk.__all__ if callable(getattr(rk, name))} - {"Plan"}  # its method is the resolved one
    signatures = {name: inspect.signature(getattr(rk, name)).parameters for name in names}
    assert {name for name, parameters in signatures.items() if "method" in parameters} <= set(ways(None))


@pytest.fixture
def decided(monkeypatch):
    """Each decision: kernel, method and reason."""
    found, decide = [], gram_plan.decide

    def watched(kernel, X, Y, requested, paired=False):
        method, evaluator, reason = decide(kernel, X, Y, requested, paired)
        found.append((kernel, plain(method), reason))
        return method, evaluator, reason

    monkeypatch.setattr(gram_plan, "decide", watched)
    return found


@pytest.fixture
def drawn(monkeypatch):
    """Each set of draws: number of rankings and seed."""
    found, draw_set = [], MonteCarloEvaluator.draw_set

    def watched(evaluator, seed):
        found.append((len(evaluator.rankings), seed))
        return draw_set(evaluator, seed)

    monkeypatch.setattr(MonteCarloEvaluator, "draw_set", watched)
    return found


def plain(method):
    """A method with the default diagonal: hypothesis tests use an unbiased one."""
    return replace(method, diagonal="embedding") if isinstance(method, rk.MonteCarlo) else method


def expected_plan(kernel, X, method="auto"):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return kernel.plan(X, method=method)


@sampling_allowed
@BOTH
@EVERY_WAY
def test_every_way_makes_the_same_decision(tmp_path, decided, way, kernel, X):
    plan = expected_plan(kernel, X)
    decided.clear()
    ways(tmp_path)[way](kernel, X, "auto")
    assert decided
    assert {(found, method) for found, method, _ in decided} == {(plan.kernel, plan.method)}


# Tests draw again with other seeds to estimate the Monte Carlo error of their statistic.
DRAWS_AGAIN = {name for name in ways(None) if name.endswith("_test")}


@sampling_allowed
@EVERY_WAY
def test_every_way_uses_the_seed(tmp_path, drawn, way):
    kernel, X = DRAWN
    ways(tmp_path)[way](kernel, X, rk.Auto(fallback=rk.MonteCarlo(64, rng=7)))
    again = {int(stream_key(7, f"drawn again {times}") >> np.uint64(1)) for times in range(1, 33)}
    seeds = {seed for _, seed in drawn}
    assert 7 in seeds
    assert seeds <= ({7} | again if way in DRAWS_AGAIN else {7})


@sampling_allowed
@BOTH
@EVERY_WAY
def test_unaffordable_exact_values_are_estimated(tmp_path, decided, drawn, way, kernel, X):
    ways(tmp_path)[way](kernel, X, rk.Auto(max_seconds=0, max_ratio=0))
    assert {type(method) for _, method, _ in decided} == {rk.MonteCarlo}
    assert drawn


@EVERY_WAY
@pytest.mark.parametrize(
    "X", [LISTS, rk.datasets.uniform(14, 8, rng=0).top(3, unlisted="free")], ids=["lists", "free items"]
)
def test_affordable_values_are_exact(tmp_path, decided, drawn, way, X):
    ways(tmp_path)[way](rk.Mallows("median"), X, rk.Auto(max_seconds=1e9))
    assert {method for _, method, _ in decided} == {rk.Exact()}
    assert not drawn


@BOTH
def test_callable_kernels_make_the_same_decision(decided, kernel, X):
    plan = expected_plan(kernel, X)
    decided.clear()
    SVC(kernel=kernel.resolve(X)).fit(X.ranks, LABELS).predict(X.ranks[:3])
    assert {(found, method) for found, method, _ in decided} == {(plan.kernel, plan.method)}


@BOTH
def test_command_line_makes_the_same_decision(tmp_path, kernel, X):
    rk.write_preflib(X, tmp_path / "votes.soi")
    read = rk.read_preflib(tmp_path / "votes.soi", unlisted="last" if X is LISTS else "free")
    plan = expected_plan(kernel, read)
    name = "mallows" if X is LISTS else "exponential:distance=footrule"
    options = ["--kernel", name, "--unlisted", "last" if X is LISTS else "free", "--plan", "--json"]
    facts = json.loads(CliRunner().invoke(app, ["gram", str(tmp_path / "votes.soi"), *options]).stdout)
    assert (facts["kernel"], facts["method"]) == (str(plan.kernel), str(plan.method))
    assert (facts["details"], facts["reason"]) == (plan.details, plan.reason)
    assert (facts["seconds"], facts["bytes"]) == (plan.seconds, plan.bytes)


# ---------------------------------------------------------------------- what is decided


def test_auto_compares_times():
    kernel, X = rk.Mallows(0.1), FREE
    for max_seconds, max_ratio, exact in ((0, 0, False), (0, 1e12, True), (1e9, 0, True), (1e9, 1e12, True)):
        plan = kernel.plan(X, method=rk.Auto(max_seconds, max_ratio))
        assert isinstance(plan.method, rk.Exact) == exact
        assert bool(plan.reason) != exact
    assert DRAWN[0].plan(FREE).reason


def test_auto_options():
    assert rk.Mallows(0.1).plan(LISTS, method=rk.Auto()).method == rk.Mallows(0.1).plan(LISTS).method
    kernel, X = DRAWN
    fallback = rk.MonteCarlo(8, coupling="iid", control_variates=0, rng=3)
    assert kernel.plan(X, method=rk.Auto(fallback=fallback)).method == fallback
    with pytest.raises(ValueError, match="max_seconds"):
        rk.Auto(max_seconds=-1)
    with pytest.raises(TypeError, match="fallback"):
        rk.Auto(fallback="exact")


def test_plan_is_an_immutable_description():
    ballots = rk.Rankings.from_orders([["a", "b", "c"], ["c"], ["a", "b", "c"]], counts=[7, 5, 2])
    plan = rk.Mallows(0.5).plan(ballots)
    assert str(plan) == repr(plan)
    assert str(plan).startswith("Mallows(nu=0.5) of 2 distinct rankings (14 voters, 3 items)\n  exact: closed form")
    assert (plan.shape, plan.bytes) == ((3, 3), 72)
    assert 0 < plan.seconds < 0.01
    with pytest.raises(FrozenInstanceError):
        plan.kernel = rk.Kendall()
    assert "because there is no closed form" in str(DRAWN[0].plan(FREE))
    assert "between" in str(plan.against(ballots[:1]))


def test_public_names_of_a_plan():
    names = {name for name in dir(EXACT[0].plan(LISTS)) if not name.startswith("_")}
    described = {"kernel", "method", "reason", "details", "shape", "seconds", "bytes"}
    computed = {"gram", "estimate", "diagonal", "block", "blocks", "times", "store"}
    assert names == described | computed | {"against"}


def test_every_choice_is_resolved():
    plan = rk.Mallows("median").plan(LISTS, method=rk.MonteCarlo(8))
    assert isinstance(plan.kernel.nu, float)
    assert "auto" not in (plan.method.coupling, plan.method.control_variates)


# ---------------------------------------------------------------------- nothing twice


@dataclass(frozen=True)
class Counted(rk.Kernel):
    """A kernel that records the numbers of pairs of full rankings it is evaluated at."""

    seen: tuple = ()

    def matrix(self, X, Y):
        PAIRS.append(len(X) * len(Y))
        return rk.Hamming().matrix(X, Y)

    def facts(self, n_items):
        return Facts(is_psd=True)


PAIRS = []


@pytest.fixture
def pairs():
    for n_items in (5, 6):
        Counted().plan(np.arange(n_items)[None])  # checks the kernel once for each number of items
    PAIRS.clear()
    return PAIRS


def computations(plan):
    """Computations that need each ranking once."""
    return {
        "gram": plan.gram,
        "normalised": lambda: plan.gram(normalize=True),
        "diagonal": plan.diagonal,
        "unbiased diagonal": lambda: plan.diagonal(unbiased=True),
        "estimate": plan.estimate,
        "normalised estimate": lambda: plan.estimate(normalize=True),
        "gradient": lambda: plan.estimate(gradient=True),
        "times": lambda: plan.times(np.ones(plan.shape[1])),
        "blocks": lambda: list(plan.blocks()),
        "all": lambda: [computations(plan)[name]() for name in COMPUTATIONS[:-1]],
    }


COMPUTATIONS = [
    *("gram", "normalised", "diagonal", "unbiased diagonal", "estimate", "normalised estimate", "gradient"),
    *("times", "blocks", "all"),
]


@sampling_allowed
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_each_ranking_is_drawn_once(drawn, name):
    X = rk.concat([FREE, FREE[3:9]])
    plan = rk.Exponential("footrule", 0.05).plan(X, method=rk.MonteCarlo(64, "antithetic"))
    computations(plan)[name]()
    assert [n for n, _ in drawn] == [14]


@sampling_allowed
@pytest.mark.parametrize("name", ["gram", "normalised", "estimate", "normalised estimate", "times"])
def test_rows_and_columns_share_draws(drawn, name):
    plan = rk.Exponential("footrule", 0.05).plan(FREE[:9], FREE[5:], method=rk.MonteCarlo(64, "antithetic"))
    computations(plan)[name]()
    assert [n for n, _ in drawn] == [14]


@sampling_allowed
@pytest.mark.parametrize("way", ["mmd_test", "mmd2_streamed", "hsic_test", "linkage", "kernel_distances", "Dask mmd2"])
def test_tasks_draw_each_ranking_once(tmp_path, drawn, way):
    ways(tmp_path)[way](rk.Exponential("footrule", 0.05), FREE, rk.MonteCarlo(64, "antithetic"))
    seeds = [seed for _, seed in drawn]
    assert {n for n, _ in drawn} == {14}
    assert len(seeds) == len(set(seeds))
    assert len(seeds) == 1 or way in DRAWS_AGAIN


@sampling_allowed
@pytest.mark.parametrize("Model", [rk.KernelMap, rk.KernelKMeans, rk.KernelKMedoids, rk.NystromFeatures])
def test_fitting_draws_each_ranking_once(drawn, Model):
    Model(3, kernel=rk.Exponential("footrule", 0.05), method=rk.MonteCarlo(64, "antithetic")).fit(FREE)
    assert [n for n, _ in drawn] == [14]


@pytest.mark.parametrize("method", ["auto", "exact", "enumeration", rk.MonteCarlo(8)], ids=str)
def test_describing_a_plan_computes_nothing(drawn, pairs, method):
    plan = Counted().plan(rk.Rankings(np.arange(5)[None] % [[5], [3], [2]]), method=method)
    assert plan.details
    assert str(plan)
    assert plan.seconds > 0
    assert not drawn
    assert not pairs


@pytest.mark.parametrize("name", ["gram", "normalised", "diagonal", "estimate", "times", "blocks"])
@pytest.mark.parametrize("n_full", [6, 0], ids=["full", "enumerated"])
def test_no_pair_is_computed_twice(pairs, name, n_full):
    X = rk.datasets.uniform(6, 5, rng=1)
    X = rk.concat([X[:n_full], X[n_full:].top(3)])
    plan = Counted().plan(rk.concat([X, X[:4]]))
    computations(plan)[name]()
    sizes = np.array(X.n_completions())
    assert sum(pairs) <= sizes.sum() ** 2 * (2 if name == "normalised" else 1)


@pytest.mark.parametrize("n_draws", [32, 65, 200])
def test_standard_errors_take_few_more_evaluations(pairs, n_draws):
    """All pairs of draws once, and those of a ranking with itself twice more."""
    X = rk.datasets.uniform(4, 6, rng=1).top(3)
    plan = Counted().plan(X, method=rk.MonteCarlo(n_draws, coupling="iid"))
    plan.estimate()
    assert sum(pairs) <= n_draws**2 * (4 * 5 / 2 + 2 * 4)


def test_evaluators_are_built_once(monkeypatch):
    built, build = [], gram_plan.build
    monkeypatch.setattr(gram_plan, "build", lambda *given: built.append(given) or build(*given))
    plan = EXACT[0].plan(LISTS)
    computations(plan)["all"]()
    assert not built  # the decision built it
    new = plan.against(LISTS[:3])
    new.gram(), new.gram(), new.times(np.ones(new.shape[1])), new.block(slice(0, 1), slice(0, 2))
    assert len(built) == 1


# ---------------------------------------------------------------------- predictions

TRAIN = rk.datasets.uniform(10, 12, rng=4)
NEW = rk.concat(
    [
        rk.datasets.uniform(2, 12, rng=5),  # the kernel itself
        rk.datasets.uniform(2, 12, rng=6).top(9),  # six completions each
        rk.datasets.uniform(2, 12, rng=7).top(1),  # 11! completions
        rk.datasets.uniform(1, 12, rng=8).top(3, unlisted="free"),
        rk.datasets.uniform(1, 12, rng=5),
    ]
)
FEW_LISTED = rk.concat(
    [rk.datasets.uniform(3, 12, rng=7).top(1), rk.datasets.uniform(2, 12, rng=8).top(3, unlisted="free")]
)
PRODUCT = rk.Mallows(0.05) * rk.Hamming()  # a closed form for full rankings only
CLASSES = (TRAIN.ranks[:, 0] < TRAIN.ranks[:, 1]).astype(int)
MODELS = {
    "callable": lambda k: SVC(kernel=k).fit(TRAIN.ranks, CLASSES).decision_function,
    "SklearnKernel": lambda k: SVC(kernel=rk.SklearnKernel(k)).fit(TRAIN.ranks, CLASSES).decision_function,
    "KernelMap": lambda k: rk.KernelMap(kernel=k).fit(TRAIN).transform,
    "KernelKMeans": lambda k: rk.KernelKMeans(3, kernel=k).fit(TRAIN).transform,
    "KernelKMeans labels": lambda k: rk.KernelKMeans(3, kernel=k).fit(TRAIN).predict,
    "KernelKMedoids": lambda k: rk.KernelKMedoids(3, kernel=k).fit(TRAIN).transform,
    "NystromFeatures": lambda k: rk.NystromFeatures(5, kernel=k).fit(TRAIN).transform,
}


@sampling_allowed
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "kernel", [PRODUCT, rk.Mallows(0.05), rk.Exponential("spearman", 0.01), rk.Exponential("hamming", 0.2)], ids=str
)
def test_predictions_do_not_depend_on_the_batch(model, kernel):
    predict = MODELS[model](kernel)
    batch = predict(NEW.ranks)
    one_by_one = np.concatenate([predict(NEW.ranks[row : row + 1]) for row in range(len(NEW))])
    np.testing.assert_allclose(one_by_one, batch, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(predict(NEW.ranks[::-1])[::-1], batch, rtol=1e-9, atol=1e-11)


@sampling_allowed
@pytest.mark.parametrize("train", [TRAIN, TRAIN.top(3, unlisted="free")], ids=["exact", "estimated"])
def test_new_rows_do_not_depend_on_the_batch(train):
    plan = PRODUCT.plan(train)
    whole = plan.against(NEW).gram()
    for row in range(len(NEW)):
        np.testing.assert_allclose(plan.against(NEW[row : row + 1]).gram()[0], whole[row], rtol=1e-13)
    again = plan.against(rk.concat([NEW[4:], NEW[:4]])).gram()
    np.testing.assert_allclose(again, np.roll(whole, -4, axis=0), rtol=1e-13)


def test_only_rows_without_an_exact_value_are_estimated():
    plan = PRODUCT.plan(TRAIN)
    with pytest.warns(rk.SamplingWarning, match="3 of 7 new rankings"):
        mixed = plan.against(NEW).gram()
    exact = PRODUCT.gram(NEW[:4], TRAIN, method=rk.Exact(limit=10**8))
    np.testing.assert_allclose(mixed[:4], exact, rtol=1e-12)
    drawn = PRODUCT.gram(NEW[4:7], TRAIN, method=rk.MonteCarlo())
    np.testing.assert_allclose(mixed[4:7], drawn, rtol=1e-12)
    with pytest.raises(rk.ExactnessError):
        PRODUCT.plan(TRAIN, method="exact").against(NEW).gram()


def test_new_rows_without_an_accurate_formula_are_estimated():
    """The series for tied rankings is not accurate at this decay rate."""
    full = rk.datasets.uniform(8, 40, rng=0)
    plan = rk.Exponential("spearman", 0.01).plan(full)
    assert plan.method == rk.Exact()
    with pytest.warns(rk.SamplingWarning):
        found = plan.against(full.top(3)).gram()
    np.testing.assert_allclose(found, plan.kernel.gram(full.top(3), full, method=rk.MonteCarlo()), rtol=1e-12)
    assert np.isfinite(plan.against(full.top(3)).diagonal()).all()


def test_new_rows_with_many_features():
    """Products of pairs are 190 x 190 numbers for each ranking; they are made in parts."""
    train = rk.datasets.uniform(5, 20, rng=0).top(3, unlisted="free")
    new = rk.datasets.uniform(40, 20, rng=1).top(3, unlisted="free")
    plan = rk.Polynomial(2).plan(train)
    assert plan.method == rk.Exact()
    np.testing.assert_allclose(plan.against(new).gram()[:5], plan.against(new[:5]).gram(), rtol=1e-12)


@pytest.mark.parametrize("method", ["auto", rk.Auto(0, 0), rk.MonteCarlo(16)], ids=["auto", "estimate", "draws"])
@pytest.mark.parametrize("kernel", [rk.Mallows(0.1), rk.Exponential("hamming", 0.2)], ids=str)
def test_new_rows_may_be_partial_orders(kernel, method):
    """Draws of partial orders are independent, and fewer control variates are known."""
    train = rk.Rankings(rk.datasets.uniform(6, 4, rng=0).top(2, unlisted="free").ranks, items=list("abcd"))
    plan, exact = kernel.plan(train, method=method), kernel.gram(PREFERENCES, train, method="exact")
    np.testing.assert_allclose(plan.against(PREFERENCES).gram(), exact, rtol=0.4)
    np.testing.assert_allclose(plan._between(PREFERENCES).gram(), kernel.gram(PREFERENCES), rtol=0.4)
    assert rk.KernelMap(2, kernel=kernel, method=method).fit(train).transform(PREFERENCES).shape == (3, 2)


@sampling_allowed
def test_tolerance_of_exact_and_estimated_rows():
    plan = PRODUCT.plan(rk.datasets.uniform(16, 12, rng=4)).against(rk.concat([NEW, FEW_LISTED]))
    found = plan.estimate(tol=2e-2)
    assert 0 < found.stderr.max() <= 2e-2
    assert (found.stderr == 0).any()
    assert isinstance(found.method, rk.MonteCarlo)


def test_other_parameters_keep_the_decisions():
    plan = EXACT[0].plan(LISTS)
    other = plan._with_kernel(rk.Mallows(0.7))
    np.testing.assert_array_equal(other.gram(), rk.Mallows(0.7).gram(LISTS))
    drawn = DRAWN[0].plan(FREE)
    other = drawn._with_kernel(rk.Exponential("footrule", 0.2))
    assert other.method == drawn.method
    np.testing.assert_array_equal(other.gram(), rk.Exponential("footrule", 0.2).gram(FREE, method=drawn.method))


# ---------------------------------------------------------------------- other processes, other parts

REPEATED = rk.concat([LISTS, LISTS[::-1], FREE[:5]])
PREFERENCES = rk.Preferences.from_pairs([[("a", "b"), ("c", "d")], [("a", "c")], [("d", "b")]], items=list("abcd"))
PLANS = {
    "closed form": lambda: rk.Mallows("median").plan(rk.concat([LISTS, LISTS[:4]])),
    "features": lambda: (rk.Kendall() + rk.Hamming()).plan(REPEATED),
    "coded": lambda: rk.Exponential("hamming", 0.3).plan(rk.concat([LISTS, LISTS[:4]])),
    "enumeration": lambda: PRODUCT.plan(NEW[:4]),
    "draws": lambda: rk.Exponential("footrule", 0.05).plan(REPEATED, method=rk.MonteCarlo(8)),
    "rectangle": lambda: rk.Mallows(0.1).plan(REPEATED, LISTS[:5]),
    "new rows": lambda: rk.Mallows("median").plan(LISTS).against(REPEATED),
    "exact and estimated": lambda: PRODUCT.plan(TRAIN).against(NEW),
    "partial orders": lambda: rk.Mallows(0.3).plan(PREFERENCES),
    "drawn orders": lambda: rk.Mallows(0.3).plan(PREFERENCES, method=rk.MonteCarlo(8)),
}


@sampling_allowed
@pytest.mark.parametrize("name", PLANS)
def test_pickled_plans_give_the_same_bits(name):
    plan = PLANS[name]()
    untouched, before = pickle.loads(pickle.dumps(plan)), len(pickle.dumps(plan))
    whole = plan.gram()
    used = pickle.loads(pickle.dumps(plan))
    assert len(pickle.dumps(plan)) == before  # caches are not sent
    for copy in (untouched, used):
        assert (copy.kernel, copy.method, copy.shape, str(copy)) == (plan.kernel, plan.method, plan.shape, str(plan))
        np.testing.assert_array_equal(copy.block(slice(1, 3), slice(0, 2)), whole[1:3, :2])
        np.testing.assert_array_equal(copy.gram(), whole)


@sampling_allowed
@pytest.mark.parametrize("name", PLANS)
def test_blocks_match_the_matrix(name):
    plan = PLANS[name]()
    whole = plan.gram()
    rng = np.random.default_rng(0)
    for _ in range(4):
        rows, columns = (rng.integers(0, n, rng.integers(1, n + 1)) for n in plan.shape)
        np.testing.assert_array_equal(plan.block(rows, columns), whole[np.ix_(rows, columns)])
    np.testing.assert_allclose(plan.times(np.eye(plan.shape[1])), whole, rtol=1e-13, atol=1e-15)
    if plan._symmetric:
        np.testing.assert_allclose(plan.diagonal(), np.diagonal(whole), rtol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "train", "new"),
    [
        (rk.Mallows("median"), LISTS, REPEATED),
        (rk.Kendall(), REPEATED, LISTS),
        (rk.Exponential("hamming", 0.3), LISTS, LISTS[::2]),
        (rk.Exponential("footrule", "median"), FREE, REPEATED),
        (rk.Mallows(0.3), PREFERENCES, rk.Rankings([[0, 1, 2, 3], [1, 0, 1, -1]], items=list("abcd"))),
        (rk.Mallows(0.3), rk.Rankings([[0, 1, 2, 3], [1, 0, 1, -1]], items=list("abcd")), PREFERENCES),
    ],
    ids=["mallows", "kendall", "hamming", "drawn", "rankings to orders", "orders to rankings"],
)
def test_new_rows_match_one_large_matrix(kernel, train, new):
    plan = kernel.plan(train)
    whole = plan.kernel.gram(rk.concat([new, train]), method=plan.method)
    n = len(new)
    np.testing.assert_allclose(plan.against(new).gram(), whole[:n, n:], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(plan.against(train).gram(), plan.gram(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(plan._between(new).gram(), whole[:n, :n], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(plan._between(new, train).gram(), whole[:n, n:], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(plan.against(new).diagonal(), np.diagonal(whole)[:n], rtol=1e-12, atol=1e-14)
    assert plan.against(new).method == plan._between(new).method == plan.method
    assert plan.against(new).kernel == plan.kernel


SQUARE = sorted(PLANS.keys() - {"rectangle", "new rows", "exact and estimated", "draws of each row"})


@pytest.mark.parametrize("name", SQUARE)
def test_parts_match_the_matrix(name):
    plan = PLANS[name]()
    whole = plan.gram()
    for rows in (slice(1, 3), np.array([2, 0, 2]), np.arange(plan.shape[0])[::-1]):
        part = plan._part(rows)
        chosen = np.arange(plan.shape[0])[rows]
        assert (part.kernel, part.method) == (plan.kernel, plan.method)
        np.testing.assert_allclose(part.gram(), whole[np.ix_(chosen, chosen)], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(part.diagonal(), np.diagonal(whole)[chosen], rtol=1e-12, atol=1e-14)


def test_invalid_new_rows():
    plan = rk.Mallows("median").plan(LISTS)
    with pytest.raises(rk.RankingError, match="12 items"):
        plan.against([[0, 1, 2]])
    with pytest.raises(rk.RankingError, match="items"):
        plan.against(rk.Rankings(LISTS.ranks, items=[*LISTS.items[1:], "other"]))
    assert plan.against(LISTS.ranks).gram().shape == (14, 14)


# ---------------------------------------------------------------------- pairs of rows

MIXED_ROWS = rk.concat([LISTS[:3], FREE[:3], rk.datasets.uniform(2, 12, rng=9)])
PAIRED = {
    "closed form": (rk.Mallows(0.1), REPEATED[:19], REPEATED[14:], "auto"),
    "features": (rk.Kendall() + rk.Hamming(), REPEATED[:19], REPEATED[14:], "auto"),
    "coded": (rk.Exponential("hamming", 0.3), LISTS, LISTS[::-1], "exact"),
    "full": (rk.Exponential("lp(1.5)", 0.1), TRAIN, TRAIN[::-1], "auto"),
    "enumeration": (PRODUCT, NEW[:4], TRAIN[:4], "enumeration"),
    "draws": (rk.Mallows(0.1), REPEATED[:19], REPEATED[14:], rk.MonteCarlo(8)),
    "draws of a product": (PRODUCT, MIXED_ROWS, MIXED_ROWS[::-1], rk.MonteCarlo(8)),
    "unbiased": (rk.Mallows(0.1), MIXED_ROWS, MIXED_ROWS, rk.MonteCarlo(8, diagonal="unbiased")),
    "partial orders": (rk.Mallows(0.3), PREFERENCES, PREFERENCES[::-1], "auto"),
    "drawn orders": (rk.Mallows(0.3), PREFERENCES, PREFERENCES[::-1], rk.MonteCarlo(8)),
}


@sampling_allowed
@pytest.mark.parametrize("name", PAIRED)
def test_paired_is_the_diagonal_of_gram(name):
    kernel, X, Y, method = PAIRED[name]
    found = kernel.paired(X, Y, method=method)
    np.testing.assert_allclose(found, np.diagonal(kernel.gram(X, Y, method=method)), rtol=1e-13)
    np.testing.assert_array_equal(found, kernel.paired(X, Y, method=method, n_jobs=3))


def test_paired_evaluates_paired_draws_only(pairs):
    X = rk.datasets.uniform(30, 6, rng=1).top(3)
    Counted().paired(X, X[::-1], method=rk.MonteCarlo(8))
    assert sum(pairs) == 30 * 8**2


def test_paired_decides_by_the_cost_of_pairs():
    """Exact values of 20 pairs are affordable where those of 400 are not."""
    X, Y = rk.datasets.uniform(40, 12, rng=1).top(4, unlisted="free")[:20], FREE[np.arange(20) % 14]
    kernel = rk.Mallows(0.1)
    seconds = kernel.plan(X, Y, method="exact").seconds
    auto = rk.Auto(max_seconds=seconds / 4, max_ratio=0)
    assert isinstance(kernel.plan(X, Y, method=auto).method, rk.MonteCarlo)
    exact = kernel.paired(X, Y, method="exact")
    np.testing.assert_allclose(kernel.paired(X, Y, method=auto), exact, rtol=1e-12)


def test_paired_needs_as_many_rows_as_columns():
    with pytest.raises(ValueError, match="14 rankings and Y has 3"):
        rk.Mallows(0.1).paired(LISTS, LISTS[:3])
