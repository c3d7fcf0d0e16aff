"""The Monte Carlo estimator: unbiased, honest about its error, positive semi-definite, reproducible."""

import itertools
import math
from functools import cache

import naive
import numpy as np
import pytest
import real_data

import rankernel as rk
from rankernel import MonteCarlo, Rankings
from rankernel.completions import draw
from rankernel.gram.exact.formulas import Overlap
from rankernel.gram.montecarlo.control_variates import LARGEST_SQUARE
from rankernel.gram.montecarlo.variance import mallows_variance

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
COUPLINGS = ["iid", "antithetic", "orthogonal", "latin"]
doubts_allowed = pytest.mark.filterwarnings("ignore:.*rest on a few draws:rankernel.errors.SamplingWarning")


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
    for moments in (0, "auto"):
        runs = repeated(kernel, ROWS, 40, n_draws=8, coupling=coupling, control_variates=moments)
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
        (rk.LogDensity(lambda X: 0.3 * X[:, 0], self_normalized=False), lambda x: math.exp(0.3 * x[0])),
    ],
    ids=["Plackett-Luce", "Mallows", "log-density"],
)
def test_completions_other_than_uniform(model, weight):
    """Every kernel; couplings, too, where draws are uniform and weighted."""
    rows = [tuple(row) for row in ROWS.ranks.tolist()]
    for kernel in KERNELS:
        exact = exact_with_weights(kernel, rows, weight)
        for coupling in COUPLINGS if isinstance(model, rk.LogDensity) else ["iid"]:
            options = {"n_draws": 8, "coupling": coupling, "completions": model, "distinct_rows": True}
            assert_unbiased(repeated(kernel, ROWS, 40, [ROWS] * 5, **options), exact, OFF)  # items are not alike here


def test_self_normalised_weights_are_consistent():
    kernel, model = rk.Mallows(0.3), rk.LogDensity(lambda X: 0.3 * X[:, 0])
    rows = [tuple(row) for row in ROWS.ranks.tolist()]
    estimate = kernel.estimate(ROWS, method=MonteCarlo(2000, completions=model))
    exact = exact_with_weights(kernel, rows, lambda x: math.exp(0.3 * x[0]))
    assert (np.abs(estimate.value - exact)[OFF] < 5 * estimate.stderr[OFF]).all()


# ---------------------------------------------------------------------- honest


@pytest.mark.parametrize(
    ("coupling", "moments", "n_draws"),
    [
        ("iid", 0, 24),
        ("antithetic", 0, 24),
        ("antithetic", 2, 64),
        ("latin", 0, 60),
        ("orthogonal", 0, 16),
        ("latin", 0, 10),  # from here on there are few blocks, and repetitions tell the error
        ("antithetic", 0, 4),
        ("iid", 0, 2),
    ],
)
@doubts_allowed
def test_two_standard_errors_cover_the_truth(coupling, moments, n_draws):
    """About 95 % of intervals of two standard errors; with few blocks the error itself is uncertain (t, not normal)."""
    kernel, rows = rk.Mallows(0.3), rk.concat(shifted(ROWS))
    off = ~np.eye(len(rows), dtype=bool)
    exact = kernel.estimate(rows, gradient=True)
    covered, slopes_covered, own_covered = [], [], []
    for seed in range(10):  # times 25 rankings with draws of their own
        found = kernel.estimate(rows, method=MonteCarlo(n_draws, coupling, moments, rng=seed), gradient=True)
        inside = np.abs(found.value - exact.value) < 2 * found.stderr
        slopes_inside = np.abs(found.gradient["nu"] - exact.gradient["nu"]) < 2 * found.gradient_stderr["nu"]
        covered.append(inside[off])
        own_covered.append(inside[~off])
        slopes_covered.append(slopes_inside[off])
    assert 0.90 < np.mean(covered) < 0.985
    assert 0.90 < np.mean(slopes_covered) < 0.985
    assert np.mean(own_covered) > 0.95  # with the bias inside, on the safe side


@pytest.mark.parametrize(("coupling", "n_draws"), [("iid", 32), ("antithetic", 4)])
@doubts_allowed
def test_the_error_of_the_diagonal_is_its_distance_from_the_truth(coupling, n_draws):
    """The bias is part of it. The jackknife is known to err on the safe side."""
    kernel = rk.Mallows(0.3)
    exact = np.diag(kernel.gram(ROWS))
    rows = rk.concat(shifted(ROWS))
    estimates = [kernel.estimate(rows, method=MonteCarlo(n_draws, coupling, 0, rng=seed)) for seed in range(12)]
    values, bars = (
        np.concatenate([np.diag(getattr(estimate, name)).reshape(-1, len(ROWS)) for estimate in estimates])
        for name in ("value", "stderr")
    )
    distance, claimed = np.sqrt(((values - exact) ** 2).mean(axis=0)), np.sqrt((bars**2).mean(axis=0))
    assert ((claimed / distance > 0.85) & (claimed / distance < 1.6)).all()


def test_few_draws_that_carry_an_estimate_are_told():
    """A narrow kernel between far rankings: hardly any draw counts, and what has not been drawn may count as much."""
    rows = rk.datasets.uniform(4, 12, rng=0).top(3, unlisted="free")
    method = MonteCarlo(32, "iid", 0)
    with pytest.warns(rk.SamplingWarning, match="estimates rest on a few draws.*take more draws"):
        narrow = rk.Mallows(2.0).estimate(rows, method=method)
    assert (narrow.stderr[~np.eye(4, dtype=bool)] > 0).all()
    assert np.isfinite(rk.Mallows(2.0).gram(rows, method=method)).all()  # without errors there is nothing to doubt


def test_normalised_estimates_divide_by_unbiased_lengths():
    """The bias of the diagonal would pull all cosines towards 0."""
    kernel = rk.Mallows(0.3)
    exact = kernel.gram(ROWS, normalize=True)
    runs, plain = (
        repeated(kernel, ROWS, 150, normalize=normalize, n_draws=16, coupling="iid", control_variates=0)
        for normalize in (True, False)
    )
    roots = np.sqrt(np.diagonal(plain, axis1=1, axis2=2))
    by_own_diagonal = plain / roots[:, :, None] / roots[:, None, :]
    bias, other = (np.abs(values.mean(axis=0) - exact)[OFF].mean() for values in (runs, by_own_diagonal))
    assert bias < other / 3
    estimate = kernel.estimate(ROWS, method=MonteCarlo(16, "iid", 0), normalize=True)
    np.testing.assert_allclose(estimate.value, runs[0], rtol=1e-13)
    spread = runs.std(axis=0, ddof=1)[OFF]
    assert np.median(estimate.stderr[OFF] / spread) == pytest.approx(1, abs=0.4)


def test_the_bias_of_the_diagonal_is_what_the_paper_says():
    """Appendix B: E K^(R, R) = (m - 1)/m K + 1/m for independent draws, as k(s, s) = 1."""
    kernel, m = rk.Mallows(0.3), 6
    exact = np.diag(kernel.gram(ROWS))
    runs = repeated(kernel, ROWS, 200, n_draws=m, coupling="iid", control_variates=0)
    assert_unbiased(np.diagonal(runs, axis1=1, axis2=2), exact + (1 - exact) / m, slice(None))


def test_an_unbiased_diagonal_can_be_asked_for():
    kernel = rk.Mallows(0.3)
    for coupling, moments, n_draws in (("iid", 0, 6), ("antithetic", 2, 6), ("antithetic", 1, 2)):
        options = {"n_draws": n_draws, "coupling": coupling, "control_variates": moments}
        runs = repeated(kernel, ROWS, 80, diagonal="unbiased", **options)
        assert_unbiased(runs, kernel.gram(ROWS), np.ones_like(OFF))
        assert (runs[0][OFF] == kernel.gram(ROWS, method=MonteCarlo(rng=0, **options))[OFF]).all()


def test_tol_takes_as_many_draws_as_it_needs():
    kernel = rk.Mallows(0.3)
    method = MonteCarlo(coupling="iid", control_variates=0)
    loose, tight = (kernel.estimate(ROWS, method=method, tol=tol) for tol in (0.02, 0.005))
    assert loose.stderr.max() <= 0.02
    assert tight.stderr.max() <= 0.005
    assert tight.method.n_draws > 4 * loose.method.n_draws
    assert f"{tight.method.n_draws} draws" in tight.details
    assert kernel.estimate(ROWS, tol=1e-9).method == rk.Exact()  # nothing to draw
    with pytest.raises(ValueError, match="tol=0"):
        kernel.estimate(ROWS, method=method, tol=0)


@pytest.mark.parametrize("coupling", ["iid", "antithetic"])
def test_the_exact_variance_is_that_of_the_estimator(coupling):
    kernel, m = rk.Mallows(0.4), 6
    rows = Rankings([(0, 1, 2, 2, 2), (1, 1, 0, 1, 0)])
    options = {"n_draws": m, "coupling": coupling, "control_variates": 0, "distinct_rows": True}
    runs = repeated(kernel, rows, 1500, [rows] * 50, **options)[:, 0, 1]
    exact = mallows_variance(Overlap.of(*rows.ranks), 0.4, m, m, coupling)
    assert runs.var(ddof=1) == pytest.approx(exact, rel=0.2)


@pytest.mark.parametrize("coupling", ["iid", "antithetic"])
def test_the_exact_variance_of_any_kernel_and_ranking(coupling):
    """By enumeration, free items included, against the spread of many runs; and against the closed form."""
    kernel, m = rk.Exponential("footrule", 0.2), 4
    X, Y = ROWS[:2], ROWS[2:4]
    exact = rk.monte_carlo_variance(X, Y, kernel, m, coupling)
    options = {"n_draws": m, "coupling": coupling, "control_variates": 0, "distinct_rows": True}
    runs = repeated(kernel, ROWS[:4], 1500, [ROWS[:4]] * 50, **options)[:, :2, 2:]
    np.testing.assert_allclose(np.var(runs, axis=0, ddof=1), exact, rtol=0.25)
    mallows = rk.Mallows(0.4)
    closed = rk.monte_carlo_variance(ROWS[3:], ROWS[3:], mallows, m, coupling)
    enumerated = rk.monte_carlo_variance(ROWS[3:], ROWS[3:], 1 * mallows, m, coupling)
    np.testing.assert_allclose(closed, enumerated, rtol=1e-10)
    with pytest.raises(rk.ExactnessError, match="the limit is 10"):
        rk.monte_carlo_variance(X, Y, kernel, m, coupling, limit=10)


# ---------------------------------------------------------------------- better


def test_moments_and_couplings_lower_the_variance():
    """With free items at the median width: each step of the default estimator helps, all together a thousandfold."""
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


def test_auto_is_what_serves_the_kernel():
    free = rk.datasets.uniform(3, 8, rng=0).top(3, unlisted="free")
    wide = rk.datasets.uniform(3, 60, rng=0).top(3, unlisted="free")

    def settled(kernel, rows, **options):
        method = kernel.plan(rows, method=MonteCarlo(**options)).method
        return method.coupling, method.control_variates

    assert settled(rk.Mallows(0.1), free) == ("antithetic", 2)
    assert settled(rk.Mallows(0.1), wide) == ("antithetic", 1)  # 1.6 million products of pairs are too many
    assert settled(rk.Exponential("hamming", 0.1), free) == ("latin", 1)
    assert settled(rk.Exponential("cayley", math.log(2)), free) == ("iid", 0)
    assert settled(rk.Mallows(0.1), free, completions=rk.PlackettLuce(np.ones(8))) == ("iid", 0)


@pytest.mark.parametrize("n_rows", [1, 2, 400])
@pytest.mark.parametrize("n_items", [3, LARGEST_SQUARE, LARGEST_SQUARE + 1])
def test_what_auto_means_depends_on_the_items_never_on_the_rows(n_rows, n_items):
    rows = rk.datasets.uniform(n_rows, n_items, rng=0).top(2, unlisted="free")
    method = rk.Mallows(0.1).plan(rows, method=MonteCarlo()).method
    assert method.control_variates == (2 if n_items <= LARGEST_SQUARE else 1)
    assert rk.Mallows(0.1).plan(rows[:1], rows, method=MonteCarlo()).method == method


@real_data.needs_data
def test_antithetic_variance_on_sushi():
    """Top-4 of ten at the median width: about a hundred times below independent draws, by the exact formulas."""
    rows = rk.load_sushi(real_data.sushi()).rankings[:25].top(4)
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
    # One width is summed, several are counted.
    together = rk.Mallows().plan(rows, method=method).path(nu=nus)
    for nu, matrix in zip(nus, together, strict=True):
        expected = np.exp(-nu * distances).mean(axis=(2, 3))
        np.testing.assert_allclose(matrix, expected, rtol=1e-13)
        np.testing.assert_allclose(rk.Mallows(nu).gram(rows, method=method), expected, rtol=1e-13)


@pytest.mark.parametrize("n_items", [8, 14])
def test_the_same_bits_whatever_the_order_threads_and_blocks(n_items):
    rows = rk.datasets.truncate(rk.datasets.uniform(300, n_items, rng=3), {2: 0.5, 4: 0.5}, rng=4, unlisted="free")
    kernel, method = rk.Mallows(0.1), MonteCarlo(16, "antithetic", 0, rng=5)
    one = kernel.gram(rows, method=method, n_jobs=1)
    assert (kernel.gram(rows, method=method, n_jobs=2) == one).all()
    order = np.random.default_rng(0).permutation(len(rows))
    assert (kernel.gram(rows[order], method=method) == one[np.ix_(order, order)]).all()
    assert (kernel.gram(rows[:50], rows[200:], method=method) == one[:50, 200:]).all()
    assert (kernel.gram(rows[200:], rows[:50], method=method) == one[200:, :50]).all()
    assert (kernel.gram(rows, method=MonteCarlo(16, "antithetic", 0, rng=6)) != one).any()


def test_equal_rows_can_have_draws_of_their_own():
    rows = Rankings([(0, 1, 1, 1)] * 3)
    kernel = rk.Mallows(0.5)
    shared = kernel.gram(rows, method=MonteCarlo(8, "iid", 0))
    assert (shared == shared[0, 0]).all()
    own = kernel.gram(rows, method=MonteCarlo(8, "iid", 0, distinct_rows=True))
    assert len(np.unique(own[np.triu_indices(3)])) == 6
    runs = repeated(kernel, rows, 80, n_draws=8, coupling="iid", control_variates=0, distinct_rows=True)
    assert_unbiased(runs, kernel.gram(rows), ~np.eye(3, dtype=bool))


def test_derivatives_use_the_same_draws():
    kernel = 2 * rk.Mallows(0.3) + rk.Exponential("footrule", 0.1)
    method = MonteCarlo(32, rng=1)
    gradient = kernel.estimate(ROWS, method=method, gradient=True).gradient
    for name, value in kernel.params.items():
        step = 1e-5 * value
        up, down = (kernel.replace(**{name: value + s}).gram(ROWS, method=method) for s in (step, -step))
        np.testing.assert_allclose(gradient[name], (up - down) / (2 * step), rtol=1e-6, atol=1e-9)


def test_a_path_of_widths_uses_the_same_draws():
    method = MonteCarlo(8, "antithetic", 1, rng=1)
    path = rk.Mallows().plan(ROWS, method=method).path(nu=[0.1, 0.5])
    for nu, value in zip([0.1, 0.5], path, strict=True):
        np.testing.assert_allclose(value, rk.Mallows(nu).gram(ROWS, method=method), rtol=1e-13)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 0}, "n_draws=0 is not possible"),
        ({"n_draws": 2.5}, "n_draws=2.5 is not possible"),
        ({"coupling": "sobol"}, "coupling='sobol'"),
        ({"control_variates": 3}, "control_variates=3 is not possible"),
        ({"control_variates": 1, "completions": rk.PlackettLuce([1.0, 1.0])}, "uniform completions only"),
        ({"diagonal": "exact"}, "diagonal='exact'"),
        ({"rng": -1}, "rng=-1"),
    ],
)
def test_impossible_methods_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MonteCarlo(**options)


@doubts_allowed
def test_what_was_done_is_said():
    method = rk.Mallows(0.1).plan(ROWS, method=MonteCarlo(20, rng=3)).method
    assert str(method) == ("Monte Carlo, 20 draws of each ranking, antithetic, exact moments up to degree 2, seed 3")
    assert rk.Mallows(0.1).estimate(ROWS, method=MonteCarlo(20, rng=3)).method == method
