"""Coverage of standard errors, or a warning: some cells of ``benchmarks/coverage.py``."""

import pytest

coverage = pytest.importorskip("benchmarks.coverage", reason="benchmarks are not part of an installed package")


def measure(rankings, kernel, factor, coupling, draws, n_runs):
    cell = {"rankings": rankings, "kernel": kernel, "factor": factor, "coupling": coupling, "draws": draws}
    return coverage.measure(cell, n_runs)


@pytest.mark.parametrize(
    ("rankings", "kernel", "coupling", "draws"),
    [
        ("top-2 of 6", "Mallows", "iid", 17),
        ("3 of 6 listed, 3 free", "exp. footrule", "antithetic", 65),
        ("ties of 6", "Mallows", "antithetic", 17),
        ("3 of 6 listed, 3 free", "exp. Hamming", "orthogonal", 64),
        ("4 of 8 listed, 4 free", "exp. footrule", "antithetic", 17),
        ("partial orders of 6", "exp. Cayley", "iid", 64),
        ("ties of 6, Plackett-Luce", "exp. footrule", "iid", 64),
        ("3 of 6 listed, 3 free, weights", "Mallows", "iid", 64),
    ],
)
def test_coverage_at_the_median_heuristic(rankings, kernel, coupling, draws):
    cell = measure(rankings, kernel, 1.0, coupling, draws, n_runs=60)
    for name in coverage.QUANTITIES:
        assert cell[f"{name}: coverage"] > 0.9, cell
        assert cell[f"{name}: ratio"] > 0.85, cell


@pytest.mark.parametrize(("coupling", "draws"), [("iid", 8), ("antithetic", 64), ("iid", 17)])
def test_narrow_kernels_warn(coupling, draws):
    cell = measure("top-4 of 12", "exp. footrule", 30.0, coupling, draws, n_runs=8)
    assert coverage.has_warning(cell, "off diagonal"), cell


def test_estimated_norms_of_narrow_kernels_warn():
    cell = measure("4 of 8 listed, 4 free", "exp. footrule", 30.0, "iid", 8, n_runs=8)
    assert coverage.has_warning(cell, "normalised"), cell


def test_cells():
    quick, full = list(coverage.cells(quick=True)), list(coverage.cells())
    assert 100 < len(quick) < 0.25 * len(full)
    assert {cell["rankings"] for cell in quick} == set(coverage.DATA)
    assert {cell["kernel"] for cell in quick} == set(coverage.KERNELS)
