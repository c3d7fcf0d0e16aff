"""Ctrl-C is heard while compiled code runs, and warnings belong to the caller all the same."""

import os
import signal
import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from rankernel._utils.interrupts import run_interruptibly
from rankernel.errors import warn

# Each would take hours, drawing half a minute. Some work is of many pieces, some of one long call; one thread is the
# hardest case.
LONG = {
    "an estimate": 'rk.Exponential("footrule", 0.1).gram(X, method=rk.MonteCarlo(20 * many, control_variates=0))',
    "on one thread": 'rk.Exponential("footrule", 0.1).gram(X, method=rk.MonteCarlo(20 * many, control_variates=0), n_jobs=1)',
    "errors and slopes": "rk.Mallows(0.1).estimate(X, method=rk.MonteCarlo(5 * many), gradient=True, n_jobs=1)",
    "independence": "rk.hsic_test(FULL, rng.random(len(FULL)), n_permutations=1000 * many)",
    "drawing": "rk.datasets.uniform(10_000 * many, 30)",
    "waiting": "heard(time.sleep, 3.6 * (many - 1))",
}
PROGRAM = """
import time
import numpy as np
import rankernel as rk
from rankernel._utils.interrupts import heard

rng = np.random.default_rng(0)
X = rk.Rankings(np.minimum(np.argsort(rng.random((300, 20)), axis=1), 6))
FULL = rk.Rankings(np.argsort(rng.random((2000, 20)), axis=1))

def call(X, FULL, many):
    {call}

call(X[:2], FULL[:4], 1)  # compiled and loaded
print("begun", time.process_time(), flush=True)
try:
    call(X, FULL, 1000)
except KeyboardInterrupt:
    print("interrupted", time.process_time(), flush=True)
"""
PATIENCE = 4.0  # seconds of work after a Ctrl-C, on two processors
INSIDE = 0.2  # seconds of work after which a call is well inside its compiled loops
LONG_ENOUGH = 1.0  # seconds of waiting, for calls that do no work


def seconds_of_work(process):
    """Return how long a process has worked: a busy machine lets it wait, which is not its fault."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # another system
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform == "win32", reason="signals cannot be sent to one process there")
@pytest.mark.parametrize("name", LONG)
def test_long_calls_are_interrupted(name, loaded):
    process = loaded.start(PROGRAM.format(call=LONG[name]))
    try:
        begun, start = process.stdout.readline().split()
        assert begun == "begun"
        end = time.monotonic() + LONG_ENOUGH
        while not float(start) + INSIDE <= seconds_of_work(process) < float("inf") and time.monotonic() < end:
            time.sleep(0.01)
        before = seconds_of_work(process)
        process.send_signal(signal.SIGINT)
        said, after = process.communicate(timeout=300)[0].split()
        assert said == "interrupted"
        assert float(after) < before + PATIENCE
        assert process.returncode == 0
    finally:
        process.send_signal(signal.SIGKILL)


def test_values_and_errors_come_back():
    assert run_interruptibly(lambda: threaded()) == 5
    with pytest.raises(ZeroDivisionError, match="division"):
        run_interruptibly(lambda: 1 / 0)


def threaded():
    """Call again from inside: nothing waits for itself."""
    return run_interruptibly(max, 3, 5)


def test_numpy_settings_of_the_caller_hold():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        run_interruptibly(lambda: np.ones(2) / np.zeros(2))


def test_warnings_point_at_the_line_that_waits():
    module = textwrap.dedent("""
        from rankernel.errors import warn
        from rankernel._utils.interrupts import heard

        def complain():
            warn("careful", UserWarning)

        def work():
            heard(complain)
    """)
    space = {"__name__": "rankernel.made_up"}
    exec(compile(module, "made_up.py", "exec"), space)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        space["work"]()
        warn("here", UserWarning)
    assert [one.filename for one in caught] == [__file__, __file__]
