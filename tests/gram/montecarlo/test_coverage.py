"""Error bars hold, or say that they may not: some cells of ``benchmarks/coverage.py``, with fewer seeds."""

import pytest

coverage = pytest.importorskip("benchmarks.coverage", reason="benchmarks are not part of an installed package")

pytestmark = pytest.mark.filterwarnings("ignore")  # of sharp kernels and few draws, which are meant


def measured(rankings, kernel, width, coupling, draws, n_runs):
    row = {"rankings": rankings, "kernel": kernel, "width": width, "coupling": coupling, "draws": draws}
    return coverage.measured(row, n_runs)


@pytest.mark.parametrize(
    ("rankings", "kernel", "coupling", "draws"),
    [
        ("top-2 of 6", "Mallows", "iid", 17),
        ("3 of 6 listed, 3 free", "exp. footrule", "antithetic", 65),
        ("ties of 6", "Mallows", "latin", 8),
        ("3 of 6 listed, 3 free", "exp. Hamming", "orthogonal", 64),
        ("4 of 8 listed, 4 free", "exp. footrule", "antithetic", 17),  # lengths are estimated, too
        ("some pairs of 6", "exp. Cayley", "iid", 64),
        ("ties of 6, Plackett-Luce", "exp. footrule", "iid", 64),
        ("3 of 6 listed, 3 free, weights", "Mallows", "iid", 17),
    ],
)
def test_error_bars_hold(rankings, kernel, coupling, draws):
    row = {"rankings": rankings, "kernel": kernel, "width": 1.0, "coupling": coupling, "draws": draws}
    row = coverage.settled(row, 40, "auto", coverage.FIRST_SEED)
    assert coverage.holds(row), row


@pytest.mark.parametrize(("coupling", "draws"), [("iid", 8), ("antithetic", 64), ("latin", 17)])
def test_where_a_few_draws_carry_all_the_bars_say_so(coupling, draws):
    row = measured("top-4 of 12", "exp. footrule", 30.0, coupling, draws, n_runs=8)
    assert not coverage.is_quiet(row, "off")
    assert coverage.warns(row), row
    assert row["off: covered"] > 0.93


@pytest.mark.parametrize("kernel", ["exp. footrule", "exp. Cayley"])
def test_where_lengths_are_unsure_the_bars_say_so(kernel):
    row = measured("4 of 8 listed, 4 free", kernel, 10.0, "iid", 8, n_runs=8)
    assert not coverage.is_quiet(row, "normalised")
    assert row["normalised: covered"] > 0.93
