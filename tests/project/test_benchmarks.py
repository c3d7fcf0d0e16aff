"""The studies in ``benchmarks/`` run on small cases."""

import ast
import importlib
from pathlib import Path

import pytest

from benchmarks import accuracy, clock, groups


def test_accuracy_study(tmp_path, monkeypatch):
    monkeypatch.setattr(clock, "PAUSE", 0.0)
    monkeypatch.setattr(clock, "TURN", 0.0)
    found = list(accuracy.rows(accuracy.DRAWN_CASES[:1], draws=(4, 16), n_repeats=2))
    for row in found:
        assert 1 < row["gain, antithetic"] < row["gain, best"]
        assert row["gain, best"] == pytest.approx(row["error, Monte Carlo"] / row["error, best"])
        assert all(row[f"ms, {name}"] > 0 for name in ("exact", *accuracy.ESTIMATORS))
    # Four times the draws: half the error, up to that of estimating it from two runs.
    fewer, more = (row["error, Monte Carlo"] for row in found)
    assert 1.4 < fewer / more < 2.8
    pytest.importorskip("matplotlib")
    accuracy.draw(found, tmp_path / "picture.svg")
    assert "relative error" in (tmp_path / "picture.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(Path(clock.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_benchmarks_import(path, monkeypatch):
    monkeypatch.setenv("RANKERNEL_DATA", "data")  # read by studies of public data
    if path.stem == "mutation":
        pytest.importorskip("resource", reason="mutants are run on Unix")
    importlib.import_module(f"benchmarks.{path.stem}")


def test_mutants_differ():
    pytest.importorskip("resource", reason="mutants are run on Unix")
    from benchmarks import mutation

    for module, tests in mutation.CORE.items():
        assert (mutation.SOURCE / module).is_file()
        assert all((mutation.ROOT / "tests" / name).is_file() for name in tests.split())
    source = ast.parse((mutation.SOURCE / "io/pairs.py").read_text(encoding="utf-8"))
    found = mutation.mutants("io/pairs.py")
    programs = {ast.dump(mutation.mutated("io/pairs.py", place)) for place, _ in found}
    assert len(programs) == len(found) > 20
    assert ast.dump(source) not in programs


def test_groups_study():
    cases = [("one", 1, groups.uniform, 60, 5), ("two", 2, lambda n, m, seed: groups.around(2, 3.0, n, m, seed), 60, 5)]
    for row, wanted in zip(groups.rows(cases, n_repeats=2), (1, 2), strict=True):
        found = {name: number for name, number in row.items() if name.startswith("found")}
        assert sum(found.values()) == 2
        assert row["right"] == found["found none" if wanted == 1 else f"found {wanted}"] / 2
    assert row["right"] == 1  # two groups so far apart are found
