"""Matrices on disk: the same as in memory to the bit, however often and whenever the process is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import small_tiles

import rankernel as rk
from rankernel.errors import ExactnessError
from rankernel.gram.disk.journal import Journal
from rankernel.gram.exact.kendall_means import KendallEvaluator

needs_zarr = "zarr is not installed: pip install 'rankernel[zarr]'"
FORMATS = ("npy", "zarr")
SIDE = 3 * small_tiles.SIDE


def rankings(n_rankings, seed=0):
    ranks = np.argsort(np.random.default_rng(seed).random((n_rankings, 9)), axis=1)
    return rk.Rankings(np.minimum(ranks, 4))


DISTINCT = rankings(300).unique()[:150]
REPEATED = rk.concat([DISTINCT[:60], DISTINCT[:60][::-1], DISTINCT[20:50]])  # 60 distinct in 150 rows
N_BLOCKS = 4 * 5 // 2  # of DISTINCT


@pytest.fixture(autouse=True)
def many_tiles(monkeypatch):
    small_tiles.shrink(monkeypatch.setattr)


@pytest.fixture(params=FORMATS)
def path(request, tmp_path):
    if request.param == "zarr":
        pytest.importorskip("zarr", reason=needs_zarr)
    return tmp_path / f"K.{request.param}"


class Stop(Exception):  # noqa: N818
    pass


def left_in(folder):
    """What stands in a folder, but for what says where matrices come from."""
    return sorted(name for name in os.listdir(folder) if not name.endswith(".npy.json"))


def stop_after(n_blocks):
    def progress(done, total):
        if done == n_blocks:
            raise Stop

    return progress


def interrupted(path, n_blocks, kernel, X, **options):
    with pytest.raises(Stop):
        kernel.plan(X).store(path, side=SIDE, progress=stop_after(n_blocks), **options)


# ---------------------------------------------------------------------- the same matrix


@pytest.mark.parametrize(
    ("kernel", "method"),
    [
        (rk.Mallows(0.3), "auto"),
        (rk.Mallows("median"), "exact"),
        (rk.Kendall(), "auto"),
        (rk.Mallows(0.3), rk.MonteCarlo(12)),
        (rk.Mallows(0.3), rk.MonteCarlo(6, distinct_rows=True)),
    ],
    ids=["mallows", "median", "kendall", "draws", "draws of each row"],
)
@pytest.mark.parametrize("X", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
def test_the_matrix_is_that_of_gram(path, kernel, method, X):
    kernel = kernel.resolve(X)
    for columns in (None, REPEATED[50:130]):
        stored = kernel.plan(X, columns, method).store(path, side=SIDE, overwrite=True)
        np.testing.assert_array_equal(stored[:], kernel.gram(X, columns, method))
    assert left_in(path.parent) == [path.name]


def test_new_rows_against_old_ones(path):
    plan = rk.Mallows("median").plan(DISTINCT).against(REPEATED)
    np.testing.assert_array_equal(plan.store(path, side=SIDE)[:], plan.gram())


def test_single_precision(path):
    stored = rk.Mallows(0.3).plan(REPEATED).store(path, dtype="float32", side=SIDE)
    assert stored.dtype == np.float32
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(REPEATED, dtype=np.float32))


def test_chunks_are_the_blocks(tmp_path):
    pytest.importorskip("zarr", reason=needs_zarr)
    assert rk.Mallows(0.3).plan(DISTINCT).store(tmp_path / "K.zarr", side=20).chunks == (32, 32)
    assert rk.Mallows(0.3).plan(DISTINCT).store(tmp_path / "L.zarr").chunks == (150, 150)


@pytest.mark.parametrize("n_rankings", [0, 1])
def test_tiny_matrices(path, n_rankings):
    plan = rk.Kendall().plan(DISTINCT[:n_rankings])
    np.testing.assert_array_equal(plan.store(path)[:], rk.Kendall().gram(DISTINCT[:n_rankings]))


def test_progress_counts_blocks(path):
    calls = []
    rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, progress=lambda *call: calls.append(call))
    assert calls == [(number, N_BLOCKS) for number in range(1, N_BLOCKS + 1)]


def test_other_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"end it in .npy or .zarr"):
        rk.Kendall().plan(DISTINCT).store(tmp_path / "K.csv")


def test_a_full_disk_is_noticed_before(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=100))
    with pytest.raises(OSError, match="takes 176 KiB, and 100 bytes are free on this disk"):
        rk.Mallows(0.3).plan(DISTINCT).store(tmp_path / "K.npy")


# ---------------------------------------------------------------------- going on


@pytest.mark.parametrize("X", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
@pytest.mark.parametrize("n_blocks", [1, 8])
def test_an_interrupted_matrix_is_completed(path, X, n_blocks):
    interrupted(path, n_blocks, rk.Mallows(0.3), X)
    assert not path.exists()
    calls = []
    stored = (
        rk.Mallows(0.3)
        .plan(X)
        .store(path, side=SIDE, resume=True, progress=lambda done, total: calls.append(total - done))
    )
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(X))
    assert calls[-1] == 0
    assert calls == sorted(calls, reverse=True)
    assert left_in(path.parent) == [path.name]


def test_finished_blocks_are_not_computed_again(path):
    interrupted(path, 3, rk.Mallows(0.3), DISTINCT)
    unfinished = path.parent / f"{path.name}.partial" / f"gram{path.suffix}"
    mark(unfinished, slice(0, SIDE), 7.0)
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)[:]
    expected = rk.Mallows(0.3).gram(DISTINCT)
    expected[:SIDE, :SIDE] = 7.0
    np.testing.assert_array_equal(stored, expected)


def mark(path, part, value):
    if path.suffix == ".npy":
        matrix = np.lib.format.open_memmap(path, mode="r+")
    else:
        import zarr

        matrix = zarr.open_array(store=str(path), mode="r+")
    matrix[part, part] = np.full((part.stop - part.start, part.stop - part.start), value)


def test_a_half_written_block_or_line_does_not_count(path):
    interrupted(path, 3, rk.Mallows(0.3), DISTINCT)
    work = path.parent / f"{path.name}.partial"
    mark(work / f"gram{path.suffix}", slice(2 * SIDE, 3 * SIDE), np.nan)  # written, but never finished
    with (work / "journal").open("ab") as journal:
        journal.write(b"5")  # its line has no end
    calls = []
    stored = (
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True, progress=lambda *call: calls.append(call))
    )
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))
    assert len(calls) == N_BLOCKS - 3


def test_a_kill_before_the_first_block(path):
    work = path.parent / f"{path.name}.partial"
    work.mkdir()
    (work / f"gram{path.suffix}").write_bytes(b"half a he")
    plan = rk.Mallows(0.3).plan(DISTINCT)
    np.testing.assert_array_equal(plan.store(path, resume=True)[:], rk.Mallows(0.3).gram(DISTINCT))


def test_a_kill_after_the_last_block(path, monkeypatch):
    monkeypatch.setattr("rankernel.gram.disk.store.Home.clear", lambda home: (_ for _ in ()).throw(Stop))
    with pytest.raises(Stop):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE)
    monkeypatch.undo()
    small_tiles.shrink(monkeypatch.setattr)
    assert path.exists()
    monkeypatch.setattr(KendallEvaluator, "values", None)  # nothing is left to compute
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    assert stored.shape == (150, 150)
    assert left_in(path.parent) == [path.name]


def test_resume_begins_what_is_not_there(path):
    np.testing.assert_array_equal(rk.Kendall().plan(DISTINCT).store(path, resume=True)[:], rk.Kendall().gram(DISTINCT))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": rk.Mallows(0.30000000000000004)}, "kernel .*0.3.* instead of .*0.30000000000000004"),
        ({"X": DISTINCT[::-1]}, "other rankings"),
        ({"X": DISTINCT[:149]}, "shape 150 x 150 instead of 149 x 149 and other rankings"),
        ({"method": rk.MonteCarlo(64, seed=1)}, r"method Exact\(limit=16777216\) instead of MonteCarlo.*seed=1"),
        ({"dtype": np.float32}, "dtype float64 instead of float32"),
        ({"side": 2 * SIDE}, "side 48 instead of 96"),
    ],
    ids=["kernel", "rankings", "shape", "method", "dtype", "side"],
)
def test_another_matrix_is_not_continued(path, changes, message):
    interrupted(path, 2, rk.Mallows(0.3), DISTINCT)
    asked = {"kernel": rk.Mallows(0.3), "X": DISTINCT, "method": "auto", "side": SIDE, "dtype": np.float64} | changes
    plan = asked["kernel"].plan(asked["X"], method=asked["method"])
    options = {"side": asked["side"], "dtype": asked["dtype"]}
    with pytest.raises(ValueError, match=message):
        plan.store(path, resume=True, **options)
    stored = plan.store(path, overwrite=True, **options)[:]
    np.testing.assert_array_equal(stored, plan.gram(dtype=asked["dtype"]))


def test_another_version_is_not_continued(path, monkeypatch):
    interrupted(path, 2, rk.Mallows(0.3), DISTINCT)
    monkeypatch.setattr(rk, "__version__", "99")
    with pytest.raises(ValueError, match=r"version .* instead of 99"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)


def test_nothing_is_replaced_unasked(path):
    interrupted(path, 2, rk.Mallows(0.3), DISTINCT)
    with pytest.raises(FileExistsError, match="is unfinished; resume=True goes on, overwrite=True starts again"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE)
    rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, overwrite=True)
    with pytest.raises(FileExistsError, match="is there already; overwrite=True replaces it"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE)
    again = rk.Kendall().plan(DISTINCT).store(path, side=SIDE, overwrite=True)
    np.testing.assert_array_equal(again[:], rk.Kendall().gram(DISTINCT))


def test_the_old_matrix_stays_until_the_new_one_is_finished(path):
    old = rk.Kendall().plan(DISTINCT).store(path, side=SIDE)[:].copy()
    interrupted(path, 5, rk.Mallows(0.3), DISTINCT, overwrite=True)
    found = np.load(path) if path.suffix == ".npy" else __import__("zarr").open_array(store=str(path), mode="r")[:]
    np.testing.assert_array_equal(found, old)
    new = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(new[:], rk.Mallows(0.3).gram(DISTINCT))


def test_a_finished_matrix_knows_what_it_is(path):
    rk.Mallows(0.3).plan(DISTINCT).store(path)
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, resume=True)
    if path.suffix == ".zarr":
        assert stored.attrs["rankernel"]["kernel"] == "Mallows(nu=0.3)"
    with pytest.raises(ValueError, match=r"was computed with kernel Mallows\(nu=0.3\) instead of Mallows\(nu=0.4\)"):
        rk.Mallows(0.4).plan(DISTINCT).store(path, resume=True)


def test_one_process_at_a_time(path):
    pytest.importorskip("fcntl")
    interrupted(path, 2, rk.Mallows(0.3), DISTINCT)
    work = path.parent / f"{path.name}.partial"
    header = json.loads((work / "journal").read_text().splitlines()[0])
    with Journal(work / "journal", header), pytest.raises(RuntimeError, match="another process is at work"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)


def test_a_formula_that_is_not_certain_is_not_begun(path):
    """Whether a formula is accurate for all pairs is known before the first block; also after an interruption."""
    X, kernel = rk.datasets.uniform(40, 40, seed=1).top(3), rk.Exponential("spearman", 0.01)
    with pytest.raises(ExactnessError, match="series"):
        kernel.plan(X, method="exact").store(path, overwrite=True)
    plan = kernel.plan(X)
    assert isinstance(plan.method, rk.MonteCarlo)
    assert "no closed form" in plan.why
    with pytest.raises(Stop):
        plan.store(path, side=16, overwrite=True, progress=stop_after(3))
    stored = kernel.plan(X).store(path, side=16, resume=True)
    np.testing.assert_array_equal(stored[:], kernel.gram(X, method=rk.MonteCarlo()))


# ---------------------------------------------------------------------- killed

DRIVER = """
import os, random, signal, sys, time
from pathlib import Path
from types import SimpleNamespace
import numpy as np
import rankernel as rk
import small_tiles

small_tiles.shrink()
path, ranks, seed = Path(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3])
if path.suffix == ".zarr":
    import zarr
X, kernel = rk.Rankings(ranks), rk.Mallows(0.3)
kernel.gram(X[:20], threads=1)  # compiled before the forks
plan = kernel.plan(X)
journal, rng = Path(f"{path}.partial", "journal"), random.Random(seed)
finished, midway, kills = False, set(), 0
while not finished:
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(heard)
        plan.store(path, side=16, resume=True, threads=1, progress=lambda *_: os.write(said, b"."))
        os._exit(0)
    os.close(said)
    for _ in range(rng.randrange(3) if kills < 12 else 10**6):
        if not os.read(heard, 1):  # nothing more to come
            break
    time.sleep(rng.uniform(0, 0.004))
    os.kill(child, signal.SIGKILL)
    os.close(heard)
    _, status = os.waitpid(child, 0)
    finished = status == 0
    assert finished or os.WIFSIGNALED(status), status
    kills += not finished
    if journal.exists():
        midway.add(len(journal.read_bytes().splitlines()) - 1)
print(kills, len(midway - {0}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize("X", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
def test_killed_again_and_again(path, X):
    """Processes that are killed (SIGKILL) at random moments leave what the next one completes."""
    ranks = path.parent / "ranks.npy"
    np.save(ranks, X.ranks)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(path), str(ranks), str(len(set(map(tuple, X.ranks))))],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stderr
    kills, midway = map(int, done.stdout.split())
    assert kills >= 5
    assert midway >= 3  # different numbers of finished blocks were found after kills
    found = np.load(path) if path.suffix == ".npy" else __import__("zarr").open_array(store=str(path), mode="r")[:]
    np.testing.assert_array_equal(found, rk.Mallows(0.3).gram(X))
    assert left_in(path.parent) == [path.name, "ranks.npy"]
