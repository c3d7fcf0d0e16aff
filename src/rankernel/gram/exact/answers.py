"""Answers that are worked out once, however many threads ask for them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Any

import numpy as np

from rankernel._utils.arrays import Indices


class Answers:
    """Something for each code. What one thread works out, others wait for instead of doing it, too."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}
        self.awaited: dict[int, Future[None]] = {}
        self.lock = Lock()

    def of(self, codes: list[int], solve: Callable[[Indices], Sequence[Any]]) -> list[Any]:
        """Return what is known of distinct codes; ``solve`` is given the places of those that nobody has asked for.

        Examples
        --------
        >>> answers = Answers()
        >>> answers.of([5, 7], lambda places: [f"place {place}" for place in places])
        ['place 0', 'place 1']
        >>> answers.of([9, 7, 5], lambda places: [f"new place {place}" for place in places])
        ['new place 0', 'place 1', 'place 0']
        """
        mine: Future[None] = Future()
        with self.lock:
            others = {self.awaited[code] for code in codes if code in self.awaited} if self.awaited else set()
            new = [place for place, code in enumerate(codes) if code not in self.known and code not in self.awaited]
            self.awaited.update((codes[place], mine) for place in new)
        if new:
            self.work_out(codes, new, solve, mine)
        # Only now: whoever waits owes nothing to anybody, so that no two wait for each other.
        for other in others:
            other.result()
        return [self.known[code] for code in codes]

    def work_out(
        self, codes: list[int], new: list[int], solve: Callable[[Indices], Sequence[Any]], mine: Future[None]
    ) -> None:
        """Solve new codes and tell those who wait for them, also that it went wrong."""
        ours = [codes[place] for place in new]
        try:
            self.known.update(zip(ours, solve(np.array(new)), strict=True))
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(None)
        finally:
            with self.lock:
                for code in ours:
                    del self.awaited[code]
