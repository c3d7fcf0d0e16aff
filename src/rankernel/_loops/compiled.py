"""The one place where numba's flags are set."""

from numba import njit

# No bare fastmath: it lets the compiler assume that no value is nan or inf. These four only let it reorder sums.
compiled = njit(cache=True, nogil=True, fastmath={"nsz", "arcp", "contract", "reassoc"})

# For sums whose order of rounding matters (compensated sums, cancelling terms).
compiled_strictly = njit(cache=True, nogil=True)
