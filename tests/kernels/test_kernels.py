"""One contract for all kernels on full rankings, and the algebra that builds them."""

import itertools
import math
from dataclasses import dataclass

import all_kernels
import numpy as np
import pytest

import rankernel as rk
from rankernel import IndefiniteKernelWarning
from rankernel.completions import enumerate_completions
from rankernel.distances import STATISTICS
from rankernel.kernels.algebra import Constant
from rankernel.kernels.base import Decay

EVERY = pytest.mark.parametrize("number", range(len(all_kernels.NAMES)), ids=all_kernels.NAMES)


def all_of(n):
    return np.array(list(itertools.permutations(range(n))), dtype=np.int32)


# ---------------------------------------------------------------------- the contract


@EVERY
@pytest.mark.parametrize(("n", "n_columns"), [(1, 1), (2, 2), (3, 6), (4, 6), (5, 1)])
def test_equals_the_oracle(number, n, n_columns):
    """All full rankings, against all of them or some."""
    kernel, oracle = all_kernels.on(n)[number]
    rows = all_of(n)
    columns = np.random.default_rng(n).permutation(rows)[:n_columns]
    expected = [[oracle(x, y) for y in map(tuple, columns.tolist())] for x in map(tuple, rows.tolist())]
    np.testing.assert_allclose(kernel.matrix(rows, columns), expected, rtol=1e-12, atol=1e-14)


@EVERY
@pytest.mark.parametrize("n", [1, 2, 4])
def test_symmetric_and_positive_semi_definite(number, n):
    kernel, _ = all_kernels.on(n)[number]
    rows = all_of(n)
    K = kernel.matrix(rows, rows)
    np.testing.assert_allclose(K, K.T, rtol=1e-13, atol=1e-15)
    assert kernel.facts(n).is_psd
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * np.abs(K).max()


@EVERY
def test_item_names_do_not_matter(number):
    kernel, _ = all_kernels.on(4)[number]
    rows, order = all_of(4), [2, 0, 3, 1]
    if isinstance(kernel, rk.DistanceInduced):
        renamed = rk.DistanceInduced(kernel.distance, np.array(kernel.center)[order])
    else:
        renamed = kernel
    np.testing.assert_allclose(
        renamed.matrix(rows[:, order], rows[:, order]), kernel.matrix(rows, rows), rtol=1e-12, atol=1e-14
    )


@EVERY
def test_blocks_fit_together(number):
    kernel, _ = all_kernels.on(4)[number]
    rows = all_of(4)
    whole = kernel.matrix(rows, rows)
    np.testing.assert_allclose(kernel.matrix(rows[:5], rows[7:]), whole[:5, 7:], rtol=1e-13, atol=1e-15)


@EVERY
def test_derivatives_against_differences(number):
    kernel, _ = all_kernels.on(4)[number]
    rows = all_of(4)[:7]
    gradient = kernel.gradient(rows, rows)
    assert list(gradient) == list(kernel.params)
    for name, value in kernel.params.items():
        step = 1e-5 * value
        up, down = (kernel.replace(**{name: value + s}).matrix(rows, rows) for s in (step, -step))
        np.testing.assert_allclose(gradient[name], (up - down) / (2 * step), rtol=1e-7, atol=1e-8)


@EVERY
def test_values_hash_and_repr(number):
    kernel, _ = all_kernels.on(4)[number]
    again, _ = all_kernels.on(4)[number]
    assert kernel == again
    assert hash(kernel) == hash(again)
    assert kernel != rk.Mallows(0.123)
    names = {name: getattr(rk, name) for name in dir(rk)}
    assert eval(repr(kernel), names) == kernel  # what is printed can be typed


@EVERY
def test_facts_agree_with_matrix(number):
    kernel, _ = all_kernels.on(4)[number]
    facts, rows = kernel.facts(4), all_of(4)
    K = kernel.matrix(rows, rows)
    if facts.distance is not None:
        d = facts.distance.between(rows, rows)
        np.testing.assert_allclose(facts.function.value(d), K, rtol=1e-13, atol=1e-15)
        if (K > 0).all():
            np.testing.assert_allclose(facts.function.log_value(d), np.log(K), rtol=1e-12, atol=1e-13)
        if isinstance(facts.function, Decay):
            np.testing.assert_allclose(np.exp(-facts.function.rate * d), K, rtol=1e-13)
        for name, derivative in facts.function.derivatives(d).items():
            np.testing.assert_allclose(derivative, kernel.gradient(rows, rows)[name], rtol=1e-12, atol=1e-14)
    series = facts.series(4)
    if series is not None:
        z = facts.distance.mean(4) / 2 - facts.distance.between(rows, rows) / 2
        known = sum(c * z**j for j, c in enumerate(series.coefficients, 1))
        assert np.linalg.eigvalsh(K - known).min() > -1e-12 * np.abs(K).max()
        if series.constant is not None:
            np.testing.assert_allclose(series.constant + known, K, rtol=1e-12, atol=1e-13)
    if facts.form is not None:
        features, center = kernel.features(rows), 0.0 if facts.form.center is None else facts.form.center
        np.testing.assert_allclose(features @ features.T, K, rtol=1e-12, atol=1e-13)
        statistics = STATISTICS[facts.form.statistic](rows) - center
        products = statistics.reshape(24, -1) @ facts.form.multiply(statistics).reshape(24, -1).T
        np.testing.assert_allclose(products, K, rtol=1e-12, atol=1e-13)
    centred = K - K.mean(axis=0)  # has the dimension of the features without the constants
    assert np.linalg.matrix_rank(centred, tol=1e-9 * np.abs(K).max()) + 1 <= facts.max_dimension


def test_derived_facts():
    n, pairs = 5, 10
    mallows = rk.Mallows(0.2) * rk.Exponential("kendall", 0.3) ** 2
    assert mallows.facts(n).function.rate == pytest.approx(0.8)
    assert mallows.facts(n).function.of_parameters == {"left__nu": 1.0, "right__kernel__nu": 2.0}
    cube = (1 + rk.Kendall()) ** 2 * (rk.Kendall() + 1)
    power = cube.facts(n).function
    assert (power.intercept, power.coefficient, power.degree) == (2.0, -2 / pairs, 3)
    assert (rk.Mallows(0.2) * rk.Hamming()).facts(n).distance is None
    assert (rk.Mallows(0.2) + rk.Kendall() + 3).facts(n).distance == rk.distances.kendall
    assert (rk.Diffusion(0.1) + rk.Diffusion(0.1, "adjacent")).facts(n).max_items == 9


def test_equal_kernels_share_facts():
    kernel = rk.Mallows(0.25) + rk.Kendall()
    assert (rk.Mallows(0.25) + rk.Kendall()).facts(7) is kernel.facts(7)


def test_unresolved_median_has_a_distance():
    facts = rk.Exponential("footrule").facts(4)
    assert (facts.distance, facts.is_psd, facts.function) == (rk.distances.footrule, True, None)


# ---------------------------------------------------------------------- features


@pytest.mark.parametrize(
    "kernel",
    [
        rk.Kendall(),
        rk.Hamming(),
        rk.Spearman(),
        rk.Mallows(0.7),
        rk.Mallows(0.0),
        rk.WeightedKendall.top_k(3),
        rk.WeightedKendall.additive([3, 1, 4, 1]),
    ],
    ids=str,
)
def test_features_give_the_kernel(kernel):
    rows = all_of(4)
    features = kernel.features(rows)
    np.testing.assert_allclose(features @ features.T, kernel.matrix(rows, rows), rtol=1e-12, atol=1e-13)


def test_features_of_one_item():
    one = np.zeros((2, 1), dtype=np.int32)
    for kernel in (rk.Kendall(), rk.Hamming(), rk.Spearman(), rk.Mallows(1.0)):
        features = kernel.features(one)
        np.testing.assert_allclose(features @ features.T, 1.0)


def test_too_many_features_raise():
    with pytest.raises(ValueError, match=r"2\^45 coordinates"):
        rk.Mallows(0.1).features(np.arange(10)[None])


# ---------------------------------------------------------------------- algebra and parameters


def test_readable_repr():
    kernel = 0.5 * rk.Kendall() + rk.Mallows(0.1) * (rk.Hamming() + 1)
    assert repr(kernel) == "0.5 * Kendall() + Mallows(nu=0.1) * (Hamming() + 1)"
    assert repr((rk.Kendall() + 1) ** 2) == "(Kendall() + 1) ** 2"
    assert repr((2 * rk.Kendall()).exp()) == "(2 * Kendall()).exp()"
    assert repr(rk.Exponential("cayley", 0.7)) == "Exponential('cayley', nu=0.7)"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: -1 * rk.Kendall(), "scaled"),
        (lambda: rk.Kendall() * 0, "scaled"),
        (lambda: rk.Kendall() * math.nan, "scaled"),
        (lambda: rk.Kendall() + (-1), "constant"),
        (lambda: rk.Kendall() ** 0, "exponent=0"),
        (lambda: rk.Kendall() ** 1.5, r"exponent=1\.5"),
        (lambda: rk.Mallows(-0.1), r"nu=-0\.1"),
        (lambda: rk.Mallows(math.inf), "nu=inf"),
        (lambda: rk.Polynomial(0), "degree=0"),
        (lambda: rk.Diffusion("median"), "beta='median'"),
        (lambda: rk.Diffusion(1.0, "cycles"), "graph='cycles'"),
        (lambda: rk.Exponential("manhattan", 1.0), "distance='manhattan'"),
        (lambda: rk.WeightedKendall("sum", 2), "combine='sum'"),
        (lambda: rk.WeightedKendall.top_k(0), "k=0"),
        (lambda: rk.WeightedKendall.additive("linear"), "weights='linear'"),
        (lambda: rk.WeightedKendall.additive([math.nan]), "weights holds nan"),
        (lambda: rk.WeightedKendall.additive([1, 2]).matrix(all_of(3), all_of(3)), "weights"),
        (lambda: rk.DistanceInduced("kendall", [0, 1]).matrix(all_of(3), all_of(3)), "center"),
        (lambda: rk.DistanceInduced("kendall", [0, 0]), "center"),
        (lambda: rk.Mallows(0.1).replace(beta=1), "parameter 'beta'.*nu"),
        (lambda: rk.Mallows("median").matrix(all_of(3), all_of(3)), "nu='median'"),
    ],
)
def test_invalid_arguments(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_invalid_operands_raise_type_error():
    for build in (lambda: rk.Kendall() + "x", lambda: rk.Kendall() * None, lambda: rk.Mallows("mean")):
        with pytest.raises(TypeError):
            build()


def test_parameters_are_listed_and_replaced_without_mutation():
    kernel = 2 * rk.Mallows(0.1) + rk.Exponential("hamming", 0.3) * rk.Kendall()
    assert kernel.params == {"left__scale": 2.0, "left__kernel__nu": 0.1, "right__left__nu": 0.3}
    changed = kernel.replace(left__kernel__nu=0.5, right__left__nu=0.7)
    assert changed.params == {"left__scale": 2.0, "left__kernel__nu": 0.5, "right__left__nu": 0.7}
    assert kernel.params["left__kernel__nu"] == 0.1


def test_constants_add_up():
    assert Constant(2.0).matrix(all_of(2), all_of(2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]


# ---------------------------------------------------------------------- indefinite exponentials


@pytest.mark.parametrize("n", [3, 4, 5])
def test_definiteness_of_the_cayley_kernel(n):
    """Positive semi-definite if and only if exp(nu) is an integer or at least n - 1, by eigenvalues on S_n."""
    rows = all_of(n)
    for x in [1.2, 1.5, 2, 2.5, 3, 3.3, 4, 4.5, 5.5]:
        kernel = rk.Exponential("cayley", math.log(x))
        positive = np.linalg.eigvalsh(kernel.matrix(rows, rows)).min() > -1e-10
        assert positive == kernel.facts(n).is_psd, (n, x)


def test_nearest_valid_nu():
    kernel = rk.Exponential("cayley", 1 / 7)
    assert not kernel.facts(10).is_psd
    assert kernel.nearest_valid_nu(10) == math.log(2)
    assert rk.Exponential("cayley", math.log(4.4)).nearest_valid_nu(10) == pytest.approx(math.log(4))
    assert rk.Exponential("cayley", 3.0).nearest_valid_nu(10) == 3.0
    with pytest.raises(ValueError, match="no nu is known"):
        rk.Exponential("linf", 1.0).nearest_valid_nu(10)


def test_indefinite_kernel_warns_and_suggests_nu():
    with pytest.warns(IndefiniteKernelWarning, match=r"nu=0.693147 is the nearest"):
        rk.Exponential("cayley", 0.14).gram(all_of(3)[:2].repeat(1, axis=0))
    with pytest.warns(IndefiniteKernelWarning, match="linf.* is not known to be positive semi-definite on 5 items"):
        rk.Exponential("linf", 0.14).gram(all_of(5)[:6])


@pytest.mark.parametrize("nu", [0.05, 0.14, 1.0, 3.0])
def test_linf_is_positive_semi_definite_up_to_four_items(nu):
    kernel = rk.Exponential("linf", nu)
    assert [kernel.facts(n).is_psd for n in (3, 4, 5)] == [True, True, None]
    assert np.linalg.eigvalsh(kernel.gram(all_of(4))).min() > -1e-12


def test_kernel_without_facts():
    @dataclass(frozen=True)
    class Agreements(rk.Kernel):
        def matrix(self, X, Y):
            return (X[:, None, :] == Y[None, :, :]).sum(axis=2).astype(float)

    assert Agreements().facts(4).is_psd is None
    assert Agreements().facts(4).max_dimension == math.inf
    assert Agreements().facts(4).coupling == "iid"
    assert (rk.Mallows(0.1) + Agreements()).facts(4).is_psd is None
    assert (2 * rk.Mallows(0.1)).facts(4).is_psd is True
    with pytest.warns(IndefiniteKernelWarning, match="is not known to be positive semi-definite on 4 items"):
        value = Agreements().gram([[0, 0, 1, 2], [3, 2, 1, 0]])
    np.testing.assert_allclose(value, rk.Hamming().gram([[0, 0, 1, 2], [3, 2, 1, 0]]), rtol=1e-13)


# ---------------------------------------------------------------------- the median heuristic


def test_median_heuristic_on_full_rankings():
    rows = all_of(4)[:10]
    d = rk.distances.kendall(rows)
    expected = 1 / np.median(d[~np.eye(10, dtype=bool)])
    assert rk.Mallows("median").resolve(rows) == rk.Mallows(expected)
    assert rk.Mallows().resolve(rows) == rk.Mallows(expected)
    kernel = rk.Kendall() + rk.Exponential("hamming") * 1
    assert kernel.resolve(rows).params["right__kernel__nu"] == pytest.approx(
        1 / np.median(rk.distances.hamming(rows)[~np.eye(10, dtype=bool)])
    )


def test_median_heuristic_counts_voters():
    ballots = rk.Rankings([[0, 1, 2], [2, 1, 0], [0, 2, 1]], counts=[1, 1, 50])
    expanded = rk.Rankings(np.repeat(ballots.ranks, ballots.counts, axis=0))
    assert rk.median_distance(ballots, rk.distances.kendall) == rk.median_distance(expanded, rk.distances.kendall)


def test_median_heuristic_never_divides_by_zero():
    assert rk.median_distance([[0, 1, 2]], rk.distances.kendall) == 1.0
    assert rk.median_distance(rk.Rankings([[0, 1, 2]], counts=[9]), rk.distances.kendall) == 1.0
    mostly_equal = rk.Rankings([[0, 1, 2], [2, 1, 0]], counts=[99, 1])
    assert rk.median_distance(mostly_equal, rk.distances.kendall) == pytest.approx(3 * 2 * 99 / (100 * 99))
    with pytest.raises(ValueError, match="no rankings"):
        rk.Mallows("median").gram(rk.Rankings.from_orders([], items=["a"]))


def test_median_distance_takes_names_and_functions():
    ballots = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 0, 1, 3]]
    expected = rk.median_distance(ballots, rk.distances.footrule)
    assert rk.median_distance(ballots, "footrule") == expected
    assert rk.median_distance(ballots, lambda x, y: abs(x - y).sum()) == expected
    with pytest.raises(ValueError, match="distance"):
        rk.median_distance(ballots, "manhattan")


def test_median_distance_of_partial_rankings_is_the_mean_over_completions():
    ballots = rk.Rankings.from_orders([["a"], ["b", "c"]], items=list("abcd"))
    full = [enumerate_completions(row).astype(np.int32) for row in ballots.ranks]
    for distance in (rk.distances.kendall, rk.distances.footrule, rk.distances.hamming, rk.distances.spearman):
        expected = distance(*full).mean()
        assert rk.median_distance(ballots, distance) == pytest.approx(expected, rel=1e-12)
    estimated = rk.median_distance(ballots, rk.distances.cayley)
    assert estimated == pytest.approx(rk.distances.cayley(*full).mean(), rel=0.3)
