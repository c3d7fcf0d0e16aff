"""The one place where numba's flags are set, and where it says that it compiles."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core import event

from rankernel import _loops
from rankernel._loops.kept_code import keep

Loop = TypeVar("Loop", bound=Callable[..., Any])

# No bare fastmath: it lets the compiler assume that no value is nan or inf. These four only let it reorder sums.
QUICKLY = njit(nogil=True, fastmath={"nsz", "arcp", "contract", "reassoc"})
STRICTLY = njit(nogil=True)


def compiled(function: Loop) -> Loop:
    """Compile a loop."""
    loop: Loop = keep(QUICKLY(function))
    return loop


def compiled_strictly(function: Loop) -> Loop:
    """Compile a loop whose order of rounding matters: compensated sums, cancelling terms."""
    loop: Loop = keep(STRICTLY(function))
    return loop


class Announcer(event.Listener):
    """Tells those who want to know that a loop is about to be compiled, once; what is loaded from disk is not."""

    def on_start(self, event):
        """Call everyone who waits for it."""
        function = getattr(event.data["dispatcher"], "py_func", None)  # anyone's: numba tells of all it compiles
        if getattr(function, "__module__", "").startswith("rankernel."):
            while _loops.before_compiling:
                _loops.before_compiling.pop()()

    def on_end(self, event):
        """Do nothing."""


event.register("numba:compile", Announcer())
