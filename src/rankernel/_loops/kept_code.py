"""Compiled code that is kept on disk, where a full disk or a damaged file costs time and nothing else."""

from contextlib import contextmanager, suppress

from numba import njit
from numba.core.caching import FunctionCache

from rankernel.errors import warn

troubles: list[object] = []  # of which the first one is told


def say(problem):
    """Say once that compiled code cannot be kept."""
    troubles.append(problem)
    if len(troubles) == 1:
        warn(
            f"compiled loops cannot be kept ({problem}): each start takes some seconds longer; let NUMBA_CACHE_DIR "
            "name a folder with room that can be written",
            UserWarning,
        )


class ForgivingCache(FunctionCache):
    """The files of one function, without which it is compiled again."""

    @contextmanager
    def _guard_against_spurious_io_errors(self):
        """Go on without what cannot be written, and write anew what cannot be read."""
        try:
            yield
        except OSError as error:
            say(error.strerror or error)
        except Exception:  # whatever a damaged file makes its reader stumble over
            with suppress(OSError):
                self.flush()


def can_be_kept():
    """Say whether numba finds a folder in which to keep compiled code; without one it would refuse to compile."""
    try:
        njit(cache=True)(can_be_kept)
    except RuntimeError:
        return False
    return True


CAN_BE_KEPT = can_be_kept()
if not CAN_BE_KEPT:
    say("no folder for them can be written")


def keep(dispatcher):
    """Return a compiled function whose code is kept, where there is a folder for it."""
    if CAN_BE_KEPT:
        dispatcher._cache = ForgivingCache(dispatcher.py_func)
    return dispatcher
