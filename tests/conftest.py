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

# The first call of a compiled function includes its compilation, so examples have no deadline.
settings.register_profile("rankernel", deadline=None)
settings.load_profile("rankernel")

# Matrices of tests are small, so threads of linear algebra cost more than they save. Libraries that are loaded later
# read the variables, also in processes that tests start; threadpool_limits is for libraries that are loaded already.
for library in ("OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
threadpool_limits(1, user_api="blas")

# Background jobs of a shell ignore SIGINT, and processes that tests start would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without garbage collections, which take a third of the time while all modules are imported."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(autouse=True, scope="module")
def frozen_modules():
    """Exclude the objects of imported modules from garbage collection, which takes long for half a million objects."""
    gc.freeze()


@pytest.fixture(scope="session")
def loaded():
    """A runner of programs in processes with the package already imported."""
    can_fork = sys.platform == "linux"  # elsewhere forking a process with threads is not safe
    runner = Loaded() if can_fork else Unloaded()
    yield runner
    runner.close()
