"""The one place where numba's flags are set, and where it says that it compiles."""

from numba import njit
from numba.core import event

from rankernel import _loops
from rankernel.errors import warn


def can_be_kept() -> bool:
    """Say whether numba finds a folder in which to keep compiled code; without one it would refuse to compile."""
    try:
        njit(cache=True)(can_be_kept)
    except RuntimeError:
        return False
    return True


CACHE = can_be_kept()
if not CACHE:
    warn(
        "compiled loops cannot be kept, because no folder for them can be written: each start takes some seconds "
        "longer; let NUMBA_CACHE_DIR name a folder that can be written",
        UserWarning,
    )

# No bare fastmath: it lets the compiler assume that no value is nan or inf. These four only let it reorder sums.
compiled = njit(cache=CACHE, nogil=True, fastmath={"nsz", "arcp", "contract", "reassoc"})

# For sums whose order of rounding matters (compensated sums, cancelling terms).
compiled_strictly = njit(cache=CACHE, nogil=True)


class Announcer(event.Listener):
    """Tells those who want to know that a loop is about to be compiled, once; what is loaded from disk is not."""

    def on_start(self, event):
        """Call everyone who waits for it."""
        function = getattr(event.data["dispatcher"], "py_func", None)  # anyone's: numba tells of all it compiles
        if getattr(function, "__module__", "").startswith(_loops.__name__):
            while _loops.before_compiling:
                _loops.before_compiling.pop()()

    def on_end(self, event):
        """Do nothing."""


event.register("numba:compile", Announcer())
