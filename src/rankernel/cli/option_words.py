"""What the library advises, in the words of the command line: ``overwrite=True`` is ``--force`` here."""

from __future__ import annotations

import re
from collections.abc import Callable

METHOD = "--method montecarlo:draws=64"
STORED = "-o K.zarr or -o K.npy, which are written piece by piece"
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
    (r"out= a memmap or a zarr array, .* or NystromFeatures", STORED),
    (r"(with their counts) \(\.unique\(\)\), or features of them \(NystromFeatures\)", r"\1 (rankernel clean --merge)"),
    (r"\bdtype=float32", "--dtype float32"),
    (r"\bn_clusters=", "--k "),
    (r"\brk\.(\w+)", lambda found: found[1].lower()),
    (r"\bMallows\(nu\)", "mallows"),
]
# Options whose advice says no more than name=value; what has no option is left as it is.
OPTIONS = {
    "separator": "--tie",
    "labels": "--by",
    "overwrite": "--force",
    "resume": "--resume",
    "fold_case": "--fold-case",
    "lenient": "--lenient",
    "ascending": "--ascending",
    "max_bytes": "--max-bytes",
    "columns": "--column",
    **{
        name: f"--{name}"
        for name in (
            *("layout", "items", "count", "ignore", "unlisted", "skipped", "repeated", "overvotes", "nothing", "blank"),
            *("delimiter", "encoding", "contest"),
        )
    },
}
OPTION = re.compile(rf"\b({'|'.join(OPTIONS)})=(True|\[[^\]]*\]|'[^']*'|\"[^\"]*\"|\.\.\.|[\w.]+)?")
KNOWN = [(re.compile(pattern), words) for pattern, words in WORDS]


def in_options(text: str) -> str:
    """Return a text of the library in the words of the command line.

    Examples
    --------
    >>> in_options("K.npy is unfinished; resume=True goes on, overwrite=True starts again")
    'K.npy is unfinished; --resume goes on, --force starts again'
    >>> in_options("give separator='|', or list all items in items=...")
    "give --tie '|', or list all items in --items"
    >>> in_options("labels or count names the column 'x'"), in_options("labels, ignore or count names the column 'x'")
    ("--by or --count names the column 'x'", "--by, --ignore or --count names the column 'x'")
    """
    for pattern, words in KNOWN:
        text = pattern.sub(words, text)
    text = OPTION.sub(option, text).replace("read_cvr(path, --contest)", "--contest")
    for word, name in (("count", "--count"), ("ignore", "--ignore"), ("labels", "--by")):  # from the last one back
        text = re.sub(rf"(?<![\w-]){word}(?= names the column|, --| or --)", name, text)
    return text


def option(found: re.Match[str]) -> str:
    """Return one option with its value as it is written on the command line."""
    name, value = OPTIONS[found[1]], found[2] or ""
    if value in ("", "True", "..."):
        return name
    return f"{name} {value.strip('[]') if value.startswith('[') else value}"
