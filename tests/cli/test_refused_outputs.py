"""Outputs that may not be written: found before anything is computed, whatever --force says."""

import errno
import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from commands import run

import rankernel as rk
from rankernel._utils import files as whole_files
from rankernel._utils.memory import check_memory
from rankernel.cli.option_words import in_options
from rankernel.gram.disk.claims import MARK, claimed
from rankernel.gram.plan import Plan

ROWS = rk.Rankings.from_orders([["tea", "milk"], ["milk", "tea"], ["tea"]], ["tea", "milk", "cocoa"], counts=[5, 3, 2])


def refused(code, *arguments):
    """What a command says that fails in one line, having computed nothing."""
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


# ---------------------------------------------------------------------- the file that is read


@pytest.mark.parametrize("command", ["gram", "cluster", "map", "clean"])
@pytest.mark.parametrize("name", ["votes.csv", "./votes.csv", "link.csv", "hard.csv"])
def test_the_file_that_is_read_is_never_written(votes, computes_nothing, command, name):
    (votes / "link.csv").symlink_to(votes / "votes.csv")
    os.link(votes / "votes.csv", votes / "hard.csv")
    before = (votes / "votes.csv").read_bytes()
    assert "is the file that is read" in refused(2, command, "votes.csv", "--count", "count", "-o", name, "--force")
    assert (votes / "votes.csv").read_bytes() == before


def test_the_file_that_is_read_is_never_a_report(votes, computes_nothing):
    (votes / "votes.csv").rename(votes / "votes.html")
    (votes / "votes.csv").symlink_to(votes / "votes.html")
    assert "is the file that is read" in refused(
        2, "report", "votes.csv", "--count", "count", "-o", "votes.html", "--force"
    )


@pytest.mark.parametrize("name", ["K.zarr", "./K.zarr/", "link.zarr", "K.zarr/../K.zarr"])
def test_the_folder_of_the_file_that_is_read_is_never_replaced(votes, computes_nothing, name):
    pytest.importorskip("zarr")
    (votes / "K.zarr" / "inner").mkdir(parents=True)
    (votes / "link.zarr").symlink_to(votes / "K.zarr")
    (votes / "votes.csv").rename(votes / "K.zarr" / "inner" / "votes.csv")
    said = refused(2, "gram", "K.zarr/inner/votes.csv", "--count", "count", "-o", name, "--force")
    assert "is the folder of the file that is read" in said
    assert (votes / "K.zarr" / "inner" / "votes.csv").exists()


# ---------------------------------------------------------------------- places that cannot be written


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
def test_a_folder_that_cannot_be_written(votes, computes_nothing, command, name):
    if name.endswith("zarr"):
        pytest.importorskip("zarr")
    assert "cannot be written" in refused(1, command, "missing.csv", "-o", f"/proc/{name}")  # before it is read, too
    assert "cannot be written" in refused(1, command, "votes.csv", "--count", "count", "-o", f"/proc/{name}")


def test_a_report_in_a_folder_that_cannot_be_written(votes, computes_nothing):
    assert "cannot be written" in refused(1, "report", "votes.csv", "--count", "count", "-o", "/proc/report.html")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")
@pytest.mark.parametrize("name", ["K.npy", "K.npz", "K.csv"])
def test_a_full_disk_is_found_before_computing(votes, computes_nothing, monkeypatch, name):
    monkeypatch.setattr(whole_files, "TemporaryFile", lambda **_: Path("/dev/full").open("wb"))  # noqa: SIM115
    said = refused(1, "gram", "votes.csv", "--count", "count", "-o", name)
    assert said == f"rankernel: {name} cannot be written: no space left on device\n"


@pytest.mark.parametrize(("name", "size"), [("K.npz", "72 bytes"), ("K.csv", "18 bytes")])
def test_a_disk_without_room_for_the_matrix_is_found_before_computing(votes, computes_nothing, monkeypatch, name, size):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=10))
    said = refused(1, "gram", "votes.csv", "--count", "count", "-o", name)
    assert f"no room on this disk: {name} takes at least {size}, and 10 bytes are free; use another disk" in said


@pytest.mark.parametrize(
    ("command", "name"), [("gram", "K.csv"), ("gram", "K.npz"), ("map", "m.png"), ("clean", "c.csv")]
)
def test_a_disk_that_becomes_full_is_said_with_the_file(votes, monkeypatch, command, name):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(whole_files, "sync", full)
    done = run(command, "votes.csv", "--count", "count", "-o", name)
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == f"rankernel: there is no room on this disk: {name} was not written"
    assert sorted(os.listdir()) == ["votes.csv", "votes.soi"]


def test_another_process_at_work_is_said_in_one_line(votes):
    pytest.importorskip("fcntl")
    with claimed(votes / "K.npy.partial", ()):
        said = refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.npy", "--force")
    assert said == "rankernel: another process is at work on K.npy.partial; wait for it, or end it first\n"


@pytest.mark.parametrize("name", ["K.npy", "K.zarr"])
def test_resuming_where_nothing_can_be_written(votes, computes_nothing, name):
    assert "cannot be written" in refused(1, "gram", "votes.csv", "--count", "count", "-o", f"/proc/{name}", "--resume")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the administrator may write everything")
def test_a_file_that_may_not_be_written(votes, computes_nothing):
    (votes / "K.csv").write_text("mine")
    (votes / "K.csv").chmod(0o444)
    assert "cannot be written" in refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.csv", "--force")


# ---------------------------------------------------------------------- what belongs to somebody


@pytest.mark.parametrize("name", ["K.npy", "K.zarr"])
def test_a_folder_named_like_ours_is_left_alone(votes, computes_nothing, name):
    if name.endswith("zarr"):
        pytest.importorskip("zarr")
    (votes / f"{name}.partial").mkdir()
    (votes / f"{name}.partial" / "letter.txt").write_text("mine")
    for options in ([], ["--force"], ["--resume"]):
        assert "is in the way: it holds 'letter.txt'" in refused(
            1, "gram", "votes.csv", "--count", "count", "-o", name, *options
        )
    assert (votes / f"{name}.partial" / "letter.txt").read_text() == "mine"


def test_a_file_beside_the_matrix_is_left_alone(votes, computes_nothing):
    (votes / "K.npy.json").write_text("mine")
    assert "K.npy.json is in the way" in refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.npy", "--force")


def test_a_folder_without_an_array_can_be_forced(votes):
    pytest.importorskip("zarr")
    (votes / "K.zarr").mkdir()
    assert "--force" in refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.zarr")
    assert run("gram", "votes.csv", "--count", "count", "-o", "K.zarr", "--force").exit_code == 0


# ---------------------------------------------------------------------- in the words of the command line


def test_advice_names_options(votes):
    assert run("gram", "votes.csv", "--count", "count", "-o", "K.npy").exit_code == 0
    said = refused(1, "gram", "votes.csv", "--count", "count", "-o", "K.npy", "--resume", "--kernel", "kendall")
    assert "--force starts again" in said
    (votes / "K.npy.partial").mkdir()
    (votes / "K.npy.partial" / MARK).touch()
    (votes / "K.npy.partial" / "journal").write_text("{")
    assert "journal is damaged: it does not say what was computed; --force starts again" in refused(
        1, "gram", "votes.csv", "--count", "count", "-o", "K.npy", "--resume"
    )


def test_methods_are_named_as_they_are_typed(votes):
    rows = rk.datasets.uniform(4, 25, rng=0, items=[f"item {n}" for n in range(25)]).top(3, unlisted="free")
    rk.write_preflib(rows, votes / "many.soi")
    said = refused(1, "gram", "many.soi", "--unlisted", "free", "--method", "exact", "--kernel", "diffusion")
    assert "--method montecarlo:draws=64" in said
    assert "MonteCarlo" not in said
    assert "limit=" not in said
    said = refused(2, "gram", "votes.csv", "--method", "montecarlo:draws=0")
    assert "draws=0 is not possible" in said
    assert "n_draws" not in said


PYTHON = re.compile(
    r"\b\w+=(True|False|None|'|\[|,|;)|\b(method|dtype|overwrite|resume|n_\w+)=|(?<!:)moments=|rk\.|\w+\(\.\.\.\)|MonteCarlo"
)


@pytest.mark.parametrize(
    "text",
    [
        "K.npy is unfinished; resume=True goes on, overwrite=True starts again",
        "there is no room on this disk: a matrix of 9 x 9 float64 takes 1 KiB; use dtype=float32, or another disk",
        "there is no closed form of X for Y; use method=MonteCarlo(n_draws), or raise the limit: Exact(limit=...)",
        "X: too many; use method=MonteCarlo(n_draws), or raise the limit: Enumeration(limit=...)",
        "exact and estimated entries are mixed; method='auto' uses one estimator for all",
        "a test needs one estimator for all pairs; use method='auto' instead of 'mixed'",
        "there is no exact formula; use method='auto' or rk.MonteCarlo",
        "lower nu, or use rk.MonteCarlo",
        "ranking 3 has free items, where herded draws are not uniform; use coupling='orthogonal'",
        "exact moments are known for uniform completions only; use moments=0",
        "use another kernel, such as rk.Mallows, for more",
        "'x' looks like an overvote; give separator='|', or list all items",
        "column 3 has no name; name the item, or pass it over with ignore=['']",
        "name columns that hold no votes in labels=, ignore= or count=, or state the layout: layout='ranks'",
        "n_clusters=9 but X has 4 rankings; ask for fewer clusters",
    ],
)
def test_no_python_is_spoken(text):
    assert PYTHON.search(text)
    assert not PYTHON.search(in_options(text)), in_options(text)


@pytest.mark.parametrize("task", [{}, {"n_matrices": 2, "task": "a map"}], ids=["matrix", "task"])
def test_no_python_is_spoken_of_memory(monkeypatch, task):
    monkeypatch.setattr("rankernel._utils.memory.available_memory", lambda: 10**6)
    with pytest.raises(MemoryError) as error:
        check_memory((10**5, 10**5), np.float64, **task)
    said = in_options(str(error.value))
    assert str(error.value) != said
    assert not re.search(r"out=|dtype=|plan\(|unique|Nystrom|memmap", said), said


# ---------------------------------------------------------------------- interrupted


PROGRAM = """
import sys
from rankernel.cli.app import app
from rankernel.gram.disk.journal import Journal

add = Journal.add
def slow(*given):
    add(*given)
    print("ready", flush=True)
    sys.stdin.read()
Journal.add = slow
app(["gram", "votes.soi", "-o", "K.npy"])
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    ("sign", "code", "how"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_an_interrupted_run_says_how_to_go_on(votes, loaded, sign, code, how):
    rk.write_preflib(rk.datasets.uniform(40, 6, rng=0), votes / "votes.soi", overwrite=True)
    process = loaded.start(PROGRAM)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(sign)
    _, said = process.communicate(timeout=120)
    assert process.returncode == code, said
    assert f"{how}; what is finished is kept in K.npy.partial; the same command with --resume goes on" in said
    assert run("gram", "votes.soi", "-o", "K.npy", "--resume").exit_code == 0
    read = rk.read_preflib("votes.soi")
    np.testing.assert_array_equal(np.load("K.npy"), rk.Mallows("median").gram(read))
