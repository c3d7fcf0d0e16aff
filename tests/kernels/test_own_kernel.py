"""Kernels and distances that users write, with the Ulam distance as the example."""

import copy
import itertools
import pickle
from bisect import bisect_left
from dataclasses import dataclass

import naive
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import rankernel as rk
from rankernel import IndefiniteKernelWarning
from rankernel.kernels import Facts
from rankernel.kernels.base import Decay

pytestmark = pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")

ROWS = [(0, 1, 2, 3), (2, 0, 1, 1), (0, 0, 1, 1), (1, 0, -1, -1), (3, 1, 0, 2)]
FULL = np.array(list(itertools.permutations(range(4))), dtype=np.int32)


def ulam(x, y):
    """n minus the length of the longest increasing subsequence of y in the order of x."""
    last = []
    for rank in y[np.argsort(x)]:
        length = bisect_left(last, rank)
        last[length : length + 1] = [rank]
    return len(x) - len(last)


class Ulam(rk.Kernel):
    def __init__(self, nu=0.5):
        self.nu = nu

    def matrix(self, X, Y):
        return np.exp(-self.nu * np.array([[ulam(x, y) for y in Y] for x in X]))


@dataclass
class MutableUlam(rk.Kernel):
    nu: float = 0.5

    def matrix(self, X, Y):
        return Ulam(self.nu).matrix(X, Y)


class NoArguments(rk.Kernel):
    def __init__(self):
        self.nu = 0.5

    def matrix(self, X, Y):
        return Ulam(self.nu).matrix(X, Y)


KINDS = pytest.mark.parametrize("kind", [Ulam, MutableUlam, NoArguments])


# ---------------------------------------------------------------------- values


@KINDS
def test_gram_matches_brute_force(kind):
    expected = naive.gram(naive.exponential(naive.ulam, 0.5), ROWS, ROWS)
    np.testing.assert_allclose(kind().gram(ROWS), expected, rtol=1e-12)
    np.testing.assert_allclose(kind().gram(ROWS, ROWS[:2]), np.array(expected)[:, :2], rtol=1e-12)


def test_estimate_is_within_its_standard_error():
    expected = np.array(naive.gram(naive.exponential(naive.ulam, 0.5), ROWS, ROWS))
    found = Ulam().estimate(ROWS, method=rk.MonteCarlo(64, diagonal="unbiased"))
    assert found.stderr.max() > 0
    assert (np.abs(found.value - expected) <= 5 * found.stderr + 1e-12).all()


def test_sum_with_package_kernels():
    kernel = 0.5 * Ulam(0.3) + rk.Mallows(0.2) * Ulam(0.4)
    ours, theirs = naive.exponential(naive.ulam, 0.3), naive.exponential(naive.ulam, 0.4)
    expected = naive.gram(lambda x, y: 0.5 * ours(x, y) + naive.mallows(0.2)(x, y) * theirs(x, y), ROWS, ROWS)
    np.testing.assert_allclose(kernel.gram(ROWS), expected, rtol=1e-12)
    assert kernel.params == {
        "left__scale": 0.5,
        "left__kernel__nu": 0.3,
        "right__left__nu": 0.2,
        "right__right__nu": 0.4,
    }


def test_unknown_definiteness_is_a_warning():
    with pytest.warns(IndefiniteKernelWarning, match="Ulam"):
        Ulam().gram(ROWS)


# ---------------------------------------------------------------------- parameters and value semantics


@KINDS
def test_float_attributes_are_parameters(kind):
    kernel = kind()
    assert kernel.params == {"nu": 0.5}
    assert kernel.bounds == {"nu": (0.0, np.inf)}
    changed = kernel.replace(nu=0.25)
    assert (changed.nu, kernel.nu, type(changed)) == (0.25, 0.5, kind)
    assert changed != kernel
    assert changed.replace(nu=0.5) == kernel
    assert len({kernel, changed, kind()}) == 2
    assert repr(kernel).endswith("(nu=0.5)")
    for copied in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        assert copied == kernel
        assert hash(copied) == hash(kernel)


@dataclass
class WithoutDefault(rk.Kernel):
    nu: float

    def matrix(self, X, Y):
        return Ulam(self.nu).matrix(X, Y)


class OrMedian(Ulam):
    def __init__(self, nu="median"):
        self.nu = nu


@pytest.mark.parametrize("kind", [Ulam, WithoutDefault, OrMedian])
def test_integers_given_for_floats_are_parameters(kind):
    assert kind(nu=1).params == {"nu": 1}
    assert kind(nu=1).replace(nu=0.5) == kind(nu=0.5)


class Mixed(rk.Kernel):
    """Arguments of many types, a derived float, a private attribute and other bounds."""

    parameter_bounds = {"share": (0.0, 1.0), "cut": "fixed"}  # noqa: RUF012

    def __init__(self, share, cut=2.0, depth=3, table=(), options=None, inner=None):
        self.share, self.cut, self.depth, self.table, self.options = share, cut, depth, table, options
        self.inner = inner or rk.Mallows(0.1)
        self.rest = 1.0 - share
        self._cache = {}

    def matrix(self, X, Y):
        return self.share * self.inner.matrix(X, Y)


def test_only_float_arguments_are_parameters():
    kernel = Mixed(0.5, table=np.eye(2), options={"a": [1, 2]})
    assert kernel.params == {"share": 0.5, "inner__nu": 0.1}
    assert kernel.bounds == {"share": (0.0, 1.0), "inner__nu": (0.0, np.inf)}
    changed = kernel.replace(share=0.25, inner__nu=0.3)
    assert (changed.rest, changed.inner, changed.depth) == (0.75, rk.Mallows(0.3), 3)
    kernel._cache["key"] = object()
    same = Mixed(0.5, table=np.eye(2), options={"a": [1, 2]})
    assert kernel == same
    assert hash(kernel) == hash(same)
    assert kernel != Mixed(0.5, table=np.ones((2, 2)), options={"a": [1, 2]})


def test_gradient_by_finite_differences():
    kernel = 2.0 * Ulam(0.4) * rk.Mallows(0.1)
    found = kernel.estimate(ROWS, gradient=True).gradient
    value = kernel.gram(ROWS)
    d = np.array([[ulam(x, y) for y in FULL] for x in FULL])
    np.testing.assert_allclose(Ulam(0.4).gradient(FULL, FULL)["nu"], -d * np.exp(-0.4 * d), rtol=1e-8, atol=1e-9)
    assert list(found) == list(kernel.params)
    np.testing.assert_allclose(found["left__scale"], value / 2, rtol=1e-12)
    for name, step in (("left__kernel__nu", 1e-5), ("right__nu", 1e-5)):
        up, down = (kernel.replace(**{name: kernel.params[name] + s}).gram(ROWS) for s in (step, -step))
        np.testing.assert_allclose(found[name], (up - down) / (2 * step), rtol=1e-6, atol=1e-8)


def test_gradient_at_a_bound_is_one_sided():
    d = np.array([[ulam(x, y) for y in FULL[:5]] for x in FULL[:5]])
    np.testing.assert_allclose(Ulam(0.0).gradient(FULL[:5], FULL[:5])["nu"], -d, rtol=1e-6, atol=1e-7)


# ---------------------------------------------------------------------- other libraries


def test_grid_search():
    search = GridSearchCV(SVC(kernel=rk.SklearnKernel(Ulam())), {"kernel__nu": [1e-6, 0.5, 20.0]}, cv=3)
    search.fit(FULL, [ulam(x, FULL[0]) >= 2 for x in FULL])
    assert search.best_params_ == {"kernel__nu": 0.5}  # the others are constant and equality
    assert clone(rk.SklearnKernel(Ulam(0.3)), safe=False).kernel == Ulam(0.3)


def test_gaussian_process_fits_the_parameter():
    y = 5 * Ulam(1.0).matrix(FULL, FULL)[:, 0] - 2
    model = GaussianProcessRegressor(rk.SklearnKernel(Ulam(0.5)), alpha=0.5).fit(FULL, y)
    start, gradient = model.log_marginal_likelihood(np.log([0.5]), eval_gradient=True)
    up, down = (model.log_marginal_likelihood(np.log([0.5]) + step) for step in (1e-4, -1e-4))
    assert gradient == pytest.approx([(up - down) / 2e-4], rel=1e-5)
    assert model.log_marginal_likelihood_value_ > start


def test_two_sample_test():
    found = rk.mmd_test(FULL[:12], FULL[12:], Ulam(), n_permutations=99, rng=0)
    assert 0 < found.pvalue <= 1


def test_gpytorch():
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'rankernel[gpytorch]'")
    gpytorch = pytest.importorskip("rankernel.learn.gpytorch", exc_type=ImportError)
    module = gpytorch.RankingKernel(Ulam(0.4))
    X = torch.tensor(FULL[:5], dtype=torch.float64)
    value = module(X, X).to_dense()
    np.testing.assert_allclose(value.detach().numpy(), Ulam(0.4).gram(FULL[:5]), rtol=1e-6)
    value.sum().backward()
    assert module.raw_nu.grad.item() < 0


def test_gpy():
    gpy = pytest.importorskip("rankernel.learn.gpy", reason="GPy is not installed", exc_type=ImportError)
    kern = gpy.RankingKern(4, Ulam(0.4), variance=2.0)
    np.testing.assert_allclose(kern.K(FULL[:5].astype(float)), 2 * Ulam(0.4).gram(FULL[:5]), rtol=1e-12)


# ---------------------------------------------------------------------- facts


class KnownUlam(Ulam):
    def facts(self, n_items):
        return Facts(is_psd=True, distance=rk.distances.as_distance(ulam))


class OwnMallows(rk.Kernel):
    """A kernel that declares to be an exponential of the Kendall distance."""

    def __init__(self, rate=0.2):
        self.rate = rate

    def matrix(self, X, Y):
        return np.exp(-2 * self.rate * rk.distances.kendall(X, Y))

    def facts(self, n_items):
        return Facts(is_psd=True, distance=rk.distances.kendall, function=Decay(2 * self.rate, {"rate": 2.0}))


def test_declared_facts_open_closed_forms():
    many = rk.datasets.uniform(6, 40, rng=0).top(5)
    found, known = (k.estimate(many, method="exact", gradient=True) for k in (OwnMallows(0.02), rk.Mallows(0.04)))
    np.testing.assert_allclose(found.value, known.value, rtol=1e-13)
    np.testing.assert_allclose(found.gradient["rate"], 2 * known.gradient["nu"], rtol=1e-13)


@pytest.mark.filterwarnings("error")
def test_declared_definiteness_removes_the_warning():
    KnownUlam().gram(FULL[:3])


def test_median_of_a_declared_distance():
    d = np.array([[ulam(x, y) for y in FULL] for x in FULL])
    expected = 1 / np.median(d[~np.eye(24, dtype=bool)])
    assert KnownUlam("median").resolve(FULL).nu == expected
    with pytest.raises(ValueError, match="distance"):
        Ulam("median").gram(FULL)


# ---------------------------------------------------------------------- distances given as functions


def test_exponential_of_a_function():
    kernel = rk.Exponential(ulam, nu=0.5)
    np.testing.assert_allclose(kernel.gram(ROWS), Ulam().gram(ROWS), rtol=1e-12)
    assert repr(kernel) == "Exponential(ulam, nu=0.5)"
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert kernel != rk.Exponential(lambda x, y: ulam(x, y), nu=0.5)
    d = np.array([[ulam(x, y) for y in FULL[:6]] for x in FULL[:6]])
    np.testing.assert_allclose(kernel.gradient(FULL[:6], FULL[:6])["nu"], -d * np.exp(-0.5 * d), rtol=1e-12)


def test_median_of_a_function():
    kernel = rk.Exponential(distance=ulam, nu="median")
    d = np.array([[ulam(x, y) for y in FULL] for x in FULL])
    assert kernel.resolve(FULL).nu == 1 / np.median(d[~np.eye(24, dtype=bool)])
    # Two different partial rankings have one mean distance, estimated from draws.
    expected = naive.marginal(naive.ulam, ROWS[1], ROWS[3])
    assert kernel.resolve([ROWS[1], ROWS[3]]).nu == pytest.approx(1 / expected, rel=0.3)


def test_function_of_wrong_type():
    for wrong, message in (
        (lambda X, Y: X, "shape"),
        (lambda x, y: None, "None"),
        (lambda x, y: float("nan"), "nan"),
        (lambda x, y: -1.0, "-1"),
    ):
        with pytest.raises(ValueError, match=message):
            rk.Exponential(wrong, nu=1.0).matrix(FULL, FULL)
    with pytest.raises(TypeError, match="distance"):
        rk.Exponential(3, nu=1.0)


def test_function_of_one_argument_names_both():
    with pytest.raises(TypeError) as caught:
        rk.Exponential(lambda x: 1.0, nu=1.0).gram(FULL)
    assert "two rank vectors" in caught.value.__notes__[0]


def test_asymmetric_function():
    with pytest.raises(ValueError, match=r"distance=.* is not symmetric"):
        rk.Exponential(lambda x, y: float(x[0]), nu=1.0).gram(FULL)


# ---------------------------------------------------------------------- errors that say what to add


def returning(value):
    class Wrong(rk.Kernel):
        def matrix(self, X, Y):
            return value(X, Y)

    return Wrong()


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (lambda X, Y: np.ones(len(X)), ValueError, r"Wrong.matrix returned shape \(2,\).* must be \(2, 3\)"),
        (lambda X, Y: np.ones((len(Y), len(X))), ValueError, r"must be \(2, 3\)"),
        (lambda X, Y: [[1.0] * len(Y)] * len(X), TypeError, "returned a list.*float array"),
        (lambda X, Y: np.ones((len(X), len(Y)), dtype=int), TypeError, "array of int64.*float array"),
        (lambda X, Y: np.full((len(X), len(Y)), np.nan), ValueError, "nan"),
        (lambda X, Y: X[:, :1] + 0.0 * Y[:, :1].T, ValueError, "not symmetric"),
    ],
)
def test_wrong_matrix(value, error, message):
    with pytest.raises(error, match=message):
        returning(value).gram(ROWS)
    with pytest.raises(error, match=message):
        (rk.Kendall() + returning(value)).gram(ROWS)


def test_exception_inside_matrix_names_the_call():
    class OneArgument(rk.Kernel):
        def matrix(self, X):
            return np.ones((len(X), len(X)))

    with pytest.raises(TypeError) as caught:
        OneArgument().gram(ROWS)
    assert any("def matrix(self, X, Y)" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("facts", [lambda self, n_items: {"is_psd": True}, lambda self: Facts(is_psd=True)])
def test_wrong_facts(facts):
    kernel = type("Wrong", (Ulam,), {"facts": facts})()
    with pytest.raises(TypeError) as caught:
        kernel.gram(ROWS)
    assert "Facts(is_psd=True)" in " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


@pytest.mark.parametrize("result", [lambda self, X, Y: self.matrix(X, Y), lambda self, X, Y: {"rate": 1.0}])
def test_wrong_gradient(result):
    kernel = type("Wrong", (Ulam,), {"gradient": result})()
    with pytest.raises(TypeError, match=r"Wrong\.gradient returned .*'nu'.* dictionary"):
        kernel.estimate(ROWS, gradient=True)


def test_grid_search_without_adapter_names_it():
    search = GridSearchCV(SVC(kernel=Ulam()), {"kernel__nu": [0.1, 1.0]}, cv=2, error_score="raise")
    with pytest.raises(TypeError, match="SklearnKernel"):
        search.fit(FULL, np.arange(24) % 2)


def test_function_instead_of_kernel():
    with pytest.raises(TypeError, match=r"Exponential\(distance="):
        rk.mmd_test(FULL[:12], FULL[12:], ulam)


def test_missing_matrix():
    class Empty(rk.Kernel):
        pass

    with pytest.raises(TypeError, match=r"Empty defines no method matrix; add def matrix\(self, X, Y\)"):
        Empty()


def test_fields_without_a_constructor():
    class Forgotten(rk.Kernel):
        nu: float = 0.5

        def matrix(self, X, Y):
            return np.ones((len(X), len(Y)))

    with pytest.raises(TypeError, match=r"nu.*@dataclass"):
        Forgotten()


def test_integer_that_should_be_a_float():
    class Plain(rk.Kernel):
        def __init__(self, nu):
            self.nu = nu

        def matrix(self, X, Y):
            return np.full((len(X), len(Y)), float(self.nu))

    with pytest.raises(ValueError, match=r"no parameter 'nu'.*1\.0"):
        Plain(1).replace(nu=2.0)


def test_argument_that_is_not_stored():
    class Renamed(Ulam):
        def __init__(self, rate=0.5):
            self.nu = rate

    with pytest.raises(TypeError, match=r"self\.rate = rate"):
        Renamed().gram(ROWS)
    assert repr(Renamed()) == "Renamed()"  # in a notebook, before the error that says what to add


def test_attribute_that_cannot_be_compared():
    class WithSet(Ulam):
        def __init__(self, nu=0.5):
            self.nu, self.seen = nu, {1, 2}

    with pytest.raises(TypeError, match=r"'seen' of WithSet is a set.*underscore"):
        WithSet().gram(ROWS)


@pytest.mark.parametrize("base", [rk.Mallows(0.3), rk.Hamming(), rk.RankBiasedOverlap(0.5)])
def test_matrix_that_contradicts_inherited_facts(base):
    class Doubled(type(base)):
        def matrix(self, X, Y):
            return 2 * super().matrix(X, Y)

    kernel = Doubled(**base.params)
    with pytest.raises(ValueError, match=r"differs from the kernel that Doubled\.facts declares"):
        kernel.gram(ROWS)


@pytest.mark.parametrize("decorate", [dataclass, dataclass(frozen=True), dataclass(eq=False)])
def test_dataclasses_with_arrays_are_compared_by_value(decorate):
    @decorate
    class Weighted(rk.Kernel):
        weights: np.ndarray

        def matrix(self, X, Y):
            return (X * self.weights) @ (Y * self.weights).T

    one, other = Weighted(np.ones(4)), Weighted(np.ones(4))
    assert one == other
    assert hash(one) == hash(other)
    assert one.gram(ROWS).shape == (len(ROWS), len(ROWS))
    other.weights[0] = 2.0
    assert one != other


def test_class_instead_of_instance():
    with pytest.raises(TypeError, match=r"Ulam is a class; give an instance"):
        rk.mmd_test(FULL[:12], FULL[12:], Ulam)


# ---------------------------------------------------------------------- classes that are not derived from Kernel


class Plain:
    def __init__(self, nu=0.5):
        self.nu = nu

    def matrix(self, X, Y):
        return Ulam(self.nu).matrix(X, Y)


@dataclass
class PlainData:
    nu: float = 0.5

    def matrix(self, X, Y):
        return Ulam(self.nu).matrix(X, Y)


PLAIN = pytest.mark.parametrize("kind", [Plain, PlainData])


@PLAIN
def test_plain_class_becomes_a_kernel(kind):
    kernel = rk.as_kernel(kind())
    np.testing.assert_array_equal(kernel.gram(ROWS), Ulam().gram(ROWS))
    np.testing.assert_array_equal(kernel.estimate(ROWS, method=rk.MonteCarlo(16)).stderr.shape, (5, 5))
    assert repr(kernel) == f"{kind.__name__}(nu=0.5)"
    assert (kernel.params, kernel.replace(nu=0.25).params) == ({"nu": 0.5}, {"nu": 0.25})
    for copied in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel), rk.as_kernel(kind())):
        assert (copied, hash(copied)) == (kernel, hash(kernel))
    assert (2 * kernel + rk.Mallows(0.1)) == 2 * rk.as_kernel(kind()) + rk.Mallows(0.1)
    assert rk.Mallows(0.1) * kind() == rk.Mallows(0.1) * kernel


@PLAIN
def test_plain_class_in_tests_and_estimators(kind):
    expected = rk.mmd_test(FULL[:12], FULL[12:], Ulam())
    assert rk.mmd_test(FULL[:12], FULL[12:], kind()).pvalue == expected.pvalue
    labels = np.arange(24) % 2
    search = GridSearchCV(SVC(kernel=rk.SklearnKernel(kind())), {"kernel__nu": [0.1, 1.0]}, cv=2).fit(FULL, labels)
    assert search.best_params_["kernel__nu"] in (0.1, 1.0)
    kmeans = clone(rk.KernelKMeans(2, kernel=kind())).set_params(kernel__nu=0.25)
    assert kmeans.get_params()["kernel__nu"] == 0.25
    assert len(kmeans.fit(FULL).labels_) == 24


def test_plain_class_that_does_not_store_an_argument():
    class Forgetful:
        def __init__(self, nu=0.5):
            pass

        def matrix(self, X, Y):
            return np.ones((len(X), len(Y)))

    with pytest.raises(TypeError, match=r"add self\.nu = nu"):
        rk.mmd_test(ROWS, ROWS, Forgetful())


def test_object_without_matrix():
    with pytest.raises(TypeError, match="matrix"):
        rk.mmd_test(ROWS, ROWS, object())
