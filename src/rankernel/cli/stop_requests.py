"""Ctrl-C and requests to terminate, none of which gets lost.

Python answers a signal with an exception wherever the main thread happens to be, and some code throws away whatever is
raised in it: NumPy does while it makes texts of an array of texts. So a request is repeated until it was heard.
"""

from __future__ import annotations

import signal
import sys
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rankernel.cli.endings import INTERRUPTED, TERMINATED

PAUSE = 0.5  # seconds after which a request is made again
ENDS = {signal.SIGINT: ("interrupted", INTERRUPTED), signal.SIGTERM: ("terminated", TERMINATED)}


class StopRequests:
    """What was asked of a command while it ran."""

    def __init__(self) -> None:
        self.asked: signal.Signals | None = None
        self.raised: BaseException | None = None  # for the last request
        self.is_repeat = False
        self.over = Event()
        self.watch = Thread(target=self.repeat, daemon=True)  # begun before: a handler must not wait for locks

    def answer(self, number: int, _: object) -> None:
        """Unwind the stack, so that temporary files are removed; a repeat does not disturb that."""
        repeat, self.is_repeat = self.is_repeat, False
        self.asked = signal.Signals(number)
        if not self.over.is_set() and not (repeat and self.is_unwinding()):
            self.raised = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(TERMINATED)
            raise self.raised

    def is_unwinding(self) -> bool:
        """Say whether the answer to the last request is on its way, or was turned into another error."""
        error = sys.exception()
        while error is not None and error is not self.raised:
            error = error.__context__
        return error is not None

    def repeat(self) -> None:
        """Make a request again and again until the command has ended."""
        while not self.over.wait(PAUSE):
            if self.asked is not None:
                self.is_repeat = True
                interrupt_main(self.asked)


@contextmanager
def stop_requests() -> Iterator[StopRequests]:
    """Hear requests to stop until the end, whatever throws them away; those that are ignored stay so."""
    requests = StopRequests()
    try:
        before = {sign: signal.getsignal(sign) for sign in ENDS}
        for sign, answer in before.items():
            if answer != signal.SIG_IGN:
                signal.signal(sign, requests.answer)
    except ValueError:  # not the main thread, which alone may do this
        yield requests
        return
    requests.watch.start()
    try:
        yield requests
    finally:
        requests.over.set()
        requests.watch.join()
        for sign, answer in before.items():
            signal.signal(sign, answer)
