"""The Monte Carlo estimator: unbiased, positive semi-definite, reproducible. Standard errors: test_jackknife.py."""

import itertools
import math
from functools import cache

import naive
import numpy as np
import pytest
import real_data

import rankernel as rk
from rankernel import MonteCarlo, Rankings
from rankernel.completions import LogDensity, draw
from rankernel.gram.exact.formulas import Overlap
from rankernel.stats.mmd import mmd2_streamed
from reproduction.variance import mallows_variance, monte_carlo_variance

ROWS = Rankings([(0, 1, 2, -1, -1), (-1, 0, 0, 1, -1), (2, 0, -1, 1, 1), (0, 1, 2, 2, 2), (1, 1, 1, 0, 1)])
OFF = ~np.eye(len(ROWS), dtype=bool)
KERNELS = [
    rk.Mallows(0.3),
    rk.Exponential("hamming", 0.3),
    rk.Exponential("spearman", 0.05),
    rk.Exponential("footrule", 0.1),
    rk.Exponential("cayley", math.log(2)),
    rk.Polynomial(4),
    rk.Diffusion(0.1, "adjacent"),
    2 * rk.Mallows(0.3) + rk.Exponential("hamming", 0.2),
    rk.Mallows(0.2) * rk.Hamming(),
]
COUPLINGS = ["iid", "antithetic", "orthogonal"]
few_draws_allowed = pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")


@cache
def enumerated(kernel):
    return kernel.gram(ROWS, method="enumeration")


def shifted(rows):
    """The same rankings with other names for the items: other draws, and the same values of kernels that see none."""
    return [Rankings(np.roll(rows.ranks, shift, axis=1)) for shift in range(rows.n_items)]


def repeated(kernel, rows, n_runs, copies=None, normalize=False, **options):
    """Many independent estimates of one matrix: several from each seed, of copies that have draws of their own."""
    copies = copies or shifted(rows)
    n, together = len(rows), rk.concat(copies)
    assert n_runs % len(copies) == 0
    runs = [
        kernel.gram(together, method=MonteCarlo(rng=seed, **options), normalize=normalize)
        for seed in range(n_runs // len(copies))
    ]
    return np.array([run[at : at + n, at : at + n] for run in runs for at in range(0, len(together), n)])


def assert_unbiased(runs, exact, where):
    error = runs.std(axis=0, ddof=1) / math.sqrt(len(runs))
    assert (np.abs(runs.mean(axis=0) - exact)[where] < 5 * error[where] + 1e-13).all()


# ---------------------------------------------------------------------- unbiased


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_unbiased_off_the_diagonal(kernel, coupling):
    for degree in (0, "auto"):
        runs = repeated(kernel, ROWS, 40, n_draws=8, coupling=coupling, control_variates=degree)
        assert_unbiased(runs, enumerated(kernel), OFF)


def test_herded_draws_are_unbiased_too():
    rows, kernel = ROWS[3:], rk.Mallows(0.3)
    runs = repeated(kernel, rows, 40, n_draws=4, coupling="herding", control_variates=0)
    assert_unbiased(runs, kernel.gram(rows), ~np.eye(2, dtype=bool))


def test_consistent():
    kernel = rk.Mallows(0.3)
    exact = kernel.gram(ROWS)
    errors = [np.abs(kernel.gram(ROWS, method=MonteCarlo(m, "iid", 0)) - exact).max() for m in (4, 4000)]
    assert errors[1] < errors[0] / 10


def exact_with_weights(kernel, rows, weight):
    """The marginalised kernel for a density on completions, by brute force."""
    sets = [(completions, np.array([weight(x) for x in completions])) for completions in map(naive.completions, rows)]
    value = np.empty((len(rows), len(rows)))
    for (i, (X, w)), (j, (Y, v)) in itertools.product(enumerate(sets), repeat=2):
        matrix = kernel.matrix(np.array(X, dtype=np.int32), np.array(Y, dtype=np.int32))
        value[i, j] = w @ matrix @ v / w.sum() / v.sum()
    return value


def plackett_luce_probability(strengths):
    def probability(ranks):
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        return math.prod(strengths[a] / sum(strengths[b] for b in order[p:]) for p, a in enumerate(order))

    return probability


@pytest.mark.parametrize(
    ("model", "weight"),
    [
        (rk.PlackettLuce([5.0, 1.0, 2.0, 0.5, 1.0]), plackett_luce_probability([5.0, 1.0, 2.0, 0.5, 1.0])),
        (rk.MallowsModel((4, 1, 0, 2, 3), 0.7), lambda x: math.exp(-0.7 * naive.kendall(x, (4, 1, 0, 2, 3)))),
    ],
    ids=["Plackett-Luce", "Mallows"],
)
def test_completions_other_than_uniform(model, weight):
    rows = [tuple(row) for row in ROWS.ranks.tolist()]
    for kernel in KERNELS:
        exact = exact_with_weights(kernel, rows, weight)
        options = {"n_draws": 8, "coupling": "iid", "completions": model}
        assert_unbiased(repeated(kernel, ROWS, 40, [ROWS], **options), exact, OFF)  # items are not alike here


@pytest.mark.parametrize(
    "kernel", [rk.Mallows(0.3), rk.Exponential("lp(1.5)", 0.2), rk.Kendall() * rk.Hamming()], ids=str
)
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_self_normalised_weights_are_consistent(kernel, coupling):
    model = LogDensity(lambda X: 0.3 * X[:, 0])
    rows = [tuple(row) for row in ROWS.ranks.tolist()]
    estimate = kernel.estimate(ROWS, method=MonteCarlo(1000, coupling, completions=model))
    exact = exact_with_weights(kernel, rows, lambda x: math.exp(0.3 * x[0]))
    assert (np.abs(estimate.value - exact)[OFF] < 5 * estimate.stderr[OFF]).all()


# ---------------------------------------------------------------------- bias


def test_normalised_estimates_divide_by_unbiased_norms():
    """The bias of the diagonal would shrink all cosines."""
    kernel = rk.Mallows(0.3)
    exact = kernel.gram(ROWS, normalize=True)
    runs, plain = (
        repeated(kernel, ROWS, 150, normalize=normalize, n_draws=16, coupling="iid", control_variates=0)
        for normalize in (True, False)
    )
    roots = np.sqrt(np.diagonal(plain, axis1=1, axis2=2))
    by_diagonal = plain / roots[:, :, None] / roots[:, None, :]
    bias, other = (np.abs(values.mean(axis=0) - exact)[OFF].mean() for values in (runs, by_diagonal))
    assert bias < other / 3
    estimate = kernel.estimate(ROWS, method=MonteCarlo(16, "iid", 0), normalize=True)
    np.testing.assert_allclose(estimate.value, runs[0], rtol=1e-13)


def test_diagonal_bias_is_that_of_the_paper():
    """Appendix B: E K^(R, R) = (m - 1)/m K + 1/m for independent draws, as k(s, s) = 1."""
    kernel, m = rk.Mallows(0.3), 6
    exact = np.diag(kernel.gram(ROWS))
    runs = repeated(kernel, ROWS, 200, n_draws=m, coupling="iid", control_variates=0)
    assert_unbiased(np.diagonal(runs, axis1=1, axis2=2), exact + (1 - exact) / m, slice(None))


def test_unbiased_diagonal():
    kernel = rk.Mallows(0.3)
    for coupling, degree, n_draws in (("iid", 0, 6), ("antithetic", 2, 6), ("antithetic", 1, 4)):
        options = {"n_draws": n_draws, "coupling": coupling, "control_variates": degree}
        runs = repeated(kernel, ROWS, 80, diagonal="unbiased", **options)
        assert_unbiased(runs, kernel.gram(ROWS), np.ones_like(OFF))
        assert (runs[0][OFF] == kernel.gram(ROWS, method=MonteCarlo(rng=0, **options))[OFF]).all()


@pytest.mark.parametrize("options", [{"diagonal": "unbiased"}, {"normalize": True}], ids=str)
def test_unbiased_values_need_independent_draws(options):
    normalize = options.pop("normalize", False)
    with pytest.raises(ValueError, match="n_draws"):
        rk.Mallows(0.3).gram(ROWS, method=MonteCarlo(2, "antithetic", **options), normalize=normalize)


@pytest.mark.parametrize("coupling", ["iid", "antithetic"])
def test_exact_variance_matches_the_estimator(coupling):
    kernel, m = rk.Mallows(0.4), 6
    rows = Rankings([(0, 1, 2, 2, 2), (1, 1, 0, 1, 0)])
    options = {"n_draws": m, "coupling": coupling, "control_variates": 0}
    runs = repeated(kernel, rows, 1500, **options)[:, 0, 1]
    exact = mallows_variance(Overlap.of(*rows.ranks), 0.4, m, m, coupling)
    assert runs.var(ddof=1) == pytest.approx(exact, rel=0.2)


@pytest.mark.parametrize("coupling", ["iid", "antithetic"])
def test_exact_variance_by_enumeration(coupling):
    """By enumeration, free items included, against the spread of many runs; and against the closed form."""
    kernel, m = rk.Exponential("footrule", 0.2), 4
    X, Y = ROWS[:2], ROWS[2:4]
    exact = monte_carlo_variance(X, Y, kernel, n_draws=m, coupling=coupling)
    options = {"n_draws": m, "coupling": coupling, "control_variates": 0}
    runs = repeated(kernel, ROWS[:4], 1500, **options)[:, :2, 2:]
    np.testing.assert_allclose(np.var(runs, axis=0, ddof=1), exact, rtol=0.25)
    mallows = rk.Mallows(0.4)
    closed = monte_carlo_variance(ROWS[3:], ROWS[3:], mallows, n_draws=m, coupling=coupling)
    enumerated = monte_carlo_variance(ROWS[3:], ROWS[3:], 1 * mallows, n_draws=m, coupling=coupling)
    np.testing.assert_allclose(closed, enumerated, rtol=1e-10)
    with pytest.raises(rk.ExactnessError, match="limit"):
        monte_carlo_variance(X, Y, kernel, n_draws=m, coupling=coupling, limit=10)


# ---------------------------------------------------------------------- better


def test_couplings_and_control_variates_lower_the_variance():
    """With free items, at the median heuristic, together by a factor of a thousand."""
    rows = rk.datasets.uniform(6, 10, rng=1).top(4, unlisted="free")
    kernel = rk.Mallows("median").resolve(rows)
    off = ~np.eye(6, dtype=bool)
    variance = {
        options: repeated(kernel, rows, 30, n_draws=16, coupling=options[0], control_variates=options[1])
        .var(axis=0)[off]
        .mean()
        for options in [("iid", 0), ("antithetic", 0), ("antithetic", 1), ("auto", "auto")]
    }
    plain = variance["iid", 0]
    assert plain / variance["antithetic", 0] > 5
    assert plain / variance["antithetic", 1] > 50
    assert plain / variance["auto", "auto"] > 1000


def resolved(kernel, rows, **options):
    method = kernel.plan(rows, method=MonteCarlo(**options)).method
    return method.coupling, method.control_variates


def test_auto_coupling_and_degree():
    free = rk.datasets.uniform(3, 8, rng=0).top(3, unlisted="free")
    many = rk.datasets.uniform(3, 60, rng=0).top(3, unlisted="free")
    assert resolved(rk.Mallows(0.1), free) == ("antithetic", 2)
    assert resolved(rk.Mallows(0.1), many) == ("antithetic", 1)  # 1.6 million products of pairs are too many
    assert resolved(rk.Exponential("hamming", 0.1), free) == ("iid", 1)
    assert resolved(rk.Exponential("cayley", math.log(2)), free) == ("iid", 0)
    assert resolved(rk.Mallows(0.1), free, completions=rk.PlackettLuce(np.ones(8))) == ("iid", 0)


def test_auto_coupling_leaves_eight_blocks():
    free = rk.datasets.uniform(3, 9, rng=0).top(3, unlisted="free")
    assert resolved(rk.Mallows(0.1), free, n_draws=15)[0] == "iid"
    assert resolved(rk.Mallows(0.1), free, n_draws=16)[0] == "antithetic"


@pytest.mark.parametrize("n_rows", [1, 2, 400])
@pytest.mark.parametrize(("n_items", "degree"), [(3, 2), (24, 2), (25, 1)])
def test_auto_does_not_depend_on_the_number_of_rows(n_rows, n_items, degree):
    rows = rk.datasets.uniform(n_rows, n_items, rng=0).top(2, unlisted="free")
    method = rk.Mallows(0.1).plan(rows, method=MonteCarlo()).method
    assert method.control_variates == degree
    assert rk.Mallows(0.1).plan(rows[:1], rows, method=MonteCarlo()).method == method


@real_data.needs_data
def test_antithetic_variance_on_sushi():
    """Top-4 of ten: the exact variance is about a hundred times below that of independent draws."""
    rows = real_data.sushi()[:25].top(4)
    nu = rk.Mallows("median").resolve(rows).nu
    ratios = []
    for i, j in itertools.combinations(range(25), 2):
        overlap = Overlap.of(rows.ranks[i], rows.ranks[j])
        ratios.append(mallows_variance(overlap, nu, 20, 20) / mallows_variance(overlap, nu, 20, 20, "antithetic"))
    assert 60 < np.mean(ratios) < 300


# ---------------------------------------------------------------------- positive semi-definite, reproducible


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_positive_semi_definite_also_from_blocks(kernel):
    rows = rk.datasets.truncate(rk.datasets.uniform(30, 6, rng=3), {2: 0.5, 4: 0.5}, rng=4, unlisted="free")
    method = MonteCarlo(4, rng=7)
    whole = kernel.gram(rows, method=method)
    assert np.linalg.eigvalsh(whole).min() > -1e-12 * np.abs(whole).max() * len(rows)
    blocks = np.block(
        [[kernel.gram(a, b, method=method) for b in (rows[:11], rows[11:])] for a in (rows[:11], rows[11:])]
    )
    np.testing.assert_allclose(blocks, whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_items", [8, 14])  # whose pairs fill one word, and two
@pytest.mark.parametrize("n_draws", [16, 7])
def test_all_pairs_of_draws_are_averaged(n_items, n_draws):
    rows = rk.datasets.truncate(rk.datasets.uniform(5, n_items, rng=3), {2: 0.5, 4: 0.5}, rng=4, unlisted="free")
    method = MonteCarlo(n_draws, "antithetic", 0, rng=5)
    draws = [one.tolist() for one in draw(rows, n_draws, coupling="antithetic", rng=5).ranks]
    distances = np.array([[[[naive.kendall(x, y) for y in b] for x in a] for b in draws] for a in draws])
    nus = [0.01, 0.05, 0.1, 0.3, 1.0]
    for nu in nus:
        expected = np.exp(-nu * distances).mean(axis=(2, 3))
        np.testing.assert_allclose(rk.Mallows(nu).gram(rows, method=method), expected, rtol=1e-13)


@pytest.mark.parametrize("n_items", [8, 14])
def test_bits_do_not_depend_on_order_threads_or_blocks(n_items):
    rows = rk.datasets.truncate(rk.datasets.uniform(300, n_items, rng=3), {2: 0.5, 4: 0.5}, rng=4, unlisted="free")
    kernel, method = rk.Mallows(0.1), MonteCarlo(16, "antithetic", 0, rng=5)
    one = kernel.gram(rows, method=method, n_jobs=1)
    assert (kernel.gram(rows, method=method, n_jobs=2) == one).all()
    order = np.random.default_rng(0).permutation(len(rows))
    assert (kernel.gram(rows[order], method=method) == one[np.ix_(order, order)]).all()
    assert (kernel.gram(rows[:50], rows[200:], method=method) == one[:50, 200:]).all()
    assert (kernel.gram(rows[200:], rows[:50], method=method) == one[200:, :50]).all()
    assert (kernel.gram(rows, method=MonteCarlo(16, "antithetic", 0, rng=6)) != one).any()


def test_equal_rows_share_their_draws():
    shared = rk.Mallows(0.5).gram([(0, 1, 1, 1)] * 3, method=MonteCarlo(8, "iid", 0))
    assert (shared == shared[0, 0]).all()


def test_derivatives_use_the_same_draws():
    kernel = 2 * rk.Mallows(0.3) + rk.Exponential("footrule", 0.1)
    method = MonteCarlo(32, rng=1)
    gradient = kernel.estimate(ROWS, method=method, gradient=True).gradient
    for name, value in kernel.params.items():
        step = 1e-5 * value
        up, down = (kernel.replace(**{name: value + s}).gram(ROWS, method=method) for s in (step, -step))
        np.testing.assert_allclose(gradient[name], (up - down) / (2 * step), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n_draws": 0}, "n_draws"),
        ({"n_draws": 2.5}, "n_draws"),
        ({"replicates": 0}, "replicates"),
        ({"coupling": "sobol"}, "coupling"),
        ({"control_variates": 3}, "control_variates"),
        ({"control_variates": True}, "control_variates"),
        ({"control_variates": 1, "completions": rk.PlackettLuce([1.0, 1.0])}, "control_variates"),
        ({"diagonal": "exact"}, "diagonal"),
        ({"rng": -1}, "rng"),
    ],
)
def test_invalid_options(options, name):
    with pytest.raises(ValueError, match=name):
        MonteCarlo(**options)


@few_draws_allowed
def test_method_text():
    method = rk.Mallows(0.1).plan(ROWS, method=MonteCarlo(20, rng=3)).method
    assert str(method) == (
        "Monte Carlo, 20 draws per ranking, antithetic coupling, control variates of degree 2, seed 3"
    )
    assert rk.Mallows(0.1).estimate(ROWS, method=MonteCarlo(20, rng=3)).method == method
    replicated = str(MonteCarlo(8, "iid", 0, replicates=4))
    assert replicated == "Monte Carlo, 8 draws per ranking in each of 4 replicates, independent draws, seed 0"


# ---------------------------------------------------------------------- blocks and equal rankings


@pytest.mark.parametrize("n_rows", [5, 40])
def test_entries_do_not_depend_on_the_block(n_rows):
    X = rk.datasets.uniform(n_rows, 35, rng=0).top(5, unlisted="free")
    kernel, method = rk.Mallows(0.01), MonteCarlo(8, rng=1)
    np.testing.assert_array_equal(kernel.gram(X, method=method)[:3], kernel.gram(X[:3], X, method=method))


@pytest.mark.parametrize(
    "kernel",
    [
        rk.Mallows(0.1),
        rk.Polynomial(2),
        rk.Mallows(0.1) + rk.Exponential("footrule", 0.05),
        rk.Mallows(0.1) * rk.Hamming(),
    ],
    ids=repr,
)
def test_blocks_with_control_variates(kernel):
    X = rk.datasets.uniform(40, 9, rng=1).top(4, unlisted="free")
    plan = kernel.plan(X, method=MonteCarlo(8))
    np.testing.assert_array_equal(plan.block(slice(3, 9), slice(20, 37)), plan.gram()[3:9, 20:37])


@pytest.mark.parametrize("coupling", ["iid", "antithetic"])
def test_blocks_with_an_unbiased_diagonal(coupling):
    X = rk.datasets.uniform(30, 9, rng=1).top(4, unlisted="free")
    plan = rk.Mallows(0.1).plan(X, method=MonteCarlo(10, coupling, diagonal="unbiased"))
    whole = plan.gram()
    np.testing.assert_array_equal(plan.block(slice(3, 9), slice(0, 12)), whole[3:9, :12])
    np.testing.assert_array_equal(plan.block(slice(5, 6), slice(5, 6)), whole[5:6, 5:6])
    np.testing.assert_array_equal(plan.diagonal(), whole.diagonal())


@few_draws_allowed
def test_equal_rankings_share_draws_and_bias():
    rows, kernel = Rankings([(0, 1, 1, 1), (1, 0, 1, 1), (0, 1, 1, 1)]), rk.Mallows(0.8)
    runs = [kernel.estimate(rows, method=MonteCarlo(8, "iid", 0, rng=seed)) for seed in range(40)]
    for run in runs:
        assert run.value[0, 2] == run.value[0, 0] == run.value[2, 2]
        assert run.stderr[0, 2] == run.stderr[0, 0] > 0
    values, exact = np.array([run.value for run in runs]), kernel.gram(rows)
    error = values.std(axis=0, ddof=1) / math.sqrt(40)
    assert values.mean(axis=0)[0, 2] > exact[0, 2] + 4 * error[0, 2]
    assert abs(values.mean(axis=0) - exact)[0, 1] < 5 * error[0, 1]


def test_streamed_mmd_is_unbiased():
    X = Rankings([(0, 1, 1, 1), (1, 0, 1, 1), (0, 1, 1, 1)])
    Y = Rankings([(1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 0, 1), (0, 1, 1, 1)])
    kernel = rk.Mallows(0.8)
    runs = [mmd2_streamed(X, Y, kernel, method=MonteCarlo(8, "iid", 0, rng=seed)) for seed in range(60)]
    assert abs(np.mean(runs) - mmd2_streamed(X, Y, kernel)) < 5 * np.std(runs, ddof=1) / math.sqrt(60)


def test_large_orders_do_not_change_other_rows():
    n, rng = 30, np.random.default_rng(5)
    narrow = [[(i, i + 1) for i in range(n - 1) if i != cut] + [(0, n - 1)] for cut in (4, 9)]
    wide = [(a, b) for a in range(15) for b in range(15, n) if rng.random() < 0.25]
    orders = rk.Preferences.from_pairs([*narrow, wide], items=range(n))
    kernel, method = rk.Mallows(0.02), MonteCarlo(8)
    np.testing.assert_array_equal(kernel.gram(orders, method=method)[:2, :2], kernel.gram(orders[:2], method=method))


def test_many_draws_are_compared_in_parts():
    """With 600 draws neither all pairs of draws nor a single pair of rankings is held at once."""
    X = rk.datasets.uniform(2, 5, rng=0).top(2)
    method = MonteCarlo(600, "iid", 0)
    draws = [one.astype(np.int32) for one in draw(X, 600, rng=0).ranks]
    for kernel in (rk.Mallows(0.3) * rk.Hamming(), rk.Exponential("footrule", 0.2)):
        found = kernel.estimate(X[:1], X[1:], method=method)
        assert found.value[0, 0] == pytest.approx(kernel.matrix(*draws).mean(), rel=1e-12)


def test_weighted_draws_of_a_constant_kernel():
    """The mean of 1 is 1, however the draws are weighted."""
    density = LogDensity(lambda ranks: 0.5 * ranks[:, 0])
    rows = Rankings([(0, 0, 0, 0), (0, 0, 1, 1)])
    for diagonal in ("embedding", "unbiased"):
        method = MonteCarlo(8, "iid", diagonal=diagonal, completions=density, control_variates=0)
        np.testing.assert_allclose(rk.Mallows(0.0).gram(rows, method=method), 1.0, rtol=1e-12)


def test_low_effective_sample_size_warns():
    density = LogDensity(lambda ranks: ranks @ [20.0, 8.0, 3.0, 0.0])
    with pytest.warns(rk.SamplingWarning):
        rk.Mallows(0.5).gram(Rankings([(0, 0, 0, 0)]), method=MonteCarlo(6, "iid", 0, density))


@pytest.mark.filterwarnings("ignore::rankernel.IndefiniteKernelWarning")
@pytest.mark.parametrize("kernel", [*KERNELS[:6], rk.Exponential("linf", 1.0), KERNELS[-1]], ids=repr)
@pytest.mark.parametrize("method", ["auto", "exact", MonteCarlo(8)], ids=str)
def test_no_rankings(kernel, method):
    none = Rankings(np.empty((0, 4), int))
    full, orders = rk.datasets.uniform(3, 4, rng=0), rk.Preferences.from_pairs([[(0, 1), (2, 3)]], items=range(4))
    for some in (full, full.top(2), full.top(2, unlisted="free"), orders):
        for normalize in (False, True):
            assert kernel.gram(none, some, method=method, normalize=normalize).shape == (0, len(some))
            assert kernel.gram(some, none, method=method, normalize=normalize).shape == (len(some), 0)
        assert kernel.estimate(none, some, method=method, gradient=True).value.shape == (0, len(some))
    assert kernel.gram(none, method=method).shape == (0, 0)
