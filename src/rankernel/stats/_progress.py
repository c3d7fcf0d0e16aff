"""How far a simulation is: a function that is told, or a bar on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rankernel._utils.checks import short_repr

Progress = Callable[[int, int], object]
WIDTH = 30  # of the bar, in letters


def as_progress(progress: Any) -> Progress | None:
    """Return what is called after each simulation, if anything; True is a bar on standard error."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return show_bar
    if not callable(progress):
        raise TypeError(
            f"progress={short_repr(progress)} is not possible; give True for a bar, or a function of (n_done, n_simulations)"
        )
    found: Progress = progress
    return found


def show_bar(n_done: int, n_simulations: int) -> None:
    """Draw the bar again, where it moved; the last one ends the line."""
    filled, before = (WIDTH * n // n_simulations for n in (n_done, n_done - 1))
    if filled > before or n_done in (1, n_simulations):
        sys.stderr.write(bar_text(n_done, n_simulations) + ("\n" if n_done == n_simulations else ""))
        sys.stderr.flush()


def bar_text(n_done: int, n_simulations: int) -> str:
    r"""Return the bar, over what was in its line.

    Examples
    --------
    >>> bar_text(100, 400)
    '\r[#######.......................] 100 of 400 simulations'
    """
    filled = WIDTH * n_done // n_simulations
    return f"\r[{'#' * filled}{'.' * (WIDTH - filled)}] {n_done:,} of {n_simulations:,} simulations"
