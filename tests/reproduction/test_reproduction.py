"""The paper's experiments: definitions against brute force, cached computations, the page and the command."""

import itertools
import json
import math
import sys
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

typer = pytest.importorskip("typer")
from typer.testing import CliRunner  # noqa: E402

import rankernel as rk  # noqa: E402
from rankernel.gram.exact.formulas import Overlap  # noqa: E402
from reproduction import classification_table, clustering_table, figures, mmd_table, paper, variance_figure  # noqa: E402
from reproduction.__main__ import EXPERIMENTS, main, run_experiments  # noqa: E402
from reproduction.results import (  # noqa: E402
    Interval,
    MeanSD,
    Table,
    bootstrap,
    mean_sd,
    ratio_of_variances,
    shown,
    write_results,
)
from reproduction.study import ROWS, Experiment, Study, UserExperiment, gram_by, sushi_users  # noqa: E402
from reproduction.subset_sizes import n_completions  # noqa: E402
from reproduction.variance import mallows_variance  # noqa: E402

# ---------------------------------------------------------------------- oracles


def nodes_of(Z):
    """The leaves below each node of a tree."""
    nodes = [{i} for i in range(len(Z) + 1)]
    for left, right, *_ in Z:
        nodes.append(nodes[int(left)] | nodes[int(right)])
    return nodes


def subtree_purity(Z, labels, a, b):
    """The fraction of the class of two leaves in their smallest subtree."""
    smallest = min((node for node in nodes_of(Z) if {a, b} <= node), key=len)
    return Fraction(sum(labels[i] == labels[a] for i in smallest), len(smallest))


def mean(values):
    return sum(values, Fraction(0)) / len(values)


def naive_purities(Z, labels, n_clusters):
    n = len(labels)
    by_class = {c: [i for i in range(n) if labels[i] == c] for c in set(labels)}
    distinct = {c: [subtree_purity(Z, labels, *p) for p in itertools.combinations(m, 2)] for c, m in by_class.items()}
    repeated = {c: [subtree_purity(Z, labels, *p) for p in itertools.product(m, m)] for c, m in by_class.items()}
    means = [mean(values) for values in distinct.values() if values]
    clusters = [{i} for i in range(n)]
    for node in nodes_of(Z)[n : 2 * n - n_clusters]:
        clusters = [c for c in clusters if not c <= node] + [node]
    majority = [max(sum(labels[i] == c for i in cluster) for c in by_class) for cluster in clusters]
    return {
        "pairs": mean([value for values in distinct.values() for value in values]),
        "classes": mean(means),
        "classes, singletons 1": mean(means + [1] * (len(by_class) - len(means))),
        "classes, repeated": mean([mean(values) for values in repeated.values()]),
        "cut, users": Fraction(sum(majority), n),
        "cut, clusters": mean([Fraction(m, len(c)) for m, c in zip(majority, clusters, strict=True)]),
    }


def kendall_distance(a, b):
    return sum((a[i] < a[j]) != (b[i] < b[j]) for i, j in itertools.combinations(range(len(a)), 2))


# ---------------------------------------------------------------------- Table 1


@pytest.mark.parametrize("seed", range(5))
def test_purities_match_brute_force(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 3))
    labels = rng.choice(5, 12, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    Z = clustering_table.tree(points @ points.T, squared=bool(seed % 2))
    expected = naive_purities(Z, labels.tolist(), n_clusters=4)
    purities = clustering_table.all_purities(Z, labels, n_clusters=4)
    assert purities.keys() == expected.keys() == clustering_table.PURITIES.keys()
    for name, value in expected.items():
        assert purities[name] == pytest.approx(float(value), rel=1e-12), name


def test_readings_are_distinct():
    readings = list(clustering_table.READINGS.values())
    assert len(set(readings)) == len(readings)
    assert readings[0] == clustering_table.MAIN


def test_gram_matrices_of_the_four_rows():
    full = rk.datasets.uniform(6, 5, rng=0)
    kernel = rk.Mallows(0.3)
    grams = {row: gram_by(row, kernel, full, 2, 200, seed=1) for row in ROWS}
    lists = full.top(2)
    assert np.array_equal(grams["full"], kernel.gram(full))
    assert np.array_equal(grams["exact"], kernel.gram(lists, method="exact"))
    for row, coupling in (("Monte Carlo", "iid"), ("antithetic", "antithetic")):
        for i, j in itertools.combinations(range(6), 2):
            error = mallows_variance(Overlap.of(lists.ranks[i], lists.ranks[j]), 0.3, 200, 200, coupling) ** 0.5
            assert 0 < abs(grams[row][i, j] - grams["exact"][i, j]) < 5 * error


# ---------------------------------------------------------------------- intervals


def test_interval_of_a_constant_ratio():
    values = np.random.default_rng(0).normal(size=50)
    paired = np.stack([3 * values, values], axis=1)
    for power, ratio in ((1.0, 9), (0.5, 3)):
        interval = ratio_of_variances(paired, seed=0, power=power)
        assert [interval.value, interval.low, interval.high] == pytest.approx([ratio] * 3, rel=1e-12)


def test_bootstrap_of_a_mean_matches_the_standard_error():
    values = np.random.default_rng(1).normal(size=400)
    interval = bootstrap(lambda s: s.mean(axis=1), values, seed=0)
    assert interval.value == pytest.approx(values.mean())
    assert (interval.high - interval.low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.08)


def test_ratio_of_equal_values_is_nan():
    interval = ratio_of_variances(np.ones((10, 2)), seed=0)
    assert math.isnan(interval.value)
    assert shown(interval) == "-"


def test_mean_ignores_nan():
    assert mean_sd([1.0, float("nan"), 3.0]) == MeanSD(2.0, math.sqrt(2))


# ---------------------------------------------------------------------- study


def test_cells_are_computed_once(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"values": np.array([0.1, 1 / 3]), "nothing": float("nan")}

    first = Study(tmp_path).cell("x", compute, n=1)
    again = Study(tmp_path).cell("x", compute, n=1)
    assert first["values"] == again["values"] == [0.1, 1 / 3]
    assert len(calls) == 1
    Study(tmp_path).cell("x", compute, n=2)
    Study(tmp_path, seed=1).cell("x", compute, n=1)
    Study(tmp_path, quick=True).cell("x", compute, n=1)
    assert len(calls) == 4


def test_interrupted_study_continues(tmp_path):
    done = []

    def compute(n, fails=False):
        if fails:
            raise KeyboardInterrupt
        done.append(n)
        return n

    study = Study(tmp_path)
    assert study.cell("x", lambda: compute(1), n=1) == 1
    with pytest.raises(KeyboardInterrupt):
        study.cell("x", lambda: compute(2, fails=True), n=2)
    resumed = Study(tmp_path)
    assert [resumed.cell("x", lambda n=n: compute(n), n=n) for n in (1, 2)] == [1, 2]
    assert done == [1, 2]


def test_streams_depend_on_seed_and_purpose(tmp_path):
    study = Study(tmp_path, seed=3)
    assert study.stream("a", 1) == Study(tmp_path, seed=3).stream("a", 1)
    assert len({study.stream("a", 1), study.stream("a", 2), study.stream("b", 1), Study(tmp_path).stream("a", 1)}) == 4


def test_cells_do_not_depend_on_the_order(tmp_path):
    for folder, order in (("a", (1, 2)), ("b", (2, 1))):
        study = Study(tmp_path / folder)
        for n in order:
            study.cell("x", lambda n=n: n, n=n)
    contents = [(tmp_path / folder / "cells" / "x.json").read_bytes() for folder in "ab"]
    assert contents[0] == contents[1]


def test_quick_study_uses_synthetic_users_without_data(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    users = sushi_users(Study(tmp_path, quick=True))
    assert users.synthetic
    assert users.rankings.is_full()
    assert users.labels.keys() == {"region", "region_until_15", "east_west"}


# ---------------------------------------------------------------------- experiments


def test_every_experiment_has_a_class():
    for name, (module, kind) in EXPERIMENTS.items():
        experiment = getattr(import_module(f"reproduction.{module}"), kind)
        assert issubclass(experiment, Experiment)
        assert experiment.name == name


def test_subset_sizes_match_the_paper():
    for n_items, row in paper.SIZES.items():
        assert tuple(n_completions(n_items, pairs) for pairs in range(1, 5)) == row
        assert row[0] == math.factorial(n_items) // 2


def test_exact_ratio_of_variances():
    left, right = np.array([0, 1, 2, 2, 2, 2]), np.array([1, 2, 0, 2, 2, 2])
    assert variance_figure.exact_ratio(left, right, 0.1) > 10
    assert variance_figure.exact_ratio(left, left, 0.1) > 10
    # In the limit the kernel is the indicator of equal completions: of 24, or of 12 antithetic pairs.
    single, paired = Fraction(1, 24) * Fraction(23, 24) / 16**2, Fraction(1, 12) * Fraction(11, 12) / 4 / 8**2
    assert variance_figure.exact_ratio(left, left, 30.0) == pytest.approx(float(single / paired), rel=1e-9)
    assert variance_figure.exact_ratio(left, left, 30.0) < 0.53


def test_measured_variances_match_the_closed_form(tmp_path):
    exact, measured = variance_figure.VarianceFigure(Study(tmp_path)).both(4, "random", 1.0)
    assert measured.low / 1.2 < exact < 1.2 * measured.high
    assert measured.high / measured.low < 1.5  # 1000 replicates


@pytest.mark.filterwarnings("ignore::rankernel.SamplingWarning")  # four draws
def test_only_draws_vary_on_fixed_data(tmp_path):
    table = mmd_table.TwoSampleTable(Study(tmp_path, quick=True))
    runs = [table.test(6, 10, 1, replicate, 4, mmd_table.METHODS) for replicate in range(6)]
    exact, monte_carlo, _ = zip(*runs, strict=True)
    assert len(set(exact)) == 1
    assert len(set(monte_carlo)) > 1
    other = table.test(6, 10, 0, 0, 4, mmd_table.METHODS)
    assert other[0] != exact[0]


def test_pooled_deviations():
    values = np.zeros((2, 3, 1))
    values[:, :, 0] = [[1, 2, 3], [11, 13, 15]]
    assert mmd_table.pooled_deviations(values)[0] == pytest.approx(math.sqrt((1 + 4) / 2))
    assert mmd_table.pooled_deviations(np.full((2, 8, 1), 2 / 101))[0] == 0


def test_precomputed_classifier_matches_the_kernel():
    from sklearn.gaussian_process import GaussianProcessClassifier

    X = rk.datasets.uniform(40, 5, rng=2).top(3)
    y = (X.ranks[:, 0] < X.ranks[:, 1]).astype(np.int64)
    train, test, kernel = X[:30], X[30:], rk.Mallows(0.2)
    grams = classification_table.Grams(kernel.gram(train), kernel.gram(train, test), kernel.plan(test).diagonal())
    scores = classification_table.fit_sklearn(grams.scaled(9.5), y[:30], y[30:])
    model = GaussianProcessClassifier(rk.SklearnKernel(9.5 * kernel), optimizer=None).fit(train.ranks, y[:30])
    p = model.predict_proba(test.ranks)
    assert scores.accuracy == model.score(test.ranks, y[30:])
    assert scores.test == pytest.approx(np.log(p[np.arange(10), y[30:]]).mean(), rel=1e-9)
    assert scores.evidence == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-9)


def test_global_seed_is_temporary():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    drawn = []
    for _ in range(2):
        with classification_table.global_seed(3):
            drawn.append(np.random.permutation(10).tolist())  # noqa: NPY002
    assert drawn[0] == drawn[1]
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_probability_of_an_accuracy():
    expected = (1 + math.comb(20, 10) / 2**20) / 2
    assert classification_table.probability_of(0.5, 0.5) == pytest.approx(expected)
    assert classification_table.probability_of(1.0, 0.9) == 1


def test_tables_without_gpy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "GPy", None)
    table = classification_table.ClassificationTable(Study(tmp_path, quick=True))
    assert "GPy is not installed" in table.skipped()


def test_embedding_is_the_mean_of_the_completions(tmp_path):
    points = figures.embedding(Study(tmp_path))
    assert points["completions"].mean(axis=0) == pytest.approx(points["mean"][0], abs=1e-12)
    gaps = {row: np.linalg.norm(points[row] - points["mean"], axis=1).mean() for row in figures.COUPLINGS}
    assert gaps["antithetic"] < 0.1 * gaps["Monte Carlo"]


def test_discrepancy_matches_brute_force():
    chosen, everything = [(0, 1, 2), (2, 1, 0), (1, 0, 2)], list(itertools.permutations(range(3)))

    def average(X, Y):
        return sum(math.exp(-0.5 * kendall_distance(x, y)) for x in X for y in Y) / (len(X) * len(Y))

    square = average(chosen, chosen) - 2 * average(chosen, everything) + average(everything, everything)
    assert figures.discrepancy(np.array(chosen, dtype=np.int32)) == pytest.approx(math.sqrt(square), rel=1e-12)


def test_greedy_and_joint_herding(tmp_path):
    curves = figures.herding_curves(Study(tmp_path, quick=True), n_random=10)
    assert curves["greedy"][1] == pytest.approx(curves["joint"][1], rel=1e-12)
    assert curves["joint"][2] < 0.95 * curves["greedy"][2]
    assert all(joint <= drawn + 1e-12 for joint, drawn in zip(curves["joint"], curves["antithetic"], strict=True))


@pytest.mark.parametrize(("distance", "n_edges"), [(rk.distances.kendall, 36), (rk.distances.cayley, 72)])
def test_cayley_graphs(distance, n_edges):
    ranks = figures.all_rankings(4)
    d = np.asarray(distance.between(ranks, ranks))
    assert np.triu(d == 1).sum() == n_edges
    level = d[0].astype(int)
    x = figures.layer_positions(level, d == 1)
    assert len(set(zip(x.tolist(), level.tolist(), strict=True))) == 24


# ---------------------------------------------------------------------- page


def test_table_formats():
    table = Table("t", "A <title>", ("a|b", "c"), (("x", MeanSD(0.5, 0.25)), ("<", Interval(12.345, 1.0, 200.0))))
    assert table.markdown().splitlines()[2:] == [
        "| a\\|b | c |",
        "| --- | --- |",
        "| x | 0.500 (0.250) |",
        "| < | 12.3 [1.00, 200] |",
    ]
    assert table.csv().splitlines()[-1] == '<,"12.3 [1.00, 200]"'
    assert table.record()["rows"][1][1] == {"value": 12.345, "low": 1.0, "high": 200.0}


class OneTable(UserExperiment):
    name = "table1"
    title = "Users"

    def protocol(self):
        return ["Protocol."]

    def tables(self):
        rows = [("ours", len(self.users), MeanSD(0.5, 0.25)), ("paper", 5, 0.5)]
        return [Table("t", "T", ("", "n", "mean"), rows), Table("p", "P", ("", "n, paper"), [("x", 0.5)])]

    def figures(self):
        return [("none", "Caption.")]

    def findings(self):
        return ["A <finding>."]


def test_synthetic_results_are_marked(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    study = Study(tmp_path / "out", quick=True)
    result = OneTable(study).result()
    assert result.title == "Users (synthetic data)"
    assert result.findings == ["On synthetic data: A <finding>."]
    assert result.figures == [("none", "Synthetic data: Caption.")]
    assert all(table.title.endswith("(synthetic data)") and "synthetic" in table.note for table in result.tables)
    write_results(study, [result])
    assert "results marked as synthetic were measured on synthetic data" in (tmp_path / "out" / "README.md").read_text()
    assert "A &lt;finding&gt;" in (tmp_path / "out" / "index.html").read_text()
    record = json.loads((tmp_path / "out" / "results.json").read_text())["experiments"]["table1"]
    assert record["synthetic"]
    assert record["tables"]["t"]["rows"][0] == ["ours", 2000, {"mean": 0.5, "sd": 0.25}]


# ---------------------------------------------------------------------- command


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(main)
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def test_command_is_reproducible(run, tmp_path):
    pages = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        result = run("sizes", "figures", "--quick", "-o", folder)
        assert result.exit_code == 0, result.output
        assert "1,814,400" in result.output
        pages.append({p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()})
    assert pages[0] == pages[1]
    expected = {"README.md", "index.html", "results.json", "tables/subset_sizes.csv", "cells/figures.json"}
    assert expected <= pages[0].keys()
    assert b'src="data:image/svg+xml' in pages[0]["index.html"]
    assert json.loads(pages[0]["results.json"])["experiments"].keys() == {"sizes", "figures"}


def test_unknown_experiment(run, tmp_path):
    assert run("table9", "-o", tmp_path).exit_code == 2
    assert not list(tmp_path.iterdir())


def test_missing_data_skips_only_its_experiments(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    messages = []
    monkeypatch.chdir(tmp_path)
    results = run_experiments(Study(tmp_path / "out", report=messages.append), ["table1", "sizes"])
    assert [result.name for result in results] == ["table1", "sizes"]
    assert "kamishima.net" in messages[1]
    assert "RANKERNEL_DATA" in messages[1]
    assert not results[0].tables
    assert results[1].tables


def test_skipped_experiment_gives_exit_code_1(run, tmp_path, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    result = run("table1", "sizes")
    assert result.exit_code == 1
    assert "skipped: table1" in result.stderr
    assert (tmp_path / "reproduction_results" / "index.html").exists()


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_folder_without_data(run, tmp_path, folder):
    result = run("sizes", "--data", tmp_path / folder, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "SUSHI" in result.stderr
    assert not (tmp_path / "out").exists()


SUSHI = {  # two users who rank ten items
    "sushi3a.5000.10.order": "10 1\n0 10 0 1 2 3 4 5 6 7 8 9\n0 10 9 8 7 6 5 4 3 2 1 0\n",
    "sushi3.udata": "0 0 1 10 0 0 0 0 0 0 0\n1 1 2 20 1 1 1 1 1 1 0\n",
    "sushi3.idata": "".join(f"{n}\titem{n}\t0\t0\t0\t0.0\t0.0\t0.0\t0.0\n" for n in range(100)),
}


def test_changed_data(run, tmp_path):
    for name, text in SUSHI.items():
        (tmp_path / name).write_text(text)
    result = run("table1", "--quick", "--data", tmp_path, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "checksum" in result.stderr


def test_missing_matplotlib(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("figures", "--quick", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "matplotlib" in result.stderr
    assert not (tmp_path / "out").exists()


def test_interrupted_run(run, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.subset_sizes.n_completions", interrupt)
    result = run("sizes", "-o", tmp_path / "out")
    assert result.exit_code == 130
    assert f"cached in {tmp_path / 'out'}" in result.stderr
