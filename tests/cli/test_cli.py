"""The commands: what they print and write, their errors, and their exit codes."""

import csv
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from commands import run
from forked import ANEW
from real_data import needs_data, preflib

import rankernel.kernels
from rankernel import Auto, Exponential, Kendall, Mallows, MonteCarlo, Polynomial, Rankings, read_preflib, write_preflib
from rankernel.cli.options import KERNEL_HELP, kernel_classes, parse_kernel, parse_method
from rankernel.cli.terminal import atomic_file
from rankernel.datasets import load_example
from rankernel.gram.plan import Plan
from rankernel.kernels import (
    DCG,
    AverageOverlap,
    Diffusion,
    DistanceInduced,
    Hamming,
    Kernel,
    RankBiasedOverlap,
    Spearman,
)
from rankernel.stats.sequential import SequentialMMDTest

BALLOTS = Rankings.from_orders(
    [["tea", "milk"], ["milk", "tea"], ["tea"], ["coffee", "tea"]], ["tea", "milk", "coffee"], counts=[5, 3, 2, 1]
)
COMMAND = "from rankernel.cli import main; main()"  # as a process


@pytest.fixture
def votes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_preflib(BALLOTS, tmp_path / "votes.soi")
    return tmp_path / "votes.soi"


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["district,n,choice 1,choice 2,choice 3"]
    lines += ["north,8,tea,milk,coffee", "north,1,milk,tea,", "south,7,coffee,milk,tea", "south,2,coffee,,"]
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "votes.csv"


def without_compiling(errors):
    """Return the standard error without notes about compilation, which depend on earlier tests."""
    return "".join(line for line in errors.splitlines(keepends=True) if not line.startswith("note: compiling"))


def said(result):
    return without_compiling(result.stderr)


def one_line(result, code):
    """Check that a command failed with one line, and return it."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert said(result).startswith("rankernel: ")
    assert said(result).count("\n") == 1
    assert "Traceback" not in result.stderr
    return said(result)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------------- kernels and methods


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kendall", Kendall()),
        ("mallows", Mallows("median")),
        ("mallows:nu=median", Mallows("median")),
        ("mallows:nu=0.1", Mallows(0.1)),
        ("mallows:nu=1e+1", Mallows(10.0)),
        ("hamming", Hamming()),
        ("spearman", Spearman()),
        ("polynomial:degree=3", Polynomial(3)),
        ("exponential:distance=hamming,nu=median", Exponential("hamming", "median")),
        (" exponential : nu = 2 , distance = footrule ", Exponential("footrule", 2)),
        ("rankbiasedoverlap:p=0.8,depth=10", RankBiasedOverlap(0.8, 10)),
        ("0.5*rbo:p=0.8+rbo", 0.5 * RankBiasedOverlap(0.8) + RankBiasedOverlap()),
        ("dcg:discount=hyperbolic", DCG("hyperbolic")),
        ("diffusion:beta=0.2", Diffusion(0.2)),
        ("diffusion:beta=0.2,graph=adjacent", Diffusion(0.2, "adjacent")),
        ("kendall+hamming", Kendall() + Hamming()),
        ("distanceinduced:distance=kendall,center=2/0/1", DistanceInduced("kendall", center=[2, 0, 1])),
        ("0.5*kendall + 1e+1*mallows:nu=1e+1", 0.5 * Kendall() + 10.0 * Mallows(10.0)),
    ],
)
def test_kernels(text, expected):
    assert parse_kernel(text) == expected


def test_kernels_of_the_help():
    """All that it shows can be typed."""
    examples = re.findall(r"\w+:\w+=[\w.]+(?:,\w+=\w+)*", KERNEL_HELP)
    assert {RankBiasedOverlap, DCG, AverageOverlap} < {type(parse_kernel(text)) for text in examples}


def test_kernel_names():
    arguments = {
        "exponential": ":distance=kendall,nu=1",
        "distanceinduced": ":distance=kendall,center=2/0/1",
        "weightedkendall": ":combine=top-k,weights=2",
    }
    own_names = {name.lower() for name in rankernel.kernels.__all__}
    assert set(kernel_classes()) == own_names - {"kernel", "positional"} | {"rbo"}
    for name in kernel_classes():
        assert isinstance(parse_kernel(name + arguments.get(name, "")), Kernel)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "is unknown"),
        ("gauss", "averageoverlap, diffusion, distanceinduced"),
        ("mallows:mu=1", "takes nu=..."),
        ("mallows:nu", "takes nu=..."),
        ("mallows:nu=", "takes nu=..."),
        ("mallows:nu=big", "nu"),
        ("kendall:nu=1", "takes no arguments"),
        ("polynomial:degree=1.5", "degree"),
        ("exponential", "exponential"),
        ("exponential:distance=euclid,nu=1", "euclid"),
        ("x*kendall", "x*kendall"),
        ("-1*kendall", "-1*kendall"),
        ("kendall++hamming", "is unknown"),
    ],
)
def test_invalid_kernels(text, part):
    assert part in one_line(run("gram", "--kernel", text), 2)


def test_methods():
    assert parse_method("exact", 3) == "exact"
    assert parse_method("auto", 3) == Auto(fallback=MonteCarlo(rng=3))
    assert parse_method("montecarlo", 3) == MonteCarlo(rng=3)
    assert parse_method("montecarlo:draws=20,coupling=iid,control_variates=0", 3) == MonteCarlo(20, "iid", 0, rng=3)


@pytest.mark.parametrize(
    "text", ["exakt", "exact:draws=3", "montecarlo:draws=0", "montecarlo:n=3", "montecarlo:draws="]
)
def test_invalid_methods(text):
    one_line(run("gram", "--method", text), 2)


# ---------------------------------------------------------------------- info


def test_info_of_example():
    facts = json.loads(run("info", "--json").stdout)
    rankings = load_example().rankings
    assert (facts["n_rankings"], facts["n_voters"], facts["n_items"]) == (855, 2400, 8)
    assert facts["n_distinct"] == len(rankings.unique())
    assert facts["groups"] == {"north": 1100, "south": 1300}
    assert sum(facts["kinds"].values()) == 855
    assert facts["most_common"][0]["voters"] == rankings.unique().counts.max()
    assert json.loads(run("info", "--by", "group", "--json").stdout)["groups"]["harbour"] == 886


def test_info_describes_unlisted_items(votes):
    for unlisted, words in (("last", "share the last position"), ("free", "may have any position")):
        result = run("info", votes, "--unlisted", unlisted)
        assert result.exit_code == 0
        assert words in result.stdout
    assert "11 voters" in result.stdout
    assert "5 × tea > milk" in result.stdout


def test_info_of_table(table):
    facts = json.loads(run("info", table, "--by", "district", "--count", "n", "--json").stdout)
    assert facts["n_voters"] == 18
    assert facts["groups"] == {"north": 9, "south": 9}


def test_info_escapes_control_characters(tmp_path):
    (tmp_path / "x.csv").write_text("choice 1,choice 2\n\x1b[31mred,[bold]b[/bold]\n")
    result = run("info", tmp_path / "x.csv")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "[bold]b[/bold]" in result.stdout  # no markup is read in names


@needs_data
def test_info_of_real_files():
    files = sorted((preflib(".")).glob("*.*"))
    assert len(files) > 5
    for file in files:
        result = run("info", file, "--json")
        assert result.exit_code == 0, (file, result.output)
        facts = json.loads(result.stdout)
        assert facts["n_voters"] == read_preflib(file).n_voters
        assert run("info", file).exit_code == 0


# ---------------------------------------------------------------------- gram


def test_gram_formats(votes):
    expected = Mallows(0.3).gram(BALLOTS)
    for name in ("K.npy", "K.npz", "K.csv"):
        result = run("gram", votes, "-o", name, "--kernel", "mallows:nu=0.3")
        assert result.exit_code == 0, result.output
        assert "Mallows(nu=0.3)" in result.stdout
        assert "closed form" in result.stdout
    assert np.array_equal(np.load("K.npy"), expected)
    assert np.array_equal(np.loadtxt("K.csv", delimiter=","), expected)
    with np.load("K.npz") as stored:
        assert np.array_equal(stored["gram"], expected)
        assert stored["counts"].tolist() == [5, 3, 2, 1]
        assert stored["items"].tolist() == list(BALLOTS.items)
        assert np.array_equal(stored["ranks"], BALLOTS.ranks)


def test_gram_plan(votes, monkeypatch):
    monkeypatch.setattr(Plan, "block", None)  # nothing is computed
    plan = Mallows("median").plan(BALLOTS)
    for output in ((), ("-o", "K.npy"), ("-o", "K.csv"), ("-o", "K.zarr")):
        result = run("gram", votes, "--plan", *output)
        assert result.exit_code == 0, result.output
        assert result.stdout.strip() == str(plan)
    facts = json.loads(run("gram", votes, "--plan", "--json").stdout)
    assert facts == {
        "kernel": str(plan.kernel),
        "method": "exact",
        "details": plan.details,
        "reason": "",
        "shape": [4, 4],
        "seconds": plan.seconds,
        "bytes": 128,
    }
    assert files_in(votes.parent) == ["votes.soi"]


def test_reason_of_the_plan(tmp_path):
    write_preflib(Rankings(np.argsort(np.random.default_rng(0).random((4, 30)), axis=1)).top(4), tmp_path / "x.soi")
    options = ("--unlisted", "free", "--kernel", "exponential:distance=footrule,nu=0.001", "--plan", "--seed", 5)
    words = run("gram", tmp_path / "x.soi", *options).stdout
    assert "Monte Carlo, 64 draws per ranking" in words
    assert "seed 5" in words
    assert "because there is no closed form of" in words
    facts = json.loads(run("gram", tmp_path / "x.soi", *options, "--json").stdout)
    assert "no closed form" in facts["reason"]
    assert facts["shape"] == [4, 4]


def test_gram_zarr(votes):
    zarr = pytest.importorskip("zarr")
    assert run("gram", votes, "-o", "K.zarr", "--kernel", "kendall").exit_code == 0
    assert np.array_equal(zarr.open_array("K.zarr", mode="r")[:], Kendall().gram(BALLOTS))
    assert run("gram", votes, "-o", "K.zarr", "--kernel", "kendall", "--resume").exit_code == 0
    one_line(run("gram", votes, "-o", "K.zarr", "--kernel", "kendall"), 1)
    one_line(run("gram", votes, "-o", "K.zarr", "--kernel", "hamming", "--resume"), 1)
    assert run("gram", votes, "-o", "K.zarr", "--kernel", "hamming", "--force").exit_code == 0


def test_gram_of_equal_rows(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,c\n1,2,3\n3,2,1\n1,2,3\n1,,\n")
    rankings = Rankings.from_ranks([[1, 2, 3], [3, 2, 1], [1, 2, 3], [1, -1, -1]])
    facts = json.loads(run("gram", tmp_path / "x.csv", "--kernel", "kendall", "--json").stdout)
    assert np.allclose(facts["corner"], Kendall().gram(rankings), rtol=1e-15)
    short = json.loads(run("gram", tmp_path / "x.csv", "--kernel", "kendall", "--distinct", "--json").stdout)
    assert short["shape"] == [3, 3]


def test_gram_float32(votes):
    assert run("gram", votes, "-o", "K.npz", "--dtype", "float32").exit_code == 0
    with np.load("K.npz") as stored:
        assert stored["gram"].dtype == np.float32


def test_gram_estimated(votes):
    words = "Monte Carlo, 16 draws per ranking"
    results = [
        run(
            "gram",
            votes,
            "--method",
            "montecarlo:draws=16,control_variates=0",
            "--unlisted",
            "free",
            "--seed",
            seed,
            "--json",
        )
        for seed in (1, 1, 2)
    ]
    facts = [json.loads(result.stdout) for result in results]
    assert words in facts[0]["values"]
    assert "seed 1" in facts[0]["values"]
    assert facts[0]["corner"] == facts[1]["corner"] != facts[2]["corner"]


def test_seed_of_auto(tmp_path):
    rng = np.random.default_rng(0)
    ranks = np.argsort(rng.random((4, 30)), axis=1)
    write_preflib(Rankings(ranks).top(4), tmp_path / "x.soi")
    options = ("--unlisted", "free", "--kernel", "exponential:distance=footrule,nu=0.001", "--json")
    facts = [json.loads(run("gram", tmp_path / "x.soi", *options, "--seed", seed).stdout) for seed in (5, 6)]
    assert "seed 5" in facts[0]["values"]
    assert facts[0]["corner"] != facts[1]["corner"]


def test_gram_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("rankernel._utils.resources.available_memory", lambda: 10**9)
    (tmp_path / "many.csv").write_text("a,b\n" + "1,2\n2,1\n" * 20_000)
    line = one_line(run("gram", tmp_path / "many.csv", "-o", tmp_path / "K.csv"), 1)
    assert "12 GiB" in line
    assert files_in(tmp_path) == ["many.csv"]


@needs_data
def test_gram_of_real_files():
    for file in sorted(preflib(".").glob("*.*")):
        if file.stat().st_size < 7000:
            rankings = read_preflib(file)
            facts = json.loads(run("gram", file, "--kernel", "kendall", "--json").stdout)
            assert facts["shape"] == [len(rankings)] * 2
            assert np.allclose(facts["corner"], Kendall().gram(rankings)[:6, :6], rtol=1e-12)


# ---------------------------------------------------------------------- test, cluster, map, report


def test_two_groups(table):
    options = ("--by", "district", "--count", "n", "--permutations", 199)
    found = json.loads(run("test", table, *options, "--kernel", "mallows:nu=0.5", "--json").stdout)
    (comparison,) = found["comparisons"]
    from rankernel.stats.groups import mmd_test

    orders = [["tea", "milk", "coffee"], ["milk", "tea"], ["coffee", "milk", "tea"], ["coffee"]]
    rankings = Rankings.from_orders(orders, counts=[8, 1, 7, 2])
    expected = mmd_test(rankings[:2], rankings[2:], Mallows(0.5), n_permutations=199)
    assert comparison["statistic"] == pytest.approx(expected.statistic, rel=1e-12)
    assert comparison["pvalue"] == comparison["adjusted_pvalue"] == expected.pvalue
    words = run("test", table, *options, "--kernel", "auto").stdout
    assert "north (9 voters) and south (9) differ" in words
    assert "5 kernels aggregated" in words
    assert "effect with Mallows(nu=" in " ".join(words.split())


def test_sequential(tmp_path):
    systems = ["a", "b", "b", "a", "a", "b"] * 12
    rows = ["g,x,y,z"] + [f"{group},1,2,3" if group == "a" else f"{group},3,2,1" for group in systems]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    options = ("--by", "g", "--kernel", "mallows:nu=1", "--sequential")
    found = json.loads(run("test", tmp_path / "x.csv", *options, "--json").stdout)
    expected = SequentialMMDTest(Mallows(1.0)).update([[0, 1, 2]] * 36, [[2, 1, 0]] * 36)
    assert (found["n_observations"], found["stopped_at"]) == (36, expected.stopped_at)
    assert found["pvalue"] == pytest.approx(expected.pvalue, rel=1e-9)
    words = " ".join(run("test", tmp_path / "x.csv", *options).stdout.split())
    assert f"first after {expected.stopped_at} pairs" in words
    assert "as long as the items are the same 3" in words
    assert found["n_items"] == 3
    assert "leave out --paired" in run("test", tmp_path / "x.csv", *options, "--paired", "x").stderr


def test_two_files(votes):
    write_preflib(BALLOTS, "again.soi")
    words = run("test", votes, "again.soi", "--permutations", 99, "--kernel", "mallows:nu=1")
    assert words.exit_code == 0
    assert "do not differ significantly" in " ".join(words.stdout.split())
    assert run("test", votes, votes, "--permutations", 9).exit_code == 0


def test_adjusted_pvalues(tmp_path):
    rows = ["g,a,b"] + [f"{group},{1 + (group == 'x')},{2 - (group == 'x')}" for group in "xyz" for _ in range(6)]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    options = ("--by", "g", "--kernel", "mallows:nu=1", "--permutations", 499)
    comparisons = json.loads(run("test", tmp_path / "x.csv", *options, "--json").stdout)["comparisons"]
    assert {(each["first"], each["second"]) for each in comparisons} == {("x", "y"), ("x", "z"), ("y", "z")}
    assert comparisons[0]["adjusted_pvalue"] == pytest.approx(3 * min(each["pvalue"] for each in comparisons))
    smallest = 3 * min(each["moment_pvalue"] for each in comparisons)  # by Holm's correction
    assert min(each["adjusted_moment_pvalue"] for each in comparisons) == pytest.approx(smallest)
    words = run("test", tmp_path / "x.csv", *options).stdout
    assert "p-value, corrected" in words
    assert f"p = {smallest:.2g} (Pearson type III)" in words  # instead of the lower bound 3 / 500
    assert not any(line.endswith("  ") for line in words.splitlines())  # tables are not padded


def test_kernel_that_is_not_characteristic(votes):
    assert "not characteristic" in run("test", votes, votes, "--permutations", 9, "--kernel", "kendall").stderr


def test_cluster_table(votes):
    result = run("cluster", votes, "--k", 2, "-o", "labels.csv", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert sum(each["n_voters"] for each in facts["clusters"]) == facts["n_voters"] == 11
    with open("labels.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["count"]) for row in rows] == [5, 3, 2, 1]
    assert facts["labels"] == [row["cluster"] for row in rows]
    assert rows[1]["ranking"] == "milk > tea > coffee"
    words = run("cluster", votes, "--k", 2).stdout
    assert "join at" in words
    assert "cluster B" in words
    assert "ward linkage" in words
    assert {each["distinction"]["label"] for each in facts["clusters"]} == {"tea first", "milk first"}
    of_tea = next(each for each in facts["clusters"] if each["distinction"]["first"] == "tea")
    assert of_tea["shift"]["tea"] > 0  # the sign of the text, where + is higher
    assert f"+{of_tea['shift']['tea']:.1f} tea" in words
    assert "milk first" in words


def test_too_few_voters_for_clusters(votes):
    words = json.loads(run("cluster", votes, "--json").stdout)["reason"]
    assert words == "Clusters are searched for among at least 12 voters; there are 11."


def test_cluster_picture(votes):
    pytest.importorskip("matplotlib")
    assert run("cluster", votes, "-o", "tree.svg", "--linkage", "average").exit_code == 0
    drawn = (votes.parent / "tree.svg").read_text()
    assert "<svg" in drawn
    assert "(100%" not in drawn  # no groups: nothing sets all voters apart
    assert run("cluster", votes, "--k", 2, "-o", "two.svg").exit_code == 0
    assert "milk first" in (votes.parent / "two.svg").read_text()


def test_only_report_computes_contests(votes, monkeypatch):
    monkeypatch.setattr("rankernel.reports.ballots.count_contests", None)  # slow for many items
    assert run("cluster", votes, "--k", 2, "-o", "labels.csv").exit_code == 0
    assert run("map", votes, "-o", "map.csv").exit_code == 0


def test_map_formats(votes):
    pytest.importorskip("matplotlib")
    assert run("map", votes).exit_code == 0
    assert (votes.parent / "map.png").read_bytes().startswith(b"\x89PNG")
    assert run("map", votes, "-o", "map.csv").exit_code == 0
    with open("map.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    from rankernel.learn.maps import KernelMap

    expected = KernelMap(kernel=Mallows("median")).fit_transform(BALLOTS)
    assert np.allclose([[float(row["x"]), float(row["y"])] for row in rows], expected)


def test_map_table_includes_ballots_outside_the_sample(tmp_path, monkeypatch):
    """All orders of seven items: the picture shows a sample, the table has all of them."""
    from rankernel import write_csv

    monkeypatch.chdir(tmp_path)
    ranks = np.argsort(np.array(list(itertools.permutations(range(7)))), axis=1)
    write_csv(Rankings(ranks, list("abcdefg")), "all.csv")
    options = ("all.csv", "--count", "count", "--kernel", "kendall", "--k", 1, "--json")
    assert "random sample of 1,500 voters" in json.loads(run("map", *options).stdout)["shown"]
    assert "shown" not in json.loads(run("map", *options, "-o", "map.csv").stdout)
    with open("map.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5040
    assert sum(int(row["count"]) for row in rows) == 5040


def test_map_by_group(table):
    options = ("--by", "district", "--count", "n", "-o", "map.csv")
    assert run("map", table, *options).exit_code == 0
    with open("map.csv", newline="") as file:
        assert {row["label"] for row in csv.DictReader(file)} == {"north", "south"}


def test_report_of_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("report", "--permutations", 99, "--k", 3)
    assert result.exit_code == 0, result.output
    assert "report.html" in result.stdout
    assert "2,400 voters, 8 candidates" in result.stdout
    assert "<title>The council election of Nowhere Bay</title>" in (tmp_path / "report.html").read_text()
    assert files_in(tmp_path) == ["report.html"]


def test_report_of_table(table):
    options = ("--by", "district", "--count", "n", "--permutations", 99, "--k", 2, "-o", "x.html")
    result = run("report", table, *options, "--title", "Drinks & more", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["written"] == "x.html"
    assert all(key.isidentifier() for key in found)
    assert found["items"][0]["first_choice_share"] == pytest.approx(8 / 18)
    assert found["contests"]["ahead"][0][2] == 9  # tea above coffee
    assert found["groups"]["comparisons"][0]["adjusted_pvalue"] == found["groups"]["all"]["pvalue"] == 0.01
    assert len(found["clusters"]) == 2
    written = (table.parent / "x.html").read_text()
    assert "<h1>Drinks &amp; more</h1>" in written
    assert "Comparison by district" in written


def test_report_of_a_sample_and_of_a_full_count(tmp_path):
    path = tmp_path / "votes.soi"
    path.write_text(
        "# TITLE: Drinks\n# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: tea\n"
        "# ALTERNATIVE NAME 2: milk\n# NUMBER VOTERS: 50\n# NUMBER UNIQUE ORDERS: 2\n30: 1,2\n20: 2,1\n"
    )
    for options, expected in (((), True), (("--census",), False), (("--sample",), True)):
        target = path.with_suffix(".html")
        assert run("report", path, "-o", target, "--force", *options).exit_code == 0
        page = target.read_text(encoding="utf-8")
        assert ("95% interval of the difference" in page) == expected
        assert "PrefLib" not in page


def test_report_noun_and_groups(table):
    options = ("--by", "district", "--count", "n", "--permutations", 99, "--k", 1, "-o", "x.html")
    result = run("report", table, *options, "--noun", "drink", "--group", "north", "--group", "south")
    assert result.exit_code == 0, result.output
    written = (table.parent / "x.html").read_text()
    assert "drinks" in written
    assert "north and south" in written
    assert "there is no group 'nowhere'" in one_line(run("report", table, *options, "--force", "--group", "nowhere"), 1)
    assert "only group named" in one_line(run("report", table, *options, "--force", "--group", "north"), 1)
    assert "--by" in one_line(run("report", table, "--count", "n", "--group", "north", "-o", "y.html"), 2)


def test_no_clusters_in_noise(tmp_path, monkeypatch):
    from rankernel import write_csv
    from rankernel.datasets import mallows

    monkeypatch.chdir(tmp_path)
    write_csv(mallows(200, 6, 0.0, rng=1, items=list("abcdef")), "noise.csv")
    result = run("cluster", "noise.csv", "--count", "count", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["reason"].startswith("There is no evidence of clusters.")
    assert len(facts["clusters"]) == facts["n_clusters"] == 1
    assert json.loads(run("cluster", "noise.csv", "--count", "count", "--k", 3, "--json").stdout)["n_clusters"] == 3


@needs_data
@pytest.mark.parametrize("name", ["00002-00000001.soi", "00006-00000001.toc", "00026-00000001.cat"])
def test_report_of_real_files(name, tmp_path):
    result = run("report", preflib(name), "--k", 2, "-o", tmp_path / "x.html")
    assert result.exit_code == 0, result.output
    assert "Methods" in (tmp_path / "x.html").read_text()


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["info", "missing.soi"], 1, "there is no file missing.soi"),
        (["info", "."], 1, "no .json"),
        (["info", "votes.pdf"], 1, "there is no file votes.pdf"),
        (["info", "votes.soi", "--by", "x"], 1, "--by or --labels"),
        (["info", "--count", "n"], 2, "--count"),
        (["info", "--unlisted", "free"], 2, "bundled example"),
        (["info", "--by", "planet"], 2, "planet"),
        (["info", "--unlisted", "first"], 2, "--unlisted first"),
        (["gram", "-o", "K.xls"], 2, ".npy"),
        (["gram", "-o", "K.csv", "--resume"], 2, "--resume"),
        (["gram", "-o", "folder.npy"], 2, "is a folder"),
        (["gram", "-o", "nowhere/K.npy"], 1, "there is no folder"),
        (["gram", "--seed", "-1"], 2, "--seed"),
        (["gram", "--jobs", "0"], 2, "--jobs"),
        (["report", "--jobs", "0"], 2, "--jobs"),
        (["cluster", "--jobs", "0"], 2, "--jobs"),
        (["map", "--jobs", "0"], 2, "--jobs"),
        (["gram", "--frob"], 2, "--frob"),
        (["frob"], 2, "frob"),
        (["report", "-o", "x.pdf"], 2, ".html"),
        (["map", "-o", "x.html"], 2, ".png"),
        (["cluster", "-o", "x.html"], 2, ".csv"),
        (["cluster", "votes.soi", "--k", "0"], 2, "--k"),
        (["cluster", "votes.soi", "--k", "5"], 1, "--k 5"),
        (["test", "votes.soi"], 2, "second file"),
        (["test", "a", "b", "c"], 2, "two files"),
        (["test", "votes.soi", "other.soi"], 1, "have 0 items in common"),
    ],
)
def test_errors(votes, arguments, code, part):
    (votes.parent / "folder.npy").mkdir()
    write_preflib(Rankings.from_orders([["x", "y"]], counts=[2]), votes.parent / "other.soi")
    before = files_in(votes.parent)
    assert part in one_line(run(*arguments), code)
    assert files_in(votes.parent) == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"# NUMBER ALTERNATIVES: x\n",
        b"1,2,3\n",
        b"\x1f\x8bbroken",
        "# ALTERNATIVE NAME 1: ä".encode("latin-1"),
    ],
)
@pytest.mark.parametrize("ending", ["soi", "csv", "cat", "soi.gz"])
def test_broken_files(tmp_path, content, ending):
    file = tmp_path / f"broken.{ending}"
    file.write_bytes(content)
    assert "broken" in one_line(run("info", file), 1)


@needs_data
def test_truncated_real_files(tmp_path):
    whole = preflib("00006-00000001.toc").read_bytes()
    for length in range(0, len(whole) - 30, 97):
        (tmp_path / "cut.toc").write_bytes(whole[:length])
        one_line(run("info", tmp_path / "cut.toc"), 1)


def test_force(votes):
    (votes.parent / "report.html").write_text("mine")
    assert "--force" in one_line(run("report", votes), 1)
    assert (votes.parent / "report.html").read_text() == "mine"
    assert run("report", votes, "--force").exit_code == 0
    assert (votes.parent / "report.html").read_text() != "mine"


def test_debug(votes):
    result = run("info", "missing.soi", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "Traceback" not in run("info", "missing.soi").stderr  # it does not stick


@pytest.mark.parametrize(
    ("command", "output", "package"),
    [
        ("map", "map.png", "matplotlib"),
        ("cluster", "tree.svg", "matplotlib"),
        ("gram", "K.zarr", "zarr"),
        ("report", "page.html", "jinja2"),
    ],
)
def test_missing_packages(votes, monkeypatch, command, output, package):
    monkeypatch.setattr("rankernel.errors.find_spec", lambda name: None)
    monkeypatch.setattr("rankernel.cli.options.read_source", None)
    line = one_line(run(command, votes, "-o", output), 1)
    assert f"{package}" in line


def test_extra_of_the_command_line():
    """The report needs jinja2, but not Matplotlib."""
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert "rankernel[report,zarr]" in extras["cli"]
    assert any(package.startswith("matplotlib") for package in extras["plots"])
    assert any(package.startswith("jinja2") for package in extras["report"])


def test_unexpected_errors(votes, monkeypatch):
    def broken(*_, **__):
        raise KeyError("x")

    monkeypatch.setattr("rankernel.cli.app.read_source", broken)
    assert "--debug" in one_line(run("info", votes), 1)


def test_nothing_is_printed_after_the_help():
    result = run()
    assert result.exit_code == 2
    assert "Usage: " in result.stdout
    assert result.stderr == ""


def test_format_of_a_file(votes):
    (votes.parent / "votes.pdf").write_text("%PDF")
    assert "for another format give --format" in one_line(run("info", "votes.pdf"), 1)
    (votes.parent / "orders.csv").write_text("tea > milk\nmilk > tea\n")
    found = json.loads(run("info", "orders.csv", "--format", "orders", "--json").stdout)
    assert (found["items"], found["n_voters"]) == (["tea", "milk"], 2)
    assert "--format dat is not possible" in one_line(run("info", "orders.csv", "--format", "dat"), 1)


def test_interrupt(votes, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankernel.reports.page.render_page", interrupted)
    line = one_line(run("report", votes), 130)
    assert line == "rankernel: interrupted; nothing was written; the same command starts again\n"
    assert files_in(votes.parent) == ["votes.soi"]


def test_atomic_file(tmp_path):
    target = tmp_path / "x.txt"

    def stop_midway():
        with atomic_file(target, force=False) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stop_midway()
    assert files_in(tmp_path) == []
    with atomic_file(target, force=False) as temporary:
        temporary.write_text("all")
        assert temporary.parent == tmp_path
        assert not target.exists()
    assert target.read_text() == "all"
    assert files_in(tmp_path) == ["x.txt"]


def test_warnings_are_notes(votes):
    result = run("gram", votes, "--kernel", "exponential:distance=cayley,nu=0.1", "--json")
    json.loads(result.stdout)
    assert said(result).startswith("note: ")
    assert "positive semi-definite" in result.stderr


# ---------------------------------------------------------------------- as a process


SMALLEST = ["gram", "--kernel", "spearman"]  # what compiles least


def test_compilation_note(votes, tmp_path, loaded):
    """The first run prints a note, the second loads from disk, and commands without compiled loops print none."""
    silent, first, second = (
        loaded.run(ANEW + COMMAND, tmp_path / "kept", *arguments, votes) for arguments in (["info"], SMALLEST, SMALLEST)
    )
    assert (silent[0], first[0], second[0]) == (0, 0, 0)
    assert "compiling" not in silent[2]
    assert [line for line in first[2].splitlines() if "compiling" in line] == first[2].splitlines()[:1]
    assert second[2] == silent[2]
    assert first[1] == second[1]


@pytest.mark.parametrize("command", [SMALLEST, ["cluster"]], ids=["gram", "cluster"])
def test_progress_before_compilation(votes, tmp_path, loaded, command):
    """A progress bar is shown before anything is compiled."""
    terminal = 'import os; os.environ.update({"TERM": "xterm", "COLUMNS": "100"})\n'
    program = terminal + ANEW + COMMAND
    process, shown = loaded.watch(program, tmp_path / "kept", *command, votes, until=b"compiling")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert b"compiling" in shown
    assert b"Reading" in shown.split(b"compiling")[0]


def test_help_and_version(loaded):
    code, printed, _ = loaded.run(COMMAND, "--help")
    assert code == 0
    for command in ("info", "gram", "test", "cluster", "map", "report"):
        assert command in printed
        page = run(command, "--help")
        assert page.exit_code == 0
        assert f"rankernel {command}" in page.stdout  # an example
    assert run("--version").stdout.startswith("rankernel ")


def test_light_commands():
    program = """
import sys
from rankernel.cli.app import app
for arguments in (["--help"], ["info"], ["info", "--json"], ["gram", "--help"], ["report", "--help"]):
    try:
        app(arguments)
    except SystemExit as end:
        assert end.code == 0
heavy = {"numba", "sklearn", "scipy", "scipy.stats", "matplotlib", "pandas", "polars", "zarr"} & set(sys.modules)
assert not heavy, heavy
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_piped_output(votes, tmp_path, loaded):
    code, printed, complained = loaded.run(COMMAND, "report", votes, "-o", tmp_path / "x.html", "--permutations", "9")
    assert code == 0
    assert without_compiling(complained) == ""
    assert "\x1b" not in printed
    json.loads(loaded.run(COMMAND, "info", "--json")[1])


def test_exit_codes(tmp_path, loaded):
    assert loaded.run(COMMAND, "info", tmp_path / "missing.soi")[0] == 1
    assert loaded.run(COMMAND, "frob")[0] == 2


def test_broken_pipe():
    command = f"{sys.executable} -m rankernel info --json | head -c 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert said(result) == ""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_no_file(votes, tmp_path, loaded, sign, code):
    # Between the temporary file and its last byte, where an accident would show.
    program = """
import time
from rankernel.cli.app import app
import rankernel.reports.page
def slow(found):
    print("ready", flush=True)
    time.sleep(120)
rankernel.reports.page.render_page = slow
app(["report", "votes.soi", "--permutations", "9"])
"""
    process = loaded.start(program)  # in the folder of the votes
    assert process.stdout.readline() == "ready\n"
    process.send_signal(sign)
    _, said = process.communicate(timeout=120)
    assert process.returncode == code, said
    assert "Traceback" not in said
    assert files_in(tmp_path) == ["votes.soi"]


def test_completion(loaded):
    program = """
        import os, sys
        from rankernel.cli import main

        words = {"COMP_WORDS": "rankernel gram --kernel ma", "COMP_CWORD": "3"}
        os.environ.update({"_RANKERNEL_COMPLETE": "complete_bash"} | words)
        sys.argv = ["rankernel"]
        main()
    """
    assert "mallows" in loaded.run(program)[1].split()


def test_jobs(monkeypatch):
    monkeypatch.delenv("RANKERNEL_NUM_THREADS", raising=False)
    used = []
    monkeypatch.setattr(
        "rankernel._utils.resources.n_threads", lambda _: used.append(os.environ.get("RANKERNEL_NUM_THREADS")) or 1
    )
    assert run("cluster", "--jobs", "3").exit_code == 0
    assert set(used) == {"3"}
    assert "RANKERNEL_NUM_THREADS" not in os.environ


# ---------------------------------------------------------------------- groups, pairs, the same judges


def test_groups(tmp_path):
    rows = ["g,a,b,c"] + [f"{g},{1 + (g == 'x')},{2 - (g == 'x')},3" for g in "xyz" for _ in range(6)]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    options = ("--by", "g", "--kernel", "mallows:nu=1", "--permutations", 199)
    found = json.loads(run("test", tmp_path / "x.csv", *options, "--json").stdout)
    from rankernel import k_sample_test

    X = Rankings([[1, 0, 2]] * 6 + [[0, 1, 2]] * 12, items=["a", "b", "c"])
    expected = k_sample_test(X, [0] * 6 + [1] * 6 + [2] * 6, Mallows(1.0), n_permutations=199)
    assert found["all"]["pvalue"] == expected.pvalue
    assert found["all"]["statistic"] == pytest.approx(expected.statistic, rel=1e-12)
    assert found["differences"]["pairs"][0]["shares"] == [1.0, 0.0, 0.0]
    assert found["differences"]["pairs"][0]["majorities_differ"] is True
    words = run("test", tmp_path / "x.csv", *options).stdout
    assert "The 3 groups differ" in words
    assert "b to a" in words
    pair = json.loads(run("test", tmp_path / "x.csv", *options, "--only", "y", "--only", "z", "--json").stdout)
    assert pair["all"]["n_groups"] == 2
    assert pair["differences"]["pairs"] == []  # not significant
    assert [(each["first"], each["second"]) for each in pair["comparisons"]] == [("y", "z")]


def test_paired(tmp_path):
    rows = ["when,judge,a,b,c"]
    rows += [f"before,{j},1,2,3" for j in range(9)] + [
        f"after,{j},{1 + (j > 1)},{2 - (j > 1)},3" for j in range(8, -1, -1)
    ]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    options = ("--by", "when", "--paired", "judge", "--kernel", "mallows:nu=1", "--permutations", 499)
    found = json.loads(run("test", tmp_path / "x.csv", *options, "--json").stdout)
    from rankernel import paired_test

    after = [[0, 1, 2]] * 2 + [[1, 0, 2]] * 7
    expected = paired_test(after, [[0, 1, 2]] * 9, Mallows(1.0), n_permutations=499)
    assert found["comparisons"][0]["statistic"] == pytest.approx(expected.statistic, rel=1e-12)
    assert found["comparisons"][0]["pvalue"] == expected.pvalue
    (tmp_path / "y.csv").write_text("\n".join(rows[:-1]))
    alone = run("test", tmp_path / "y.csv", *options)
    assert alone.exit_code != 0
    assert "judge '0'" in alone.stderr
    (tmp_path / "z.csv").write_text("\n".join([*rows, rows[-1]]))
    assert "several rows" in run("test", tmp_path / "z.csv", *options).stderr


def ballots_of_wards(path, n_wards, turned):
    rng = np.random.default_rng(n_wards)
    rows = ["ward,a,b,c,d"]
    for ward in range(n_wards):
        for _ in range(12):
            scores = rng.normal(size=4) + (np.array([6.0, 4.0, 2.0, 0.0]) if ward == turned else 0.0)
            rows.append(f"ward {ward}," + ",".join(str(place + 1) for place in np.argsort(np.argsort(-scores))))
    path.write_text("\n".join(rows))
    return path


def test_many_groups(tmp_path):
    file = ballots_of_wards(tmp_path / "x.csv", 9, 4)
    options = ("--by", "ward", "--kernel", "mallows:nu=0.5", "--permutations", 99)
    words = run("test", file, *options).stdout
    shown = re.findall(r"Differences between (ward \d) and (ward \d):", words)
    assert len(shown) == 2
    assert all("ward 4" in pair for pair in shown)
    assert f"mean rank, {shown[0][0]}" in words
    assert "share of the difference (Kendall kernel)" in words
    tables = words[words.index("Differences between") :]
    assert max(map(len, tables.splitlines())) < 120
    assert re.search(r"a to d +\d+%|d to a +\d+%", tables)
    found = json.loads(run("test", file, *options, "--json").stdout)
    assert len(found["differences"]["pairs"][0]["shares"]) == 9  # all of them for machines
    alike = run("test", ballots_of_wards(tmp_path / "y.csv", 6, None), *options).stdout
    assert "Differences between" not in alike
    assert "mean rank" not in alike


def test_monte_carlo_errors(tmp_path):
    file = ballots_of_wards(tmp_path / "x.csv", 3, 1)
    few = (
        "--by",
        "ward",
        "--kernel",
        "mallows:nu=0.5",
        "--unlisted",
        "free",
        "--layout",
        "ranks",
        "--permutations",
        49,
    )
    short = tmp_path / "short.csv"
    lines = [line.rsplit(",", 2)[0] + ",," for line in file.read_text().splitlines()[1:]]
    short.write_text("\n".join(["ward,a,b,c,d", *lines]))
    method = ("--method", "montecarlo:draws=4,coupling=iid,control_variates=0")
    found = json.loads(run("test", short, *few, *method, "--json").stdout)
    assert found["all"]["statistic_mcse"] > 0
    assert found["all"]["n_moment_draws"] == 0
    assert all(each["statistic_mcse"] > 0 for each in found["comparisons"])
    assert "± " in run("test", short, *few, *method).stdout
    exact = json.loads(run("test", file, "--by", "ward", "--kernel", "kendall", "--permutations", 49, "--json").stdout)
    assert exact["all"]["statistic_mcse"] == 0.0
    only = ("--only", "ward 0", "--only", "ward 1")
    for kernel in ((), ("--kernel", "auto")):
        pair = json.loads(run("test", short, *few, *method, *only, *kernel, "--json").stdout)["comparisons"][0]
        assert {"statistic_mcse", "effect_mcse", "effect_interval"} <= set(pair)
