"""Compiled loops without a writable cache, as in a container without a home folder: a warning, the same results."""

from forked import ANEW

PROGRAM = """
import numpy as np
from rankernel._loops.random_streams import mix

print(mix(np.uint64(3)), mix.stats.cache_hits.total())
"""
ANSWER = "2185194620014831856"
NO_LOCATORS = "from numba.core import caching; caching.CacheImpl._locator_classes = []"


def test_no_writable_folder(loaded, tmp_path):
    code, printed, errors = loaded.run(NO_LOCATORS + ANEW + PROGRAM, tmp_path)
    assert (code, printed.split()) == (0, [ANSWER, "0"])
    assert errors.count("NUMBA_CACHE_DIR") == 1


def test_loops_are_cached(loaded, tmp_path):
    for n_loaded in ("0", "1"):
        code, printed, errors = loaded.run(ANEW + PROGRAM, tmp_path)
        assert (code, printed.split(), errors) == (0, [ANSWER, n_loaded], "")
