"""Where nothing can be written, as in a container without a home, everything works all the same."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
{setup}
import numpy as np
from rankernel._loops.row_hashes import mix

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


def run(setup="", folder=None):
    """Return whether one compiled function was loaded from disk, and what is said."""
    environment = os.environ | ({} if folder is None else {"NUMBA_CACHE_DIR": str(folder)})
    command = [sys.executable, "-c", PROGRAM.format(setup=setup)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    value, n_loaded = done.stdout.split()
    assert value == ANSWER
    return n_loaded == "1", done.stderr


def test_one_line_says_that_nothing_is_kept():
    loaded, said = run(NO_LOCATORS)
    assert not loaded
    assert said.count("compiled loops cannot be kept (no folder for them can be written)") == 1
    assert "NUMBA_CACHE_DIR" in said


@pytest.mark.parametrize("name", ["_save_index", "_save_data"])
def test_a_full_disk_is_said_in_one_line(tmp_path, name):
    loaded, said = run(FULL.format(name=name), tmp_path)
    assert not loaded
    assert said.count("compiled loops cannot be kept (No space left on device)") == 1
    assert "NUMBA_CACHE_DIR" in said


def test_damaged_files_are_written_anew(tmp_path):
    assert run(folder=tmp_path) == (False, "")
    for ending in ("nbi", "nbc"):
        assert run(folder=tmp_path) == (True, "")
        [file] = tmp_path.rglob(f"*.{ending}")
        file.write_bytes(file.read_bytes()[:40])
        assert run(folder=tmp_path) == (False, "")
    assert run(folder=tmp_path) == (True, "")
