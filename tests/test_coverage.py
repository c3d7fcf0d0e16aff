"""Error bars hold, or say that they may not: some cells of ``benchmarks/coverage.py``, with fewer seeds."""

import pytest

coverage = pytest.importorskip("benchmarks.coverage", reason="benchmarks are not part of an installed package")

pytestmark = pytest.mark.filterwarnings("ignore")  # of sharp kernels and few draws, which are meant


def measured(rankings, kernel, width, coupling, draws, n_runs=60):
    row = {"rankings": rankings, "kernel": kernel, "width": width, "coupling": coupling, "draws": draws}
    return coverage.measured(row, n_runs)


@pytest.mark.parametrize("draws", [8, 17, 64, 65])
@pytest.mark.parametrize(
    ("rankings", "kernel", "coupling"),
    [
        ("top-2 of 6", "Mallows", "iid"),
        ("top-2 of 6", "exp. footrule", "antithetic"),
        ("ties of 6", "Mallows", "latin"),
        ("3 of 6 listed, 3 free", "exp. Hamming", "orthogonal"),
    ],
)
def test_error_bars_hold(rankings, kernel, coupling, draws):
    row = measured(rankings, kernel, 1.0, coupling, draws)
    assert coverage.holds(row), row


@pytest.mark.parametrize("draws", [8, 64])
@pytest.mark.parametrize("coupling", ["iid", "antithetic", "orthogonal"])
def test_where_a_few_draws_carry_all_the_bars_say_so(coupling, draws):
    row = measured("top-4 of 12", "exp. footrule", 30.0, coupling, draws)
    assert coverage.warns(row), row
    assert row["off: covered"] > 0.8
