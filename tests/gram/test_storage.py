"""Matrices on disk: equal to those in memory to the bit, however often the process is killed or files are damaged."""

import errno
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import rankernel as rk
from rankernel.errors import ExactnessError
from rankernel.gram import storage
from rankernel.gram.plan import Plan

zarr = pytest.importorskip("zarr", reason="zarr is not installed: pip install 'rankernel[zarr]'")

SIDE = 48


def rankings(n_rankings, rng=0):
    ranks = np.argsort(np.random.default_rng(rng).random((n_rankings, 9)), axis=1)
    return rk.Rankings(np.minimum(ranks, 4))


DISTINCT = rankings(300).unique()[:150]
REPEATED = rk.concat([DISTINCT[:60], DISTINCT[:60][::-1], DISTINCT[20:50]])  # 60 distinct rankings in 150 rows
N_BLOCKS = 4 * 5 // 2  # of DISTINCT
DRAWS = rk.MonteCarlo(8)  # entries that are computed once for equal rankings


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """Power cuts are not tested here, and disks are slow; processes that are killed below do without this."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(params=["npy", "zarr"])
def path(request, tmp_path):
    return tmp_path / f"K.{request.param}"


@pytest.fixture
def zarr_path(tmp_path):
    return tmp_path / "K.zarr"


class StopWritingError(Exception):
    pass


def stop_after(n_blocks):
    def progress(done, total):
        if done == n_blocks:
            raise StopWritingError

    return progress


def interrupted(path, n_blocks, kernel, X, method="auto", **options):
    with pytest.raises(StopWritingError):
        kernel.plan(X, method=method).store(path, side=SIDE, progress=stop_after(n_blocks), **options)


def work_of(path):
    return path.with_name(path.name + ".partial")


def read(path):
    return np.load(path) if path.suffix == ".npy" else zarr.open_array(store=str(path), mode="r")[:]


def chunk_files(folder):
    return sorted(file for file in folder.rglob("c/*/*") if file.is_file())


# ---------------------------------------------------------------------- the same matrix


@pytest.mark.parametrize(
    ("kernel", "method"),
    [
        (rk.Mallows(0.3), "auto"),
        (rk.Mallows("median"), "exact"),
        (rk.Kendall(), "auto"),
        (rk.Exponential("hamming", 0.4), "exact"),
        (rk.Mallows(0.3), DRAWS),
    ],
    ids=["mallows", "median", "kendall", "hamming", "draws"],
)
@pytest.mark.parametrize("X", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
def test_stored_matrix_is_that_of_gram(path, kernel, method, X):
    kernel = kernel.resolve(X)
    for columns in (None, REPEATED[50:130]):
        stored = kernel.plan(X, columns, method=method).store(path, side=SIDE, overwrite=True)
        np.testing.assert_array_equal(stored[:], kernel.gram(X, columns, method=method))
    assert os.listdir(path.parent) == [path.name]


def test_new_rows(path):
    plan = rk.Mallows("median").plan(DISTINCT).against(REPEATED)
    np.testing.assert_array_equal(plan.store(path, side=SIDE)[:], plan.gram())


def test_single_precision(path):
    stored = rk.Mallows(0.3).plan(REPEATED, method=DRAWS).store(path, dtype="float32", side=SIDE)
    assert stored.dtype == np.float32
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(REPEATED, method=DRAWS, dtype=np.float32))


def test_chunks_have_the_given_side(tmp_path):
    assert rk.Mallows(0.3).plan(DISTINCT).store(tmp_path / "K.zarr", side=20).chunks == (20, 20)
    assert rk.Mallows(0.3).plan(DISTINCT).store(tmp_path / "L.zarr").chunks == (150, 150)
    assert rk.Mallows(0.3).plan(DISTINCT, DISTINCT[:7]).store(tmp_path / "M.zarr", side=20).chunks == (20, 7)


@pytest.mark.parametrize("n_rankings", [0, 1])
def test_tiny_matrices(path, n_rankings):
    plan = rk.Kendall().plan(DISTINCT[:n_rankings])
    np.testing.assert_array_equal(plan.store(path)[:], rk.Kendall().gram(DISTINCT[:n_rankings]))


def test_progress(path):
    calls = []
    rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, progress=lambda *call: calls.append(call))
    assert calls == [(number, N_BLOCKS) for number in range(1, N_BLOCKS + 1)]


@pytest.mark.parametrize(
    ("options", "kind", "name"),
    [
        ({"path": "K.csv"}, ValueError, "path"),
        ({"path": 3}, TypeError, "path"),
        ({"dtype": int}, TypeError, "dtype"),
        ({"resume": "yes"}, TypeError, "resume"),
        ({"overwrite": 1.5}, TypeError, "overwrite"),
        ({"progress": 3}, TypeError, "progress"),
        ({"side": 0}, ValueError, "side"),
    ],
)
def test_invalid_options(tmp_path, options, kind, name):
    options = {"path": tmp_path / "K.npy"} | options
    with pytest.raises(kind, match=name):
        rk.Kendall().plan(DISTINCT).store(**options)


# ---------------------------------------------------------------------- resuming


@pytest.mark.parametrize(("X", "method"), [(DISTINCT, "auto"), (REPEATED, DRAWS)], ids=["distinct", "repeated"])
@pytest.mark.parametrize("n_blocks", [1, 8])
def test_interrupted_matrices_are_completed(path, X, method, n_blocks):
    interrupted(path, n_blocks, rk.Mallows(0.3), X, method)
    assert not path.exists()
    calls = []
    plan = rk.Mallows(0.3).plan(X, method=method)
    stored = plan.store(path, side=SIDE, resume=True, progress=lambda *call: calls.append(call))
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(X, method=method))
    assert calls[0][0] == n_blocks + 1
    assert calls[-1][0] == calls[-1][1]
    assert os.listdir(path.parent) == [path.name]


def test_resume_starts_a_missing_matrix(path):
    np.testing.assert_array_equal(rk.Kendall().plan(DISTINCT).store(path, resume=True)[:], rk.Kendall().gram(DISTINCT))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": rk.Mallows(0.30000000000000004)}, "kernel .*0.3.* instead of .*0.30000000000000004"),
        ({"X": DISTINCT[::-1]}, "other rankings"),
        ({"X": DISTINCT[:149]}, "shape 150 x 150 instead of 149 x 149"),
        ({"method": rk.MonteCarlo(64, rng=1)}, "method"),
        ({"dtype": np.float32}, "dtype float64 instead of float32"),
        ({"side": 2 * SIDE}, "side 48 instead of 96"),
    ],
    ids=["kernel", "rankings", "shape", "method", "dtype", "side"],
)
def test_another_matrix_is_not_resumed(path, changes, message):
    interrupted(path, 2, rk.Mallows(0.3), DISTINCT)
    given = {"kernel": rk.Mallows(0.3), "X": DISTINCT, "method": "auto", "side": SIDE, "dtype": np.float64} | changes
    plan = given["kernel"].plan(given["X"], method=given["method"])
    options = {"side": given["side"], "dtype": given["dtype"]}
    with pytest.raises(FileExistsError, match=message):
        plan.store(path, resume=True, **options)
    stored = plan.store(path, overwrite=True, **options)[:]
    np.testing.assert_array_equal(stored, plan.gram(dtype=given["dtype"]))


def test_another_version_is_not_resumed(path, monkeypatch):
    interrupted(path, 2, rk.Mallows(0.3), DISTINCT)
    monkeypatch.setattr(rk, "__version__", "99")
    with pytest.raises(FileExistsError, match=r"version .* instead of 99"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)


def test_existing_files_are_kept(path):
    interrupted(path, 2, rk.Mallows(0.3), DISTINCT)
    with pytest.raises(FileExistsError, match="resume"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE)
    rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, overwrite=True)
    with pytest.raises(FileExistsError, match="overwrite"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE)
    again = rk.Kendall().plan(DISTINCT).store(path, side=SIDE, overwrite=True)
    np.testing.assert_array_equal(again[:], rk.Kendall().gram(DISTINCT))


def test_old_matrix_stays_until_the_new_one_is_complete(path):
    old = rk.Kendall().plan(DISTINCT).store(path, side=SIDE)[:].copy()
    interrupted(path, 5, rk.Mallows(0.3), DISTINCT, overwrite=True)
    np.testing.assert_array_equal(read(path), old)
    new = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(new[:], rk.Mallows(0.3).gram(DISTINCT))


def test_complete_arrays_know_what_they_are(zarr_path):
    rk.Mallows(0.3).plan(DISTINCT).store(zarr_path)
    stored = rk.Mallows(0.3).plan(DISTINCT).store(zarr_path, resume=True)
    assert stored.attrs["rankernel"]["kernel"] == "Mallows(nu=0.3)"
    with pytest.raises(FileExistsError, match=r"kernel Mallows\(nu=0.3\) instead of Mallows\(nu=0.4\)"):
        rk.Mallows(0.4).plan(DISTINCT).store(zarr_path, resume=True)


def test_complete_npy_files_are_not_resumed(tmp_path):
    rk.Mallows(0.3).plan(DISTINCT).store(tmp_path / "K.npy")
    with pytest.raises(FileExistsError, match="overwrite"):
        rk.Mallows(0.3).plan(DISTINCT).store(tmp_path / "K.npy", resume=True)


def test_inaccurate_formulas_are_not_started(path):
    """Whether a formula is accurate for all pairs is known before the first block."""
    X, kernel = rk.datasets.uniform(40, 40, rng=1).top(3), rk.Exponential("spearman", 0.01)
    with pytest.raises(ExactnessError):
        kernel.plan(X, method="exact").store(path, overwrite=True)
    with pytest.raises(StopWritingError):
        kernel.plan(X).store(path, side=16, overwrite=True, progress=stop_after(3))
    stored = kernel.plan(X).store(path, side=16, resume=True)
    np.testing.assert_array_equal(stored[:], kernel.gram(X, method=rk.MonteCarlo()))


# ---------------------------------------------------------------------- locks


def lock_of(path):
    return path.with_name(path.name + ".lock")


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}], ids=["new", "resume", "overwrite"])
def test_one_process_at_a_time(path, options):
    with storage.locked(lock_of(path)), pytest.raises(BlockingIOError, match="lock"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, **options)
    assert os.listdir(path.parent) == []


ENDED = {"host": os.uname().nodename if hasattr(os, "uname") else "", "pid": 2**22 - 1, "started": 0.0}


@pytest.mark.parametrize(
    ("text", "seconds", "stale"),
    [
        (json.dumps(ENDED), 0, True),  # no such process
        (json.dumps(ENDED | {"pid": os.getpid()}), 0, True),  # the number belongs to another process now
        (json.dumps(ENDED | {"host": "elsewhere"}), 1000, False),
        ("", 0, False),  # just created
        ("", 1000, True),  # killed before it was written
        ("{", 1000, True),
    ],
    ids=["ended", "reused", "other host", "new", "empty", "cut"],
)
def test_stale_locks_are_removed(path, text, seconds, stale):
    lock = lock_of(path)
    lock.write_text(text)
    os.utime(lock, (lock.stat().st_atime, lock.stat().st_mtime - seconds))
    plan = rk.Kendall().plan(DISTINCT)
    if stale:
        np.testing.assert_array_equal(plan.store(path)[:], plan.gram())
        assert os.listdir(path.parent) == [path.name]
    else:
        with pytest.raises(BlockingIOError, match="lock"):
            plan.store(path)


def test_locks_that_cannot_be_removed(path, monkeypatch):
    """The error of the computation is raised, and a later call takes the lock over."""

    def refuse(self, missing_ok=False):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        interrupted(path, 5, rk.Mallows(0.3), DISTINCT)
    lock = lock_of(path)
    os.utime(lock, (lock.stat().st_atime, lock.stat().st_mtime - 2))
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))
    assert os.listdir(path.parent) == [path.name]


CONCURRENT = """
import sys
import numpy as np
import rankernel as rk

path, ranks, nu = sys.argv[1], np.load(sys.argv[2]), float(sys.argv[3])
plan = rk.Mallows(nu).plan(rk.Rankings(ranks))
print("ready", flush=True)
sys.stdin.readline()
try:
    plan.store(path, side=16, overwrite=True)
except BlockingIOError as error:
    print("refused")
else:
    print("done")
"""


def test_concurrent_writers_leave_one_complete_matrix(path, loaded):
    """A second process is refused, or replaces the complete matrix of the first."""
    np.save(path.parent / "ranks.npy", DISTINCT.ranks)
    rates = (0.1, 0.2, 0.3)
    runs = [loaded.start(CONCURRENT, path, path.parent / "ranks.npy", nu) for nu in rates]
    for run in runs:
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        run.stdin.write("go\n")
        run.stdin.flush()
    printed = []
    for run in runs:
        printed.append(run.communicate()[0].strip())
        assert run.returncode == 0
    assert set(printed) <= {"done", "refused"}
    assert "done" in printed
    assert sum(np.array_equal(read(path), rk.Mallows(nu).gram(DISTINCT)) for nu in rates) == 1
    assert sorted(os.listdir(path.parent)) == sorted([path.name, "ranks.npy"])


# ---------------------------------------------------------------------- other files


def test_foreign_folders_are_kept(path):
    work = work_of(path)
    work.mkdir()
    (work / "thesis.tex").write_text("mine")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(FileExistsError, match="partial"):
            rk.Kendall().plan(DISTINCT).store(path, **options)
    assert (work / "thesis.tex").read_text() == "mine"


def test_foreign_files_are_kept(path):
    work_of(path).write_text("mine")
    with pytest.raises(FileExistsError, match="partial"):
        rk.Kendall().plan(DISTINCT).store(path, overwrite=True)
    assert work_of(path).read_text() == "mine"


def test_unreadable_arrays_can_be_replaced(zarr_path):
    zarr_path.mkdir()
    (zarr_path / "zarr.json").write_text("{")
    for options in ({}, {"resume": True}):
        with pytest.raises(FileExistsError, match="overwrite"):
            rk.Kendall().plan(DISTINCT).store(zarr_path, **options)
    stored = rk.Kendall().plan(DISTINCT).store(zarr_path, overwrite=True)
    np.testing.assert_array_equal(stored[:], rk.Kendall().gram(DISTINCT))
    assert os.listdir(zarr_path.parent) == ["K.zarr"]


def test_folders_are_not_replaced_by_files(tmp_path):
    (tmp_path / "K.npy").mkdir()
    with pytest.raises(IsADirectoryError):
        rk.Kendall().plan(DISTINCT).store(tmp_path / "K.npy", overwrite=True)


def test_links_are_kept(path):
    (path.parent / "elsewhere").mkdir()
    target = path.parent / "elsewhere" / path.name
    rk.Kendall().plan(DISTINCT).store(target)
    path.symlink_to(target)
    rk.Mallows(0.3).plan(DISTINCT).store(path, overwrite=True)
    assert path.is_symlink()
    np.testing.assert_array_equal(read(target), rk.Mallows(0.3).gram(DISTINCT))


def test_unwritable_folders_are_refused_first(monkeypatch):
    plan = rk.Mallows(0.3).plan(DISTINCT)
    monkeypatch.setattr(Plan, "block", None)
    with pytest.raises(OSError, match="proc"):
        plan.store("/proc/no-such-folder/K.npy")


# ---------------------------------------------------------------------- damage


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file):
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)


@pytest.mark.parametrize("damage", [cut, flip, lambda file: file.write_bytes(b"")], ids=["cut", "flipped", "emptied"])
@pytest.mark.parametrize(("X", "method"), [(DISTINCT, "auto"), (REPEATED, DRAWS)], ids=["distinct", "repeated"])
def test_damaged_chunks_are_computed_again(path, X, method, damage):
    interrupted(path, 6, rk.Mallows(0.3), X, method)
    for file in chunk_files(work_of(path))[:3]:
        damage(file)
    with pytest.warns(UserWarning, match="checksum"):
        stored = rk.Mallows(0.3).plan(X, method=method).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(X, method=method))
    assert os.listdir(path.parent) == [path.name]


def test_missing_chunks_are_computed_again(path):
    interrupted(path, 6, rk.Mallows(0.3), DISTINCT)
    for file in chunk_files(work_of(path))[:3]:
        file.unlink()
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))


def test_damaged_metadata_is_not_resumed(path):
    interrupted(path, 3, rk.Mallows(0.3), DISTINCT)
    (work_of(path) / "gram.zarr" / "zarr.json").write_bytes(b"{")
    with pytest.raises(FileExistsError, match="unfinished and damaged; overwrite=True starts again"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, overwrite=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))


@pytest.mark.parametrize("damage", [cut, flip, lambda file: file.unlink()], ids=["cut", "flipped", "missing"])
@pytest.mark.parametrize("X", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
def test_damaged_complete_arrays_are_refused(zarr_path, X, damage):
    plan = rk.Mallows(0.3).plan(X)
    plan.store(zarr_path, side=SIDE)
    plan.store(zarr_path, side=SIDE, resume=True)
    damage(chunk_files(zarr_path)[5])
    with pytest.raises(FileExistsError, match="1 of 16 chunks"):
        plan.store(zarr_path, side=SIDE, resume=True)
    assert zarr_path.exists()
    np.testing.assert_array_equal(plan.store(zarr_path, side=SIDE, overwrite=True)[:], rk.Mallows(0.3).gram(X))


@pytest.mark.parametrize("step", [1, 2])
def test_kill_while_an_old_matrix_is_replaced(zarr_path, tmp_path_factory, monkeypatch, step):
    """Two renames replace a folder; after a kill between them the new matrix is put in place, or the old one back."""
    rk.Kendall().plan(DISTINCT).store(zarr_path, side=SIDE)
    renamed, rename = [], type(zarr_path).rename

    def stopped(source, target):
        renamed.append(source)
        if len(renamed) == step:
            raise StopWritingError
        return rename(source, target)

    monkeypatch.setattr(type(zarr_path), "rename", stopped)
    with pytest.raises(StopWritingError):
        rk.Mallows(0.3).plan(DISTINCT).store(zarr_path, side=SIDE, overwrite=True)
    monkeypatch.undo()
    assert zarr_path.exists() == (step == 1)
    copy = shutil.copytree(zarr_path.parent, tmp_path_factory.mktemp("copy") / "all") / zarr_path.name
    stored = rk.Mallows(0.3).plan(DISTINCT).store(zarr_path, side=SIDE, resume=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))
    assert os.listdir(zarr_path.parent) == [zarr_path.name]
    interrupted(copy, 2, rk.Mallows(0.7), DISTINCT, overwrite=True)  # another matrix, which is not completed
    np.testing.assert_array_equal(read(copy), rk.Kendall().gram(DISTINCT))


# ---------------------------------------------------------------------- full disks


def test_too_small_disks_are_refused_first(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=100))
    monkeypatch.setattr(Plan, "block", None)
    with pytest.raises(OSError, match="no space left") as error:
        rk.Mallows(0.3).plan(DISTINCT).store(tmp_path / "K.npy")
    assert error.value.errno == errno.ENOSPC


LIMITED = """
import resource, signal, sys
sys.dont_write_bytecode = True  # Python does not notice that a file of its own is cut
import rankernel as rk

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
X = rk.datasets.uniform(150, 9, rng=0).top(4)
try:
    rk.Exponential("hamming", 0.4).plan(rk.concat([X, X])).store(sys.argv[1], side=16)
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [500, 100_000], ids=["chunk", "file"])
def test_full_disks_keep_finished_chunks(path, loaded, limit):
    pytest.importorskip("resource")
    code, printed, errors = loaded.run(LIMITED, path, limit)
    assert code == 0, errors
    if path.suffix == ".npy" or limit == 500:  # no file of an array in chunks has 100,000 bytes
        assert "no space left" in printed
        assert not path.exists()
    X = rk.datasets.uniform(150, 9, rng=0).top(4)
    plan = rk.Exponential("hamming", 0.4).plan(rk.concat([X, X]))
    stored = plan.store(path, side=16, resume=not path.exists(), overwrite=path.exists())
    np.testing.assert_array_equal(stored[:], plan.gram())


@pytest.mark.parametrize("existing", [False, True], ids=["new", "old matrix"])
def test_failed_renames_lose_nothing(path, monkeypatch, existing):
    plan = rk.Mallows(0.3).plan(DISTINCT)
    if existing:
        rk.Kendall().plan(DISTINCT).store(path)
    with monkeypatch.context() as patch:
        for name in ("rename", "replace"):
            patch.setattr(Path, name, failing_for(path, getattr(Path, name)))
        with pytest.raises(PermissionError):
            plan.store(path, overwrite=existing)
    if existing:
        np.testing.assert_array_equal(read(path), rk.Kendall().gram(DISTINCT))
    else:
        assert not path.exists()
    np.testing.assert_array_equal(plan.store(path, overwrite=existing, resume=True)[:], plan.gram())


def failing_for(path, function):
    """Return a function that renames files, except for a new matrix to ``path``."""

    def rename(old, new):
        if Path(new) == path and "replaced" not in Path(old).name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return function(old, new)

    return rename


# ---------------------------------------------------------------------- killed processes

DRIVER = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
import rankernel as rk
import zarr

path, ranks, seed = Path(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3])
X, kernel, method = rk.Rankings(ranks), rk.Mallows(0.3), rk.MonteCarlo(8)
kernel.gram(X[:20], method=method, n_jobs=1)  # compiled before the forks
plan = kernel.plan(X, method=method)
rng, finished, midway, kills = random.Random(seed), False, set(), 0
while not finished:
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        try:
            plan.store(path, side=16, resume=True, n_jobs=1, progress=lambda *_: os.write(sender, b"."))
        except BlockingIOError:  # the lock of a process that was killed before it wrote its name
            time.sleep(1)
            os._exit(3)
        os._exit(0)
    os.close(sender)
    for _ in range(rng.randrange(4) if kills < 12 else 10**6):
        if not os.read(receiver, 1):
            break
    time.sleep(rng.uniform(0, 0.004))
    os.kill(child, signal.SIGKILL)
    os.close(receiver)
    _, status = os.waitpid(child, 0)
    finished = status == 0
    kills += os.WIFSIGNALED(status)
    midway.add(len([file for file in Path(f"{path}.partial").rglob("c/*/*") if file.is_file()]))
print(kills, len(midway - {0}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize("X", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
def test_killed_again_and_again(path, X, loaded):
    """Processes that are killed (SIGKILL) at random moments leave what the next one completes."""
    ranks = path.parent / "ranks.npy"
    np.save(ranks, X.ranks)
    code, printed, errors = loaded.run(DRIVER, path, ranks, len(X.unique()))
    assert code == 0, errors
    kills, midway = map(int, printed.split())
    assert kills >= 5
    assert midway >= 3  # different numbers of chunks after kills
    np.testing.assert_array_equal(read(path), rk.Mallows(0.3).gram(X, method=rk.MonteCarlo(8)))
    assert sorted(os.listdir(path.parent)) == sorted([path.name, "ranks.npy"])
