"""As many draws as it takes, and no more: no error above a tolerance, by the choices that get there soonest."""

import numpy as np
import pytest

import rankernel as rk
from rankernel import MonteCarlo, Rankings
from rankernel.gram import tolerance
from rankernel.gram.montecarlo.replicate import Replicate
from rankernel.gram.montecarlo.uncertainty import times_compared

FREE = rk.datasets.uniform(6, 12, rng=0).top(4, unlisted="free")
MANY_FREE = rk.datasets.uniform(6, 20, rng=0).top(6, unlisted="free")

few_draws_meant = pytest.mark.filterwarnings("ignore:.*rest on a few draws:rankernel.SamplingWarning")


@few_draws_meant
def test_it_bounds_the_distance_from_the_truth_on_the_diagonal_too():
    lists = Rankings.from_orders([[0, 1, 2], [3, 4, 5]], items=range(20))
    kernel = rk.Mallows(0.5)
    found = kernel.estimate(lists, method=MonteCarlo(), tol=5e-3)
    assert found.stderr.max() <= 5e-3
    assert (np.abs(found.value - kernel.gram(lists)) <= 2 * found.stderr).all()


def test_without_a_bias_on_the_diagonal_replicates_are_enough():
    found = rk.Mallows(0.1).estimate(FREE, method=MonteCarlo(diagonal="unbiased"), tol=2e-4)
    assert found.stderr.max() <= 2e-4
    assert found.method.n_draws == 64


def test_the_errors_said_are_those_of_the_method_said():
    """However the draws were added to one another."""
    kernel = rk.Mallows(0.1)
    found = kernel.estimate(FREE[:4], method=MonteCarlo(8, "iid", 0), tol=8e-3, normalize=True)
    again = kernel.estimate(FREE[:4], method=found.method, normalize=True)
    assert found.method.replicates > 1
    assert np.array_equal(found.value, again.value)
    assert np.array_equal(found.stderr, again.stderr)


def test_a_bias_that_is_out_of_reach_is_refused_at_once_with_a_way_out(monkeypatch):
    monkeypatch.setattr(tolerance, "MOST_DRAWS", 64)
    with pytest.raises(rk.ExactnessError, match=r"where a ranking meets itself, .* by MonteCarlo\(diagonal='unbiased'"):
        rk.Mallows(0.1).estimate(FREE, method=MonteCarlo(), tol=1e-5)


def test_a_variance_that_is_out_of_reach_is_refused(monkeypatch):
    monkeypatch.setattr(tolerance, "MOST_REPLICATES", 2)
    with pytest.raises(rk.ExactnessError, match=r"2 times 64 draws .* leaves a standard error of .* larger tol"):
        rk.Mallows(0.1).estimate(FREE[:3], FREE[3:], method=MonteCarlo(coupling="iid", control_variates=0), tol=1e-5)


def test_a_ballot_on_both_sides_is_met_with_draws_not_with_replicates():
    found = rk.Mallows(0.1).estimate(FREE[:2], FREE[1:3], method=MonteCarlo(16), tol=3e-3)
    assert found.stderr.max() <= 3e-3
    assert found.method.replicates == 1


def test_exact_moments_are_kept_where_they_save_draws():
    found = rk.Exponential("footrule", 0.02).estimate(MANY_FREE[:2], method=MonteCarlo(), tol=5e-4)
    assert found.stderr.max() <= 5e-4
    assert found.method.control_variates == 1


def test_the_coupling_that_is_soonest_there_is_taken_unless_one_was_asked_for(monkeypatch):
    monkeypatch.setattr(tolerance, "A_PILOT", 0.0)  # as if there were many rankings
    kernel = rk.Exponential("footrule").resolve(FREE)
    open_, asked = (
        kernel.estimate(FREE[:3], method=MonteCarlo(coupling=coupling, control_variates=1), tol=2e-3).method
        for coupling in ("auto", "antithetic")
    )
    assert asked.coupling == "antithetic"
    assert open_.coupling != "antithetic"
    assert open_.replicates * open_.n_draws**2 < asked.replicates * asked.n_draws**2


@few_draws_meant
def test_little_is_tried_where_little_can_be_saved(monkeypatch):
    tried, measured = [], tolerance.measured
    monkeypatch.setattr(tolerance, "measured", lambda *given: tried.append(given[0]) or measured(*given))
    rk.Mallows(0.1).estimate(FREE, method=MonteCarlo(), tol=0.02)
    assert len(tried) == 2  # one of them is the answer


@few_draws_meant
def test_normalised_errors_are_bounded_and_not_those_of_what_is_one_anyway():
    found = rk.Mallows(0.1).estimate(FREE, method=MonteCarlo(16), normalize=True, tol=0.01)
    assert found.stderr.max() <= 0.01
    assert found.stderr.diagonal().max() == 0


@pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")
def test_lengths_alone_are_drawn_as_often_as_it_takes():
    """Entries are exact here, and the lengths of the columns are not."""
    full, free = rk.datasets.uniform(2, 8, rng=5), rk.datasets.uniform(2, 8, rng=3).top(4, unlisted="free")
    kernel = rk.Exponential("footrule", 0.15)
    first, found = (kernel.estimate(full, free, normalize=True, tol=tol) for tol in (1.0, 1e-3))
    assert first.stderr.max() > 1e-3 >= found.stderr.max()
    assert found.method.estimate.replicates > first.method.estimate.replicates


def test_nothing_is_drawn_of_no_rankings():
    none = Rankings(np.empty((0, 12), int))
    for rows, columns in ((none, FREE), (FREE, none), (none, none)):
        assert rk.Mallows(0.1).estimate(rows, columns, method=MonteCarlo(8), tol=0.01).value.size == 0


@few_draws_meant
def test_it_needs_little_memory_with_kernels_that_have_no_distance(monkeypatch):
    largest = []
    matrix = rk.Hamming.matrix

    def watched(self, X, Y):
        largest.append(len(X) * len(Y))
        return matrix(self, X, Y)

    monkeypatch.setattr(rk.Hamming, "matrix", watched)
    rows = Rankings([(0, 0, 0, 1, 1), (0, 1, 1, 1, 0)])
    found = (rk.Mallows(0.5) * rk.Hamming()).estimate(rows, method=MonteCarlo(64, "iid", 0), tol=0.02)
    assert found.stderr.max() <= 0.02
    assert max(largest) <= 2**19


@few_draws_meant
@pytest.mark.parametrize(("coupling", "n_draws"), [("antithetic", 64), ("antithetic", 12), ("orthogonal", 64)])
def test_what_errors_cost_is_known(coupling, n_draws, monkeypatch):
    """As many pairs of rankings are compared as is said; of a symmetric matrix about half."""
    compared, in_parts = [], Replicate.in_parts

    def counted(self, compute, n_numbers, left, right):
        compared.append(len(left) * self.n_draws**2)
        return in_parts(self, compute, n_numbers, left, right)

    monkeypatch.setattr(Replicate, "in_parts", counted)
    method = MonteCarlo(n_draws, coupling, 0)
    plan = rk.Exponential("footrule", 0.02).plan(MANY_FREE, method=method)
    n_blocks = len(plan.evaluator.replicates[0].ends)
    plan.estimate(n_jobs=1)
    told = times_compared(method, n_blocks, len(MANY_FREE), len(MANY_FREE) ** 2) * len(MANY_FREE) ** 2 * n_draws**2
    assert sum(compared) <= told <= 2.1 * sum(compared)


def test_couplings_whose_errors_cost_more_are_not_chosen():
    """Orthogonal draws of 20 items are a few blocks: some of them less would do, but errors take many repetitions."""
    kernel, rows = rk.Exponential("footrule", 0.02), rk.datasets.uniform(20, 20, rng=0).top(6, unlisted="free")
    found = kernel.estimate(rows, method=MonteCarlo(control_variates=1), tol=3e-3)
    assert found.stderr.max() <= 3e-3
    assert found.method.coupling in ("antithetic", "iid")
