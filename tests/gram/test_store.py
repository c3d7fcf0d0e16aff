"""Matrices on disk: the same as in memory to the bit, however often and whenever the process is killed."""

import errno
import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import rankernel as rk
from rankernel.errors import ExactnessError
from rankernel.gram.disk import store
from rankernel.gram.disk.claims import MARK, claimed
from rankernel.gram.disk.matrix_files import NpyFile, ZarrFile
from rankernel.gram.exact.kendall import KendallEvaluator
from rankernel.gram.plan import Plan

needs_zarr = "zarr is not installed: pip install 'rankernel[zarr]'"
FORMATS = ("npy", "zarr")
SIDE = 3 * shrunk_blocks.SIDE


def rankings(n_rankings, rng=0):
    ranks = np.argsort(np.random.default_rng(rng).random((n_rankings, 9)), axis=1)
    return rk.Rankings(np.minimum(ranks, 4))


DISTINCT = rankings(300).unique()[:150]
REPEATED = rk.concat([DISTINCT[:60], DISTINCT[:60][::-1], DISTINCT[20:50]])  # 60 distinct in 150 rows
N_BLOCKS = 4 * 5 // 2  # of DISTINCT


@pytest.fixture(autouse=True)
def many_tiles(monkeypatch):
    shrunk_blocks.shrink(monkeypatch.setattr)
    # Nothing here is about power cuts, and disks are slow; the programs below that are killed do without this.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


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


def stop(*_):
    raise Stop


def stop_after(n_blocks):
    def progress(done, total):
        if done == n_blocks:
            raise Stop

    return progress


def interrupted(path, n_blocks, kernel, X, method="auto", **options):
    with pytest.raises(Stop):
        kernel.plan(X, method=method).store(path, side=SIDE, progress=stop_after(n_blocks), **options)


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
        stored = kernel.plan(X, columns, method=method).store(path, side=SIDE, overwrite=True)
        np.testing.assert_array_equal(stored[:], kernel.gram(X, columns, method=method))
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
    with pytest.raises(OSError, match=r"no room on this disk: a matrix .* takes 176 KiB, and 100 bytes are free"):
        rk.Mallows(0.3).plan(DISTINCT).store(tmp_path / "K.npy")
    assert left_in(tmp_path) == []


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


def test_finished_blocks_are_not_computed_again(path, monkeypatch):
    interrupted(path, 3, rk.Mallows(0.3), DISTINCT)
    computed, block = [], Plan.block
    monkeypatch.setattr(Plan, "block", lambda plan, *place: computed.append(place) or block(plan, *place))
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)[:]
    assert len(computed) == N_BLOCKS - 3
    np.testing.assert_array_equal(stored, rk.Mallows(0.3).gram(DISTINCT))


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
    (work / MARK).touch()
    (work / f"gram{path.suffix}").write_bytes(b"half a he")
    plan = rk.Mallows(0.3).plan(DISTINCT)
    np.testing.assert_array_equal(plan.store(path, resume=True)[:], rk.Mallows(0.3).gram(DISTINCT))


def test_a_kill_after_the_last_block(path, monkeypatch):
    monkeypatch.setattr("rankernel.gram.disk.store.Home.clear", stop)
    with pytest.raises(Stop):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE)
    monkeypatch.undo()
    shrunk_blocks.shrink(monkeypatch.setattr)
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
        ({"method": rk.MonteCarlo(64, rng=1)}, r"method Exact\(limit=16777216\) instead of MonteCarlo.*rng=1"),
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


def test_a_formula_that_is_not_certain_is_not_begun(path):
    """Whether a formula is accurate for all pairs is known before the first block; also after an interruption."""
    X, kernel = rk.datasets.uniform(40, 40, rng=1).top(3), rk.Exponential("spearman", 0.01)
    with pytest.raises(ExactnessError, match="series"):
        kernel.plan(X, method="exact").store(path, overwrite=True)
    plan = kernel.plan(X)
    assert isinstance(plan.method, rk.MonteCarlo)
    assert "no closed form" in plan.reason
    with pytest.raises(Stop):
        plan.store(path, side=16, overwrite=True, progress=stop_after(3))
    stored = kernel.plan(X).store(path, side=16, resume=True)
    np.testing.assert_array_equal(stored[:], kernel.gram(X, method=rk.MonteCarlo()))


# ---------------------------------------------------------------------- two at once


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}], ids=["new", "resume", "overwrite"])
def test_one_process_at_a_time(path, options):
    pytest.importorskip("fcntl")
    old = rk.Kendall().plan(DISTINCT).store(path, side=SIDE)[:].copy()
    interrupted(path, 2, rk.Mallows(0.3), DISTINCT, overwrite=True)
    work = path.parent / f"{path.name}.partial"
    before = sorted(os.listdir(work))
    with claimed(work, before), pytest.raises(BlockingIOError, match="another process is at work"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, **options)
    assert sorted(os.listdir(work)) == before
    np.testing.assert_array_equal(read(path), old)


BESIDE = """
import sys
import numpy as np
import rankernel as rk
import shrunk_blocks

shrunk_blocks.shrink()
path, ranks, nu = sys.argv[1], np.load(sys.argv[2]), float(sys.argv[3])
plan = rk.Mallows(nu).plan(rk.Rankings(ranks))
plan.evaluator
print("ready", flush=True)
sys.stdin.readline()
try:
    plan.store(path, side=16, overwrite=True)
except BlockingIOError as error:
    assert "another process is at work" in str(error), error
    print("refused")
else:
    print("done")
"""


def test_two_forced_runs_leave_one_whole_matrix(path, loaded):
    """Whoever comes second is refused, or replaces what the first has finished: the record names what is there."""
    pytest.importorskip("fcntl")
    np.save(path.parent / "ranks.npy", DISTINCT.ranks)
    widths = (0.1, 0.2, 0.3)
    runs = [loaded.start(BESIDE, path, path.parent / "ranks.npy", nu) for nu in widths]
    for one in runs:
        assert one.stdout.readline() == "ready\n"
    said = []
    for one in runs:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in runs:
        said.append(one.communicate()[0].strip())
        assert one.returncode == 0
    assert set(said) <= {"done", "refused"}
    assert "done" in said
    found = {nu for nu in widths if np.array_equal(read(path), rk.Mallows(nu).gram(DISTINCT))}
    header = json.loads(Path(f"{path}.json").read_text()) if path.suffix == ".npy" else stored_header(path)
    assert {f"Mallows(nu={nu})" for nu in found} == {header["kernel"]}
    assert left_in(path.parent) == [path.name, "ranks.npy"]


def stored_header(path):
    import zarr

    return zarr.open_array(store=str(path), mode="r").attrs["rankernel"]


def read(path):
    return np.load(path) if path.suffix == ".npy" else __import__("zarr").open_array(store=str(path), mode="r")[:]


# ---------------------------------------------------------------------- what is not ours


def test_a_folder_of_someone_else_is_left_alone(path):
    work = path.parent / f"{path.name}.partial"
    work.mkdir()
    (work / "journal").write_text("Dear diary\n")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(FileExistsError, match="is in the way: it holds 'journal', which is not of unfinished work"):
            rk.Kendall().plan(DISTINCT).store(path, **options)
    (work / MARK).touch()
    (work / "thesis.tex").touch()
    with pytest.raises(FileExistsError, match=r"holds 'thesis.tex'"):
        rk.Kendall().plan(DISTINCT).store(path, overwrite=True)
    assert sorted(os.listdir(work)) == sorted(["journal", "thesis.tex", MARK])
    assert (work / "journal").read_text() == "Dear diary\n"


def test_a_file_in_the_place_of_the_work_is_left_alone(path):
    path.with_name(path.name + ".partial").write_text("mine")
    with pytest.raises(FileExistsError, match="is in the way"):
        rk.Kendall().plan(DISTINCT).store(path, overwrite=True)
    assert path.with_name(path.name + ".partial").read_text() == "mine"


def test_a_folder_without_an_array_can_be_replaced(tmp_path):
    pytest.importorskip("zarr", reason=needs_zarr)
    path = tmp_path / "K.zarr"
    path.mkdir()
    (path / "zarr.json").write_text("{")
    for options in ({}, {"resume": True}):
        with pytest.raises(FileExistsError, match="is there already"):
            rk.Kendall().plan(DISTINCT).store(path, **options)
    stored = rk.Kendall().plan(DISTINCT).store(path, overwrite=True)
    np.testing.assert_array_equal(stored[:], rk.Kendall().gram(DISTINCT))
    assert left_in(tmp_path) == ["K.zarr"]


def test_a_folder_named_like_a_file_is_not_replaced(tmp_path):
    (tmp_path / "K.npy").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder; name a file"):
        rk.Kendall().plan(DISTINCT).store(tmp_path / "K.npy", overwrite=True)


def test_a_link_stays_one(path):
    (path.parent / "elsewhere").mkdir()
    there = path.parent / "elsewhere" / path.name
    rk.Kendall().plan(DISTINCT).store(there)
    path.symlink_to(there)
    rk.Mallows(0.3).plan(DISTINCT).store(path, overwrite=True)
    assert path.is_symlink()
    np.testing.assert_array_equal(read(there), rk.Mallows(0.3).gram(DISTINCT))


def test_a_place_that_cannot_be_written_is_found_before_computing(monkeypatch):
    plan = rk.Mallows(0.3).plan(DISTINCT)
    monkeypatch.setattr(Plan, "block", None)
    with pytest.raises(OSError, match="/proc/"):
        plan.store("/proc/no-such-folder/K.npy")


# ---------------------------------------------------------------------- damage


def harm(work, how):
    """Damage what an interrupted run has left in a way that each format knows."""
    npy, chunks = work / "gram.npy", work / "gram.zarr" / "c"
    if how == "gone":
        shutil.rmtree(chunks / "0") if chunks.exists() else npy.unlink()
    elif how == "cut":
        chunk = next(part for part in sorted(chunks.rglob("*")) if part.is_file()) if chunks.exists() else npy
        chunk.write_bytes(chunk.read_bytes()[: chunk.stat().st_size // 2])
    elif how == "flipped":
        files = [npy] if npy.exists() else [part for part in sorted(chunks.rglob("*")) if part.is_file()]
        for file in files:
            raw = bytearray(file.read_bytes())
            raw[200 if file == npy else len(raw) // 2] ^= 1
            file.write_bytes(raw)
    elif how == "metadata":
        (npy if npy.exists() else work / "gram.zarr" / "zarr.json").write_bytes(b"{")
    elif how == "header":  # what stands before the numbers is no longer Python
        file = npy if npy.exists() else work / "gram.zarr" / "zarr.json"
        raw = bytearray(file.read_bytes())
        raw[20:28] = b"\xff" * 8
        file.write_bytes(raw)
    elif how == "distinct":
        raw = bytearray((work / "distinct.npy").read_bytes())
        raw[-1] ^= 64
        (work / "distinct.npy").write_bytes(raw)


@pytest.mark.parametrize("how", ["gone", "cut", "flipped", "metadata", "header"])
def test_damaged_blocks_are_computed_again(path, how):
    interrupted(path, 3, rk.Mallows(0.3), DISTINCT)
    harm(path.parent / f"{path.name}.partial", how)
    with pytest.warns(UserWarning, match=r"is damaged: [123] of 3 finished blocks are not as they were written"):
        stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))
    assert left_in(path.parent) == [path.name]


@pytest.mark.parametrize("how", ["gone", "cut", "flipped", "metadata", "distinct"])
def test_damaged_blocks_of_repeated_rankings_are_computed_again(path, how):
    kernel, method = rk.Mallows(0.3), rk.MonteCarlo(12)  # the distinct rankings have a matrix of their own: 3 blocks
    interrupted(path, 8, kernel, REPEATED, method)
    harm(path.parent / f"{path.name}.partial", how)
    with pytest.warns(UserWarning, match=r"is damaged: [1-5] of 8 finished blocks are not as they were written"):
        stored = kernel.plan(REPEATED, method=method).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(stored[:], kernel.gram(REPEATED, method=method))


def test_a_damaged_mirror_image_is_noticed(path):
    interrupted(path, 3, rk.Mallows(0.3), DISTINCT)
    unfinished = path.parent / f"{path.name}.partial" / f"gram{path.suffix}"
    matrix = (
        np.lib.format.open_memmap(unfinished, mode="r+")
        if path.suffix == ".npy"
        else __import__("zarr").open_array(store=str(unfinished), mode="r+")
    )
    matrix[SIDE + 3, 5] = 0.123  # below the diagonal
    del matrix
    with pytest.warns(UserWarning, match="1 of 3 finished blocks"):
        stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))


DAMAGE = {  # of the first line of a journal
    "gone": lambda line: b"",
    "null": lambda line: b"null\n",
    "no text": lambda line: b"\xff\xfe\n",
    "a list": lambda line: b"[1, 2]\n",
    "cut": lambda line: line[:20] + b"\n",
    "one digit": lambda line: line.replace(b"nu=0.3", b"nu=0.7"),
    "one name": lambda line: line.replace(b"dtype", b"dtipe"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_journal_is_said_to_be_so(path, damage):
    interrupted(path, 3, rk.Mallows(0.3), DISTINCT)
    journal = path.parent / f"{path.name}.partial" / "journal"
    first, *others = journal.read_bytes().splitlines(keepends=True)
    assert DAMAGE[damage](first) != first
    journal.write_bytes(DAMAGE[damage](first) + b"".join(others))
    for options in ({}, {"resume": True}):
        with pytest.raises(ValueError, match="journal is damaged: it does not say what was computed; overwrite=True"):
            rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, **options)
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, overwrite=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))


def test_lines_of_the_journal_that_cannot_be_read_are_said(path):
    interrupted(path, 3, rk.Mallows(0.3), DISTINCT)
    journal = path.parent / f"{path.name}.partial" / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = b"#" + lines[2]
    journal.write_bytes(b"".join(lines))
    calls = []
    with pytest.warns(UserWarning, match="1 lines of the journal cannot be read; what they held is computed again"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True, progress=lambda *call: calls.append(call))
    assert len(calls) == N_BLOCKS - 2
    np.testing.assert_array_equal(read(path), rk.Mallows(0.3).gram(DISTINCT))


@pytest.mark.parametrize("text", ["{", '{"name": "my settings"}', "[]"])
def test_a_file_beside_a_matrix_that_is_not_its_record_is_left_alone(tmp_path, text):
    (tmp_path / "K.npy.json").write_text(text)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(FileExistsError, match=r"K.npy.json is in the way.* something else, or is damaged"):
            rk.Kendall().plan(DISTINCT).store(tmp_path / "K.npy", **options)
    assert (tmp_path / "K.npy.json").read_text() == text


def test_an_unfinished_array_does_not_say_what_it_is(tmp_path):
    """What was written into its attributes meanwhile does not come into the record of the finished matrix."""
    zarr, path = pytest.importorskip("zarr", reason=needs_zarr), tmp_path / "K.zarr"
    interrupted(path, 3, rk.Mallows(0.3), DISTINCT)
    unfinished = zarr.open_array(store=str(tmp_path / "K.zarr.partial" / "gram.zarr"), mode="r+")
    assert not dict(unfinished.attrs)
    unfinished.attrs.put({"rankernel": {"kernel": "Mallows(nu=0.7)"}})
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    assert stored.attrs["rankernel"]["kernel"] == "Mallows(nu=0.3)"


# ---------------------------------------------------------------------- damage of finished matrices


def spoil(path, how):
    """Damage a finished matrix; return whether it can still be opened as a matrix of its shape."""
    if path.suffix == ".npy":
        if how == "another":
            np.save(path, np.zeros((3, 3)))
        elif how == "cut":
            os.truncate(path, path.stat().st_size // 2)
        else:
            matrix = np.lib.format.open_memmap(path, mode="r+")
            matrix[SIDE + 3, 5] = 0.123
        return how == "changed"
    if how == "another":
        said = json.loads((path / "zarr.json").read_text())
        (path / "zarr.json").write_text(json.dumps(said | {"shape": [151, 150]}))
    elif how == "cut":
        shutil.rmtree(path / "c")
    else:
        matrix = __import__("zarr").open_array(store=str(path), mode="r+")
        matrix[SIDE + 3, 5] = 0.123
    return how != "another"


@pytest.mark.parametrize("how", ["another", "cut", "changed"])
@pytest.mark.parametrize("X", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
def test_a_finished_matrix_that_is_not_as_it_was_written_is_refused(path, X, how):
    """Going on would return it as if it were the right one; it is left as it is."""
    plan = rk.Mallows(0.3).plan(X)
    plan.store(path, side=SIDE)
    plan.store(path, side=SIDE, resume=True)  # as it was written
    said = (
        rf"\d+ of its {N_BLOCKS} blocks are not as they were written"
        if spoil(path, how)
        else "no longer a matrix of 150 x 150 float64, or cannot be read"
    )
    with pytest.raises(ValueError, match=rf"K\.\w+ is damaged, or was changed: (it is )?{said}; overwrite=True"):
        plan.store(path, side=SIDE, resume=True)
    assert path.exists()
    np.testing.assert_array_equal(plan.store(path, side=SIDE, overwrite=True)[:], rk.Mallows(0.3).gram(X))


def test_a_damaged_record_of_a_finished_array_is_said_to_be_so(tmp_path):
    zarr, path = pytest.importorskip("zarr", reason=needs_zarr), tmp_path / "K.zarr"
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path)
    record = stored.attrs["rankernel"] | {"kernel": "Mallows(nu=0.7)"}
    zarr.open_array(store=str(path), mode="r+").attrs.put({"rankernel": record})
    for nu in (0.3, 0.7):
        with pytest.raises(ValueError, match=r"K\.zarr is damaged: it does not say what was computed"):
            rk.Mallows(nu).plan(DISTINCT).store(path, resume=True)


# ---------------------------------------------------------------------- moving in


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "in two steps"])
@pytest.mark.parametrize("step", [1, 2])
def test_a_kill_while_the_new_matrix_is_moved_in(path, tmp_path_factory, monkeypatch, step, at_once):
    """Between any two steps the old matrix or the new one can be had, and nobody takes one for the other."""
    rk.Kendall().plan(DISTINCT).store(path, side=SIDE)
    moves, move, exchange = [], os.replace, store.exchanged
    of_matrix = [str(path), str(path.parent / f"{path.name}.partial" / f"gram{path.suffix}")]

    def stopped(source, target, move=move):
        moves.append(source)
        if len([one for one in moves if str(one) in of_matrix]) == step:
            raise Stop
        return move(source, target)

    if at_once:
        assert path.suffix == ".npy" or exchange(path, path) or sys.platform != "linux"
        monkeypatch.setattr(store, "exchanged", lambda one, other: stopped(one, other, exchange))
    else:
        monkeypatch.setattr(store, "exchanged", lambda *_: False)
    monkeypatch.setattr("rankernel.gram.disk.store.os.replace", stopped)
    if (path.suffix == ".npy" or at_once) and step == 2:  # what replaces another in one step is signed then
        monkeypatch.setattr(NpyFile if path.suffix == ".npy" else ZarrFile, "sign", stop)
    with pytest.raises(Stop):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, overwrite=True)
    monkeypatch.undo()
    shrunk_blocks.shrink(monkeypatch.setattr)
    assert path.exists() or not (at_once or step == 1)
    kept = shutil.copytree(path.parent, tmp_path_factory.mktemp("kept") / "all")
    stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))
    assert left_in(path.parent) == [path.name]
    again = kept / path.name  # or begun anew with something else, and interrupted: what was there before stays
    interrupted(again, 2, rk.Mallows(0.7), DISTINCT, overwrite=True)
    first = rk.Kendall() if step == 1 or not (at_once or path.suffix == ".npy") else rk.Mallows(0.3)
    np.testing.assert_array_equal(read(again), first.gram(DISTINCT))


def test_an_old_matrix_is_not_taken_for_a_new_one(path):
    """The unfinished matrix is gone, all blocks were finished, and an old matrix stands at the place of the new one."""
    rk.Kendall().plan(DISTINCT).store(path, side=SIDE)
    with pytest.raises(Stop):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, overwrite=True, progress=stop_after(N_BLOCKS))
    unfinished = path.parent / f"{path.name}.partial" / f"gram{path.suffix}"
    shutil.rmtree(unfinished) if unfinished.is_dir() else unfinished.unlink()
    with pytest.warns(UserWarning, match=f"{N_BLOCKS} of {N_BLOCKS} finished blocks are not as they were written"):
        stored = rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True)
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))


# ---------------------------------------------------------------------- full disks


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve space")
def test_space_is_reserved_for_all_files_before_anything_is_computed(tmp_path):
    kernel = rk.Exponential("hamming", 0.4)
    interrupted(tmp_path / "K.npy", 1, kernel, REPEATED)
    work = tmp_path / "K.npy.partial"
    for name, n in (("gram.npy", len(REPEATED)), ("distinct.npy", 60)):
        found = (work / name).stat()
        assert found.st_size >= 8 * n * n
        assert 512 * found.st_blocks >= found.st_size


def test_no_room_for_the_second_file(tmp_path, monkeypatch):
    kernel, reserve = rk.Exponential("hamming", 0.4), os.posix_fallocate

    def reserved(descriptor, start, size):
        if size == 8 * len(REPEATED) ** 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        reserve(descriptor, start, size)

    monkeypatch.setattr(os, "posix_fallocate", reserved)
    with pytest.raises(OSError, match="no room on this disk: a matrix of 150 x 150 float64, with that of the distinct"):
        kernel.plan(REPEATED).store(tmp_path / "K.npy")
    monkeypatch.undo()
    assert not list(tmp_path.rglob("*.npy"))
    stored = kernel.plan(REPEATED).store(tmp_path / "K.npy", resume=True)
    np.testing.assert_array_equal(stored[:], kernel.gram(REPEATED))


def test_a_disk_that_becomes_full_is_no_loss(path, monkeypatch):
    plan = rk.Mallows(0.3).plan(DISTINCT)
    kind = NpyFile if path.suffix == ".npy" else ZarrFile
    write, written = kind.write, []

    def full(file, block, values):
        if len(written) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(block)
        write(file, block, values)

    monkeypatch.setattr(kind, "write", full)
    with pytest.raises(OSError, match="no room on this disk: blocks that are finished are kept, and resume"):
        plan.store(path, side=SIDE)
    monkeypatch.undo()
    shrunk_blocks.shrink(monkeypatch.setattr)
    calls = []
    stored = (
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE, resume=True, progress=lambda *call: calls.append(call))
    )
    np.testing.assert_array_equal(stored[:], rk.Mallows(0.3).gram(DISTINCT))
    assert 0 < len(calls) < N_BLOCKS


def test_a_disk_that_is_full_from_the_first_block_on_keeps_nothing(path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(NpyFile if path.suffix == ".npy" else ZarrFile, "write", full)
    with pytest.raises(OSError, match="no room on this disk: no block was finished, and nothing is kept"):
        rk.Mallows(0.3).plan(DISTINCT).store(path, side=SIDE)
    assert left_in(path.parent) == []


LIMITED = """
import resource, signal, sys
import rankernel as rk

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
X = rk.datasets.uniform(150, 9, rng=0).top(4)
kernel = rk.Exponential("hamming", 0.4)
try:
    kernel.plan(rk.concat([X, X])).store(sys.argv[1], side=16)
except OSError as error:
    print(error)
"""


def test_files_that_may_not_grow_end_no_process(tmp_path, loaded):
    pytest.importorskip("resource")
    code, printed, complained = loaded.run(LIMITED, tmp_path / "K.npy")
    assert code == 0, complained
    assert "there is no room on this disk" in printed
    assert not list(tmp_path.rglob("*.npy"))


# ---------------------------------------------------------------------- killed

DRIVER = """
import os, random, signal, sys, time
from pathlib import Path
from types import SimpleNamespace
import numpy as np
import rankernel as rk
import shrunk_blocks

shrunk_blocks.shrink()
path, ranks, seed = Path(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3])
if path.suffix == ".zarr":
    import zarr
X, kernel = rk.Rankings(ranks), rk.Mallows(0.3)
kernel.gram(X[:20], n_jobs=1)  # compiled before the forks
plan = kernel.plan(X)
journal, rng = Path(f"{path}.partial", "journal"), random.Random(seed)
finished, midway, kills = False, set(), 0
while not finished:
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(heard)
        plan.store(path, side=16, resume=True, n_jobs=1, progress=lambda *_: os.write(said, b"."))
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
def test_killed_again_and_again(path, X, loaded):
    """Processes that are killed (SIGKILL) at random moments leave what the next one completes."""
    ranks = path.parent / "ranks.npy"
    np.save(ranks, X.ranks)
    code, printed, complained = loaded.run(DRIVER, path, ranks, len(set(map(tuple, X.ranks))))
    assert code == 0, complained
    kills, midway = map(int, printed.split())
    assert kills >= 5
    assert midway >= 3  # different numbers of finished blocks were found after kills
    found = np.load(path) if path.suffix == ".npy" else __import__("zarr").open_array(store=str(path), mode="r")[:]
    np.testing.assert_array_equal(found, rk.Mallows(0.3).gram(X))
    assert left_in(path.parent) == [path.name, "ranks.npy"]
