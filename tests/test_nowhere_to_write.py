"""Where nothing can be written, as in a container without a home, everything works all the same."""

import subprocess
import sys

PROGRAM = """
import sys
{setup}
import rankernel as rk

print(rk.Kendall().gram([[0, 1, 2], [2, 1, 0]]).tolist())
"""
NO_LOCATORS = "from numba.core import caching; caching.CacheImpl._locator_classes = []"


def run(setup=""):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(setup=setup)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[1.0, -1.0], [-1.0, 1.0]]\n"
    return done.stderr


def test_one_line_says_that_nothing_is_kept():
    said = run(NO_LOCATORS)
    assert said.count("compiled loops cannot be kept") == 1
    assert "NUMBA_CACHE_DIR" in said


def test_nothing_is_said_elsewhere():
    assert run() == ""
