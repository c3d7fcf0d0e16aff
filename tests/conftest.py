"""Settings for all tests."""

import gc
import os
import signal
import sys
import threading

import pytest
from forked import Loaded, Unloaded
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The first call of a compiled function takes as long as compiling it; the machines that run this are shared.
settings.register_profile("rankernel", deadline=None)
settings.load_profile("rankernel")

# Matrices of tests are small: threads of the linear algebra would mostly wait for each other, and for those of tests
# that run beside. What is loaded later reads it here, also in processes that tests start; a plugin of pytest may have
# loaded some already.
for library in ("OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
threadpool_limits(1, user_api="blas")

# Who starts the tests in the background may have Ctrl-C ignored, and what they start would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def what_stays_is_no_garbage():
    """Keep the garbage collector from looking again and again through half a million objects of imported modules."""
    gc.freeze()


@pytest.fixture(scope="session")
def loaded():
    """What runs programs in processes that begin with the package loaded."""
    can_fork = sys.platform == "linux"  # elsewhere a process with threads may not survive it
    runner = Loaded() if can_fork else Unloaded()
    yield runner
    runner.close()
