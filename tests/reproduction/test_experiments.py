import itertools
import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest

typer = pytest.importorskip("typer")
from typer.testing import CliRunner  # noqa: E402

import rankernel as rk  # noqa: E402
from rankernel.gram.exact.overlap import Overlap  # noqa: E402
from rankernel.gram.montecarlo.variance import mallows_variance  # noqa: E402
from reproduction import (  # noqa: E402
    cayley_graphs,
    classification_table,
    clustering_table,
    embedding_figure,
    herding_figure,
    mmd_table,
    paper_numbers,
    variance_figure,
)
from reproduction.command import EXPERIMENTS, reproduce, run_experiments  # noqa: E402
from reproduction.estimators import ROWS, gram_by  # noqa: E402
from reproduction.experiment import Experiment  # noqa: E402
from reproduction.gaussian_process import Grams, fit_sklearn, global_randomness  # noqa: E402
from reproduction.intervals import bootstrap, ratio_of_deviations, ratio_of_variances, spread  # noqa: E402
from reproduction.outcome import Interval, Spread, Table, shown  # noqa: E402
from reproduction.purities import purities, tree  # noqa: E402
from reproduction.results_page import html_table, markdown_table, marked  # noqa: E402
from reproduction.study import Study  # noqa: E402
from reproduction.subset_sizes import completions  # noqa: E402
from reproduction.sushi_users import people_of  # noqa: E402

# ---------------------------------------------------------------------- oracles


def members_of_nodes(Z):
    """The leaves below each node of a tree."""
    n = len(Z) + 1
    nodes = [{i} for i in range(n)]
    for left, right, *_ in Z:
        nodes.append(nodes[int(left)] | nodes[int(right)])
    return nodes


def share_of_class(Z, labels, a, b):
    """The share of the class of two leaves in the smallest subtree with both."""
    smallest = min((node for node in members_of_nodes(Z) if {a, b} <= node), key=len)
    return Fraction(sum(labels[i] == labels[a] for i in smallest), len(smallest))


def naive_purities(Z, labels, n_clusters):
    n = len(labels)
    by_class = {c: [i for i in range(n) if labels[i] == c] for c in set(labels)}
    distinct = {c: [share_of_class(Z, labels, *p) for p in itertools.combinations(m, 2)] for c, m in by_class.items()}
    repeated = {c: [share_of_class(Z, labels, *p) for p in itertools.product(m, m)] for c, m in by_class.items()}
    pairs = [share for shares in distinct.values() for share in shares]
    means = [mean(shares) for shares in distinct.values() if shares]
    nodes = members_of_nodes(Z)
    clusters = [{i} for i in range(n)]
    for node in nodes[n : 2 * n - n_clusters]:
        clusters = [c for c in clusters if not c <= node] + [node]
    majority = [max(sum(labels[i] == c for i in cluster) for c in by_class) for cluster in clusters]
    return {
        "pairs": mean(pairs),
        "classes": mean(means),
        "classes, singletons 1": mean(means + [1] * (len(by_class) - len(means))),
        "classes, repeated": mean([mean(shares) for shares in repeated.values()]),
        "cut, users": Fraction(sum(majority), n),
        "cut, clusters": mean([Fraction(m, len(c)) for m, c in zip(majority, clusters, strict=True)]),
    }


def mean(values):
    return sum(values, Fraction(0)) / len(values)


def kendall_distance(a, b):
    return sum((a[i] < a[j]) != (b[i] < b[j]) for i, j in itertools.combinations(range(len(a)), 2))


# ---------------------------------------------------------------------- readings of purity


@pytest.mark.parametrize("seed", range(5))
def test_purities_are_those_of_all_pairs_of_leaves(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 3))
    labels = rng.choice(5, 12, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    Z = tree(points @ points.T, squared=bool(seed % 2))
    expected = naive_purities(Z, labels.tolist(), n_clusters=4)
    found = purities(Z, labels, n_clusters=4)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(float(value), rel=1e-12), name


def test_every_reading_differs_from_the_main_one_and_is_measured():
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


def test_a_constant_ratio_has_an_interval_of_no_width():
    values = np.random.default_rng(0).normal(size=50)
    found = ratio_of_deviations(np.stack([3 * values, values], axis=1), seed=0)
    assert [found.value, found.low, found.high] == pytest.approx([3, 3, 3], rel=1e-12)
    found = ratio_of_variances(np.stack([3 * values, values], axis=1), seed=0)
    assert [found.value, found.low, found.high] == pytest.approx([9, 9, 9], rel=1e-12)


def test_the_interval_of_a_mean_is_that_of_its_standard_error():
    values = np.random.default_rng(1).normal(size=400)
    found = bootstrap(lambda s: s.mean(axis=1), values, rng=0)
    assert found.value == pytest.approx(values.mean())
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.08)


def test_equal_values_say_nothing_of_their_ratio():
    found = ratio_of_variances(np.ones((10, 2)), rng=0)
    assert math.isnan(found.value)
    assert shown(found) == "-"


def test_spread_leaves_out_what_is_not_known():
    assert spread([1.0, float("nan"), 3.0]) == Spread(2.0, math.sqrt(2))


# ---------------------------------------------------------------------- study


def test_a_cell_is_computed_once_and_found_again(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"values": np.array([0.1, 1 / 3]), "nothing": float("nan")}

    first = Study(tmp_path).cell("x", compute, n=1)
    again = Study(tmp_path).cell("x", compute, n=1)
    assert first["values"] == again["values"] == [0.1, 1 / 3]
    assert len(calls) == 1
    Study(tmp_path).cell("x", compute, n=2)
    Study(tmp_path, rng=1).cell("x", compute, n=1)
    Study(tmp_path, quick=True).cell("x", compute, n=1)
    assert len(calls) == 4


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path):
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


def test_streams_belong_to_seed_and_purpose(tmp_path):
    study = Study(tmp_path, rng=3)
    assert study.stream("a", 1) == Study(tmp_path, rng=3).stream("a", 1)
    assert len({study.stream("a", 1), study.stream("a", 2), study.stream("b", 1), Study(tmp_path).stream("a", 1)}) == 4


def test_cells_do_not_depend_on_the_order_of_computation(tmp_path):
    for folder, order in (("a", (1, 2)), ("b", (2, 1))):
        study = Study(tmp_path / folder)
        for n in order:
            study.cell("x", lambda n=n: n, n=n)
    contents = [(tmp_path / folder / "cells" / "x.json").read_bytes() for folder in "ab"]
    assert contents[0] == contents[1]


# ---------------------------------------------------------------------- experiments


@pytest.fixture
def few_random(monkeypatch):
    """A curve of random draws is a mean over fewer of them: nothing is said of how close it is."""
    monkeypatch.setattr(herding_figure, "N_RANDOM", 100)


def test_the_appendix_table_is_the_papers():
    for n_items, row in paper_numbers.SIZES.items():
        assert tuple(completions(n_items, pairs) for pairs in range(1, 5)) == row
        assert row[0] == math.factorial(n_items) // 2


def test_antithetic_draws_win_at_the_median_and_lose_for_equal_lists_and_large_nu():
    left, right = np.array([0, 1, 2, 2, 2, 2]), np.array([1, 2, 0, 2, 2, 2])
    assert variance_figure.exact_ratio(left, right, 0.1) > 10
    assert variance_figure.exact_ratio(left, left, 0.1) > 10
    # In the limit the kernel says whether two of 24 completions, or two of 12 antithetic pairs, are the same.
    single, paired = Fraction(1, 24) * Fraction(23, 24) / 16**2, Fraction(1, 12) * Fraction(11, 12) / 4 / 8**2
    assert variance_figure.exact_ratio(left, left, 30.0) == pytest.approx(float(single / paired), rel=1e-9)
    assert variance_figure.exact_ratio(left, left, 30.0) < 0.53


def test_measured_variances_agree_with_the_closed_form(tmp_path):
    exact, measured = variance_figure.VarianceFigure(Study(tmp_path)).both(4, "random", 1.0)
    assert measured.low / 1.2 < exact < 1.2 * measured.high
    assert measured.high / measured.low < 1.5  # 1000 repetitions


@pytest.mark.filterwarnings("ignore:kernel values are estimated:rankernel.SamplingWarning")  # four draws
def test_pvalues_are_paired_and_only_draws_vary_on_fixed_data(tmp_path):
    table = mmd_table.TwoSampleTable(Study(tmp_path, quick=True))
    runs = [table.tested(6, 10, 1, repeat, 4, mmd_table.METHODS) for repeat in range(6)]
    exact, monte_carlo, _ = zip(*runs, strict=True)
    assert len(set(exact)) == 1
    assert len(set(monte_carlo)) > 1
    other = table.tested(6, 10, 0, 0, 4, mmd_table.METHODS)
    assert other[0] != exact[0]


def test_pooled_deviations_are_within_data_sets():
    values = np.zeros((2, 3, 1))
    values[:, :, 0] = [[1, 2, 3], [11, 13, 15]]
    assert mmd_table.pooled(values)[0] == pytest.approx(math.sqrt((1 + 4) / 2))
    assert mmd_table.pooled(np.full((2, 8, 1), 2 / 101))[0] == 0


def test_known_gram_matrices_classify_as_the_kernel_does():
    from sklearn.gaussian_process import GaussianProcessClassifier

    from rankernel.learn.sklearn import SklearnKernel

    X = rk.datasets.uniform(40, 5, rng=2).top(3)
    y = (X.ranks[:, 0] < X.ranks[:, 1]).astype(np.int64)
    train, test, kernel = X[:30], X[30:], rk.Mallows(0.2)
    grams = Grams(kernel.gram(train), kernel.gram(train, test), kernel.plan(test).diagonal()).scaled(9.5)
    found = fit_sklearn(grams, y[:30], y[30:])
    model = GaussianProcessClassifier(SklearnKernel(9.5 * kernel), optimizer=None).fit(train.ranks, y[:30])
    p = model.predict_proba(test.ranks)
    assert found.accuracy == model.score(test.ranks, y[30:])
    assert found.test == pytest.approx(np.log(p[np.arange(10), y[30:]]).mean(), rel=1e-9)
    assert found.evidence == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-9)


def test_global_randomness_is_fixed_and_put_back():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    drawn = []
    for _ in range(2):
        with global_randomness(3):
            drawn.append(np.random.permutation(10).tolist())  # noqa: NPY002
    assert drawn[0] == drawn[1]
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_luck_with_few_test_users():
    assert classification_table.lucky(0.5, 0.5) == pytest.approx((1 + math.comb(20, 10) / 2**20) / 2)
    assert classification_table.lucky(1.0) == 1


def test_the_embedding_of_a_partial_ranking_is_the_barycentre(tmp_path):
    points = embedding_figure.embedded(Study(tmp_path))
    assert points["completions"].mean(axis=0) == pytest.approx(points["barycentre"][0], abs=1e-12)
    far = {
        row: np.linalg.norm(points[row] - points["barycentre"], axis=1).mean() for row in ("Monte Carlo", "antithetic")
    }
    assert far["antithetic"] < 0.1 * far["Monte Carlo"]


def test_discrepancies_are_those_of_the_definition():
    chosen = [(0, 1, 2), (2, 1, 0), (1, 0, 2)]
    everything = list(itertools.permutations(range(3)))

    def average(X, Y):
        return sum(math.exp(-0.5 * kendall_distance(x, y)) for x in X for y in Y) / (len(X) * len(Y))

    square = average(chosen, chosen) - 2 * average(chosen, everything) + average(everything, everything)
    assert herding_figure.discrepancy(np.array(chosen, dtype=np.int32), (0, 0, 0)) == pytest.approx(
        math.sqrt(square), rel=1e-12
    )


def test_greedy_herding_agrees_with_joint_herding_for_two_and_not_for_three(tmp_path, few_random):
    found = herding_figure.curves(Study(tmp_path, quick=True))
    assert found["greedy"][1] == pytest.approx(found["joint"][1], rel=1e-12)
    assert found["joint"][2] < 0.95 * found["greedy"][2]
    assert all(
        joint <= antithetic + 1e-12 for joint, antithetic in zip(found["joint"], found["antithetic"], strict=True)
    )


@pytest.mark.parametrize(("distance", "n_edges"), [(rk.distances.kendall, 36), (rk.distances.cayley, 72)])
def test_cayley_graphs_have_their_edges_and_layers(distance, n_edges):
    ranks = np.argsort(np.array(list(itertools.permutations(range(4)))), axis=1).astype(np.int32)
    d = np.asarray(distance.between(ranks, ranks))
    assert np.triu(d == 1).sum() == n_edges
    level = d[0].astype(int)
    x = cayley_graphs.places(level, d == 1)
    assert len({(a, b) for a, b in zip(x.tolist(), level.tolist(), strict=True)}) == 24


# ---------------------------------------------------------------------- pages


def test_tables_show_their_entries():
    table = Table("t", "A <title>", ("a|b", "c"), (("x", Spread(0.5, 0.25)), ("<", Interval(12.345, 1.0, 200.0))))
    assert markdown_table(table).splitlines()[2:] == [
        "| a\\|b | c |",
        "| --- | --- |",
        "| x | 0.500 (0.250) |",
        "| < | 12.3 [1.00, 200] |",
    ]
    assert "<td>&lt;</td>" in html_table(table)
    assert table.csv().splitlines()[-1] == '<,"12.3 [1.00, 200]"'
    assert table.record()["rows"][1][1] == {"value": 12.345, "low": 1.0, "high": 200.0}


def test_marks_become_tags_only_in_pairs():
    assert marked("a *b* `c<d`") == "a <em>b</em> <code>c&lt;d</code>"
    assert marked("2 * 3") == "2 * 3"


# ---------------------------------------------------------------------- the command


@pytest.fixture
def app(few_random):
    app = typer.Typer()
    app.callback()(lambda: None)
    app.command("reproduce")(reproduce)
    return app


def test_the_command_writes_a_page_and_the_same_one_again(app, tmp_path):
    pages = []
    for folder in ("a", "b"):
        result = CliRunner().invoke(app, ["reproduce", "sizes", "figures", "--quick", "-o", str(tmp_path / folder)])
        assert result.exit_code == 0, result.output
        assert "1,814,400" in result.output
        files = sorted(
            path for path in (tmp_path / folder).rglob("*") if path.is_file() and path.name != "timings.json"
        )
        pages.append({path.relative_to(tmp_path / folder).as_posix(): path.read_bytes() for path in files})
    assert pages[0] == pages[1]
    assert {"README.md", "index.html", "results.json", "tables/subset_sizes.csv", "cells/figures.json"} <= pages[
        0
    ].keys()
    assert json.loads(pages[0]["results.json"])["experiments"].keys() == {"sizes", "figures"}


def test_an_unknown_experiment_is_refused(app, tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "table9", "-o", str(tmp_path)])
    assert result.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_without_the_sushi_data_the_rest_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    told = []
    monkeypatch.chdir(tmp_path)
    outcomes = run_experiments(Study(tmp_path / "out", say=told.append), ["table1", "sizes"])
    assert [outcome.name for outcome in outcomes] == ["table1", "sizes"]
    assert told[0] == "table1: begins"
    assert "kamishima.net" in told[1]
    assert "RANKERNEL_DATA" in told[1]
    assert not outcomes[0].tables
    assert outcomes[1].tables


def test_a_quick_study_has_a_stand_in_for_the_sushi_data(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    people = people_of(Study(tmp_path, quick=True))
    assert people.synthetic
    assert "stand-in" in people.name
    assert people.rankings.is_full()
    assert {"region", "region_until_15", "east_west"} == people.labels.keys()


def test_synthetic_data_is_said_in_every_heading_and_number(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    few = {name: clustering_table.KERNELS[name] for name in ("Kendall", "Mallows")}
    monkeypatch.setattr(clustering_table, "KERNELS", few)
    (outcome,) = run_experiments(Study(tmp_path / "out", quick=True), ["table1"])
    assert outcome.title.endswith("(synthetic data)")
    assert all(line.startswith("On synthetic data: ") for line in outcome.findings)
    assert all(caption.startswith("Synthetic data: ") for _, caption in outcome.figures)
    for table in outcome.tables:
        assert table.title.endswith("(synthetic data)")
        for row in table.text():
            numbers = [cell for cell in row if re.match(r"-?[\d.,]+", cell)]
            assert numbers
            if "paper" in row or "the paper" in row:
                assert not any("†" in cell for cell in row)
            else:
                assert all(cell.endswith("†") for cell in numbers)
    assert "numbers with † are of synthetic data" in (tmp_path / "out" / "README.md").read_text()
    entries = json.loads((tmp_path / "out" / "results.json").read_text())["experiments"]["table1"]["tables"]
    assert entries["table1_samples"]["rows"][0][1].keys() == {"synthetic"}


def test_a_table_of_columns_of_the_paper_marks_the_others():
    table = Table("x", "X", ("kernel", "accuracy, paper", "accuracy"), [("Mallows", 0.5, Spread(0.25, 0.125))])
    assert table.on_synthetic_data().text() == [["Mallows", "0.500", "0.250 (0.125)†"]]


def test_a_folder_without_the_data_is_an_error_before_anything_else(tmp_path):
    from rankernel.cli.app import app

    for folder in (tmp_path / "nowhere", tmp_path):
        result = CliRunner().invoke(app, ["reproduce", "sizes", "--data", str(folder), "-o", str(tmp_path / "out")])
        assert result.exit_code == 1
        assert f"{folder} does not hold the SUSHI data" in result.stderr
        assert not (tmp_path / "out").exists()


SUSHI = {  # two people who rank ten items
    "sushi3a.5000.10.order": "10 1\n0 10 0 1 2 3 4 5 6 7 8 9\n0 10 9 8 7 6 5 4 3 2 1 0\n",
    "sushi3.udata": "0 0 1 10 0 0 0 0 0 0 0\n1 1 2 20 1 1 1 1 1 1 0\n",
    "sushi3.idata": "".join(f"{n}\titem{n}\t0\t0\t0\t0.0\t0.0\t0.0\t0.0\n" for n in range(100)),
}


def test_data_that_was_changed_reproduces_nothing(tmp_path):
    from rankernel.cli.app import app

    for name, text in SUSHI.items():
        (tmp_path / name).write_text(text)
    assert len(rk.load_sushi(tmp_path).rankings) == 2
    result = CliRunner().invoke(
        app, ["reproduce", "table1", "--quick", "--data", str(tmp_path), "-o", str(tmp_path / "out")]
    )
    assert result.exit_code == 1
    assert "has the checksum sha256:" in result.stderr


def test_what_is_left_out_shows_in_the_exit_code(app, tmp_path, monkeypatch):
    monkeypatch.delenv("RANKERNEL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["reproduce", "table1", "sizes"])
    assert result.exit_code == 1
    assert "left out: table1" in result.stderr
    assert (tmp_path / "reproduction" / "index.html").exists()


def test_tables_by_gpy_are_left_out_without_it(tmp_path, monkeypatch):
    monkeypatch.setattr(classification_table, "has_gpy", lambda: False)
    table = classification_table.ClassificationTable(Study(tmp_path, quick=True))
    assert "GPy is not installed" in table.left_out()


def test_figures_are_not_skipped_without_matplotlib(tmp_path, monkeypatch):
    from rankernel.cli.app import app

    monkeypatch.setattr("rankernel.errors.find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["reproduce", "figures", "--quick", "-o", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "this needs matplotlib" in result.stderr
    assert not (tmp_path / "out").exists()


def test_an_interrupted_run_says_that_it_goes_on(tmp_path, monkeypatch):
    from rankernel.cli.app import app

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.subset_sizes.completions", interrupted)
    result = CliRunner().invoke(app, ["reproduce", "sizes", "-o", str(tmp_path / "out")])
    assert result.exit_code == 130
    assert f"interrupted; what was computed is kept in {tmp_path / 'out'}; the same command goes on" in result.stderr


def test_every_experiment_has_its_class():
    from importlib import import_module

    for name, (module, kind) in EXPERIMENTS.items():
        found = getattr(import_module(f"reproduction.{module}"), kind)
        assert issubclass(found, Experiment)
        assert found.name == name
