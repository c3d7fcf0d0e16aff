"""Two files with different items, selected groups, progress and interrupts."""

import json
import os
import signal
import subprocess
import sys

import pytest
from commands import run
from test_cli import COMMAND, one_line

from rankernel import Mallows, Preferences, Rankings, mmd_test, write_preflib
from rankernel.data import has_ordered_pair, select_items

NORTH = Rankings.from_orders(
    [["tea", "milk", "gin"], ["gin", "milk"], ["tea"], ["gin"]], ["gin", "tea", "milk"], counts=[6, 2, 2, 3]
)
SOUTH = Rankings.from_orders([["milk", "rum", "tea"], ["tea", "milk"]], ["tea", "rum", "milk"], counts=[7, 1])
SETTINGS = ("--kernel", "mallows:nu=0.5", "--permutations", 99)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_preflib(NORTH, "north.soi")
    write_preflib(SOUTH, "south.soi")
    return "north.soi", "south.soi"


# ---------------------------------------------------------------------- two files with different items


def test_common_items(files):
    found = json.loads(run("test", *files, *SETTINGS, "--json").stdout)
    items = ["tea", "milk"]
    X = Rankings.from_orders([["tea", "milk"], ["milk", "tea"], ["tea"]], items, counts=[6, 2, 2])
    Y = Rankings.from_orders([["milk", "tea"], ["tea", "milk"]], items, counts=[7, 1])
    expected = mmd_test(X, Y, Mallows(0.5), n_permutations=99)
    (comparison,) = found["comparisons"]
    assert comparison["statistic"] == pytest.approx(expected.statistic, rel=1e-12)
    assert comparison["pvalue"] == expected.pvalue
    assert (comparison["n_first"], comparison["n_second"]) == (10, 8)
    for part in ("2 items", "--over intersection", "north.soi: gin", "south.soi: rum", "3 voters of north.soi"):
        assert part in found["items"]
    assert "--over intersection" in run("test", *files, *SETTINGS).stdout


def test_all_items(files):
    found = json.loads(run("test", *files, *SETTINGS, "--over", "union", "--json").stdout)
    items = ["gin", "tea", "milk", "rum"]
    orders = [["tea", "milk", "gin"], ["gin", "milk", "tea"], ["tea", {"gin", "milk"}], ["gin", {"tea", "milk"}]]
    X = Rankings.from_orders(orders, items, counts=[6, 2, 2, 3], unlisted="free")
    Y = Rankings.from_orders([["milk", "rum", "tea"], ["tea", "milk", "rum"]], items, counts=[7, 1], unlisted="free")
    (comparison,) = found["comparisons"]
    assert comparison["statistic"] == pytest.approx(
        mmd_test(X, Y, Mallows(0.5), n_permutations=99).statistic, rel=1e-12
    )
    assert found["items"].startswith("all 4 items of both files (--over union)")


def test_order_of_items(files):
    write_preflib(SOUTH.with_items(["milk", "tea", "rum"]), "other.soi")
    found = [json.loads(run("test", *files[1:], "other.soi", *SETTINGS, "--json").stdout) for _ in range(1)]
    assert "items" not in found[0]
    assert found[0]["comparisons"][0]["pvalue"] == 1.0


def test_no_common_items(files):
    write_preflib(Rankings.from_orders([["ale", "rye"], ["rye", "ale"]], counts=[3, 2]), "far.soi")
    line = one_line(run("test", "north.soi", "far.soi"), 1)
    assert "have 0 items in common" in line
    assert "--over union" in line
    assert run("test", "north.soi", "far.soi", *SETTINGS, "--over", "union").exit_code == 0
    assert "intersection" in one_line(run("test", *files, "--over", "both"), 2)


def test_selected_items():
    prefs = Preferences.from_pairs([[("a", "b"), ("b", "c")], [("d", "b")]], items=list("abcd"))
    some = select_items(prefs, [2, 0])
    assert some.to_pairs() == [[("a", "c")], []]
    assert has_ordered_pair(some).tolist() == [True, False]
    free = Rankings([[0, 1, -1], [-1, -1, 0], [0, 0, 0]])
    assert has_ordered_pair(free).tolist() == [True, False, False]
    assert select_items(free, [2, 1]).ranks.tolist() == [[-1, 0], [0, -1], [0, 0]]


# ---------------------------------------------------------------------- groups


def test_only(tmp_path):
    rows = ["g,a,b,c"] + [f"{g},{1 + (g == 'x')},{2 - (g == 'x')},3" for g in "xyz" for _ in range(4)]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    by = (tmp_path / "x.csv", "--by", "g")
    assert json.loads(run("info", *by, "--only", "x", "--only", "z", "--json").stdout)["groups"] == {"x": 4, "z": 4}
    found = json.loads(run("test", *by, "--only", "x", "--only", "z", *SETTINGS, "--json").stdout)
    assert [(each["first"], each["second"]) for each in found["comparisons"]] == [("x", "z")]
    assert "there is no group 'q' in g; the groups are x, y, z" in one_line(run("test", *by, "--only", "q"), 2)
    assert "--by COLUMN" in one_line(run("info", tmp_path / "x.csv", "--only", "x"), 2)
    assert json.loads(run("info", "--only", "north", "--json").stdout)["groups"] == {"north": 1100}


def test_order_and_names_of_groups(tmp_path):
    (tmp_path / "x.csv").write_text(
        "\n".join(["g,a,b,c"] + [f"{ward},1,2,3" for ward in ("ward 10", "ward 2", "Ward 1", "") for _ in range(3)])
    )
    by, wards = (tmp_path / "x.csv", "--by", "g"), ["(none)", "Ward 1", "ward 2", "ward 10"]
    assert list(json.loads(run("info", *by, "--json").stdout)["groups"]) == wards
    found = json.loads(run("test", *by, *SETTINGS, "--json").stdout)
    assert [each["second"] for each in found["comparisons"] if each["first"] == "(none)"] == wards[1:]
    assert f"the groups are {', '.join(wards)}" in one_line(run("test", *by, "--only", "x"), 2)
    chosen = json.loads(run("test", *by, "--only", "(none)", "--only", "ward 2", *SETTINGS, "--json").stdout)
    assert [(each["first"], each["second"]) for each in chosen["comparisons"]] == [("(none)", "ward 2")]


# ---------------------------------------------------------------------- progress and interruption


def test_progress_before_heavy_imports(tmp_path):
    # Progress must be shown before slow imports.
    program = """
import sys
from contextlib import contextmanager
from rankernel.cli import options as reading
from rankernel.cli.app import app
@contextmanager
def progress(label):
    heavy = {"numba", "scipy", "sklearn", "matplotlib", "pandas"} & set(sys.modules)
    print(label, sorted(heavy), flush=True)
    raise SystemExit
    yield
reading.progress = progress
for command in ("info", "gram", "test", "cluster", "map", "report -o x.html"):
    try:
        app(command.split())
    except SystemExit:
        print("of", command)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    commands = ("info", "gram", "test", "cluster", "map", "report -o x.html")
    assert result.stdout == "".join(
        f"{'Reading' if command == 'info' else 'Starting'} []\nof {command}\n" for command in commands
    ), result.stderr


@pytest.mark.skipif(os.name == "nt", reason="there is no pseudo-terminal")
def test_progress_bar(loaded):
    process, seen = loaded.watch(COMMAND, "test", "--permutations", "19")
    process.communicate()
    assert process.returncode == 0
    assert 0 <= seen.index(b"Reading") < seen.index(b"Comparing 2 groups")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupt_during_imports(tmp_path):
    (tmp_path / "rich.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(300)\n", encoding="utf-8")
    command = [sys.executable, "-m", "rankernel", "info"]
    places = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": places}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert said == "rankernel: interrupted; nothing was written; the same command starts again\n"


def test_interrupt_that_became_another_error(monkeypatch):
    def importing(*_):
        raise RuntimeError("Error calling __set_name__ on 'Field'") from KeyboardInterrupt()

    monkeypatch.setattr("rankernel.cli.options.bundled_example", importing)
    assert "rankernel: interrupted; nothing was written; the same command starts again" in one_line(run("info"), 130)


def test_progress_notes(monkeypatch, capsys):
    from rankernel.cli import terminal

    times = iter([0.0, 1.0, 20.0, 20.0, 21.0])
    monkeypatch.setattr(terminal, "monotonic", lambda: next(times))
    with terminal.progress("Reading") as step:
        step("Gram matrix", 1, 5000)
        step("Gram matrix", 1234, 5000)
        step("Gram matrix", 1235, 5000)
        step("Clusters")  # nothing is known of the time
    assert capsys.readouterr().err == "note: gram matrix, 1,234 of 5,000 done, 0:00:20 elapsed\n"


def test_remaining_time(monkeypatch):
    """It is shown where a total is known."""
    from rich import progress

    from rankernel.cli import terminal

    monkeypatch.setattr(terminal.sys.stderr, "isatty", lambda: True, raising=False)
    shown = []
    monkeypatch.setattr(progress.Progress, "update", lambda _, task, **given: shown.append(given))
    with terminal.progress("Reading") as step:
        step("Gram matrix", 3, 9)
        step("Writing")
    assert [(each["completed"], each["total"]) for each in shown] == [(3, 9), (None, None)]
