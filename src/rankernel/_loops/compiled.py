"""The flags of numba, set once for all compiled loops of the package."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

from rankernel import _loops
from rankernel.errors import warn

Loop = TypeVar("Loop", bound=Callable[..., Any])

# No bare fastmath, which lets the compiler assume that no value is nan or inf. These four only let it reorder sums.
REORDER = {"nsz", "arcp", "contract", "reassoc"}


def has_cache_folder() -> bool:
    """Whether numba has a folder for compiled code that can be written."""
    try:
        njit(cache=True)(has_cache_folder)
    except RuntimeError:
        return False
    return True


CACHE = has_cache_folder()
if not CACHE:
    warn(
        "compiled loops cannot be stored because no folder can be written, so each start takes some seconds longer; "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        UserWarning,
    )


def compiled(function: Loop) -> Loop:
    """Compile a loop."""
    return cast(Loop, njit(nogil=True, cache=CACHE, fastmath=REORDER)(function))


def compiled_strictly(function: Loop) -> Loop:
    """Compile a loop whose order of operations matters: compensated sums, cancelling terms."""
    return cast(Loop, njit(nogil=True, cache=CACHE)(function))


class CompileListener(event.Listener):
    """Calls the functions in ``_loops.before_compiling`` before the first loop is compiled (not loaded from disk)."""

    def on_start(self, event):
        """Call every waiting function once."""
        function = getattr(event.data["dispatcher"], "py_func", None)  # numba reports all functions, of any package
        if getattr(function, "__module__", "").split(".")[0] == "rankernel":
            while _loops.before_compiling:
                _loops.before_compiling.pop()()

    def on_end(self, event):
        """Do nothing."""


event.register("numba:compile", CompileListener())
