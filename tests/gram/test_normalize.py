"""Normalised Gram matrices: entries divided by norms that are exact or unbiased estimates."""

from functools import cache

import naive
import numpy as np
import pytest

import rankernel as rk
from rankernel import MonteCarlo

FULL, FREE = rk.datasets.uniform(2, 8, rng=5), rk.datasets.uniform(2, 8, rng=3).top(4, unlisted="free")
SMALL = rk.datasets.uniform(3, 5, rng=1).top(3, unlisted="free")
KERNEL = rk.Exponential("footrule", 0.15)

sampling_allowed = pytest.mark.filterwarnings(
    "ignore::rankernel.SamplingWarning", "ignore::rankernel.IndefiniteKernelWarning"
)


def footrule_cosines(nu, X, Y):
    """Cosines by all pairs of completions."""
    left, right = ([np.array(naive.completions(ranks)) for ranks in side.ranks.tolist()] for side in (X, Y))

    def mean(x, y):
        return np.exp(-nu * sum(abs(a[:, None] - b) for a, b in zip(x.T, y.T, strict=True))).mean()

    values = [[mean(x, y) for y in right] for x in left]
    return np.array(values) / np.sqrt(np.outer([mean(x, x) for x in left], [mean(y, y) for y in right]))


@cache
def cosines_of_full_and_free():
    return footrule_cosines(0.15, FULL, FREE)


@sampling_allowed
def test_estimated_norms_of_exact_entries():
    found = KERNEL.estimate(FULL, FREE, normalize=True)
    assert isinstance(found.method, rk.MonteCarlo)
    assert "norms: Monte Carlo" in found.details
    assert (found.stderr > 0).all()
    assert (np.abs(found.value - cosines_of_full_and_free()) <= 2 * found.stderr).all()
    np.testing.assert_allclose(KERNEL.gram(FULL, FREE, normalize=True), found.value, rtol=1e-13)


def test_gram_warns_of_estimated_norms():
    with pytest.warns(rk.SamplingWarning, match="norms of 2 rankings"):
        assert KERNEL.gram(FULL, FREE, normalize=True).shape == (2, 2)


@sampling_allowed
def test_new_rows_are_normalised():
    """Norms of rankings without an exact value come from the draws of their estimated entries."""
    new = rk.concat([FULL, rk.datasets.uniform(3, 8, rng=3).top(4, unlisted="free")])
    ties = rk.datasets.uniform(2, 8, rng=5).top(3)
    found = KERNEL.plan(ties).against(new).estimate(normalize=True)
    assert (np.abs(found.value - footrule_cosines(0.15, new, ties)) <= 3 * found.stderr + 1e-12).all()
    assert found.stderr[0, 1] == 0
    assert found.stderr[2, 1] > 0


@sampling_allowed
def test_cosine_of_a_ranking_with_itself_is_one():
    rows = rk.datasets.uniform(3, 20, rng=0).top(6, unlisted="free")
    rows = rk.concat([rows, rows[:1]])
    found = rk.Mallows(0.1).estimate(rows, normalize=True)
    same = np.equal.outer([0, 1, 2, 0], [0, 1, 2, 0])
    assert (found.value[same] == 1).all()
    assert (found.stderr[same] == 0).all()
    assert (found.stderr[~same] > 0).all()
    between = rk.Mallows(0.1).estimate(rows, rows[2:], normalize=True)
    np.testing.assert_array_equal(between.value == 1, same[:, 2:])
    assert (rk.Mallows(0.1).gram(rows, normalize=True, method=MonteCarlo(8))[same] == 1).all()


@sampling_allowed
@pytest.mark.parametrize(("factor", "flagged"), [(1.0, False), (50.0, True)])
def test_coverage_with_estimated_norms(factor, flagged):
    kernel = rk.Exponential("footrule").resolve(SMALL)
    kernel = kernel.replace(nu=factor * kernel.nu)
    exact, pairs = footrule_cosines(kernel.nu, SMALL, SMALL), np.triu_indices(3, 1)
    runs = [kernel.estimate(SMALL, method=MonteCarlo(32, "iid", 0, rng=seed), normalize=True) for seed in range(80)]
    covered = np.array([(np.abs(run.value - exact) <= 2 * run.stderr)[pairs] for run in runs])
    assert flagged or covered.mean() > 0.9
    assert (np.mean([run.unreliable[pairs] for run in runs]) > 0.5) == flagged
    assert all((run.stderr < 2).all() for run in runs)  # of values in [-1, 1]


def test_norms_are_exact_or_refused_if_requested():
    found = KERNEL.gram(FULL, FREE, method=rk.Exact(), normalize=True)
    np.testing.assert_allclose(found, cosines_of_full_and_free(), rtol=1e-12)
    few = rk.Exact(limit=10**5)
    assert KERNEL.gram(FULL, FREE, method=few).shape == (2, 2)
    with pytest.raises(rk.ExactnessError, match="method"):
        KERNEL.gram(FULL, FREE, method=few, normalize=True)


def test_norm_zero():
    rows = rk.Rankings([[0, 0, 0], [0, 1, 2]])
    assert rk.Kendall().gram(rows, normalize=True).tolist() == [[0, 0], [0, 1]]
    assert rk.Kendall().estimate(rows, normalize=True).value.tolist() == [[0, 0], [0, 1]]
