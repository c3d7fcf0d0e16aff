"""Ctrl-C is heard while compiled code runs: that code goes to threads of its own, and the main thread waits.

Python handles signals in the main thread alone, between two of its own steps: a loop of compiled code in the main
thread is deaf until it ends. Threads that are left behind by an interruption begin nothing new, and do not keep the
interpreter from ending.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import copy_context
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

from rankernel.errors import CALLER

Value = TypeVar("Value")

GLANCE = 0.5  # seconds after which a waiting thread looks up where waiting itself is deaf (Windows)


class Call:
    """A call in a thread of its own."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments
        self.value: Any = None
        self.error: BaseException | None = None
        context = copy_context()
        context.run(CALLER.set, sys._getframe(1))  # where warnings belong
        self.thread = Thread(target=context.run, args=(self.work,), daemon=True)
        self.thread.start()

    def work(self) -> None:
        """Make the call."""
        try:
            self.value = self.function(*self.arguments)
        except BaseException as error:
            self.error = error

    def result(self) -> Any:
        """Wait for the call and return what it returned, or raise what it raised."""
        while self.thread.is_alive():
            self.thread.join(GLANCE)
        if self.error is not None:
            raise self.error
        return self.value


def run_interruptibly(function: Callable[..., Value], *arguments: Any) -> Value:
    """Return the value of a function that may take long without looking up, hearing signals meanwhile.

    Examples
    --------
    >>> run_interruptibly(max, 3, 5)
    5
    """
    if current_thread() is not main_thread():
        return function(*arguments)
    value: Value = Call(function, *arguments).result()
    return value
