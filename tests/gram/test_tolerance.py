"""Estimates with a requested standard error."""

import numpy as np
import pytest

import rankernel as rk
from rankernel import MonteCarlo, Rankings

FREE = rk.datasets.uniform(6, 12, rng=0).top(4, unlisted="free")

sampling_allowed = pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")


@sampling_allowed
def test_tolerance_holds_on_the_diagonal():
    lists = Rankings.from_orders([[0, 1, 2], [3, 4, 5]], items=range(20))
    kernel = rk.Mallows(0.5)
    found = kernel.estimate(lists, method=MonteCarlo(), tol=1e-2)
    assert found.stderr.max() <= 1e-2
    assert (np.abs(found.value - kernel.gram(lists)) <= 2 * found.stderr).diagonal().all()


@sampling_allowed
def test_number_of_draws_follows_the_tolerance():
    method = MonteCarlo(coupling="iid", control_variates=0)
    loose, tight = (rk.Mallows(0.1).estimate(FREE, method=method, tol=tol) for tol in (0.02, 0.005))
    assert loose.stderr.max() <= 0.02
    assert tight.stderr.max() <= 0.005
    assert tight.method.n_draws > 2 * loose.method.n_draws
    assert f"{tight.method.n_draws} draws" in tight.details


def test_unbiased_diagonals_need_replicates_only():
    found = rk.Mallows(0.1).estimate(FREE, method=MonteCarlo(diagonal="unbiased"), tol=2e-4)
    assert found.stderr.max() <= 2e-4
    assert found.method.n_draws == 64


def test_exact_values_meet_every_tolerance():
    assert rk.Mallows(0.1).estimate(FREE.top(2), tol=1e-9).method == rk.Exact()


@sampling_allowed
def test_result_is_that_of_the_returned_method():
    kernel = rk.Mallows(0.1)
    found = kernel.estimate(FREE[:4], method=MonteCarlo(8, "iid", 0), tol=8e-3, normalize=True)
    again = kernel.estimate(FREE[:4], method=found.method, normalize=True)
    assert found.method.replicates > 1
    assert np.array_equal(found.value, again.value)
    assert np.array_equal(found.stderr, again.stderr)


@sampling_allowed
def test_unreachable_tolerances_are_refused():
    with pytest.raises(rk.ExactnessError, match="unbiased"):
        rk.Mallows(0.1).estimate(FREE[:1], method=MonteCarlo(4096, "iid", 0), tol=1e-6)
    method = MonteCarlo(4, coupling="iid", control_variates=0, replicates=512)
    with pytest.raises(rk.ExactnessError, match="tol"):
        rk.Mallows(0.1).estimate(FREE[:1], FREE[1:2], method=method, tol=1e-7)


@pytest.mark.parametrize("tol", [0, -1, float("nan")])
def test_invalid_tolerances(tol):
    with pytest.raises(ValueError, match="tol"):
        rk.Mallows(0.1).estimate(FREE, tol=tol)


@sampling_allowed
def test_normalised_tolerance():
    found = rk.Mallows(0.1).estimate(FREE, method=MonteCarlo(16), normalize=True, tol=0.01)
    assert found.stderr.max() <= 0.01
    assert found.stderr.diagonal().max() == 0


@sampling_allowed
def test_tolerance_of_estimated_norms():
    """The entries are exact, the norms of the columns are not."""
    full, free = rk.datasets.uniform(2, 8, rng=5), rk.datasets.uniform(2, 8, rng=3).top(4, unlisted="free")
    kernel = rk.Exponential("footrule", 0.15)
    first, found = (kernel.estimate(full, free, normalize=True, tol=tol) for tol in (1.0, 1e-3))
    assert first.stderr.max() > 1e-3 >= found.stderr.max()
    assert found.method.replicates > first.method.replicates


def test_no_rankings():
    none = Rankings(np.empty((0, 12), int))
    for rows, columns in ((none, FREE), (FREE, none), (none, none)):
        assert rk.Mallows(0.1).estimate(rows, columns, method=MonteCarlo(8), tol=0.01).value.size == 0


@sampling_allowed
def test_kernels_without_a_distance():
    rows = Rankings([(0, 0, 0, 1, 1), (0, 1, 1, 1, 0)])
    found = (rk.Mallows(0.5) * rk.Hamming()).estimate(rows, method=MonteCarlo(64, "iid", 0), tol=0.05)
    assert found.stderr.max() <= 0.05
