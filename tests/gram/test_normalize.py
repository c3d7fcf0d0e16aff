"""Cosines: entries divided by lengths that are exact, or estimated without bias, with the error of both."""

from functools import cache

import naive
import numpy as np
import pytest

import rankernel as rk
from rankernel import MonteCarlo
from rankernel.gram import normalize

FULL, FREE = rk.datasets.uniform(2, 8, rng=5), rk.datasets.uniform(2, 8, rng=3).top(4, unlisted="free")
SMALL = rk.datasets.uniform(3, 5, rng=1).top(3, unlisted="free")
KERNEL = rk.Exponential("footrule", 0.15)

estimated = pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning", "ignore::rankernel.IndefiniteKernelWarning")


def completions(ranks):
    """All completions of a ranking, as an array."""
    return np.array(naive.completions(ranks.tolist()))


def footrule_cosines(nu, X, Y):
    """Cosines by all pairs of completions."""
    left, right = ([completions(ranks) for ranks in side.ranks] for side in (X, Y))

    def mean(x, y):
        return np.exp(-nu * sum(abs(a[:, None] - b) for a, b in zip(x.T, y.T, strict=True))).mean()

    values = [[mean(x, y) for y in right] for x in left]
    return np.array(values) / np.sqrt(np.outer([mean(x, x) for x in left], [mean(y, y) for y in right]))


@cache
def cosines_of_full_and_free():
    return footrule_cosines(0.15, FULL, FREE)


@estimated
@pytest.mark.parametrize("method", ["auto", "mixed"])
def test_lengths_that_are_estimated_are_neither_biased_nor_called_exact(method):
    """Entries between full rankings and these are exact, the lengths of these are not."""
    found = KERNEL.estimate(FULL, FREE, method=method, normalize=True)
    assert isinstance(found.method, rk.Mixed)
    assert "lengths: Monte Carlo" in found.details
    assert (found.stderr > 0).all()
    assert (np.abs(found.value - cosines_of_full_and_free()) <= 2 * found.stderr).all()


def test_gram_says_that_lengths_are_estimated():
    with pytest.warns(rk.SamplingWarning, match="2 lengths have no exact value, and are estimated: Monte Carlo, 64"):
        assert KERNEL.gram(FULL, FREE, normalize=True).shape == (2, 2)


@estimated
def test_a_ranking_has_the_cosine_one_with_itself_and_needs_no_estimate_of_it():
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


@estimated
@pytest.mark.parametrize(("width", "least_doubt", "most_doubt"), [(1.0, 0.0, 0.1), (10.0, 0.9, 1.0)])
def test_bars_hold_where_lengths_are_estimated(width, least_doubt, most_doubt, monkeypatch):
    monkeypatch.setattr(normalize, "FEW_EVALUATIONS", 0)
    kernel = rk.Exponential("footrule").resolve(SMALL)
    kernel = kernel.replace(nu=width * kernel.nu)
    truth, pairs = footrule_cosines(kernel.nu, SMALL, SMALL), np.triu_indices(3, 1)
    runs = [kernel.estimate(SMALL, method=MonteCarlo(8, "iid", 0, rng=seed), normalize=True) for seed in range(40)]
    covered = np.array([(np.abs(run.value - truth) <= 2 * run.stderr)[pairs] for run in runs])
    assert covered.mean() > 0.93
    assert least_doubt <= np.mean([run.unreliable[pairs] for run in runs]) <= most_doubt
    assert all((run.stderr <= (1 + np.abs(run.value)) / 2).all() for run in runs)  # which reaches -1 and 1


@estimated
@pytest.mark.parametrize("coupling", ["iid", "antithetic", "latin"])
def test_lengths_of_very_few_blocks_of_draws_come_from_repetitions(coupling, monkeypatch):
    monkeypatch.setattr(normalize, "FEW_EVALUATIONS", 0)
    kernel, truth = KERNEL.replace(nu=0.05), footrule_cosines(0.05, SMALL, SMALL)
    runs = [kernel.estimate(SMALL, method=MonteCarlo(3, coupling, 0, rng=seed), normalize=True) for seed in range(24)]
    assert np.mean([np.abs(run.value - truth) <= 2 * run.stderr for run in runs]) > 0.93


def test_exact_lengths_that_were_asked_for_are_exact_or_refused():
    enough, too_few = rk.Exact(), rk.Exact(limit=10**5)
    found = KERNEL.gram(FULL, FREE, method=enough, normalize=True)
    np.testing.assert_allclose(found, cosines_of_full_and_free(), rtol=1e-12)
    assert KERNEL.gram(FULL, FREE, method=too_few).shape == (2, 2)
    with pytest.raises(rk.ExactnessError, match=r"2 of 2 lengths .* have no exact value; use method='auto'"):
        KERNEL.gram(FULL, FREE, method=too_few, normalize=True)
