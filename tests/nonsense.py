"""Invalid values, and the check of the errors that they raise."""

import linecache
import math
import re
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy import sparse

import rankernel

PACKAGE = str(Path(rankernel.__file__).parent)
NONSENSE = [
    None,
    True,
    -1,
    0,
    -1.5,
    math.nan,
    math.inf,
    10**30,
    1j,
    "",
    "nonsense",
    b"bytes",
    [],
    [None],
    ["nonsense"],
    [math.nan],
    [[]],
    [[[1]]],
    [[1, 2], [3]],
    {},
    {"nonsense": 1},
    set(),
    int,
    object(),
    lambda: None,
    "zero\0byte",
    np.array(3),
    np.array([]),
    np.array([[math.nan, 1.0]]),
    np.array([object()]),
    np.zeros((2, 2, 2)),
    np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.array([1], dtype="timedelta64[s]"),
    Fraction(1, 3),
    "\ud800",  # a lone surrogate, which no file name and no page can hold
    "x" * 5000,
    [["a", ["b"]]],
    np.array([2**64 - 1], dtype=np.uint64),
    sparse.csr_array([[math.nan, 1.0]]),
    1e-300,
]


def nonsense_id(value):
    return re.sub(r" at 0x\w+", "", repr(value)).replace("\n", "")[:80]


def fault_of(error, arguments):
    """Return the fault of an error about an argument, None if the error is as it should be.

    If two arguments contradict each other, the message may name the other one.
    """
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    filename, line = last.tb_frame.f_code.co_filename, last.tb_lineno
    if not isinstance(error, (TypeError, ValueError)):
        return "is an internal error"
    if not filename.startswith(PACKAGE):
        return f"comes from {filename}"
    if not linecache.getline(filename, line).strip().startswith("raise"):
        return f"is not raised by a statement of the package, in {filename}:{line}"
    if not re.search(rf"\b({'|'.join(arguments)}|row \d+|user '.*'|new ones)\b", str(error)):
        return "does not name the argument"
    return None


def faults(function, good, argument, any_function=False, may=()):
    """Return the faults of the errors that invalid values of an argument raise.

    With ``any_function``, functions are valid values; ``may`` are further acceptable errors, such as a missing file.
    """
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in NONSENSE:
            if callable(value) and any_function:
                continue
            try:
                function(**{**good, argument: value})
            except may:
                continue
            except Exception as error:
                fault = fault_of(error, good)
                if fault:
                    found.append(f"{argument}={nonsense_id(value)}: {type(error).__name__}: {error} -- {fault}")
    return "\n".join(found)
