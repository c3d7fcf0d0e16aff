"""Compiled loops without a writable cache, as in a container without a home folder: a warning, the same results."""

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
    """Return a function that runs a program: whether a compiled loop came from the cache, and the standard error."""

    def run(setup=""):
        code, printed, errors = loaded.run(setup + ANEW + PROGRAM, tmp_path)
        assert code == 0, errors
        value, n_loaded = printed.split()
        assert value == ANSWER
        return n_loaded == "1", errors

    return run


def test_no_writable_folder(run):
    loaded, errors = run(NO_LOCATORS)
    assert not loaded
    assert errors.count("compiled loops cannot be kept (no folder for them can be written)") == 1
    assert "NUMBA_CACHE_DIR" in errors


@pytest.mark.parametrize("name", ["_save_index", "_save_data"])
def test_full_disk(run, name):
    loaded, errors = run(FULL.format(name=name))
    assert not loaded
    assert errors.count("compiled loops cannot be kept (No space left on device)") == 1
    assert "NUMBA_CACHE_DIR" in errors


def test_damaged_cache_is_replaced(run, tmp_path):
    assert run() == (False, "")
    for ending in ("nbi", "nbc"):
        assert run() == (True, "")
        [file] = tmp_path.rglob(f"*.{ending}")
        file.write_bytes(file.read_bytes()[:40])
        assert run() == (False, "")
    assert run() == (True, "")
