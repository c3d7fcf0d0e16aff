"""The Kendall kernel of partial rankings against the R package kernrank, where R and the package are installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rankernel as rk
from benchmarks.clock import Row, medians

# Larger is better there, and NA is not listed. Prints the seconds, and writes the matrix.
SCRIPT = """
suppressMessages(library(kernrank))
paths <- commandArgs(trailingOnly = TRUE)
scores <- as.matrix(read.csv(paths[1], header = FALSE))
kernel <- get(paths[3])
n <- nrow(scores)
gram <- matrix(0, n, n)
invisible(kernel(scores[1, ], scores[2, ]))
seconds <- system.time(for (i in 1:n) for (j in 1:n) gram[i, j] <- kernel(scores[i, ], scores[j, ]))[["elapsed"]]
write.table(gram, paths[2], sep = ",", row.names = FALSE, col.names = FALSE)
cat(seconds)
"""
FEW = 80  # rankings for kernrank: its time is the same for every pair


def in_r(rankings: rk.Rankings, listed: np.ndarray, function: str) -> tuple[float, np.ndarray] | None:
    """Return the seconds and the matrix of a kernel of kernrank, or None if R or the package is missing."""
    if shutil.which("Rscript") is None:
        return None
    scores = np.where(listed, -rankings.ranks.astype(float), np.nan)
    with tempfile.TemporaryDirectory() as folder:
        source, target, script = (Path(folder, name) for name in ("scores.csv", "gram.csv", "script.R"))
        np.savetxt(source, scores, delimiter=",", fmt="%g")
        source.write_text(source.read_text().replace("nan", "NA"))
        script.write_text(SCRIPT)
        command = ["Rscript", str(script), str(source), str(target), function]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return None
        return float(done.stdout), np.loadtxt(target, delimiter=",")


def kendall() -> Iterator[Row]:
    full = rk.datasets.uniform(2000, 10, rng=0)
    top = full.top(4)
    free = rk.Rankings(np.where(full.ranks < 4, full.ranks, -1))
    for rankings, listed, function, kind in (
        (top, top.ranks < 4, "kendall_top", "top-4 of 10"),
        (free, free.ranks >= 0, "kendall_partial", "4 of 10, others free"),
    ):
        found = in_r(rankings[:FEW], listed[:FEW], function)
        if found is None:
            return
        seconds, matrix = found
        np.testing.assert_allclose(rk.Kendall().gram(rankings[:FEW]), matrix, atol=1e-12)
        (ours,) = medians(lambda: rk.Kendall().gram(rankings), repeats=7)  # noqa: B023
        peer = seconds / FEW**2 * len(rankings) ** 2
        size = f"N={len(rankings)}, {kind}"
        yield Row("Kendall Gram of partial rankings", size, "R: kernrank (extrapolated)", ours, peer, ">= 1000")


ALL = (kendall,)
