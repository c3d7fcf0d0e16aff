"""The one place where numba's flags are set."""

from numba import njit

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
