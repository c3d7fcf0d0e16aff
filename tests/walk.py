"""Which files and functions of the package a call passes through: ``python tests/walk.py`` prints two walks."""

import sys
import threading
from pathlib import Path

import rankernel as rk

PACKAGE = str(Path(rk.__file__).parent)


class Walk:
    """What was passed while a call ran: the files, the functions, and how often the file changed."""

    def __init__(self, call):
        self.files, self.functions, self.changes, self.last = [], set(), 0, None
        sys.setprofile(self.step)
        threading.setprofile(self.step)  # compiled code runs in threads, for which the caller waits
        try:
            call()
        finally:
            threading.setprofile(None)
            sys.setprofile(None)

    def step(self, frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_filename not in self.files:
            self.files.append(code.co_filename)
        self.functions.add((code.co_filename, code.co_qualname))
        self.changes += code.co_filename != self.last
        self.last = code.co_filename

    def __str__(self):
        names = ", ".join(str(Path(file).relative_to(PACKAGE)) for file in self.files)
        return f"{len(self.files)} files, {len(self.functions)} functions, {self.changes} changes of file: {names}"


def exact_walk():
    """The walk of an exact Gram matrix of top-k lists, everything compiled."""
    rows = rk.datasets.uniform(20, 8, rng=0).top(3)
    rk.Mallows(0.1).gram(rows)
    return Walk(lambda: rk.Mallows(0.1).gram(rows))


def monte_carlo_walk():
    """The walk of an estimated Gram matrix of rankings with free items."""
    rows, method = rk.datasets.uniform(20, 8, rng=0).top(3, unlisted="free"), rk.MonteCarlo(16)
    rk.Mallows(0.1).gram(rows, method=method)
    return Walk(lambda: rk.Mallows(0.1).gram(rows, method=method))


if __name__ == "__main__":
    print("exact:", exact_walk())
    print("Monte Carlo:", monte_carlo_walk())
