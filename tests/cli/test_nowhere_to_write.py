"""Where nothing can be written, as in a container without a home, everything works all the same."""

import pytest
from forked import ANEW

PROGRAM = """
import numpy as np
from rankernel._loops.random_streams import mix

print(mix(np.uint64(3)), mix.stats.cache_hits.total())
"""
ANSWER = "2185194620014831856"
NO_LOCATORS = "from numba.core import caching; caching.CacheImpl._locator_classes = []"
FULL = """
import errno
from numba.core import caching

def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")
caching.IndexDataCacheFile.{name} = full
"""


@pytest.fixture
def run(loaded, tmp_path):
    """What says whether one compiled function was loaded from disk, and what is said."""

    def run(setup=""):
        code, printed, said = loaded.run(setup + ANEW + PROGRAM, tmp_path)
        assert code == 0, said
        value, n_loaded = printed.split()
        assert value == ANSWER
        return n_loaded == "1", said

    return run


def test_one_line_says_that_nothing_is_kept(run):
    loaded, said = run(NO_LOCATORS)
    assert not loaded
    assert said.count("compiled loops cannot be kept (no folder for them can be written)") == 1
    assert "NUMBA_CACHE_DIR" in said


@pytest.mark.parametrize("name", ["_save_index", "_save_data"])
def test_a_full_disk_is_said_in_one_line(run, name):
    loaded, said = run(FULL.format(name=name))
    assert not loaded
    assert said.count("compiled loops cannot be kept (No space left on device)") == 1
    assert "NUMBA_CACHE_DIR" in said


def test_damaged_files_are_written_anew(run, tmp_path):
    assert run() == (False, "")
    for ending in ("nbi", "nbc"):
        assert run() == (True, "")
        [file] = tmp_path.rglob(f"*.{ending}")
        file.write_bytes(file.read_bytes()[:40])
        assert run() == (False, "")
    assert run() == (True, "")
