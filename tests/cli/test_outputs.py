"""Output of commands: JSON, files that cannot be written, and interrupted commands."""

import csv
import errno
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from commands import run

import rankernel as rk
from rankernel._utils import resources
from rankernel.cli.app import COMMANDS
from rankernel.cli.terminal import option_text
from rankernel.errors import Argument
from rankernel.gram.plan import Plan
from rankernel.gram.storage import locked

ROOT = Path(__file__).parents[2]
ROWS = rk.Rankings.from_orders([["tea", "milk"], ["milk", "tea"], ["tea"]], ["tea", "milk", "cocoa"], counts=[5, 3, 2])


def refused(code, *arguments):
    """Return the error of a command that fails with one line."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def votes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rk.write_csv(ROWS, tmp_path / "votes.csv")
    rk.write_preflib(ROWS, tmp_path / "votes.soi")
    return tmp_path


@pytest.fixture
def computes_nothing(monkeypatch):
    monkeypatch.setattr(Plan, "block", None)
    monkeypatch.setattr(Plan, "gram", None)


# ---------------------------------------------------------------------- the source


@pytest.mark.parametrize("command", ["gram", "cluster", "map", "clean"])
@pytest.mark.parametrize("name", ["votes.csv", "./votes.csv", "link.csv", "hard.csv"])
def test_source_is_never_overwritten(votes, computes_nothing, command, name):
    (votes / "link.csv").symlink_to(votes / "votes.csv")
    os.link(votes / "votes.csv", votes / "hard.csv")
    before = (votes / "votes.csv").read_bytes()
    assert "is the file that is read" in refused(2, command, "votes.csv", "--count", "count", "-o", name, "--force")
    assert (votes / "votes.csv").read_bytes() == before


def test_source_is_never_a_report(votes, computes_nothing):
    (votes / "votes.csv").rename(votes / "votes.html")
    (votes / "votes.csv").symlink_to(votes / "votes.html")
    assert "is the file that is read" in refused(
        2, "report", "votes.csv", "--count", "count", "-o", "votes.html", "--force"
    )


@pytest.mark.parametrize("name", ["K.zarr", "./K.zarr/", "link.zarr", "K.zarr/../K.zarr"])
def test_folder_of_source_is_never_replaced(votes, computes_nothing, name):
    pytest.importorskip("zarr")
    (votes / "K.zarr" / "inner").mkdir(parents=True)
    (votes / "link.zarr").symlink_to(votes / "K.zarr")
    (votes / "votes.csv").rename(votes / "K.zarr" / "inner" / "votes.csv")
    said = refused(2, "gram", "K.zarr/inner/votes.csv", "--count", "count", "-o", name, "--force")
    assert "is the folder of the file that is read" in said
    assert (votes / "K.zarr" / "inner" / "votes.csv").exists()


# ---------------------------------------------------------------------- unwritable targets


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("gram", "K.npy"),
        ("gram", "K.zarr"),
        ("gram", "K.npz"),
        ("gram", "K.csv"),
        ("map", "m.png"),
        ("cluster", "c.csv"),
    ],
)
def test_unwritable_folder(votes, computes_nothing, command, name):
    if name.endswith("zarr"):
        pytest.importorskip("zarr")
    assert "cannot be written" in refused(1, command, "missing.csv", "-o", f"/proc/{name}")  # before it is read, too
    assert "cannot be written" in refused(1, command, "votes.csv", "--count", "count", "-o", f"/proc/{name}")


def test_report_in_unwritable_folder(votes, computes_nothing):
    assert "cannot be written" in refused(1, "report", "votes.csv", "--count", "count", "-o", "/proc/report.html")


class FullDisk(io.BytesIO):
    """A file that can be opened but not written, as on a full disk."""

    def write(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["K.npy", "K.npz", "K.csv"])
def test_full_disk(votes, computes_nothing, monkeypatch, name):
    monkeypatch.setattr(resources, "TemporaryFile", lambda **_: FullDisk())
    said = refused(1, "gram", "votes.csv", "--count", "count", "-o", name)
    assert said == f"rankernel: {name} cannot be written: no space left on device\n"


@pytest.mark.parametrize(("name", "size"), [("K.npz", "72 bytes"), ("K.csv", "18 bytes")])
def test_too_little_disk_space(votes, computes_nothing, monkeypatch, name, size):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=10))
    said = refused(1, "gram", "votes.csv", "--count", "count", "-o", name)
    assert f"no space left on this disk: {name} takes at least {size}, and 10 bytes are free; use another disk" in said


@pytest.mark.parametrize(
    ("command", "name"), [("gram", "K.csv"), ("gram", "K.npz"), ("map", "m.png"), ("clean", "c.csv")]
)
def test_disk_that_becomes_full(votes, monkeypatch, command, name):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(resources, "sync", full)
    done = run(command, "votes.csv", "--count", "count", "-o", name)
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == f"rankernel: no space left on this disk: {name} was not written"
    assert sorted(os.listdir()) == ["votes.csv", "votes.soi"]


def test_concurrent_writers(votes):
    with locked(votes / "K.npy.lock"):
        said = refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.npy", "--force")
    assert "another process is writing this matrix" in said


@pytest.mark.parametrize("name", ["K.npy", "K.zarr"])
def test_resume_in_unwritable_folder(votes, computes_nothing, name):
    assert "cannot be written" in refused(1, "gram", "votes.csv", "--count", "count", "-o", f"/proc/{name}", "--resume")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the administrator may write everything")
def test_read_only_file(votes, computes_nothing):
    (votes / "K.csv").write_text("mine")
    (votes / "K.csv").chmod(0o444)
    assert "cannot be written" in refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.csv", "--force")


# ---------------------------------------------------------------------- other files


@pytest.mark.parametrize("name", ["K.npy", "K.zarr"])
def test_other_folder_is_kept(votes, computes_nothing, name):
    if name.endswith("zarr"):
        pytest.importorskip("zarr")
    (votes / f"{name}.partial").mkdir()
    (votes / f"{name}.partial" / "letter.txt").write_text("mine")
    for options in ([], ["--force"], ["--resume"]):
        said = refused(1, "gram", "votes.csv", "--count", "count", "-o", name, *options)
        assert f"{name}.partial exists and is not an unfinished matrix" in said
    assert (votes / f"{name}.partial" / "letter.txt").read_text() == "mine"


def test_other_file_is_kept(votes, computes_nothing):
    (votes / "K.npy.partial").write_text("mine")
    assert "K.npy.partial exists" in refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.npy", "--force")
    assert (votes / "K.npy.partial").read_text() == "mine"


def test_force_replaces_folder(votes):
    pytest.importorskip("zarr")
    (votes / "K.zarr").mkdir()
    assert "--force" in refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.zarr")
    assert run("gram", "votes.csv", "--count", "count", "-o", "K.zarr", "--force").exit_code == 0


# ---------------------------------------------------------------------- messages name options


def test_options_of_unfinished_matrices(votes):
    assert run("gram", "votes.csv", "--count", "count", "-o", "K.npy").exit_code == 0
    said = refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.npy", "--resume", "--kernel", "kendall")
    assert "--force" in said


def test_options_of_methods(votes):
    rows = rk.datasets.uniform(4, 25, rng=0, items=[f"item {n}" for n in range(25)]).top(3, unlisted="free")
    rk.write_preflib(rows, votes / "many.soi")
    said = refused(1, "gram", "many.soi", "--unlisted", "free", "--method", "exact", "--kernel", "diffusion")
    assert "--method montecarlo:draws=64" in said
    assert "MonteCarlo" not in said
    assert "limit=" not in said
    said = refused(2, "gram", "votes.csv", "--method", "montecarlo:draws=0")
    assert "draws=0 is not possible" in said
    assert "n_draws" not in said


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (Argument("separator", "|"), "--separator '|'"),
        (Argument("overwrite", True), "--force"),
        (Argument("resume", True), "--resume"),
        (Argument("method", ...), "--method montecarlo:draws=64"),
        (Argument("method", "auto"), "--method auto"),
        (Argument("n_draws", 20), "--method montecarlo:draws=20"),
        (Argument("n_clusters", 9), "--k 9"),
        (Argument("ignore", [""]), "--ignore ''"),
        (Argument("max_bytes", 10**6), "--max-bytes 1000000"),
        (Argument("label_columns"), "--by or --labels"),
    ],
)
def test_arguments_as_options(argument, text):
    assert option_text(argument) == text


# ---------------------------------------------------------------------- interrupted


PROGRAM = """
import sys
from rankernel.cli.app import app
from rankernel.gram import storage

def slow(*given):
    print("ready", flush=True)
    sys.stdin.read()
storage.write_npy = slow  # all chunks are done then
app(["gram", "votes.soi", "-o", "K.npy"])
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    ("sign", "code", "how"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_interrupted_matrix(votes, loaded, sign, code, how):
    rk.write_preflib(rk.datasets.uniform(40, 6, rng=0), votes / "votes.soi", overwrite=True)
    process = loaded.start(PROGRAM)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(sign)
    _, said = process.communicate(timeout=120)
    assert process.returncode == code, said
    assert f"{how}; finished chunks are stored in K.npy.partial; the same command with --resume continues" in said
    assert run("gram", "votes.soi", "-o", "K.npy", "--resume").exit_code == 0
    read = rk.read_preflib("votes.soi")
    np.testing.assert_array_equal(np.load("K.npy"), rk.Mallows("median").gram(read))


def test_one_effect_on_the_front_page_in_the_report_and_in_the_test(tmp_path):
    """The effect of the bundled example is one number, with the kernel named."""
    options = ("--permutations", 99, "--json")
    made = json.loads(run("report", "-o", tmp_path / "x.html", "--k", 1, *options).stdout)["groups"]
    test = json.loads(run("test", *options).stdout)
    example = rk.datasets.load_example()
    by_district = [example.rankings[example.districts == name] for name in ("north", "south")]
    effect = rk.mmd_test(*by_district, n_permutations=1).effect
    assert made["all"]["effect"] == pytest.approx(effect, abs=1e-12)
    assert test["comparisons"][0]["effect"] == pytest.approx(effect, abs=1e-12)
    kernel = rk.Mallows(nu="median").resolve(example.rankings)
    assert made["kernel"] == test["kernel"] == str(kernel)
    shown = f"{effect:.1%}"
    page = (tmp_path / "x.html").read_text()
    assert f"accounts for {shown} (95% interval" in page
    assert f"kernel Mallows(nu={kernel.nu:.4g})" in page
    assert f"effect {shown} (" in run("test", "--permutations", 99).stdout
    for front in ("README.md", "docs/index.md"):
        assert f"districts: p <= 0.001, effect {shown}" in (ROOT / front).read_text(encoding="utf-8")


def test_json_of_every_command_has_identifiers_and_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("g,a,b,c\n" + "x,1,2,3\nx,2,1,3\ny,3,2,1\ny,3,1,2\n" * 4)
    by = ("x.csv", "--by", "g", "--json")
    commands = {
        "info": by,
        "clean": (*by, "-o", "y.csv"),
        "gram": by,
        "test": (*by, "--permutations", 9),
        "cluster": (*by, "--k", 2),
        "map": (*by, "-o", "map.csv"),
        "leaderboard": by,
        "report": (*by, "--permutations", 9),
    }
    assert set(commands) == set(COMMANDS)
    for name, arguments in commands.items():
        result = run(name, *arguments)
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout, parse_constant=pytest.fail)
        assert all(key.isidentifier() for key in found), name
        numbers = [value for value in found.values() if isinstance(value, str) and value.replace(".", "").isdigit()]
        assert not numbers, name
    points = json.loads(run("map", *by, "-o", "map.csv", "--force").stdout)["points"]
    with open("map.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(float(row["x"]), float(row["y"])) for row in rows] == [(point["x"], point["y"]) for point in points]


def test_terminal_without_unicode(tmp_path):
    """Names and paths beyond ASCII in a locale that lacks them, with spaces in the path."""
    folder = tmp_path / "ein Wähler"
    folder.mkdir()
    source = folder / "stimmen ü.csv"
    source.write_text("rank 1,rank 2\nÄpfel,Zoë\nZoë,Äpfel\n", encoding="utf-8")
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "rankernel", "info", str(source)]
    done = subprocess.run(command, env=os.environ | plain, capture_output=True, text=True, encoding="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\xc4pfel, Zo\xeb" in done.stdout


def test_changes_with_an_interval_around_0_are_not_listed():
    """Of the bundled example, the mean rank of Cindervale is the same in both districts."""
    found = json.loads(run("test", "--json").stdout)["comparisons"][0]["items"]
    uncertain = {each["item"] for each in found if each["change_interval"][0] <= 0 <= each["change_interval"][1]}
    assert "Cindervale" in uncertain
    table = run("test").stdout.split("mean rank, north")[1].split("prefer")[0]
    listed = {each["item"] for each in found if each["item"] in table}
    assert listed == {each["item"] for each in found} - uncertain


def test_commands_name_judges_and_models(tmp_path):
    path = tmp_path / "battles.csv"
    path.write_text("judge,model_a,model_b,winner\n" + "x,a,b,model_a\ny,b,c,model_a\nz,a,c,model_b\n" * 4)
    data = run("gram", path).stdout.splitlines()
    assert "3 judges, 3 models" in data[0]
    assert "pairs of models" in data[1]
