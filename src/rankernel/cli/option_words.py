"""What the library advises, in the words of the command line: ``overwrite=True`` is ``--force`` here."""

from __future__ import annotations

import re
from collections.abc import Callable

METHOD = "--method montecarlo:draws=64"
WORDS: list[
    tuple[str, str | Callable[[re.Match[str]], str]]
] = [  # in this order: longer phrases come before their parts
    (r"use method=MonteCarlo\(n_draws\), or raise the limit: \w+\(limit=\.\.\.\)", f"use {METHOD}"),
    (r"for one method throughout, give method=MonteCarlo\(\.\.\.\)", f"for one method throughout, give {METHOD}"),
    (r"method=MonteCarlo\([^)]*\)|(rk\.)?MonteCarlo\([^)]*\)|rk\.MonteCarlo", METHOD),
    (r"\bmethod='(auto|exact|enumeration|mixed)'", r"--method \1"),
    (r"\bcoupling='(\w+)'", r"--method montecarlo:coupling=\1"),
    (r"\bmoments=([012])", r"--method montecarlo:moments=\1"),
    (r"\bn_draws=", "draws="),
    (r"\bor give n_draws\b", f"or give {METHOD}"),
    (r"\boverwrite=True", "--force"),
    (r"\bresume=True", "--resume"),
    (r"\bdtype=float32", "--dtype float32"),
    (r"\bn_clusters=", "--k "),
    (r"\bseparator='(.)'", r"--tie '\1'"),
    (r"\bignore=\['([^']*)'\]", r"--ignore '\1'"),
    (r"\bignore=", "--ignore"),
    (r"\blabels=", "--by"),
    (r"\bcount=(?=,|;| |$)", "--count"),
    (r"\blayout='(\w+)'", r"--layout \1"),
    (r"\brk\.(\w+)", lambda found: found[1].lower()),
    (r"\bMallows\(nu\)", "mallows"),
]
KNOWN = [(re.compile(pattern), words) for pattern, words in WORDS]


def in_options(text: str) -> str:
    """Return a text of the library in the words of the command line.

    Examples
    --------
    >>> in_options("K.npy is unfinished; resume=True goes on, overwrite=True starts again")
    'K.npy is unfinished; --resume goes on, --force starts again'
    """
    for pattern, words in KNOWN:
        text = pattern.sub(words, text)
    return text
